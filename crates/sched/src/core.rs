//! The core (contract in the crate's documentation).
//!
//! * this file: foreground requests from submission to finish
//! * `commit`: when the next command is dispatched
//! * `chain`: more than two commands at the drive, where each continues an earlier one, or the
//!   cache answers it
//! * `going`: which queues may dispatch, streams and ADMIT
//! * `selection`: ORDER's choice among their requests; `hits`: which reads that the cache answers
//!   go before others
//! * `merged`: writes that go as one command
//! * `handover`: when the drive orders commands itself
//! * `write_policy`: whether its write cache is on
//! * `filling`: what is put before them
//! * `idle_time`: what an idle drive is given
//! * `read_through`: what the drive reads ahead on the way to a request
//! * `staying`: the end of a stream is waited for before it is left
//! * `calls`: the freeblock calls

mod calls;
mod chain;
mod commit;
mod filling;
mod going;
mod handover;
mod hits;
mod idle_time;
mod joint;
mod merged;
mod read_through;
mod selection;
mod staying;
mod write_policy;

use std::collections::VecDeque;

use headtime_disk::command::{Command, Kind, Outcome};
use headtime_disk::model::Model;
use headtime_disk::time::Time;

use crate::admit::das::streams::Streams;
use crate::admit::{Admission, Policy, Share};
use crate::dispatch::{Dispatch, Purpose, Sent};
use crate::fill::forward::MOST_PROMOTED;
use crate::fill::subsystem::{FillConfig, Freeblock};
use crate::merge::MOST_REQUESTS;
pub use crate::order::Order;
use crate::order::ahead::Arrivals;
use crate::pool::{Pool, Slot};
use crate::predictor::Predictor;
use crate::request::{Action, Finished, Prediction, Request};
use crate::stats::Stats;

use commit::Commit;
pub use commit::Commitment;
use handover::Handover;
use hits::Hits;
use joint::Joint;
use staying::Staying;
use write_policy::WritePolicy;

/// How a core is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who goes next.
    pub order: Order,
    /// Commands outstanding at the drive, except in handover and chains (2 hides overheads and
    /// leaves the drive no choice).
    pub max_outstanding: u32,
    /// Requests that may wait at most; more are refused with [`Refused::Full`].
    pub capacity: usize,
    /// Freeblock work before and between the requests; `None`: there is none.
    pub fill: Option<FillConfig>,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many requests wait already.
    #[error("{capacity} requests wait already")]
    Full {
        /// The limit.
        capacity: usize,
    },
    /// It is larger than what was promised to streams has room for, or than its stream said that
    /// its requests are.
    #[error("{count} sectors asked for: expected at most {most}")]
    TooLarge {
        /// Sectors asked for.
        count: u32,
        /// Sectors that there is room for.
        most: u32,
    },
    /// It reaches beyond the drive's last sector, or asks for nothing.
    #[error("sectors {lbn} to {lbn}+{count} are not on a drive of {capacity} sectors")]
    OutOfRange {
        /// First LBN asked for.
        lbn: u64,
        /// Sectors asked for.
        count: u32,
        /// Usable sectors.
        capacity: u64,
    },
}

/// The scheduling core.
///
/// The calling contract: after every telling ([`Core::submit`], [`Core::complete`], [`Core::tick`]
/// and the freeblock calls) the driver calls [`Core::poll`] until it returns `None`, and carries
/// out what it says in that order. What happens at the same instant may be told in between: a
/// request that an application sends the moment its last one is finished is seen by the decision
/// that follows. Time never goes back. The same tellings give the same actions on every machine.
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
    /// The foreground request that goes next: committed, and kept in the dispatch queue while
    /// something is put before it.
    held: Option<u32>,
    /// When the next command is dispatched.
    commit: Commit,
    /// Whether it waits for the next read of a stream.
    staying: Staying,
    /// When the drive orders commands itself.
    handover: Handover,
    /// What answers to writes show of the drive's write cache.
    write_policy: WritePolicy,
    /// Whether it was said to be on.
    stated_write_back: bool,
    /// Commands at the drive at most where each continues the one before.
    chain: usize,
    /// Requests merged into another's command, with the command's number; in the order of their
    /// LBNs.
    behind: Vec<(u64, u32)>,
    /// Requests whose command failed in a part that was perhaps not theirs: they go again, alone
    /// and first.
    again: VecDeque<u32>,
    /// Nothing is sent before this: the drive reads on behind freeblock work.
    hold_until: Time,
    fill: Option<Box<Freeblock>>,
    /// Who may go; `None`: everybody at any time.
    admit: Option<Box<dyn Admission>>,
    /// Streams that were promised something; `None`: there are none, and nobody is.
    streams: Option<Box<Streams>>,
    /// Queues that may be chosen from now.
    going: Vec<u32>,
    /// The request that goes next because a mandatory one waits for it, by the last decision.
    inheriting: Option<u32>,
    /// Requests that the drive's cache answers, of those that may be chosen now.
    hits: Hits,
    /// What ORDER and FILL decide together.
    joint: Joint,
    /// Requests of streams that were given up.
    given_up: VecDeque<u64>,
    /// ADMIT lets the disk wait for somebody until then.
    waits_until: Option<Time>,
    drained: bool,
    stats: Stats,
}

