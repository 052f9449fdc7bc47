//! The task manager against one with a flag per sector: random calls, event by event.

use std::collections::{BTreeMap, BTreeSet};

use headtime_disk::{Dur, Kind, Outcome, Time};
use headtime_sched::internals::manager::TaskManager;
use headtime_sched::internals::tasks::{Wants, Who};
use headtime_sched::internals::wanted::Wanted;
use headtime_sched::{SessionId, TaskError, TaskEvent, TaskId, TaskLimits, TaskRange, TaskSpec};
use headtime_testkit::profiles::{between, rng};
use headtime_testkit::tasks::NaiveTasks;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

const DISK: u64 = 2_000;
const BACKOFF: Dur = Dur::from_ms(20);

/// Both managers, with the same input, and all events of each task.
struct Pair {
    rng: Xoshiro256PlusPlus,
    real: TaskManager,
    slow: NaiveTasks,
    limits: TaskLimits,
    now: Time,
    sessions: Vec<SessionId>,
    /// The specification of each task, whether it has ended or not.
    specs: BTreeMap<TaskId, TaskSpec>,
    aborted: BTreeSet<TaskId>,
    done: BTreeSet<TaskId>,
    /// Sectors that have ended.
    ended: BTreeMap<TaskId, BTreeSet<u64>>,
    asks: Vec<TaskRange>,
    flights: Vec<TaskRange>,
    gets: Vec<(TaskId, TaskRange)>,
    /// Events of each kind: a test without any of one kind has shown nothing about it.
    seen: BTreeMap<&'static str, u64>,
    drain_always: bool,
}

impl Pair {
    fn new(seed: u64, events: usize, drain_always: bool) -> Pair {
        let limits = TaskLimits { sessions: 6, tasks: 24, ranges: 90, bytes: 60_000, region_bytes: 1 << 20, events };
        Pair {
            rng: rng(seed),
            real: TaskManager::new(limits, DISK),
            slow: NaiveTasks::new(events, BACKOFF),
            limits,
            now: Time::ZERO,
            sessions: vec![],
            specs: BTreeMap::new(),
            aborted: BTreeSet::new(),
            done: BTreeSet::new(),
            ended: BTreeMap::new(),
            asks: vec![],
            flights: vec![],
            gets: vec![],
            seen: BTreeMap::new(),
            drain_always,
        }
    }

    fn n(&mut self, to: u64) -> u64 {
        between(&mut self.rng, 0, to)
    }

    fn some<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        (!of.is_empty()).then(|| of[self.n(of.len() as u64 - 1) as usize])
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn a_session(&mut self) -> Option<SessionId> {
        let all = self.sessions.clone();
        self.some(&all)
    }

    fn a_task(&mut self) -> Option<TaskId> {
        let all: Vec<TaskId> = self.slow.tasks.keys().copied().collect();
        self.some(&all)
    }

    fn a_range(&mut self, longest: u64) -> TaskRange {
        let count = 1 + self.n(longest - 1);
        TaskRange { lbn: self.n(DISK - count), count }
    }

    fn spec(&mut self) -> TaskSpec {
        let kind = if self.n(2) == 0 { Kind::Write } else { Kind::Read };
        let blksize = 1 + self.n(7) as u32;
        let min_pickup = blksize * (1 + self.n(3) as u32);
        let longest = [10, 40, 300, DISK][self.n(3) as usize];
        let mut ranges: Vec<TaskRange> = vec![];
        for _ in 0..=self.n(8) {
            let r = self.a_range(longest);
            // Overlaps are rejected; a few are tried to check that.
            if self.n(60) == 0 || !ranges.iter().any(|o| o.overlaps(&r)) {
                ranges.push(r);
            }
        }
        TaskSpec { kind, ranges, blksize, min_pickup }
    }

    fn register(&mut self) {
        let Some(session) = self.a_session() else { return };
        let spec = self.spec();
        let overlap = (1..spec.ranges.len()).any(|n| spec.ranges[..n].iter().any(|o| o.overlaps(&spec.ranges[n])));
        let before = self.real.memory();
        let ranges: usize = self.slow.tasks.keys().map(|t| self.specs[t].ranges.len()).sum();
        let expected = if ranges + spec.ranges.len() > self.limits.ranges {
            Some("ranges")
        } else if overlap {
            Some("overlap")
        } else if self.slow.tasks.len() >= self.limits.tasks {
            Some("tasks")
        } else if self.slow.superseded_by(&spec) > self.slow.room() && spec.kind == Kind::Write {
            Some("events")
        } else {
            None
        };
        match self.real.register(session, &spec) {
            Ok(id) => {
                assert_eq!(expected, None);
                assert!(self.specs.keys().all(|&older| older < id), "names grow");
                self.slow.register(session, id, &spec);
                self.specs.insert(id, spec);
                self.ended.insert(id, BTreeSet::new());
                self.saw("registered");
            }
            Err(e) => {
                match e {
                    TaskError::Overlap { .. } => assert_eq!(expected, Some("overlap")),
                    TaskError::Full { what: "bytes", .. } => assert!(before.held() + 2_000 > self.limits.bytes / 2),
                    TaskError::Full { what, .. } => assert_eq!(expected, Some(what)),
                    other => panic!("{other}"),
                }
                assert_eq!(self.real.memory().held(), before.held(), "a refused call changes nothing");
                self.saw("refused");
            }
        }
    }

