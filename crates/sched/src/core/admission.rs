//! Eligibility: which queues may dispatch now. Streams with guarantees come first; the ADMIT policy
//! orders best effort.
//!
//! Streams are decided first, because a guarantee holds under any load. The active subset contains
//! the requests that may be dispatched without violating a guarantee; best effort is in it or not,
//! and the ADMIT policy orders best effort. ORDER chooses from all of them at once.

use headtime_disk::{Command, Dur, Time};

use super::Core;
use crate::admit::das::disk::Disk;
use crate::admit::das::stream::Stream;
use crate::admit::das::streams::{
    BEST_EFFORT, GuaranteeConfig, OpenStreamError, OpenedStream, StreamStatus, Streams, SubsetSizes,
};
use crate::admit::das::verdict::Admitted;
use crate::admit::{Share, Turn, queue_of};
use crate::order::ahead;
use crate::request::{Action, Request};

/// Starvation bound: among queues that are ordered together, and for `sptf-ahead` and `sptf-joint`
/// without ADMIT, a request that has waited longer than this is dispatched first, as by the
/// firmware of drives. ORDER alone could pass over it for as long as better placed requests arrive:
/// cache hits and requests that continue a stream cost nothing. Within an application's turn, the
/// waiting time of its requests is determined by its share. With more than [`ahead::MAX_EXACT`]
/// requests waiting, the oldest may always be older than this; there only ages bound the wait.
const LONGEST: Dur = Dur::from_secs(2);

/// The owner of a policy's turn (`None`: all queues), and how long its oldest request waits before
/// it precedes ORDER's choice.
pub(super) type Patience = (Option<u32>, Dur);

/// Whose requests may be dispatched now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eligible {
    /// No request is eligible.
    NoRequest,
    /// Those of `eligible_queues`; without streams and a policy, all.
    Queues {
        /// The starvation bound, if there is one.
        patience: Option<Patience>,
    },
}

impl Core {
    /// Sets the share of an application: of a [`Request::owner`], or of
    /// [`crate::admit::ASYNCHRONOUS`]. It takes effect at the next turn, and has no effect without
    /// a policy.
    pub fn set_share(&mut self, owner: u32, share: Share) {
        if let Some(admit) = &mut self.admit {
            admit.set_share(owner, share);
        }
    }

    /// Sets the latency target of an application, or removes it: how soon a request is to be
    /// finished while the application has no more than its share of the disk. It has no effect
    /// without BFQ as the policy.
    pub fn set_latency_target(&mut self, owner: u32, target: Option<Dur>) {
        if let Some(admit) = &mut self.admit {
            admit.set_latency_target(owner, target);
        }
    }

    /// Returns whether a policy shares the disk.
    pub fn has_policy(&self) -> bool {
        self.admit.is_some()
    }

    /// Tells whether the next request of an application is held back above the scheduler, as by a
    /// [`Throttle`](crate::Throttle). Meanwhile ADMIT does not let the disk idle for it, because
    /// the request would not come, and the application does not become new again.
    pub fn set_held_back(&mut self, owner: u32, is: bool, now: Time) {
        self.advance_to(now);
        if let Some(admit) = &mut self.admit {
            admit.set_held_back(owner, is, now);
            self.poll_drained = false;
        }
    }

    /// Adds streams: requests of an owner for which [`Core::open_stream`] was called belong to its
    /// stream, all others are best effort. Must be called before the first request; composes with
    /// [`Core::admitting`], which then orders best effort. Panics if the core keeps more commands
    /// in flight than `setup` assumes.
    #[must_use]
    pub fn guaranteeing(mut self, setup: &GuaranteeConfig) -> Core {
        let (ours, theirs) = (self.config.max_outstanding, setup.disk.outstanding());
        assert!(ours <= theirs, "expected at most {theirs} commands in flight, as the guarantees assume, found {ours}");
        self.streams = Some(Box::new(Streams::new(setup)));
        self.pool.divide();
        self
    }

    fn streams(&mut self, now: Time) -> Result<&mut Streams, OpenStreamError> {
        self.advance_to(now);
        self.poll_drained = false;
        self.streams.as_deref_mut().ok_or(OpenStreamError::NoStreams)
    }

    /// Checks that the order allows the stream: service times of optional streams hold only under
    /// the orders for which they were measured.
    fn is_promised(&self, stream: &Stream) -> Result<(), OpenStreamError> {
        match stream.is_mandatory() || self.config.order.is_by_position() {
            true => Ok(()),
            false => Err(OpenStreamError::Order),
        }
    }

