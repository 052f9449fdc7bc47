//! The core against a scripted drive: the contract holds for any input in any order.

use std::collections::BTreeMap;

use headtime_disk::profile::{HeadOrder, Layout};
use headtime_disk::{Command, Dur, Kind, Model, Outcome, Time};
use headtime_sched::{Action, Commitment, Config, Core, Finished, Order, Refused, Request};
use headtime_testkit::profiles::{plain_profile, rng, small_geometry};
use headtime_testkit::scripted::{Answer, Scripted};
use proptest::prelude::*;

fn model(seed: u64) -> Model {
    let mut rng = rng(seed);
    let geometry = small_geometry(Layout::HeadFirst(HeadOrder::Forward), 3, &mut rng);
    Model::new(&plain_profile(geometry, &mut rng)).expect("a made-up drive that works")
}

fn core(order: Order, max_outstanding: u32, capacity: usize) -> Core {
    Core::new(Config::new(order).with_outstanding(max_outstanding).with_capacity(capacity), model(1))
}

fn request(id: u64, kind: Kind, lbn: u64, count: u32) -> Request {
    Request { id, kind, lbn, count, fua: false, sync: true, owner: 0 }
}

/// A driver's observations, checked as they occur.
struct Driver {
    core: Core,
    drive: Scripted,
    max_outstanding: usize,
    now: Time,
    /// Unfinished requests in the order of arrival.
    unfinished: Vec<Request>,
    /// Requests by command at the drive.
    at_drive: BTreeMap<u64, Vec<Request>>,
    /// Requests of merged commands that failed: they are sent again, alone, before any other.
    again: Vec<u64>,
    sent: Vec<u64>,
    finished: Vec<Finished>,
    trace: Vec<Action>,
}

fn conflict(a: &Request, b: &Request) -> bool {
    let media = a.kind != Kind::Flush && b.kind != Kind::Flush;
    let write = a.kind == Kind::Write || b.kind == Kind::Write;
    media && write && a.lbn < b.lbn + b.count as u64 && b.lbn < a.lbn + a.count as u64
}

impl Driver {
    fn new(core: Core, drive: Scripted, max_outstanding: usize) -> Driver {
        Driver {
            core,
            drive,
            max_outstanding,
            now: Time::ZERO,
            unfinished: vec![],
            at_drive: BTreeMap::new(),
            again: vec![],
            sent: vec![],
            finished: vec![],
            trace: vec![],
        }
    }

    fn submit(&mut self, r: Request) -> Result<(), Refused> {
        self.core.submit(r, self.now)?;
        self.unfinished.push(r);
        self.drain();
        Ok(())
    }

    fn drain(&mut self) {
        while let Some(action) = self.core.poll() {
            self.trace.push(action);
            match action {
                Action::Issue(c) => self.issue(c),
                Action::Finish(f) => self.finish(f),
                other => panic!("{other:?} without FILL or streams"),
            }
        }
        assert_eq!(self.core.poll(), None, "drained means drained");
        assert_eq!(self.core.outstanding(), self.at_drive.len());
        let at_drive: usize = self.at_drive.values().map(Vec::len).sum();
        assert_eq!(self.core.waiting() + at_drive + self.again.len(), self.unfinished.len());
        // No eligible request is held back, except a second command until the instant that the core
        // requests.
        let late = self.max_outstanding == 2 && self.at_drive.len() == 1;
        let waits = late && self.core.next_wakeup().is_some_and(|at| at > self.now);
        if self.at_drive.len() < self.max_outstanding && !waits {
            for r in self.waiting() {
                assert!(self.must_wait_for(&r).is_some(), "{r:?} could have been sent");
            }
        }
    }

    fn waiting(&self) -> Vec<Request> {
        let at_drive: Vec<u64> = self.at_drive.values().flatten().map(|r| r.id).collect();
        self.unfinished.iter().copied().filter(|r| !at_drive.contains(&r.id)).collect()
    }

    /// Returns an unfinished request that arrived before `r` and must be done before `r` is sent.
    fn must_wait_for(&self, r: &Request) -> Option<Request> {
        let older = self.unfinished.iter().take_while(|o| o.id != r.id);
        older.copied().find(|o| conflict(o, r) || (r.kind == Kind::Flush && o.kind == Kind::Write))
    }

