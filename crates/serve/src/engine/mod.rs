//! The engine: one thread that owns the core and the device and passes messages to the core and
//! actions to the device.
//!
//! It does in real time what the simulator's loop does in virtual time. Each round processes
//! completions first, then client requests, then timers, and then polls the core until it has no
//! more actions. Between rounds it sleeps until a message arrives or until shortly before the next
//! known event, for which it busy-waits ([`crate::clock::SPIN`]).
//!
//! * this file: the loop
//! * [`inbox`]: the message queue; [`messages`]: the messages; [`handle`]: questions to the engine
//! * `queue_order`: when messages, limited requests and calls are processed
//! * `submitting`: how a client's request becomes requests of the core
//! * [`requests`]: foreground requests and their data; [`completed`]: completed commands;
//!   [`limited`]: requests that wait for the limit of their export; [`pieces`]: large requests
//! * [`background`]: freeblock sessions and their data; [`session_event`]: events for clients;
//!   [`staged`]: data to be written; [`paced`]: calls that take long
//! * [`layouts`]: reorganised exports; [`layout_call`]: calls about them
//! * [`image`]: data that must be read before it is overwritten
//! * [`streams`]: calls about streams
//! * [`gauges`]: the counters; [`snapshot`]: their values at one moment

pub(crate) mod background;
pub(crate) mod completed;
pub(crate) mod gauges;
pub(crate) mod handle;
pub(crate) mod image;
pub mod inbox;
pub mod layout_call;
pub(crate) mod layouts;
pub(crate) mod limited;
pub mod messages;
pub(crate) mod paced;
pub(crate) mod pieces;
pub(crate) mod requests;
pub mod session_event;
pub mod snapshot;
pub(crate) mod staged;
pub mod streams;

mod queue_order;
mod submitting;
mod task;

use std::io;

use bytes::{Bytes, BytesMut};
use headtime_disk::{Command, Dur, Kind, Outcome, Time};
use headtime_sched::{Action, Scheduler, TaskRange};

use crate::clock::{Clock, Timer};
use crate::device::{Device, Done, Fault, bytes_of};
use crate::record::Recorder;
use background::Background;
use completed::CompletedCommand;
use gauges::Gauges;
use inbox::Inbox;
use layouts::Layouts;
use limited::Limited;
use messages::{Answer, EngineMessage, SessionCall, Submission};
use paced::Pace;
use pieces::Pieces;
use requests::Requests;

/// Messages per round, so that a flood of them does not delay completions.
const MAX_A_ROUND: usize = 32;
/// The time limit for shutdown. Commands that the device has not completed by then are abandoned.
const LONGEST_END: Dur = Dur::from_secs(5);

/// A command in flight.
#[derive(Clone, Copy, Debug)]
struct AtDevice {
    command: Command,
    sent: Time,
}

/// How the engine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All requests completed, and the device was flushed.
    Drained,
    /// The device did not finish in time: this number of requests failed.
    GivenUp(usize),
}

/// The engine.
#[derive(Debug)]
pub struct Engine<S, D, T = Clock> {
    clock: T,
    core: S,
    device: D,
    sector_bytes: u32,
    inbox: Inbox<EngineMessage>,
    limited: Limited,
    requests: Requests,
    pieces: Pieces,
    layouts: Layouts,
    background: Background,
    gauges: Gauges,
    recorder: Option<Recorder>,
    at_device: Vec<AtDevice>,
    /// When pieces of long calls are carried out.
    pace: Pace,
    /// The next message of the control interface's clients, and the earliest time for their next
    /// call.
    next_interface_message: Option<EngineMessage>,
    calls_from: Time,
    /// Set during shutdown: the deadline.
    ends_by: Option<Time>,
    flushed: bool,
}

