//! Prices of the parts of the disk, by how hard they are to reach from gaps.
//!
//! A gap lies between two places, and sectors far from both are out of its reach. The ends of the
//! arm's stroke, and tracks with fewer sectors, are passed less often than the middle. A planner
//! that ignores this brings the middle first, and then most gaps find nothing while the last per
//! cent is outstanding. So blocks are priced such that all parts finish at the same time.
//!
//! The disk is divided into [`BANDS`] of equal capacity. Known for each are the wanted sectors,
//! *w*, and how many of the recent gaps ended there, *g*, which measures its reachability. With W
//! and G the sums over all bands, a band is behind by the ratio
//!
//! ```text
//! r = (w / g) / (W / G)
//! ```
//!
//! and its price is r to the power of `POWER`: a controller with that gain and the set point r =
//! 1 everywhere. Early on all w / g are about the same, so prices hardly differ and cost nothing.

use headtime_disk::Geometry;

use crate::tasks::TaskRange;

/// Number of bands.
pub(crate) const BANDS: usize = 64;
/// The price of an ordinary block.
pub(crate) const ONE: u32 = 256;
/// Exponent (gain) of the price. Not tuned: a band that is behind by a factor of two reaches
/// [`MAX_PRICE`].
const POWER: u32 = 4;
/// Upper bound of prices; its inverse is the lower bound. Beyond that, gaps would be wasted on a
/// few blocks. With four times ordinary prices whole scans end 1 to 2% later on drives of 1 and 20
/// TB, and at the same time on an Atlas 10K.
const MAX_PRICE: u64 = 16 * ONE as u64;
/// Prices are recomputed after this number of gaps, which takes a microsecond or two.
const JUDGE_AFTER: u32 = 256;
/// Prior: gaps counted for each band before any was observed, so that chance does not look like a
/// pattern. Not tuned: observed gaps outweigh it once there are 65,536 of them on the whole disk.
const PRIOR: u32 = 1024;
/// Gap counts are halved at this number, so that the weight of old gaps decays.
const MAX_GAPS: u32 = 1 << 20;

/// Maximum number of slots (groups of neighbouring cylinders).
pub(super) const SLOTS: usize = 256;

/// Mapping of cylinders to slots: a power of two of cylinders per slot, found without a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    last: u32,
    shift: u32,
}

impl Slots {
    /// Creates the mapping for a drive of this number of cylinders.
    pub(super) fn new(cylinders: u32) -> Slots {
        let last = cylinders.saturating_sub(1);
        let shift = (u32::BITS - last.leading_zeros()).saturating_sub(SLOTS.trailing_zeros());
        Slots { last, shift }
    }

    /// Returns the slot of a cylinder; beyond the last cylinder, the last slot.
    #[inline]
    pub(super) fn of(&self, cylinder: u32) -> usize {
        (cylinder.min(self.last) >> self.shift) as usize
    }

    /// Returns the first and last cylinder of each slot that has any.
    pub(super) fn all(self) -> impl Iterator<Item = (u32, u32)> {
        (0..=self.of(self.last) as u32).map(move |i| {
            let first = i << self.shift;
            (first, (first + ((1 << self.shift) - 1)).min(self.last))
        })
    }
}

/// Valuation of a part of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price of blocks, in 256ths.
    pub price: u32,
    /// Probability that a leg takes all of a run of wanted sectors, in 256ths: near zero where
    /// almost everything is wanted.
    pub clears: u32,
}

impl Level {
    /// Returns the maximum of each.
    #[inline]
    fn or(self, other: Level) -> Level {
        Level { price: self.price.max(other.price), clears: self.clears.max(other.clears) }
    }
}

/// Wanted sectors and gaps in each part of the disk, and the resulting prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bands {
    capacity: u64,
    slots: Slots,
    /// The band at the middle of each slot.
    bands: [u8; SLOTS],
    wanted: [u64; BANDS],
    gaps: [u32; BANDS],
    fresh: u32,
    levels: [Level; SLOTS],
}

