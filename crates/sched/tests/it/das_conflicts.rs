//! Conflicts of one stream's requests cost no other stream anything: requests that overlap older
//! ones, and a pool full of best effort. The drive takes its worst case for every command, and
//! serves in the order of arrival.

use std::collections::BTreeMap;

use headtime_disk::{Dur, Kind, Model, Outcome, Time, profile};
use headtime_sched::streams::{
    Admitted, Disk, Distribution, Exhausted, GuaranteeConfig, Load, OpenStreamError, OpenedStream, Quality, Service,
    Stream, WorstCaseTable,
};
use headtime_sched::{Action, Config, Core, Finished, Order, Policy, Refused, Request};
use headtime_testkit::profiles::{between, rng};

const W: Dur = Dur::from_ms(30);
const SECTORS: u32 = 128;
/// An owner without a stream.
const OTHER: u32 = 9;

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

struct Rig {
    core: Core,
    now: Time,
    /// Commands and when each ends.
    at_drive: Vec<(u64, Time)>,
    free: Time,
    owners: BTreeMap<u64, u32>,
    finished: Vec<Finished>,
    given_up: Vec<u64>,
}

impl Rig {
    fn new(capacity: usize) -> Rig {
        Rig::with(capacity, &Policy::None, Exhausted::AsBestEffort)
    }

    fn with(capacity: usize, policy: &Policy, exhausted: Exhausted) -> Rig {
        let profile = profile::builtin("ultrastar36z15").expect("a built-in drive");
        let model = Model::new(&profile).expect("a drive that works");
        let times = Distribution::from_samples(&[Dur::from_ms(8)], Dur::from_ms(1), W).expect("a sample");
        let service = Service::new(SECTORS, W, times);
        let setup = GuaranteeConfig {
            disk: Disk::new(vec![service], 2).expect("a drive"),
            worsts: WorstCaseTable::flat(W, SECTORS),
            exhausted,
            compensates: true,
        };
        let config = Config::new(Order::Sptf).with_capacity(capacity);
        let core = Core::new(config, model).admitting(policy).guaranteeing(&setup);
        let (at_drive, owners, finished, given_up) = (vec![], BTreeMap::new(), vec![], vec![]);
        Rig { core, now: Time::ZERO, at_drive, free: Time::ZERO, owners, finished, given_up }
    }

    fn stream(&mut self, owner: u32, requests: u32, period: u64) {
        self.open(owner, requests, period, 0).expect("room");
    }

    /// Opens a mandatory stream each of whose requests may have to wait for this number of older
    /// ones.
    fn open(&mut self, owner: u32, requests: u32, period: u64, older: u32) -> Result<OpenedStream, OpenStreamError> {
        let stream = Stream::new(requests, Dur::from_ms(period), Quality::MANDATORY, SECTORS).expect("a stream");
        let opened = self.core.open_stream(owner, stream.blocked_by(older).expect("a stream"), self.now);
        self.drain();
        opened
    }

    /// Submits a request without polling: all arrivals of an instant are submitted first.
    fn tell(&mut self, owner: u32, kind: Kind, lbn: u64) -> Result<u64, Refused> {
        let id = self.owners.len() as u64;
        let request = Request { id, kind, lbn, count: SECTORS, fua: false, sync: true, owner };
        self.core.submit(request, self.now)?;
        self.owners.insert(id, owner);
        Ok(id)
    }

