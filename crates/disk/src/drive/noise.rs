//! What is chance in a drive: one seeded generator, drawn from in a fixed order.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::profile::NoiseSpec;
use crate::time::Dur;

/// The overlap of bus and media was seen to vary by 100 us for transfers of 40 KB (Lumb, Schindler
/// and Ganger 2002, section 5.2). What is known of 40 KB is not stretched to longer transfers: one
/// stream has one overlap to lose.
const OVERLAP_BYTES: u64 = 40 * 1024;

/// The drive's chance. With everything in its [`NoiseSpec`] zero it never draws.
#[derive(Clone, Debug)]
pub struct Noise {
    spec: NoiseSpec,
    rng: Xoshiro256PlusPlus,
}

impl Noise {
    /// A generator for one drive.
    pub fn new(spec: NoiseSpec, seed: u64) -> Noise {
        Noise { spec, rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// The figures it draws by.
    pub fn spec(&self) -> &NoiseSpec {
        &self.spec
    }

    /// Evenly spread from 0 to `most`, both included.
    fn even(&mut self, most: Dur) -> Dur {
        if most == Dur::ZERO {
            return Dur::ZERO;
        }
        Dur(((self.rng.next_u64() as u128 * (most.0 as u128 + 1)) >> 64) as u64)
    }

    /// Nanoseconds by which one move differs from its table value: normal with the profile's
    /// deviation, cut off at its limit.
    ///
    /// The normal variate is the sum of twelve even 16-bit numbers less its mean: variance 12 *
    /// (2^32 / 12), so the deviation is 2^16 and the tails end at six deviations. Integers only,
    /// the same on every machine.
    pub fn seek_difference_ns(&mut self) -> i64 {
        if self.spec.seek_sd == Dur::ZERO {
            return 0;
        }
        let mut sum = 0i64;
        for _ in 0..3 {
            let r = self.rng.next_u64();
            sum += (r & 0xffff) as i64 + (r >> 16 & 0xffff) as i64 + (r >> 32 & 0xffff) as i64 + (r >> 48) as i64;
        }
        let ns = ((sum - 12 * 0xffff / 2) * self.spec.seek_sd.0 as i64) >> 16;
        let most = self.spec.seek_max.0 as i64;
        ns.clamp(-most, most)
    }

    /// Extra turns that the head needs to settle after a move; nearly always none. `before`: what
    /// the same command has lost to settling already. The profile's limit is that of a command: it
    /// is known from how long commands take.
    pub fn settle_turns(&mut self, before: u32) -> u32 {
        let most = self.spec.settle_retry_turns.saturating_sub(before);
        if self.spec.settle_retry_ppm == 0 || most == 0 {
            return 0;
        }
        let again = self.spec.settle_retry_again_ppm.unwrap_or(self.spec.settle_retry_ppm);
        let (mut turns, mut ppm) = (0, self.spec.settle_retry_ppm);
        while turns < most && self.rng.next_u64() % 1_000_000 < u64::from(ppm) {
            (turns, ppm) = (turns + 1, again);
        }
        turns
    }

    /// How late a completion is reported.
    pub fn completion_delay(&mut self) -> Dur {
        self.even(self.spec.completion_jitter)
    }

    /// By how much the bus phase of a transfer of `bytes` is late for lack of overlap. Beyond
    /// [`OVERLAP_BYTES`] it grows no more.
    pub fn overlap_delay(&mut self, bytes: u64) -> Dur {
        if self.spec.overlap_jitter_per_4k == Dur::ZERO {
            return Dur::ZERO;
        }
        let most = self.spec.overlap_jitter_per_4k.0 * bytes.min(OVERLAP_BYTES) / 4096;
        self.even(Dur(most))
    }

    /// When the next recalibration is due, from one that was due before: half to one and a half of
    /// its interval.
    pub fn recalibration_interval(&mut self) -> Dur {
        let every = self.spec.recalibrate_every;
        Dur(every.0 / 2) + self.even(every)
    }

    /// One step of the wandering speed, in parts per billion, from `now_ppb`.
    pub fn speed_step_ppb(&mut self, now_ppb: i64) -> i64 {
        let limit = self.spec.speed_drift_ppb as i64;
        let step = (limit / 16).max(1);
        let draw = (self.rng.next_u64() % (2 * step as u64 + 1)) as i64 - step;
        (now_ppb + draw).clamp(-limit, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a move needs 0, 1, 2, ... extra turns, of a million.
    fn settled(spec: NoiseSpec) -> Vec<u32> {
        let mut noise = Noise::new(spec, 3);
        let mut counts = vec![0; spec.settle_retry_turns as usize + 2];
        (0..1_000_000).for_each(|_| counts[noise.settle_turns(0) as usize] += 1);
        counts
    }

    #[test]
    fn a_head_that_failed_to_settle_fails_again_with_a_chance_of_its_own() {
        let alone = NoiseSpec { settle_retry_ppm: 10_000, settle_retry_turns: 4, ..NoiseSpec::default() };
        let together = NoiseSpec { settle_retry_again_ppm: Some(800_000), ..alone };
        // Expected of 10,000 failures, 1, 2, 3 and 4 turns in all: 1 - p, p (1 - p), p^2 (1 - p),
        // p^3. Four deviations of the largest count are 4 * sqrt(10,000).
        for (spec, expected) in [(alone, [9_900, 99, 1, 0]), (together, [2_000, 1_600, 1_280, 5_120])] {
            let counts = settled(spec);
            for (turns, expected) in (1..).zip(expected) {
                let found = counts[turns];
                assert!(found.abs_diff(expected) <= 400, "{turns} turns: expected {expected}, found {found}");
            }
            assert_eq!(counts[5], 0, "the limit is that of a command");
        }
        let once = settled(NoiseSpec { settle_retry_again_ppm: Some(0), ..alone });
        assert_eq!(once[2..], [0; 4]);
    }

    #[test]
    fn the_overlap_varies_no_more_for_a_long_transfer_than_for_40_kb() {
        let spec = NoiseSpec { overlap_jitter_per_4k: Dur::from_us(25), ..NoiseSpec::default() };
        let longest = |bytes: u64| {
            let mut noise = Noise::new(spec, 7);
            (0..1000).map(|_| noise.overlap_delay(bytes)).max().unwrap_or_default()
        };
        let (short, usual, long) = (longest(4096), longest(40 * 1024), longest(400_000_000));
        assert!(short > Dur::from_us(24) && short <= Dur::from_us(25), "{short}");
        assert!(usual > Dur::from_us(245) && usual <= Dur::from_us(250), "{usual}");
        assert_eq!(long, usual);
        assert_eq!(longest(u64::MAX), usual);
    }
}
