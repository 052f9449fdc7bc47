//! Background work on a drive of 20 TB: its memory never exceeds 128 MiB, and is freed at the end.
//!
//! `benches/large_drive.rs` measures the duration of the calls.

use headtime_disk::profile::builtin;
use headtime_disk::{Dur, Kind, Model, Outcome, Time};
use headtime_sched::{
    Action, Algorithm, Config, Core, FillConfig, Order, Request, SessionId, TaskError, TaskEvent, TaskId, TaskRange,
    TaskSpec,
};
use headtime_testkit::profiles::{between, rng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// All background work of a drive of 20 TB.
const LIMIT: usize = 128 << 20;
/// Bytes of a unit.
const UNIT: u64 = 256 << 10;
const WHOLE: usize = 10;
const SMALL: usize = 10_000;

struct Rig {
    core: Core,
    now: Time,
    rng: Xoshiro256PlusPlus,
    capacity: u64,
    unit: u32,
    model_bytes: usize,
    /// Commands that the core has sent. They all succeed.
    sent: Vec<u64>,
    delivered: u64,
    written: u64,
}

impl Rig {
    fn new() -> Rig {
        let profile = builtin("nearline-20tb").expect("a built-in drive");
        let model = Model::new(&profile).expect("it is in order");
        let capacity = model.geometry.capacity();
        let model_bytes = model.geometry.memory_bytes() + model.mechanics.memory_bytes();
        let fill = Some(FillConfig::new(Algorithm::Headtime));
        let core = Core::new(Config::new(Order::SptfAhead).with_capacity(64).with_fill(fill), model);
        let unit = (UNIT / u64::from(profile.sector_bytes)) as u32;
        let (now, sent) = (Time::ZERO, vec![]);
        Rig { core, now, rng: rng(20), capacity, unit, model_bytes, sent, delivered: 0, written: 0 }
    }

    fn drain(&mut self) {
        while let Some(action) = self.core.poll() {
            match action {
                Action::Issue(c) => self.sent.push(c.id),
                Action::Background(TaskEvent::GetBuffer { task, range, .. }) => {
                    self.core.buffer(task, range, true, self.now).expect("gaps are filled");
                }
                Action::Background(TaskEvent::Delivered { .. }) => self.delivered += 1,
                Action::Background(TaskEvent::Written { .. }) => self.written += 1,
                _ => {}
            }
        }
    }

    fn session(&mut self) -> SessionId {
        let session = self.core.open(10, self.now).expect("there is room");
        self.drain();
        session
    }

    fn register(&mut self, session: SessionId, kind: Kind, count: u64) -> Result<TaskId, TaskError> {
        let lbn = between(&mut self.rng, 0, self.capacity - count);
        let spec = TaskSpec { kind, ranges: vec![TaskRange { lbn, count }], blksize: self.unit, min_pickup: self.unit };
        let task = self.core.register(session, &spec, self.now);
        self.drain();
        task
    }

    /// Returns the memory with the bits at their upper bound.
    fn bytes_at_most(&self) -> usize {
        let report = self.core.freeblock().expect("gaps are filled");
        report.tasks.held() + report.tasks.queues + report.regions.total() + self.model_bytes
    }

    /// Returns the present memory.
    fn bytes(&self) -> usize {
        self.core.freeblock().expect("gaps are filled").bytes()
    }

    /// Advances the time; the commands at the drive complete.
    fn pass(&mut self) {
        self.now += Dur::from_ms(4);
        for id in std::mem::take(&mut self.sent) {
            self.core.complete(id, Outcome::Ok, self.now);
            self.drain();
        }
        self.core.tick(self.now);
        self.drain();
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[between(&mut self.rng, 0, all.len() as u64 - 1) as usize])
    }
}

#[test]
fn ten_tasks_of_the_whole_disk_and_ten_thousand_small_ones_take_less_than_128_mib() {
    let mut rig = Rig::new();
    for _ in 0..WHOLE {
        let session = rig.session();
        rig.register(session, Kind::Read, rig.capacity).expect("there is room");
    }
    let session = rig.session();
    for n in 0..SMALL {
        let kind = if n % 10 == 0 { Kind::Write } else { Kind::Read };
        rig.register(session, kind, rig.capacity / 10_000).expect("there is room");
    }
    let most = rig.bytes_at_most();
    println!("now {:.2} MB, at most {:.2} MB", rig.bytes() as f64 / 1e6, most as f64 / 1e6);
    assert!(most < LIMIT, "{most} bytes");
    assert!(rig.bytes() < LIMIT / 8, "nothing is torn yet: {}", rig.bytes());
}