impl Core {
    /// A core that believes `model` of its drive. Panics when `config` allows no command or no
    /// request at all.
    pub fn new(config: Config, model: Model) -> Core {
        assert!(config.capacity > 0, "no request could ever wait");
        let depth = config.max_outstanding as usize;
        Core {
            pool: pool_for(&config, depth),
            predictor: Predictor::new(depth, &model),
            arrivals: Arrivals::default(),
            dispatch: Dispatch::new(depth),
            finished: VecDeque::with_capacity(depth),
            held: None,
            commit: Commit::new(config.max_outstanding),
            staying: Staying::default(),
            handover: Handover::default(),
            write_policy: WritePolicy::default(),
            stated_write_back: model.cache.write_back,
            chain: 0,
            behind: Vec::new(),
            again: VecDeque::new(),
            hold_until: Time::ZERO,
            fill: config.fill.as_ref().map(|f| Box::new(Freeblock::new(f, &model))),
            admit: None,
            streams: None,
            going: Vec::new(),
            inheriting: None,
            hits: Hits::default(),
            joint: Joint::new(&model),
            given_up: VecDeque::new(),
            waits_until: None,
            now: Time::ZERO,
            drained: true,
            stats: Stats::default(),
            config,
            model,
        }
    }

    /// Room for `depth` commands at the drive.
    fn enlarge(&mut self, depth: usize) {
        self.pool = pool_for(&self.config, depth);
        if self.admit.is_some() || self.streams.is_some() {
            self.pool.divide();
        }
    }

    /// The same with applications that are admitted one after another. To be called before anything
    /// was submitted.
    #[must_use]
    pub fn admitting(mut self, policy: &Policy) -> Core {
        self.admit = policy.admission(self.model.sector_bytes);
        if self.admit.is_some() {
            self.pool.divide();
        }
        self
    }

    /// The same with another rule for when the next command is dispatched; [`Commitment::Late`]
    /// when nothing is said.
    #[must_use]
    pub fn committing(mut self, commitment: Commitment) -> Core {
        self.commit.set(commitment);
        self
    }

    /// What an application is to have from now on: a request's [`Request::owner`], or
    /// [`crate::admit::ASYNCHRONOUS`]. It makes a difference from the next turn on, and without a
    /// policy none.
    pub fn set_share(&mut self, owner: u32, share: Share) {
        if let Some(admit) = &mut self.admit {
            admit.set_share(owner, share);
        }
    }

    /// Tells it of a new request. A request that is refused leaves no trace.
    ///
    /// With streams, all that comes at one instant is to be told before [`Core::poll`]: what goes
    /// at the very instant at which a period begins may take the time of requests of that period
    /// that were not told yet.
    pub fn submit(&mut self, request: Request, now: Time) -> Result<(), Refused> {
        self.told(now);
        // Pieces of promoted tasks take no room from the foreground.
        let pieces = self.fill.as_ref().map_or(0, |f| f.pieces());
        let (waiting, capacity) = self.places(&request, pieces);
        if waiting >= capacity {
            return Err(Refused::Full { capacity });
        }
        let most = self.most_sectors(&request);
        if request.count > most && request.kind != Kind::Flush {
            return Err(Refused::TooLarge { count: request.count, most });
        }
        let place = match request.kind {
            Kind::Flush => None,
            kind => {
                let place = self.model.place(request.lbn, request.count, kind);
                Some(place.ok_or_else(|| Refused::OutOfRange {
                    lbn: request.lbn,
                    count: request.count,
                    capacity: self.model.geometry.capacity(),
                })?)
            }
        };
        let queue = self.queue_for(&request);
        let slot = self.pool.insert(request, place, queue, now);
        self.tell_inserted(slot);
        self.limit_outstanding();
        if let Some(fill) = &mut self.fill {
            fill.arrived(&self.model, &request, now);
        }
        self.drained = false;
        Ok(())
    }

