//! A core that fills gaps and idle time, and a virtual drive, in virtual time.

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Command, Drive, DriveConfig, Dur, Fault, Kind, Model, Outcome, Time};
use headtime_sched::{
    Action, Algorithm, Config, Conservatism, Core, FillConfig, Finished, Order, Request, SessionId, TaskEvent, TaskId,
    TaskRange, TaskSpec,
};
use headtime_testkit::profiles::{between, rng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The drive of Thereska 2003.
pub fn cheetah() -> Profile {
    profile::builtin("cheetah36es").expect("a built-in drive")
}

/// The paper's algorithm, exact, in gaps only.
pub fn gaps_only() -> FillConfig {
    let conservatism = Conservatism::Fixed(Dur::from_us(300));
    FillConfig { conservatism, idle: None, ..FillConfig::new(Algorithm::AngleEpFrag) }
}

/// How applications answer requests for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    Yes,
    NotNow,
    Nothing,
}

pub struct Rig {
    pub core: Core,
    pub drive: Drive,
    pub now: Time,
    pub says: Says,
    pub rng: Xoshiro256PlusPlus,
    pub finished: Vec<Finished>,
    pub events: Vec<(Time, TaskEvent)>,
    /// Commands sent, when, and the free sectors of each.
    pub sent: Vec<(Time, Command, u32)>,
    /// Commands that ended, when and how.
    pub ended: Vec<(Time, Command, Outcome)>,
    pub ids: u64,
}

impl Rig {
    pub fn new(profile: &Profile, fill: Option<FillConfig>, faults: Vec<Fault>) -> Rig {
        Rig::with_capacity(profile, fill, faults, 256)
    }

    pub fn with_capacity(profile: &Profile, fill: Option<FillConfig>, faults: Vec<Fault>, capacity: usize) -> Rig {
        let config = DriveConfig::default().with_seed(1).with_noise(false).with_faults(faults);
        let drive = Drive::new(profile, config).expect("a drive that works");
        let model = Model::new(profile).expect("a drive that works");
        let core = Core::new(Config::new(Order::Sptf).with_capacity(capacity).with_fill(fill), model);
        Rig {
            core,
            drive,
            now: Time::ZERO,
            says: Says::Yes,
            rng: rng(5),
            finished: vec![],
            events: vec![],
            sent: vec![],
            ended: vec![],
            ids: 0,
        }
    }

    pub fn capacity(&self) -> u64 {
        self.drive.capacity()
    }

    pub fn session(&mut self, priority: u32) -> SessionId {
        let id = self.core.open(priority, self.now).expect("there is room");
        self.drain();
        id
    }

    pub fn task(&mut self, session: SessionId, kind: Kind, ranges: &[(u64, u64)], unit: u32) -> TaskId {
        let ranges = ranges.iter().map(|&(lbn, count)| TaskRange { lbn, count }).collect();
        let spec = TaskSpec { kind, ranges, blksize: unit, min_pickup: unit };
        let id = self.core.register(session, &spec, self.now).expect("there is room");
        self.drain();
        id
    }

    /// Registers a read of the whole disk.
    pub fn scan(&mut self) -> TaskId {
        let session = self.session(1);
        let all = self.capacity();
        self.task(session, Kind::Read, &[(0, all)], 64)
    }

    pub fn submit(&mut self, kind: Kind, lbn: u64, count: u32) -> u64 {
        self.ids += 1;
        let request = Request { id: self.ids, kind, lbn, count, fua: false, sync: true, owner: 0 };
        self.core.submit(request, self.now).expect("there is room");
        self.drain();
        self.ids
    }

    pub fn submit_random(&mut self) {
        let last = self.capacity() / 8 - 2;
        let lbn = between(&mut self.rng, 0, last) * 8;
        let kind = if between(&mut self.rng, 0, 2) == 0 { Kind::Write } else { Kind::Read };
        self.submit(kind, lbn, 8);
    }

    pub fn drain(&mut self) {
        let mut actions = 0;
        while let Some(action) = self.core.poll() {
            actions += 1;
            assert!(actions < 10_000, "one telling leads to ever more actions: {action:?}");
            match action {
                Action::Issue(c) => {
                    self.sent.push((self.now, c, self.core.free_sectors(c.id)));
                    self.drive.submit(c, self.now).expect("it takes two");
                }
                Action::Finish(f) => self.finished.push(f),
                Action::Background(event) => {
                    if let (TaskEvent::GetBuffer { task, range, .. }, true) = (event, self.says != Says::Nothing) {
                        let waits = self.core.buffer(task, range, self.says == Says::Yes, self.now);
                        assert_eq!(waits, Ok(true));
                    }
                    self.events.push((self.now, event));
                }
                other => panic!("{other:?} without streams"),
            }
        }
        assert!(self.core.next_wakeup().is_none_or(|t| t > self.now), "woken in the past");
    }

    /// Advances to the next event, if that is by `until`.
    pub fn step(&mut self, until: Time) -> bool {
        let wakeup = self.core.next_wakeup();
        let Some(next) = [self.drive.next_event(), wakeup].into_iter().flatten().min().filter(|t| *t <= until) else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some(c) = self.drive.advance(self.now) {
            let at = self.sent.iter().rposition(|s| s.1.id == c.id).expect("it was sent");
            self.ended.push((self.now, self.sent[at].1, c.outcome));
            self.core.complete(c.id, c.outcome, self.now);
            self.drain();
        }
        if wakeup.is_some_and(|t| t <= self.now) {
            self.core.tick(self.now);
            self.drain();
        }
        true
    }

    /// Advances by this time.
    pub fn run(&mut self, time: Dur) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }

    /// Keeps two requests unfinished until this number of further requests has finished.
    pub fn busy(&mut self, requests: usize) {
        self.busy_with(2, requests);
    }

    /// The same with another number of requests outstanding.
    pub fn busy_with(&mut self, outstanding: u64, requests: usize) {
        let until = self.finished.len() + requests;
        while self.finished.len() < until {
            while self.ids < self.finished.len() as u64 + outstanding {
                self.submit_random();
            }
            assert!(self.step(Time::NEVER), "requests are unfinished");
        }
    }

    /// Advances until all requests have finished.
    pub fn finish(&mut self) {
        while (self.finished.len() as u64) < self.ids {
            assert!(self.step(Time::NEVER), "requests are unfinished");
        }
    }

    /// Returns the sectors delivered to any session.
    pub fn delivered(&self) -> u64 {
        let of = |e: &TaskEvent| if let TaskEvent::Delivered { range, .. } = e { range.count } else { 0 };
        self.events.iter().map(|(_, e)| of(e)).sum()
    }

    pub fn is_done(&self, task: TaskId) -> bool {
        self.events.iter().any(|(_, e)| matches!(e, TaskEvent::Done { task: t, .. } if *t == task))
    }

    /// Returns the commands that were freeblock work, at least in part, from the one with this
    /// number on.
    pub fn free_commands(&self, from: usize) -> usize {
        self.sent[from..].iter().filter(|s| s.2 > 0).count()
    }
}
