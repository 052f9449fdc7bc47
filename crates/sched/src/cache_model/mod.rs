//! Model of the contents of the drive's cache, so that cache hits are predicted.
//!
//! All of it follows from the profile and from what the host sent and saw: a read fills a segment,
//! on some drives with everything that passed under the head on its track; a write invalidates its
//! blocks in the other segments; and after a read with no command waiting the drive reads ahead.
//! The rules are those of the drive ([`headtime_disk::Drive`]), with the predicted head in place of
//! the real one.
//!
//! Two effects are not modelled: when a drive writes back its cached writes, and the revolution
//! that a prefetch loses when it would overwrite data that is not delivered yet.

mod ahead;
mod continuation;
mod passed;
mod segments;
mod surprises;

use headtime_disk::{Access, Dur, Head, Model, Place, Time};

use ahead::{Ahead, Behind, PrefetchState, begin_ahead};
pub(crate) use passed::reads_further;
use passed::{Passed, passed, prefetch_limit};
pub(crate) use segments::Found;
use segments::Segments;
use surprises::Surprises;

use crate::passage::{ReadsOn, Track};

/// How the cache serves a read of which it holds at least the front.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hit {
    /// A running prefetch has brought all of it, or will have by then.
    Running {
        /// When the last of it that the prefetch reads passes under the head.
        there: Time,
        /// Whether that is its last block. What passed before the read that the prefetch follows is
        /// not read again.
        to_end: bool,
    },
    /// It was queued in time, and the drive continues reading for it without a break.
    GoesOn {
        /// The first LBN that passes once the preceding command is done.
        from: u64,
    },
    /// No prefetch of it is running.
    Resting {
        /// The first LBN that comes from the media, if any.
        from: u64,
        /// How long another prefetch takes to stop.
        delay: Dur,
        /// Where that leaves the arm (`None`: where the last command did).
        arm: Option<Track>,
    },
}

/// The model of the cache.
#[derive(Clone, Debug)]
pub(crate) struct CacheModel {
    segments: Segments,
    behind: Option<Behind>,
    ahead: Option<Ahead>,
    /// State of `ahead` when the current command arrives.
    prefetch: Option<PrefetchState>,
    /// Where a prefetch left the arm; `None` when it is where the last command left it.
    rest: Option<Track>,
    /// The drive continues reading for the current read.
    continues: bool,
    last_read_end: u64,
    last_read_track: Option<Track>,
    /// The command of the last close call: a read that arrived just as the prefetch reached its
    /// first block.
    close_call: Option<u64>,
    /// Balance of the last close calls: hits less misses, within ±[`CALLS`].
    close_hits: i8,
    /// Reads that hit unexpectedly.
    pub surprises: Surprises,
}

/// Bound of [`CacheModel::close_hits`].
const CALLS: i8 = 4;

impl CacheModel {
    /// Creates an empty cache, if the drive has one.
    pub(crate) fn new(model: &Model) -> CacheModel {
        CacheModel {
            segments: Segments::new(&model.cache),
            behind: None,
            ahead: None,
            prefetch: None,
            rest: None,
            continues: false,
            last_read_end: u64::MAX,
            last_read_track: None,
            close_call: None,
            close_hits: 0,
            surprises: Surprises::default(),
        }
    }

    /// Returns whether the drive has a cache.
    #[inline]
    pub(crate) fn exists(&self) -> bool {
        self.segments.exist()
    }

    /// Returns whether the arm is where the last command left it, and stays there.
    #[inline]
    pub(crate) fn at_rest(&self) -> bool {
        self.behind.is_none() && self.ahead.is_none() && self.rest.is_none()
    }

    /// Returns what a command finds that begins at `at`: how long the prefetch takes to stop, and
    /// where it leaves the arm (`None`: where the last command did). `head` is the head at the end
    /// of the last media access; `None` when that is not known, or another command was waiting.
    pub(crate) fn finds(&self, model: &Model, head: Option<&Head>, at: Time) -> (Dur, Option<Track>) {
        match self.running(model, head) {
            None => (Dur::ZERO, self.rest),
            Some(ahead) => {
                let state = ahead.state_at(model, at, model.cache.stop_in_sector);
                (state.free.since(at), Some(state.track))
            }
        }
    }