    /// A command of another client that does not conflict with a write in flight.
    fn command(&mut self) {
        let longest = [20, 100, 600][self.n(2) as usize];
        let range = self.a_range(longest);
        if self.flights.iter().any(|f| f.overlaps(&range)) {
            return;
        }
        let kind = if self.n(4) == 0 { Kind::Write } else { Kind::Read };
        let outcome = self.outcome(&range);
        self.complete(kind, range, outcome);
    }

    fn outcome(&mut self, range: &TaskRange) -> Outcome {
        match self.n(7) {
            0 | 1 => Outcome::MediaError { lbn: range.lbn + self.n(range.count - 1) },
            2 => Outcome::Dead,
            _ => Outcome::Ok,
        }
    }

    fn complete(&mut self, kind: Kind, range: TaskRange, outcome: Outcome) {
        self.real.completed(kind, range.lbn, range.count as u32, outcome, self.now);
        self.slow.completed(kind, range.lbn, range.count as u32, outcome, self.now);
    }

    /// A write in flight ends, alone or with what it was merged with.
    fn land(&mut self) {
        let flights = self.flights.clone();
        let Some(flight) = self.some(&flights) else { return };
        let mut whole = flight;
        if self.n(2) == 0 {
            whole.count = (whole.count + self.n(30)).min(DISK - whole.lbn);
        }
        if flights.iter().any(|f| *f != flight && f.overlaps(&whole)) {
            whole = flight;
        }
        self.flights.retain(|f| *f != flight);
        let outcome = self.outcome(&whole);
        self.complete(Kind::Write, whole, outcome);
    }

    /// Requests the data of a wanted write, or of any range.
    fn ask(&mut self) {
        let around = self.a_range(120);
        let mut out = Wanted::new();
        out.reset(around.lbn, around.count as u32);
        self.real.wanted(Who::Anyone, Kind::Write, &mut out);
        let runs: Vec<(u64, u64)> = out.runs(0, DISK).collect();
        let range = match self.some(&runs) {
            Some((lo, hi)) if self.n(9) > 0 => TaskRange { lbn: lo, count: hi - lo },
            _ => self.a_range(30),
        };
        let asked = self.real.ask(range);
        assert_eq!(asked, self.slow.ask(range), "ask {range:?}");
        if asked {
            self.asks.push(range);
            self.saw("asked");
        }
    }

    fn answer(&mut self) {
        let gets = self.gets.clone();
        // Mostly the last requests; occasionally one that is no longer pending.
        let recent = &gets[gets.len().saturating_sub(if self.n(7) == 0 { 100 } else { 4 })..];
        let Some((task, range)) = self.some(recent) else { return };
        let yes = self.n(5) > 0;
        assert_eq!(self.real.answer(task, range, yes), self.slow.answer(task, range, yes));
        self.gets.retain(|g| *g != (task, range));
    }

    fn settle(&mut self) {
        let asks = self.asks.clone();
        let Some(range) = self.some(&asks) else { return };
        let granted = self.real.granted(range);
        assert_eq!(granted, self.slow.granted(range), "granted {range:?}");
        self.asks.retain(|a| *a != range);
        // Conflicting writes are not sent while one is in flight: a void ask may overlap what came
        // after it.
        if granted && self.n(9) > 0 && !self.flights.iter().any(|f| f.overlaps(&range)) {
            self.real.picked(range);
            self.slow.picked(range);
            self.flights.push(range);
            self.saw("picked");
        } else {
            self.release(Kind::Write, range);
        }
    }

    fn release(&mut self, kind: Kind, range: TaskRange) {
        self.real.release(kind, range, self.now);
        self.slow.release(kind, range, self.now);
        self.saw("released");
    }

    fn next_promoted(&mut self) {
        let most = self.n(40);
        let next = self.real.next_promoted(most);
        assert_eq!(next, self.slow.next_promoted(most), "next promoted, {most} sectors");
        let Some((_, kind, range)) = next else { return };
        self.saw("promoted piece");
        match (kind, self.n(3)) {
            (_, 0) => self.release(kind, range),
            (Kind::Write, _) => {
                let asked = self.real.ask(range);
                assert_eq!(asked, self.slow.ask(range), "ask for the promoted {range:?}");
                if asked { self.asks.push(range) } else { self.release(kind, range) }
            }
            // Some stay in the queue for ever: they are not handed out again.
            (_, 1) => {}
            _ if self.flights.iter().any(|f| f.overlaps(&range)) => {}
            _ => {
                let outcome = self.outcome(&range);
                self.complete(kind, range, outcome);
            }
        }
    }

