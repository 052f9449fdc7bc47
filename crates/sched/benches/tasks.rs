//! Cost of the task manager: queries of a search, a completed command, and mixed calls of
//! applications.
//!
//! Run with `cargo bench -p headtime-sched --bench tasks`; under `cargo test` every benchmark runs
//! once.

use divan::{Bencher, black_box};
use headtime_disk::{Kind, Outcome, Time};
use headtime_sched::internals::manager::TaskManager;
use headtime_sched::internals::tasks::{Wants, Who};
use headtime_sched::internals::wanted::Wanted;
use headtime_sched::{SessionId, TaskId, TaskLimits, TaskRange, TaskSpec};
use headtime_testkit::profiles::{between, rng};

/// Sectors of an 18 GB drive, and of a 20 TB one.
const SMALL: u64 = 36_000_000;
const LARGE: u64 = 39_063_650_304;
/// Sectors of a unit: 4 KiB, 32 KiB, 256 KiB.
const UNITS: [u32; 3] = [8, 64, 512];
/// Sectors per query of a search.
const TRACK: u32 = 300;

fn main() {
    divan::main();
}

fn drain(tasks: &mut TaskManager) {
    while let Some(event) = tasks.next_event() {
        black_box(event);
    }
    black_box(tasks.take_changes());
}

fn read_of(ranges: Vec<TaskRange>, unit: u32) -> TaskSpec {
    TaskSpec { kind: Kind::Read, ranges, blksize: unit, min_pickup: unit }
}

fn one_task(disk: u64, ranges: Vec<TaskRange>, unit: u32) -> (TaskManager, SessionId) {
    let mut tasks = TaskManager::new(TaskLimits { bytes: 1 << 30, ..TaskLimits::default() }, disk);
    let session = tasks.open(1).expect("there is room");
    tasks.register(session, &read_of(ranges, unit)).expect("there is room");
    (tasks, session)
}

fn whole(disk: u64) -> Vec<TaskRange> {
    vec![TaskRange { lbn: 0, count: disk }]
}

/// Reads random tracks until this percentage of the disk has been read.
fn read_some(tasks: &mut TaskManager, disk: u64, percent: u64) {
    let mut rng = rng(7);
    let tracks = disk / u64::from(TRACK);
    for n in 0..tracks {
        if between(&mut rng, 1, 100) <= percent {
            tasks.completed(Kind::Read, n * u64::from(TRACK), TRACK, Outcome::Ok, Time::ZERO);
            drain(tasks);
        }
    }
}

fn ask(bencher: Bencher, tasks: &TaskManager, disk: u64, who: Who) {
    let mut rng = rng(3);
    let places: Vec<u64> = (0..1 << 14).map(|_| between(&mut rng, 0, disk - u64::from(TRACK))).collect();
    let mut out = Wanted::new();
    let mut n = 0;
    bencher.bench_local(|| {
        n = (n + 1) % places.len();
        out.reset(places[n], TRACK);
        tasks.wanted(who, Kind::Read, &mut out);
        out.next(0)
    });
}

#[divan::bench(args = UNITS)]
fn wanted_full(bencher: Bencher, unit: u32) {
    let (tasks, _) = one_task(SMALL, whole(SMALL), unit);
    ask(bencher, &tasks, SMALL, Who::Anyone);
}

#[divan::bench(args = UNITS)]
fn wanted_full_of_one_session(bencher: Bencher, unit: u32) {
    let (tasks, session) = one_task(SMALL, whole(SMALL), unit);
    ask(bencher, &tasks, SMALL, Who::Session(session));
}

#[divan::bench(args = UNITS)]
fn wanted_half(bencher: Bencher, unit: u32) {
    let (mut tasks, _) = one_task(SMALL, whole(SMALL), unit);
    read_some(&mut tasks, SMALL, 50);
    ask(bencher, &tasks, SMALL, Who::Anyone);
}

#[divan::bench(args = UNITS)]
fn wanted_nearly_done(bencher: Bencher, unit: u32) {
    let (mut tasks, _) = one_task(SMALL, whole(SMALL), unit);
    read_some(&mut tasks, SMALL, 99);
    ask(bencher, &tasks, SMALL, Who::Anyone);
}

#[divan::bench(args = [1, 10])]
fn wanted_by_whole_disk_tasks(bencher: Bencher, count: usize) {
    let mut tasks = TaskManager::new(TaskLimits::default(), SMALL);
    for _ in 0..count {
        let session = tasks.open(1).expect("there is room");
        tasks.register(session, &read_of(whole(SMALL), 64)).expect("there is room");
    }
    ask(bencher, &tasks, SMALL, Who::Anyone);
}

#[divan::bench(args = [100, 10_000, 100_000])]
fn wanted_by_tasks_of_one_range(bencher: Bencher, count: u64) {
    let mut tasks = TaskManager::new(TaskLimits::default(), SMALL);
    let session = tasks.open(1).expect("there is room");
    for n in 0..count {
        let range = TaskRange { lbn: n * (SMALL / count), count: SMALL / count };
        tasks.register(session, &read_of(vec![range], 64)).expect("there is room");
    }
    ask(bencher, &tasks, SMALL, Who::Anyone);
}

