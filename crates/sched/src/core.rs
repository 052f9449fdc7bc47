//! The core; its contract is at [`Core`].
//!
//! * this file: foreground requests from submission to finish
//! * `commit`: when the next command is dispatched
//! * `chain`: more than two commands in flight, where each continues an earlier one or is a cache
//!   hit
//! * `admission`: which queues may dispatch, streams and ADMIT
//! * `selection`: ORDER's choice among their requests; `hits`: cache hits that precede other
//!   requests
//! * `merged`: writes merged into one command
//! * `handover`: when the drive orders commands itself
//! * `write_policy`: whether its write cache is on
//! * `filling`: background work before foreground requests
//! * `idle_time`: background work on an idle drive; `idled`: how long it idled beside requests
//! * `joint`: the decision of ORDER and FILL together
//! * `read_through`: reading on from the previous request to the next
//! * `staying`: waiting for the end of a stream before leaving it
//! * `calls`: the freeblock calls; `outside`: what an order outside the core needs
//! * `config`: what a core is made with, and why it refuses a request

mod admission;
mod calls;
mod chain;
mod commit;
mod config;
mod filling;
mod handover;
mod hits;
mod idle_time;
mod idled;
mod joint;
mod merged;
mod outside;
mod read_through;
mod selection;
mod staying;
mod write_policy;

use std::collections::VecDeque;

use headtime_disk::{Command, Kind, Model, Outcome, Place, Time};

use crate::admit::das::streams::Streams;
use crate::admit::{Admission, Policy};
use crate::dispatch::{Dispatch, Purpose, Sent};
use crate::fill::subsystem::Freeblock;
use crate::order::Order;
use crate::order::ahead::Arrivals;
use crate::pool::{Pool, Slot};
use crate::predictor::Predictor;
use crate::request::{Action, Finished, Prediction, Request};
use crate::stats::Stats;

use commit::Commit;
pub use commit::Commitment;
pub use config::{Config, Refused};
use handover::Handover;
use hits::Hits;
use idled::Idled;
use joint::Joint;
use staying::Staying;
use write_policy::WritePolicy;

/// The scheduling core.
///
/// The calling contract: after every input ([`Core::submit`], [`Core::complete`], [`Core::tick`]
/// and the freeblock calls) the driver calls [`Core::poll`] until it returns `None`, and carries
/// out the actions in that order. Inputs at the same instant may come in between: a request that an
/// application sends at the completion of its previous one is seen by the decision that follows.
/// Time never goes back. The same inputs give the same actions on every machine.
#[derive(Debug)]
pub struct Core {
    config: Config,
    model: Model,
    now: Time,
    pool: Pool,
    predictor: Predictor,
    arrivals: Arrivals,
    dispatch: Dispatch,
    finished: VecDeque<Finished>,
    /// The next foreground request: committed, and held in the dispatch queue while background work
    /// is put before it.
    next_request: Option<u32>,
    /// When the next command is dispatched.
    commit: Commit,
    /// Whether the core waits for the next command of a stream.
    staying: Staying,
    /// When the drive orders commands itself.
    handover: Handover,
    /// What completions of writes show of the drive's write cache.
    write_policy: WritePolicy,
    /// Whether the write cache was stated to be on.
    stated_write_back: bool,
    /// Maximum number of commands in flight where each continues the previous one.
    chain: usize,
    /// Requests merged into another's command: the command's number, and the slot; in order of LBN.
    behind: Vec<(u64, u32)>,
    /// Requests whose command failed in a part that may not be theirs: they are retried, alone and
    /// first.
    retry_alone: VecDeque<u32>,
    /// Nothing is dispatched before this time, while read-ahead may delay the start of the waiting
    /// command.
    dispatch_not_before: Time,
    fill: Option<Box<Freeblock>>,
    /// The admission policy; `None`: every request is eligible at any time.
    admit: Option<Box<dyn Admission>>,
    /// Streams with guarantees; `None`: not configured.
    streams: Option<Box<Streams>>,
    /// Queues that are eligible now.
    eligible_queues: Vec<u32>,
    /// The request that the last decision puts next because a mandatory one is blocked by it.
    inheriting: Option<u32>,
    /// Eligible requests that are cache hits.
    hits: Hits,
    /// State of the joint decision of ORDER and FILL.
    joint: Joint,
    /// Requests of streams that expired.
    expired: VecDeque<u64>,
    /// Until when ADMIT lets the disk idle for an application.
    idling_until: Option<Time>,
    /// For how long the disk has idled beside waiting requests.
    idled: Idled,
    poll_drained: bool,
    stats: Stats,
}

