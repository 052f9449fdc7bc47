//! Granularity of wanted sectors: they come in whole units, so a longer time does not always bring
//! more than a shorter one.
//!
//! With units of 64 KB, 2.3 ms on an old drive, a gap of 4 ms brings one, as one of 2.3 ms does:
//! once a plan with one unit is known, tracks with time for only one need not be examined. The
//! *grain* is the largest number of sectors that divides the sizes and first LBNs of all units.
//!
//! With u the time in which a grain passes and o that of crossing to the next track, which is
//! priced at a share c ([`super::prices`]), the upper bound of the value of a time t is, for c <=
//! 1,
//!
//! ```text
//! n * u + c * min(t - n * u, o),  n = floor(t / u)
//! ```
//!
//! because a plan that drops grains for a crossing loses more than c * o.

use headtime_disk::{Dur, Geometry, Mechanics};

use super::bands::Slots;
use super::line::Line;
use crate::fill::stay::KINDS;

/// Cylinders sampled per slot.
const SAMPLES: u64 = 5;
/// Rounding error of a grain's time in integer nanoseconds.
const ROUNDING: u64 = 100;

/// Times of a grain, by slot of cylinders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grain {
    /// Sectors of a grain; 1: unknown.
    sectors: u32,
    slots: Slots,
    times: Vec<Times>,
}

/// The times on a group of neighbouring cylinders, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The minimum and maximum time of a sector, times 2^32.
    sector_fx: (u64, u64),
    /// The same of a grain; zero: unknown.
    grain: (u32, u32),
    /// The maximum time of crossing to the next track.
    over: u64,
}

impl Times {
    /// The identity: no cylinder.
    const NONE: Times = Times { sector_fx: (u64::MAX, 0), grain: (u32::MAX, 0), over: 0 };

    /// Combines the times of two groups of cylinders.
    fn and(self, other: &Times) -> Times {
        Times {
            sector_fx: (self.sector_fx.0.min(other.sector_fx.0), self.sector_fx.1.max(other.sector_fx.1)),
            grain: (self.grain.0.min(other.grain.0), self.grain.1.max(other.grain.1)),
            over: self.over.max(other.over),
        }
    }
}

impl Grain {
    /// Creates the times of a drive on which nothing is wanted.
    pub fn new(geometry: &Geometry, mechanics: &Mechanics) -> Grain {
        let slots = Slots::new(geometry.cylinders());
        let times = |(first, last): (u32, u32)| {
            let mut times = Times { grain: (0, 0), ..Times::NONE };
            // Where a zone begins within a slot, some samples lie in either zone.
            let some = (0..SAMPLES).map(|i| first + ((last - first) as u64 * i / (SAMPLES - 1)) as u32);
            let tracks = some.flat_map(|c| (0..geometry.surfaces()).map(move |s| (c, s)));
            for track in tracks.filter_map(|(c, s)| geometry.track(c, s)) {
                let line = Line::new(geometry, mechanics, track);
                let fx = line.sector_fx();
                let next = geometry.track_of(line.end()).map(|next| Line::new(geometry, mechanics, next));
                let over = KINDS.map(|k| next.map_or(0, |next| line.over(&next, geometry, mechanics, k).0));
                let here = Times { sector_fx: (fx, fx), grain: (0, 0), over: over[0].max(over[1]) };
                times = times.and(&here);
            }
            times
        };
        Grain { sectors: 1, slots, times: slots.all().map(times).collect() }
    }

    /// Sets the grain: wanted ranges are multiples of this number of sectors.
    pub fn set(&mut self, sectors: u32) {
        let sectors = sectors.max(1);
        if sectors == self.sectors {
            return;
        }
        self.sectors = sectors;
        for times in &mut self.times {
            let time =
                |fx: u64| ((u128::from(fx) * u128::from(self.sectors)) >> 32).min(u128::from(u32::MAX / 2)) as u32;
            // A cylinder without data contributes nothing.
            times.grain =
                if times.sector_fx.1 == 0 { (0, 0) } else { (time(times.sector_fx.0), time(times.sector_fx.1) + 1) };
        }
    }