    /// Opens a stream if it is feasible beside the existing ones: requests of `owner` belong to it
    /// from now on. Admission control takes milliseconds or more. A driver that must not block for
    /// that runs a [`Ledger`](crate::admit::das::ledger::Ledger) elsewhere, with the streams of
    /// [`Core::standings`] followed by this one, and starts it with [`Core::begin_stream`].
    ///
    /// # Errors
    /// The reason for the refusal, and the nearest feasible stream.
    pub fn open_stream(&mut self, owner: u32, stream: Stream, now: Time) -> Result<OpenedStream, OpenStreamError> {
        self.is_promised(&stream)?;
        let by_position = self.config.order.is_by_position();
        self.streams(now)?.admit(owner, stream, now).map_err(|why| match why {
            OpenStreamError::Refused(refusal) if !by_position => refusal.without_quality().into(),
            other => other,
        })
    }

    /// Starts a stream that was admitted beside the streams of [`Core::standings`]. Panics if it
    /// was admitted beside others.
    ///
    /// # Errors
    /// `owner` has a stream; another stream must be served as a mandatory one and cannot be yet;
    /// the core has no streams configured.
    pub fn begin_stream(
        &mut self,
        owner: u32,
        stream: Stream,
        admitted: &Admitted,
        now: Time,
    ) -> Result<OpenedStream, OpenStreamError> {
        self.is_promised(&stream)?;
        self.streams(now)?.begin(owner, stream, admitted, now)
    }

    /// Closes a stream after its last pending request: further requests of `owner` are best effort.
    /// Returns whether there was one.
    pub fn close_stream(&mut self, owner: u32, now: Time) -> bool {
        self.streams(now).is_ok_and(|s| s.close(owner))
    }

    /// If streams have ended since, recomputes the reservations of the others; returns whether it
    /// did. Like admission control it takes milliseconds or more; a driver that must not block uses
    /// [`Core::renew_streams`].
    pub fn find_streams_anew(&mut self, now: Time) -> bool {
        let ended = self.streams.as_ref().is_some_and(|s| s.may_have_more());
        if let Some(streams) = self.streams(now).ok().filter(|_| ended) {
            streams.find_anew(now);
        }
        ended
    }

    /// Sets the reservations of the open streams to those that a
    /// [`Ledger`](crate::admit::das::ledger::Ledger) computed for [`Core::standings`] after others
    /// ended. Panics if they are those of other streams.
    ///
    /// # Errors
    /// A stream that must be served as a mandatory one cannot be yet; the core has no streams
    /// configured.
    pub fn renew_streams(&mut self, admitted: &Admitted, now: Time) -> Result<(), OpenStreamError> {
        self.streams(now)?.renew(admitted, now)
    }

    /// Returns the disk parameters from which guarantees are computed; `None` without streams.
    pub fn promised_from(&self) -> Option<&Disk> {
        self.streams.as_ref().map(|s| s.disk())
    }

    /// Returns the open streams and their statistics.
    pub fn standings(&self) -> Vec<StreamStatus> {
        self.streams.as_ref().map(|s| s.standings().collect()).unwrap_or_default()
    }

    /// Returns ADMIT's estimate of the disk's peak rate in sectors per second, if the policy
    /// measures one.
    pub fn peak_rate(&self) -> Option<f64> {
        self.admit.as_ref()?.peak_rate()
    }

    /// Returns the sizes of the active subset of the last decision; `None` without streams.
    pub fn active_sizes(&self) -> Option<SubsetSizes> {
        self.streams.as_ref().map(|s| s.sizes())
    }

    /// Returns the maximum number of sectors of a request.
    pub(super) fn most_sectors(&self, request: &Request) -> u32 {
        self.streams.as_ref().map_or(u32::MAX, |s| s.most_sectors(request))
    }

    /// Returns the number of requests that count against `request`, and their limit. Each stream
    /// has places for the requests that it may submit in this period and the next, all together at
    /// most half of the capacity. All other requests share the rest, so that a backlog displaces no
    /// stream's requests.
    pub(super) fn places(&self, request: &Request, pieces: usize) -> (usize, usize) {
        let (waiting, all) = (self.pool.waiting().saturating_sub(pieces), self.config.capacity);
        let Some(streams) = self.streams.as_ref().filter(|s| !s.has_room(request)) else { return (waiting, all) };
        let (most, taken) = streams.room();
        // Requests in flight count, since they are included in a stream's taken places.
        let unfinished = waiting + self.dispatch.at_drive().len();
        (unfinished.saturating_sub(taken.min(all / 2)), all - most.min(all / 2))
    }

    /// Holds further commands while read-ahead delays the start of the waiting command: a drive may
    /// then start a later command first, by position, but the waiting command's service time is
    /// guaranteed. If the head position is unknown, holds them for the longest time that this can
    /// take.
    pub(super) fn hold_while_unsettled(&mut self) {
        if !self.model.cache.same_track_prefetch_delays || self.dispatch.at_drive().is_empty() {
            return;
        }
        self.hold_behind_free_work();
        if !self.predictor.is_sure() {
            self.dispatch_not_before = self.dispatch_not_before.max(self.now + self.model.mechanics.rotation.period());
        }
    }

