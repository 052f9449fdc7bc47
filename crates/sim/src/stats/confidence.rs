//! 95% confidence intervals of a mean, by the method of batch means.
//!
//! Successive response times are correlated (a queue that is long now is long soon after), so the
//! textbook interval for independent samples would be far too narrow. The run is divided into
//! batches of equal length, whose means are treated as independent (Law and Kelton, Simulation
//! Modeling and Analysis, section 9.5.3). Memory is constant: when 64 batches are full, neighbours
//! are merged and batches become twice as long.

use headtime_disk::Dur;

const BATCHES: usize = 64;
/// Minimum number of full batches for an interval.
const BATCHES_AT_LEAST: usize = 10;

/// Means of batches of a series.
#[derive(Clone, Debug)]
pub struct BatchMeans {
    sums: [u128; BATCHES],
    full: usize,
    length: u64,
    current: u128,
    in_current: u64,
}

impl Default for BatchMeans {
    fn default() -> BatchMeans {
        BatchMeans { sums: [0; BATCHES], full: 0, length: 1, current: 0, in_current: 0 }
    }
}

impl BatchMeans {
    /// Adds the next value of the series.
    #[inline]
    pub fn record(&mut self, d: Dur) {
        self.current += u128::from(d.0);
        self.in_current += 1;
        if self.in_current == self.length {
            self.close_batch();
        }
    }

    fn close_batch(&mut self) {
        if self.full == BATCHES {
            for i in 0..BATCHES / 2 {
                self.sums[i] = self.sums[2 * i] + self.sums[2 * i + 1];
            }
            self.full = BATCHES / 2;
            self.length *= 2;
            // The current batch is now half full.
            return;
        }
        self.sums[self.full] = self.current;
        self.full += 1;
        self.current = 0;
        self.in_current = 0;
    }

    /// Returns half the width of the 95% confidence interval of the mean, in nanoseconds; `None`
    /// below 10 full batches.
    pub fn half_width_ns(&self) -> Option<f64> {
        if self.full < BATCHES_AT_LEAST {
            return None;
        }
        let means: Vec<f64> = self.sums[..self.full].iter().map(|&s| s as f64 / self.length as f64).collect();
        Some(half_width(&means))
    }
}

/// Returns half the width of the 95% confidence interval of the mean of independent values, such as
/// repeated runs, by Student's t distribution; zero for fewer than two.
pub fn half_width(values: &[f64]) -> f64 {
    let n = values.len();
    if n < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    student_t_95(n - 1) * (variance / n as f64).sqrt()
}

/// Returns the 97.5% quantile of Student's t distribution (from any table of it). Beyond 30 degrees
/// of freedom the next lower row is used, which errs on the wide side.
fn student_t_95(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    match degrees {
        0 => f64::INFINITY,
        d if d <= TABLE.len() => TABLE[d - 1],
        d if d < 40 => 2.042,
        d if d < 60 => 2.021,
        d if d < 120 => 2.000,
        _ => 1.980,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::variates::Variates;

    #[test]
    fn the_interval_covers_the_true_mean_nineteen_times_in_twenty() {
        let mut covered = 0;
        for seed in 0..400 {
            let mut v = Variates::new(seed, 0);
            let mut b = BatchMeans::default();
            let mut sum = 0.0;
            let n = 5_000;
            for _ in 0..n {
                let x = v.exponential(1_000_000);
                sum += x as f64;
                b.record(Dur(x));
            }
            let off = (sum / f64::from(n) - 1e6).abs();
            covered += u32::from(off <= b.half_width_ns().unwrap());
        }
        assert!((365..=395).contains(&covered), "{covered} of 400");
    }

    #[test]
    fn a_series_that_drifts_gets_a_wider_interval_than_a_shuffled_one() {
        let (mut drifting, mut mixed) = (BatchMeans::default(), BatchMeans::default());
        for i in 0..6400u64 {
            drifting.record(Dur(i));
            mixed.record(Dur(i * 2731 % 6400));
        }
        assert!(drifting.half_width_ns().unwrap() > 4.0 * mixed.half_width_ns().unwrap());
    }

    #[test]
    fn joining_batches_loses_nothing() {
        let mut b = BatchMeans::default();
        for i in 0..1_000u64 {
            b.record(Dur(i));
        }
        let kept: u128 = b.sums[..b.full].iter().sum::<u128>() + b.current;
        assert_eq!(kept, (0..1_000u128).sum());
        assert_eq!(b.full as u64 * b.length + b.in_current, 1_000);
        assert!(b.length >= 16);
    }

    #[test]
    fn few_samples_give_no_interval() {
        let mut b = BatchMeans::default();
        for _ in 0..9 {
            b.record(Dur(1));
        }
        assert_eq!(b.half_width_ns(), None);
        // Three runs of 1, 2, 3: 4.303 * 1 / sqrt 3.
        assert!((half_width(&[1.0, 2.0, 3.0]) - 2.4844).abs() < 1e-3);
    }
}
