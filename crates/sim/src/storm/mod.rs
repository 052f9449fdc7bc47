//! Randomized test of the core in front of a virtual drive, in virtual time, with continuous
//! checks.
//!
//! Foreground requests and all freeblock calls occur in random order on a small hot area of the
//! disk, some of them with invalid IDs; the drive has unreadable, slow and growing bad sectors and
//! occasionally hangs. A simple reference model (`shadow`) tracks every application's requests
//! and the data of every sector:
//!
//! * every wanted unit ends exactly once, by an event that its command explains, or with its task;
//! * no two overlapping commands, one of them a write, are at the drive together, and none
//!   overtakes an older one;
//! * data never gets older, neither by a freeblock write nor in the result of a read;
//! * a request that a stream prefers to lose rather than get late is either dropped or done, never
//!   both, and a stream that ends is gone with its last request;
//! * the core is never stuck, never requests a wake-up in the past, its queues drain, and no more
//!   requests wait in them than allowed;
//! * after every session is closed, nothing of it remains.

mod calls;
mod calm;
mod shadow;
mod streams;

use headtime_disk::profile::Profile;
use headtime_disk::{Command, Completion, Drive, DriveConfig, Dur, Fault, Kind, Model, Outcome, Time};
use headtime_sched::internals::admit::ASYNCHRONOUS;
use headtime_sched::streams::GuaranteeConfig as Promises;
use headtime_sched::{
    Action, Class, Config, Core, FillConfig, Finished, MAX_WEIGHT, Order, Policy, Refused, Request, Share, TaskEvent,
    TaskLimits,
};

use crate::simulate::SimError;
use crate::workload::variates::Variates;
use shadow::Shadow;

/// Maximum number of commands at the drive.
const AT_DRIVE: u32 = 2;
/// Maximum number of actions after one input: many more than there are blocks in the hot area.
const MOST_ACTIONS: u32 = 200_000;
/// Time in which all wanted work must complete after the disturbances end.
const ALL_DONE: Dur = Dur::from_secs(3_600);
/// Mean pause between two calls of a burst.
const PAUSE: Dur = Dur::from_us(1_500);

/// Parameters of a storm.
#[derive(Clone, Debug)]
pub struct Storm<'a> {
    /// The drive.
    pub profile: &'a Profile,
    /// The core's profile of it.
    pub belief: &'a Profile,
    /// FILL settings, with small limits so that they are reached.
    pub fill: FillConfig,
    /// The ADMIT policy. Applications' shares change continually.
    pub admit: Policy,
    /// Guarantees to streams, which begin and end continually. `None`: no guarantees.
    pub promises: Option<Promises>,
    /// Foreground applications.
    pub owners: u32,
    /// Foreground requests that may wait.
    pub capacity: usize,
    /// The ORDER policy.
    pub order: Order,
    /// Sectors of the hot area, at the start of the disk. Some reads go further, so that the arm
    /// moves.
    pub area: u64,
    /// Number of calls by foreground and background applications.
    pub calls: u64,
    /// Whether the drive has faults.
    pub faults: bool,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Counters of a storm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls by applications.
    pub calls: u64,
    /// Of these, refused ones.
    pub refused: u64,
    /// Commands dispatched.
    pub commands: u64,
    /// Foreground requests finished.
    pub finished: u64,
    /// Changes of an application's share.
    pub shares: u64,
    /// Streams begun.
    pub streams: u64,
    /// Foreground requests dropped because their periods ended.
    pub given_up: u64,
    /// Commands that exceeded the worst case.
    pub overdue: u64,
    /// Maximum number of requests in the core.
    pub most_here: usize,
    /// Of the finished requests, failed ones.
    pub failed: u64,
    /// Sectors wanted by the background.
    pub wanted: u64,
    /// Sectors delivered.
    pub delivered: u64,
    /// Sectors written.
    pub written: u64,
    /// Sectors superseded.
    pub superseded: u64,
    /// Sectors of unreadable units.
    pub unreadable: u64,
    /// Sectors still wanted when their task was aborted or their session closed.
    pub aborted: u64,
    /// Commands with several foreground writes.
    pub together: u64,
    /// Of these, failed ones.
    pub together_failed: u64,
    /// Commands merged with a foreground request.
    pub merged: u64,
    /// Separate freeblock commands.
    pub alone: u64,
    /// Freeblock commands in idle time.
    pub idle: u64,
    /// Size of the tasks in bytes, before the first call and after the last session was closed.
    pub bytes: (usize, usize),
    /// Requests and commands left in the core at the end.
    pub left_over: usize,
    /// Number of violations.
    pub wrong: u64,
    /// The first few violations, as text.
    pub complaints: Vec<String>,
}

