//! Estimates with intervals of confidence.

use serde::Serialize;

/// 97.5% of the standard normal distribution.
pub(super) const Z: f64 = 1.959_963_985;

/// A figure and its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Estimate {
    /// A figure that is known exactly.
    pub fn exact(value: f64) -> Estimate {
        Estimate { value, low: value, high: value }
    }

    /// A share: `hits` of `all` (Wilson's interval, which is sound for few hits and for none).
    pub fn share(hits: u64, all: u64) -> Estimate {
        if all == 0 {
            return Estimate { value: f64::NAN, low: 0.0, high: 1.0 };
        }
        let (n, p) = (all as f64, hits as f64 / all as f64);
        let (middle, scale) = (p + Z * Z / (2.0 * n), 1.0 + Z * Z / n);
        let half = Z * libm::sqrt(p * (1.0 - p) / n + Z * Z / (4.0 * n * n));
        Estimate { value: p, low: ((middle - half) / scale).max(0.0), high: ((middle + half) / scale).min(1.0) }
    }

    /// A rate: `events` in an exposure of `time` (Byar's approximation of the exact interval of
    /// Poisson counts).
    pub fn rate(events: u64, time: f64) -> Estimate {
        let k = events as f64;
        let bound = |k: f64, z: f64| {
            let base = 1.0 - 1.0 / (9.0 * k) + z / (3.0 * libm::sqrt(k));
            k * base * base * base
        };
        let low = if events == 0 { 0.0 } else { bound(k, -Z) };
        Estimate { value: k / time, low: low / time, high: bound(k + 1.0, Z) / time }
    }

    /// Scales the figure and its interval.
    pub fn times(self, factor: f64) -> Estimate {
        Estimate { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }
}

/// Mean and variance of a sample, one value at a time (Welford).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    n: u64,
    mean: f64,
    squares: f64,
}

impl Sample {
    pub(super) fn add(&mut self, value: f64) {
        self.n += 1;
        let off = value - self.mean;
        self.mean += off / self.n as f64;
        self.squares += off * (value - self.mean);
    }

    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the standard error of the mean.
    pub(super) fn error(&self) -> f64 {
        if self.n < 2 {
            return f64::INFINITY;
        }
        libm::sqrt(self.squares / (self.n - 1) as f64 / self.n as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_tables() {
        // Wilson, 10 of 100: 5.5% to 17.4%.
        let e = Estimate::share(10, 100);
        assert!((e.low - 0.0552).abs() < 1e-4 && (e.high - 0.1744).abs() < 1e-4, "{e:?}");
        let none = Estimate::share(0, 100);
        assert!(none.low == 0.0 && (none.high - 0.0370).abs() < 1e-4, "{none:?}");
        // Poisson, 10 events: 4.80 to 18.39; none: 0 to 3.69.
        let e = Estimate::rate(10, 1.0);
        assert!((e.low - 4.795).abs() < 0.03 && (e.high - 18.39).abs() < 0.03, "{e:?}");
        assert!((Estimate::rate(0, 1.0).high - 3.69).abs() < 0.1, "{:?}", Estimate::rate(0, 1.0));
    }

    #[test]
    fn a_sample_has_its_mean_and_error() {
        let mut s = Sample::default();
        [1.0, 2.0, 3.0, 4.0].iter().for_each(|v| s.add(*v));
        assert_eq!(s.mean(), 2.5);
        assert!((s.error() - (5.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12);
    }
}
