//! Streams through the whole core, on a virtual drive: what was promised is had, beside best effort of any policy and a scan that fills
//! gaps, on a drive that is worse than usual and within its worst case.

use std::collections::{BTreeMap, BTreeSet};

use headtime_disk::command::{Command, Kind, Outcome};
use headtime_disk::drive::{Drive, DriveConfig, Fault};
use headtime_disk::model::Model;
use headtime_disk::profile::{self, Profile};
use headtime_disk::time::{Dur, Time};
use headtime_sched::admit::Policy;
use headtime_sched::admit::das::admission::{Disk, Service};
use headtime_sched::admit::das::distribution::Distribution;
use headtime_sched::admit::das::stream::{Quality, Stream};
use headtime_sched::admit::das::streams::{NotOpened, Overdue, Setup};
use headtime_sched::admit::das::subset::Exhausted;
use headtime_sched::admit::das::worst::WorstCase;
use headtime_sched::admit::das::worsts::Worsts;
use headtime_sched::core::{Config, Core, Order, Refused};
use headtime_sched::fill::Algorithm;
use headtime_sched::fill::subsystem::FillConfig;
use headtime_sched::request::{Action, Finished, Request};
use headtime_sched::tasks::{Event, Range, TaskSpec};
use headtime_testkit::profiles::{between, rng};
use rand_xoshiro::Xoshiro256PlusPlus;

const SECTORS: u32 = 128;
const BIN: Dur = Dur::from_us(100);
const PERIOD: Dur = Dur::from_ms(500);
/// Owners from here on are nobody's stream.
const OTHERS: u32 = 100;

fn ultrastar() -> Profile {
    profile::builtin("ultrastar36z15").expect("a built-in drive")
}

/// What is asked for at the beginning of each period.
#[derive(Clone, Copy)]
struct Streaming {
    owner: u32,
    stream: Stream,
    next: Time,
    /// How many more than it declared.
    more: u32,
    kind: Kind,
}

struct Rig {
    core: Core,
    drive: Drive,
    now: Time,
    rng: Xoshiro256PlusPlus,
    streaming: Vec<Streaming>,
    /// Best-effort requests that always wait.
    best_effort: u32,
    waiting_best_effort: u32,
    asked: BTreeMap<u64, u32>,
    finished: Vec<(u32, Finished)>,
    given_up: Vec<u64>,
    overdue: Vec<Overdue>,
    scanned: u64,
    commands: u64,
    id: u64,
}

struct Setting<'a> {
    /// The drive as it is believed to be.
    belief: &'a Profile,
    /// The drive as it is.
    truth: &'a Profile,
    policy: &'a str,
    order: Order,
    fill: bool,
    exhausted: Exhausted,
    /// X is this long for all but few.
    mean: Dur,
    seed: u64,
    faults: Vec<Fault>,
}

fn setting<'a>(belief: &'a Profile, truth: &'a Profile) -> Setting<'a> {
    Setting {
        belief,
        truth,
        policy: "none",
        order: Order::Sptf,
        fill: false,
        exhausted: Exhausted::AsBestEffort,
        mean: Dur::from_ms(7),
        seed: 1,
        faults: vec![],
    }
}

impl Rig {
    fn new(setting: Setting) -> Rig {
        let model = Model::new(setting.belief).expect("a drive that works");
        let worst = WorstCase::of(setting.belief, &model, SECTORS).expect("a worst case").total();
        let samples: Vec<Dur> = (0..100).map(|i| Dur(setting.mean.0 / 2 + setting.mean.0 * i / 100)).collect();
        let times = Distribution::from_samples(&samples, BIN, worst).expect("samples");
        let setup = Setup {
            disk: Disk::new(vec![Service { sectors: SECTORS, worst, times }], 2).expect("a drive"),
            worsts: Worsts::of(setting.belief, &model, 256).expect("a worst case"),
            exhausted: setting.exhausted,
        };
        let fill = setting.fill.then(|| FillConfig::new(Algorithm::AngleEpFrag));
        let config = Config { order: setting.order, max_outstanding: 2, capacity: 4096, fill };
        let policy = Policy::named(setting.policy).expect("a policy");
        let core = Core::new(config, model).admitting(&policy).guaranteeing(&setup);
        let drive = DriveConfig { seed: setting.seed, faults: setting.faults, ..DriveConfig::default() };
        Rig {
            core,
            drive: Drive::new(setting.truth, drive).expect("a drive that works"),
            now: Time::ZERO,
            rng: rng(setting.seed),
            streaming: vec![],
            best_effort: 0,
            waiting_best_effort: 0,
            asked: BTreeMap::new(),
            finished: vec![],
            given_up: vec![],
            overdue: vec![],
            scanned: 0,
            commands: 0,
            id: 0,
        }
    }