impl Tally {
    /// Returns the number of sectors that did not end exactly once. Zero when all wanted sectors
    /// are accounted for.
    pub fn unaccounted(&self) -> u64 {
        self.wanted.abs_diff(self.delivered + self.written + self.superseded + self.unreadable + self.aborted)
    }

    fn complain(&mut self, what: String) {
        self.wrong += 1;
        if self.complaints.len() < 8 {
            self.complaints.push(what);
        }
    }
}

struct Run {
    core: Core,
    drive: Drive,
    rng: Variates,
    shadow: Shadow,
    now: Time,
    area: u64,
    capacity: u64,
    owners: u32,
    may_wait: usize,
    shared: bool,
    promised: bool,
    next_id: u64,
    /// End of the last write; `None` when the order does not combine writes.
    written_to: Option<u64>,
    /// Applications from now on accept all offers and take all data.
    willing: bool,
}

impl Storm<'_> {
    /// Runs the storm.
    ///
    /// # Errors
    /// A profile cannot be compiled.
    pub fn run(&self) -> Result<Tally, SimError> {
        let fail = |p: &Profile| {
            let name = p.name.clone();
            move |source| SimError::Model { name, source }
        };
        let mut rng = Variates::new(self.seed, 1);
        let faults = if self.faults { faults(self.area, self.calls, &mut rng) } else { vec![] };
        let config = DriveConfig::default().with_seed(self.seed).with_faults(faults);
        let drive = Drive::new(self.profile, config).map_err(fail(self.profile))?;
        let model = Model::new(self.belief).map_err(fail(self.belief))?;
        let capacity = drive.capacity().min(model.geometry.capacity());
        let limits =
            TaskLimits { sessions: 6, tasks: 48, ranges: 160, bytes: 256 << 10, region_bytes: 1 << 20, events: 96 };
        let fill = Some(FillConfig { limits, ..self.fill.clone() });
        let config = Config::new(self.order).with_outstanding(AT_DRIVE).with_capacity(self.capacity).with_fill(fill);
        let mut core = Core::new(config, model).admitting(&self.admit);
        if let Some(promises) = &self.promises {
            core = core.guaranteeing(promises);
        }
        let mut run = Run {
            shadow: Shadow::new(self.area.min(capacity), limits),
            core,
            drive,
            rng,
            now: Time::ZERO,
            area: self.area.min(capacity),
            capacity,
            owners: self.owners.max(1),
            may_wait: self.capacity,
            shared: self.admit != Policy::None,
            promised: self.promises.is_some(),
            next_id: 0,
            written_to: self.order.looks_ahead().then_some(0),
            willing: false,
        };
        run.shadow.tally.bytes.0 = run.bytes();
        while run.shadow.tally.calls < self.calls && run.shadow.tally.wrong < 100 {
            run.call();
            run.pause();
        }
        run.calm();
        Ok(run.shadow.tally)
    }
}

/// Faults of every kind, all over the area and the expected duration of the calls.
fn faults(area: u64, calls: u64, rng: &mut Variates) -> Vec<Fault> {
    let lasts = PAUSE.0 * calls * 2;
    let mut all = vec![];
    for _ in 0..12 {
        all.push(Fault::Unreadable { lbn: rng.below(area - 4), count: 1 + rng.below(3) });
        all.push(Fault::Slow { lbn: rng.below(area - 40), count: 40, turns: 1 + rng.below(3) as u32 });
        all.push(Fault::Grown { lbn: rng.below(area), at: Time(rng.below(lasts)) });
        all.push(Fault::Hang { at: Time(rng.below(lasts)), takes: Dur::from_ms(50 + rng.below(2_000)) });
    }
    all
}

impl Run {
    fn bytes(&self) -> usize {
        self.core.freeblock().map_or(0, |r| r.bytes())
    }

