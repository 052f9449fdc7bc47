//! The machine and the scheduler beneath it, as a scheduler: client requests go to the machine, the
//! machine's calls go to the scheduler beneath, and the machine's answers complete the requests. It
//! handles ranges only, no data.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range as Span;

use headtime_disk::{Dur, Kind, Outcome, Time};

use super::policy::{QUIET, TICK};
use super::{Ask, Call, Counts, Event, Limits, Machine, Traffic};
use crate::admit::ASYNCHRONOUS;
use crate::core::{Core, Refused};
use crate::fill::report::FillReport;
use crate::request::{Action, Finished, Prediction, Request};
use crate::scheduler::Scheduler;
use crate::stats::PredictionStats;
use crate::tasks::{SessionId, TaskEvent as Told, TaskId, TaskRange, TaskSpec};

/// Priority of destaging: its share of free work is that of a session of priority 1.
pub(crate) const PRIORITY: u32 = 1;
/// Without FILL, how long the disk is idle before a block is written.
const IDLE: Dur = Dur(TICK.0 * QUIET as u64);
/// The owner of the cache's own writes and of flushes: a synchronous application with random
/// requests. Asynchronous work has its own turns under BFQ, for which all others would wait.
const CACHE: u32 = ASYNCHRONOUS - 1;

/// Traffic without data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranges;

impl Traffic for Ranges {
    /// Bytes.
    type Data = u64;
    /// The request's ID.
    type Ticket = u64;
    type Fault = Outcome;

    fn len(data: &u64) -> u64 {
        *data
    }
    fn part(_: &u64, bytes: Span<usize>) -> u64 {
        bytes.len() as u64
    }
    fn copy(_: &u64, bytes: Span<usize>) -> u64 {
        bytes.len() as u64
    }
    fn join(parts: &[&u64]) -> u64 {
        parts.iter().copied().sum()
    }
}

/// A pending request of a client.
#[derive(Clone, Copy, Debug)]
struct Asked {
    submitted: Time,
    /// When the last of its own commands was sent, and its prediction; neither for a request that
    /// the cache answers.
    sent: Option<(Time, Option<Prediction>)>,
}

/// A write-back cache in front of a scheduler.
#[derive(Debug)]
pub struct Front<S> {
    under: S,
    machine: Machine<Ranges>,
    sector: u64,
    capacity: usize,
    session: Option<SessionId>,
    /// Tasks of the session: the machine's IDs by the core's.
    names: BTreeMap<TaskId, u64>,
    asked: BTreeMap<u64, Asked>,
    /// Bytes of the machine's own pending requests.
    own: BTreeMap<u64, u64>,
    finished: VecDeque<Finished>,
    now: Time,
    next_tick: Time,
    /// When the last request of a client ended.
    quiet_since: Time,
}

impl<S: Scheduler> Front<S> {
    /// Creates an empty cache in front of a new scheduler, for sectors of `sector_bytes` and at
    /// most `capacity` requests at a time.
    pub fn new(mut under: S, sector_bytes: u32, limits: Limits, capacity: usize) -> Front<S> {
        let session = under.core().and_then(|core| core.open(PRIORITY, Time::ZERO).ok());
        let mut machine = Machine::new(sector_bytes, limits, session.is_some());
        machine.connected();
        Front {
            under,
            machine,
            sector: u64::from(sector_bytes),
            capacity,
            session,
            names: BTreeMap::new(),
            asked: BTreeMap::new(),
            own: BTreeMap::new(),
            finished: VecDeque::new(),
            now: Time::ZERO,
            next_tick: Time::ZERO + TICK,
            quiet_since: Time::ZERO,
        }
    }

    /// Returns the counters of the cache.
    pub fn counts(&self) -> Counts {
        self.machine.counts()
    }

    fn advance_to(&mut self, now: Time) {
        self.now = now;
        // While nothing is dirty no ticks are due.
        if !self.machine.wants_ticks() {
            self.next_tick = self.next_tick.max(now);
        }
        while self.next_tick <= now {
            self.next_tick += TICK;
            self.machine.tick();
        }
    }

    /// Returns whether, without FILL, no client has had a request for [`IDLE`], and nothing is
    /// being written.
    fn is_quiet(&self) -> bool {
        self.session.is_none() && self.asked.is_empty() && self.own.is_empty() && self.now >= self.quiet_since + IDLE
    }

    /// Passes the machine's calls to the scheduler, as far as there is room.
    fn say(&mut self) {
        while let Some(call) = self.machine.next_call() {
            if let Err(call) = self.says(call) {
                self.machine.put_back(call);
                break;
            }
        }
        while let Some((request, answer)) = self.machine.next_answer() {
            let Some(asked) = self.asked.remove(&request) else { continue };
            let (dispatched, prediction) = asked.sent.unwrap_or((self.now, None));
            let outcome = answer.err().unwrap_or(Outcome::Ok);
            self.quiet_since = self.now;
            self.finished.push_back(Finished {
                request,
                outcome,
                submitted: asked.submitted,
                dispatched,
                done: self.now,
                due: None,
                prediction,
            });
        }
    }

