//! Charges: service times drawn from X for the same number of candidates.
//!
//! A reservation suffices for the guaranteed quality if requests follow X. The requests of one
//! stream may take longer: they are clustered, so that there is no choice, or far from where other
//! requests leave the head. Then the reservation is used up with fewer requests. So the time that
//! they would have taken by X is accounted for, too. A stream that has used up its reservation in
//! measured time, but not by X, gets more if it harms no other stream.
//!
//! With the mean instead of a time drawn from X, a reservation below the mean would never suffice
//! for a second request, though by X it often does.

use headtime_disk::Dur;

use super::super::distribution::Distribution;
use super::super::family::Family;

/// Number of shares of equal probability of X, each represented by its shortest time.
const SHARES: u32 = 64;

/// Generator of charges for one stream.
#[derive(Clone, Debug)]
pub(super) struct Charges {
    stream: u32,
    /// Times by number of candidates, ascending.
    times: Vec<(u32, Vec<Dur>)>,
    drawn: u64,
}

/// Returns the share of the `n`-th draw of a stream, pseudorandom over streams and draws.
pub fn share(stream: u32, n: u64) -> usize {
    (mixed(((u64::from(stream) << 32).wrapping_add(n)).wrapping_mul(STEP)) % u64::from(SHARES)) as usize
}

/// Increment of the generator's state.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a state of SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
/// generators").
pub(crate) fn mixed(state: u64) -> u64 {
    let mut z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the shortest time of each share of a distribution.
pub fn times(x: &Distribution) -> Vec<Dur> {
    (0..SHARES).map(|i| x.quantile(i * (1_000_000 / SHARES))).collect()
}

impl Charges {
    /// Creates the charges of a stream of this number, whose service times are `family`.
    pub(super) fn new(stream: u32, family: &Family) -> Charges {
        let times = family.members().map(|(candidates, x)| (candidates, times(x))).collect();
        Charges { stream, times, drawn: 0 }
    }

    /// Draws the time of the next request with this number of candidates.
    pub(super) fn draw(&mut self, candidates: u32) -> Dur {
        self.drawn += 1;
        let behind = self.times.partition_point(|t| t.0 <= candidates.max(1));
        self.times[behind.saturating_sub(1)].1[share(self.stream, self.drawn)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_no_more_than_what_requests_take() {
        let ms = |n: u64| Dur::from_ms(n);
        let samples: Vec<Dur> = (1..=100).map(ms).collect();
        let x = Distribution::from_samples(&samples, ms(1), ms(100)).expect("samples");
        let family = Family::new(vec![(1, x.clone()), (4, x.at_most_bins(50))]).expect("a family");
        for (candidates, most) in [(0, 100), (1, 100), (3, 100), (4, 50), (9, 50)] {
            let mut charges = Charges::new(7, &family);
            let drawn: Vec<Dur> = (0..10_000).map(|_| charges.draw(candidates)).collect();
            for limit in [10, 25, 50, 75, 99] {
                let upto = drawn.iter().filter(|d| **d <= ms(limit)).count();
                let least = (100 * limit).min(if limit >= most { 10_000 } else { 10_000 * limit / 100 }) as usize;
                assert!(upto + 200 >= least, "{candidates}: {upto} of 10,000 up to {limit} ms");
            }
            let mean = Dur(drawn.iter().copied().sum::<Dur>().0 / 10_000);
            let expected = if most == 50 { 38 } else { 50 };
            assert!(mean <= ms(expected) && mean >= ms(expected - 2), "{candidates}: {mean}");
        }
    }
}
