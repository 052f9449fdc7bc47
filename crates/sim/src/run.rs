//! The event loop in virtual time: a workload, a scheduler, a drive.
//!
//! Three parts say when they want to go on: the drive (a completion, or something inside it), the
//! scheduler (a wake-up) and the workload (a request is due). The loop goes to the soonest of these
//! instants. What happens at one instant happens in this order: first everything the drive
//! completes, in the order it says; then the scheduler's wake-up; then the requests that are due,
//! in the order they became so. After every telling the scheduler is polled until it has nothing
//! more to say; where there are streams, all that is due at the instant is told before. An
//! application that does not think sends its next request the moment it hears that its last one is
//! finished, and the scheduler knows of it before it decides what to send to the drive next (as in
//! the measurements of Lumb 2002, where application and scheduler were one program).
//!
//! Nothing is allocated per request once the tables have grown to the number of requests in flight,
//! but for those that the scheduler has no room for ([`held`]).

use headtime_disk::command::{Command, Outcome, SubmitError};
use headtime_disk::drive::HiddenWork;
use headtime_disk::time::Time;
use headtime_sched::core::Refused;
use headtime_sched::request::{Action, Finished, Request};
use headtime_sched::tasks::TaskError;

use crate::background::{Background, Nothing};
use crate::device::Device;
use crate::observe::Observer;
use crate::stats::{Done, End, Stats};
use crate::workload::{Ask, Workload, WorkloadError};
use headtime_sched::scheduler::Scheduler;

mod held;
mod streams;

use held::Held;

/// When a run ends, whichever comes first. A workload that comes to an end ends the run, too, when
/// all its requests are finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// At this instant; requests that are not finished then do not count.
    pub until: Option<Time>,
    /// When so many requests are finished.
    pub requests: Option<u64>,
    /// When the background work has all it wanted.
    pub until_scanned: bool,
}

/// A clock that the caller reads for us, in nanoseconds from anywhere. The simulator itself has no
/// clock.
pub type WallClock<'a> = &'a dyn Fn() -> u64;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workload cannot go on.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The workload never ends and no limit was given.
    #[error("this workload has no end: give a number of seconds or of requests")]
    Endless,
    /// The scheduler refused a request for another reason than being full.
    #[error("the scheduler refused a request: {0}")]
    Refused(Refused),
    /// A stream cannot be had beside the others.
    #[error("stream \"{name}\": {why}")]
    Stream {
        /// Its name.
        name: String,
        /// Why not, and what is nearest.
        why: String,
    },
    /// The background work was refused.
    #[error("background work: {0}")]
    Background(#[from] TaskError),
    /// The drive refused a command: the scheduler gave it more than its depth, or one beyond its
    /// end.
    #[error("the drive refused a command: {0}")]
    Device(SubmitError),
    /// More is asked for than the drive can ever do.
    #[error("at {now} {held} requests are due for which the scheduler has no room: give fewer, or a shorter run")]
    Overrun {
        /// Requests that are due and not submitted.
        held: usize,
        /// The time.
        now: Time,
    },
    /// Requests are in flight, and nothing will ever happen.
    #[error("{in_flight} requests are in flight at {now} and nothing will happen any more")]
    Stuck {
        /// Requests submitted and not finished.
        in_flight: usize,
        /// The time.
        now: Time,
    },
}

/// Of so many decisions one is timed, and of so many searches for freeblock work.
const TIMED_OF: u64 = 64;

/// A request in flight.
#[derive(Clone, Copy)]
struct Slot {
    ask: Ask,
    sequence: u64,
}

struct Loop<'a, D, S, W: ?Sized, O> {
    device: &'a mut D,
    scheduler: &'a mut S,
    workload: &'a mut W,
    background: &'a mut dyn Background,
    observer: &'a mut O,
    clock: Option<WallClock<'a>>,
    /// With so many searches made the next one is timed. Decisions that are timed in their turn may
    /// all miss the searches of a disk that is mostly idle.
    timed_search: u64,
    stats: Stats,
    now: Time,
    /// By request id. Ids are taken again, latest first, so the table stays as small as the most
    /// requests in flight.
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Commands at the drive, and how many sectors at their front are moved for free: few.
    at_drive: Vec<(Command, u32)>,
    /// Requests that are due and that the scheduler has no room for.
    held: Held,
    next_sequence: u64,
    most_requests: u64,
    /// The run ends when the background work has all it wanted.
    until_scanned: bool,
    /// It ends with the workload's last request, whatever is still wanted in the background.
    ends_with_workload: bool,
    /// What the drive did unseen and has been booked.
    hidden: HiddenWork,
    dead: bool,
}

