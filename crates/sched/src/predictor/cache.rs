//! What is asked of the predictor about the drive's cache, and told it.

use headtime_disk::model::Model;
use headtime_disk::time::Time;

use super::{Predictor, left_alone};
use crate::cached::reads_further;
use crate::flight::Flight;

impl Predictor {
    /// Whether the drive's cache answers a read of these sectors that is sent now, or its
    /// read-ahead brings them within a turn; or it may, because it surprised with something near
    /// them.
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

    /// Whether the drive may be reading ahead where nothing is known of it, because it served the
    /// last read otherwise than believed.
    #[inline]
    pub fn may_read_ahead(&self) -> bool {
        self.cached.surprises.reads_ahead_unknown
    }

    /// Whether the drive's cache holds what all commands at the drive ask for.
    pub fn all_are_held(&self) -> bool {
        self.flights.iter().all(Flight::is_held)
    }

    /// Whether the drive's cache was believed to hold all that this command at the drive asks for.
    pub fn is_held(&self, command: u64) -> bool {
        self.flights.iter().any(|f| f.command == command && f.is_held())
    }

    /// Whether the drive has a cache.
    #[inline]
    pub fn has_cache(&self) -> bool {
        self.cached.exists()
    }

    /// Whether the drive's cache holds all of these sectors when a command that is sent now reaches
    /// the drive.
    pub fn has_all(&mut self, model: &Model, lbn: u64, count: u32, now: Time) -> bool {
        if !self.cached.exists() {
            return false;
        }
        let (left, at) = left_alone(model, self.last(), now);
        self.cached.has_all(model, left.as_ref(), lbn, lbn + u64::from(count), at)
    }

    /// Whether the drive reads further ahead behind a read of `lbn..lbn + count` if its command
    /// begins at `front`.
    pub fn reads_further_behind(&self, model: &Model, front: u64, lbn: u64, count: u32) -> bool {
        self.cached.exists()
            && model.cache.prefetch_on_idle_hit
            && reads_further(model, front, lbn, lbn + u64::from(count))
    }

    /// Up to where the drive's cache holds the front of these sectors; `None` if it does not.
    pub fn held_front(&mut self, model: &Model, lbn: u64, count: u32) -> Option<u64> {
        if self.cached.exists() { self.cached.held_front(model, lbn, lbn + u64::from(count)) } else { None }
    }

    /// The foreground is about to read these sectors: how many segments of the drive's cache it has
    /// used since the one that it would hit without background work; `None` when it would hit none.
    pub fn foreground_age(&mut self, model: &Model, lbn: u64, count: u32) -> Option<u32> {
        if self.cached.exists() { self.cached.foreground_age(model, lbn, lbn + u64::from(count)) } else { None }
    }

    /// Whether a background command can use one more segment of the drive's cache and leave the
    /// foreground those of which it has used no more than `oldest` since.
    pub fn has_room_for_background(&self, oldest: u32) -> bool {
        self.cached.has_room_for_background(oldest)
    }

    /// The command sent last was background work: what it uses of the drive's cache the foreground
    /// would not have used.
    pub fn was_background(&mut self) {
        self.has_background_front();
        self.cached.was_background();
    }

    /// The command sent last has background sectors at its front.
    pub fn has_background_front(&mut self) {
        if let Some(flight) = self.flights.back_mut() {
            flight.background = true;
        }
    }
}