    /// Updates the model to `at`, when a command begins; `head` as for [`CacheModel::finds`].
    #[inline]
    pub(crate) fn settle(&mut self, model: &Model, head: Option<&Head>, at: Time) {
        if self.behind.is_none() && self.ahead.is_none() {
            return;
        }
        if let Some(behind) = self.behind.take() {
            self.ahead = head.and_then(|h| begin_ahead(model, &behind, h));
            match self.ahead {
                Some(_) => self.segments.filling(behind.segment),
                None => self.segments.filled(behind.segment),
            }
        }
        let Some(ahead) = self.ahead else {
            return;
        };
        let state = ahead.state_at(model, at, model.cache.stop_in_sector);
        self.segments.fill_to(ahead.segment, state.reached);
        if state.over {
            self.segments.filled(ahead.segment);
            self.rest = Some(state.track);
            self.ahead = None;
        } else {
            // Simulated from its current track, so that the cost does not grow with the length of
            // the prefetch.
            if let Some(ahead) = &mut self.ahead {
                (ahead.from, ahead.head) = state.base;
            }
            self.prefetch = Some(state);
        }
    }

    /// Returns the end of the part of `lbn..end` that the drive's read-ahead brings into the buffer
    /// if no command is sent, and when ([`Time::ZERO`]: it has already). `None` if the buffer will
    /// not hold `lbn`. `head` as for [`CacheModel::finds`].
    pub(crate) fn reads_ahead(
        &mut self,
        model: &Model,
        head: Option<&Head>,
        lbn: u64,
        end: u64,
        now: Time,
    ) -> Option<(u64, Time)> {
        let ahead = match &self.behind {
            Some(behind) => begin_ahead(model, behind, head?)?,
            None => match self.ahead {
                Some(ahead) => ahead,
                None => return self.reads_on_behind(model, lbn, end),
            },
        };
        let first = self.still_holds_from(model, &ahead, now);
        let end = end.min(ahead.limit);
        (first <= lbn && lbn < end).then(|| (end, ahead.brings(model, lbn, end)))
    }

    /// Returns whether the cache holds the front of `lbn..end`, or will within `soon` after `at` by
    /// the running prefetch. `head` as for [`CacheModel::finds`].
    pub(crate) fn holds(
        &mut self,
        model: &Model,
        head: Option<&Head>,
        lbn: u64,
        end: u64,
        at: Time,
        soon: Dur,
    ) -> bool {
        let ahead = self.running(model, head);
        if let Some(ahead) = &ahead {
            let first = self.still_holds_from(model, ahead, at);
            if first <= lbn && lbn < ahead.limit {
                return ahead.brings(model, lbn, lbn + 1) <= at + soon;
            }
        }
        self.look_up_beside(model, ahead.as_ref(), lbn, end, at) != Found::Nothing
    }

    /// Returns the read-ahead that is running, or begins after the last read; `head` as for
    /// [`CacheModel::finds`].
    fn running(&self, model: &Model, head: Option<&Head>) -> Option<Ahead> {
        let begun = self.behind.and_then(|b| head.and_then(|h| begin_ahead(model, &b, h)));
        begun.or(self.ahead)
    }

    /// Returns the first LBN that the segment of a running read-ahead still holds at `at`: a full
    /// segment drops as many sectors at its front as are added at its end.
    fn still_holds_from(&mut self, model: &Model, ahead: &Ahead, at: Time) -> u64 {
        let (first, _) = self.segments.range(&model.geometry, ahead.segment);
        let reached = ahead.state_at(model, at, model.cache.stop_in_sector).reached;
        first.max(reached.saturating_sub(self.segments.size()))
    }

    /// Looks up `lbn..end` at `at`, without what the read-ahead `ahead` has dropped by then.
    fn look_up_beside(&mut self, model: &Model, ahead: Option<&Ahead>, lbn: u64, end: u64, at: Time) -> Found {
        let found = self.segments.look_up(&model.geometry, lbn, end);
        match (found, ahead) {
            (Found::All(i) | Found::Front(i), Some(ahead))
                if i == ahead.segment && lbn < self.still_holds_from(model, ahead, at) =>
            {
                Found::Nothing
            }
            _ => found,
        }
    }

    /// Returns the end of the buffered front of `lbn..end`, on a drive that reads ahead when only
    /// that is requested.
    fn reads_on_behind(&mut self, model: &Model, lbn: u64, end: u64) -> Option<(u64, Time)> {
        let Found::Front(segment) = self.segments.look_up(&model.geometry, lbn, end) else { return None };
        let (first, held) = self.segments.range(&model.geometry, segment);
        let limit = prefetch_limit(model, first, held, lbn == self.last_read_end);
        (model.cache.prefetch_on_idle_hit && limit > held).then_some((held, Time::ZERO))
    }