    /// Returns the times on a cylinder.
    #[inline]
    pub fn at(&self, cylinder: u32) -> &Times {
        &self.times[self.slots.of(cylinder)]
    }

    /// Returns the combined times of the cylinders `low..=high`.
    pub fn among(&self, low: u32, high: u32) -> Times {
        if self.sectors == 1 {
            return Times { grain: (0, 0), ..Times::NONE };
        }
        self.times[self.slots.of(low)..=self.slots.of(high.max(low))].iter().fold(Times::NONE, Times::and)
    }

    /// Returns upper bounds of what `time` can bring with these times of a grain: time of wanted
    /// sectors, and of crossings between them. `own`: sectors of the request itself that may
    /// complete a unit. If the time of a unit differs elsewhere, a plan that continues there may
    /// bring slightly more.
    #[inline]
    pub fn within(&self, time: Dur, times: &Times, own: u32) -> (Dur, Dur) {
        let (least, most) = times.grain;
        if self.sectors == 1 || least == 0 {
            return (time, Dur::ZERO);
        }
        // Gaps are shorter than four seconds, and a 32-bit division is cheaper.
        let time = time.0 + u64::from(own) * u64::from(most) / u64::from(self.sectors);
        let n = u32::try_from(time + ROUNDING).unwrap_or(u32::MAX) / least;
        let sectors = (u64::from(n) * u64::from(most)).min(time);
        (Dur(sectors), Dur((time - sectors).min(times.over)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::{Model, profile};

    fn atlas(sectors: u32) -> (Model, Grain) {
        let model = Model::new(&profile::builtin("atlas10k").unwrap()).unwrap();
        let mut grain = Grain::new(&model.geometry, &model.mechanics);
        grain.set(sectors);
        (model, grain)
    }

    #[test]
    fn whole_units_that_fit_are_within_and_what_is_shorter_than_one_brings_nothing() {
        let (model, grain) = atlas(128);
        for cylinder in (0..10_042).step_by(53) {
            let Some(track) = model.geometry.track(cylinder, 2) else { continue };
            let line = Line::new(&model.geometry, &model.mechanics, track);
            for units in 0..4 {
                let whole = line.takes(128 * units);
                let (sectors, over) = grain.within(whole, grain.at(cylinder), 0);
                assert!(sectors + over >= whole, "cylinder {cylinder}: {sectors:?} of {whole:?}");
                let half_more = whole + Dur(line.takes(64).0);
                let (sectors, _) = grain.within(half_more, grain.at(cylinder), 0);
                // Zones that share a slot differ by some per cent.
                assert!(sectors >= whole && sectors.0 <= whole.0 * 108 / 100, "cylinder {cylinder}: {sectors:?}");
                // The request brings the other half.
                assert!(grain.within(half_more, grain.at(cylinder), 65).0 >= line.takes(128 * (units + 1)));
            }
        }
    }

    #[test]
    fn passing_over_counts_once_and_only_what_it_takes() {
        let (model, grain) = atlas(128);
        let line = Line::new(&model.geometry, &model.mechanics, model.geometry.track(5_000, 1).unwrap());
        let next = Line::new(&model.geometry, &model.mechanics, model.geometry.track_of(line.end()).unwrap());
        let over = line.over(&next, &model.geometry, &model.mechanics, KINDS[0]);
        assert!(over > model.mechanics.head_switch && over < Dur::from_ms(2), "{over:?}");
        let (_, most) = grain.within(line.takes(128) + over + Dur::from_us(300), grain.at(5_000), 0);
        assert!(most >= over && most <= over + Dur::from_us(300), "{most:?} of {over:?}");
    }

    #[test]
    fn of_units_of_one_sector_nothing_is_known() {
        let (_, grain) = atlas(1);
        assert_eq!(grain.within(Dur(777), grain.at(5_000), 0), (Dur(777), Dur::ZERO));
        assert_eq!(grain.within(Dur(777), grain.at(u32::MAX), 0), (Dur(777), Dur::ZERO));
    }
}