    fn stream(&mut self, owner: u32, requests: u32, period: Dur, ppm: u32) -> Result<(), NotOpened> {
        let quality = Quality::from_ppm(ppm).expect("a quality");
        let stream = Stream::new(requests, period, quality, SECTORS).expect("a stream");
        let opened = self.core.open_stream(owner, stream, self.now);
        self.drain();
        let next = opened?.begins;
        self.streaming.push(Streaming { owner, stream, next, more: 0, kind: Kind::Read });
        Ok(())
    }

    /// Reads the whole drive for free.
    fn scan(&mut self) {
        let session = self.core.open(1, self.now).expect("there is room");
        let ranges = vec![Range { lbn: 0, count: self.drive.capacity() }];
        let spec = TaskSpec { kind: Kind::Read, ranges, blksize: 32, min_pickup: 32 };
        self.core.register(session, &spec, self.now).expect("there is room");
        self.drain();
    }

    fn submit(&mut self, owner: u32, kind: Kind, lbn: u64, count: u32) -> Result<u64, Refused> {
        self.id += 1;
        let request = Request { id: self.id, kind, lbn, count, fua: false, sync: true, owner };
        let told = self.core.submit(request, self.now);
        if told.is_ok() {
            self.asked.insert(self.id, owner);
        }
        self.drain();
        told.map(|()| self.id)
    }

    fn somewhere(&mut self) -> u64 {
        let last = self.drive.capacity() / u64::from(SECTORS) - 1;
        between(&mut self.rng, 0, last) * u64::from(SECTORS)
    }

    fn drain(&mut self) {
        while let Some(action) = self.core.poll() {
            match action {
                Action::Issue(command) => {
                    self.commands += 1;
                    self.drive.submit(command, self.now).expect("it takes two");
                }
                Action::Finish(f) => {
                    let owner = self.asked.remove(&f.request).expect("it was asked for, and is finished once");
                    self.waiting_best_effort -= u32::from(owner >= OTHERS && self.best_effort > 0);
                    self.finished.push((owner, f));
                }
                Action::GivenUp(request) => {
                    self.asked.remove(&request).expect("it was asked for, and is not finished");
                    self.given_up.push(request);
                }
                Action::Overdue(overdue) => self.overdue.push(overdue),
                Action::Background(Event::Delivered { range, .. }) => self.scanned += range.count,
                Action::Background(_) => {}
            }
        }
        assert!(self.core.next_wakeup().is_none_or(|t| t > self.now), "woken in the past");
    }

    /// What streams and others ask for now.
    fn ask(&mut self) {
        for at in 0..self.streaming.len() {
            let Streaming { owner, stream, next, more, kind } = self.streaming[at];
            if next > self.now {
                continue;
            }
            self.streaming[at].next = next + stream.period;
            for _ in 0..stream.requests + more {
                let lbn = self.somewhere();
                self.submit(owner, kind, lbn, SECTORS).expect("there is room");
            }
        }
        while self.waiting_best_effort < self.best_effort {
            self.waiting_best_effort += 1;
            let (owner, lbn) = (OTHERS + self.id as u32 % 3, self.somewhere());
            let kind = if between(&mut self.rng, 0, 3) == 0 { Kind::Write } else { Kind::Read };
            self.submit(owner, kind, lbn, SECTORS).expect("there is room");
        }
    }

