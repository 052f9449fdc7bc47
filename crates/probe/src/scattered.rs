//! A border among shots of which none says for sure on which side of it it is.
//!
//! A drive that reads ahead answers a sector that has just passed from its cache, and one that
//! passes a little later from the media, at times that may be alike to some tens of microseconds.
//! Where answers scatter as widely, which of the two it was is only likely. All shots together say
//! where the border is: with normal errors it is where the sum of squares is least, each shot's
//! square by what it would be on its side of it.

use crate::pairs::{Aimed, Pairs};
use crate::spindle::NORMAL;

/// What shots on one side of a border can be.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// Answers of the cache.
    pub cached: bool,
    /// Answers of the media so many turns after the sector's first passing.
    pub turns: &'static [f64],
}

/// Beyond three deviations one time is as unlike as the next: single answers are late by anything.
const UNLIKE: f64 = 9.0;
/// No answer is better than this, ns.
const LEAST: f64 = 2e3;
/// Shots by which angles are put right, at least.
const ENOUGH: usize = 16;

/// Shots as they come.
#[derive(Debug, Default)]
pub struct Scattered {
    seen: Vec<Aimed>,
}

impl Scattered {
    /// One more.
    pub fn tell(&mut self, aimed: Aimed) {
        self.seen.push(aimed);
    }

    /// The slack at which what lies below becomes what lies above, and half the range in which the
    /// sum of squares is no more than one greater: as sure as that is. `turn` in ns. `None`: there
    /// is no cache, or there are no shots on one of the sides.
    pub fn border(&self, pairs: &Pairs, turn: f64, below: Side, above: Side) -> Option<(f64, f64)> {
        let hit = pairs.hit?;
        let shift = self.shift(pairs, turn, hit);
        let deviation = (NORMAL * pairs.off * turn).max(LEAST);
        let unlike = |a: &Aimed, side: Side| {
            let media = side.turns.iter().map(|n| a.foreseen + shift + a.sector + n * turn);
            let times = Some(hit).filter(|_| side.cached).into_iter().chain(media);
            let nearest = times.map(|time| (took(a) - time).abs()).fold(f64::INFINITY, f64::min);
            (nearest / deviation).powi(2).min(UNLIKE)
        };
        let mut shots: Vec<(f64, f64, f64)> =
            self.seen.iter().map(|a| (a.foreseen + shift, unlike(a, below), unlike(a, above))).collect();
        shots.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        least(&shots)
    }

    /// By how much answers that are surely the media's come later than angles say: where the
    /// platter is now is known no better than answers scatter.
    fn shift(&self, pairs: &Pairs, turn: f64, hit: f64) -> f64 {
        let sure = hit + 3.0 * (NORMAL * pairs.off * turn).max(LEAST);
        let off = |a: &Aimed| {
            let off = took(a) - a.foreseen - a.sector;
            off - (off / turn).round() * turn
        };
        let mut all: Vec<f64> = self
            .seen
            .iter()
            .filter(|a| took(a) > sure || a.foreseen > sure)
            .map(off)
            .filter(|o| o.abs() < turn / 16.0)
            .collect();
        all.sort_unstable_by(f64::total_cmp);
        // The mean of the middle half: neither what is late now and then nor where the median of a
        // few happens to lie.
        let middle = &all[all.len() / 4..all.len() - all.len() / 4];
        if all.len() < ENOUGH { 0.0 } else { middle.iter().sum::<f64>() / middle.len() as f64 }
    }
}

/// From its sending until it was heard of, ns.
fn took(a: &Aimed) -> f64 {
    a.answer.done.0 as f64 - a.answer.sent.0 as f64
}

/// Of shots in ascending order (slack, square below the border, square above it) where the border
/// is best put.
fn least(shots: &[(f64, f64, f64)]) -> Option<(f64, f64)> {
    // With the border in front of each shot, and behind the last.
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
