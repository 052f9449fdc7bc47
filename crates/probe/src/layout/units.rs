//! Rows that belong together: split only by a bad sector, and equally long.

use super::rows::Row;
use super::slips::MAX_MISSING_SECTORS;
use super::surfaces::sharp::Sweeps;
use crate::spindle::{apart, fraction};

/// Upper bound of surfaces.
pub(super) const MOST_SURFACES: u64 = 40;

/// Joins rows that continue after a track with bad sectors, up to the tracks of a unit if known.
pub(super) fn over_slips(rows: &[Row], unit: Option<u64>, same: f64) -> Vec<Row> {
    let mut all: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some(last) = all.last_mut()
            && last.spt == row.spt
            && row.skipped == 0
            && unit.is_none_or(|n| last.tracks + row.tracks <= n)
            && let Some(skew) = [last.skew, row.skew].into_iter().find(|s| *s > 0.0)
        {
            let sector = f64::from(last.missing().max(row.missing()).min(MAX_MISSING_SECTORS)) / f64::from(row.spt);
            let few = last.missing().max(row.missing()) <= row.spt / 8;
            if few && apart(last.last_begins() + skew, row.angle).abs() <= same + sector {
                // The longer row has the better skew, and a complete one the better start.
                if row.tracks > last.tracks {
                    *last = Row {
                        first: last.first,
                        tracks: last.tracks,
                        angle: fraction(row.angle - fraction(row.skew * last.tracks as f64)),
                        skipped: last.skipped,
                        ..*row
                    };
                }
                (last.tracks, last.skew, last.sectors) = (last.tracks + row.tracks, skew, last.spt);
                continue;
            }
        }
        all.push(*row);
    }
    all
}

/// Divides rows where sweeps end that their angles do not show.
pub(super) fn divided(rows: &[Row], sweeps: Sweeps) -> Vec<Row> {
    let mut all = Vec::with_capacity(rows.len());
    let mut left = sweeps.first;
    for row in rows {
        let mut done = 0;
        while done < row.tracks {
            let tracks = left.min(row.tracks - done);
            let first = row.first + done * u64::from(row.sectors);
            let skipped = if done == 0 { row.skipped } else { 0 };
            all.push(Row { first, tracks, angle: row.begins(done), skipped, ..*row });
            (done, left) = (done + tracks, left - tracks);
            if left == 0 {
                left = sweeps.tracks;
            }
        }
    }
    if let Some(first) = all.first_mut() {
        first.skipped = sweeps.tracks - sweeps.first;
    }
    all
}

/// The length of the rows that contain most tracks, if such rows follow each other with a distinct
/// skew between them.
pub(super) fn repeated(rows: &[Row], same: f64) -> Option<u64> {
    let all: u64 = rows.iter().map(|r| r.tracks).sum();
    let jumps = |a: &Row, b: &Row| apart(a.last_begins() + a.skew, b.angle).abs() > same;
    // Zones may have equal widths; rows of cylinders or groups repeat with equally many sectors.
    let again = |a: &Row, behind: &[Row]| {
        behind.iter().take(MOST_SURFACES as usize).any(|b| (b.tracks, b.spt) == (a.tracks, a.spt))
    };
    let follows = |i: usize| {
        let (a, b) = (&rows[i], &rows[i + 1]);
        a.tracks > 1 && a.tracks == b.tracks && jumps(a, b) && again(a, &rows[i + 1..])
    };
    let mut lengths: Vec<(u64, u64)> = Vec::new();
    for pair in (0..rows.len().saturating_sub(1)).filter(|&i| follows(i)).map(|i| &rows[i..]) {
        match lengths.iter_mut().find(|l| l.0 == pair[0].tracks) {
            Some(length) => length.1 += pair[0].tracks,
            None => lengths.push((pair[0].tracks, pair[0].tracks)),
        }
    }
    let &(n, tracks) = lengths.iter().max_by_key(|l| l.1)?;
    (3 * tracks > all).then_some(n)
}
