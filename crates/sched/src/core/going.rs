//! Eligibility: which queues may dispatch now. Streams with guarantees come first; the ADMIT policy
//! orders best effort.
//!
//! Streams are decided about first, because a promise holds under any load. The active subset says
//! which requests may go without one being broken; best effort is one of them or is not, and the
//! policy below orders it. ORDER chooses from all of them at once.

use headtime_disk::command::Command;
use headtime_disk::time::{Dur, Time};

use super::Core;
use crate::admit::das::admission::{Admitted, Disk};
use crate::admit::das::stream::Stream;
use crate::admit::das::streams::{BEST_EFFORT, NotOpened, Opened, Setup, Sizes, Standing, Streams};
use crate::admit::{Turn, queue_of};
use crate::order::ahead;
use crate::request::{Action, Request};

/// Starvation bound: among queues that are ordered together, and for `sptf-ahead` and `sptf-joint`
/// without ADMIT, a request that has waited longer than this is dispatched first, as by the
/// firmware of drives. ORDER alone could pass over it for as long as better placed requests arrive:
/// a read that the cache answers, and what continues a stream, cost nothing. Within an
/// application's turn, how long its requests wait is a matter of its share. With more than
/// [`ahead::MOST`] requests waiting, the oldest may always be older than this; there only ages
/// bound the wait.
const LONGEST: Dur = Dur::from_secs(2);

/// Of a policy's turn: whose it is (`None`: that of all queues), and for how long its oldest
/// request waits for an order to come to it.
pub(super) type Patience = (Option<u32>, Dur);

impl Core {
    /// The same with streams: requests of an owner with which [`Core::open_stream`] was called are
    /// a stream's, what is left is best effort. To be called before anything was submitted;
    /// composes with [`Core::admitting`], which then orders best effort. Panics when the core sends
    /// more commands at a time than `setup` reckons with.
    #[must_use]
    pub fn guaranteeing(mut self, setup: &Setup) -> Core {
        let (ours, theirs) = (self.config.max_outstanding, setup.disk.outstanding());
        assert!(ours <= theirs, "{ours} commands at a time, promises are made from {theirs}");
        self.streams = Some(Box::new(Streams::new(setup)));
        self.pool.divide();
        self
    }

    fn streams(&mut self, now: Time) -> Result<&mut Streams, NotOpened> {
        self.told(now);
        self.drained = false;
        self.streams.as_deref_mut().ok_or(NotOpened::NoStreams)
    }

    /// Optional streams are promised from times that hold under the orders that they were measured
    /// under.
    fn is_promised(&self, stream: &Stream) -> Result<(), NotOpened> {
        match stream.is_mandatory() || self.config.order.is_by_position() {
            true => Ok(()),
            false => Err(NotOpened::Order),
        }
    }

    /// A stream begins, if it can be had beside those that there are: what `owner` asks for from
    /// now on belongs to it. Admission takes milliseconds and more. A driver that must not wait for
    /// that asks a [`Ledger`](crate::admit::das::ledger::Ledger) elsewhere, of [`Core::standings`]
    /// and this one behind them, and begins it with [`Core::begin_stream`].
    ///
    /// # Errors
    /// Why not, and what is nearest.
    pub fn open_stream(&mut self, owner: u32, stream: Stream, now: Time) -> Result<Opened, NotOpened> {
        self.is_promised(&stream)?;
        let by_position = self.config.order.is_by_position();
        self.streams(now)?.admit(owner, stream, now).map_err(|why| match why {
            NotOpened::Refused(refusal) if !by_position => refusal.without_quality().into(),
            other => other,
        })
    }

    /// A stream begins that was admitted beside those of [`Core::standings`]. Panics when it was
    /// admitted beside others.
    ///
    /// # Errors
    /// `owner` has a stream; another is to be served as a mandatory one and cannot be yet; the core
    /// has none at all.
    pub fn begin_stream(
        &mut self,
        owner: u32,
        stream: Stream,
        admitted: &Admitted,
        now: Time,
    ) -> Result<Opened, NotOpened> {
        self.is_promised(&stream)?;
        self.streams(now)?.begin(owner, stream, admitted, now)
    }

    /// A stream ends with the last request that it has: what `owner` asks for from now on is best
    /// effort. Whether there was one.
    pub fn close_stream(&mut self, owner: u32, now: Time) -> bool {
        self.streams(now).is_ok_and(|s| s.close(owner))
    }

    /// If streams have ended since, finds anew what the others have; whether it did. Like admission
    /// it takes milliseconds and more; a driver that must not wait for that uses
    /// [`Core::renew_streams`].
    pub fn find_streams_anew(&mut self, now: Time) -> bool {
        let ended = self.streams.as_ref().is_some_and(|s| s.may_have_more());
        if let Some(streams) = self.streams(now).ok().filter(|_| ended) {
            streams.find_anew(now);
        }
        ended
    }