    /// Returns the queue of a new request.
    pub(super) fn queue_for(&mut self, request: &Request) -> u32 {
        let Some(streams) = &mut self.streams else { return queue_of(request) };
        match streams.submitted(request, self.now) {
            Some(queue) => queue,
            None if self.admit.is_some() => queue_of(request),
            None => BEST_EFFORT,
        }
    }

    /// Returns the queue of a piece of a promoted task.
    pub(super) fn queue_of_piece(&self, request: &Request) -> u32 {
        if self.streams.is_some() && self.admit.is_none() { BEST_EFFORT } else { queue_of(request) }
    }

    /// Returns whether a request is eligible by the last decision.
    pub(super) fn may_go(&self, slot: u32) -> bool {
        self.eligible_queues.is_empty() || self.eligible_queues.contains(&self.pool.get(slot).queue)
    }

    /// Notifies ADMIT of requests that became eligible. A request whose deadline passed before it
    /// became eligible expires.
    pub(super) fn notify_ready(&mut self) {
        self.notify_ready_with(None);
    }

    /// Handles a new request in the pool: it is eligible, or blocked by an older one.
    pub(super) fn notify_inserted(&mut self, slot: u32) {
        self.notify_ready_with(Some(slot));
        if let Some(streams) = self.streams.as_mut().filter(|_| self.pool.is_blocked(slot)) {
            streams.blocked(slot, self.pool.get(slot).queue);
        }
    }

    fn notify_ready_with(&mut self, new: Option<u32>) {
        while let Some(slot) = self.pool.next_ready() {
            let ready = self.pool.get(slot);
            let (queue, request, now) = (ready.queue, ready.request, self.now);
            let at_once = new == Some(slot);
            if self.streams.as_mut().is_some_and(|s| !s.ready(slot, queue, &request, at_once, now)) {
                self.give_up(slot, false);
            } else if let Some(admit) = self.admit.as_mut().filter(|_| !Streams::is_stream(queue)) {
                admit.arrived(queue, &request, self.now);
            }
        }
    }

    /// Ends the periods that are over. Waiting requests of streams that drop late requests expire.
    pub(super) fn end_periods(&mut self) {
        let Some(streams) = &mut self.streams else { return };
        for queue in streams.over(self.now) {
            loop {
                // A request blocked by an expired one may be eligible now, or expires as well;
                // ADMIT must be notified of it first.
                self.notify_ready();
                let Some(slot) = self.pool.choice(Some(queue)).oldest else { break };
                self.give_up(slot, true);
            }
        }
    }

    fn give_up(&mut self, slot: u32, ready: bool) {
        self.pool.send(slot);
        let gone = self.pool.finish(slot);
        self.streams.as_mut().expect("it is a stream's").expire(gone.queue, ready);
        if let Some(fill) = &mut self.fill {
            fill.finished(self.now);
        }
        self.expired.push_back(gone.request.id);
        self.poll_drained = false;
    }

    /// Returns the next report on streams.
    pub(super) fn next_of_streams(&mut self) -> Option<Action> {
        if let Some(request) = self.expired.pop_front() {
            return Some(Action::Expired(request));
        }
        self.streams.as_mut()?.next_overdue().map(Action::Overdue)
    }

    /// Returns the request on which a mandatory one depends and which is therefore dispatched next,
    /// even out of turn; `eligible_queues` then has its queue alone.
    fn let_inherit(&mut self) -> Option<u32> {
        let streams = self.streams.as_mut()?;
        let pool = &self.pool;
        // Of each waiting period the oldest, the earliest deadline first. If the reservation of a
        // stream includes the requests that it depends on, these are dispatched one after the
        // other, so the oldest waiting request counts.
        let waits_for = streams.bound().filter_map(|(slot, waits)| Some((slot, waits, pool.waits_for(slot)?)));
        let key = |(waiting, waits, slot): (u32, u32, u32)| {
            let oldest = if streams.reserves_for_older(waits) { waiting } else { slot };
            (streams.due(waits), waits, pool.get(oldest).seq, slot)
        };
        let mut all: Vec<_> = waits_for.map(key).collect();
        all.sort_unstable();
        all.dedup_by_key(|first| first.1);
        let (_, _, _, next) = all.into_iter().find(|&(_, waits, _, slot)| {
            let older = pool.get(slot);
            streams.inherits(waits, (older.queue, &older.request), self.now)
        })?;
        self.eligible_queues.clear();
        self.eligible_queues.push(pool.get(next).queue);
        Some(next)
    }

