//! How much harder one part of the disk is to reach than another, and what that makes its blocks worth.
//!
//! A gap lies between two places, and what is wanted far from both is out of its reach. The ends of the arm's way and the
//! tracks that hold fewer sectors are passed less often than the middle; a planner that does not care brings the middle
//! first, and then most gaps find nothing while the last per cent is waited for. So blocks are priced such that everything
//! is finished at the same time.
//!
//! The disk is divided into [`BANDS`] of equal capacity. Of each it is known how much is wanted there, *w*, and how many of
//! the last gaps ended there, *g*, which is what it can be reached by. With W and G the sums over all bands, a band is behind
//! by the ratio
//!
//! ```text
//! r = (w / g) / (W / G)
//! ```
//!
//! and its price is r to the power of [`POWER`]: a controller with that gain, whose aim is r = 1 everywhere. Early on
//! prices hardly differ, since all w / g are about the same, and nothing is lost by them.

use headtime_disk::geometry::Geometry;

use crate::tasks::Range;

/// Bands that the disk is divided into.
pub const BANDS: usize = 64;
/// The price of an ordinary block.
pub const ONE: u32 = 256;
/// How sharply a price answers to being behind.
const POWER: u32 = 4;
/// The highest price, and one through it is the lowest: beyond that gaps would be wasted on a few blocks.
const MOST: u64 = 4 * ONE as u64;
/// Prices are worked out again after so many gaps, which takes a microsecond or two.
const JUDGE_AFTER: u32 = 256;
/// Gaps that each band is taken to have had before any was seen: chance is not to look like a pattern.
const PRIOR: u32 = 256;
/// Gaps are halved when there are so many, so that old ones count less and less.
const MOST_GAPS: u32 = 1 << 20;

/// What is wanted in each part of the disk, how often gaps end there, and the prices that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bands {
    capacity: u64,
    /// The cylinder with which each band but the first begins.
    begins: [u32; BANDS - 1],
    wanted: [u64; BANDS],
    gaps: [u32; BANDS],
    fresh: u32,
    prices: [u32; BANDS],
}

impl Bands {
    /// Of a drive of which nothing is wanted.
    pub fn new(geometry: &Geometry) -> Bands {
        let capacity = geometry.capacity().max(1);
        let cylinder = |lbn: u64| geometry.track_of(lbn).map_or(u32::MAX, |t| t.cylinder);
        Bands {
            capacity,
            begins: std::array::from_fn(|b| cylinder(first(capacity, b + 1))),
            wanted: [0; BANDS],
            gaps: [PRIOR; BANDS],
            fresh: 0,
            prices: [ONE; BANDS],
        }
    }

    /// The price of blocks on a cylinder, in 256ths.
    #[inline]
    pub fn price(&self, cylinder: u32) -> u32 {
        self.prices[self.begins.partition_point(|&b| b <= cylinder)]
    }

    /// The highest price on the cylinders `low..=high`.
    #[inline]
    pub fn highest(&self, low: u32, high: u32) -> u32 {
        let band = |cylinder| self.begins.partition_point(|&b| b <= cylinder);
        self.prices[band(low)..=band(high.max(low))].iter().copied().fold(0, u32::max)
    }

    /// This is wanted from now on.
    pub fn wanted(&mut self, range: Range) {
        self.each(range, |wanted, sectors| *wanted += sectors);
    }

    /// This is not wanted any more. A range of which a part was brought before may be told as a whole (an aborted task's):
    /// then too little counts as wanted until its tasks have ended.
    pub fn gone(&mut self, range: Range) {
        self.each(range, |wanted, sectors| *wanted = wanted.saturating_sub(sectors));
    }

    #[inline]
    fn each(&mut self, range: Range, f: impl Fn(&mut u64, u64)) {
        let (mut lbn, end) = (range.lbn, range.end().min(self.capacity));
        while lbn < end {
            let band = (u128::from(lbn) * BANDS as u128 / u128::from(self.capacity)) as usize;
            let until = first(self.capacity, band + 1).min(end);
            f(&mut self.wanted[band], until - lbn);
            lbn = until;
        }
    }