    fn issue(&mut self, c: Command) {
        let waiting = self.waiting();
        let ids = self.core.request_of(c.id).into_iter().chain(self.core.requests_behind(c.id));
        let parts: Vec<Request> = ids.map(|id| *waiting.iter().find(|r| r.id == id).expect("it waits")).collect();
        let mut end = c.lbn;
        for r in &parts {
            assert_eq!((r.kind, r.fua), (c.kind, c.fua));
            assert!(r.kind == Kind::Flush || r.lbn == end, "{c:?} is not {parts:?}");
            end += u64::from(r.count);
            assert_eq!(self.must_wait_for(r), None, "{r:?} went too early");
        }
        assert!(c.kind == Kind::Flush || end == c.lbn + u64::from(c.count), "{c:?} is not {parts:?}");
        assert!(parts.len() == 1 || parts.iter().all(|r| r.kind == Kind::Write && !r.fua));
        if !self.again.is_empty() {
            assert_eq!(parts.len(), 1, "{parts:?} before {:?}", self.again);
            assert_eq!(parts[0].id, self.again.remove(0));
        }
        assert!(self.at_drive.len() < self.max_outstanding);
        self.sent.extend(parts.iter().map(|r| r.id));
        assert!(self.at_drive.insert(c.id, parts).is_none(), "two commands {}", c.id);
        self.drive.submit(c, self.now);
    }

    fn finish(&mut self, f: Finished) {
        let at = self.unfinished.iter().position(|r| r.id == f.request);
        self.unfinished.remove(at.unwrap_or_else(|| panic!("{f:?} finished twice or never began")));
        assert_eq!(f.done, self.now);
        assert!(f.submitted <= f.dispatched && f.dispatched <= f.done);
        self.finished.push(f);
    }

    /// Advances to the next completion.
    fn step(&mut self) -> bool {
        let at = loop {
            let Some(at) = self.drive.next_event() else { return false };
            let Some(wakeup) = self.core.next_wakeup().filter(|&wakeup| wakeup < at) else { break at };
            self.now = wakeup;
            self.core.tick(wakeup);
            self.drain();
        };
        self.now = at;
        let done = self.drive.advance(at).expect("it is due");
        let requests = self.at_drive.remove(&done.id).expect("it was sent");
        let again = requests.len() > 1 && matches!(done.outcome, Outcome::MediaError { .. });
        if again {
            self.again.extend(requests.iter().map(|r| r.id));
        }
        self.core.complete(done.id, done.outcome, at);
        self.drain();
        if again {
            return true;
        }
        let ended = self.finished.iter().rev().take(requests.len()).rev().map(|f| (f.request, f.outcome));
        assert!(ended.eq(requests.iter().map(|r| (r.id, done.outcome))), "a completion finishes its requests");
        true
    }
}

#[derive(Clone, Debug)]
enum Step {
    Submit(Kind, u64, u32, bool),
    Complete,
    Tick(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![4 => Just(Kind::Read), 4 => Just(Kind::Write), 1 => Just(Kind::Flush)];
    // A small range of LBNs with an occasional long request, so that overlaps are common.
    let count = prop_oneof![6 => 1u32..10, 1 => 10u32..600];
    let submit = (kind, 0u64..200, count, any::<bool>()).prop_map(|(k, l, c, f)| Step::Submit(k, l, c, f));
    let step = prop_oneof![6 => submit, 5 => Just(Step::Complete), 1 => (0u64..5_000_000).prop_map(Step::Tick)];
    prop::collection::vec(step, 1..120)
}

fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let outcome = prop_oneof![
        20 => Just(Outcome::Ok),
        1 => Just(Outcome::MediaError { lbn: 5 }),
        1 => Just(Outcome::Dead),
    ];
    let answer = (0u64..20_000_000, outcome).prop_map(|(ns, outcome)| Answer { after: Dur(ns), outcome });
    prop::collection::vec(answer, 0..120)
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Fcfs),
        Just(Order::Clook),
        Just(Order::Sstf),
        Just(Order::Sptf),
        Just(Order::SptfAhead),
        (0u32..200).prop_map(Order::SptfSw),
        (0u64..50).prop_map(|ms| Order::SatfUf(Dur::from_ms(ms))),
    ]
}

const CAPACITY: usize = 20;

