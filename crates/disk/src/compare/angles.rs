//! Comparison of sector angles at random places, after removing a constant offset.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Options, Row};
use crate::model::Model;

/// Number of sectors tried as reference.
const PIVOTS: usize = 31;
/// Tolerance of an angle in microseconds (claim P6).
const ALLOWED_US: f64 = 10.0;

/// The constant offset is the position of the index mark, which no host can observe, so it is
/// removed.
pub(super) fn row(a: &Model, b: &Model, options: &Options) -> Row {
    let sectors = a.geometry.capacity().min(b.geometry.capacity());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(options.seed);
    let mut apart: Vec<(f64, u64)> = Vec::with_capacity(options.sectors as usize);
    for _ in 0..options.sectors {
        let lbn = ((u128::from(rng.next_u64()) * u128::from(sectors)) >> 64) as u64;
        let angle = |m: &Model| m.geometry.locate(lbn).expect("below both capacities").angle;
        apart.push(((angle(b) - angle(a)).turns(), lbn));
    }
    let turns: Vec<f64> = apart.iter().map(|d| d.0).collect();
    let offset = offset(&turns);
    let us = a.mechanics.rotation.period().as_ms_f64() * 1e3;
    let mut off: Vec<(f64, u64)> = apart.iter().map(|(d, lbn)| (shortest(d - offset).abs() * us, *lbn)).collect();
    off.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1)));
    let what = format!("angle of {} random sectors, largest", options.sectors);
    let Some(&(largest, lbn)) = off.last() else {
        return Row::plain("angles", what, "-", "-");
    };
    let p99 = off[(off.len() * 99).div_ceil(100) - 1].0;
    let within = off.partition_point(|o| o.0 <= ALLOWED_US);
    Row::plain("angles", what, "-", "-")
        .apart(largest, "us")
        .within(ALLOWED_US)
        .at(format!("sector {lbn}; p99 {p99:.2} us; {within} of {} within {ALLOWED_US} us", off.len()))
}

/// Reduces a difference to the shorter direction, in revolutions.
fn shortest(turns: f64) -> f64 {
    turns - turns.round()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Returns the offset common to most differences. They lie on a circle, so the median is taken
/// relative to a pivot: of a few candidates, the one with the others closest around it.
fn offset(turns: &[f64]) -> f64 {
    let spread = |pivot: f64| {
        let mut away: Vec<f64> = turns.iter().map(|t| shortest(t - pivot).abs()).collect();
        median(&mut away)
    };
    let pivots = turns.iter().take(PIVOTS).map(|&p| (spread(p), p));
    let Some((_, pivot)) = pivots.min_by(|x, y| x.0.total_cmp(&y.0)) else { return 0.0 };
    let mut around: Vec<f64> = turns.iter().map(|t| shortest(t - pivot)).collect();
    pivot + median(&mut around)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_found_wherever_the_circle_is_cut() {
        for true_offset in [0.0, 0.25, 0.499, 0.5, 0.999] {
            // One in ten is an outlier.
            let turns: Vec<f64> = (0..200)
                .map(|i| {
                    let far = if i % 10 == 0 { 0.37 } else { 0.0 };
                    let t: f64 = true_offset + far + f64::from(i % 7 - 3) * 1e-5;
                    t - t.floor()
                })
                .collect();
            let found = offset(&turns);
            assert!(shortest(found - true_offset).abs() < 2e-5, "{found} for {true_offset}");
        }
    }
}