    fn run(&mut self, until: Time) {
        loop {
            self.ask();
            let wakeup = self.core.next_wakeup();
            let asks = self.streaming.iter().map(|s| s.next).min();
            let next = [self.drive.next_event(), wakeup, asks].into_iter().flatten().min();
            let Some(next) = next.filter(|t| *t <= until) else { break };
            self.now = self.now.max(next);
            while let Some(c) = self.drive.advance(self.now) {
                self.core.complete(c.id, c.outcome, self.now);
                self.drain();
            }
            if wakeup.is_some_and(|t| t <= self.now) {
                self.core.tick(self.now);
                self.drain();
            }
        }
        self.now = self.now.max(until);
    }

    /// Requests of a stream that are finished: all, and those that were in time.
    fn had(&self, owner: u32) -> (usize, usize) {
        let mine = self.finished.iter().filter(|(o, _)| *o == owner);
        let in_time = mine.clone().filter(|(_, f)| f.done <= f.due.expect("it is a stream's"));
        (mine.count(), in_time.count())
    }

    fn others(&self) -> usize {
        self.finished.iter().filter(|(o, _)| *o >= OTHERS).count()
    }
}

/// A head that fails to settle once in five moves, as long as it can.
fn restless() -> Profile {
    let mut p = ultrastar();
    p.noise.settle_retry_ppm = 200_000;
    p
}

#[test]
fn no_mandatory_request_is_late_whoever_goes_beside_it() {
    let (belief, truth) = (ultrastar(), restless());
    let orders = [Order::Sptf, Order::Clook, Order::SptfSw(40), Order::SatfUf(Dur::from_ms(300)), Order::Fcfs];
    let (mut requests, mut streams_only, mut scanned) = (0, 0, 0);
    for (at, policy) in ["none", "bfq", "bfq+", "cfq", "none"].into_iter().enumerate() {
        let exhausted = [Exhausted::Skip, Exhausted::AsBestEffort, Exhausted::BeforeBestEffort][at % 3];
        let fill = at != 0;
        let order = orders[at];
        let mut rig = Rig::new(Setting { policy, order, fill, exhausted, ..setting(&belief, &truth) });
        // 450 of 500 ms at their worst, and an optional stream beside them; one in periods of its own.
        rig.stream(1, 10, PERIOD, 1_000_000).expect("room");
        rig.stream(2, 2, Dur::from_ms(250), 1_000_000).expect("room");
        rig.stream(3, 5, PERIOD, 800_000).expect("room");
        rig.best_effort = 10;
        if fill {
            rig.scan();
        }
        rig.run(Time::ZERO + Dur::from_secs(60));
        assert_eq!(rig.overdue, [], "{policy}: the drive is within its worst case");
        for owner in [1, 2] {
            let (all, in_time) = rig.had(owner);
            assert_eq!(all, in_time, "{policy}, {order:?}: stream {owner}");
            requests += all;
        }
        assert!(rig.others() > 500, "{policy}: {} best-effort requests in a minute", rig.others());
        streams_only += rig.core.stats().subset.streams_only;
        scanned += rig.scanned;
    }
    println!("{requests} mandatory requests; {streams_only} subsets of streams alone; {scanned} sectors scanned");
    assert!(requests > 5 * 60 * 25 && streams_only > 500 && scanned > 500_000);
}

#[test]
fn an_optional_stream_has_its_quality_and_best_effort_the_rest() {
    let drive = ultrastar();
    for (policy, exhausted) in
        [("none", Exhausted::Skip), ("bfq+", Exhausted::AsBestEffort), ("none", Exhausted::BeforeBestEffort)]
    {
        let mut rig = Rig::new(Setting { policy, exhausted, fill: true, ..setting(&drive, &drive) });
        rig.stream(1, 20, PERIOD, 950_000).expect("room");
        rig.stream(2, 10, PERIOD, 600_000).expect("room");
        rig.best_effort = 20;
        rig.scan();
        rig.run(Time::ZERO + Dur::from_secs(60));
        let standings = rig.core.standings();
        for (owner, asked) in [(1, 0.95), (2, 0.60)] {
            let (_, in_time) = rig.had(owner);
            let tally = standings.iter().find(|s| s.owner == owner).expect("it is at work").tally;
            // The period under way is not over.
            let (quality, all) = (in_time as f64 / tally.asked as f64, tally.asked);
            println!("{policy}, {exhausted:?}: stream {owner} {quality:.3} of {all}, {tally:?}");
            assert!(quality >= asked - 0.01, "{policy}: stream {owner} has {quality}");
            assert_eq!(tally.in_time, in_time as u64);
            assert_eq!(tally.given_up > 0, exhausted == Exhausted::Skip && tally.late > 0);
        }
        assert!(rig.others() > 1_000, "{} best-effort requests", rig.others());
        let left: BTreeSet<u32> = rig.asked.values().copied().collect();
        assert!(rig.given_up.len() + rig.finished.len() + rig.asked.len() == rig.id as usize, "{left:?} unfinished");
    }
}

