//! What passes under the head during a read, and how far a drive reads ahead after it.

use headtime_disk::internals::read_ahead;
use headtime_disk::{Access, Model, Place};

/// What passed under the head during a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    /// The first requested LBN.
    pub asked: u64,
    /// One past the last.
    pub end: u64,
    /// How many sectors passed before the first one. If the track has fewer before it, the
    /// remaining ones passed at the end of the track.
    pub before: u64,
    /// Set if the whole track passed: its first LBN, and one past its last.
    pub whole: Option<(u64, u64)>,
}

impl Passed {
    /// Returns the first LBN of a segment filled by this, or a lower one on another track.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.whole.map_or(self.asked.saturating_sub(self.before), |(first, _)| first)
    }

    /// Returns one past the last LBN of a segment filled by this.
    #[inline]
    pub(super) fn upto(&self) -> u64 {
        self.whole.map_or(self.end, |(_, end)| end)
    }

    /// Returns the LBN from which the rest of the track passed before the read; `None` where it did
    /// not.
    pub(super) fn tail(&self, model: &Model) -> Option<u64> {
        let track = model.geometry.track_of(self.asked)?;
        let missing = self.before.checked_sub(self.asked - track.first_lbn).filter(|&n| n > 0)?;
        let track_end = track.first_lbn + track.lbns as u64;
        (self.end <= track_end).then(|| track_end.saturating_sub(missing).max(self.end))
    }
}

/// Returns one past the last LBN of the track of `lbn`.
pub(super) fn track_end(model: &Model, lbn: u64) -> u64 {
    read_ahead::track_end(&model.geometry, lbn)
}

/// Returns what passed under the head during a read that was served by `access`, if that is `sure`.
/// Only a drive that keeps what passes has more of it than was requested.
#[inline]
pub(super) fn passed(model: &Model, place: &Place, access: &Access, sure: bool) -> Passed {
    let (asked, end) = (place.lbn, place.lbn + place.count as u64);
    let mut passed = Passed { asked, end, before: 0, whole: None };
    if !model.keep_passing || !sure {
        return passed;
    }
    // Only an access without a landing ends where the last sector does and takes the time of the
    // place.
    if access.end.angle == place.end_angle && access.transfer == place.transfer {
        passed.before = (access.latency.0 << 32) / model.mechanics.rotation.sector_fx(place.spt).max(1);
    } else if let Some(track) = model.geometry.track_of(asked) {
        // It landed inside and wrapped around: the whole track has passed.
        let track_end = track.first_lbn + track.lbns as u64;
        passed.whole = (end <= track_end).then_some((track.first_lbn, track_end));
    }
    passed
}

/// Returns whether a drive reads further ahead after a read of `lbn..end` if its command begins at
/// `front`: some read longer where a segment begins on the track before.
pub(crate) fn reads_further(model: &Model, front: u64, lbn: u64, end: u64) -> bool {
    prefetch_limit(model, front, end, true) > prefetch_limit(model, lbn, end, true)
}

/// Returns how far a drive reads ahead after a read that ends at `end`, in a segment that begins at
/// `first`.
pub(super) fn prefetch_limit(model: &Model, first: u64, end: u64, sequential: bool) -> u64 {
    read_ahead::limit(&model.geometry, &model.cache, first, end, sequential)
}
