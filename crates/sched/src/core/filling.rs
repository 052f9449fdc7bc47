//! Background work before a foreground request.
//!
//! ORDER has chosen a request; it is held in the dispatch queue while FILL searches for background
//! work that fits before it (Lumb 2002 section 4.1, figure 5). One command is searched for at a
//! time: when the drive has room again, the rest of the gap is searched again with the newest
//! observations. A late head therefore invalidates no plan: the next search starts at its actual
//! position.

use headtime_disk::{Command, Dur, Head, Kind, Outcome, Place};

use super::Core;
use crate::admit::BACKGROUND;
use crate::dispatch::{Purpose, Sent};
use crate::fill::gap::{Gap, Leg, MAX_LEGS};
use crate::fill::subsystem::GapToFill;
use crate::fill::subsystem::promotion::Load;
use crate::overheads::lead_in;
use crate::request::{Prediction, Request};
use crate::tasks::{TaskEvent, TaskRange};

/// Owner of freeblock work in requests.
const NO_OWNER: u32 = BACKGROUND;

/// Safety margin: the drive is assumed to have started the waiting command this long after the
/// predicted start. Not tuned: it delays no request, because the drive serves that one meanwhile.
const TAKEN_UP: Dur = Dur::from_us(100);

/// Searches for one command. Each after the first is needed only if the previous result is
/// unusable, which is rare.
pub(super) const SEARCHES: usize = 3;

/// The next dispatch.
enum Next {
    /// Nothing can be put before the request.
    Request,
    /// This leg.
    Leg(Leg),
    /// Data was requested from the application; its answer must come first.
    Asked,
}

impl Core {
    /// Returns the next event of a task.
    pub(super) fn next_event(&mut self) -> Option<TaskEvent> {
        self.fill.as_mut()?.tasks.next_event()
    }

    /// Processes a completion: delivers its blocks to the tasks that want them, and compares it
    /// with its prediction.
    pub(super) fn learn(&mut self, sent: &Sent, outcome: Outcome, prediction: Option<&Prediction>) {
        let Some(fill) = &mut self.fill else {
            return;
        };
        fill.completed(&self.model, sent, outcome, self.now);
        fill.observed(&mut self.model, sent, prediction);
        if let (Purpose::Free(_), Some(p)) = (sent.purpose, prediction) {
            self.stats.free_prediction.add(p);
        }
    }

    /// Holds the next command until the drive has started the waiting foreground request, which the
    /// read-ahead after a background command may delay. A drive that reorders its queue could start
    /// a command sent now before that request, which would then be a revolution late.
    pub(super) fn hold_behind_free_work(&mut self) {
        if let Some(until) = self.predictor.reads_on_until(self.now).filter(|_| self.predictor.outstanding() > 0) {
            self.dispatch_not_before = until + TAKEN_UP;
        }
    }

    /// Returns the next command, background work included.
    pub(super) fn send_filled(&mut self) -> Option<Command> {
        self.feed_promoted();
        let Some(slot) = self.hold() else {
            return self.send_idle();
        };
        match self.before(slot) {
            Next::Asked => {
                self.commit_to(slot);
                None
            }
            Next::Request => {
                self.commit_to(slot);
                self.next_request = None;
                Some(self.send_request(slot))
            }
            Next::Leg(leg) if leg.merged => {
                self.commit_to(slot);
                self.next_request = None;
                Some(self.send_merged(slot, &leg))
            }
            Next::Leg(leg) => {
                self.commit_to(slot);
                self.fill.as_mut().expect("FILL is on").legs_before += 1;
                Some(self.send_free(&leg, false))
            }
        }
    }

    /// Returns the next request: the one already held for background work, or ORDER's choice.
    ///
    /// The choice is tentative until the first command is dispatched (the request's own, or a
    /// background command before it), or until data for a background write is requested. From then
    /// on it is final. A drive with its own queue would not consider later arrivals either, and a
    /// request that could be replaced each time a background command precedes it would wait too
    /// long. With streams the choice is final at once, because a stream reserves time for the
    /// chosen request.
    fn hold(&mut self) -> Option<u32> {
        loop {
            let slot = match self.next_request {
                Some(slot) => slot,
                None => {
                    let slot = self.choose()?;
                    let slot = self.weigh(slot);
                    let fill = self.fill.as_mut().expect("FILL is on");
                    fill.legs_before = 0;
                    fill.set_idling_window(None, self.now);
                    slot
                }
            };
            if !self.fill.as_mut().expect("FILL is on").withdraw_if_unneeded(slot, self.now) {
                if self.streams.is_some() {
                    self.commit_to(slot);
                }
                return Some(slot);
            }
            self.commit_to(slot);
            self.next_request = None;
            if let Some(streams) = &mut self.streams {
                streams.withdrawn(slot);
            }
            self.gone(slot);
            self.notify_ready();
        }
    }

