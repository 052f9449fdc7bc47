//! Tracks that the mapping skips whole, because of a defect.
//!
//! Such a track has no visible sector. The next track shows it: it begins where the one after it
//! would. From one track to the next the angle is the skew s; over k skipped tracks it is 1 + k
//! times that; from the last track of a *unit* to the first of the next one it is the joint j and k
//! times s. A unit is a cylinder or a group of one surface, whichever the rows of a drive are. All
//! units have equally many tracks, with skipped ones, so the position in a unit is known at each
//! row, and which of the two angles to expect.

use super::rows::Row;
use super::units::MOST_SURFACES;
use crate::spindle::{apart, fraction};

/// Most consecutive skipped tracks.
const MAX_SKIPPED_TRACKS: u64 = 3;
/// Number of rows to each side in which skew and joint are searched for.
const NEAR_ROWS: usize = 400;

/// Stores in each row the number of skipped tracks in front of it. `unit`: tracks of a whole row,
/// if equal; `same`: tolerance of angles, in revolutions. If the drive, or a zone of cylinders,
/// begins within a unit, the free tracks in front count as skipped too.
pub(super) fn mark(rows: &mut [Row], unit: Option<u64>, same: f64) {
    // Tracks of the unit up to the row's last; `None`: unknown.
    let mut used: Option<u64> = None;
    for i in 0..rows.len() {
        let begins = i == 0 || (rows[i - 1].spt != rows[i].spt && unit.is_some_and(|n| n <= MOST_SURFACES));
        if let (true, Some(unit)) = (begins, unit) {
            let front = front(rows, i, unit, same);
            rows[i].skipped = front;
            used = Some(front + rows[i].tracks).filter(|used| *used <= unit);
            continue;
        }
        if i == 0 {
            continue;
        }
        let step = Step::new(rows, i, unit, same);
        let (skipped, place) = match unit {
            None => (step.along(), None),
            Some(unit) => step.counted(unit, used),
        };
        let here = rows[i].tracks;
        rows[i].skipped = skipped;
        used = match (place, unit) {
            (Some(place), Some(unit)) if place + here <= unit => Some(place + here),
            (_, Some(unit)) if here == unit => Some(unit),
            _ => None,
        };
    }
}

/// Tracks of a unit in front of its first row, from where it ends.
fn front(rows: &[Row], i: usize, unit: u64, same: f64) -> u64 {
    let mut tracks = rows[i].tracks;
    for j in i + 1..rows.len() {
        let step = Step::new(rows, j, Some(unit), same);
        if tracks >= unit || !step.alike || (step.crosses(0) && !step.continues(0)) {
            return if step.alike { unit.saturating_sub(tracks) } else { 0 };
        }
        if !step.continues(0) {
            return 0;
        }
        tracks += step.tracks;
    }
    0
}

/// The step from one row to the next.
struct Step {
    /// Revolutions from the start of the last track to that of the first.
    turned: f64,
    /// Tolerance.
    allowed: f64,
    /// Both rows have equally many sectors per track.
    alike: bool,
    /// Tracks of the second row.
    tracks: u64,
    skew: Option<f64>,
    joint: Option<f64>,
}

impl Step {
    fn new(rows: &[Row], i: usize, unit: Option<u64>, same: f64) -> Step {
        let (last, row) = (&rows[i - 1], &rows[i]);
        let few = f64::from(last.missing().max(row.missing()).min(2)) / f64::from(row.spt);
        Step {
            turned: fraction(row.angle - last.last_begins()),
            allowed: same + few,
            alike: last.spt == row.spt,
            tracks: row.tracks,
            skew: skew(rows, i),
            joint: unit.and_then(|unit| joint(rows, i, unit)),
        }
    }

    fn is(&self, turns: f64) -> bool {
        apart(turns, self.turned).abs() <= self.allowed
    }

    /// Returns whether the row continues over this number of skipped tracks.
    fn continues(&self, skipped: u64) -> bool {
        self.alike && self.skew.is_some_and(|s| self.is(fraction(s * (1 + skipped) as f64)))
    }

    /// Returns whether the next unit begins after this number of skipped tracks.
    fn crosses(&self, skipped: u64) -> bool {
        let over = fraction(self.skew.unwrap_or(0.0) * skipped as f64);
        (skipped == 0 || self.skew.is_some()) && self.joint.is_some_and(|j| self.is(fraction(j + over)))
    }

    /// The number of skipped tracks if the end of the unit is unknown.
    fn along(&self) -> u64 {
        (0..=MAX_SKIPPED_TRACKS).find(|&k| self.continues(k)).unwrap_or(0)
    }

    /// The same after `used` tracks of a unit, and how many tracks of its unit precede the row.
    fn counted(&self, unit: u64, used: Option<u64>) -> (u64, Option<u64>) {
        let Some(used) = used else {
            let begins = self.crosses(0);
            return if begins { (0, Some(0)) } else { (self.along(), None) };
        };
        // On a drive of cylinders each zone begins with one; in a serpentine, adjacent tracks of
        // different units may differ in sectors.
        let may_cross = self.alike || unit > MOST_SURFACES;
        let found = (0..=MAX_SKIPPED_TRACKS).find_map(|k| {
            let left = unit - used;
            if k < left {
                return self.continues(k).then_some((k, used + k));
            }
            let front = k - left;
            (self.crosses(k) && (k == 0 || may_cross) && front + self.tracks <= unit).then_some((k, front))
        });
        found.map_or((0, None), |(k, place)| (k, Some(place)))
    }
}