#[test]
fn what_is_let_in_fits_whatever_becomes_of_it() {
    let mut rig = Rig::new();
    // As many as are accepted, of the largest tasks and then of smaller ones.
    for count in [rig.capacity, rig.capacity / 100, rig.capacity / 10_000] {
        for _ in 0..200 {
            let session = rig.session();
            if let Err(e) = rig.register(session, Kind::Read, count) {
                assert!(matches!(e, TaskError::Full { .. }), "{e}");
                rig.core.close(session, rig.now).expect("it is open");
                break;
            }
        }
    }
    let most = rig.bytes_at_most();
    assert!((LIMIT * 3 / 4..LIMIT).contains(&most), "{most} bytes");
}

#[test]
fn a_million_calls_leave_nothing_behind_and_never_take_more() {
    let mut rig = Rig::new();
    let before = rig.bytes();
    for _ in 0..WHOLE {
        let session = rig.session();
        rig.register(session, Kind::Read, rig.capacity).expect("there is room");
    }
    let (mut sessions, mut tasks): (Vec<SessionId>, Vec<TaskId>) = (vec![], vec![]);
    let (mut most, mut registered, mut gone) = (0, 0, 0);
    let mut ids = 0;
    for n in 0..1_000_000u64 {
        let (session, task) = (rig.one_of(&sessions), rig.one_of(&tasks));
        let now = rig.now;
        let done = match (between(&mut rig.rng, 0, 99), session, task) {
            (0..3, ..) if sessions.len() < 32 => {
                sessions.push(rig.session());
                Ok(())
            }
            (3..25, Some(session), _) => {
                let count = match between(&mut rig.rng, 0, 999) {
                    0 => rig.capacity,
                    1..5 => rig.capacity / 100,
                    5..50 => rig.capacity / 10_000,
                    _ => u64::from(rig.unit) * between(&mut rig.rng, 1, 64),
                };
                let kind = if n % 3 == 0 && count < rig.capacity / 1_000 { Kind::Write } else { Kind::Read };
                rig.register(session, kind, count).map(|task| {
                    registered += 1;
                    tasks.push(task);
                })
            }
            (25..45, _, Some(task)) => {
                tasks.retain(|t| *t != task);
                rig.core.abort(task, now)
            }
            (45..50, _, Some(task)) => rig.core.promote(task, now),
            (50, Some(session), _) => rig.core.suspend(session, now),
            (51..53, Some(session), _) => rig.core.resume(session, now),
            (61, Some(session), _) if n % 8 == 0 => {
                sessions.retain(|s| *s != session);
                rig.core.close(session, now)
            }
            (62..65, Some(session), _) => rig.core.set_window(session, 1 << 30, now),
            (65..70, Some(session), _) => rig.core.taken(session, u64::MAX, now),
            (70..85, ..) => {
                ids += 1;
                let kind = if n % 3 == 0 { Kind::Write } else { Kind::Read };
                let lbn = between(&mut rig.rng, 0, rig.capacity - 16);
                let request = Request { id: ids, kind, lbn, count: 16, fua: false, sync: true, owner: 0 };
                // It is rejected when too many are pending.
                _ = rig.core.submit(request, now);
                Ok(())
            }
            _ => {
                rig.pass();
                Ok(())
            }
        };
        match done {
            Ok(()) | Err(TaskError::Full { .. }) => {}
            // Tasks end by themselves, and with their sessions.
            Err(TaskError::NoTask(_)) => gone += 1,
            Err(e) => panic!("call {n}: {e}"),
        }
        rig.drain();
        if n % 64 == 0 {
            most = most.max(rig.bytes_at_most());
        }
    }
    println!(
        "at most {:.2} MB, {registered} tasks, {} deliveries, {} writes",
        most as f64 / 1e6,
        rig.delivered,
        rig.written
    );
    assert!(most < LIMIT, "{most} bytes");
    assert!(registered > 100_000 && gone > 1_000 && rig.delivered > 10_000 && rig.written > 100);
    for info in rig.core.freeblock().expect("gaps are filled").sessions {
        rig.core.close(info.id, rig.now).expect("it is open");
        rig.drain();
    }
    while !rig.sent.is_empty() {
        rig.pass();
    }
    let report = rig.core.freeblock().expect("gaps are filled");
    assert_eq!((report.sessions.len(), report.tasks.held()), (0, 0));
    // Queues keep their capacity, which is bounded.
    assert!(report.bytes() < before + (4 << 20), "{report:?}");
}
