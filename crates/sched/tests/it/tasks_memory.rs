//! Memory of the task manager under the load of Thereska 2003 tables 1 and 2, and its limit.

use headtime_disk::profile::builtin;
use headtime_disk::{Kind, Model, Outcome, Time};
use headtime_sched::internals::manager::TaskManager;
use headtime_sched::{SessionId, TaskError, TaskLimits, TaskMemory, TaskRange, TaskSpec};
use headtime_testkit::profiles::{between, rng};

fn capacity(profile: &str) -> (u64, u64) {
    let profile = builtin(profile).expect("a built-in profile");
    let model = Model::new(&profile).expect("it is in order");
    (model.geometry.capacity(), u64::from(profile.sector_bytes))
}

/// Ten tasks that read the whole disk, 1,000 that read or write 0.1% of it and 10,000 that read or
/// write 0.01%, each at a random place, in eleven sessions.
fn load(disk: u64, unit: u32, limits: TaskLimits) -> TaskManager {
    let mut tasks = TaskManager::new(limits, disk);
    let mut rng = rng(disk);
    let mut add = |tasks: &mut TaskManager, session: SessionId, kind, parts: u64| {
        let count = disk / parts;
        let range = TaskRange { lbn: between(&mut rng, 0, disk - count), count };
        let spec = TaskSpec { kind, ranges: vec![range], blksize: unit, min_pickup: unit };
        tasks.register(session, &spec).expect("there is room");
    };
    for _ in 0..10 {
        let session = tasks.open(10).expect("there is room");
        add(&mut tasks, session, Kind::Read, 1);
    }
    let session = tasks.open(10).expect("there is room");
    for n in 0..11_000 {
        // Writes that overlap supersede one another, so most of the tasks measured here read.
        let kind = if n % 10 == 0 { Kind::Write } else { Kind::Read };
        add(&mut tasks, session, kind, if n < 1_000 { 1_000 } else { 10_000 });
        while tasks.next_event().is_some() {}
        tasks.take_changes();
    }
    let open: u32 = tasks.sessions().map(|s| s.tasks).sum();
    assert!(open > 10_500, "only {open} tasks are left of 11,010");
    tasks
}

fn print(name: &str, m: &TaskMemory) {
    let mb = |bytes: usize| bytes as f64 / 1e6;
    println!(
        "{name:>16}: sessions {:.3}  tasks {:.3}  ranges {:.3}  index {:.3}  bits {:.3} (at most {:.3})  queues {:.3}  \
         held at most {:.3} MB",
        mb(m.sessions),
        mb(m.tasks),
        mb(m.ranges),
        mb(m.index),
        mb(m.bits),
        mb(m.bits_at_most),
        mb(m.queues),
        mb(m.held())
    );
}

#[test]
fn the_load_of_table_1_takes_no_more_than_the_paper_says() {
    // Thereska 2003 table 1, task manager, MB.
    let table =
        [("atlas3", 2.7), ("ultrastar18lzx", 3.1), ("cheetah36es", 3.1), ("atlas10k3", 3.9), ("cheetah73lp", 5.7)];
    for (name, paper_mb) in table {
        let (disk, sector) = capacity(name);
        let tasks = load(disk, (32_768 / sector) as u32, TaskLimits::default());
        let memory = tasks.memory();
        print(name, &memory);
        assert!(memory.held() as f64 <= paper_mb * 1e6, "{name}: {memory:?}, the paper has {paper_mb} MB");
        assert!(memory.total() as f64 <= paper_mb * 1e6, "{name}: {memory:?}, the paper has {paper_mb} MB");
    }
}

#[test]
fn a_20_tb_drive_stays_under_128_mib() {
    let (disk, sector) = capacity("nearline-20tb");
    let mut tasks = load(disk, (262_144 / sector) as u32, TaskLimits::default());
    let fresh = tasks.memory();
    print("20 TB, fresh", &fresh);
    assert!(fresh.held() < 116 << 20, "{fresh:?}: the scheduling layer needs room, too");
    // The worst case of the bits: a unit here, a unit there.
    let unit = 262_144 / sector;
    for chunk in 0..disk / (unit * 8_192) + 1 {
        let lbn = (chunk * 8_192 + 5) * unit;
        if lbn + 2 * unit <= disk {
            tasks.completed(Kind::Read, lbn, 2 * unit as u32, Outcome::Ok, Time::ZERO);
        }
        while tasks.next_event().is_some() {}
        tasks.take_changes();
    }
    let torn = tasks.memory();
    print("20 TB, torn", &torn);
    assert!(torn.bits > 90_000_000, "{torn:?}");
    assert!(torn.bits <= torn.bits_at_most && torn.held() <= fresh.held());
    assert!(torn.total() < 117 << 20, "{torn:?}");
}

#[test]
fn a_task_in_a_hundred_thousand_ranges_takes_a_few_bytes_for_each() {
    let (disk, _) = capacity("cheetah36es");
    let mut tasks = TaskManager::new(TaskLimits::default(), disk);
    let session = tasks.open(1).expect("there is room");
    let stretch = disk / 100_000;
    let ranges = (0..100_000).map(|n| TaskRange { lbn: n * stretch, count: 64 }).collect();
    tasks
        .register(session, &TaskSpec { kind: Kind::Read, ranges, blksize: 64, min_pickup: 64 })
        .expect("there is room");
    let memory = tasks.memory();
    print("100,000 ranges", &memory);
    assert!(memory.total() < 100_000 * 75, "{memory:?}");
}

#[test]
fn what_does_not_fit_at_its_largest_is_refused_and_what_fits_never_fails() {
    let disk = 1 << 30;
    let limits = TaskLimits { bytes: 1 << 20, ..TaskLimits::default() };
    let mut tasks = TaskManager::new(limits, disk);
    let session = tasks.open(1).expect("there is room");
    let spec = |count, min_pickup| TaskSpec {
        kind: Kind::Read,
        ranges: vec![TaskRange { lbn: 0, count }],
        blksize: 1,
        min_pickup,
    };
    // 2^30 units of one sector are 128 MiB of bits.
    let refused = tasks.register(session, &spec(disk, 1));
    assert_eq!(refused, Err(TaskError::Full { what: "bytes", limit: 1 << 20 }));
    // 2^22 units are half of the limit; that they occupy next to nothing now does not make room for
    // a second such task.
    tasks.register(session, &spec(disk, 256)).expect("there is room");
    assert!(tasks.memory().bits < 20_000);
    tasks.register(session, &spec(disk, 256)).expect_err("two of them do not fit at their largest");
    for lbn in (0..disk / 256 * 200).step_by(512) {
        tasks.completed(Kind::Read, lbn, 256, Outcome::Ok, Time::ZERO);
        while tasks.next_event().is_some() {}
        tasks.take_changes();
    }
    let memory = tasks.memory();
    assert!(memory.bits > 400_000 && memory.total() <= 1 << 20, "{memory:?}");
    tasks.close(session).expect("it is open");
    assert_eq!(tasks.memory(), TaskMemory::default());
}