#[test]
fn an_optional_stream_has_its_quality_at_any_phase() {
    let drive = ultrastar();
    for eighth in 0..8 {
        let mut rig = Rig::new(Setting { exhausted: Exhausted::Skip, ..setting(&drive, &drive) });
        rig.stream(1, 10, PERIOD, 1_000_000).expect("room");
        rig.stream(2, 20, PERIOD, 950_000).expect("room");
        rig.streaming[1].next += Dur(PERIOD.0 * eighth / 8);
        rig.best_effort = 20;
        rig.run(Time::ZERO + Dur::from_secs(60));
        let (_, in_time) = rig.had(2);
        let quality = in_time as f64 / (rig.core.standings()[1].tally.asked - 40) as f64;
        println!("{eighth}/8 of a period behind the beginning: {quality:.3}");
        assert!(quality >= 0.94, "{eighth}: {quality}");
    }
}

/// Whose requests were finished, in that order, from when `who` asks for one for the first time.
fn order_from(rig: &mut Rig, who: u32, at: Time) -> Vec<u32> {
    rig.run(at);
    let before = rig.finished.len();
    let lbn = rig.somewhere();
    rig.submit(who, Kind::Read, lbn, 8).expect("there is room");
    while !rig.finished.iter().any(|(o, _)| *o == who) {
        rig.run(rig.now + Dur::from_ms(1));
    }
    rig.finished[before..].iter().map(|(o, _)| *o).collect()
}

#[test]
fn who_has_just_begun_goes_before_streams_that_can_wait() {
    let drive = ultrastar();
    let first = |policy| {
        let mut behind = 0;
        for seed in 0..8 {
            let mut rig = Rig::new(Setting { policy, seed, ..setting(&drive, &drive) });
            rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
            rig.stream(2, 20, PERIOD, 600_000).expect("room");
            // What was at the drive, and it.
            behind += order_from(&mut rig, OTHERS, Time(20 * PERIOD.0 + 10_000_000)).len() - 1;
        }
        behind
    };
    // Without a policy, and with one that raises nobody, position decides.
    let (raised, others) = (first("bfq+"), [first("none"), first("bfq")]);
    println!("{raised} behind, others {others:?}");
    assert!(raised <= 2 * 8 && others.iter().all(|&o| o > 4 * raised));
}

#[test]
fn where_streams_cannot_wait_what_is_mandatory_makes_room_for_who_has_just_begun() {
    let drive = ultrastar();
    let optional_before = |policy| {
        let mut optional = 0;
        for seed in 0..8 {
            let mut rig = Rig::new(Setting { policy, seed, ..setting(&drive, &drive) });
            rig.stream(1, 14, PERIOD, 1_000_000).expect("room");
            rig.stream(2, 10, PERIOD, 600_000).expect("room");
            let order = order_from(&mut rig, OTHERS, Time(20 * PERIOD.0));
            // Two were at the drive when it came.
            optional += order[2..].iter().filter(|&&o| o == 2).count();
        }
        optional
    };
    let (raised, others) = (optional_before("bfq+"), optional_before("bfq"));
    assert!(raised == 0 && others > 2 * 8, "{raised} and {others} optional requests before it");
}

