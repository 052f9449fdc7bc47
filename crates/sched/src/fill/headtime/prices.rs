//! The value of a block: the head time that it takes whenever it is read, and how hard it is to
//! reach.
//!
//! Sectors are worth the time in which they pass, so that outer tracks, which hold more of them,
//! are not preferred (the reason for Angle-EP-Greedy, Thereska 2003 section 4.4). Added is what a
//! plan saves later gaps:
//!
//! * A unit on two tracks also takes the crossing from one to the other, a skew that is longer than
//!   the unit itself; few gaps are long enough for both, and these units form the tail of a scan.
//!   So the crossing time is priced too ([`Prices::crossing`]), when the unit is wanted on both
//!   sides.
//! * A run of wanted sectors costs a later gap a visit, however short it is. A leg that takes all
//!   of one saves that visit; a leg that takes its middle causes a second visit
//!   ([`Prices::fragment`]). Thereska 2003's Angle-EP-Frag clears tracks for this reason; a price
//!   bounds what that may cost.
//! * All sectors are worth more where gaps are too rare for what is wanted there
//!   ([`super::bands`]).
//!
//! With f the fragments that a leg removes less those that it leaves, at most one, and c the share
//! of runs that one visit can clear ([`Level::clears`]: zero while nearly everything is wanted, for
//! then any leg splits a run),
//! ```text
//! value = (time of wanted sectors + crossing * time of passing over + fragment * c * f) * price of the band
//! ```

use headtime_disk::{Dur, Model};

use super::bands::{Bands, Level, ONE};
use super::grain::{Grain, Times};

/// Prices, in nanoseconds of head time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    /// Price of the time of crossing to the next track for a unit on both, in 256ths of the time. A
    /// higher price slows the beginning of a scan and speeds up its end. Against a half, five
    /// eighths make a whole scan end 0.6 to 2% sooner and its first half 0.6 to 1.3% later (Atlas
    /// 10K, 1 TB and 20 TB drives, six seeds); three quarters 1 to 3.5% sooner and 1 to 4% later.
    pub crossing: u32,
    /// Price of a removed run of wanted sectors. About the cost of a visit: a head switch or a
    /// short seek, and the rotational latency. From 200 to 500 us whole scans differ by 3%.
    pub fragment: Dur,
    /// Prices of the parts of the disk.
    pub bands: Bands,
    /// Upper bounds of what a time can bring.
    pub grain: Grain,
}

impl Prices {
    /// Creates the prices for a drive on which nothing is wanted.
    pub fn new(model: &Model) -> Prices {
        let (bands, grain) = (Bands::new(&model.geometry), Grain::new(&model.geometry, &model.mechanics));
        Prices { crossing: 160, fragment: Dur::from_us(450), bands, grain }
    }

    /// Returns the value of `time` of wanted sectors on a cylinder, `over` of crossings between
    /// them, and the number of fragments removed less those created.
    #[inline]
    pub fn value(&self, cylinder: u32, time: Dur, over: Dur, fragments: i64) -> u64 {
        let plain = time.0 + over.0.saturating_mul(u64::from(self.crossing)) / 256;
        let level = self.bands.level(cylinder);
        let fragment = (self.clearing(level) as i64).saturating_mul(fragments.min(1));
        // Any wanted sector has some value.
        let value = plain.saturating_add_signed(fragment).max(1);
        (value * u64::from(level.price) / u64::from(ONE)).max(1)
    }

    /// Returns the value of a fragment at this level.
    #[inline]
    fn clearing(&self, level: Level) -> u64 {
        self.fragment.0 * u64::from(level.clears) / u64::from(ONE)
    }

    /// Returns the value of a fragment on a cylinder.
    #[inline]
    pub fn fragment_on(&self, cylinder: u32) -> u64 {
        let level = self.bands.level(cylinder);
        self.clearing(level).saturating_mul(u64::from(level.price)) / u64::from(ONE)
    }

    /// Returns an upper bound of the expected value of a leg of this length, at this level and with
    /// these times of a grain; 0 when no unit there is that short. `own`: sectors of the request
    /// itself that may complete a unit.
    #[inline]
    pub fn most(&self, time: Dur, times: &Times, own: u32, level: Level) -> u64 {
        let time = match self.crossing <= 256 {
            true => {
                let (sectors, over) = self.grain.within(time, times, own);
                if sectors == Dur::ZERO {
                    return 0;
                }
                sectors.0 + over.0 * u64::from(self.crossing) / 256
            }
            false => time.0.saturating_mul(u64::from(self.crossing)) / 256,
        };
        (time + self.clearing(level)).saturating_mul(u64::from(level.price)) / u64::from(ONE)
    }

    /// Returns [`Prices::most`] on a cylinder.
    #[inline]
    pub fn most_at(&self, time: Dur, cylinder: u32, own: u32) -> u64 {
        self.most(time, self.grain.at(cylinder), own, self.bands.level(cylinder))
    }

    /// Returns the same bound as if single sectors were wanted, not whole units: for comparing
    /// places.
    #[inline]
    pub fn chance(&self, time: Dur, cylinder: u32) -> u64 {
        let level = self.bands.level(cylinder);
        (time.0 + self.clearing(level)).saturating_mul(u64::from(level.price)) / u64::from(ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::TaskRange;
    use headtime_disk::profile;

    #[test]
    fn fragments_count_only_where_a_stretch_can_be_cleared() {
        let model = Model::new(&profile::builtin("atlas10k").unwrap()).unwrap();
        let mut prices = Prices::new(&model);
        let all = TaskRange { lbn: 0, count: model.geometry.capacity() };
        prices.bands.wanted(all);
        (0..256).for_each(|i| prices.bands.gap(all.count / 256 * i));
        let value = |prices: &Prices, fragments| prices.value(5_000, Dur::from_ms(2), Dur::ZERO, fragments);
        assert_eq!(value(&prices, -1), value(&prices, 1), "all is wanted: any leg breaks a stretch up");
        prices.bands.gone(TaskRange { lbn: 0, count: all.count / 100 * 99 });
        prices.bands.wanted(TaskRange { lbn: 0, count: all.count / 100 });
        (0..256).for_each(|i| prices.bands.gap(all.count / 256 * i));
        assert!(value(&prices, -1) < value(&prices, 0) && value(&prices, 0) < value(&prices, 1));
    }
}