fn run(order: Order, max_outstanding: u32, steps: &[Step], answers: &[Answer]) -> Vec<Action> {
    let core = core(order, max_outstanding, CAPACITY);
    let mut d = Driver::new(core, Scripted::new(answers.iter().copied()), max_outstanding as usize);
    let mut accepted = 0;
    for (id, step) in steps.iter().enumerate() {
        match *step {
            Step::Submit(kind, lbn, count, fua) => {
                let r = Request { id: id as u64, kind, lbn, count, fua, sync: true, owner: 0 };
                let full = d.core.waiting() == CAPACITY;
                match d.submit(r) {
                    Ok(()) => accepted += 1,
                    Err(e) => assert_eq!(e, Refused::Full { capacity: CAPACITY }),
                }
                assert_eq!(full, d.unfinished.last() != Some(&r) && d.finished.last().map(|f| f.request) != Some(r.id));
            }
            Step::Complete => _ = d.step(),
            Step::Tick(ns) => {
                let upto = d.now + Dur(ns);
                while d.drive.next_event().is_some_and(|t| t <= upto) {
                    d.step();
                }
                d.now = upto;
                d.core.tick(upto);
                d.drain();
            }
        }
    }
    while d.step() {}
    assert!(d.unfinished.is_empty(), "lost: {:?}", d.unfinished);
    assert_eq!(d.finished.len(), accepted);
    let mut ids: Vec<u64> = d.finished.iter().map(|f| f.request).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), accepted, "a request finished twice");
    d.trace
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_finishes_once_and_conflicts_keep_their_order(
        order in order(), depth in 1u32..5, steps in steps(), answers in answers()
    ) {
        let first = run(order, depth, &steps, &answers);
        let second = run(order, depth, &steps, &answers);
        prop_assert_eq!(first, second, "the same tellings gave other actions");
    }
}

#[test]
fn fcfs_sends_in_the_order_of_arrival() {
    let mut d = Driver::new(core(Order::Fcfs, 2, 100), Scripted::new([]), 2);
    for id in 0..50 {
        d.submit(request(id, Kind::Read, (id * 37) % 500, 4)).unwrap();
    }
    while d.step() {}
    assert_eq!(d.sent, (0..50).collect::<Vec<_>>());
}

#[test]
fn at_most_two_commands_are_at_the_drive_and_with_early_commitment_the_second_goes_at_once() {
    let core = core(Order::Sptf, 2, 100).committing(Commitment::Early);
    let mut d = Driver::new(core, Scripted::new([]), 2);
    for (id, at_drive) in [(0, 1), (1, 2), (2, 2), (3, 2)] {
        d.submit(request(id, Kind::Read, id * 100, 4)).unwrap();
        assert_eq!(d.at_drive.len(), at_drive);
    }
    assert!(d.step());
    assert_eq!((d.at_drive.len(), d.core.waiting()), (2, 1));
}

#[test]
fn a_flush_goes_after_the_writes_before_it_and_delays_no_other_request() {
    let mut d = Driver::new(core(Order::Clook, 1, 100), Scripted::new([]), 1);
    d.submit(request(0, Kind::Write, 500, 4)).unwrap();
    d.submit(request(1, Kind::Write, 400, 4)).unwrap();
    d.submit(request(2, Kind::Flush, 0, 0)).unwrap();
    d.submit(request(3, Kind::Write, 100, 4)).unwrap();
    d.submit(request(4, Kind::Read, 600, 4)).unwrap();
    while d.step() {}
    // C-LOOK from 504: 600, wrap, 100, 400; then the flush is eligible.
    assert_eq!(d.sent, [0, 4, 3, 1, 2]);
}

#[test]
fn what_does_not_fit_on_the_drive_is_refused_and_leaves_no_trace() {
    let mut d = Driver::new(core(Order::Sptf, 2, 1), Scripted::new([]), 2);
    let capacity = d.core.model().geometry.capacity();
    for (lbn, count) in [(capacity, 1), (capacity - 3, 4), (0, 0), (u64::MAX, 2)] {
        let refused = Refused::OutOfRange { lbn, count, capacity };
        assert_eq!(d.submit(request(0, Kind::Read, lbn, count)), Err(refused));
    }
    d.submit(request(1, Kind::Read, capacity - 4, 4)).unwrap();
    d.submit(request(2, Kind::Read, 0, 4)).unwrap();
    d.submit(request(3, Kind::Read, 8, 4)).unwrap();
    assert_eq!(d.submit(request(4, Kind::Read, 16, 4)), Err(Refused::Full { capacity: 1 }));
    while d.step() {}
    assert_eq!(d.finished.len(), 3);
}

#[test]
#[should_panic(expected = "is not at the drive")]
fn a_completion_of_nothing_is_a_bug_in_the_driver() {
    core(Order::Fcfs, 2, 10).complete(77, Outcome::Ok, Time::ZERO);
}

#[test]
#[should_panic(expected = "time went back")]
fn time_never_goes_back() {
    let mut c = core(Order::Fcfs, 2, 10);
    c.tick(Time(10));
    assert_eq!(c.poll(), None);
    c.tick(Time(9));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "poll() must be called until None")]
fn telling_an_undrained_core_is_a_bug_in_the_driver() {
    let mut c = core(Order::Fcfs, 2, 10);
    c.submit(request(0, Kind::Read, 0, 4), Time::ZERO).unwrap();
    c.tick(Time(1));
}