#[test]
fn a_stream_that_asks_for_more_than_it_declared_gets_no_more_of_what_is_reserved() {
    let drive = ultrastar();
    let mut rig = Rig::new(setting(&drive, &drive));
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    rig.stream(2, 10, PERIOD, 1_000_000).expect("room");
    rig.streaming[0].more = 1;
    rig.best_effort = 10;
    rig.run(Time::ZERO + Dur::from_secs(20));
    let (all, in_time) = rig.had(2);
    assert_eq!(all, in_time);
    // It has five in each period, and what is too much waits for one that has room.
    let (had, in_time) = rig.had(1);
    let periods = all / 10;
    assert!(periods >= 38 && had == in_time && had <= 5 * (periods + 2), "{had} in {periods} periods");
    assert!(rig.asked.values().filter(|o| **o == 1).count() >= periods - 1);
}

#[test]
fn what_was_not_begun_in_its_period_is_given_up_if_that_is_the_policy_and_done_late_if_it_is_not() {
    let drive = ultrastar();
    // X says that requests take much less than they do: the reservation is too small for what is asked for.
    for (exhausted, given_up) in [(Exhausted::Skip, true), (Exhausted::AsBestEffort, false)] {
        let mean = Dur::from_ms(1);
        let mut rig = Rig::new(Setting { exhausted, mean, ..setting(&drive, &drive) });
        rig.stream(1, 200, PERIOD, 900_000).expect("room");
        rig.run(Time::ZERO + Dur::from_secs(10));
        let tally = rig.core.standings()[0].tally;
        assert!(tally.late > 100, "{tally:?}");
        assert_eq!(tally.given_up > 0, given_up, "{exhausted:?}: {tally:?}");
        assert_eq!(rig.given_up.len() as u64, tally.given_up);
        if !given_up {
            let (all, in_time) = rig.had(1);
            assert!(all > in_time, "some are done late");
        }
    }
}

#[test]
fn a_stream_that_ends_is_served_to_its_end_and_makes_room_for_another() {
    let drive = ultrastar();
    let mut rig = Rig::new(setting(&drive, &drive));
    rig.stream(1, 12, PERIOD, 1_000_000).expect("room");
    assert!(matches!(rig.stream(2, 12, PERIOD, 1_000_000), Err(NotOpened::Refused(_))));
    rig.run(Time::ZERO + Dur::from_ms(600));
    assert!(rig.core.close_stream(1, rig.now) && !rig.core.close_stream(1, rig.now));
    rig.drain();
    rig.streaming.clear();
    rig.run(Time::ZERO + Dur::from_secs(2));
    assert_eq!(rig.had(1), (24, 24));
    assert_eq!(rig.core.declared(), []);
    rig.stream(2, 12, PERIOD, 1_000_000).expect("there is room now");
    // What its owner asks for is best effort from now on.
    let lbn = rig.somewhere();
    let late = rig.submit(1, Kind::Read, lbn, 8).expect("room");
    rig.run(Time::ZERO + Dur::from_secs(4));
    let f = rig.finished.iter().find(|(_, f)| f.request == late).expect("it is done");
    assert_eq!(f.1.due, None);
}

#[test]
fn what_is_larger_than_was_said_is_refused() {
    let drive = ultrastar();
    let mut rig = Rig::new(setting(&drive, &drive));
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    let refused = |count, most| Err(Refused::TooLarge { count, most });
    assert_eq!(rig.submit(1, Kind::Read, 0, SECTORS + 1), refused(SECTORS + 1, SECTORS));
    assert_eq!(rig.submit(OTHERS, Kind::Read, 0, 257), refused(257, 256));
    rig.submit(1, Kind::Read, 0, SECTORS).expect("room");
    rig.submit(OTHERS, Kind::Read, 0, 256).expect("room");
    rig.submit(1, Kind::Flush, 0, 0).expect("a flush is nobody's stream");
    rig.streaming.clear();
    rig.run(Time::ZERO + Dur::from_secs(1));
    assert_eq!(rig.finished.len(), 3);
}