/// Runs `workload` through `scheduler` on `device` until a limit or its end, and returns what was
/// counted.
///
/// `clock` is read around each decision when given; without it nothing is timed. Everything else in
/// the result depends on the arguments alone.
pub fn run<D: Device, S: Scheduler, W: Workload + ?Sized, O: Observer>(
    device: &mut D,
    scheduler: &mut S,
    workload: &mut W,
    limits: Limits,
    clock: Option<WallClock>,
    observer: &mut O,
) -> Result<Stats, RunError> {
    run_with(device, scheduler, workload, &mut Nothing, limits, clock, observer)
}

/// The same with background work beside it.
pub fn run_with<D: Device, S: Scheduler, W: Workload + ?Sized, O: Observer>(
    device: &mut D,
    scheduler: &mut S,
    workload: &mut W,
    background: &mut dyn Background,
    limits: Limits,
    clock: Option<WallClock>,
    observer: &mut O,
) -> Result<Stats, RunError> {
    let background_ends = limits.until_scanned && background.ends();
    if workload.endless() && limits.until.is_none() && limits.requests.is_none() && !background_ends {
        return Err(RunError::Endless);
    }
    let filled = scheduler.core().is_some_and(|core| core.freeblock().is_some());
    let stats = Stats { decision_ns: clock.map(|_| 0), ..Stats::new(workload.classes()) };
    let mut l = Loop {
        device,
        scheduler,
        workload,
        background,
        observer,
        clock,
        timed_search: if filled { 0 } else { u64::MAX },
        stats,
        now: Time::ZERO,
        slots: Vec::with_capacity(64),
        free: Vec::with_capacity(64),
        at_drive: Vec::with_capacity(32),
        held: Held::default(),
        next_sequence: 0,
        most_requests: limits.requests.unwrap_or(u64::MAX),
        until_scanned: background_ends,
        ends_with_workload: filled && !background_ends && limits.until.is_none(),
        hidden: HiddenWork::default(),
        dead: false,
    };
    let until = limits.until.unwrap_or(Time::NEVER);
    if let Some(core) = l.scheduler.core() {
        l.background.start(core, Time::ZERO)?;
        l.drain()?;
    }
    let end = l.go(until)?;
    l.book_hidden();
    let Loop { now, scheduler, workload, background, mut stats, .. } = l;
    if let Some(p) = scheduler.prediction() {
        stats.prediction = p.clone();
    }
    stats.drive_write_cache = scheduler.write_cache();
    stats.end = end;
    stats.ended_at = if end == End::Time { until } else { now };
    let ended_at = stats.ended_at;
    stats.streams.iter_mut().for_each(|s| s.ended(ended_at));
    if let Some(r) = workload.refusals() {
        stats.refused = r.clone();
    }
    stats.background = background.progress();
    stats.freeblock = scheduler.core().and_then(|core| core.freeblock());
    stats.subset = scheduler.core().filter(|core| core.promised_from().is_some()).map(|core| core.stats().subset);
    stats.peak_rate = scheduler.core().and_then(|core| core.peak_rate());
    Ok(stats)
}