    fn drain(&mut self) {
        loop {
            let event = self.real.next_event();
            assert_eq!(event, self.slow.next_event());
            let Some(event) = event else { return };
            let task = event.task();
            assert!(!self.aborted.contains(&task), "{event:?} after the abort");
            assert!(!self.done.contains(&task), "{event:?} after the end");
            let (range, name) = match event {
                TaskEvent::Done { .. } => {
                    let all: u64 = self.specs[&task].ranges.iter().map(|r| r.count).sum();
                    assert_eq!(self.ended[&task].len() as u64, all, "done means that everything has ended");
                    self.done.insert(task);
                    self.saw("done");
                    continue;
                }
                TaskEvent::GetBuffer { range, .. } => {
                    self.gets.push((task, range));
                    continue;
                }
                TaskEvent::Delivered { range, .. } => (range, "delivered"),
                TaskEvent::Written { range, .. } => (range, "written"),
                TaskEvent::Superseded { range, .. } => (range, "superseded"),
                TaskEvent::Failed { range, .. } => (range, "failed"),
            };
            self.saw(name);
            let ended = self.ended.get_mut(&task).expect("a task that was registered");
            (range.lbn..range.end()).for_each(|l| assert!(ended.insert(l), "sector {l} of {task:?} came twice"));
        }
    }

    fn call(&mut self) {
        let later = Dur::from_us(self.n(3_000));
        self.now += later;
        let mut aborting = false;
        match self.n(99) {
            0..=3 => {
                let priority = 1 + self.n(9) as u32;
                match self.real.open(priority) {
                    Ok(id) => {
                        self.slow.open(id, priority);
                        self.sessions.push(id);
                    }
                    Err(e) => assert_eq!(e, TaskError::Full { what: "sessions", limit: 6 }),
                }
            }
            4 => {
                if let Some(id) = self.a_session() {
                    self.aborted.extend(self.slow.tasks.iter().filter(|(_, t)| t.session == id).map(|(t, _)| *t));
                    self.real.close(id).expect("it is open");
                    self.slow.close(id);
                    self.sessions.retain(|s| *s != id);
                    assert_eq!(self.real.close(id), Err(TaskError::NoSession(id)));
                }
            }
            5..=19 => self.register(),
            20..=22 => {
                if let Some(id) = self.a_task() {
                    aborting = true;
                    self.real.abort(id).expect("it exists");
                    self.slow.abort(id);
                    self.aborted.insert(id);
                    assert_eq!(self.real.abort(id), Err(TaskError::NoTask(id)));
                    self.saw("aborted");
                }
            }
            23..=25 => {
                if let Some(id) = self.a_session() {
                    self.real.suspend(id).expect("it is open");
                    self.slow.suspend(id);
                }
            }
            26..=30 => {
                if let Some(id) = self.a_session() {
                    self.real.resume(id).expect("it is open");
                    self.slow.sessions.get_mut(&id).expect("open").suspended = false;
                }
            }
            31 => {
                if let Some(id) = self.a_session() {
                    let priority = 1 + self.n(99) as u32;
                    self.real.set_priority(id, priority).expect("it is open");
                    self.slow.sessions.get_mut(&id).expect("open").priority = priority;
                }
            }
            32..=33 => {
                if let Some(id) = self.a_session() {
                    let window = [0, 1, 17, 200, u64::MAX, u64::MAX][self.n(5) as usize];
                    self.real.set_window(id, window).expect("it is open");
                    self.slow.sessions.get_mut(&id).expect("open").window = window;
                }
            }
            34..=37 => {
                if let Some(id) = self.a_session() {
                    let sectors = self.n(150);
                    self.real.taken(id, sectors).expect("it is open");
                    let s = self.slow.sessions.get_mut(&id).expect("open");
                    s.untaken = s.untaken.saturating_sub(sectors);
                }
            }
            38..=40 => {
                if let Some(id) = self.a_task() {
                    self.real.promote(id).expect("it exists");
                    self.slow.promote(id);
                }
            }
            41..=50 => self.next_promoted(),
            51..=62 => self.ask(),
            63..=72 => self.answer(),
            73..=80 => self.settle(),
            81..=84 => self.land(),
            85..=86 => self.command(),
            87..=92 => {
                let mut r = self.a_range(60);
                // Often over a part of what is in flight, which must not be superseded.
                let flights = self.flights.clone();
                if let (Some(f), true) = (self.some(&flights), self.n(2) > 0) {
                    r = TaskRange { lbn: f.lbn + self.n(f.count - 1), count: 1 + self.n(5) };
                }
                self.real.foreground_write(r.lbn, r.count);
                self.slow.foreground_write(r.lbn, r.count);
            }
            _ => self.command(),
        }
        let lost = std::mem::take(&mut self.slow.lost);
        let mut told = BTreeSet::new();
        for c in self.real.take_changes() {
            told.extend((c.range.lbn..c.range.end()).map(|l| (c.session, c.kind == Kind::Write, l)));
        }
        assert!(lost.is_subset(&told), "the scheduling layer did not hear of {:?}", lost.difference(&told));
        assert!(aborting || told == lost, "the scheduling layer was told too much");
    }