    fn says(&mut self, call: Call<Ranges>) -> Result<(), Call<Ranges>> {
        let own = |kind, range: TaskRange| Request {
            id: 0,
            kind,
            lbn: range.lbn,
            count: range.count as u32,
            fua: kind == Kind::Write,
            sync: true,
            owner: CACHE,
        };
        let none = TaskRange { lbn: 0, count: 0 };
        let (token, request) = match call {
            Call::Read { token, range, owner } => (token, Request { owner, ..own(Kind::Read, range) }),
            Call::Write { token, range, .. } => (token, own(Kind::Write, range)),
            Call::Flush { token } => (token, own(Kind::Flush, none)),
            Call::Register { task, ref ranges, unit } => {
                let spec = TaskSpec { kind: Kind::Write, ranges: ranges.clone(), blksize: unit, min_pickup: unit };
                let (session, now) = (self.session, self.now);
                let core = self.under.core().zip(session);
                match core.and_then(|(core, session)| core.register(session, &spec, now).ok()) {
                    Some(id) => _ = self.names.insert(id, task),
                    None => self.machine.event(Event::Refused { task }),
                }
                return Ok(());
            }
            Call::Data { .. } => return Ok(()),
            Call::Free(free) => {
                if let Some((core, session)) = self.under.core().zip(self.session) {
                    // The session is open as long as `self` exists.
                    let _ = if free { core.resume(session, self.now) } else { core.suspend(session, self.now) };
                }
                return Ok(());
            }
        };
        match self.under.submit(Request { id: token, ..request }, self.now) {
            Ok(()) => {
                self.own.insert(token, u64::from(request.count) * self.sector);
                Ok(())
            }
            Err(Refused::Full { .. }) if !self.own.is_empty() => Err(call),
            Err(_) => {
                let answer = Err((Outcome::MediaError { lbn: request.lbn }, "it was refused".to_owned()));
                self.machine.event(Event::Answered { token, answer });
                Ok(())
            }
        }
    }

    /// Handles the completion of a request of the machine.
    fn answered(&mut self, f: &Finished) {
        let Some(bytes) = self.own.remove(&f.request) else { return };
        if let Some(request) = self.machine.reads_for(f.request)
            && let Some(asked) = self.asked.get_mut(request)
        {
            asked.sent = Some((f.dispatched, f.prediction));
        }
        let answer = match f.outcome {
            Outcome::Ok => Ok(bytes),
            outcome => Err((outcome, format!("{outcome:?}"))),
        };
        self.machine.event(Event::Answered { token: f.request, answer });
    }

    /// Handles an event of a task. Returns it when the task is not the machine's.
    fn background(&mut self, advance_to: Told) -> Option<Told> {
        if Some(advance_to.session()) != self.session {
            return Some(advance_to);
        }
        if let (Told::GetBuffer { task, range, .. }, Some(core)) = (advance_to, self.under.core()) {
            // The data of registered tasks is always available.
            let _ = core.buffer(task, range, true, self.now);
            return None;
        }
        let task = *self.names.get(&advance_to.task())?;
        match advance_to {
            Told::Written { range, .. } => self.machine.event(Event::Written { task, range }),
            Told::Superseded { range, .. } => self.machine.event(Event::NotWritten { task, range }),
            Told::Failed { range, .. } => self.machine.event(Event::Failed { task, range }),
            Told::Done { task: id, .. } => {
                self.names.remove(&id);
                self.machine.event(Event::Done { task });
            }
            Told::GetBuffer { .. } | Told::Delivered { .. } => {}
        }
        None
    }
}

impl<S: Scheduler> Scheduler for Front<S> {
    fn submit(&mut self, request: Request, now: Time) -> Result<(), Refused> {
        self.advance_to(now);
        if self.asked.len() >= self.capacity {
            return Err(Refused::Full { capacity: self.capacity });
        }
        self.asked.insert(request.id, Asked { submitted: now, sent: None });
        let Request { id, kind, lbn, count, fua, owner, .. } = request;
        self.machine.ask(Ask { kind, lbn, count, fua, owner, data: u64::from(count) * self.sector, ticket: id });
        self.say();
        Ok(())
    }

    fn complete(&mut self, command: u64, outcome: Outcome, now: Time) {
        self.advance_to(now);
        self.under.complete(command, outcome, now);
    }

    fn tick(&mut self, now: Time) {
        self.advance_to(now);
        self.under.tick(now);
    }

    fn poll(&mut self) -> Option<Action> {
        loop {
            self.say();
            if let Some(finished) = self.finished.pop_front() {
                return Some(Action::Finish(finished));
            }
            let Some(action) = self.under.poll() else {
                if self.is_quiet() && self.machine.use_idle_time() {
                    continue;
                }
                return None;
            };
            match action {
                Action::Finish(f) => self.answered(&f),
                Action::Background(advance_to) => {
                    if let Some(advance_to) = self.background(advance_to) {
                        return Some(Action::Background(advance_to));
                    }
                }
                action => return Some(action),
            }
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        let tick = self.machine.wants_ticks().then_some(self.next_tick);
        [self.under.next_wakeup(), tick].into_iter().flatten().min()
    }

    fn prediction(&self) -> Option<&PredictionStats> {
        self.under.prediction()
    }
    fn write_cache(&self) -> Option<bool> {
        self.under.write_cache()
    }
    fn free_sectors(&self, command: u64) -> u32 {
        self.under.free_sectors(command)
    }
    fn request_of(&self, command: u64) -> Option<u64> {
        self.under.request_of(command)
    }
    fn requests_behind(&self, command: u64) -> Vec<u64> {
        self.under.requests_behind(command)
    }
    fn searches(&self) -> u64 {
        self.under.searches()
    }
    fn freeblock(&self) -> Option<FillReport> {
        self.under.freeblock()
    }
    fn core(&mut self) -> Option<&mut Core> {
        self.under.core()
    }
}
