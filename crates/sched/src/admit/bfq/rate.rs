//! The disk's peak rate, and the largest budget that follows from it (Valente 2014 sections 3.3 and
//! 4.2).
//!
//! The rate of an application that was served for 20 ms or more is a sample, `R_meas`. The original
//! estimator keeps the highest: `R_est = max(R_est, R_meas)`. The new one takes samples higher than
//! the estimate, and samples of applications that are not scattered and could not use up their
//! budget in time, and filters: `R_est = 7/8 R_est + 1/8 R_meas`. The largest budget is the
//! transfer at that rate in a slice: `B_max = T_max R_est`. It is a read rate: asynchronous
//! requests are excluded.

use headtime_disk::Dur;

/// Shorter services are not samples.
const SHORTEST: Dur = Dur::from_ms(20);
/// Filter weight of the previous estimate.
const OLD: f64 = 7.0 / 8.0;
/// Samples before budgets follow the estimate (as in the kernel).
const MIN_SAMPLES: u64 = 32;

/// A finished turn of an application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    /// Sectors served.
    pub sectors: u64,
    /// How long it was the active application.
    pub time: Dur,
    /// Its budget was not used up in time.
    pub timed_out: bool,
    /// Its requests are scattered.
    pub random: bool,
}

/// The estimator.
#[derive(Clone, Debug)]
pub(crate) struct PeakRate {
    /// H-peak-rate: filter instead of maximum.
    filtered: bool,
    slice: Dur,
    first_budget: u64,
    /// In sectors per second.
    estimate: f64,
    samples: u64,
}

impl PeakRate {
    /// Creates the estimator. `first_budget` is the largest budget until there are enough samples.
    /// The estimate starts with the rate it implies, that of a typical disk.
    pub(crate) fn new(filtered: bool, slice: Dur, first_budget: u64) -> PeakRate {
        PeakRate { filtered, slice, first_budget, estimate: first_budget as f64 / slice.as_secs_f64(), samples: 0 }
    }

    /// Adds the sample of a finished turn.
    pub(crate) fn sample(&mut self, s: &Service) {
        if s.time < SHORTEST || s.sectors == 0 {
            return;
        }
        // Every sample counts, whether or not it moves the estimate. A first budget that is too
        // small is always used up in time: no service at a typical rate would count, and budgets
        // would never follow the estimate.
        self.samples += 1;
        let measured = s.sectors as f64 / s.time.as_secs_f64();
        if !self.filtered {
            self.estimate = self.estimate.max(measured);
        } else if measured > self.estimate || (s.timed_out && !s.random) {
            self.estimate = OLD * self.estimate + (1.0 - OLD) * measured;
        }
    }

    /// Returns the estimate in sectors per second, or `None` while there are too few samples.
    pub(crate) fn estimate(&self) -> Option<f64> {
        (self.samples >= MIN_SAMPLES).then_some(self.estimate)
    }

    /// Returns the largest budget.
    pub(crate) fn most(&self) -> u64 {
        match self.estimate() {
            Some(rate) => ((rate * self.slice.as_secs_f64()) as u64).max(1),
            None => self.first_budget,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(sectors: u64, ms: u64) -> Service {
        Service { sectors, time: Dur::from_ms(ms), timed_out: false, random: false }
    }

    /// A disk of 100,000 sectors per second in the outer zones and 60,000 in the inner ones, with
    /// occasional cache hits. Every service takes a budget or a slice, whichever ends first.
    fn estimate(filtered: bool, first_budget: u64) -> f64 {
        let mut rate = PeakRate::new(filtered, Dur::from_ms(125), first_budget);
        for i in 0..4_000u64 {
            let real = if i % 50 == 0 { 400_000.0 } else { 100_000.0 - 40_000.0 * ((i * 37 % 100) as f64 / 100.0) };
            let budget = rate.most() as f64;
            let takes = budget / real;
            let (sectors, time) = if takes <= 0.125 { (budget, takes) } else { (real * 0.125, 0.125) };
            let time = Dur::from_us((time * 1e6) as u64);
            let s = Service { sectors: sectors as u64, time, timed_out: takes > 0.125, random: false };
            rate.sample(&s);
        }
        rate.estimate().unwrap()
    }

    #[test]
    fn the_filter_comes_near_the_mean_and_the_highest_rate_stays_where_a_cache_has_put_it() {
        // Whatever the initial value.
        for first_budget in [4_096, 16_384, 65_536] {
            let new = estimate(true, first_budget);
            assert!((new - 80_000.0).abs() < 16_000.0, "{new} from {first_budget}");
        }
        assert!(estimate(false, 16_384) > 350_000.0);
    }

    #[test]
    fn short_services_and_too_few_of_them_say_nothing() {
        let mut rate = PeakRate::new(true, Dur::from_ms(125), 16_384);
        for _ in 0..100 {
            rate.sample(&served(1_000, 19));
        }
        for _ in 0..31 {
            assert_eq!((rate.estimate(), rate.most()), (None, 16_384));
            rate.sample(&Service { timed_out: true, ..served(1_000, 20) });
        }
        rate.sample(&Service { timed_out: true, ..served(1_000, 20) });
        assert!((6_250..6_500).contains(&rate.most()), "{}", rate.most());
    }

    #[test]
    fn a_seeky_queue_does_not_lower_the_estimated_rate() {
        let mut rate = PeakRate::new(true, Dur::from_ms(125), 16_384);
        for _ in 0..40 {
            rate.sample(&Service { timed_out: true, ..served(10_000, 100) });
        }
        let before = rate.estimate();
        rate.sample(&Service { timed_out: true, random: true, ..served(100, 125) });
        rate.sample(&served(100, 50));
        assert_eq!(rate.estimate(), before);
    }
}
