//! Queries and updates of the predictor concerning the drive's cache.

use headtime_disk::{Access, Head, Kind, Model, Place, Time};

use super::{Predictor, Told};
use crate::cache_model::{CacheModel, Found, Hit, reads_further};
use crate::classify::CLOSE;
use crate::flight::{Flight, Known, Served};
use crate::overheads::asked;
use crate::request::Surprise;

impl Predictor {
    /// Returns whether the drive's cache answers a read of these sectors that is sent now, or its
    /// read-ahead brings them within a revolution; or whether it may, because a read near them hit
    /// unexpectedly.
    pub fn answers_from_cache(&mut self, model: &Model, lbn: u64, count: u32, now: Time) -> bool {
        if !self.cached.exists() {
            return false;
        }
        if self.cached.surprises.near(&model.cache, lbn) {
            return true;
        }
        let (left, at) = left_alone(model, self.last(), now);
        let soon = model.mechanics.rotation.period();
        self.cached.holds(model, left.as_ref(), lbn, lbn + u64::from(count), at, soon)
    }

    /// Returns whether the drive may be reading ahead in an unknown place, because it served the
    /// last read differently from the prediction.
    #[inline]
    pub fn may_read_ahead(&self) -> bool {
        self.cached.surprises.reads_ahead_unknown
    }

    /// Returns whether the drive's cache holds the sectors of all commands at the drive.
    pub fn all_are_held(&self) -> bool {
        self.flights.iter().all(Flight::is_held)
    }

    /// Returns whether the drive's cache was predicted to hold all sectors of this command at the
    /// drive.
    pub fn is_held(&self, command: u64) -> bool {
        self.flights.iter().any(|f| f.command == command && f.is_held())
    }

    /// Returns whether the drive has a cache.
    #[inline]
    pub fn has_cache(&self) -> bool {
        self.cached.exists()
    }

    /// Returns whether the drive's cache holds all of these sectors when a command that is sent now
    /// reaches the drive.
    pub fn has_all(&mut self, model: &Model, lbn: u64, count: u32, now: Time) -> bool {
        if !self.cached.exists() {
            return false;
        }
        let (left, at) = left_alone(model, self.last(), now);
        self.cached.has_all(model, left.as_ref(), lbn, lbn + u64::from(count), at)
    }

    /// Returns whether the drive reads further ahead after a read of `lbn..lbn + count` if its
    /// command begins at `front`.
    pub fn reads_further_behind(&self, model: &Model, front: u64, lbn: u64, count: u32) -> bool {
        self.cached.exists()
            && model.cache.prefetch_on_idle_hit
            && reads_further(model, front, lbn, lbn + u64::from(count))
    }

    /// Returns the end of the front of these sectors that the drive's cache holds; `None` if it
    /// holds none.
    pub fn held_front(&mut self, model: &Model, lbn: u64, count: u32) -> Option<u64> {
        if self.cached.exists() { self.cached.held_front(model, lbn, lbn + u64::from(count)) } else { None }
    }

    /// Returns how many segments of the drive's cache the foreground has used since the one that
    /// its read of these sectors would hit without background work; `None` when it would miss.
    pub fn foreground_age(&mut self, model: &Model, lbn: u64, count: u32) -> Option<u32> {
        if self.cached.exists() { self.cached.foreground_age(model, lbn, lbn + u64::from(count)) } else { None }
    }

    /// Returns whether a background command can use one more segment of the drive's cache and leave
    /// those to the foreground that are no older than `oldest`.
    pub fn has_room_for_background(&self, oldest: u32) -> bool {
        self.cached.has_room_for_background(oldest)
    }

    /// Corrects the model of the drive's cache after a command on `segment` that was not served as
    /// predicted; it is the flight at `at`.
    pub(super) fn correct_segment(&mut self, model: &Model, at: usize, segment: usize, told: &Told) {
        let flight = &self.flights[at];
        let (command, lbn, count) = (flight.command, flight.lbn, flight.count);
        let &Told { prediction, kept_reading, .. } = told;
        // Where reads continue each other, the read-ahead decides, and `kept_reading` shows the
        // result. But a prefetch that was still on its way had brought nothing yet.
        let on_its_way = flight.delay > CLOSE && !kept_reading;
        let elsewhere = matches!(flight.served, Served::Media) && (!flight.sequential || on_its_way);
        // Its first sectors were known to be there.
        let more = !kept_reading && matches!(flight.served, Served::Rest | Served::Running);
        let is_hit = prediction.is_some_and(|p| p.surprise == Surprise::CacheHit);
        if flight.kind.is_read() && !kept_reading && is_hit {
            self.cached.surprises.note(&model.cache, lbn);
        }
        if is_hit && (elsewhere || more) {
            let known = &self.known;
            let waits = known.keeps_waiting(flight.sent).then_some(known.free_at);
            let begin = asked(model, known.kind, flight.sent, waits) + flight.delay;
            let head = (self.flights.len() == 1).then(|| known.wait_until(model, begin, flight.arm));
            self.cached.was_hit(model, (command, segment), (lbn, count, flight.sequential), more, head);
            self.known.head = known.wait_until(model, known.head.at, flight.arm);
        } else {
            self.cached.surprised(command, segment, lbn, count, kept_reading);
        }
    }

