//! Runs of equal consecutive tracks.

use crate::spindle::{apart, fraction};

/// Ratio of run lengths from which the tolerance is doubled with noisy answers.
const DOUBLING_RATIO: u64 = 8;
/// Consecutive tracks with the same skew and equally many sectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// First sector of the first track.
    pub first: u64,
    /// Number of tracks.
    pub tracks: u64,
    /// Sectors of each.
    pub sectors: u32,
    /// Skew from one track's start to the next, in revolutions from 0 to 1; 0, as unknown, for a
    /// single track.
    pub skew: f64,
    /// Angle of the first track's start, in revolutions since the reference.
    pub angle: f64,
    /// Gap from the end of a track's last sector to the angle of its start, in revolutions from 0
    /// to 1, which holds no data; 0 if it does not show.
    pub gap: f64,
}

impl Run {
    /// One past its last sector.
    pub fn end(&self) -> u64 {
        self.first + self.tracks * u64::from(self.sectors)
    }

    /// Returns the angle at which track number `j` begins.
    pub fn begins(&self, j: u64) -> f64 {
        fraction(self.angle + turns(self.skew, j))
    }

    /// Extends the run by the next one if that continues it. A single track that a late answer
    /// split off at either end has no skew of its own, and may continue either.
    pub(crate) fn takes(&mut self, next: &Run, same: f64, loosely: bool) -> bool {
        if (self.tracks, next.tracks) == (1, 1) {
            return false;
        }
        // The longer run has the better skew: that of a few noisy tracks may be off by so much that
        // it is useless.
        let skew = if next.tracks > self.tracks { next.skew } else { self.skew };
        // With noisy answers, a few tracks in front of many may begin further off than any single
        // answer is: the many count.
        let many = self.tracks.max(next.tracks) >= DOUBLING_RATIO * self.tracks.min(next.tracks);
        let allowed = if loosely && many { 2.0 * same } else { same };
        let continues = self.sectors == next.sectors
            && apart(fraction(self.angle + turns(skew, self.tracks)), next.angle).abs() <= allowed;
        if !continues || (self.tracks.min(next.tracks) > 1 && apart(self.skew, next.skew).abs() > same) {
            return false;
        }
        if next.tracks > self.tracks {
            (self.skew, self.angle) = (next.skew, fraction(next.angle - turns(next.skew, self.tracks)));
        }
        self.tracks += next.tracks;
        true
    }
}

/// The fractional part of `n` skews, in revolutions.
pub(crate) fn turns(skew: f64, n: u64) -> f64 {
    fraction(skew * n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_one_run_whichever_part_of_it_is_single() {
        let run = |first, tracks, skew, angle| Run { first, tracks, sectors: 100, skew, angle, gap: 0.0 };
        for (mut a, b) in [
            (run(0, 5, 0.1, 0.95), run(500, 1, 0.0, 0.45)),
            (run(0, 1, 0.0, 0.95), run(100, 5, 0.1, 0.05)),
            (run(0, 2, 0.1002, 0.9501), run(200, 4, 0.1, 0.15)),
        ] {
            assert!(a.takes(&b, 1e-3, false), "{a:?} {b:?}");
            assert!((a.first, a.tracks, a.end()) == (0, 6, 600), "{a:?}");
            assert!((a.begins(5) - 0.45).abs() < 1e-3, "{a:?}");
        }
        // The short one's own skew ends nowhere near.
        let (mut a, b) = (run(0, 30, 0.1009, 0.95), run(3_000, 400, 0.1, 0.95));
        assert!(a.takes(&b, 0.01, false) && a.tracks == 430 && (a.begins(429) - 0.85).abs() < 1e-6, "{a:?}");
        // Another angle, another skew, other sectors; and two single tracks, which is undecidable.
        for (mut a, b) in [
            (run(0, 1, 0.0, 0.95), run(100, 5, 0.1, 0.06)),
            (run(0, 5, 0.1, 0.95), run(500, 5, 0.2, 0.45)),
            (run(0, 5, 0.1, 0.95), Run { sectors: 101, ..run(500, 5, 0.1, 0.45) }),
            (run(0, 1, 0.0, 0.95), run(100, 1, 0.0, 0.95)),
        ] {
            assert!(!a.takes(&b, 1e-3, false), "{a:?} {b:?}");
        }
    }
}