/// The rows around a step, nearest first.
fn about(rows: &[Row], i: usize) -> impl Iterator<Item = usize> {
    let (first, last) = (i.saturating_sub(NEAR_ROWS), (i + NEAR_ROWS).min(rows.len() - 1));
    (0..NEAR_ROWS)
        .flat_map(move |d| [i.checked_sub(d + 1), Some(i + d)])
        .flatten()
        .filter(move |j| (first..=last).contains(j))
}

/// The skew of tracks with as many sectors as those of row `i`.
fn skew(rows: &[Row], i: usize) -> Option<f64> {
    about(rows, i).map(|j| &rows[j]).find(|r| r.tracks > 1 && r.spt == rows[i].spt).map(|r| r.skew)
}

/// The angle from a whole row's last track to the next whole row's first.
fn joint(rows: &[Row], i: usize, unit: u64) -> Option<f64> {
    let is_whole = |r: &Row| r.tracks == unit;
    about(rows, i).filter_map(|j| Some((rows.get(j)?, rows.get(j + 1)?))).find_map(|(a, b)| {
        let is_near = [a.spt, b.spt].contains(&rows[i].spt);
        (is_near && is_whole(a) && is_whole(b)).then(|| fraction(b.angle - a.last_begins()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of tracks at these slots, four to a unit, with skews of 0.1 and joints of 0.27.
    fn rows(slots: &[u64]) -> Vec<Row> {
        let begins = |slot: u64| fraction(0.1 * (slot - slot / 4) as f64 + 0.27 * (slot / 4) as f64);
        let mut rows: Vec<Row> = Vec::new();
        let mut last = None;
        for (i, &slot) in slots.iter().enumerate() {
            match rows.last_mut().filter(|_| last == Some(slot.wrapping_sub(1)) && slot % 4 != 0) {
                Some(row) => (row.tracks, row.skew) = (row.tracks + 1, 0.1),
                None => rows.push(Row {
                    first: 100 * i as u64,
                    tracks: 1,
                    sectors: 100,
                    spt: 100,
                    skew: 0.0,
                    angle: begins(slot),
                    skipped: 0,
                }),
            }
            last = Some(slot);
        }
        rows
    }

    #[test]
    fn what_is_skipped_is_found_wherever_in_a_unit_it_is() {
        // In the middle, two in the middle, at the end, at the begin, one at each side of a joint.
        for gaps in [&[][..], &[13], &[13, 14], &[15], &[16], &[15, 16], &[9, 18, 30]] {
            let slots: Vec<u64> = (0..48).filter(|s| !gaps.contains(s)).collect();
            let mut found = rows(&slots);
            mark(&mut found, Some(4), 1e-3);
            let mut at = 0;
            for row in &found {
                at += row.skipped;
                for track in 0..row.tracks {
                    assert_eq!(at, slots[(row.first / 100 + track) as usize], "{gaps:?}: {found:?}");
                    at += 1;
                }
            }
            assert_eq!(at, 48, "{gaps:?}: {found:?}");
            assert_eq!(found.iter().map(|r| r.skipped).sum::<u64>(), gaps.len() as u64, "{gaps:?}");
        }
    }

    #[test]
    fn what_is_kept_free_in_front_is_as_if_it_were_skipped() {
        let slots: Vec<u64> = (3..48).collect();
        let mut found = rows(&slots);
        mark(&mut found, Some(4), 1e-3);
        assert_eq!((found[0].tracks, found[0].skipped), (1, 3));
        assert_eq!(found.iter().map(|r| r.skipped).sum::<u64>(), 3, "{found:?}");
        // The only track of its zone determines nothing.
        let mut found = rows(&(0..22).collect::<Vec<_>>());
        (found[5].spt, found[5].sectors) = (98, 98);
        mark(&mut found, Some(4), 1e-3);
        assert_eq!(found.iter().map(|r| r.skipped).sum::<u64>(), 0, "{found:?}");
    }

    #[test]
    fn where_all_skews_are_alike_what_is_skipped_is_a_multiple_of_it() {
        let row = |first, angle| Row { first, tracks: 20, sectors: 100, spt: 100, skew: 0.13, angle, skipped: 0 };
        let mut rows = [row(0, 0.0), row(2_000, fraction(0.13 * 20.0)), row(4_000, fraction(0.13 * 42.0))];
        mark(&mut rows, None, 1e-3);
        assert_eq!(rows.map(|r| r.skipped), [0, 0, 2]);
        // Another zone, or an arbitrary angle.
        let mut rows =
            [row(0, 0.0), Row { spt: 98, sectors: 98, ..row(2_000, fraction(0.13 * 21.0)) }, row(4_000, 0.05)];
        mark(&mut rows, None, 1e-3);
        assert_eq!(rows.map(|r| r.skipped), [0, 0, 0]);
    }
}
