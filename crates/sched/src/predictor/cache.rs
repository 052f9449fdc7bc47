//! Queries and updates of the predictor concerning the drive's cache.

use headtime_disk::{Model, Time};

use super::{Predictor, left_alone};
use crate::cache_model::reads_further;
use crate::flight::Flight;

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
