//! What a request takes that is like those that X was measured with: a time drawn from X of as many
//! candidates.
//!
//! A reservation is enough for what was promised if requests take what X says. Those of one stream
//! may take longer: they lie together, so that there is nothing to choose from, or far from where
//! others have the arm. Then it is used up with fewer of them. So it is reckoned, too, what they
//! would have taken by X. A stream that has used up its reservation, but by that has not, has more
//! where it harms no other.
//!
//! With the mean instead of a time drawn from X, a reservation of less than that would never be
//! enough for a second request, though X says that it often is.

use headtime_disk::time::Dur;

use super::super::distribution::Distribution;
use super::super::family::Family;

/// Times of equal shares of X, each the shortest of its share.
const SHARES: u32 = 64;

/// What is charged to one stream.
#[derive(Clone, Debug)]
pub(super) struct Charges {
    stream: u32,
    /// By the number of requests to choose from, ascending.
    times: Vec<(u32, Vec<Dur>)>,
    drawn: u64,
}

/// The share that the `n`-th draw of a stream is of; independent of each other for all that shows.
pub fn share(stream: u32, n: u64) -> usize {
    (mixed(((u64::from(stream) << 32).wrapping_add(n)).wrapping_mul(STEP)) % u64::from(SHARES)) as usize
}

/// The distance of two states of the generator.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What SplitMix64 makes of a state (Steele, Lea and Flood 2014, "Fast splittable pseudorandom
/// number generators").
pub fn mixed(state: u64) -> u64 {
    let mut z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The shortest time of each share of a distribution.
pub fn times(x: &Distribution) -> Vec<Dur> {
    (0..SHARES).map(|i| x.quantile(i * (1_000_000 / SHARES))).collect()
}

impl Charges {
    /// Of a stream of this number, whose requests' times are of `family`.
    pub fn new(stream: u32, family: &Family) -> Charges {
        let times = family.members().map(|(candidates, x)| (candidates, times(x))).collect();
        Charges { stream, times, drawn: 0 }
    }

    /// What the next request would take, chosen from this number of requests.
    pub fn draw(&mut self, candidates: u32) -> Dur {
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