    /// Fills `eligible_queues` with the queues of the eligible requests. If there are none,
    /// `idling_until` is set to when that may change, if known.
    pub(super) fn select_eligible(&mut self) -> Eligible {
        self.eligible_queues.clear();
        let mut best_effort = true;
        if let Some(streams) = &mut self.streams {
            let (queues, others) = streams.decide(self.now);
            self.eligible_queues.extend_from_slice(queues);
            best_effort = others;
            self.idling_until = streams.next_wakeup();
        }
        self.inheriting = self.let_inherit();
        if self.inheriting.is_some() {
            return Eligible::Queues { patience: None };
        }
        let patience = match self.admit.is_some() {
            true => self.select_by_policy(best_effort),
            false => {
                let few = self.config.order.looks_ahead() && self.pool.eligible() <= ahead::MAX_EXACT;
                if self.streams.is_none() {
                    return Eligible::Queues { patience: few.then_some((None, LONGEST)) };
                }
                self.eligible_queues.extend(best_effort.then_some(BEST_EFFORT));
                (few && best_effort).then_some((Some(BEST_EFFORT), LONGEST))
            }
        };
        if let Some(streams) = &mut self.streams {
            let pool = &self.pool;
            streams.count(best_effort, |queue| pool.waiting_in(queue));
            self.stats.subset.count(streams.sizes());
        }
        match self.eligible_queues.is_empty() {
            true => Eligible::NoRequest,
            false => Eligible::Queues { patience },
        }
    }

    /// Adds the queues whose turn it is by ADMIT to those of eligible streams, or replaces these;
    /// `best_effort`: streams have slack for best effort. Returns the starvation bound.
    fn select_by_policy(&mut self, best_effort: bool) -> Option<Patience> {
        let admit = self.admit.as_mut()?;
        let turn = admit.turn(self.now);
        let is_boosted = admit.is_boosted(self.now);
        match (turn, &mut self.streams) {
            // Best effort must wait until streams have slack. Each completed mandatory request
            // frees its worst-case service time; an optional one frees only its actual time.
            (Turn::Queue(..), Some(streams)) if !best_effort => {
                if is_boosted {
                    streams.only_mandatory(&mut self.eligible_queues);
                }
                None
            }
            (Turn::Queue(queue, longest), _) => {
                if is_boosted {
                    self.eligible_queues.clear();
                }
                self.eligible_queues.push(queue);
                Some((Some(queue), longest))
            }
            (Turn::Together, Some(_)) if !best_effort => None,
            (Turn::Together, _) => {
                admit.together(&mut self.eligible_queues);
                Some((None, LONGEST))
            }
            (Turn::Wait(until), streams) => {
                self.idling_until = Some(until);
                // Decided again at the next completion.
                let until = if self.dispatch.at_drive().is_empty() { until } else { self.now };
                // The application idled for may itself be blocked by a stream's request.
                let blocked = self.pool.waiting() > self.pool.eligible();
                if let Some(streams) = streams.as_mut().filter(|_| is_boosted && !blocked) {
                    match streams.can_wait(until, self.now) {
                        true => self.eligible_queues.clear(),
                        false => streams.only_mandatory(&mut self.eligible_queues),
                    }
                }
                None
            }
            (Turn::Idle, _) => None,
        }
    }

    /// Notifies streams and ADMIT of the chosen request.
    pub(super) fn notify_chosen(&mut self, slot: u32) {
        let sent = self.pool.get(slot);
        let (queue, request) = (sent.queue, sent.request);
        if let Some(streams) = &mut self.streams {
            streams.chosen(slot, queue, &request);
        }
        if let Some(admit) = self.admit.as_mut().filter(|_| !Streams::is_stream(queue)) {
            match self.inheriting == Some(slot) {
                true => admit.sent_out_of_turn(queue, &request, self.now),
                false => admit.sent(queue, &request, self.now),
            }
        }
    }

    /// Notifies streams of a request's dispatch; `front`: sectors at its front that belong to other
    /// work.
    pub(super) fn notify_sent(&mut self, slot: u32, command: &Command, front: u32) {
        if let Some(streams) = &mut self.streams {
            streams.sends(slot, command, front, self.now);
        }
    }

    /// Returns whether there is time for a command of FILL, at the front of a request or alone
    /// ([`Streams::has_time_for`](crate::admit::das::streams::Streams::has_time_for)).
    pub(super) fn has_time_for(&mut self, sectors: u32, at_front_of: u32, in_gap: bool) -> bool {
        self.streams.as_mut().is_none_or(|s| s.has_time_for(sectors, at_front_of, in_gap, self.now))
    }

    /// Returns the end of a stream's period on which waiting or background work depends.
    pub(super) fn period_ends(&self) -> Option<Time> {
        let asks = self.pool.waiting() > 0 || self.fill.is_some();
        self.streams.as_ref().filter(|_| asks)?.next_wakeup()
    }
}