    /// Makes the choice final.
    fn commit_to(&mut self, slot: u32) {
        if self.next_request.is_none() {
            self.take(slot);
            self.next_request = Some(slot);
        }
    }

    /// Returns the gap before the request in `slot`, if there is one and it may be filled now.
    /// Excludes the ranges that must not be accessed.
    pub(super) fn gap_to_fill(&mut self, slot: u32) -> Option<GapToFill> {
        let fill = self.fill.as_mut().expect("FILL is on");
        fill.gate.set_overdue(self.predictor.is_overdue(self.now));
        if fill.legs_before == MAX_LEGS
            || !self.predictor.is_sure()
            || self.hands_over()
            || self.is_on_its_way(slot)
            || self.is_cached(slot)
        {
            return None;
        }
        let gap = self.gap_before(slot)?;
        let fill = self.fill.as_mut().expect("FILL is on");
        if !fill.may_fill() {
            return None;
        }
        let at_drive = self.dispatch.at_drive().iter().filter(|s| s.command.kind != Kind::Flush);
        let ranges = at_drive.map(|s| TaskRange { lbn: s.command.lbn, count: u64::from(s.command.count) });
        fill.set_aside(ranges, &gap.dest);
        let after_read = self.predictor.last_kind().is_read();
        let last_read = after_read.then_some((gap.read.cylinder, gap.read.surface));
        Some(GapToFill { gap, last_read, front_only: self.fills_front_only() })
    }

    /// Returns whether a request is in the range where the drive may be reading ahead behind the
    /// last foreground request: within one segment length after it. If the drive reads ahead there,
    /// the data come from the buffer, or as soon as their sectors have passed under the head. Then
    /// there is no gap before the request: a command put there would stop the read-ahead, and the
    /// request would lose a revolution or more.
    pub(super) fn may_be_read_ahead(&self, slot: u32) -> bool {
        let request = &self.pool.get(slot).request;
        let from = self.dispatch.lbn();
        let ahead = from..from + u64::from(self.model.cache.segment_sectors).max(1);
        self.model.reads_ahead()
            && request.kind == Kind::Read
            && self.predictor.last_kind().is_read()
            && ahead.contains(&request.lbn)
    }

    /// Returns whether the drive's read-ahead is on its way to a request, or will be after the
    /// commands in flight. Such a request completes as soon as its sectors have passed under the
    /// head. A read that begins exactly where the previous one ended always counts, even if the
    /// drive is predicted to have stopped reading ahead: each time that prediction is wrong, a
    /// sequential reader loses a revolution.
    fn is_on_its_way(&mut self, slot: u32) -> bool {
        let lbn = self.pool.get(slot).request.lbn;
        self.may_be_read_ahead(slot)
            && (lbn == self.dispatch.lbn()
                || !self.dispatch.at_drive().is_empty()
                || self.predictor.may_read_ahead()
                || self.predictor.reads_ahead(&self.model, lbn, lbn + 1, self.now).is_some())
    }

    /// Returns whether a request is served by the drive's cache: a read hit, or a write that the
    /// cache takes. There is no gap before such a request, because it needs no rotation. A command
    /// put before the read delays it by the whole command; a command put before the write moves the
    /// head away from the requests that follow.
    pub(super) fn is_cached(&mut self, slot: u32) -> bool {
        let Request { kind, lbn, count, fua, .. } = self.pool.get(slot).request;
        match kind {
            Kind::Read => self.predictor.answers_from_cache(&self.model, lbn, count, self.now),
            Kind::Write => self.model.cache.write_back && !fua,
            Kind::Flush => false,
        }
    }

    /// Returns what is dispatched before the request in `slot`.
    fn before(&mut self, slot: u32) -> Next {
        let fill = self.fill.as_mut().expect("FILL is on");
        if let Some(leg) = fill.answered(false, self.now) {
            // A conflicting request may have arrived since the application was asked.
            if !self.pool.conflicts(leg.kind, leg.lbn, leg.count) && self.has_time_before(slot, &leg) {
                return Next::Leg(leg);
            }
            self.fill.as_mut().expect("FILL is on").refused(&leg, self.now);
        }
        if !self.has_time_for(1, 0, true) {
            return Next::Request;
        }
        if let Some(leg) = self.read_through(slot) {
            return Next::Leg(leg);
        }
        let Some(to_fill) = self.gap_to_fill(slot) else {
            return Next::Request;
        };
        let may_return = self.fill.as_ref().is_some_and(|f| f.reuse.may_return());
        for _ in 0..SEARCHES {
            self.stats.cost.fill_searches += 1;
            let fill = self.fill.as_mut().expect("FILL is on");
            let Some(leg) = fill.search(&self.model, &to_fill, self.now) else {
                return Next::Request;
            };
            // A front that makes the drive read ahead further moves the head away again at each
            // later hit in that segment.
            if may_return && let Some(before) = self.prolongs_read_ahead(slot, &leg) {
                self.fill.as_mut().expect("FILL is on").leave_out(before);
                continue;
            }
            if let Some(range) = self.conflict_of(&leg) {
                self.fill.as_mut().expect("FILL is on").leave_out(range);
                continue;
            }
            if !self.has_time_before(slot, &leg) {
                return Next::Request;
            }
            let fill = self.fill.as_mut().expect("FILL is on");
            if leg.kind == Kind::Write {
                if fill.ask(&leg, false, self.now) {
                    return Next::Asked;
                }
                fill.leave_out(leg.range());
                continue;
            }
            return Next::Leg(leg);
        }
        Next::Request
    }

