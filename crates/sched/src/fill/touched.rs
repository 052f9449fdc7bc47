//! Cells and angular regions touched by a range of LBNs: what [`super::regions`] sets and clears.
//!
//! A cell's regions are bits, `all` of them, 1 << `shift` per cell. Groups of tracks are handled as
//! a whole, so that a task of a whole disk does not walk its tracks.

use headtime_disk::{Angle, Geometry};

use super::cells::Cells;
use super::track::TrackMap;
use crate::tasks::TaskRange;

/// Returns the word of a cell, and a mask shifted to its bits there.
#[inline]
pub(super) fn in_word(shift: u32, cell: u32, mask: u64) -> (u32, u64) {
    let per_word = 6 - shift;
    (cell >> per_word, mask << ((cell & ((1 << per_word) - 1)) << shift))
}

/// Returns the regions that an arc touches.
#[inline]
pub(super) fn arc(shift: u32, all: u64, from: Angle, span: u64) -> u64 {
    if span == 0 {
        return 0;
    }
    let bits = 64 - shift;
    let first = (u128::from(from.0) >> bits) as u32;
    let inside = u128::from(from.0) & ((1 << bits) - 1);
    // Regions that begin inside the arc.
    let more = ((inside + u128::from(span) - 1) >> bits) as u32;
    if more + 1 >= 1 << shift {
        return all;
    }
    let run = (1u64 << (more + 1)) - 1;
    // Rotated within the cell's bits.
    (run << first | run.checked_shr((1 << shift) - first).unwrap_or(0)) & all
}

/// Calls `found` with the cells that a range of LBNs touches, and the regions touched in each. A
/// cell may occur more than once.
pub(super) fn touched(
    cells: &Cells,
    shift: u32,
    all: u64,
    geometry: &Geometry,
    range: TaskRange,
    mut found: impl FnMut(std::ops::Range<u32>, u64),
) {
    let end = range.end().min(geometry.capacity());
    let mut lbn = range.lbn;
    // A group, and its first LBN, cached: finding that may take a walk over its cells, and it has
    // many tracks.
    let mut begins = (u32::MAX, None);
    while lbn < end {
        let Some(map) = TrackMap::of(geometry, lbn) else { return };
        let (cylinder, surface) = map.place();
        let group = cells.group_of(cylinder);
        let covered = end - lbn > u64::from(map.track.lbns);
        if covered && begins.0 != group {
            begins = (group, cells.first_lbn(geometry, group));
        }
        // At the beginning of a group, all groups that the range covers entirely are handled as a
        // whole.
        if covered
            && begins.1 == Some(lbn)
            && let Some(after) = groups_within(cells, geometry, group, end)
        {
            groups(cells, shift, all, geometry, (group, after), &mut found);
            // Groups without data may lie between.
            let next = (after..cells.groups()).find_map(|g| cells.first_lbn(geometry, g));
            lbn = next.unwrap_or(end);
            continue;
        }
        let mut mask = 0;
        map.arcs(geometry, lbn, end, |from, span| mask |= arc(shift, all, from, span));
        let cell = cells.of(cylinder, surface);
        found(cell..cell + 1, mask);
        lbn = map.end();
    }
}

/// Returns the group after the last one that ends at or before LBN `end`, if that is after `group`.
fn groups_within(cells: &Cells, geometry: &Geometry, group: u32, end: u64) -> Option<u32> {
    let last = cells.group_of(geometry.track_of(end - 1)?.cylinder);
    let behind = geometry.track_of(end).map(|t| cells.group_of(t.cylinder));
    // At the end of the disk, or of a group, the last group is covered too.
    let after = if behind == Some(last) { last } else { last + 1 };
    (after > group).then_some(after)
}

/// Calls `found` for the cells of the groups `from..to`, touched as a whole.
fn groups(
    cells: &Cells,
    shift: u32,
    all: u64,
    geometry: &Geometry,
    (from, to): (u32, u32),
    found: &mut impl FnMut(std::ops::Range<u32>, u64),
) {
    let mut group = from;
    while group < to {
        // All groups without holes at once: from the LBN before to the one before the next hole.
        let before = cells.first_lbn(geometry, group).and_then(|lbn| lbn.checked_sub(1));
        let unbroken = before.map_or(0, |lbn| geometry.unbroken_until(lbn));
        let last = geometry.track_of(unbroken.saturating_sub(1));
        let until = last.map_or(0, |t| cells.group_of(t.cylinder));
        let full = group..until.clamp(group, to);
        found(cells.first_of_group(full.start)..cells.first_of_group(full.end), all);
        group = full.end;
        if group < to {
            for cell in cells.first_of_group(group)..cells.first_of_group(group + 1).min(cells.count()) {
                match whole(cells, shift, all, geometry, cell) {
                    0 => {}
                    mask => found(cell..cell + 1, mask),
                }
            }
            group += 1;
        }
    }
}

/// Returns the regions of a cell in which it has data.
#[inline]
fn whole(cells: &Cells, shift: u32, all: u64, geometry: &Geometry, cell: u32) -> u64 {
    let mut mask = 0;
    for (cylinder, surface) in cells.tracks(cell) {
        let Some(track) = geometry.track(cylinder, surface) else { continue };
        if track.lbns == track.spt {
            return all;
        }
        let map = TrackMap::new(geometry, track);
        map.arcs(geometry, track.first_lbn, map.end(), |from, span| mask |= arc(shift, all, from, span));
        if mask == all {
            break;
        }
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arc_touches_the_regions_between_its_ends() {
        let eighth = 1u64 << 61;
        let at = |n: u64| Angle(eighth.wrapping_mul(n));
        assert_eq!(arc(3, 0xff, at(0), eighth), 1);
        assert_eq!(arc(3, 0xff, at(0), eighth + 1), 3);
        assert_eq!(arc(3, 0xff, Angle(eighth - 1), 2), 3);
        assert_eq!(arc(3, 0xff, at(6), 3 * eighth), 0b1100_0001);
        assert_eq!(arc(3, 0xff, at(7), eighth), 0x80);
        assert_eq!(arc(3, 0xff, Angle(5), u64::MAX), 0xff);
        assert_eq!(arc(3, 0xff, Angle(5), 0), 0);
        assert_eq!(arc(0, 1, Angle(77), 1), 1);
        assert_eq!(arc(6, u64::MAX, Angle(u64::MAX), 2), 1 << 63 | 1);
    }
}
