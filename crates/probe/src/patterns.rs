//! Patterns in the runs of a map: what comes again as it came before.

use crate::runs::Run;
use crate::spindle::apart;

/// Patterns of at most so many runs are looked for: surfaces in turn, or there and back.
const LONGEST_PATTERN: usize = 40;

/// The shortest pattern in which the last runs have come twice, with what begins it a third time,
/// as far on as the second. With single tracks in it, three times: one is as a rule a track with a
/// defect, or one that a zone ends in, and what comes twice by chance is no pattern.
pub fn pattern(runs: &[Run], same: f64) -> Option<usize> {
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

/// Whether the angles between runs repeat, too.
fn joints(before: &[Run], last: &[Run], same: f64) -> bool {
    let all = |runs: &[Run]| -> Vec<f64> {
        runs.windows(2).map(|w| apart(w[0].begins(w[0].tracks - 1), w[1].angle)).collect()
    };
    all(before).iter().zip(all(last)).all(|(a, b)| apart(*a, b).abs() <= 2.0 * same)
}
