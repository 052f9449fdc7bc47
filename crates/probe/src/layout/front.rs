//! What a drive keeps for itself in front of its first sector.
//!
//! The first visible sector is then anywhere on its track. The layout is found as if the whole
//! track were visible; its hidden sectors are reserved in the end. Whole hidden tracks are counted
//! like skipped ones (`skips`).

use headtime_disk::Geometry;
use headtime_disk::profile::GeometrySpec;

use super::rows::Row;
use crate::spindle::{apart, fraction};

/// Completes the first track, and returns how many of its sectors are hidden; all rows begin that
/// many sectors later. `same`: tolerance of angles, in revolutions.
pub(super) fn complete(rows: &mut Vec<Row>, same: f64) -> u32 {
    let [first, next, ..] = rows[..] else { return 0 };
    let hidden = first.missing();
    if first.tracks != 1 || hidden == 0 || next.spt != first.spt {
        return 0;
    }
    let spt = f64::from(first.spt);
    let angle = fraction(first.angle - f64::from(hidden) / spt);
    rows.iter_mut().for_each(|r| r.first += u64::from(hidden));
    rows[0] = Row { first: 0, sectors: first.spt, angle, ..first };
    // A rate is known to a part of a sector.
    let continues = apart(angle + next.skew, next.angle).abs() <= same + 0.5 / spt;
    if next.tracks > 1 && next.missing() == 0 && continues {
        rows[1] = Row { first: 0, tracks: next.tracks + 1, angle: fraction(next.angle - next.skew), ..next };
        rows.remove(0);
    }
    hidden
}

/// Reserves hidden sectors in front of a geometry's first one. Returns whether that is possible.
pub(super) fn reserve(spec: &mut GeometrySpec, hidden: u32) -> bool {
    if hidden == 0 {
        return true;
    }
    let Some(first) = Geometry::new(spec).ok().and_then(|g| g.track_of(0)) else { return false };
    let is_first = |z: &&mut headtime_disk::profile::ZoneSpec| {
        (z.first_cylinder..=z.last_cylinder).contains(&first.cylinder) && z.surface.is_none_or(|s| s == first.surface)
    };
    let Some(zone) = spec.zones.iter_mut().find(is_first) else { return false };
    zone.reserved_sectors += u64::from(hidden);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_first_track_is_completed_and_joins_the_row_that_continues_it() {
        let row =
            |first, tracks, sectors, angle| Row { first, tracks, sectors, spt: 100, skew: 0.25, angle, skipped: 0 };
        let single = Row { skew: 0.0, ..row(0, 1, 40, 0.7) };
        let mut rows = vec![single, row(40, 9, 100, 0.35), row(940, 9, 100, 0.6)];
        assert_eq!(complete(&mut rows, 1e-3), 60);
        let whole = rows[0];
        assert!((whole.angle - 0.1).abs() < 1e-9, "{whole:?}");
        assert_eq!((whole.first, whole.tracks, whole.sectors), (0, 10, 100));
        assert_eq!(rows[1].first, 1_000);
        let mut other = vec![single, row(40, 9, 100, 0.5)];
        assert_eq!((complete(&mut other, 1e-3), other.len()), (60, 2));
        let mut full = vec![row(0, 9, 100, 0.35), row(900, 9, 100, 0.6)];
        assert_eq!(complete(&mut full, 1e-3), 0);
    }
}
