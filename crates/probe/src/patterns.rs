//! Repeating patterns in the runs of a map.

use crate::runs::Run;
use crate::spindle::apart;

/// Most runs of a pattern: surfaces in turn, or forwards and backwards.
const LONGEST_PATTERN: usize = 40;

/// Returns the length of the shortest pattern that occurs twice at the end, followed by the first
/// run of a third repetition at the same advance. Patterns with single tracks must occur three
/// times: a single track usually has a defect or a zone's end, and two occurrences may be chance.
pub(crate) fn pattern(runs: &[Run], same: f64) -> Option<usize> {
    (1..=LONGEST_PATTERN.min(runs.len().saturating_sub(1) / 2)).find(|&n| {
        let of = &runs[runs.len() - 2 * n - 1..];
        let (first, second, third) = (&of[..n], &of[n..2 * n], &of[2 * n]);
        let (once, again) = (apart(first[0].angle, second[0].angle), apart(second[0].angle, third.angle));
        let same_runs = |a: &[Run], b: &[Run]| a.iter().zip(b).all(|(a, b)| alike(a, b, same));
        let before = || runs.len().checked_sub(3 * n + 1).map(|at| &runs[at..at + n]);
        let often = first.iter().all(|r| r.tracks > 1) || before().is_some_and(|b| n > 1 && same_runs(b, first));
        often
            && same_runs(first, second)
            && alike(&first[0], third, same)
            && apart(once, again).abs() <= 2.0 * same
            && joints(first, second, same)
    })
}

fn alike(a: &Run, b: &Run, same: f64) -> bool {
    a.tracks == b.tracks && a.sectors == b.sectors && apart(a.skew, b.skew).abs() <= same
}

/// Returns whether the angles between runs repeat too.
fn joints(before: &[Run], last: &[Run], same: f64) -> bool {
    let all = |runs: &[Run]| -> Vec<f64> {
        runs.windows(2).map(|w| apart(w[0].begins(w[0].tracks - 1), w[1].angle)).collect()
    };
    all(before).iter().zip(all(last)).all(|(a, b)| apart(*a, b).abs() <= 2.0 * same)
}
