//! A core with streams in front of a virtual drive, and all its clients.

use std::collections::BTreeMap;

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Drive, DriveConfig, Dur, Fault, Kind, Model, Time};
use headtime_sched::streams::{
    Disk, Distribution, Exhausted, GuaranteeConfig, OpenStreamError, Quality, Service, Stream, WorstCase,
    WorstCaseTable,
};
use headtime_sched::{
    Action, Algorithm, Config, Core, FillConfig, Finished, Order, Overdue, Policy, Refused, Request, TaskEvent,
    TaskRange, TaskSpec,
};
use headtime_testkit::profiles::{between, rng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub const SECTORS: u32 = 128;
pub const BIN: Dur = Dur::from_us(100);
pub const PERIOD: Dur = Dur::from_ms(500);
/// Owners from here on have no stream.
pub const OTHERS: u32 = 100;

pub fn ultrastar() -> Profile {
    profile::builtin("ultrastar36z15").expect("a built-in drive")
}

/// Requests at the beginning of each period.
#[derive(Clone, Copy)]
pub struct Streaming {
    pub owner: u32,
    pub stream: Stream,
    pub next: Time,
    /// Requests beyond the declared number.
    pub more: u32,
    pub kind: Kind,
}

pub struct Rig {
    pub core: Core,
    pub drive: Drive,
    pub now: Time,
    pub rng: Xoshiro256PlusPlus,
    pub streaming: Vec<Streaming>,
    /// Number of best-effort requests kept pending.
    pub best_effort: u32,
    pub waiting_best_effort: u32,
    pub asked: BTreeMap<u64, u32>,
    pub finished: Vec<(u32, Finished)>,
    pub given_up: Vec<u64>,
    pub overdue: Vec<Overdue>,
    pub scanned: u64,
    pub commands: u64,
    pub id: u64,
}

pub struct Setting<'a> {
    /// The drive as modelled.
    pub belief: &'a Profile,
    /// The real drive.
    pub truth: &'a Profile,
    pub policy: &'a str,
    pub order: Order,
    pub fill: bool,
    pub exhausted: Exhausted,
    /// X is this long for all but few.
    pub mean: Dur,
    pub seed: u64,
    pub faults: Vec<Fault>,
}

pub fn setting<'a>(belief: &'a Profile, truth: &'a Profile) -> Setting<'a> {
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
    pub fn new(setting: Setting) -> Rig {
        let model = Model::new(setting.belief).expect("a drive that works");
        let worst = WorstCase::of(setting.belief, &model, SECTORS).expect("a worst case").total();
        let samples: Vec<Dur> = (0..100).map(|i| Dur(setting.mean.0 / 2 + setting.mean.0 * i / 100)).collect();
        let times = Distribution::from_samples(&samples, BIN, worst).expect("samples");
        let setup = GuaranteeConfig {
            disk: Disk::new(vec![Service::new(SECTORS, worst, times)], 2).expect("a drive"),
            worsts: WorstCaseTable::of(setting.belief, &model, 256).expect("a worst case"),
            exhausted: setting.exhausted,
            compensates: true,
        };
        let fill = setting.fill.then(|| FillConfig::new(Algorithm::AngleEpFrag));
        let config = Config::new(setting.order).with_capacity(4096).with_fill(fill);
        let policy = Policy::named(setting.policy).expect("a policy");
        let core = Core::new(config, model).admitting(&policy).guaranteeing(&setup);
        let drive = DriveConfig::default().with_seed(setting.seed).with_faults(setting.faults);
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

    pub fn stream(&mut self, owner: u32, requests: u32, period: Dur, ppm: u32) -> Result<(), OpenStreamError> {
        let quality = Quality::from_ppm(ppm).expect("a quality");
        let stream = Stream::new(requests, period, quality, SECTORS).expect("a stream");
        let opened = self.core.open_stream(owner, stream, self.now);
        self.drain();
        let next = opened?.begins;
        self.streaming.push(Streaming { owner, stream, next, more: 0, kind: Kind::Read });
        Ok(())
    }

    /// Registers a free read of the whole drive.
    pub fn scan(&mut self) {
        let session = self.core.open(1, self.now).expect("there is room");
        let ranges = vec![TaskRange { lbn: 0, count: self.drive.capacity() }];
        let spec = TaskSpec { kind: Kind::Read, ranges, blksize: 32, min_pickup: 32 };
        self.core.register(session, &spec, self.now).expect("there is room");
        self.drain();
    }

    pub fn submit(&mut self, owner: u32, kind: Kind, lbn: u64, count: u32) -> Result<u64, Refused> {
        self.id += 1;
        let request = Request { id: self.id, kind, lbn, count, fua: false, sync: true, owner };
        let told = self.core.submit(request, self.now);
        if told.is_ok() {
            self.asked.insert(self.id, owner);
        }
        self.drain();
        told.map(|()| self.id)
    }

    pub fn somewhere(&mut self) -> u64 {
        let last = self.drive.capacity() / u64::from(SECTORS) - 1;
        between(&mut self.rng, 0, last) * u64::from(SECTORS)
    }

    pub fn drain(&mut self) {
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
                Action::Expired(request) => {
                    self.asked.remove(&request).expect("it was asked for, and is not finished");
                    self.given_up.push(request);
                }
                Action::Overdue(overdue) => self.overdue.push(overdue),
                Action::Background(TaskEvent::Delivered { range, .. }) => self.scanned += range.count,
                Action::Background(_) => {}
            }
        }
        assert!(self.core.next_wakeup().is_none_or(|t| t > self.now), "woken in the past");
    }

    /// Submits the requests of streams and others for now.
    pub fn ask(&mut self) {
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

    pub fn run(&mut self, until: Time) {
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

    /// Returns the finished requests of a stream: all, and those that were in time.
    pub fn had(&self, owner: u32) -> (usize, usize) {
        let mine = self.finished.iter().filter(|(o, _)| *o == owner);
        let in_time = mine.clone().filter(|(_, f)| f.done <= f.due.expect("it is a stream's"));
        (mine.count(), in_time.count())
    }

    pub fn others(&self) -> usize {
        self.finished.iter().filter(|(o, _)| *o >= OTHERS).count()
    }
}

/// A head that fails to settle once in five moves, for as long as it can.
pub fn restless() -> Profile {
    let mut p = ultrastar();
    p.noise.settle_retry_ppm = 200_000;
    p
}

/// Advances to the next event.
pub fn step(rig: &mut Rig) {
    let next = [rig.drive.next_event(), rig.core.next_wakeup()].into_iter().flatten().min().expect("something happens");
    rig.run(next);
}