    /// What the streams at work have from now on, as a
    /// [`Ledger`](crate::admit::das::ledger::Ledger) of [`Core::standings`] says after others have
    /// ended. Panics when it is one of others.
    ///
    /// # Errors
    /// One that is to be served as a mandatory one cannot be yet; the core has no streams.
    pub fn renew_streams(&mut self, admitted: &Admitted, now: Time) -> Result<(), NotOpened> {
        self.streams(now)?.renew(admitted, now)
    }

    /// What promises are made from; `None` without streams.
    pub fn promised_from(&self) -> Option<&Disk> {
        self.streams.as_ref().map(|s| s.disk())
    }

    /// The streams at work, and how they fare.
    pub fn standings(&self) -> Vec<Standing> {
        self.streams.as_ref().map(|s| s.standings().collect()).unwrap_or_default()
    }

    /// How many requests might go by the last decision; `None` without streams.
    pub fn active_sizes(&self) -> Option<Sizes> {
        self.streams.as_ref().map(|s| s.sizes())
    }

    /// Sectors that a request may have at most.
    pub(super) fn most_sectors(&self, request: &Request) -> u32 {
        self.streams.as_ref().map_or(u32::MAX, |s| s.most_sectors(request))
    }

    /// The number of requests that count against `request`, and the most that may. Each stream has
    /// places for what it may ask for in this period and the next, all together at most half of the
    /// capacity. All other requests share the rest, so that a backlog displaces no stream's
    /// requests.
    pub(super) fn places(&self, request: &Request, pieces: usize) -> (usize, usize) {
        let (waiting, all) = (self.pool.waiting().saturating_sub(pieces), self.config.capacity);
        let Some(streams) = self.streams.as_ref().filter(|s| !s.has_room(request)) else { return (waiting, all) };
        let (most, taken) = streams.room();
        // Those at the drive are counted, since a stream's are in what it has taken.
        let unfinished = waiting + self.dispatch.at_drive().len();
        (unfinished.saturating_sub(taken.min(all / 2)), all - most.min(all / 2))
    }

    /// A drive that reads on behind a command before it takes up the one that waits may take up one
    /// that comes meanwhile instead, by position. What waits there was promised a time, so nothing
    /// more is sent until it has been taken up; where the head is not known, for as long as it can
    /// last.
    pub(super) fn hold_while_unsettled(&mut self) {
        if !self.model.cache.same_track_prefetch_delays || self.dispatch.at_drive().is_empty() {
            return;
        }
        self.hold_behind_free_work();
        if !self.predictor.is_sure() {
            self.hold_until = self.hold_until.max(self.now + self.model.mechanics.rotation.period());
        }
    }

    /// The queue that a new request waits in.
    pub(super) fn queue_for(&mut self, request: &Request) -> u32 {
        let Some(streams) = &mut self.streams else { return queue_of(request) };
        match streams.submitted(request, self.now) {
            Some(queue) => queue,
            None if self.admit.is_some() => queue_of(request),
            None => BEST_EFFORT,
        }
    }

    /// The queue of a piece of a promoted task.
    pub(super) fn queue_of_piece(&self, request: &Request) -> u32 {
        if self.streams.is_some() && self.admit.is_none() { BEST_EFFORT } else { queue_of(request) }
    }

    /// Whether a request may go, of those that are eligible by the last decision.
    pub(super) fn may_go(&self, slot: u32) -> bool {
        self.going.is_empty() || self.going.contains(&self.pool.get(slot).queue)
    }

    /// Who may go from now on, ADMIT hears of. A request whose time is over before it could go is
    /// given up.
    pub(super) fn tell_ready(&mut self) {
        self.tell_ready_but(None);
    }

    /// A new request is in the pool: it may go, or waits for an older one.
    pub(super) fn tell_inserted(&mut self, slot: u32) {
        self.tell_ready_but(Some(slot));
        if let Some(streams) = self.streams.as_mut().filter(|_| self.pool.is_blocked(slot)) {
            streams.blocked(slot, self.pool.get(slot).queue);
        }
    }

