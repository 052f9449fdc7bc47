//! The disk's peak rate, and the largest budget that follows from it (Valente 2014 sections 3.3 and
//! 4.2).
//!
//! The rate of an application that was served for 20 ms or more is a sample, `R_meas`. The original
//! estimator keeps the highest one: `R_est = max(R_est, R_meas)`. The new one takes a sample that
//! is higher than the estimate, or one of an application that is not scattered and could not use up
//! its budget in time, and filters: `R_est = 7/8 R_est + 1/8 R_meas`. The largest budget is what
//! passes at that rate in a slice: `B_max = T_max R_est`. It is the rate of reading: what nobody
//! waits for is left out.

use headtime_disk::time::Dur;

/// Shorter services say nothing about the rate.
const SHORTEST: Dur = Dur::from_ms(20);
/// The weight of what was known before, in eighths.
const OLD: f64 = 7.0 / 8.0;
/// Samples before budgets go by the estimate (as in the kernel).
const ENOUGH: u64 = 32;

/// How an application was served, when it is no longer.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Sectors.
    pub sectors: u64,
    /// How long it was the active one.
    pub time: Dur,
    /// Its budget was not used up in time.
    pub timed_out: bool,
    /// Its requests are scattered.
    pub random: bool,
}

/// The estimator.
#[derive(Clone, Debug)]
pub struct PeakRate {
    /// The new one.
    filtered: bool,
    slice: Dur,
    first_budget: u64,
    /// Sectors a second.
    estimate: f64,
    samples: u64,
}

impl PeakRate {
    /// Nothing is known. `first_budget` is the largest budget until enough is, and the estimate
    /// begins with the rate that it stands for: it is that of a usual disk, as if it had been used
    /// before.
    pub fn new(filtered: bool, slice: Dur, first_budget: u64) -> PeakRate {
        PeakRate { filtered, slice, first_budget, estimate: first_budget as f64 / slice.as_secs_f64(), samples: 0 }
    }

    /// An application was served.
    pub fn sample(&mut self, s: &Service) {
        if s.time < SHORTEST || s.sectors == 0 {
            return;
        }
        // Each was held against the estimate, whether it moves it or not. A first budget that is
        // too small is always used up in time: of the services at a usual rate none would count,
        // and budgets would never go by an estimate at all.
        self.samples += 1;
        let measured = s.sectors as f64 / s.time.as_secs_f64();
        if !self.filtered {
            self.estimate = self.estimate.max(measured);
        } else if measured > self.estimate || (s.timed_out && !s.random) {
            self.estimate = OLD * self.estimate + (1.0 - OLD) * measured;
        }
    }

    /// Sectors a second; `None` while there are too few samples.
    pub fn estimate(&self) -> Option<f64> {
        (self.samples >= ENOUGH).then_some(self.estimate)
    }

    /// The largest budget.
    pub fn most(&self) -> u64 {
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

    /// A disk of 100,000 sectors a second at the outside and 60,000 inside, with hits in its cache
    /// now and then: every service takes a budget or a slice, whichever ends first.
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
        // Whatever it begins with.
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
    fn who_is_scattered_does_not_make_the_disk_seem_slow() {
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