    /// Returns the part of a leg that must not be accessed now: what the drive's cache holds, or
    /// all of it if a waiting request conflicts with it.
    fn conflict_of(&mut self, leg: &Leg) -> Option<TaskRange> {
        // A leg that the cache answers does not move the head to where the plan assumes it. At the
        // front of a request, the request itself would be read from front to back, not as its
        // sectors arrive.
        let held = match leg.kind {
            Kind::Read => self.predictor.held_front(&self.model, leg.lbn, leg.count),
            _ => None,
        };
        let conflicts = self.pool.conflicts(leg.kind, leg.lbn, leg.count);
        let end = held.or(conflicts.then_some(leg.range().end()))?;
        Some(TaskRange { lbn: leg.lbn, count: end - leg.lbn })
    }

    /// Returns whether a gap is filled only at the front of the request's own command.
    pub(super) fn fills_front_only(&self) -> bool {
        let backwards = self.fill.as_ref().is_some_and(|f| f.backwards.is_habit());
        backwards || !self.has_segment_to_spare()
    }

    /// Returns whether the drive's cache has a segment that the foreground does not reuse.
    fn has_segment_to_spare(&self) -> bool {
        let oldest = self.fill.as_ref().and_then(|f| f.reuse.oldest());
        oldest.is_none_or(|oldest| self.predictor.has_room_for_background(oldest))
    }

    /// Returns the part of a merged leg that would make the drive read ahead further behind the
    /// request in `slot`.
    fn prolongs_read_ahead(&self, slot: u32, leg: &Leg) -> Option<TaskRange> {
        let Request { lbn, count, .. } = self.pool.get(slot).request;
        let further = |front| self.predictor.reads_further_behind(&self.model, front, lbn, count);
        if !leg.merged || leg.kind != Kind::Read || !further(leg.lbn) {
            return None;
        }
        let own = self.model.geometry.track_of(lbn)?.first_lbn.max(leg.lbn);
        let from = if further(own) { lbn } else { own };
        Some(TaskRange { lbn: leg.lbn, count: from - leg.lbn })
    }

    /// Returns whether there is time for a leg before the request in `slot` at its worst case.
    pub(super) fn has_time_before(&mut self, slot: u32, leg: &Leg) -> bool {
        let behind = if leg.merged { self.pool.get(slot).request.count } else { 0 };
        self.has_time_for(leg.count, behind, true)
    }

    /// Returns the gap before the request in `slot`, if there is one.
    ///
    /// On an idle drive the platter rotates during the search: what passes under the head until the
    /// end of the search is out of reach (Thereska 2003 section 4.6).
    fn gap_before(&mut self, slot: u32) -> Option<Gap> {
        let request = self.pool.get(slot);
        let (kind, place) = (request.request.kind, request.place?);
        let heads = self.predictor.next_heads(&self.model, self.now);
        // The request's own command follows the background command: at once if the drive has room
        // for both, else at the first completion, which may be later than predicted.
        let sent = match self.dispatch.has_room_for_two() {
            true => self.now,
            false => self.predictor.first_due()?.max(self.now) + self.commit.error(),
        };
        let ready = sent + lead_in(&self.model, Kind::Read, kind).max(lead_in(&self.model, Kind::Write, kind));
        let fill = self.fill.as_ref().expect("FILL is on");
        let mut gap = Gap::before(&self.model, heads, &place, kind, ready, &fill.margins())?;
        // A fixed margin, as in the papers, does not bound how early the head may arrive.
        if fill.legs_before == 0 && fill.adaptive.is_some() && gap.is_dubious(&self.model) {
            return None;
        }
        if self.dispatch.at_drive().is_empty() {
            let later = |h: Head| {
                let at = h.at + fill.search_time();
                Head { angle: h.angle_at(at, &self.model.mechanics.rotation), at, ..h }
            };
            (gap.read, gap.write) = (later(gap.read), later(gap.write));
        }
        Some(gap)
    }