#[test]
fn a_drive_that_takes_longer_than_its_worst_case_is_reported_with_the_command_that_showed_it() {
    let (belief, mut truth) = (ultrastar(), ultrastar());
    // Twice as many turns to settle as the profile says.
    (truth.noise.settle_retry_ppm, truth.noise.settle_retry_turns) = (700_000, 10);
    truth.noise.seek_max = Dur::from_ms(1);
    let mut rig = Rig::new(setting(&belief, &truth));
    rig.best_effort = 5;
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    rig.run(Time::ZERO + Dur::from_secs(60));
    let first = rig.overdue.first().expect("it shows");
    let Command { kind, lbn, count, .. } = first.command;
    assert!(first.took > first.worst && count == SECTORS && lbn < rig.drive.capacity());
    let said = first.to_string();
    let kind = if kind == Kind::Read { "read" } else { "write" };
    assert!(said.contains(&format!("for a {kind} of {SECTORS} sectors at {lbn}, expected ")), "{said}");
    // And it does not stop for it.
    assert!(rig.finished.len() > 3_000);
}

/// A stream's read waits for a best-effort write to the same place: it has no promise then, and nothing stands still.
#[test]
fn a_request_that_waits_for_an_older_one_does_not_stop_the_disk() {
    let drive = ultrastar();
    for exhausted in [Exhausted::Skip, Exhausted::AsBestEffort] {
        let mut rig = Rig::new(Setting { exhausted, ..setting(&drive, &drive) });
        // All of the time is promised.
        rig.stream(1, 15, PERIOD, 1_000_000).expect("room");
        rig.stream(2, 1, PERIOD, 100_000).expect("room");
        rig.streaming.clear();
        rig.submit(OTHERS, Kind::Write, 5_000, 64).expect("room");
        rig.submit(OTHERS, Kind::Write, 5_000, 64).expect("room");
        for owner in [1, 2] {
            rig.submit(owner, Kind::Read, 5_000, 64).expect("room");
        }
        for _ in 0..13 {
            let lbn = rig.somewhere();
            rig.submit(1, Kind::Read, lbn, SECTORS).expect("room");
        }
        rig.run(Time::ZERO + Dur::from_secs(10));
        assert_eq!(rig.asked.len(), 0, "{exhausted:?}: {:?}", rig.asked);
        assert_eq!(rig.finished.len() + rig.given_up.len(), 17);
    }
}

/// After two reads on one track some drives read on before they take up what waits, and would take up what comes meanwhile instead.
#[test]
fn what_waits_at_the_drive_is_not_overtaken_by_what_comes_after_it() {
    for (name, order) in [("cheetah73lp", Order::Sptf), ("cheetah36es", Order::Clook)] {
        let mut drive = profile::builtin(name).expect("a built-in drive");
        assert!(drive.electronics.cache.same_track_prefetch_delays, "{name} has the habit");
        drive.noise.settle_retry_ppm = 300_000;
        let mut rig = Rig::new(Setting { order, ..setting(&drive, &drive) });
        let period = Dur::from_ms(90);
        rig.stream(1, 1, period, 1_000_000).expect("room");
        rig.streaming.clear();
        let (far, mut near, mut next) = (rig.drive.capacity() - 100_000, 0, Time::ZERO);
        while rig.now < Time::ZERO + Dur::from_secs(40) {
            if next <= rig.now {
                next += period;
                let lbn = far + between(&mut rig.rng, 0, 99_000);
                rig.submit(1, Kind::Read, lbn, SECTORS).expect("room");
            }
            // Twelve small reads go forward, two and more on a track.
            for _ in rig.asked.values().filter(|o| **o >= OTHERS).count()..12 {
                near = (near + 20) % (far / 2);
                rig.submit(OTHERS, Kind::Read, near, 8).expect("room");
            }
            let soonest = [rig.drive.next_event(), rig.core.next_wakeup(), Some(next)];
            rig.now = soonest.into_iter().flatten().min().expect("something happens").max(rig.now);
            while let Some(c) = rig.drive.advance(rig.now) {
                rig.core.complete(c.id, c.outcome, rig.now);
                if next > rig.now {
                    rig.drain();
                }
            }
            if next > rig.now {
                rig.core.tick(rig.now);
                rig.drain();
            }
        }
        let (all, in_time) = rig.had(1);
        let mine = rig.finished.iter().filter(|(owner, _)| *owner == 1);
        let longest = mine.map(|(_, f)| f.done.since(f.dispatched)).max().expect("some are done");
        let model = Model::new(&drive).expect("a drive that works");
        let w = |sectors| WorstCase::of(&drive, &model, sectors).expect("a worst case").total();
        println!("{name}: {in_time} of {all} in time, {longest} at the drive at most, {} others", rig.others());
        assert!(all > 400 && all == in_time && rig.overdue.is_empty());
        assert!(longest <= w(SECTORS) + w(8), "{longest} at the drive");
    }
}