impl Core {
    /// Creates a core for a drive described by `model`. Panics if `config` allows no command or no
    /// request.
    pub fn new(config: Config, model: Model) -> Core {
        assert!(config.capacity > 0, "no request could ever wait");
        let depth = config.max_outstanding as usize;
        let predictor = Predictor::new(depth, &model);
        Core {
            pool: config.pool(depth),
            predictor: if config.resyncs { predictor } else { predictor.without_resync() },
            arrivals: Arrivals::default(),
            dispatch: Dispatch::new(depth),
            finished: VecDeque::with_capacity(depth),
            next_request: None,
            commit: Commit::new(config.max_outstanding),
            staying: Staying::default(),
            handover: Handover::default(),
            write_policy: WritePolicy::default(),
            stated_write_back: model.cache.write_back,
            chain: 0,
            behind: Vec::new(),
            retry_alone: VecDeque::new(),
            dispatch_not_before: Time::ZERO,
            fill: config.fill.as_ref().map(|f| Box::new(Freeblock::new(f, &model))),
            admit: None,
            streams: None,
            eligible_queues: Vec::new(),
            inheriting: None,
            hits: Hits::default(),
            joint: Joint::new(&model),
            expired: VecDeque::new(),
            idling_until: None,
            idled: Idled::default(),
            now: Time::ZERO,
            poll_drained: true,
            stats: Stats::default(),
            config,
            model,
        }
    }

    /// Adds an admission policy. Must be called before the first request.
    #[must_use]
    pub fn admitting(mut self, policy: &Policy) -> Core {
        self.admit = policy.admission(self.model.sector_bytes);
        if self.admit.is_some() {
            self.pool.divide();
        }
        self
    }

    /// Sets the rule for when the next command is dispatched; the default is [`Commitment::Late`].
    #[must_use]
    pub fn committing(mut self, commitment: Commitment) -> Core {
        self.commit.set(commitment);
        self
    }

    /// Submits a request. A refused request leaves no trace.
    ///
    /// With streams, all requests of one instant must be submitted before [`Core::poll`]: a request
    /// dispatched at the start of a period may take the time of requests of that period that were
    /// not submitted yet.
    pub fn submit(&mut self, request: Request, now: Time) -> Result<(), Refused> {
        self.advance_to(now);
        // Pieces of promoted tasks do not count against the capacity.
        let pieces = self.fill.as_ref().map_or(0, |f| f.pieces());
        let (waiting, capacity) = self.places(&request, pieces);
        if waiting >= capacity {
            return Err(Refused::Full { capacity });
        }
        let place = self.check(&request)?;
        let queue = self.queue_for(&request);
        let slot = self.pool.insert(request, place, queue, now);
        self.notify_inserted(slot);
        self.limit_outstanding();
        if let Some(fill) = &mut self.fill {
            fill.arrived(&self.model, &request, now);
        }
        self.poll_drained = false;
        Ok(())
    }

    /// Checks a request's range, and returns its place; `None` for a flush.
    pub(crate) fn check(&self, request: &Request) -> Result<Option<Place>, Refused> {
        let most = self.most_sectors(request);
        if request.count > most && request.kind != Kind::Flush {
            return Err(Refused::TooLarge { count: request.count, most });
        }
        if request.kind == Kind::Flush {
            return Ok(None);
        }
        let place = self.model.place(request.lbn, request.count, request.kind);
        Ok(Some(place.ok_or_else(|| Refused::OutOfRange {
            lbn: request.lbn,
            count: request.count,
            capacity: self.model.geometry.capacity(),
        })?))
    }

    /// Reports a completion. Panics if the drive was not sent that command: a driver that mixes up
    /// its commands would finish requests that are not done.
    pub fn complete(&mut self, command: u64, outcome: Outcome, now: Time) {
        self.advance_to(now);
        self.poll_drained = false;
        self.note_end_of_stream(command);
        let sent = self.dispatch.complete(command);
        // The predictor drops the command below.
        if !self.predictor.is_held(command) {
            self.hits.moved = now;
        }
        let prediction = self.predictor.completed(&self.model, command, outcome, now);
        self.model.cache.same_track_prefetch_delays |= self.predictor.shows_unknown_habit();
        if let Some(p) = &prediction {
            self.commit.completed(p);
        }
        self.note_write_policy(&sent, outcome, prediction.as_ref());
        self.note_cached(&sent, outcome);
        self.limit_outstanding();
        let untried = matches!((sent.purpose, outcome), (Purpose::Merged(_, _, front), Outcome::MediaError { lbn })
            if lbn < sent.command.lbn + u64::from(front));
        if let Some(streams) = self.streams.as_mut().filter(|_| !untried) {
            let took = streams.completed(&sent.command, now);
            if let (Some(took), Some(admit)) = (took, &mut self.admit) {
                admit.charge_external(took, now);
            }
        }
        match sent.purpose {
            Purpose::Request(slot) => self.finish_all(slot, &sent, outcome, prediction),
            Purpose::Merged(slot, front_slot, _) if untried => {
                self.pool.finish(front_slot);
                self.front_failed(slot, &sent.command);
            }
            Purpose::Merged(slot, front_slot, _) => {
                self.pool.finish(front_slot);
                self.finish(slot, &sent, outcome, prediction);
            }
            Purpose::Free(slot) => {
                self.pool.finish(slot);
                self.hold_behind_free_work();
            }
        }
        if self.streams.is_some() {
            self.hold_while_unsettled();
        }
        // Requests that were blocked by it may be eligible now.
        self.notify_ready();
        self.learn(&sent, outcome, prediction.as_ref());
        // The write has left the drive, so the limit may rise.
        self.limit_outstanding();
    }

