//! The mean time to data loss of a redundancy group, by regenerative simulation with importance
//! sampling.
//!
//! A cycle begins when all drives work, and ends when they all do again, or with a loss. If T is a
//! cycle's mean length and p the probability that it ends with a loss, the mean time to data loss
//! is T / p (renewal theory). p may be 1e-12, so cycles are simulated in which a failure before the
//! next rebuild's end is as likely as not, and each is weighted by the ratio of its probabilities
//! (*failure biasing*: Lewis and Böhm, Monte Carlo simulation of Markov unreliability models,
//! Nuclear Engineering and Design 77, 1984; Shahabuddin, Management Science 40, 1994). T is
//! estimated without it.

use serde::Serialize;

use super::estimate::{Estimate, Sample, Z};
use super::random::Draws;

/// Hours of a year.
pub const YEAR_HOURS: f64 = 8_766.0;

/// The distribution of the time to rebuild a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rebuild {
    /// Always this many hours.
    Fixed(f64),
    /// Exponential with this mean in hours, as Markov models have it.
    Exponential(f64),
}

/// A group of drives that share redundancy. Drives fail independently, at a constant rate; each is
/// rebuilt at once, beside others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// Its drives.
    pub drives: u32,
    /// The most failed drives that it survives: 1 for mirroring and single parity.
    pub survives: u32,
    /// Failures of a drive per hour.
    pub failure_per_hour: f64,
    /// The time to rebuild a drive.
    pub rebuild: Rebuild,
    /// The probability that a working drive has an unreadable sector which no scan has found yet.
    /// When as many drives have failed as the group survives, all others are read, and one such
    /// sector is lost data.
    pub latent: f64,
}

/// The durability of a group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Durability {
    /// Mean time to data loss, years.
    pub mttdl_years: Estimate,
    /// The share of the losses that are unreadable sectors, and not drives.
    pub by_latent: f64,
}

/// The probability with which a simulated cycle takes a failure before the next rebuild ends.
const BIAS: f64 = 0.5;

impl Group {
    /// Returns the probability that a drive has an unreadable sector, if they appear at this rate
    /// per drive and hour, one at a time, and a scrub that takes `scrub_hours` and begins again at
    /// once finds each when it passes. An error lasts for half a scrub on average.
    pub fn latent_share(errors_per_hour: f64, scrub_hours: f64) -> f64 {
        -libm::expm1(-errors_per_hour * scrub_hours / 2.0)
    }

    /// Returns the mean time to data loss of a Markov chain: exponential failures and rebuilds,
    /// each failed drive rebuilt beside the others, no unreadable sectors. Years.
    ///
    /// Hours from state j (j failed drives) to j + 1 are h(j) = (1 + j m h(j - 1)) / f(j), with the
    /// rebuild rate m and the failure rate f(j) = (n - j) l; their sum is the answer. For mirroring
    /// that is (3 l + m) / (2 l^2).
    pub fn closed_form_years(drives: u32, survives: u32, failure_per_hour: f64, rebuild_mean_hours: f64) -> f64 {
        let (mut hours, mut step) = (0.0, 0.0);
        for j in 0..=survives {
            let fails = f64::from(drives - j) * failure_per_hour;
            step = (1.0 + f64::from(j) / rebuild_mean_hours * step) / fails;
            hours += step;
        }
        hours / YEAR_HOURS
    }

    /// Estimates the durability from this many cycles.
    pub fn durability(&self, cycles: u64, seed: u64) -> Durability {
        let mut draws = Draws::new(seed, 0);
        let (mut lost, mut latent, mut length) = (Sample::default(), Sample::default(), Sample::default());
        for _ in 0..cycles {
            let loss = self.biased_cycle(&mut draws);
            lost.add(loss.total);
            latent.add(loss.by_latent);
            length.add(self.plain_cycle(&mut draws));
        }
        let years = length.mean() / lost.mean() / YEAR_HOURS;
        // The ratio of two independent means.
        let (a, b) = (length.error() / length.mean(), lost.error() / lost.mean());
        let spread = Z * libm::sqrt(a * a + b * b);
        let mttdl_years = Estimate { value: years, low: years / (1.0 + spread), high: years * (1.0 + spread) };
        Durability { mttdl_years, by_latent: latent.mean() / lost.mean() }
    }

    fn rebuild_hours(&self, draws: &mut Draws) -> f64 {
        match self.rebuild {
            Rebuild::Fixed(hours) => hours,
            Rebuild::Exponential(mean) => mean * draws.exponential(),
        }
    }

    /// The hours from one failure of all drives working to the next such, without bias.
    fn plain_cycle(&self, draws: &mut Draws) -> f64 {
        let mut hours = draws.exponential() / (f64::from(self.drives) * self.failure_per_hour);
        let mut rebuilds = vec![self.rebuild_hours(draws)];
        while let Some(next) = soonest(&rebuilds) {
            let rate = f64::from(self.drives - rebuilds.len() as u32) * self.failure_per_hour;
            let failure = draws.exponential() / rate;
            let (step, fails) = (failure.min(rebuilds[next]), failure < rebuilds[next]);
            hours += step;
            rebuilds.iter_mut().for_each(|left| *left -= step);
            if fails {
                if rebuilds.len() as u32 == self.survives {
                    return hours;
                }
                rebuilds.push(self.rebuild_hours(draws));
            } else {
                rebuilds.swap_remove(next);
            }
        }
        hours
    }