impl<S: Scheduler, D: Device, T: Timer> Engine<S, D, T> {
    /// Creates an engine that receives messages through `inbox`.
    pub fn new(clock: T, core: S, device: D, inbox: Inbox<EngineMessage>) -> Engine<S, D, T> {
        let sector_bytes = device.sector_bytes();
        Engine {
            clock,
            core,
            sector_bytes,
            device,
            inbox,
            limited: Limited::new(sector_bytes),
            requests: Requests::default(),
            pieces: Pieces::default(),
            layouts: Layouts::default(),
            background: Background::new(sector_bytes),
            gauges: Gauges::new(),
            recorder: None,
            at_device: Vec::new(),
            pace: Pace::default(),
            next_interface_message: None,
            calls_from: Time::ZERO,
            ends_by: None,
            flushed: false,
        }
    }

    /// Records the requests of clients.
    pub fn recording(self, recorder: Option<Recorder>) -> Engine<S, D, T> {
        Engine { recorder, ..self }
    }

    /// Runs until it receives [`EngineMessage::End`]. Fails if the thread cannot wait.
    pub fn run(mut self) -> io::Result<End> {
        self.clock.prepare();
        loop {
            self.round();
            if let Some(end) = self.end() {
                self.background.end();
                return Ok(end);
            }
            self.wait()?;
        }
    }

    /// Does all work that is due.
    fn round(&mut self) {
        // The clock is read again each time: handling the last completion took time, and commands
        // were submitted to the device at later times.
        loop {
            let now = self.clock.now();
            let Some(done) = self.device.poll(now) else { break };
            self.completed(done, now);
        }
        let now = self.clock.now();
        // The core is polled only after a change: each poll may search a gap.
        let mut changed = false;
        for _ in 0..MAX_A_ROUND {
            let Some(message) = self.inbox.take() else { break };
            self.handle(message, now);
            changed = true;
        }
        changed |= self.release_limited(now);
        if self.core.next_wakeup().is_some_and(|t| t <= now) {
            self.core.tick(now);
            changed = true;
        }
        changed |= self.handle_interface_requests(now);
        let paced = self.continue_long_call(now);
        if changed || paced {
            self.drain(now);
        }
        self.handle_interface_calls(now);
        if paced {
            // Work that follows from a piece of a long call counts as its time.
            self.pace.took(now, self.clock.now().saturating_since(now));
        }
    }

    fn handle(&mut self, message: EngineMessage, now: Time) {
        match message {
            EngineMessage::Submit(submission) if self.ends_by.is_some() => submission.answer(Err(Fault::Gone)),
            EngineMessage::Submit(submission) => {
                let owner = submission.owner;
                let passed = self.limited.arrived(submission, now);
                if self.limited.has_line(owner) {
                    self.tell_held_back(owner, now);
                }
                if let Some(submission) = passed {
                    self.submit(submission, now);
                }
            }
            // The caller learns from the dropped reply that the engine ends.
            EngineMessage::Session(call) if self.ends_by.is_some() && call.begins() => {}
            EngineMessage::Session(call) => {
                if let SessionCall::Close { session, .. } = &call {
                    self.layouts.closed(*session);
                }
                match self.core.core() {
                    Some(core) => self.background.call(call, core, now),
                    None => call.refuse_without_core(),
                }
            }
            EngineMessage::Layout(call) => {
                let (requests, at_device) = (&self.requests, &self.at_device);
                let released = self.layouts.call(call, || {
                    let commands = at_device.iter().map(|a| a.command);
                    let commands = commands.map(|c| (c.kind, TaskRange { lbn: c.lbn, count: u64::from(c.count) }));
                    requests.places().chain(commands).collect()
                });
                released.into_iter().for_each(|submission| self.submit(submission, now));
            }
            EngineMessage::Stream(call) if self.ends_by.is_some() && call.begins() => {}
            EngineMessage::Stream(call) => call.carry_out(self.core.core(), now),
            EngineMessage::Settings(all) => {
                // A server that ends has no limits any more.
                if self.ends_by.is_none() {
                    self.limited.set(all.iter().map(|s| s.limit), now);
                }
                if let Some(core) = self.core.core() {
                    for (owner, settings) in (0..).zip(&all) {
                        core.set_share(owner, settings.share);
                        core.set_latency_target(owner, settings.latency_target);
                    }
                }
            }
            EngineMessage::Snapshot(reply) => {
                let snapshot =
                    self.gauges.snapshot(now, &self.core, &self.limited, (self.requests.len(), self.at_device.len()));
                // The caller may have gone.
                let _ = reply.send(snapshot);
            }
            EngineMessage::End => {
                self.ends_by.get_or_insert(now + LONGEST_END);
                self.limited.lift(now);
                if let Some(core) = self.core.core() {
                    self.background.suspend_all(core, now);
                }
            }
        }
    }