    /// Makes one call by a random application.
    fn call(&mut self) {
        self.shadow.tally.calls += 1;
        if self.shared && self.rng.below(4) == 0 {
            self.share();
        }
        if self.promised && self.rng.below(32) == 0 {
            self.stream();
            self.drain();
        }
        match self.rng.below(100) {
            0..=44 => self.foreground(),
            45..=48 => self.open(),
            49..=66 => self.register(),
            67..=71 => self.abort(),
            72..=76 => self.promote(),
            77..=81 => self.suspend(true),
            82..=89 => self.suspend(false),
            90 => self.close(),
            91..=94 => self.window(),
            95..=98 => self.take(),
            _ if self.rng.below(2) == 0 => self.rate(),
            _ => self.priority(),
        }
        self.drain();
    }

    fn foreground(&mut self) {
        self.next_id += 1;
        let (kind, lbn, count) = match self.rng.below(20) {
            0 => (Kind::Flush, 0, 0),
            1..=9 => {
                let count = 1 + self.rng.below(24);
                (Kind::Read, self.rng.below(self.area - count), count as u32)
            }
            10..=14 => {
                let count = 1 + self.rng.below(24);
                (Kind::Write, self.rng.below(self.area - count), count as u32)
            }
            // Far away and never written.
            _ if self.capacity > 2 * self.area => {
                let far = self.capacity - self.area - 16;
                (Kind::Read, self.area + self.rng.below(far), 16)
            }
            _ => (Kind::Read, self.rng.below(self.area - 16), 16),
        };
        let id = self.next_id;
        // Applications, and a cache that writes asynchronously.
        let (sync, owner) = (!id.wrapping_mul(7).is_multiple_of(4), (id % u64::from(self.owners)) as u32);
        // A dropped write is not written, which the model of sector contents does not support.
        let kind = if self.is_stream(owner) && kind == Kind::Write { Kind::Read } else { kind };
        let lbn = if kind == Kind::Write { self.written(lbn, count) } else { lbn };
        let request = Request { id, kind, lbn, count, fua: self.rng.below(8) == 0, sync, owner };
        match self.core.submit(request, self.now) {
            Ok(()) => self.shadow.submitted(&request),
            Err(Refused::Full { .. }) => self.shadow.tally.refused += 1,
            Err(e) => self.shadow.tally.complain(format!("{request:?} was refused: {e}")),
        }
    }

    /// Returns the place of a write of `count` sectors: `lbn`, or the end of the last write.
    fn written(&mut self, lbn: u64, count: u32) -> u64 {
        let Some(end) = self.written_to else { return lbn };
        let goes_on = end + u64::from(count) <= self.area && self.rng.below(3) > 0;
        let lbn = if goes_on { end } else { lbn };
        self.written_to = Some(lbn + u64::from(count));
        lbn
    }

    /// Changes the share of an application, whether it is waiting, in service, or unknown, its
    /// latency target, and whether its next request is held back.
    fn share(&mut self) {
        let owner = match self.rng.below(16) {
            0 => ASYNCHRONOUS,
            _ => self.rng.below(u64::from(self.owners) + 1) as u32,
        };
        let class = if self.rng.below(3) == 0 { Class::Idle } else { Class::BestEffort };
        let weight = 1 + self.rng.below(u64::from(MAX_WEIGHT)) as u32;
        self.core.set_share(owner, Share { weight, class });
        // The weight is random, too.
        self.core.set_latency_target(owner, weight.is_multiple_of(3).then(|| Dur::from_ms(u64::from(weight))));
        self.core.set_held_back(owner, weight.is_multiple_of(4), self.now);
        self.shadow.tally.shares += 1;
    }

    /// Advances time: mostly a little, occasionally enough for the disk to become idle.
    fn pause(&mut self) {
        let long = self.rng.below(60) == 0;
        let mean = if long { Dur::from_ms(60) } else { PAUSE };
        let until = self.now + Dur(self.rng.exponential(mean.0));
        while let Some(next) = self.next_event().filter(|t| *t <= until) {
            self.go_to(next);
        }
        self.now = until;
        // The drive's events are taken before the next input.
        self.drive_events();
    }

    fn next_event(&self) -> Option<Time> {
        let wakeup = self.core.next_wakeup();
        let soonest = [self.drive.next_event(), wakeup].into_iter().flatten().min();
        soonest.map(|t| t.max(self.now))
    }