    /// There is a gap before a request on this cylinder.
    pub fn gap(&mut self, cylinder: u32) {
        let band = self.begins.partition_point(|&b| b <= cylinder);
        self.gaps[band] += 1;
        self.fresh += 1;
        if self.fresh == JUDGE_AFTER {
            self.fresh = 0;
            self.judge();
            if self.gaps[band] > MOST_GAPS {
                self.gaps.iter_mut().for_each(|g| *g = (*g / 2).max(1));
            }
        }
    }

    fn judge(&mut self) {
        let left: u64 = self.wanted.iter().sum();
        let gaps: u64 = self.gaps.iter().map(|&g| u64::from(g)).sum();
        if left == 0 {
            self.prices = [ONE; BANDS];
            return;
        }
        let one = u64::from(ONE);
        for (band, price) in self.prices.iter_mut().enumerate() {
            let share = u128::from(self.wanted[band]) * u128::from(gaps) * u128::from(one);
            let ratio = (share / (u128::from(self.gaps[band]) * u128::from(left))).min(u128::from(MOST)) as u64;
            let power = (0..POWER).fold(one, |p, _| (p * ratio / one).min(MOST));
            *price = power.clamp(one * one / MOST, MOST) as u32;
        }
    }
}

/// The first LBN of a band.
fn first(capacity: u64, band: usize) -> u64 {
    (u128::from(capacity) * band as u128).div_ceil(BANDS as u128) as u64
}

#[cfg(test)]
mod tests {
    use headtime_disk::model::Model;
    use headtime_disk::profile;

    use super::*;

    fn bands() -> (Model, Bands) {
        let model = Model::new(&profile::builtin("atlas10k").unwrap()).unwrap();
        let mut bands = Bands::new(&model.geometry);
        bands.wanted(Range { lbn: 0, count: model.geometry.capacity() });
        (model, bands)
    }

    /// So many gaps before requests that are spread evenly over the sectors of the drive.
    fn even_gaps(model: &Model, bands: &mut Bands, gaps: u64) {
        for i in 0..gaps {
            let lbn = model.geometry.capacity() * ((i * 619) % 1_000) / 1_000;
            bands.gap(model.geometry.track_of(lbn).unwrap().cylinder);
        }
    }

    #[test]
    fn what_is_wanted_is_counted_by_band_and_gone_again() {
        let (model, mut bands) = bands();
        let capacity = model.geometry.capacity();
        assert_eq!(bands.wanted.iter().sum::<u64>(), capacity);
        assert!(bands.wanted.iter().all(|&w| w.abs_diff(capacity / BANDS as u64) <= 1));
        let half = capacity / 2 - 3;
        bands.gone(Range { lbn: 0, count: half });
        assert_eq!(bands.wanted.iter().sum::<u64>(), capacity - half);
        bands.gone(Range { lbn: 0, count: u64::MAX });
        assert_eq!(bands.wanted, [0; BANDS]);
    }

    #[test]
    fn prices_are_even_while_everything_is_reached_alike() {
        let (model, mut bands) = bands();
        even_gaps(&model, &mut bands, 10_240);
        let (low, high) = (bands.prices.iter().min().unwrap(), bands.prices.iter().max().unwrap());
        assert!(*low >= ONE * 3 / 4 && *high <= ONE * 4 / 3, "{low} to {high}");
    }

    #[test]
    fn what_is_behind_costs_more_and_what_is_done_little() {
        let (model, mut bands) = bands();
        let capacity = model.geometry.capacity();
        // The outer half is down to a third, the inner one not begun.
        bands.gone(Range { lbn: 0, count: capacity / 3 });
        even_gaps(&model, &mut bands, 1_024);
        let last = model.geometry.cylinders() - 1;
        assert!(bands.price(0) <= ONE / 4 && bands.price(last) > 3 * ONE, "{:?}", bands.prices);
        assert_eq!(bands.highest(0, last), *bands.prices.iter().max().unwrap());
        assert_eq!(bands.highest(0, 0), bands.price(0));
    }

    #[test]
    fn where_gaps_seldom_end_blocks_cost_more_from_the_beginning() {
        let (model, mut bands) = bands();
        // All requests go to the outer quarter.
        for i in 0..40_960u64 {
            let lbn = model.geometry.capacity() / 4 * ((i * 619) % 1_000) / 1_000;
            bands.gap(model.geometry.track_of(lbn).unwrap().cylinder);
        }
        assert!(bands.price(0) < ONE && bands.price(model.geometry.cylinders() - 1) > ONE);
    }
}