    fn refused(&mut self, id: u64, fault: Fault, now: Time) {
        let submission = self.requests.remove(id);
        if submission.preserves
            && let Some(core) = self.core.core()
        {
            // The image is incomplete, and its client must learn this.
            let completed = CompletedCommand { lbn: submission.lbn, data: Bytes::new(), fault: Some(fault) };
            let range = TaskRange { lbn: submission.lbn, count: u64::from(submission.count) };
            self.background.preserved(&range, &completed, core, now);
        }
        self.reply(submission, Err(fault));
    }

    /// Answers a client's request, or takes the answer to a piece of one; returns whether a client
    /// has its answer now.
    fn reply(&mut self, submission: Submission, answer: Answer) -> bool {
        match self.pieces.finished(submission, None, answer) {
            Some((whole, _, answer)) => {
                whole.answer(answer);
                true
            }
            None => false,
        }
    }

    fn completed(&mut self, done: Done, now: Time) {
        let at = self.at_device.iter().position(|a| a.command.id == done.id);
        let AtDevice { command, sent } = self.at_device.swap_remove(at.expect("the device completed a command it has"));
        self.gauges.at_work(!self.at_device.is_empty(), now);
        self.gauges.completed(&command, self.core.free_sectors(command.id), (sent, now), &done);
        let expected = if command.kind == Kind::Read { bytes_of(&command, self.sector_bytes) } else { 0 };
        let (outcome, fault) = match done.fault {
            None if done.data.len() != expected => (Fault::Io.outcome(&command), Some(Fault::Io)),
            fault => (done.outcome, fault),
        };
        let completed = CompletedCommand { lbn: command.lbn, data: done.data, fault };
        self.core.complete(command.id, outcome, now);
        self.answer(&completed, now);
        if outcome == Outcome::Dead
            && let Some(core) = self.core.core()
        {
            self.background.gone(core, now);
        }
    }

    /// Carries out the actions that follow from a completion, including commands to be issued, with
    /// the completion's data.
    fn answer(&mut self, completed: &CompletedCommand, now: Time) {
        while let Some(action) = self.core.poll() {
            self.act(action, Some(completed), now);
        }
        self.background.drained(self.core.core());
    }

    fn drain(&mut self, now: Time) {
        while let Some(action) = self.core.poll() {
            self.act(action, None, now);
        }
        self.background.drained(self.core.core());
    }