    fn tell_ready_but(&mut self, new: Option<u32>) {
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

    /// Periods that are over: of streams that rather have nothing than something late, what waits
    /// is given up.
    pub(super) fn end_periods(&mut self) {
        let Some(streams) = &mut self.streams else { return };
        for queue in streams.over(self.now) {
            loop {
                // What waited for one that is given up may go now, or is given up as well; ADMIT
                // has to hear of it first.
                self.tell_ready();
                let Some(slot) = self.pool.choice(Some(queue)).oldest else { break };
                self.give_up(slot, true);
            }
        }
    }

    fn give_up(&mut self, slot: u32, ready: bool) {
        self.pool.send(slot);
        let gone = self.pool.finish(slot);
        self.streams.as_mut().expect("it is a stream's").gives_up(gone.queue, ready);
        if let Some(fill) = &mut self.fill {
            fill.finished(self.now);
        }
        self.given_up.push_back(gone.request.id);
        self.drained = false;
    }

    /// What is to be told of streams.
    pub(super) fn next_of_streams(&mut self) -> Option<Action> {
        if let Some(request) = self.given_up.pop_front() {
            return Some(Action::GivenUp(request));
        }
        self.streams.as_mut()?.next_overdue().map(Action::Overdue)
    }

    /// The request for which a mandatory one waits and that goes next for that, also out of turn;
    /// then `going` has its queue alone.
    fn let_inherit(&mut self) -> Option<u32> {
        let streams = self.streams.as_mut()?;
        let pool = &self.pool;
        // Of each period that waits its oldest, the earliest deadline first. Requests of a stream
        // whose reservation has room for what they wait for go one behind that, so of these the
        // oldest that waits counts.
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
        self.going.clear();
        self.going.push(pool.get(next).queue);
        Some(next)
    }

    /// The queues of the eligible requests go to `going`. `None`: there are none; then
    /// `waits_until` says until when, if that is known.
    pub(super) fn let_go(&mut self) -> Option<Option<Patience>> {
        self.going.clear();
        let mut best_effort = true;
        if let Some(streams) = &mut self.streams {
            let (queues, others) = streams.decide(self.now);
            self.going.extend_from_slice(queues);
            best_effort = others;
            self.waits_until = streams.next_wakeup();
        }
        self.inheriting = self.let_inherit();
        if self.inheriting.is_some() {
            return Some(None);
        }
        let mut patience = None;
        match &mut self.admit {
            None => {
                let few = self.config.order.looks_ahead() && self.pool.eligible() <= ahead::MOST;
                if self.streams.is_none() {
                    return Some(few.then_some((None, LONGEST)));
                }
                self.going.extend(best_effort.then_some(BEST_EFFORT));
                patience = (few && best_effort).then_some((Some(BEST_EFFORT), LONGEST));
            }
            Some(admit) => {
                let turn = admit.turn(self.now);
                let hurries = admit.hurries(self.now);
                match (turn, &mut self.streams) {
                    // It has to wait until streams have time to spare. Each mandatory request that
                    // is done frees what it would have taken at its worst; what is optional only
                    // what it takes.
                    (Turn::Queue(..), Some(streams)) if !best_effort => {
                        if hurries {
                            streams.only_mandatory(&mut self.going);
                        }
                    }
                    (Turn::Queue(queue, longest), _) => {
                        if hurries {
                            self.going.clear();
                        }
                        self.going.push(queue);
                        patience = Some((Some(queue), longest));
                    }
                    (Turn::Together, Some(_)) if !best_effort => {}
                    (Turn::Together, _) => {
                        admit.together(&mut self.going);
                        patience = Some((None, LONGEST));
                    }
                    (Turn::Wait(until), streams) => {
                        self.waits_until = Some(until);
                        // It is decided anew when what is at the drive comes back.
                        let until = if self.dispatch.at_drive().is_empty() { until } else { self.now };
                        // Who is waited for may himself wait for one of theirs.
                        let blocked = self.pool.waiting() > self.pool.eligible();
                        if let Some(streams) = streams.as_mut().filter(|_| hurries && !blocked) {
                            match streams.can_wait(until, self.now) {
                                true => self.going.clear(),
                                false => streams.only_mandatory(&mut self.going),
                            }
                        }
                    }
                    (Turn::Nobody, _) => {}
                }
            }
        }
        if let Some(streams) = &mut self.streams {
            let pool = &self.pool;
            streams.count(best_effort, |queue| pool.waiting_in(queue));
            self.stats.subset.count(streams.sizes());
        }
        (!self.going.is_empty()).then_some(patience)
    }

    /// A request was chosen.
    pub(super) fn tell_chosen(&mut self, slot: u32) {
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

    /// The command of a request goes, with so many sectors at its front that are not its own.
    pub(super) fn tell_sent(&mut self, slot: u32, command: &Command, front: u32) {
        if let Some(streams) = &mut self.streams {
            streams.sends(slot, command, front, self.now);
        }
    }

    /// Whether there is time for something that FILL would send, at the front of a request or alone
    /// ([`Streams::has_time_for`](crate::admit::das::streams::Streams::has_time_for)).
    pub(super) fn has_time_for(&mut self, sectors: u32, at_front_of: u32, in_gap: bool) -> bool {
        self.streams.as_mut().is_none_or(|s| s.has_time_for(sectors, at_front_of, in_gap, self.now))
    }

    /// When a stream's period ends that somebody waits for.
    pub(super) fn period_ends(&self) -> Option<Time> {
        let asks = self.pool.waiting() > 0 || self.fill.is_some();
        self.streams.as_ref().filter(|_| asks)?.next_wakeup()
    }
}