/// What was put at a request's front for free fails: the request goes again, and the account of its stream is right.
#[test]
fn a_stream_has_its_requests_although_what_was_put_before_them_fails() {
    let drive = ultrastar();
    let faults = (0..4_000).map(|i| Fault::Unreadable { lbn: i * 1_024 + 900, count: 1 }).collect();
    let mut rig = Rig::new(Setting { fill: true, faults, ..setting(&drive, &drive) });
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    rig.streaming.clear();
    rig.scan();
    // Reads that lie behind bad sectors, on tracks that the scan wants.
    for period in 1..60u64 {
        rig.run(Time(PERIOD.0 * period));
        for _ in 0..5 {
            let lbn = between(&mut rig.rng, 0, 3_900) * 1_024 + 910;
            rig.submit(1, Kind::Read, lbn, 64).expect("room");
        }
    }
    rig.run(Time(PERIOD.0 * 61));
    let (all, in_time) = rig.had(1);
    assert_eq!((all, in_time), (295, 295));
    assert!(rig.finished.iter().all(|(_, f)| f.outcome == Outcome::Ok), "no request reads a bad sector");
    let tally = rig.core.standings()[0].tally;
    assert_eq!((tally.in_time, tally.late), (295, 0));
}

/// Goes on to the next instant at which something happens.
fn step(rig: &mut Rig) {
    let next = [rig.drive.next_event(), rig.core.next_wakeup()].into_iter().flatten().min().expect("something happens");
    rig.run(next);
}

/// How many requests in a row an application has, of two that read on without end.
fn in_a_row(policy: &str, streams: bool) -> f64 {
    let drive = ultrastar();
    let mut rig = Rig::new(Setting { policy, ..setting(&drive, &drive) });
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    rig.stream(2, 30, PERIOD, 600_000).expect("room");
    if !streams {
        rig.streaming.clear();
    }
    let mut next = [0, 20_000_000];
    while rig.now < Time::ZERO + Dur::from_secs(30) {
        for (at, lbn) in next.iter_mut().enumerate() {
            let owner = OTHERS + at as u32;
            for _ in rig.asked.values().filter(|o| **o == owner).count()..4 {
                rig.submit(owner, Kind::Read, *lbn, SECTORS).expect("there is room");
                *lbn += u64::from(SECTORS);
            }
        }
        step(&mut rig);
    }
    let owners: Vec<u32> = rig.finished.iter().map(|f| f.0).filter(|o| *o >= OTHERS).collect();
    let rows = owners.windows(2).filter(|w| w[0] != w[1]).count();
    owners.len() as f64 / rows.max(1) as f64
}

#[test]
fn a_slice_has_as_many_requests_beside_streams_as_without() {
    for policy in ["cfq", "bfq"] {
        let (alone, beside) = (in_a_row(policy, false), in_a_row(policy, true));
        assert!((0.8..1.2).contains(&(beside / alone)), "{policy}: {alone} alone, {beside} beside streams");
    }
}

/// An application that asked `before` is done and waited for at `at`, when a stream's requests come. How many commands are at the drive
/// then.
fn at_the_drive(rig: &mut Rig, at: Time, before: Dur, requests: u32) -> usize {
    rig.streaming.clear();
    rig.run(Time(at.0 - before.0));
    let id = rig.submit(OTHERS, Kind::Read, 5_000, 8).expect("there is room");
    while rig.asked.contains_key(&id) {
        step(rig);
    }
    assert!(rig.now < at && rig.core.outstanding() == 0, "it is done");
    rig.run(at);
    for _ in 0..requests {
        let lbn = rig.somewhere();
        rig.submit(1, Kind::Read, lbn, SECTORS).expect("there is room");
    }
    rig.core.outstanding()
}

