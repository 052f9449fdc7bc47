//! How far a drive reads ahead: the same for the drive and for a scheduler's model of its cache.

use crate::geometry::Geometry;
use crate::profile::{CacheSpec, Prefetch};

/// Returns one past the last LBN of the track with `lbn`.
pub fn track_end(geometry: &Geometry, lbn: u64) -> u64 {
    geometry.track_of(lbn).map_or(lbn + 1, |t| t.first_lbn + t.lbns as u64)
}

/// Returns one past the last LBN that a drive reads ahead after a read that ends at `end`, in a
/// segment that begins at `first`; `sequential`: the read continues the one before it.
pub fn limit(geometry: &Geometry, cache: &CacheSpec, first: u64, end: u64, sequential: bool) -> u64 {
    if cache.prefetch_only_sequential && !sequential {
        return end;
    }
    let limit = match cache.prefetch {
        Prefetch::None => end,
        Prefetch::Sectors(n) => end + n as u64,
        Prefetch::ToTrackEnd(n) => (end + n as u64).min(track_end(geometry, end - 1)),
        Prefetch::ToCylinderEnd(n) => {
            let cylinder = geometry.track_of(end - 1).map(|t| t.cylinder);
            let mut upto = track_end(geometry, end - 1);
            while upto < end + n as u64 && geometry.track_of(upto).map(|t| t.cylinder) == cylinder {
                upto = track_end(geometry, upto);
            }
            upto.min(end + n as u64)
        }
        Prefetch::TrackAhead => match geometry.track_of(end) {
            None => end,
            Some(t) => {
                let upto = t.first_lbn + t.lbns as u64;
                if first < t.first_lbn { upto + t.spt as u64 } else { upto }
            }
        },
    };
    limit.min(geometry.capacity()).max(end)
}
