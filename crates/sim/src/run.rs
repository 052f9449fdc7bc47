//! The event loop in virtual time, of a workload, a scheduler and a drive.
//!
//! Each of the three has a next event: the drive (a completion or internal event), the scheduler (a
//! wake-up) and the workload (a due request). The loop advances to the earliest. Events at one
//! instant are processed in this order: first all completions of the drive, in its order; then the
//! scheduler's wake-up; then due requests, in the order in which they became due. After each input
//! the scheduler is polled until it has no more actions; with streams, all that is due at the
//! instant is submitted first. An application without think time submits its next request at the
//! instant of its last completion, and the scheduler receives it before it decides which command to
//! dispatch next (as in the measurements of Lumb 2002, where application and scheduler were one
//! program).
//!
//! Nothing is allocated per request once the tables have grown to the number of requests in flight,
//! except for requests that the scheduler has no room for (`held`).

use headtime_disk::{Command, HiddenWork, SubmitError, Time};
use headtime_sched::{Refused, Request, TaskError};

use crate::background::{Background, Nothing};
use crate::device::Device;
use crate::observe::Observer;
use crate::stats::{End, Stats};
use crate::workload::{Ask, Workload, WorkloadError};
use headtime_sched::Scheduler;

mod actions;
mod held;
mod streams;

use held::Held;

/// End of a run, at the first limit reached. A finite workload also ends the run when all its
/// requests are finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// End time; requests not finished by then do not count.
    pub until: Option<Time>,
    /// Number of finished requests.
    pub requests: Option<u64>,
    /// End when the background work is complete.
    pub until_scanned: bool,
}

/// A clock read on behalf of the simulator, in nanoseconds from any origin. The simulator itself
/// has none.
pub type WallClock<'a> = &'a dyn Fn() -> u64;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workload failed.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The workload is endless and there is no limit.
    #[error("this workload has no end: give a number of seconds or of requests")]
    Endless,
    /// The scheduler refused a request for a reason other than being full.
    #[error("the scheduler refused a request: {0}")]
    Refused(Refused),
    /// A stream cannot be admitted beside the others.
    #[error("stream \"{name}\": {why}")]
    Stream {
        /// Its name.
        name: String,
        /// The reason, and the nearest possible stream.
        why: String,
    },
    /// The background work was refused.
    #[error("background work: {0}")]
    Background(#[from] TaskError),
    /// The drive refused a command: the scheduler exceeded its depth or its capacity.
    #[error("the drive refused a command: {0}")]
    Device(SubmitError),
    /// The offered load permanently exceeds the drive's rate.
    #[error("at {now} {held} requests are due for which the scheduler has no room: give fewer, or a shorter run")]
    Overrun {
        /// Due requests that are not submitted.
        held: usize,
        /// The time.
        now: Time,
    },
    /// Requests are in flight, but no event is pending.
    #[error("{in_flight} requests are in flight at {now} and nothing will happen any more")]
    Stuck {
        /// Requests submitted but not finished.
        in_flight: usize,
        /// The time.
        now: Time,
    },
}

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
    /// The number of searches at which the next one is timed. Timed decisions alone may miss all
    /// searches of a mostly idle disk.
    timed_search: u64,
    stats: Stats,
    now: Time,
    /// By request ID. IDs are reused, latest first, so the table is no larger than the maximum
    /// number of requests in flight.
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Commands at the drive, with the number of free sectors at their front; few entries.
    at_drive: Vec<(Command, u32)>,
    /// Due requests for which the scheduler has no room.
    held: Held,
    next_sequence: u64,
    most_requests: u64,
    /// End the run when the background work is complete.
    until_scanned: bool,
    /// End it with the workload's last request, whatever background work remains.
    ends_with_workload: bool,
    /// Unreported work of the drive that has been accounted for.
    hidden: HiddenWork,
    dead: bool,
}

/// Runs `workload` through `scheduler` on `device` until a limit or its end; returns the
/// statistics.
///
/// `clock`, if given, is read around timed decisions; without it nothing is timed. Everything else
/// in the result depends on the arguments alone.
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

/// Does the same with background work.
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
    workload.ended(ended_at);
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
            let due = if self.accepts_requests() { self.workload.next_due() } else { None };
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
            // An event in the past is processed now.
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
            if self.observer.stops() {
                return Ok(End::Stopped);
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
                // All streams that begin now are opened before any decision.
                while self.workload.next_call().is_some_and(|t| t <= self.now) {
                    self.stream_call()?;
                }
                self.decide()?;
                continue;
            }
            // Checked again: a request that became due with a completion at this instant has been
            // submitted already.
            if self.accepts_requests() && self.workload.next_due().is_some_and(|t| t <= self.now) {
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
            // The request limit is exact: later requests are not counted.
            if self.dead || self.stats.requests >= self.most_requests {
                return Ok(());
            }
        }
        self.enqueue_held()
    }

    /// Accounts for the drive's unreported work since the last call, as background work if
    /// everything at the drive is.
    fn book_hidden(&mut self) {
        let all = self.device.hidden_work();
        if all != self.hidden {
            let more = all.since(&self.hidden);
            let free = !self.at_drive.is_empty() && self.at_drive.iter().all(|(c, free)| *free == c.count);
            self.stats.head.add_hidden(&more, free);
            self.hidden = all;
        }
    }

    /// Submits a request and executes the scheduler's actions.
    fn submit(&mut self, ask: Ask) -> Result<(), RunError> {
        self.enqueue(ask)?;
        self.decide()
    }

    /// Executes the scheduler's actions. Guarantees apply to requests that are present when their
    /// period begins, so all that are due at this instant are submitted before any decision.
    fn decide(&mut self) -> Result<(), RunError> {
        if !self.stats.streams.is_empty() {
            self.enqueue_due()?;
            self.streams_have_ended();
        }
        self.drain()
    }

    /// Submits a request; returns whether there was room.
    fn try_to_enqueue(&mut self, ask: Ask) -> Result<bool, RunError> {
        assert!(ask.due <= self.now, "a request due at {} was submitted at {}", ask.due, self.now);
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

    /// After a completion, submits what became due at this instant, for its application or any
    /// other.
    fn enqueue_due(&mut self) -> Result<(), RunError> {
        while self.accepts_requests()
            && !self.dead
            && self.stats.requests < self.most_requests
            && self.workload.next_due().is_some_and(|t| t <= self.now)
        {
            let ask = self.workload.take()?;
            self.enqueue(ask)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
