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

#[cfg(all(test, feature = "builtin"))]
mod tests {
    use super::*;
    use crate::profile::builtin;

    #[test]
    fn each_extent_ends_where_it_says() {
        let profile = builtin("atlas10k").unwrap();
        let geometry = Geometry::new(&profile.geometry).unwrap();
        let mut cache = profile.electronics.cache;
        let track = geometry.track_of(100_000).unwrap();
        let (end, next) = (track.first_lbn + 10, track.first_lbn + u64::from(track.lbns));
        let mut limit_of = |prefetch, sequential, only_sequential| {
            (cache.prefetch, cache.prefetch_only_sequential) = (prefetch, only_sequential);
            limit(&geometry, &cache, track.first_lbn, end, sequential)
        };
        assert_eq!(limit_of(Prefetch::None, true, false), end);
        assert_eq!(limit_of(Prefetch::Sectors(5_000), true, false), end + 5_000);
        assert_eq!(limit_of(Prefetch::ToTrackEnd(5), true, false), end + 5);
        assert_eq!(limit_of(Prefetch::ToTrackEnd(5_000), true, false), next);
        assert_eq!(limit_of(Prefetch::TrackAhead, true, false), next);
        let cylinder = limit_of(Prefetch::ToCylinderEnd(1 << 20), true, false);
        let of = |lbn| geometry.track_of(lbn).unwrap().cylinder;
        assert!(of(cylinder - 1) == track.cylinder && of(cylinder) == track.cylinder + 1);
        assert_eq!(limit_of(Prefetch::Sectors(5_000), false, true), end);
    }
}