    /// Stops a running prefetch for a command that arrives at `at`; returns how long that takes,
    /// and where the arm is then (`None`: where the last command left it).
    #[inline]
    pub(crate) fn stop(&mut self, at: Time) -> (Dur, Option<Track>) {
        let mut delay = Dur::ZERO;
        if let (Some(ahead), Some(state)) = (self.ahead.take(), self.prefetch.take()) {
            self.segments.fill_to(ahead.segment, state.end);
            self.segments.filled(ahead.segment);
            self.rest = Some(state.track);
            delay = state.free.since(at);
        }
        (delay, self.rest.take())
    }

    /// Returns whether it holds all of `lbn..end` at `at`; `head` as for [`CacheModel::finds`].
    pub(crate) fn has_all(&mut self, model: &Model, head: Option<&Head>, lbn: u64, end: u64, at: Time) -> bool {
        let ahead = self.running(model, head);
        matches!(self.look_up_beside(model, ahead.as_ref(), lbn, end, at), Found::All(_))
    }

    /// Looks up a read that the drive begins now; keeps its command's ID if that is a close call.
    ///
    /// A drive that is about to read the first block of a read, as the next one of its prefetch,
    /// continues reading for it. Some drives read the block again. The preceding read completes at
    /// the host within microseconds of its last block's passing; how many is noise, so the host
    /// does not know either whether the block has passed already. So in such a close call the
    /// outcome of the last close calls decides.
    #[inline]
    pub(crate) fn look_up(&mut self, model: &Model, command: u64, lbn: u64, count: u32) -> Found {
        let found = self.segments.look_up(&model.geometry, lbn, lbn + count as u64);
        let (Found::Nothing, Some(ahead), Some(state)) = (found, &self.ahead, &self.prefetch) else { return found };
        let is_next = self.segments.continues_at(&model.geometry, ahead.segment, lbn);
        if self.continues && is_next {
            return Found::Front(ahead.segment);
        }
        let continues = lbn == self.last_read_end && state.reached <= lbn;
        if lbn >= ahead.limit || !(continues || is_next) {
            return found;
        }
        self.close_call = Some(command);
        if self.close_hits >= 0 { Found::Front(ahead.segment) } else { found }
    }

    /// Returns the end of the front of `lbn..end` that it holds, in the state when the last command
    /// was sent; `None` if it holds none.
    pub(crate) fn held_front(&mut self, model: &Model, lbn: u64, end: u64) -> Option<u64> {
        match self.segments.look_up(&model.geometry, lbn, end) {
            Found::Nothing => None,
            Found::All(_) => Some(end),
            Found::Front(i) => Some(self.segments.range(&model.geometry, i).1),
        }
    }

    /// Returns [`Segments::foreground_age`] in the state when the last command was sent.
    pub(crate) fn foreground_age(&mut self, model: &Model, lbn: u64, end: u64) -> Option<u32> {
        self.segments.foreground_age(&model.geometry, lbn, end)
    }

    /// Returns [`Segments::has_room_for_background`].
    pub(crate) fn has_room_for_background(&self, oldest: u32) -> bool {
        self.segments.has_room_for_background(oldest)
    }

    /// Marks the command sent last as background work.
    pub(crate) fn was_background(&mut self) {
        self.segments.used_in_background();
    }

    /// Records whether a read was served from the cache or by a prefetch.
    #[inline]
    pub(crate) fn served(&mut self, command: u64, found: bool) {
        if self.close_call.take_if(|c| *c == command).is_some() {
            self.close_hits = (self.close_hits + if found { 1 } else { -1 }).clamp(-CALLS, CALLS);
        }
    }

