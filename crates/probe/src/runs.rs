//! Tracks that follow each other alike.

use crate::spindle::{apart, fraction};

/// So many times as many are many.
const MANY: u64 = 8;
/// Tracks that follow each other with the same skew and as many sectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The first sector of the first.
    pub first: u64,
    /// How many.
    pub tracks: u64,
    /// Sectors of each.
    pub sectors: u32,
    /// From where one begins to where the next does, in turns from 0 to 1. Of a single track it is
    /// unknown, and 0.
    pub skew: f64,
    /// Where the first begins, in turns since the reference.
    pub angle: f64,
    /// From the end of a track's last sector to where the track began, in turns from 0 to 1: what
    /// holds no data; 0 where that does not show.
    pub gap: f64,
}

impl Run {
    /// One past its last sector.
    pub fn end(&self) -> u64 {
        self.first + self.tracks * u64::from(self.sectors)
    }

    /// The angle at which its track number `j` begins.
    pub fn begins(&self, j: u64) -> f64 {
        fraction(self.angle + turns(self.skew, j))
    }

    /// Whether the run behind it goes on as it does: then that is a part of it. A single track that
    /// a late answer has cut off from either end has no skew of its own, and goes on as the others
    /// do.
    pub(crate) fn takes(&mut self, next: &Run, same: f64, loosely: bool) -> bool {
        if (self.tracks, next.tracks) == (1, 1) {
            return false;
        }
        // The longer one knows better: of a few noisy tracks a skew may be off by so much that it
        // leads nowhere.
        let skew = if next.tracks > self.tracks { next.skew } else { self.skew };
        // Where answers scatter, a few tracks in front of many may begin further off than any
        // single answer is: the many know.
        let many = self.tracks.max(next.tracks) >= MANY * self.tracks.min(next.tracks);
        let allowed = if loosely && many { 2.0 * same } else { same };
        let goes_on = self.sectors == next.sectors
            && apart(fraction(self.angle + turns(skew, self.tracks)), next.angle).abs() <= allowed;
        if !goes_on || (self.tracks.min(next.tracks) > 1 && apart(self.skew, next.skew).abs() > same) {
            return false;
        }
        if next.tracks > self.tracks {
            (self.skew, self.angle) = (next.skew, fraction(next.angle - turns(next.skew, self.tracks)));
        }
        self.tracks += next.tracks;
        true
    }
}

/// So many turns, of which only what lies behind the point matters.
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
        // By its own skew the short one ends nowhere near.
        let (mut a, b) = (run(0, 30, 0.1009, 0.95), run(3_000, 400, 0.1, 0.95));
        assert!(a.takes(&b, 0.01, false) && a.tracks == 430 && (a.begins(429) - 0.85).abs() < 1e-6, "{a:?}");
        // Elsewhere, with another skew, with other sectors; and of two single ones nobody knows.
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
