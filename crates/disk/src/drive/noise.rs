//! A drive's random components: one seeded generator, drawn from in a fixed order.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::profile::NoiseSpec;
use crate::time::Dur;

/// The overlap of bus and media was observed to vary by 100 us for transfers of 40 KB (Lumb,
/// Schindler and Ganger 2002, section 5.2). It is not extrapolated to longer transfers: a stream
/// has only one overlap to lose.
const OVERLAP_BYTES: u64 = 40 * 1024;

/// Noise generator of a drive. With a [`NoiseSpec`] of zeros it never draws.
#[derive(Clone, Debug)]
pub(super) struct Noise {
    spec: NoiseSpec,
    seed: u64,
    rng: Xoshiro256PlusPlus,
}

impl Noise {
    /// Creates a generator for one drive.
    pub(super) fn new(spec: NoiseSpec, seed: u64) -> Noise {
        Noise { spec, seed, rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Returns its parameters.
    pub(super) fn spec(&self) -> &NoiseSpec {
        &self.spec
    }

    /// Draws uniformly from 0 to `most`, both inclusive.
    fn even(&mut self, most: Dur) -> Dur {
        if most == Dur::ZERO {
            return Dur::ZERO;
        }
        Dur(((self.rng.next_u64() as u128 * (most.0 as u128 + 1)) >> 64) as u64)
    }

    /// Draws the deviation of a move from its table value in nanoseconds: normal with the profile's
    /// standard deviation, truncated at its limit.
    pub(super) fn seek_difference_ns(&mut self) -> i64 {
        if self.spec.seek_sd == Dur::ZERO {
            return 0;
        }
        normal_ns(&mut self.rng, 0, self.spec.seek_sd, self.spec.seek_max)
    }

    /// Returns the constant error of moves over `distance` cylinders to `surface`, in ns: normal
    /// with the profile's mean and deviation, truncated at its limit. Distances share an error with
    /// those of the same square root, as the time of a move rises with it. Moves to the next track
    /// or cylinder have none: the drive's skews were made for their times.
    pub(super) fn move_error_ns(&self, distance: u32, surface: u16) -> i64 {
        let NoiseSpec { move_error_mean_ns: mean, move_error_sd: sd, move_error_max: most, .. } = self.spec;
        if distance < 2 || (mean, sd) == (0, Dur::ZERO) {
            return 0;
        }
        let place = u64::from(distance.isqrt()) << 16 | u64::from(surface);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        normal_ns(&mut rng, mean, sd, most)
    }

    /// Draws the extra revolutions that the head needs to settle after a move; nearly always none.
    /// `before` is what the same command has already lost to settling: the profile's limit applies
    /// to a command, because it is derived from commands' times.
    pub(super) fn settle_turns(&mut self, before: u32) -> u32 {
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

    /// Draws the delay of a completion report.
    pub(super) fn completion_delay(&mut self) -> Dur {
        let delay = self.even(self.spec.completion_jitter);
        let ppm = self.spec.late_completion_ppm;
        if ppm > 0 && self.rng.next_u64() % 1_000_000 < u64::from(ppm) {
            return delay + self.even(self.spec.late_completion_max);
        }
        delay
    }

    /// Draws the delay of the bus phase of a transfer of `bytes` due to lost overlap. Constant
    /// beyond [`OVERLAP_BYTES`].
    pub(super) fn overlap_delay(&mut self, bytes: u64) -> Dur {
        if self.spec.overlap_jitter_per_4k == Dur::ZERO {
            return Dur::ZERO;
        }
        let most = self.spec.overlap_jitter_per_4k.0 * bytes.min(OVERLAP_BYTES) / 4096;
        self.even(Dur(most))
    }

    /// Draws the time from one due recalibration to the next: half to one and a half times the mean
    /// interval.
    pub(super) fn recalibration_interval(&mut self) -> Dur {
        let every = self.spec.recalibrate_every;
        Dur(every.0 / 2) + self.even(every)
    }

    /// Draws a step of the speed's random walk, in parts per billion, from `now_ppb`.
    pub(super) fn speed_step_ppb(&mut self, now_ppb: i64) -> i64 {
        let limit = self.spec.speed_drift_ppb as i64;
        let step = (limit / 16).max(1);
        let draw = (self.rng.next_u64() % (2 * step as u64 + 1)) as i64 - step;
        (now_ppb + draw).clamp(-limit, limit)
    }
}

/// Draws from a normal distribution in nanoseconds, truncated at `most` in either direction.
///
/// The variate is the sum of twelve uniform 16-bit numbers minus its mean: variance 12 * (2^32 /
/// 12), so the standard deviation is 2^16 and the tails end at six deviations. Integer arithmetic
/// gives the same values on every machine.
fn normal_ns(rng: &mut Xoshiro256PlusPlus, mean_ns: i64, sd: Dur, most: Dur) -> i64 {
    let mut sum = 0i64;
    for _ in 0..3 {
        let r = rng.next_u64();
        sum += (r & 0xffff) as i64 + (r >> 16 & 0xffff) as i64 + (r >> 32 & 0xffff) as i64 + (r >> 48) as i64;
    }
    let ns = mean_ns + (((sum - 12 * 0xffff / 2) * sd.0 as i64) >> 16);
    ns.clamp(-(most.0 as i64), most.0 as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the moves that need 0, 1, 2, ... extra revolutions, out of a million.
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
        // Expected of 10,000 failures with 1, 2, 3 and 4 revolutions in all: 1 - p, p (1 - p), p^2
        // (1 - p), p^3. Four standard deviations of the largest count are 4 * sqrt(10,000).
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
    fn each_distance_and_surface_has_a_constant_error_and_the_next_track_none() {
        let spec = NoiseSpec::default().measured();
        let noise = Noise::new(spec, 5);
        let errors: Vec<i64> =
            (2..10_000).flat_map(|d| (0..6).map(move |s| (d, s))).map(|(d, s)| noise.move_error_ns(d, s)).collect();
        let again: Vec<i64> =
            (2..10_000).flat_map(|d| (0..6).map(move |s| (d, s))).map(|(d, s)| noise.move_error_ns(d, s)).collect();
        assert_eq!(errors, again);
        assert_eq!([noise.move_error_ns(0, 3), noise.move_error_ns(1, 0)], [0, 0]);
        // Some 600 different ones: the mean is within four deviations of theirs.
        let mean = errors.iter().sum::<i64>() / errors.len() as i64;
        assert!((mean - 66_000).abs() < 4 * 176_000 / 24, "{mean}");
        assert!(errors.iter().all(|e| e.abs() <= 600_000));
        assert_ne!(errors[0], errors[1], "another surface");
        assert_ne!(Noise::new(spec, 6).move_error_ns(500, 2), noise.move_error_ns(500, 2), "another drive");
    }

    #[test]
    fn a_few_completions_are_much_later() {
        let spec = NoiseSpec::default().measured();
        let mut noise = Noise::new(spec, 5);
        let delays: Vec<Dur> = (0..100_000).map(|_| noise.completion_delay()).collect();
        let late = delays.iter().filter(|d| **d > spec.completion_jitter).count();
        // 0.7%, nearly all of which exceed the usual delay; four deviations of 700.
        assert!(late.abs_diff(690) < 110, "{late}");
        assert!(delays.iter().all(|d| *d <= spec.latest_completion()));
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
