//! Cost of background work on a drive of 20 TB: memory, and the calls of applications.
//!
//! Run with `cargo bench -p headtime-sched --bench large_drive`. It registers ten tasks of the
//! whole disk and 10,000 small ones, and then calls a core a million times: open, register, abort,
//! promote, suspend, resume, close, windows, and requests of the foreground. It prints the memory
//! of the tasks and the duration of the calls of each kind, mean and longest. Under `cargo test` it
//! calls a thousand times.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use headtime_disk::profile::builtin;
use headtime_disk::{Dur, Kind, Model, Outcome, Time};
use headtime_sched::{
    Action, Algorithm, Config, Core, FillConfig, FillReport, Order, Request, SessionId, TaskEvent, TaskId, TaskRange,
    TaskSpec,
};
use headtime_testkit::profiles::{between, rng};

/// Bytes of a unit.
const UNIT: u64 = 256 << 10;
const WHOLE: usize = 10;
const SMALL: usize = 10_000;

#[derive(Default)]
struct Times(BTreeMap<&'static str, (u64, Duration, Duration)>);

impl Times {
    fn of<T>(&mut self, what: &'static str, call: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = call();
        let took = begun.elapsed();
        let (calls, all, longest) = self.0.entry(what).or_default();
        (*calls, *all, *longest) = (*calls + 1, *all + took, took.max(*longest));
        result
    }

    fn print(&self) {
        println!("{:>28} {:>9} {:>12} {:>12}", "", "calls", "mean us", "longest us");
        for (what, (calls, all, longest)) in &self.0 {
            let us = |d: Duration| d.as_secs_f64() * 1e6;
            println!("{what:>28} {calls:>9} {:>12.2} {:>12.1}", us(*all) / *calls as f64, us(*longest));
        }
    }
}

fn print(name: &str, report: &FillReport) {
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let (t, r) = (&report.tasks, &report.regions);
    println!(
        "{name}: {} sessions, {} tasks; task manager {:.2} MiB (bits {:.2}, at most {:.2}; held {:.2}), regions {:.2} \
         MiB; at most {:.2} MiB",
        report.sessions.len(),
        report.sessions.iter().map(|s| s.tasks).sum::<u32>(),
        mib(t.total()),
        mib(t.bits),
        mib(t.bits_at_most),
        mib(t.held()),
        mib(r.total()),
        mib(t.held() + t.queues + r.total()),
    );
}

struct Bench {
    core: Core,
    now: Time,
    times: Times,
    capacity: u64,
    unit: u32,
    /// Commands that the core has sent; all succeed at once.
    sent: Vec<u64>,
    ids: u64,
}

impl Bench {
    fn new() -> Bench {
        let profile = builtin("nearline-20tb").expect("a built-in drive");
        let mut times = Times::default();
        let model = times.of("model", || Model::new(&profile)).expect("it is in order");
        println!(
            "model {:.3} MiB",
            (model.geometry.memory_bytes() + model.mechanics.memory_bytes()) as f64 / f64::from(1 << 20)
        );
        let capacity = model.geometry.capacity();
        let fill = Some(FillConfig::new(Algorithm::Headtime));
        let config = Config::new(Order::SptfAhead).with_capacity(64).with_fill(fill);
        let unit = (UNIT / u64::from(profile.sector_bytes)) as u32;
        Bench { core: Core::new(config, model), now: Time::ZERO, times, capacity, unit, sent: vec![], ids: 0 }
    }

    fn drain(&mut self) {
        let begun = Instant::now();
        while let Some(action) = self.core.poll() {
            match action {
                Action::Issue(c) => self.sent.push(c.id),
                Action::Background(TaskEvent::GetBuffer { task, range, .. }) => {
                    let _ = self.core.buffer(task, range, true, self.now);
                }
                _ => {}
            }
        }
        let took = begun.elapsed();
        let polls = self.times.0.entry("polls behind a call").or_default();
        *polls = (polls.0 + 1, polls.1 + took, polls.2.max(took));
    }

    /// Advances the time; the commands at the drive complete.
    fn pass(&mut self) {
        self.now += Dur::from_ms(4);
        for id in std::mem::take(&mut self.sent) {
            let (core, now) = (&mut self.core, self.now);
            self.times.of("complete", || core.complete(id, Outcome::Ok, now));
            self.drain();
        }
        let (core, now) = (&mut self.core, self.now);
        self.times.of("tick", || core.tick(now));
        self.drain();
    }

    fn call<T>(&mut self, what: &'static str, call: impl FnOnce(&mut Core, Time) -> T) -> T {
        let (core, now) = (&mut self.core, self.now);
        let result = self.times.of(what, || call(core, now));
        self.drain();
        result
    }

    fn register(&mut self, what: &'static str, session: SessionId, kind: Kind, range: TaskRange) -> Option<TaskId> {
        let spec = TaskSpec { kind, ranges: vec![range], blksize: self.unit, min_pickup: self.unit };
        self.call(what, |core, now| core.register(session, &spec, now)).ok()
    }

    fn report(&self) -> FillReport {
        self.core.freeblock().expect("gaps are filled")
    }

    fn finish(self) {
        self.times.print();
    }
}

fn main() {
    let long = std::env::args().any(|a| a == "--bench");
    let (small, calls) = if long { (SMALL, 1_000_000u64) } else { (100, 1_000) };
    let mut b = Bench::new();
    print("nothing", &b.report());
    let mut rng = rng(20);
    let whole = TaskRange { lbn: 0, count: b.capacity };
    for _ in 0..WHOLE {
        let session = b.call("open", |core, now| core.open(10, now)).expect("there is room");
        b.register("register, whole disk", session, Kind::Read, whole).expect("there is room");
    }
    print("ten of the whole disk", &b.report());
    let session = b.call("open", |core, now| core.open(10, now)).expect("there is room");
    let mut refused = 0;
    for n in 0..small {
        let count = b.capacity / 10_000;
        let range = TaskRange { lbn: between(&mut rng, 0, b.capacity - count), count };
        let kind = if n % 10 == 0 { Kind::Write } else { Kind::Read };
        refused += u32::from(b.register("register, 2 GB", session, kind, range).is_none());
    }
    println!("{refused} refused");
    print("and small ones of 2 GB", &b.report());
    b.times.print();
    b.call("close, all small ones", |core, now| core.close(session, now)).expect("it is open");
    print("small ones closed", &b.report());

    // Tasks of all sizes are added and removed, beside ten of the whole disk.
    let mut sessions: Vec<SessionId> = vec![];
    let mut tasks: Vec<TaskId> = vec![];
    let (mut most, mut full) = (0, 0u64);
    let begun = Instant::now();
    for n in 0..calls {
        if n % 100_000 == 99_999 {
            print(&format!("after {} calls, {:.0} s", n + 1, begun.elapsed().as_secs_f64()), &b.report());
        }
        let some = |of: usize, rng: &mut _| (of > 0).then(|| between(rng, 0, of as u64 - 1) as usize);
        let session = some(sessions.len(), &mut rng).map(|at| sessions[at]);
        match (between(&mut rng, 0, 99), session) {
            (0..4, _) if sessions.len() < 32 => {
                sessions.extend(b.call("open", |core, now| core.open(1 + n as u32 % 100, now)).ok());
            }
            (4..24, Some(session)) if tasks.len() < 10_000 => {
                let (what, count) = match between(&mut rng, 0, 99) {
                    0 => ("register, whole disk", b.capacity),
                    1..5 => ("register, 200 GB", b.capacity / 100),
                    5..20 => ("register, 2 GB", b.capacity / 10_000),
                    _ => ("register, 256 KiB to 16 MiB", u64::from(b.unit) * between(&mut rng, 1, 64)),
                };
                let kind = if n % 3 == 0 && count < b.capacity / 1000 { Kind::Write } else { Kind::Read };
                let range = TaskRange { lbn: between(&mut rng, 0, b.capacity - count), count };
                let task = b.register(what, session, kind, range);
                full += u64::from(task.is_none());
                tasks.extend(task);
            }
            (24..40, _) if !tasks.is_empty() => {
                let task = tasks.swap_remove(some(tasks.len(), &mut rng).expect("there is one"));
                _ = b.call("abort", |core, now| core.abort(task, now));
            }
            (40..45, _) if !tasks.is_empty() => {
                let task = tasks[some(tasks.len(), &mut rng).expect("there is one")];
                _ = b.call("promote", |core, now| core.promote(task, now));
            }
            (45..50, Some(session)) => _ = b.call("suspend", |core, now| core.suspend(session, now)),
            (50..56, Some(session)) => _ = b.call("resume", |core, now| core.resume(session, now)),
            (56, Some(session)) => {
                _ = b.call("close", |core, now| core.close(session, now));
                sessions.retain(|s| *s != session);
            }
            (57..60, Some(session)) => _ = b.call("window", |core, now| core.set_window(session, 1 << 30, now)),
            (60..64, Some(session)) => _ = b.call("taken", |core, now| core.taken(session, u64::MAX, now)),
            (64..70, _) => {
                let report = b.call("report", |core, _| core.freeblock()).expect("gaps are filled");
                most = most.max(report.tasks.held() + report.tasks.queues + report.regions.total());
            }
            (70..80, _) => {
                b.ids += 1;
                let kind = if n % 3 == 0 { Kind::Write } else { Kind::Read };
                let lbn = between(&mut rng, 0, b.capacity - 16);
                let request = Request { id: b.ids, kind, lbn, count: 16, fua: false, sync: true, owner: 0 };
                _ = b.call("submit", |core, now| core.submit(request, now));
            }
            _ => b.pass(),
        }
    }
    println!(
        "{:.1} s, {full} registrations refused, at most {:.2} MiB",
        begun.elapsed().as_secs_f64(),
        most as f64 / f64::from(1 << 20)
    );
    for session in b.report().sessions {
        b.call("close", |core, now| core.close(session.id, now)).expect("it is open");
    }
    print("all closed", &b.report());
    b.finish();
}