impl Bands {
    /// Creates the bands of a drive on which nothing is wanted.
    pub fn new(geometry: &Geometry) -> Bands {
        let (capacity, slots) = (geometry.capacity().max(1), Slots::new(geometry.cylinders()));
        let begins: [u32; BANDS] =
            std::array::from_fn(|b| geometry.track_of(first(capacity, b)).map_or(u32::MAX, |t| t.cylinder));
        let mut in_middle = [0; SLOTS];
        for (band, (first, last)) in in_middle.iter_mut().zip(slots.all()) {
            let middle = first + (last - first) / 2;
            *band = begins[1..].partition_point(|&b| b <= middle) as u8;
        }
        let mut bands = Bands {
            capacity,
            slots,
            bands: in_middle,
            wanted: [0; BANDS],
            gaps: [PRIOR; BANDS],
            fresh: 0,
            levels: [Level { price: ONE, clears: ONE }; SLOTS],
        };
        bands.judge();
        bands
    }

    #[inline]
    fn band(&self, lbn: u64) -> usize {
        (u128::from(lbn.min(self.capacity - 1)) * BANDS as u128 / u128::from(self.capacity)) as usize
    }

    /// Returns the level of a cylinder.
    #[inline]
    pub fn level(&self, cylinder: u32) -> Level {
        self.levels[self.slots.of(cylinder)]
    }

    /// Returns the maximum levels of the cylinders `low..=high`.
    #[inline]
    pub fn highest(&self, low: u32, high: u32) -> Level {
        let slots = &self.levels[self.slots.of(low)..=self.slots.of(high.max(low))];
        slots.iter().fold(Level { price: 0, clears: 0 }, |a, b| a.or(*b))
    }

    /// Adds a wanted range.
    pub fn wanted(&mut self, range: TaskRange) {
        self.each(range, |wanted, sectors| *wanted += sectors);
    }

    /// Removes a range that is no longer wanted. The whole range of an aborted task may be passed
    /// although a part of it was brought before; then too little counts as wanted until the band's
    /// tasks have ended.
    pub fn gone(&mut self, range: TaskRange) {
        self.each(range, |wanted, sectors| *wanted = wanted.saturating_sub(sectors));
    }

    #[inline]
    fn each(&mut self, range: TaskRange, f: impl Fn(&mut u64, u64)) {
        let (mut lbn, end) = (range.lbn, range.end().min(self.capacity));
        while lbn < end {
            let band = self.band(lbn);
            let until = first(self.capacity, band + 1).min(end);
            f(&mut self.wanted[band], until - lbn);
            lbn = until;
        }
    }

    /// Counts a gap before a request for this LBN. Recomputes prices at regular intervals.
    pub fn gap(&mut self, lbn: u64) {
        let band = self.band(lbn);
        self.gaps[band] += 1;
        self.fresh += 1;
        if self.fresh == JUDGE_AFTER {
            self.fresh = 0;
            self.judge();
            if self.gaps[band] > MAX_GAPS {
                self.gaps.iter_mut().for_each(|g| *g = (*g / 2).max(1));
            }
        }
    }

    fn judge(&mut self) {
        let left: u64 = self.wanted.iter().sum();
        let gaps: u64 = self.gaps.iter().map(|&g| u64::from(g)).sum();
        let one = u64::from(ONE);
        let level = |band: usize| {
            let (wanted, all) = (self.wanted[band], first(self.capacity, band + 1) - first(self.capacity, band));
            let full = (u128::from(wanted) * u128::from(one) / u128::from(all.max(1))).min(u128::from(one)) as u64;
            // Probability that the sectors next to a leg are no longer wanted, if sectors were
            // wanted independently.
            let clears = one - (0..4).fold(one, |p, _| p * full / one);
            let share = u128::from(wanted) * u128::from(gaps) * u128::from(one);
            let ratio = share / (u128::from(self.gaps[band]) * u128::from(left)).max(1);
            let ratio = ratio.min(u128::from(MAX_PRICE)) as u64;
            let power = (0..POWER).fold(one, |p, _| (p * ratio / one).min(MAX_PRICE));
            let price = if left == 0 { one } else { power.clamp(one * one / MAX_PRICE, MAX_PRICE) };
            Level { price: price as u32, clears: clears as u32 }
        };
        let of_band: [Level; BANDS] = std::array::from_fn(level);
        self.levels = std::array::from_fn(|slot| of_band[usize::from(self.bands[slot])]);
    }
}