    /// The probability of a loss, estimated from a biased cycle.
    fn biased_cycle(&self, draws: &mut Draws) -> Loss {
        let mut loss = Loss::default();
        let mut weight = 1.0;
        let mut rebuilds = Vec::new();
        loop {
            // A drive has failed.
            if rebuilds.len() as u32 == self.survives {
                loss.total += weight;
                return loss;
            }
            rebuilds.push(self.rebuild_hours(draws));
            let failed = rebuilds.len() as u32;
            if failed == self.survives {
                // All others are read. The cycle goes on with the probability that it is no loss.
                let others = f64::from(self.drives - failed);
                let bad = -libm::expm1(others * libm::log1p(-self.latent));
                loss.total += weight * bad;
                loss.by_latent += weight * bad;
                weight *= 1.0 - bad;
            }
            // Rebuilds end until the next drive fails.
            loop {
                let Some(next) = soonest(&rebuilds) else { return loss };
                let left = rebuilds[next];
                let rate = f64::from(self.drives - rebuilds.len() as u32) * self.failure_per_hour;
                let fails = -libm::expm1(-rate * left);
                let bias = BIAS.max(fails);
                if draws.share() <= bias {
                    weight *= fails / bias;
                    // The time of a failure that comes before the rebuild's end.
                    let step = -libm::log1p(-fails * draws.share()) / rate;
                    rebuilds.iter_mut().for_each(|r| *r = (*r - step).max(0.0));
                    break;
                }
                weight *= (1.0 - fails) / (1.0 - bias);
                rebuilds.iter_mut().for_each(|r| *r -= left);
                rebuilds.swap_remove(next);
            }
        }
    }
}

/// The index of the rebuild that ends first.
fn soonest(rebuilds: &[f64]) -> Option<usize> {
    (0..rebuilds.len()).min_by(|a, b| rebuilds[*a].total_cmp(&rebuilds[*b]))
}

#[derive(Clone, Copy, Debug, Default)]
struct Loss {
    total: f64,
    by_latent: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILURES: f64 = 0.014 / YEAR_HOURS;

    fn group(drives: u32, survives: u32, rebuild: Rebuild) -> Group {
        Group { drives, survives, failure_per_hour: FAILURES, rebuild, latent: 0.0 }
    }

    #[test]
    fn the_closed_form_is_that_of_text_books() {
        let (l, m) = (FAILURES, 1.0 / 24.0);
        let mirror = (3.0 * l + m) / (2.0 * l * l) / YEAR_HOURS;
        assert!((Group::closed_form_years(2, 1, l, 24.0) / mirror - 1.0).abs() < 1e-12);
        // Single parity over n drives: ((2n - 1) l + m) / (n (n - 1) l^2).
        let parity = (19.0 * l + m) / (90.0 * l * l) / YEAR_HOURS;
        assert!((Group::closed_form_years(10, 1, l, 24.0) / parity - 1.0).abs() < 1e-12);
    }

    #[test]
    fn estimates_meet_the_closed_form() {
        for (drives, survives) in [(2, 1), (10, 1), (12, 2), (14, 3)] {
            for hours in [6.0, 200.0] {
                let d = group(drives, survives, Rebuild::Exponential(hours)).durability(100_000, 7);
                let exact = Group::closed_form_years(drives, survives, FAILURES, hours);
                let e = d.mttdl_years;
                let what = format!("{drives}, {survives}, {hours} h: {e:?}, exactly {exact}");
                // Wider than 95% by half: eight intervals are looked at.
                let (low, high) = (e.value - 1.5 * (e.value - e.low), e.value + 1.5 * (e.high - e.value));
                assert!((low..=high).contains(&exact), "{what}");
                assert!(e.high / e.low < 1.25, "an interval that says something: {what}");
            }
        }
    }

    #[test]
    fn what_is_estimated_is_too_rare_to_be_seen_without_bias() {
        let g = group(12, 2, Rebuild::Fixed(24.0));
        let d = g.durability(100_000, 1);
        let mut draws = Draws::new(1, 1);
        let length = (0..100_000).map(|_| g.plain_cycle(&mut draws)).sum::<f64>() / 1e5;
        let losses_in_all = 1e5 * length / (d.mttdl_years.value * YEAR_HOURS);
        assert!(losses_in_all < 0.1, "{losses_in_all}");
        assert!(d.mttdl_years.high / d.mttdl_years.low < 1.2, "{d:?}");
    }

    #[test]
    fn a_fixed_rebuild_of_single_parity_meets_its_own_closed_form() {
        // One failure in a rebuild of h hours: p = 1 - exp(-(n - 1) l h).
        let (n, h) = (8.0, 30.0);
        let d = group(8, 1, Rebuild::Fixed(h)).durability(200_000, 3);
        let p = -libm::expm1(-(n - 1.0) * FAILURES * h);
        let exact = (1.0 / (n * FAILURES) + h) / p / YEAR_HOURS;
        assert!((d.mttdl_years.value / exact - 1.0).abs() < 0.02, "{d:?}, exactly {exact}");
    }

    #[test]
    fn unreadable_sectors_count_when_no_redundancy_is_left() {
        let latent = 0.01;
        let g = Group { latent, ..group(8, 1, Rebuild::Fixed(10.0)) };
        let d = g.durability(100_000, 5);
        // Each failure reads seven others.
        let bad = 1.0 - 0.99f64.powi(7);
        let exact = (1.0 / (8.0 * FAILURES) + 10.0) / bad / YEAR_HOURS;
        assert!((d.mttdl_years.value / exact - 1.0).abs() < 0.02, "{d:?}, nearly {exact}");
        assert!(d.by_latent > 0.99);
        // Half a scrub of 20 days at one error in 100 days: 10%.
        assert!((Group::latent_share(1.0 / 2400.0, 480.0) - 0.0952).abs() < 1e-4);
        // With another parity drive they matter only in a second failure.
        let double = Group { latent, ..group(8, 2, Rebuild::Fixed(10.0)) }.durability(100_000, 5);
        assert!(double.mttdl_years.value > 1e3 * d.mttdl_years.value);
    }
}