    /// Marks the command sent last as background work: the foreground would not have used its
    /// segments of the drive's cache.
    pub fn was_background(&mut self) {
        self.has_background_front();
        self.cached.was_background();
    }

    /// Marks the command sent last as one with background sectors at its front.
    pub fn has_background_front(&mut self) {
        if let Some(flight) = self.flights.back_mut() {
            flight.background = true;
        }
    }
}

/// Applies a command to the model of the drive's cache, and returns how it ends.
pub(super) fn through_cache(
    cached: &mut CacheModel,
    model: &Model,
    flight: &mut Flight,
    place: &Place,
    known: &Known,
) -> Option<Access> {
    let (left, at) = left_alone(model, known, flight.sent);
    if flight.kind.is_read() {
        flight.sequential = cached.continues(place.lbn);
        let waits = known.keeps_waiting(flight.sent).then(|| known.wait_until(model, known.free_at, None));
        cached.go_on(model, place.lbn, place.lbn + place.count as u64, waits.as_ref());
    }
    cached.settle(model, left.as_ref(), at);
    if !flight.kind.is_read() {
        cached.written(model, place);
        (flight.delay, flight.arm) = cached.stop(at);
        return flight.follow(model, known);
    }
    let found = cached.look_up(model, flight.command, place.lbn, place.count);
    match found {
        Found::Nothing => {
            (flight.delay, flight.arm) = cached.stop(at);
            let access = flight.follow(model, known)?;
            flight.latency = access.latency;
            let (segment, reads_on) = cached.missed(model, flight.command, place, &access, known.sure);
            flight.segment = Some(segment);
            if !model.cache.same_track_prefetch_delays {
                flight.might_read_on = reads_on;
            } else if reads_on.is_some() {
                flight.reads_on = reads_on;
                flight.follow(model, known);
            }
            Some(access)
        }
        Found::All(segment) | Found::Front(segment) => {
            flight.segment = Some(segment);
            let end = place.lbn + place.count as u64;
            flight.sequential = cached.continues(place.lbn);
            let waits = known.keeps_waiting(flight.sent).then_some(at);
            let begin = asked(model, known.kind, flight.sent, waits);
            match cached.hit(model, (flight.command, place), segment, at, &known.head, begin) {
                Hit::Running { there, to_end } => {
                    (flight.there, flight.to_end) = (there, to_end);
                    flight.served = if matches!(found, Found::All(_)) { Served::Cache } else { Served::Running };
                    if let (Served::Running, Some(track)) = (flight.served, model.geometry.track_of(end - 1)) {
                        flight.arm = Some((track.cylinder, track.surface));
                    }
                }
                Hit::GoesOn { from } => {
                    flight.served = if from == end { Served::Cache } else { Served::GoesOn };
                    if from < end {
                        flight.place = model.place(from, (end - from) as u32, Kind::Read);
                    }
                }
                Hit::Resting { from, delay, arm } => {
                    (flight.delay, flight.arm) = (delay, arm);
                    flight.served = if from == end { Served::Cache } else { Served::Rest };
                    if from < end {
                        flight.place = model.place(from, (end - from) as u32, Kind::Read);
                    }
                }
            }
            flight.follow(model, known)
        }
    }
}

/// Returns when the drive begins a command sent at `sent` after what ended as `known`, and the head
/// at the end of that if the drive had nothing to do in between.
pub(super) fn left_alone(model: &Model, known: &Known, sent: Time) -> (Option<Head>, Time) {
    if known.keeps_waiting(sent) {
        return (None, known.free_at);
    }
    let head = known.sure.then(|| known.wait_until(model, known.free_at.max(known.head.at), None));
    (head, sent)
}