    /// Records a read of `place` that missed and was served by `access`; `sure`: whether that is
    /// known. Returns the segment it filled, and the read-ahead after it on a drive that reads a
    /// track to its end after a second read there, whether or not this drive does so.
    #[inline]
    pub(crate) fn missed(
        &mut self,
        model: &Model,
        command: u64,
        place: &Place,
        access: &Access,
        sure: bool,
    ) -> (usize, Option<ReadsOn>) {
        self.surprises.missed();
        self.surprises.reads_ahead_unknown = false;
        let passed = passed(model, place, access, sure);
        let end = passed.end;
        let segment = self.segments.read(passed.first(), passed.asked, passed.upto());
        let track = (place.end_cylinder, place.end_surface);
        let mut from = passed.upto();
        let mut reads_on = None;
        if self.last_read_track == Some(track)
            && let Some(t) = model.geometry.track_of(end - 1)
            && t.first_lbn + t.lbns as u64 > end
        {
            let upto = t.first_lbn + t.lbns as u64;
            reads_on = Some(ReadsOn { count: (upto - end) as u32, spt: t.spt });
            if model.cache.same_track_prefetch_delays {
                self.segments.fill_to(segment, upto);
                from = from.max(upto);
            }
        }
        self.delivered(model, segment, end);
        let sequential = passed.asked == self.last_read_end;
        self.behind = Some(Behind { command, segment, passed, from, sequential, on: None });
        self.note_read(end, Some(track));
        (segment, reads_on)
    }

    /// Corrects the segment that a read filled, which was served by another `access` than
    /// predicted.
    pub(crate) fn correct_pass(&mut self, model: &Model, segment: usize, place: &Place, access: &Access) {
        let p = passed(model, place, access, true);
        if self.segments.only(segment, p.asked, p.end) {
            self.segments.set(segment, p.first(), p.asked, p.upto());
            if let Some(behind) = self.behind.as_mut().filter(|b| b.segment == segment) {
                (behind.passed, behind.from) = (p, p.upto());
            }
        }
    }

    /// Records a hit: a `command` that reads `place` and arrives at `at`; `segment` holds all of it
    /// or its front. `head` is where the last command left the head, and `begin` when the drive
    /// would start reading more into that segment.
    pub(crate) fn hit(
        &mut self,
        model: &Model,
        (command, place): (u64, &Place),
        segment: usize,
        at: Time,
        head: &Head,
        begin: Time,
    ) -> Hit {
        let end = place.lbn + place.count as u64;
        let sequential = place.lbn == self.last_read_end;
        self.segments.touch(segment);
        self.surprises.reads_ahead_unknown = false;
        let (first, held) = self.segments.range(&model.geometry, segment);
        let limit = prefetch_limit(model, first, end, sequential);
        let hit = if let Some(ahead) = self.ahead.as_mut().filter(|a| a.segment == segment) {
            // It continues, further than planned.
            if limit > ahead.limit {
                (ahead.limit, ahead.known_to) = (limit, 0);
            }
            let ahead = *ahead;
            match self.continues {
                true => self.went_on_for(command, place, &ahead, held),
                false => Hit::Running { there: ahead.brings(model, place.lbn, end), to_end: end <= ahead.limit },
            }
        } else {
            let (delay, arm) = self.stop(at);
            if limit > held && (held < end || model.cache.prefetch_on_idle_hit) {
                let begin = begin + delay;
                let (cylinder, surface) = arm.unwrap_or((head.cylinder, head.surface));
                let angle = head.angle_at(begin, &model.mechanics.rotation);
                let head = Head { cylinder, surface, angle, at: begin };
                self.segments.filling(segment);
                self.ahead = Some(Ahead { segment, from: held, limit, known_to: 0, head });
            }
            Hit::Resting { from: held.min(end), delay, arm }
        };
        self.prefetch = None;
        let habit = model.cache.same_track_prefetch_delays;
        let track = if habit { model.geometry.track_of(end - 1) } else { None };
        self.note_read(end, track.map(|t| (t.cylinder, t.surface)));
        self.delivered(model, segment, end);
        hit
    }

    /// Records a write of `place`, while a running prefetch still has its segment.
    pub(crate) fn written(&mut self, model: &Model, place: &Place) {
        self.surprises.reads_ahead_unknown = false;
        self.segments.write(
            &model.geometry,
            place.lbn,
            place.lbn + place.count as u64,
            model.cache.read_hits_on_written,
            model.cache.updates_segments(),
        );
        (self.last_read_end, self.last_read_track) = (u64::MAX, None);
    }

    /// Records a failed read: its segment is invalid.
    pub(crate) fn failed(&mut self, command: u64, segment: usize) {
        self.segments.forget(segment);
        self.behind.take_if(|b| b.command == command);
    }

    fn note_read(&mut self, end: u64, track: Option<Track>) {
        self.last_read_end = end;
        self.last_read_track = track;
    }

    fn delivered(&mut self, model: &Model, segment: usize, end: u64) {
        if !model.cache.keep_delivered {
            self.segments.drop_delivered(segment, end);
        }
    }
}
