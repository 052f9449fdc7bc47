//! A border among shots whose side is uncertain.
//!
//! A drive that reads ahead answers a sector that has just passed from its cache, and one that
//! passes a little later from the media; both times may be equal to some tens of microseconds. If
//! answers scatter as widely, the side of a single shot is only a probability. All shots together
//! determine the border: with normal errors it minimises the sum of squares, each shot's square
//! taken for its side.

use crate::pairs::{Aimed, Pairs};
use crate::spindle::NORMAL;

/// The possible answers on one side of a border.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// Cache hits.
    pub cached: bool,
    /// Media reads, this many revolutions after the sector's first passing.
    pub turns: &'static [f64],
}

/// Cap of a square, at three deviations: outliers are late by any amount.
const MAX_SQUARE: f64 = 9.0;
/// Lower bound of an answer's error, ns.
const MIN_ERROR_NS: f64 = 2e3;
/// Fewest shots that correct the angles.
const MIN_SHOTS: usize = 16;

/// The collected shots.
#[derive(Debug, Default)]
pub struct Scattered {
    seen: Vec<Aimed>,
}

impl Scattered {
    /// Adds a shot.
    pub fn observe(&mut self, aimed: Aimed) {
        self.seen.push(aimed);
    }

    /// Returns the border's slack, and half the range in which the sum of squares is at most one
    /// above the minimum, as its error. `turn` in ns. `None`: there is no cache, or no shots on one
    /// of the sides.
    pub fn border(&self, pairs: &Pairs, turn: f64, below: Side, above: Side) -> Option<(f64, f64)> {
        let hit = pairs.hit?;
        let shift = self.shift(pairs, turn, hit);
        let deviation = (NORMAL * pairs.off * turn).max(MIN_ERROR_NS);
        let unlike = |a: &Aimed, side: Side| {
            let media = side.turns.iter().map(|n| a.foreseen + shift + a.sector + n * turn);
            let times = Some(hit).filter(|_| side.cached).into_iter().chain(media);
            let nearest = times.map(|time| (duration_ns(a) - time).abs()).fold(f64::INFINITY, f64::min);
            (nearest / deviation).powi(2).min(MAX_SQUARE)
        };
        let mut shots: Vec<(f64, f64, f64)> =
            self.seen.iter().map(|a| (a.foreseen + shift, unlike(a, below), unlike(a, above))).collect();
        shots.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        least(&shots)
    }

    /// Returns how much later certain media reads come than predicted: the platter's position is
    /// known no better than answers scatter.
    fn shift(&self, pairs: &Pairs, turn: f64, hit: f64) -> f64 {
        let sure = hit + 3.0 * (NORMAL * pairs.off * turn).max(MIN_ERROR_NS);
        let off = |a: &Aimed| {
            let off = duration_ns(a) - a.foreseen - a.sector;
            off - (off / turn).round() * turn
        };
        let mut all: Vec<f64> = self
            .seen
            .iter()
            .filter(|a| duration_ns(a) > sure || a.foreseen > sure)
            .map(off)
            .filter(|o| o.abs() < turn / 16.0)
            .collect();
        all.sort_unstable_by(f64::total_cmp);
        // The mean of the middle half is affected neither by outliers nor by the scatter of a
        // median.
        let middle = &all[all.len() / 4..all.len() - all.len() / 4];
        if all.len() < MIN_SHOTS { 0.0 } else { middle.iter().sum::<f64>() / middle.len() as f64 }
    }
}

/// Duration of the shot, ns.
fn duration_ns(a: &Aimed) -> f64 {
    a.answer.done.0 as f64 - a.answer.sent.0 as f64
}

/// The best border among shots in ascending order (slack, square below the border, square above
/// it).
fn least(shots: &[(f64, f64, f64)]) -> Option<(f64, f64)> {
    // With the border in front of each shot, and after the last.
    let mut sums = vec![shots.iter().map(|s| s.2).sum::<f64>()];
    for (_, below, above) in shots {
        sums.push(sums[sums.len() - 1] + below - above);
    }
    let limit = sums.iter().copied().fold(f64::INFINITY, f64::min) + 1.0;
    let (first, last) = (sums.iter().position(|s| *s <= limit)?, sums.iter().rposition(|s| *s <= limit)?);
    if first == 0 || last == shots.len() {
        return None;
    }
    let (low, high) = (shots[first - 1].0, shots[last].0);
    Some(((low + high) / 2.0, (high - low) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_border_is_where_all_shots_together_have_it() {
        // Every fifth looks like the other side.
        let shot = |i: u32| {
            let is_below = (i < 60) != i.is_multiple_of(5);
            (f64::from(i), if is_below { 0.5 } else { 3.0 }, if is_below { 3.0 } else { 0.5 })
        };
        let shots: Vec<_> = (0..100).map(shot).collect();
        let (at, error) = least(&shots).expect("there are both");
        assert!((at - 59.5).abs() < 2.0 && error < 3.0, "{at} {error}");
        assert_eq!(least(&shots[..50]), None);
        assert_eq!(least(&shots[71..]), None);
        assert_eq!(least(&[]), None);
    }
}