    fn act(&mut self, action: Action, completed: Option<&CompletedCommand>, now: Time) {
        match action {
            Action::Issue(command) => self.issue(&command),
            Action::Finish(finished) => {
                let idled = self.requests.idled_before(finished.request);
                let submission = self.requests.remove(finished.request);
                let completed = completed.expect("a request finishes when a command has completed");
                if submission.preserves {
                    let range = TaskRange { lbn: submission.lbn, count: u64::from(submission.count) };
                    let core = self.core.core().expect("only a core has background work");
                    self.background.preserved(&range, completed, core, now);
                    return;
                }
                self.gauges.positioned(&finished);
                if let Some(recorder) = &mut self.recorder {
                    recorder.completed(finished.request, &submission, completed.fault.is_none(), now);
                }
                let answer = match completed.fault {
                    Some(fault) => Err(fault),
                    None if submission.kind == Kind::Read => {
                        Ok(completed.sectors(submission.lbn, u64::from(submission.count), self.sector_bytes))
                    }
                    None => Ok(Bytes::new()),
                };
                let whole = self.pieces.finished(submission, Some(finished.dispatched), answer);
                if let Some((submission, dispatched, answer)) = whole {
                    let idled = self.core.idled(now).saturating_sub(idled);
                    let dispatched = dispatched.unwrap_or(finished.dispatched);
                    self.gauges.finished(&submission, &finished, answer.is_err(), dispatched, idled);
                    submission.answer(answer);
                }
            }
            Action::Background(event) => {
                let core = self.core.core().expect("only a core has background work");
                self.background.event(&event, completed, core, now);
            }
            Action::Expired(request) => {
                let submission = self.requests.remove(request);
                if let Some(recorder) = &mut self.recorder {
                    recorder.completed(request, &submission, false, now);
                }
                self.reply(submission, Err(Fault::Late));
            }
            Action::Overdue(overdue) => self.gauges.overdue(&overdue),
        }
    }

    fn issue(&mut self, command: &Command) {
        let data = match command.kind {
            Kind::Write => self.data_for(command),
            Kind::Read | Kind::Flush => Bytes::new(),
        };
        // Deciding took time, during which the platter kept rotating.
        let sent = self.clock.now();
        self.gauges.at_work(true, sent);
        self.at_device.push(AtDevice { command: *command, sent });
        self.device.submit(command, data, sent);
    }

    /// Returns the data of a write command: background data first, or alone, then the data of one
    /// or more requests.
    fn data_for(&self, command: &Command) -> Bytes {
        let free = u64::from(self.core.free_sectors(command.id));
        match self.core.request_of(command.id) {
            Some(id) => {
                let (own, behind) = (&self.requests.get(id).data, self.core.requests_behind(command.id));
                if free == 0 && behind.is_empty() {
                    return own.clone();
                }
                let mut data = BytesMut::with_capacity(bytes_of(command, self.sector_bytes));
                self.background.gather(command.lbn, free, &mut data);
                data.extend_from_slice(own);
                behind.into_iter().for_each(|id| data.extend_from_slice(&self.requests.get(id).data));
                data.freeze()
            }
            None => {
                let mut data = BytesMut::with_capacity(bytes_of(command, self.sector_bytes));
                self.background.gather(command.lbn, u64::from(command.count), &mut data);
                data.freeze()
            }
        }
    }

    /// Returns how the engine ended, once all work in flight at shutdown is done.
    fn end(&mut self) -> Option<End> {
        let (by, now) = (self.ends_by?, self.clock.now());
        let waiting = self.limited.len() + self.layouts.held();
        if self.requests.is_empty() && waiting == 0 && self.at_device.is_empty() {
            if std::mem::replace(&mut self.flushed, true) {
                return Some(End::Drained);
            }
            // Acknowledged writes are flushed from the device's cache to the media.
            self.submit(Submission::flush(), now);
            self.drain(now);
            return None;
        }
        (now >= by).then(|| {
            let mut given_up = self.requests.drain();
            given_up.extend(self.layouts.drain_held());
            given_up.extend(std::iter::from_fn(|| self.limited.next(now)).map(|(submission, _)| submission));
            let answered = given_up.into_iter().filter_map(|one| self.reply(one, Err(Fault::Gone)).then_some(()));
            End::GivenUp(answered.count())
        })
    }

    /// Sleeps until there is something to do, or returns at once when that is soon.
    fn wait(&mut self) -> io::Result<()> {
        let soonest = self.soonest();
        if soonest.is_some_and(|at| !self.clock.may_sleep(at)) {
            std::hint::spin_loop();
            return Ok(());
        }
        if self.handle_message_before_park() {
            return Ok(());
        }
        let slept = match self.device.fd() {
            Some(device) => self.clock.sleep(soonest, &[self.inbox.fd(), device]),
            None => self.clock.sleep(soonest, &[self.inbox.fd()]),
        };
        self.inbox.unpark();
        slept
    }
}