#[divan::bench]
fn wanted_by_a_task_of_100_000_ranges(bencher: Bencher) {
    let mut rng = rng(5);
    let stretch = SMALL / 100_000;
    let ranges = (0..100_000).map(|n| TaskRange { lbn: n * stretch, count: between(&mut rng, 8, stretch) });
    let (tasks, _) = one_task(SMALL, ranges.collect(), 8);
    ask(bencher, &tasks, SMALL, Who::Anyone);
}

/// The load of Thereska 2003 table 1.
#[divan::bench]
fn wanted_under_the_load_of_table_1(bencher: Bencher) {
    let mut rng = rng(5);
    let mut tasks = TaskManager::new(TaskLimits::default(), SMALL);
    let session = tasks.open(1).expect("there is room");
    for n in 0..11_010u64 {
        let count = if n < 10 {
            SMALL
        } else if n < 1_010 {
            SMALL / 1_000
        } else {
            SMALL / 10_000
        };
        let range = TaskRange { lbn: between(&mut rng, 0, SMALL - count), count };
        tasks.register(session, &read_of(vec![range], 64)).expect("there is room");
    }
    ask(bencher, &tasks, SMALL, Who::Anyone);
}

#[divan::bench]
fn register_and_abort_a_whole_20_tb_disk(bencher: Bencher) {
    let mut tasks = TaskManager::new(TaskLimits::default(), LARGE);
    let session = tasks.open(1).expect("there is room");
    let spec = read_of(whole(LARGE), 512);
    bencher.bench_local(|| {
        let task = tasks.register(session, &spec).expect("there is room");
        tasks.abort(task).expect("it exists");
        black_box(tasks.take_changes());
    });
}

#[divan::bench]
fn register_and_abort_100_000_ranges(bencher: Bencher) {
    let mut tasks = TaskManager::new(TaskLimits::default(), SMALL);
    let session = tasks.open(1).expect("there is room");
    let stretch = SMALL / 100_000;
    let spec = read_of((0..100_000).map(|n| TaskRange { lbn: n * stretch, count: 64 }).collect(), 64);
    bencher.bench_local(|| {
        let task = tasks.register(session, &spec).expect("there is room");
        tasks.abort(task).expect("it exists");
        black_box(tasks.take_changes());
    });
}

/// Completes a random read of 4 KiB to 64 KiB on a large disk of which nearly everything is still
/// wanted.
#[divan::bench]
fn completed(bencher: Bencher) {
    let (mut tasks, _) = one_task(LARGE, whole(LARGE), 64);
    let mut rng = rng(3);
    let reads: Vec<(u64, u32)> = (0..1 << 16)
        .map(|_| (between(&mut rng, 0, LARGE / 8 - 100) * 8, 8 * between(&mut rng, 1, 16) as u32))
        .collect();
    let mut n = 0;
    bencher.bench_local(|| {
        n += 1;
        let (lbn, count) = reads[n % reads.len()];
        tasks.completed(Kind::Read, lbn, count, Outcome::Ok, Time::ZERO);
        drain(&mut tasks);
    });
}

/// One call of many kinds, over a thousand tasks that are added and removed: registrations of one
/// range, aborts, completed commands with their events, foreground writes, changes of priority,
/// queries of a task.
#[divan::bench]
fn mixed_calls(bencher: Bencher) {
    let mut rng = rng(9);
    let mut tasks = TaskManager::new(TaskLimits::default(), SMALL);
    let sessions: Vec<SessionId> = (1..=10).map(|n| tasks.open(n).expect("there is room")).collect();
    let mut here: Vec<TaskId> = vec![];
    let numbers: Vec<(u64, u64)> =
        (0..1 << 16).map(|_| (between(&mut rng, 0, 99), between(&mut rng, 0, SMALL - 10_000))).collect();
    let mut n = 0;
    bencher.bench_local(|| {
        n = (n + 1) % numbers.len();
        let (what, place) = numbers[n];
        let session = sessions[place as usize % sessions.len()];
        let some = (!here.is_empty()).then(|| place as usize % here.len().max(1));
        match (what, some) {
            (0..25, _) if here.len() < 1_000 => {
                let kind = if what < 20 { Kind::Read } else { Kind::Write };
                let ranges = vec![TaskRange { lbn: place, count: 100 + place % 4_000 }];
                let spec = TaskSpec { kind, ranges, blksize: 8, min_pickup: 64 };
                here.push(tasks.register(session, &spec).expect("there is room"));
            }
            (0..35, Some(at)) => {
                // It may have ended already.
                _ = tasks.abort(here.swap_remove(at));
            }
            (35..70, _) => tasks.completed(Kind::Read, place, 16 + place as u32 % 128, Outcome::Ok, Time::ZERO),
            (70..80, _) => tasks.foreground_write(place, 16),
            (80..85, _) => tasks.set_priority(session, 1 + place as u32 % 100).expect("it is open"),
            (85..90, _) => _ = black_box(tasks.draw(place << 40)),
            (_, Some(at)) => _ = black_box(tasks.task(here[at])),
            _ => {}
        }
        drain(&mut tasks);
    });
}