    /// Tells it that the drive finished a command. Panics when the drive was not sent that command:
    /// a driver that mixes up its commands would finish requests that are not done.
    pub fn complete(&mut self, command: u64, outcome: Outcome, now: Time) {
        self.told(now);
        self.drained = false;
        self.note_end_of_stream(command);
        let sent = self.dispatch.complete(command);
        // The predictor forgets the command below.
        if !self.predictor.is_held(command) {
            self.hits.moved = now;
        }
        let prediction = self.predictor.completed(&self.model, command, outcome, now);
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
                admit.others_had(took, now);
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
        // What waited for it may go.
        self.tell_ready();
        self.learn(&sent, outcome, prediction.as_ref());
        // A write that has ended no longer counts.
        self.limit_outstanding();
    }

    /// What failed was put at a request's front for free: the request itself was not tried. Of a
    /// promoted task what is still wanted is handed out again.
    fn front_failed(&mut self, slot: u32, command: &Command) {
        let piece = self.fill.as_mut().is_some_and(|f| f.promoted_failed(slot, self.now));
        match (&mut self.streams, piece) {
            (Some(streams), true) => _ = streams.completed(command, self.now),
            (Some(streams), false) => streams.again(command, slot, self.now),
            (None, _) => {}
        }
        match piece {
            true => _ = self.gone(slot),
            false => self.again.push_back(slot),
        }
    }

    /// A foreground request is gone from the pool, and from ADMIT's account.
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
        if self.fill.as_mut().is_some_and(|f| f.is_promoted(slot)) {
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

    /// Tells it the time.
    pub fn tick(&mut self, now: Time) {
        self.commit.told(now, true);
        self.told(now);
        self.drained = false;
    }

    fn told(&mut self, now: Time) {
        assert!(now >= self.now, "time went back: {now} after {}", self.now);
        debug_assert!(self.drained || now == self.now, "poll() must be called until None before time goes on");
        self.now = now;
        self.commit.told(now, false);
        self.limit_outstanding();
        if let Some(fill) = &mut self.fill {
            fill.told(now);
        }
        self.end_periods();
    }

    /// What it wants done; to be called until `None` after every telling.
    ///
    /// Requests finish before new commands are sent. A command is chosen in the very call that
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
            // Data is needed before the command can be sent.
            return Some(Action::Background(event));
        }
        self.drained = command.is_none();
        command.map(Action::Issue)
    }

    fn send_next(&mut self) -> Option<Command> {
        if self.now < self.hold_until {
            return None;
        }
        if !self.dispatch.has_room() {
            return self.send_chained();
        }
        if let Some(slot) = self.again.pop_front() {
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

    /// When it wants to be told the time, if nothing else happens before.
    pub fn next_wakeup(&self) -> Option<Time> {
        if self.now < self.hold_until {
            return Some(self.hold_until);
        }
        if let Some(at) = self.commit.waits_until() {
            return Some(at);
        }
        let fill = self.fill.as_ref().filter(|_| self.dispatch.at_drive().is_empty() && self.held.is_none());
        let fill = fill.and_then(|f| f.next_wakeup(self.now));
        // Whom it waits for, and who has had his time.
        let admit = self.admit.as_ref().filter(|_| self.dispatch.has_room() && self.held.is_none());
        let streams = Some(()).filter(|()| self.dispatch.has_room() && self.held.is_none());
        let streams = streams.and_then(|()| self.period_ends());
        // While nothing is eligible ADMIT is not asked, whatever it waits for.
        let admit = admit.and_then(|a| a.next_wakeup()).filter(|&t| self.streams.is_none() || t > self.now);
        [fill, admit, streams, self.commit.probes_at()].into_iter().flatten().min()
    }

    /// What ADMIT takes the disk's peak rate to be, in sectors a second, where it has measured one.
    pub fn peak_rate(&self) -> Option<f64> {
        self.admit.as_ref()?.peak_rate()
    }

    /// Requests that wait, not counting those at the drive.
    pub fn waiting(&self) -> usize {
        self.pool.waiting()
    }

    /// Commands at the drive.
    pub fn outstanding(&self) -> usize {
        self.predictor.outstanding()
    }

    /// What it believes of its drive.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// What it has counted so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

/// A pool for the requests that may wait, and those of `depth` commands at the drive.
fn pool_for(config: &Config, depth: usize) -> Pool {
    // Held back: one. At the drive: each command and what was put at its front. And pieces of
    // promoted tasks.
    let spare = if config.fill.is_some() { 1 + 2 * depth + MOST_PROMOTED } else { depth };
    let behind = match config.order.looks_ahead() {
        true => config.max_outstanding as usize * (MOST_REQUESTS - 1),
        false => 0,
    };
    Pool::new(config.capacity + spare + behind, config.order.key())
}