/// Returns the first LBN of a band.
fn first(capacity: u64, band: usize) -> u64 {
    (u128::from(capacity) * band as u128).div_ceil(BANDS as u128) as u64
}

#[cfg(test)]
mod tests {
    use headtime_disk::{Model, profile};

    use super::*;

    fn bands() -> (Model, Bands) {
        let model = Model::new(&profile::builtin("atlas10k").unwrap()).unwrap();
        let mut bands = Bands::new(&model.geometry);
        bands.wanted(TaskRange { lbn: 0, count: model.geometry.capacity() });
        (model, bands)
    }

    /// Adds this number of gaps before requests spread evenly over the drive's sectors.
    fn even_gaps(model: &Model, bands: &mut Bands, gaps: u64) {
        for i in 0..gaps {
            let lbn = model.geometry.capacity() * ((i * 619) % 1_000) / 1_000;
            bands.gap(lbn);
        }
    }

    #[test]
    fn what_is_wanted_is_counted_by_band_and_gone_again() {
        let (model, mut bands) = bands();
        let capacity = model.geometry.capacity();
        assert_eq!(bands.wanted.iter().sum::<u64>(), capacity);
        assert!(bands.wanted.iter().all(|&w| w.abs_diff(capacity / BANDS as u64) <= 1));
        let half = capacity / 2 - 3;
        bands.gone(TaskRange { lbn: 0, count: half });
        assert_eq!(bands.wanted.iter().sum::<u64>(), capacity - half);
        bands.gone(TaskRange { lbn: 0, count: u64::MAX });
        assert_eq!(bands.wanted, [0; BANDS]);
    }

    #[test]
    fn prices_are_even_while_everything_is_reached_alike() {
        let (model, mut bands) = bands();
        even_gaps(&model, &mut bands, 10_240);
        let prices = bands.levels.map(|l| l.price);
        let (low, high) = (prices.iter().min().unwrap(), prices.iter().max().unwrap());
        assert!(*low >= ONE * 3 / 4 && *high <= ONE * 4 / 3, "{low} to {high}");
        assert!(bands.levels.iter().all(|l| l.clears == 0), "all is wanted");
    }

    #[test]
    fn what_is_behind_costs_more_and_what_is_done_little() {
        let (model, mut bands) = bands();
        let capacity = model.geometry.capacity();
        // A third of the drive is done, at its outer edge; the inner half is not begun.
        bands.gone(TaskRange { lbn: 0, count: capacity / 3 });
        even_gaps(&model, &mut bands, 1_024);
        let last = model.geometry.cylinders() - 1;
        let (outer, inner) = (bands.level(0), bands.level(last));
        assert!(outer.price <= ONE / 4 && inner.price > 3 * ONE, "{outer:?} {inner:?}");
        assert_eq!((outer.clears, inner.clears), (ONE, 0));
        assert_eq!(bands.highest(0, last).clears, ONE);
        assert_eq!(bands.highest(0, last).price, bands.levels.iter().map(|l| l.price).max().unwrap());
        assert_eq!(bands.highest(0, 0), outer);
    }

    #[test]
    fn where_gaps_seldom_end_blocks_cost_more_from_the_beginning() {
        let (model, mut bands) = bands();
        // All requests go to the outer quarter.
        for i in 0..40_960u64 {
            let lbn = model.geometry.capacity() / 4 * ((i * 619) % 1_000) / 1_000;
            bands.gap(lbn);
        }
        assert!(bands.level(0).price < ONE && bands.level(model.geometry.cylinders() - 1).price > ONE);
    }
}