    fn drain(&mut self) {
        while let Some(action) = self.core.poll() {
            match action {
                Action::Issue(command) => {
                    self.free = self.free.max(self.now) + W;
                    self.at_drive.push((command.id, self.free));
                }
                Action::Finish(f) => self.finished.push(f),
                Action::Expired(request) => self.given_up.push(request),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Advances until just before the decisions at `until`.
    fn run(&mut self, until: Time) {
        self.drain();
        loop {
            let done = self.at_drive.first().map(|d| d.1);
            let next = [done, self.core.next_wakeup()].into_iter().flatten().min();
            let Some(next) = next.filter(|t| *t < until) else { break };
            self.now = next;
            if done == Some(next) {
                let (command, _) = self.at_drive.remove(0);
                self.core.complete(command, Outcome::Ok, next);
            } else {
                self.core.tick(next);
            }
            self.drain();
        }
        self.now = until;
        while self.at_drive.first().is_some_and(|d| d.1 <= until) {
            let (command, _) = self.at_drive.remove(0);
            self.core.complete(command, Outcome::Ok, until);
        }
    }

    /// Returns the requests that were late, with their owners.
    fn late(&self) -> Vec<(u64, u32)> {
        let late = self.finished.iter().filter(|f| f.due.is_some_and(|due| f.done > due));
        late.map(|f| (f.request, self.owners[&f.request])).collect()
    }
}

#[test]
fn a_request_that_waited_for_an_older_one_takes_nothing_from_another_stream() {
    let mut rig = Rig::new(4096);
    // 480 of 500 ms.
    rig.stream(1, 8, 500);
    rig.stream(2, 8, 500);
    rig.run(ms(500));
    // Another owner's write where a request of the first stream reads.
    rig.tell(OTHER, Kind::Write, 10_000).expect("room");
    for period in 1..7 {
        for i in 0..8u64 {
            let lbn = if period == 1 && i == 0 { 10_000 } else { 1_000_000 + i * 1_000 };
            rig.tell(1, Kind::Read, lbn).expect("room");
            rig.tell(2, Kind::Read, 2_000_000 + i * 1_000).expect("room");
        }
        rig.run(ms(500 * (period + 1)));
    }
    assert!(rig.finished.len() >= 80, "{} are done", rig.finished.len());
    // One of the first stream's requests, that one or another: ORDER chooses which of them is
    // charged to the other.
    let late = rig.late();
    assert!(late.len() <= 1 && late.iter().all(|l| l.1 == 1), "late: {late:?}");
}

#[test]
fn the_disk_does_not_stand_still_because_a_request_of_a_short_period_cannot_go() {
    let mut rig = Rig::new(4096);
    rig.stream(1, 1, 100);
    rig.stream(2, 20, 1_000);
    rig.run(ms(1_000));
    rig.tell(OTHER, Kind::Write, 10_000).expect("room");
    for period in 10..30 {
        rig.tell(1, Kind::Read, 10_000).expect("room");
        for i in (0..20u64).filter(|_| period % 10 == 0) {
            rig.tell(2, Kind::Read, 2_000_000 + i * 1_000).expect("room");
        }
        rig.run(ms(100 * (period + 1)));
    }
    assert!(rig.late().iter().all(|l| l.1 == 1), "late: {:?}", rig.late());
    // The write is dispatched when there is time for it.
    let done = |owner| rig.finished.iter().filter(|f| rig.owners[&f.request] == owner).count();
    assert!(done(OTHER) == 1 && done(1) >= 10 && done(2) == 40, "{} {} {}", done(OTHER), done(1), done(2));
}

const POLICIES: [&str; 4] = ["none", "cfq", "bfq", "bfq+"];

fn policy(name: &str) -> Policy {
    Policy::named(name).expect("a policy")
}

/// In the order of arrival, and by turns, the write would be one of the last of thirty to be
/// dispatched, 800 ms from now.
#[test]
fn what_a_mandatory_request_waits_for_goes_before_others_that_are_older() {
    for name in POLICIES {
        let mut rig = Rig::with(4096, &policy(name), Exhausted::AsBestEffort);
        rig.stream(1, 3, 500);
        rig.run(ms(500));
        for i in 0..29 {
            rig.tell(OTHER, Kind::Write, 1_000_000 + i * 1_000).expect("room");
        }
        let write = rig.tell(OTHER + 1, Kind::Write, 10_000).expect("room");
        let read = rig.tell(1, Kind::Read, 10_000).expect("room");
        rig.run(ms(2_000));
        assert_eq!(rig.finished.len(), 31, "{name}");
        assert!(rig.late().is_empty(), "{name}: late: {:?}", rig.late());
        let at = |id| rig.finished.iter().position(|f| f.request == id).expect("it is done");
        assert!(at(write) < at(read) && at(read) < 20, "{name}: the read is done as the {}th", at(read));
    }
}

/// Four writers, and a stream that reads what one of them has just submitted for writing. Each of
/// its requests waits for one write, so with 3 * 2 * 30 ms in 500 ms nothing can be late,
/// regardless of how many writes precede that one; and the writers' turns continue whatever was
/// taken out of them.
#[test]
fn no_mandatory_request_is_late_by_writes_of_its_region_under_any_policy() {
    for (name, seed) in POLICIES.into_iter().flat_map(|name| (0..4).map(move |seed| (name, seed))) {
        let mut rig = Rig::with(4096, &policy(name), Exhausted::AsBestEffort);
        let mut rng = rng(seed);
        rig.stream(1, 3, 500);
        rig.run(ms(500));
        let mut places = (0..).map(|i| 10_000 + 1_000 * (i % 500));
        for period in 1..60u64 {
            for part in 0..3 {
                // Sometimes all at once, sometimes one alone, so that the active application has no
                // request at times.
                let written: Vec<u64> = places.by_ref().take(between(&mut rng, 1, 7) as usize).collect();
                for &lbn in &written {
                    rig.tell(OTHER + between(&mut rng, 0, 3) as u32, Kind::Write, lbn).expect("room");
                }
                let read = written[between(&mut rng, 0, written.len() as u64 - 1) as usize];
                rig.tell(1, Kind::Read, read).expect("room");
                rig.run(ms(500 * period + 160 * (part + 1)));
            }
            rig.run(ms(500 * (period + 1)));
        }
        rig.run(ms(60_000));
        assert_eq!(rig.finished.len(), rig.owners.len(), "{name}");
        assert!(rig.late().is_empty(), "{name}, seed {seed}: late: {:?}", rig.late());
    }
}

/// Each of three reads is preceded by two writes to the same place, one after the other, and best
/// effort is always pending. All of the drive's time is reserved. Returns the requests that were
/// late, and whether the second stream was admitted with that number of requests.
fn behind_chains(name: &str, older: u32, others: u32) -> (usize, bool) {
    let mut rig = Rig::with(4096, &policy(name), Exhausted::AsBestEffort);
    rig.open(1, 3, 500, older).expect("room");
    let had = rig.open(2, others, 500, 0).is_ok();
    rig.run(ms(500));
    for period in 1..20u64 {
        for i in 0..3 {
            (0..2).for_each(|k| _ = rig.tell(OTHER + k, Kind::Write, 10_000 + 1_000 * i).expect("room"));
            rig.tell(OTHER + 2, Kind::Read, 5_000_000 + 1_000 * (3 * period + i)).expect("room");
            rig.tell(1, Kind::Read, 10_000 + 1_000 * i).expect("room");
        }
        (0..u64::from(if had { others } else { 0 })).for_each(|i| _ = rig.tell(2, Kind::Read, 2_000_000 + i * 1_000));
        rig.run(ms(500 * (period + 1)));
    }
    rig.run(ms(60_000));
    assert_eq!(rig.finished.len(), rig.owners.len(), "{name}");
    (rig.late().len(), had)
}

#[test]
fn what_admission_counts_of_older_requests_is_never_late_and_what_it_does_not_count_is() {
    for name in POLICIES {
        // 3 * (30 + 2 * 30) ms and 7 * 30: 480 of 500.
        assert_eq!(behind_chains(name, 2, 7), (0, true), "{name}");
        // 3 * (30 + 2 * 30) ms and 8 * 30 are too much.
        assert_eq!(behind_chains(name, 2, 8), (0, false), "{name}");
        // 3 * 30 and 13 * 30 are declared as 480, too.
        let (late, had) = behind_chains(name, 0, 13);
        assert!(late > 50 && had, "{name}: {late} late");
    }
}

/// The older request belongs to an optional stream and is not eligible by itself: all of the
/// drive's time is reserved, and each command takes its worst case.
#[test]
fn an_optional_streams_request_goes_if_a_mandatory_one_waits_for_it() {
    for (older, others) in [(1, 14u32), (0, 15)] {
        let mut rig = Rig::new(4096);
        rig.open(1, 1, 500, older).expect("room");
        rig.open(2, others, 500, 0).expect("room");
        let quality = Quality::from_ppm(500_000).expect("a quality");
        let optional = Stream::new(1, Dur::from_ms(500), quality, SECTORS).expect("a stream");
        rig.core.open_stream(3, optional, rig.now).expect("room");
        rig.run(ms(500));
        for period in 1..20 {
            rig.tell(3, Kind::Write, 10_000).expect("room");
            rig.tell(1, Kind::Read, 10_000).expect("room");
            (0..u64::from(others)).for_each(|i| _ = rig.tell(2, Kind::Read, 2_000_000 + i * 1_000).expect("room"));
            rig.run(ms(500 * (period + 1)));
        }
        rig.run(ms(60_000));
        assert_eq!(rig.finished.len(), rig.owners.len(), "{older}");
        let late = rig.late().iter().filter(|l| l.1 != 3).count();
        assert_eq!(late == 0, older == 1, "{older} counted, {late} late");
    }
}

/// Of requests that wait after a reservation with room for that, the oldest has its older one
/// dispatched first, although the other waits for the oldest of all.
#[test]
fn of_requests_that_wait_what_the_oldest_waits_for_goes_first() {
    let mut rig = Rig::new(4096);
    let quality = Quality::from_ppm(500_000).expect("a quality");
    let stream = Stream::new(2, Dur::from_secs(1), quality, SECTORS).and_then(|s| s.blocked_by(1)).expect("a stream");
    let admitted = Admitted { reservations: vec![Some(Dur::from_ms(200))], load: Load::default(), crossing: 0 };
    rig.core.begin_stream(1, stream, &admitted, rig.now).expect("an idle drive");
    rig.run(ms(1_000));
    for (owner, kind, lbn) in
        [(OTHER, Kind::Write, 20_000), (OTHER, Kind::Write, 10_000), (1, Kind::Read, 10_000), (1, Kind::Read, 20_000)]
    {
        rig.tell(owner, kind, lbn).expect("room");
    }
    rig.run(ms(2_000));
    let order: Vec<u64> = rig.finished.iter().map(|f| f.request).collect();
    assert_eq!((order[0], order.len()), (1, 4), "{order:?}");
}

/// Both wait for a write at the same time. Only the second's counts, and only for that there is
/// time.
#[test]
fn a_request_whose_wait_is_not_counted_keeps_no_other_from_what_it_waits_for() {
    let mut rig = Rig::new(4096);
    rig.open(1, 1, 500, 0).expect("room");
    rig.open(2, 1, 500, 1).expect("room");
    rig.open(3, 13, 500, 0).expect("room");
    rig.run(ms(500));
    for period in 1..20 {
        for owner in [1, 2] {
            rig.tell(OTHER, Kind::Write, 10_000 * u64::from(owner)).expect("room");
            rig.tell(owner, Kind::Read, 10_000 * u64::from(owner)).expect("room");
        }
        (0..13u64).for_each(|i| _ = rig.tell(3, Kind::Read, 2_000_000 + i * 1_000).expect("room"));
        rig.run(ms(500 * (period + 1)));
    }
    rig.run(ms(60_000));
    let late = rig.late();
    assert!(rig.finished.len() == rig.owners.len() && !late.is_empty(), "none had too little time");
    assert!(late.iter().all(|l| l.1 == 1), "{late:?}");
}

/// The first stream, which declares no older request for which its own may wait, will certainly be
/// late at 320 ms when the second's period begins at 300. If deferred then, the second would stay a
/// period behind.
#[test]
fn a_stream_that_will_be_late_puts_no_other_off() {
    let mut rig = Rig::new(4096);
    rig.open(1, 5, 320, 0).expect("room");
    let second = rig.open(2, 1, 300, 0).expect("room");
    assert_eq!(second.begins, ms(300));
    (0..20).for_each(|_| _ = rig.tell(OTHER, Kind::Write, 10_000).expect("room"));
    for lbn in 0..5 {
        rig.tell(1, Kind::Read, if lbn == 0 { 10_000 } else { 1_000_000 + 1_000 * lbn }).expect("room");
    }
    for period in 1..40 {
        rig.run(ms(300 * period));
        rig.tell(2, Kind::Read, 2_000_000).expect("room");
    }
    rig.run(ms(12_000));
    let late: Vec<u32> = rig.late().iter().map(|l| l.1).collect();
    assert_eq!((late, rig.core.standings()[1].tally.deferred), (vec![1], 0));
}

/// Also where it is served as a mandatory one, which has no reservation. The request for which it
/// waited is then ordered as other best effort, to which the drive's head is nearer.
#[test]
fn what_is_late_of_an_optional_stream_is_given_up() {
    for reservation in [None, Some(Dur::from_ms(90))] {
        let mut rig = Rig::with(4096, &Policy::None, Exhausted::Skip);
        let quality = Quality::from_ppm(500_000).expect("a quality");
        let stream = Stream::new(2, Dur::from_ms(300), quality, SECTORS).expect("a stream");
        let admitted = Admitted { reservations: vec![reservation], load: Load::default(), crossing: 0 };
        rig.core.begin_stream(1, stream, &admitted, rig.now).expect("60 of 300 ms");
        let writes: Vec<u64> = (0..40).map(|_| rig.tell(OTHER, Kind::Write, 10_000).expect("room")).collect();
        let waits = rig.tell(1, Kind::Read, 10_000).expect("room");
        let goes = rig.tell(1, Kind::Read, 1_000_000).expect("room");
        (0..40).for_each(|i| _ = rig.tell(OTHER, Kind::Read, 12_000 + 1_000 * i).expect("room"));
        let written = |rig: &Rig| rig.finished.iter().filter(|f| writes.contains(&f.request)).count();
        rig.run(ms(300));
        let before = written(&rig);
        rig.run(ms(600));
        assert!(written(&rig) <= before + 2, "{reservation:?}: {before} and {}", written(&rig));
        rig.run(ms(3_000));
        assert_eq!(rig.given_up, [waits], "{reservation:?}");
        assert!(rig.finished.iter().any(|f| f.request == goes) && rig.late().is_empty(), "{reservation:?}");
    }
}

/// Requests of a stream beyond its declaration are deferred to its next period, unless a mandatory
/// request waits for them.
#[test]
fn what_belongs_to_a_later_period_goes_if_a_mandatory_request_waits_for_it() {
    let mut rig = Rig::new(4096);
    rig.open(1, 1, 200, 1).expect("room");
    let quality = Quality::from_ppm(500_000).expect("a quality");
    let optional = Stream::new(1, Dur::from_ms(2_000), quality, SECTORS).expect("a stream");
    rig.core.open_stream(2, optional, rig.now).expect("room");
    rig.run(ms(2_000));
    let writes: Vec<u64> = (0..2).map(|_| rig.tell(2, Kind::Write, 10_000).expect("room")).collect();
    rig.tell(1, Kind::Read, 10_000).expect("room");
    rig.run(ms(2_200));
    assert_eq!((rig.finished.len(), rig.late()), (3, vec![]));
    let second = rig.finished.iter().find(|f| f.request == writes[1]).expect("it is done");
    assert_eq!(second.due, Some(ms(6_000)), "it was put off");
    // Its stream has its guarantee from then on.
    for period in 2..6 {
        rig.run(ms(2_000 * period));
        rig.tell(2, Kind::Write, 10_000).expect("room");
    }
    rig.run(ms(20_000));
    assert_eq!((rig.finished.len(), rig.late()), (7, vec![]));
}

#[test]
fn best_effort_leaves_room_for_what_streams_ask_for() {
    let mut rig = Rig::new(32);
    rig.stream(1, 5, 500);
    let others: Vec<_> = (0..40).map(|i| rig.tell(OTHER, Kind::Read, 5_000 + 1_000 * i)).collect();
    let (had, refused) = others.iter().partition::<Vec<_>, _>(|t| t.is_ok());
    assert_eq!((had.len(), refused[0]), (22, &Err(Refused::Full { capacity: 22 })));
    for i in 0..10 {
        rig.tell(1, Kind::Read, 1_000_000 + 1_000 * i).expect("room for two periods");
    }
    assert_eq!(rig.tell(1, Kind::Read, 5_000), Err(Refused::Full { capacity: 22 }));
}

/// Requests of a stream beyond its declaration, which are never served, do not take the places of
/// another.
#[test]
fn what_a_stream_asks_for_beyond_its_promise_leaves_room_for_other_streams() {
    let mut rig = Rig::new(32);
    rig.stream(1, 2, 500);
    let quality = Quality::from_ppm(500_000).expect("a quality");
    let optional = Stream::new(1, Dur::from_ms(500), quality, SECTORS).expect("a stream");
    rig.core.open_stream(2, optional, rig.now).expect("room");
    // Of 32 places 4 are the first stream's and 2 the second's, which may also use the unreserved
    // ones.
    let greedy: Vec<_> = (0..40).map(|i| rig.tell(2, Kind::Read, 5_000 + 1_000 * i)).collect();
    assert_eq!(greedy.iter().filter(|t| t.is_ok()).count(), 28);
    assert_eq!(greedy[28], Err(Refused::Full { capacity: 26 }));
    assert_eq!(rig.tell(OTHER, Kind::Read, 900_000), Err(Refused::Full { capacity: 26 }));
    for i in 0..4 {
        rig.tell(1, Kind::Read, 1_000_000 + 1_000 * i).expect("room for two periods");
    }
}

/// A stream that is served as a mandatory one makes room for one beside which it cannot be.
#[test]
fn a_stream_begins_where_another_is_served_as_a_mandatory_one_no_longer() {
    let mut rig = Rig::new(8);
    let stream = |requests, quality| {
        Stream::new(requests, Dur::from_ms(100), Quality::from_ppm(quality).expect("a quality"), SECTORS).expect("one")
    };
    let admitted = |reservations| Admitted { reservations, load: Load::default(), crossing: 0 };
    let reserved = |rig: &Rig| rig.core.standings().iter().map(|s| s.reservation).collect::<Vec<_>>();
    rig.core.begin_stream(0, stream(3, 500_000), &admitted(vec![None]), rig.now).expect("90 of 100 ms");
    assert_eq!(reserved(&rig), [None]);
    let r = Some(Dur::from_ms(10));
    rig.core.begin_stream(1, stream(1, 1_000_000), &admitted(vec![r, None]), rig.now).expect("30 of 100 ms");
    assert_eq!(reserved(&rig), [r, None]);
}