    fn go_to(&mut self, next: Time) {
        let woken = self.core.next_wakeup().filter(|t| *t <= next);
        self.now = next;
        self.drive_events();
        if woken.is_some() {
            self.core.tick(self.now);
            self.drain();
            if self.core.next_wakeup().is_some_and(|t| t <= self.now) {
                self.shadow.tally.complain(format!("woken at {}, it wants to be woken at once again", self.now));
            }
        }
    }

    fn drive_events(&mut self) {
        while let Some(completion) = self.drive.advance(self.now) {
            self.completed(&completion);
        }
    }

    fn completed(&mut self, completion: &Completion) {
        let outcome = self.outcome(completion);
        self.shadow.completed(completion.id, outcome);
        self.core.complete(completion.id, outcome, self.now);
        self.drain();
        self.shadow.all_events_seen();
    }

    /// Returns the outcome of a command. The virtual drive's writes do not fail; where writes are
    /// merged, some are made to fail.
    fn outcome(&mut self, completion: &Completion) -> Outcome {
        let write = self.shadow.command(completion.id).filter(|c| c.kind == Kind::Write);
        match (write, completion.outcome, self.written_to) {
            (Some(c), Outcome::Ok, Some(_)) if self.rng.below(16) == 0 => {
                Outcome::MediaError { lbn: c.lbn + self.rng.below(u64::from(c.count)) }
            }
            (_, outcome, _) => outcome,
        }
    }

    fn drain(&mut self) {
        let mut actions = 0;
        while let Some(action) = self.core.poll() {
            actions += 1;
            assert!(actions < MOST_ACTIONS, "one telling leads to ever more actions, the last {action:?}");
            match action {
                Action::Issue(command) => self.issue(&command),
                Action::Finish(f) => self.finish(&f),
                Action::Background(event) => self.event(&event),
                Action::Expired(request) => self.shadow.given_up(request),
                Action::Overdue(_) => self.shadow.tally.overdue += 1,
            }
        }
        if self.core.next_wakeup().is_some_and(|t| t < self.now) {
            self.shadow.tally.complain(format!("at {} it wants to be woken before that", self.now));
        }
        let (here, may) = (self.shadow.unfinished(), self.may_wait + AT_DRIVE as usize + self.shadow.behind());
        let most = &mut self.shadow.tally.most_here;
        *most = here.max(*most);
        if here > may {
            self.shadow.tally.complain(format!("{here} requests are here, {may} may be"));
        }
    }

    fn issue(&mut self, command: &Command) {
        let (free, promoted) = (self.core.free_sectors(command.id), self.core.is_promoted(command.id));
        let parts = self.core.request_of(command.id).into_iter().chain(self.core.requests_behind(command.id)).collect();
        self.shadow.issued(command, free, promoted, parts);
        if let Err(e) = self.drive.submit(*command, self.now) {
            self.shadow.tally.complain(format!("the drive refused {command:?}: {e}"));
        }
    }

    fn finish(&mut self, finished: &Finished) {
        self.shadow.finished(finished, self.now);
    }

    fn event(&mut self, event: &TaskEvent) {
        if let TaskEvent::GetBuffer { task, range, .. } = *event {
            self.shadow.asked(event);
            // Accept, refuse, or no answer.
            let says = if self.willing { 0 } else { self.rng.below(8) };
            let ready = says < 5;
            if says < 7 {
                match self.core.buffer(task, range, ready, self.now) {
                    Ok(true) if ready => self.shadow.granted(task, range),
                    Ok(true) => {}
                    other => self.shadow.tally.complain(format!("an answer to {event:?} led to {other:?}")),
                }
            }
            return;
        }
        self.shadow.event(event);
        // An application may take delivered data at once.
        if self.willing
            && let TaskEvent::Delivered { session, range, .. } = *event
        {
            let taken = self.core.taken(session, range.count, self.now);
            if taken.is_err() {
                self.shadow.tally.complain(format!("{session:?} could not take: {taken:?}"));
            }
            self.shadow.taken(session, range.count);
        }
    }
}

/// Whether a failed command names one of its own sectors.
fn names_own(outcome: Outcome, lbn: u64, count: u32) -> bool {
    match outcome {
        Outcome::MediaError { lbn: bad } => (lbn..lbn + u64::from(count)).contains(&bad),
        Outcome::Ok => true,
        Outcome::Dead => false,
    }
}
