//! Tracks at equal distances whose first sectors lie at equal angles from each other: how far they
//! go on.

use super::Mapper;
use crate::error::ProbeError;
use crate::fit::fit;
use crate::runs::turns;
use crate::spindle::{apart, fraction};

/// Equidistant angles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// The first.
    pub(super) angle: f64,
    /// Step from one to the next.
    pub(super) step: f64,
}

impl Line {
    pub(super) fn at(&self, i: u64) -> f64 {
        fraction(self.angle + turns(self.step, i))
    }
}

/// Tracks at equal distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// First sector of the first track.
    pub(super) first: u64,
    /// Sectors from one to the next.
    pub(super) step: u64,
    /// Sectors of each.
    pub(super) track: u32,
    /// Part of each that holds no data, in revolutions.
    pub(super) gap: f64,
    /// Most tracks.
    pub(super) most: u64,
}

impl Places {
    pub(super) fn first_of(&self, i: u64) -> u64 {
        self.first + i * self.step
    }

    /// It ends where the track began, one revolution later less the gap.
    pub(super) fn last_of(&self, i: u64) -> u64 {
        self.first_of(i) + u64::from(self.track) - 1
    }
}

impl Mapper<'_, '_, '_> {
    /// Returns the last place on the line through the first two, which is refined on the way.
    pub(super) fn follow(&mut self, line: &mut Line, places: Places) -> Result<u64, ProbeError> {
        let end = self.tracer.sectors();
        let (mut good, mut far) = (1u64, 2u64);
        let mut bad = loop {
            if good + 1 >= places.most {
                return Ok(good);
            }
            far = far.min(places.most - 1);
            self.tracer.sampler.share(places.last_of(far) as f64 / end as f64);
            if !self.lies(line, far, places.most, &places)? {
                break far;
            }
            (good, far) = (far, 2 * far);
        };
        while bad - good > 1 {
            let i = good + (bad - good) / 2;
            if self.lies(line, i, bad, &places)? { good = i } else { bad = i }
        }
        Ok(good)
    }

    /// Returns whether place `i` lies on the line. Its track's last sector must: that of a shorter
    /// track is on the next one. The first sector of a place a little further on must too, if it is
    /// in front of `bad`, which does not: on longer tracks it is on the previous one. One place in
    /// a hundred lies on the line by chance; with noisy answers one in twenty, so more are
    /// measured.
    fn lies(&mut self, line: &mut Line, i: u64, bad: u64, places: &Places) -> Result<bool, ProbeError> {
        const FURTHER_TRACKS: [u64; 3] = [3, 7, 13];
        // A cylinder is a run of a few tracks.
        const CYLINDER_TRACKS: u64 = 8;
        let same = self.tracer.same();
        let here = self.tracer.off(places.last_of(i), line.at(i) - places.gap)?;
        if here.abs() > same {
            return Ok(false);
        }
        let asked = if self.tracer.is_noisy() { FURTHER_TRACKS.len() } else { 1 };
        for further in FURTHER_TRACKS.into_iter().take(asked) {
            if i >= CYLINDER_TRACKS && i + further < bad && !self.begins(line, i + further, places)? {
                return Ok(false);
            }
        }
        line.step = fraction(line.step + here / i as f64);
        Ok(true)
    }

    /// Returns whether the track at place `i` has more sectors than it should.
    pub(super) fn continues(&mut self, line: &Line, i: u64, places: &Places) -> Result<bool, ProbeError> {
        let rate = along(places.track, places.gap);
        let off = self.tracer.off(places.last_of(i) + 1, fraction(line.at(i) - places.gap + rate))?;
        Ok(off.abs() <= self.tracer.same())
    }

    /// Fits the line to more places of a long row by least squares: one answer is off by about 10
    /// us, the line by a third of that.
    pub(super) fn refine(&mut self, line: &mut Line, good: u64, places: &Places) -> Result<(), ProbeError> {
        const MORE_POINTS: u64 = 12;
        if good < 4 * MORE_POINTS {
            return Ok(());
        }
        let mut points = Vec::with_capacity(MORE_POINTS as usize + 1);
        for k in 0..=MORE_POINTS {
            let i = good * k / MORE_POINTS;
            let off = apart(line.at(i) - places.gap, self.tracer.angle(places.last_of(i))?);
            if off.abs() <= self.tracer.same() {
                points.push(([1.0, i as f64, 0.0], off));
            }
        }
        let [angle, step, _] = fit(&points).values;
        (line.angle, line.step) = (fraction(line.angle + angle), fraction(line.step + step));
        Ok(())
    }

    /// Returns whether place `i` begins on the line.
    pub(super) fn begins(&mut self, line: &Line, i: u64, places: &Places) -> Result<bool, ProbeError> {
        let rate = 1.0 / f64::from(places.track);
        let off = self.tracer.off(places.first_of(i), fraction(line.at(i) + rate))?;
        Ok(off.abs() <= self.tracer.same())
    }
}

/// Angle from sector to sector, in revolutions, of a track with `sectors` sectors and this gap. (A
/// track's start is counted from its first sector's end with a full track's sector width.)
pub(super) fn along(sectors: u32, gap: f64) -> f64 {
    let n = f64::from(sectors.max(2));
    fraction(1.0 - 1.0 / n - gap) / (n - 1.0)
}