    fn compare(&mut self) {
        self.real.advance(self.now);
        self.slow.advance(self.now);
        assert!(self.real.memory().held() <= self.limits.bytes);
        assert_eq!(self.real.has_room(), self.slow.has_room());
        let infos: Vec<_> = self.real.sessions().collect();
        assert_eq!(infos.len(), self.slow.sessions.len());
        for (info, (id, s)) in infos.iter().zip(&self.slow.sessions) {
            assert_eq!(info.id, *id);
            assert_eq!((info.priority, info.suspended), (s.priority, s.suspended));
            assert_eq!((info.untaken_sectors, info.delivered_sectors), (s.untaken, s.delivered));
            assert_eq!(info.left_read_sectors, self.slow.left(*id, Kind::Read));
            assert_eq!(info.left_write_sectors, self.slow.left(*id, Kind::Write));
            let tasks: Vec<TaskId> = self.real.tasks(*id).expect("it is open").collect();
            let of = self.slow.tasks.iter().filter(|(_, t)| t.session == *id);
            assert_eq!(tasks, of.map(|(t, _)| *t).collect::<Vec<_>>());
            assert_eq!(info.tasks as usize, tasks.len());
            for t in tasks {
                let (info, slow) = (self.real.task(t).expect("it exists"), &self.slow.tasks[&t]);
                assert_eq!((info.left_sectors, info.total_sectors), (slow.wanted.len() as u64, slow.total));
                assert_eq!((info.promoted, info.kind, info.session), (slow.promoted, slow.kind, slow.session));
            }
        }
        let longest = if self.n(5) == 0 { DISK } else { 90 };
        let around = self.a_range(longest);
        let who = match self.a_session() {
            Some(id) if self.n(1) == 0 => Who::Session(id),
            _ => Who::Anyone,
        };
        for kind in [Kind::Read, Kind::Write] {
            let [mut a, mut b] = [Wanted::new(), Wanted::new()];
            a.reset(around.lbn, around.count as u32);
            b.reset(around.lbn, around.count as u32);
            self.real.wanted(who, kind, &mut a);
            self.slow.wanted(who, kind, &mut b);
            assert_eq!(a, b, "{who:?} {kind:?} in {around:?}");
            assert_eq!(self.real.any(who, kind), self.slow.any(who, kind));
        }
        let random = self.rng.next_u64();
        assert_eq!(self.real.draw(random), self.slow.draw(random));
    }

    fn run(&mut self, calls: usize) {
        for _ in 0..calls {
            self.call();
            if self.drain_always || self.n(7) == 0 {
                self.drain();
            }
            self.compare();
        }
        self.drain();
        // All commands end, all sessions close, and nothing remains.
        for f in std::mem::take(&mut self.flights) {
            self.complete(Kind::Write, f, Outcome::Ok);
        }
        self.drain();
        for id in self.sessions.clone() {
            self.real.close(id).expect("it is open");
        }
        assert_eq!(self.real.memory(), TaskManager::new(self.limits, DISK).memory(), "something leaks");
        assert_eq!(self.real.next_event(), None);
    }
}

#[test]
fn every_call_does_what_one_flag_a_sector_does() {
    let mut seen: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in 0..6 {
        println!("seed {seed}");
        let mut pair = Pair::new(seed, 1 << 12, seed % 2 == 0);
        pair.run(8_000);
        pair.seen.into_iter().for_each(|(what, n)| *seen.entry(what).or_default() += n);
    }
    println!("{seen:?}");
    let all = [
        "registered",
        "refused",
        "asked",
        "picked",
        "released",
        "promoted piece",
        "aborted",
        "done",
        "delivered",
        "written",
        "superseded",
        "failed",
    ];
    for what in all {
        assert!(seen.get(what).is_some_and(|&n| n >= 100), "{what} was hardly ever seen: {seen:?}");
    }
}

#[test]
fn a_queue_of_events_that_is_full_puts_off_what_can_be_put_off() {
    for seed in 100..104 {
        println!("seed {seed}");
        Pair::new(seed, 1 + seed as usize % 3 * 2, false).run(8_000);
    }
}