    /// Dispatches a leg as its own command.
    pub(super) fn send_free(&mut self, leg: &Leg, idle: bool) -> Command {
        let request = free(leg.kind, leg.lbn, leg.count);
        let slot = self.pool.insert_sent(request, self.now);
        let command = self.dispatch.send(Purpose::Free(slot), &request, self.now);
        let place = self.model.place(leg.lbn, leg.count, leg.kind);
        if let Some(streams) = &mut self.streams {
            streams.fills(&command, self.now);
        }
        self.flies(&command, place, idle);
        self.fill.as_mut().expect("FILL is on").sends(leg, idle);
        self.predictor.sent(&self.model, command.id, leg.kind, place.as_ref(), self.now);
        self.predictor.was_background();
        command
    }

    /// Records whether the foreground reuses data held by the drive's cache; called before the
    /// predictor gets a request's command.
    pub(super) fn learn_reuse(&mut self, slot: u32) {
        let Request { kind, lbn, count, .. } = self.pool.get(slot).request;
        let Some(fill) = self.fill.as_mut().filter(|f| kind != Kind::Flush && !f.is_piece(slot)) else { return };
        let age = (kind == Kind::Read).then(|| self.predictor.foreground_age(&self.model, lbn, count));
        fill.reuse.request(age.flatten());
        if kind == Kind::Read && self.model.keep_passing {
            fill.backwards.read(&self.model.geometry, lbn);
        }
    }

    /// Marks a piece of a promoted task, or a straggler, as background; called after the predictor
    /// got its command.
    pub(super) fn note_piece(&mut self, slot: u32) {
        if self.is_piece(slot) {
            self.predictor.was_background();
        }
    }

    /// Records what is needed to learn from a command's completion; called before the predictor
    /// gets the command.
    pub(super) fn flies(&mut self, command: &Command, place: Option<Place>, idle: bool) {
        self.note_sent(command, place.as_ref());
        if let Some(fill) = &mut self.fill {
            let (read, _) = self.predictor.next_heads(&self.model, self.now);
            let alone = self.dispatch.at_drive().iter().all(|s| s.command.id == command.id);
            fill.flies(command.id, (read.cylinder, read.surface), place, idle, alone);
        }
    }

    /// Dispatches the request in `slot` with a leg at its front.
    fn send_merged(&mut self, slot: u32, leg: &Leg) -> Command {
        let own = self.pool.get(slot).request;
        assert!(leg.range().end() == own.lbn && leg.kind == own.kind, "{leg:?} is not the front of {own:?}");
        let front_slot = self.pool.insert_sent(free(leg.kind, leg.lbn, leg.count), self.now);
        let both = Request { lbn: leg.lbn, count: leg.count + own.count, ..own };
        let command = self.dispatch.send(Purpose::Merged(slot, front_slot, leg.count), &both, self.now);
        self.note_stream(&command);
        let place = self.model.place(both.lbn, both.count, both.kind);
        self.notify_sent(slot, &command, leg.count);
        self.learn_reuse(slot);
        self.flies(&command, place, false);
        self.fill.as_mut().expect("FILL is on").sends(leg, false);
        self.predictor.sent(&self.model, command.id, both.kind, place.as_ref(), self.now);
        self.predictor.has_background_front();
        self.note_piece(slot);
        command
    }

    /// Adds pieces of promoted tasks to the foreground, a few at a time.
    fn feed_promoted(&mut self) {
        let cached = self.dirty_until().is_some();
        // A straggler takes a segment of the drive's cache as well.
        let cached = cached || !self.has_segment_to_spare();
        while let Some(fill) = &mut self.fill {
            let next = usize::from(self.next_request.is_some());
            let requests = self.pool.waiting() + next + self.dispatch.at_drive().len();
            let load = Load { requests, cached };
            let Some((kind, range)) = fill.next_promoted(&self.model, load, self.now) else { return };
            let place = self.model.place(range.lbn, range.count as u32, kind);
            assert!(place.is_some(), "a task wants {range:?}, which is not on the disk");
            let piece = free(kind, range.lbn, range.count as u32);
            let queue = self.queue_of_piece(&piece);
            let slot = self.pool.insert(piece, place, queue, self.now);
            self.fill.as_mut().expect("FILL is on").piece_is(slot, kind, range);
            self.notify_ready();
        }
    }
}

/// Returns freeblock work as a request.
fn free(kind: Kind, lbn: u64, count: u32) -> Request {
    Request { id: u64::MAX, kind, lbn, count, fua: false, sync: true, owner: NO_OWNER }
}