impl<D: Device, S: Scheduler, W: Workload + ?Sized, O: Observer> Loop<'_, D, S, W, O> {
    fn go(&mut self, until: Time) -> Result<End, RunError> {
        if self.most_requests == 0 {
            return Ok(End::Requests);
        }
        loop {
            let device = self.device.next_event();
            let wakeup = self.scheduler.next_wakeup();
            let due = if self.hears() { self.workload.next_due() } else { None };
            let call = self.workload.next_call();
            let soonest = [device, wakeup, due, call].into_iter().flatten().min().unwrap_or(Time::NEVER);
            if soonest == Time::NEVER {
                return if self.in_flight() == 0 && self.held.is_empty() {
                    Ok(if self.scanned() { End::Scanned } else { End::Workload })
                } else {
                    Err(RunError::Stuck { in_flight: self.in_flight(), now: self.now })
                };
            }
            if soonest > until {
                return Ok(End::Time);
            }
            // A part that wants to go on at an instant that has passed goes on now.
            self.now = self.now.max(soonest);
            if device.is_some_and(|t| t <= self.now) {
                self.drive_events()?;
            }
            if wakeup.is_some_and(|t| t <= self.now) {
                self.scheduler.tick(self.now);
                self.decide()?;
            }
            if self.dead {
                return Ok(End::DeadDrive);
            }
            if self.stats.requests >= self.most_requests {
                return Ok(End::Requests);
            }
            if self.scanned() {
                return Ok(End::Scanned);
            }
            if self.ends_with_workload
                && self.workload.next_due().is_none()
                && self.in_flight() == 0
                && self.held.is_empty()
            {
                return Ok(End::Workload);
            }
            if call.is_some_and(|t| t <= self.now) {
                // All that begin now are there before anything is decided.
                while self.workload.next_call().is_some_and(|t| t <= self.now) {
                    self.stream_call()?;
                }
                self.decide()?;
                continue;
            }
            // Asked again: what became due with a completion of this very instant has been told
            // already.
            if self.hears() && self.workload.next_due().is_some_and(|t| t <= self.now) {
                let ask = self.workload.take()?;
                self.submit(ask)?;
            }
        }
    }

    fn scanned(&self) -> bool {
        self.until_scanned && self.background.is_done()
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn drive_events(&mut self) -> Result<(), RunError> {
        while let Some(completion) = self.device.advance(self.now) {
            self.book_hidden();
            let at = self
                .at_drive
                .iter()
                .position(|(c, _)| c.id == completion.id)
                .expect("the drive completed a command it was never given");
            let (command, free) = self.at_drive.swap_remove(at);
            if let Some(media) = &completion.media {
                self.stats.head.record_with(media, free, command.count);
            }
            self.observer.completed(&command, free, &completion);
            self.scheduler.complete(completion.id, completion.outcome, self.now);
            self.decide()?;
            // The request limit is exact: nothing is counted beyond it.
            if self.dead || self.stats.requests >= self.most_requests {
                return Ok(());
            }
        }
        self.tell_held()
    }

    /// What the drive did unseen since the last time is booked to the background when everything at
    /// the drive is.
    fn book_hidden(&mut self) {
        let all = self.device.hidden_work();
        if all != self.hidden {
            let more = all.since(&self.hidden);
            let free = !self.at_drive.is_empty() && self.at_drive.iter().all(|(c, free)| *free == c.count);
            self.stats.head.add_hidden(&more, free);
            self.hidden = all;
        }
    }

    /// Submits a request and does what the scheduler wants done then.
    fn submit(&mut self, ask: Ask) -> Result<(), RunError> {
        self.tell(ask)?;
        self.decide()
    }

    /// Does what the scheduler wants done. What is promised to streams is promised to requests that
    /// are there when their period begins: all that are due at this instant are told before
    /// anything is decided.
    fn decide(&mut self) -> Result<(), RunError> {
        if !self.stats.streams.is_empty() {
            self.tell_what_is_due()?;
            self.streams_have_ended();
        }
        self.drain()
    }

    /// Whether there was a place for it.
    fn try_to_tell(&mut self, ask: Ask) -> Result<bool, RunError> {
        assert!(ask.due <= self.now, "a request due at {} was told at {}", ask.due, self.now);
        let slot = Slot { ask, sequence: self.next_sequence };
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        let request = Request {
            id: u64::from(id),
            kind: ask.kind,
            lbn: ask.lbn,
            count: ask.count,
            fua: ask.fua,
            sync: ask.sync,
            owner: ask.owner,
        };
        match self.scheduler.submit(request, self.now) {
            Ok(()) => {
                self.next_sequence += 1;
                if !self.stats.streams.is_empty()
                    && let Some(account) = self.stats.stream(ask.owner)
                {
                    account.asked += 1;
                }
                let in_flight = self.in_flight();
                if in_flight > self.stats.most_waiting {
                    self.stats.most_waiting = in_flight;
                }
                Ok(true)
            }
            Err(Refused::Full { .. }) if self.in_flight() > 1 => {
                self.free.push(id);
                Ok(false)
            }
            Err(e) => Err(RunError::Refused(e)),
        }
    }

    /// Asks the scheduler until it has nothing more to say.
    fn drain(&mut self) -> Result<(), RunError> {
        loop {
            // Reading a clock costs as much as a decision: every so many are timed.
            let in_turn = self.stats.decisions.is_multiple_of(TIMED_OF);
            let searches = self.scheduler.searches();
            let action = match self.clock.filter(|_| in_turn || searches >= self.timed_search) {
                None => self.scheduler.poll(),
                Some(clock) => {
                    let from = clock();
                    let action = self.scheduler.poll();
                    if matches!(action, Some(Action::Issue(_))) {
                        let took = clock().saturating_sub(from);
                        let all = self.scheduler.searches();
                        if all > searches {
                            self.stats.search_ns = Some(self.stats.search_ns.unwrap_or(0) + took);
                            self.stats.timed_searches += 1;
                            self.timed_search = all + TIMED_OF;
                        }
                        if in_turn {
                            self.stats.decision_ns = self.stats.decision_ns.map(|ns| ns + took);
                            self.stats.timed_decisions += 1;
                        }
                    }
                    action
                }
            };
            match action {
                None => return Ok(()),
                Some(Action::Issue(command)) => {
                    self.stats.decisions += 1;
                    let free = self.scheduler.free_sectors(command.id);
                    self.at_drive.push((command, free));
                    self.observer.issued(&command, self.now);
                    if !self.stats.streams.is_empty()
                        && self.scheduler.request_of(command.id).is_some()
                        && let Some(sizes) = self.scheduler.core().and_then(|core| core.active_sizes())
                    {
                        self.observer.decided(sizes, self.now);
                    }
                    self.device.submit(command, self.now).map_err(RunError::Device)?;
                    self.book_hidden();
                }
                Some(Action::Finish(f)) => {
                    self.finish(&f);
                    self.tell_what_is_due()?;
                }
                Some(Action::Background(event)) => {
                    let core = self.scheduler.core().expect("only a core has background work");
                    self.background.event(&event, core, self.now)?;
                    self.observer.background(&event, self.now);
                }
                Some(Action::GivenUp(request)) => {
                    self.given_up(request);
                    self.tell_what_is_due()?;
                }
                Some(Action::Overdue(overdue)) => {
                    self.stats.overdue_commands += 1;
                    self.stats.overdue.get_or_insert(overdue);
                }
            }
        }
    }

    /// A request is finished: what its application, or anyone else, asks for at this very instant
    /// is told at once.
    fn tell_what_is_due(&mut self) -> Result<(), RunError> {
        while self.hears()
            && !self.dead
            && self.stats.requests < self.most_requests
            && self.workload.next_due().is_some_and(|t| t <= self.now)
        {
            let ask = self.workload.take()?;
            self.tell(ask)?;
        }
        Ok(())
    }

    fn finish(&mut self, f: &Finished) {
        let Slot { ask, sequence } = self.slots[f.request as usize];
        self.free.push(f.request as u32);
        if f.outcome == Outcome::Dead {
            self.dead = true;
        }
        // Two completions at one instant: the run may be over after the first.
        if self.stats.requests >= self.most_requests {
            return;
        }
        let done = Done {
            sequence,
            owner: ask.owner,
            class: ask.class,
            kind: ask.kind,
            lbn: ask.lbn,
            count: ask.count,
            due: ask.due,
            submitted: f.submitted,
            dispatched: f.dispatched,
            done: f.done,
            outcome: f.outcome,
            prediction: f.prediction,
        };
        self.stats.record(&done);
        self.observer.finished(&done);
        self.workload.completed(&ask, self.now);
    }
}

#[cfg(test)]
mod tests;