    /// Handles a failure in the free front of a request's command: the request itself was not
    /// tried. The unread rest of a promoted task's piece is handed out again.
    fn front_failed(&mut self, slot: u32, command: &Command) {
        let piece = self.fill.as_mut().is_some_and(|f| f.withdraw_piece(slot, self.now));
        match (&mut self.streams, piece) {
            (Some(streams), true) => _ = streams.completed(command, self.now),
            (Some(streams), false) => streams.again(command, slot, self.now),
            (None, _) => {}
        }
        match piece {
            true => _ = self.gone(slot),
            false => self.retry_alone.push_back(slot),
        }
    }

    /// Removes a foreground request from the pool and from ADMIT's account.
    fn gone(&mut self, slot: u32) -> Slot {
        let gone = self.pool.finish(slot);
        match (&mut self.streams, &mut self.admit) {
            (Some(streams), _) if Streams::is_stream(gone.queue) => streams.gone(gone.queue),
            (_, Some(admit)) => admit.completed(gone.queue, &gone.request, self.now),
            (_, None) => {}
        }
        gone
    }

    fn finish(&mut self, slot: u32, sent: &Sent, outcome: Outcome, prediction: Option<Prediction>) {
        if let Some(p) = &prediction {
            self.stats.prediction.add(p);
        }
        let due = self.streams.as_ref().and_then(|s| s.due(self.pool.get(slot).queue));
        let gone = self.gone(slot);
        if let Some(fill) = &mut self.fill {
            fill.finished(self.now);
        }
        if self.fill.as_mut().is_some_and(|f| f.take_piece(slot)) {
            return;
        }
        self.finished.push_back(Finished {
            request: gone.request.id,
            outcome,
            submitted: gone.submitted,
            dispatched: sent.at,
            done: self.now,
            due,
            prediction,
        });
    }

    /// Advances the time.
    pub fn tick(&mut self, now: Time) {
        self.commit.observe_call(now, true);
        self.advance_to(now);
        self.poll_drained = false;
    }

    fn advance_to(&mut self, now: Time) {
        assert!(now >= self.now, "time went back: {now} after {}", self.now);
        debug_assert!(self.poll_drained || now == self.now, "poll() must be called until None before time goes on");
        self.now = now;
        self.commit.observe_call(now, false);
        self.limit_outstanding();
        if let Some(fill) = &mut self.fill {
            fill.advance_to(now);
        }
        self.end_periods();
    }

    /// Returns the next action; must be called until `None` after every input.
    ///
    /// Requests finish before new commands are dispatched. A command is chosen in the call that
    /// returns it.
    pub fn poll(&mut self) -> Option<Action> {
        if let Some(finished) = self.finished.pop_front() {
            return Some(Action::Finish(finished));
        }
        if let Some(action) = self.next_of_streams() {
            return Some(action);
        }
        if let Some(event) = self.next_event() {
            return Some(Action::Background(event));
        }
        let command = self.send_next();
        if command.is_none()
            && let Some(event) = self.next_event()
        {
            // The command needs this data first.
            return Some(Action::Background(event));
        }
        self.poll_drained = command.is_none();
        if command.is_some() {
            self.end_idling();
        }
        command.map(Action::Issue)
    }

    fn send_next(&mut self) -> Option<Command> {
        if self.now < self.dispatch_not_before {
            return None;
        }
        if !self.dispatch.has_room() {
            return self.send_chained();
        }
        if let Some(slot) = self.retry_alone.pop_front() {
            return Some(self.send_alone(slot));
        }
        if !self.is_time_to_commit() {
            return None;
        }
        if self.fill.is_some() {
            return self.send_filled();
        }
        let slot = self.choose()?;
        self.take(slot);
        Some(self.send_request(slot))
    }

    /// Returns when [`Core::tick`] must be called if no other input occurs before.
    pub fn next_wakeup(&self) -> Option<Time> {
        if self.now < self.dispatch_not_before {
            return Some(self.dispatch_not_before);
        }
        if let Some(at) = self.commit.waits_until() {
            return Some(at);
        }
        let fill = self.fill.as_ref().filter(|_| self.dispatch.at_drive().is_empty() && self.next_request.is_none());
        let fill = fill.and_then(|f| f.next_wakeup(self.now));
        // When ADMIT's idling or the active application's slice ends.
        let chooses = self.dispatch.has_room() && self.next_request.is_none();
        let admit = self.admit.as_ref().filter(|_| chooses);
        let streams = if chooses { self.period_ends() } else { None };
        // While no request is eligible ADMIT is not consulted, and its wake-up time may have
        // passed.
        let admit = admit.and_then(|a| a.next_wakeup()).filter(|&t| self.streams.is_none() || t > self.now);
        [fill, admit, streams, self.commit.probes_at()].into_iter().flatten().min()
    }

    /// Returns the number of waiting requests, without those in flight.
    pub fn waiting(&self) -> usize {
        self.pool.waiting()
    }

    /// Returns the number of commands in flight.
    pub fn outstanding(&self) -> usize {
        self.predictor.outstanding()
    }

    /// Returns the model of its drive.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}