#[test]
fn while_who_has_just_begun_thinks_streams_that_can_wait_wait() {
    let drive = ultrastar();
    let of = |policy| {
        let mut rig = Rig::new(Setting { policy, ..setting(&drive, &drive) });
        rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
        at_the_drive(&mut rig, Time(20 * PERIOD.0), Dur::from_ms(8), 5)
    };
    // Who is there for long is waited for, too, but not by streams.
    assert_eq!((of("bfq+"), of("bfq")), (0, 2));
}

#[test]
fn optional_requests_that_cannot_wait_for_who_has_just_begun_go_while_he_thinks() {
    let drive = ultrastar();
    let mut rig = Rig::new(Setting { policy: "bfq+", ..setting(&drive, &drive) });
    rig.stream(1, 20, PERIOD, 950_000).expect("room");
    // 131 ms are reserved, of which the last requests may take 50 more.
    let late = Time(20 * PERIOD.0 - 184_000_000);
    assert_eq!(at_the_drive(&mut rig, late, Dur::from_ms(16), 20), 2);
    assert_eq!(rig.core.standings()[0].tally.deferred, 0);
}

#[test]
fn what_is_there_when_its_period_begins_is_not_put_off() {
    let drive = ultrastar();
    for requests in [20, 45] {
        let mut rig = Rig::new(Setting { exhausted: Exhausted::Skip, ..setting(&drive, &drive) });
        // 435 of 500 ms at their worst, 100 at their real times: that is what an optional stream is admitted beside.
        rig.stream(1, 14, PERIOD, 1_000_000).expect("room");
        rig.stream(2, requests, PERIOD, 950_000).expect("room");
        rig.best_effort = 5;
        rig.run(Time(40 * PERIOD.0));
        let its = |f: &Finished| f.submitted.0 / PERIOD.0;
        let kept = rig.finished.iter().filter(|(o, f)| *o == 2 && f.done.0 <= (its(f) + 1) * PERIOD.0).count();
        let standing = rig.core.standings()[1];
        println!("{kept} of {} in the period that they were there for, {standing:?}", 40 * requests);
        assert!(kept * 100 >= 94 * 40 * requests as usize);
    }
}

/// A program that reads `reads` times, one after the other, from when a period is a little under way; how long that takes.
fn start(policy: &str, seed: u64, reads: u32) -> (Dur, usize) {
    let drive = ultrastar();
    let mut rig = Rig::new(Setting { policy, seed, ..setting(&drive, &drive) });
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    rig.stream(2, 20, PERIOD, 600_000).expect("room");
    rig.run(Time(20 * PERIOD.0 + 10_000_000));
    let (from, before) = (rig.now, rig.finished.len());
    for _ in 0..reads {
        let lbn = rig.somewhere();
        let id = rig.submit(OTHERS, Kind::Read, lbn, 8).expect("there is room");
        while rig.asked.contains_key(&id) {
            step(&mut rig);
        }
    }
    (rig.now.since(from), rig.finished.len() - before - reads as usize)
}

#[test]
fn who_has_just_begun_and_goes_on_has_each_of_his_requests_before_streams_that_can_wait() {
    let of = |policy: &str| {
        let each: Vec<(Dur, usize)> = (0..8).map(|seed| start(policy, seed, 10)).collect();
        println!("{policy}: {each:?}");
        each.iter().map(|e| e.1).sum::<usize>()
    };
    let (raised, others) = (of("bfq+"), of("bfq"));
    assert!(raised * 5 < others, "{raised} of streams' meanwhile, {others} with a policy that raises nobody");
}

#[test]
fn who_has_just_begun_and_waits_for_a_streams_request_does_not_keep_it() {
    let drive = ultrastar();
    let mut rig = Rig::new(Setting { policy: "bfq+", ..setting(&drive, &drive) });
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    rig.streaming.clear();
    rig.run(Time(20 * PERIOD.0));
    let id = rig.submit(OTHERS, Kind::Read, 5_000, 8).expect("there is room");
    while rig.asked.contains_key(&id) {
        step(&mut rig);
    }
    rig.submit(1, Kind::Write, 900_000, 64).expect("there is room");
    rig.submit(OTHERS, Kind::Read, 900_000, 8).expect("there is room");
    assert_eq!(rig.core.outstanding(), 1);
}
