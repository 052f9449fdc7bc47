//! Latency histogram of constant size: exact mean, minimum and maximum, quantiles to 0.2%.
//!
//! Buckets are linear up to 512 ns and then 512 per power of two (the layout of HdrHistogram, G.
//! Tene), so recording is a shift and an addition, and every 64-bit value is in range.
//!
//! The crate `hdrhistogram`, which `serve` uses for its gauges, would change the results. It has
//! 128 buckets per power of two with two significant digits and 1,024 with three, and a quantile is
//! the upper end of a bucket; here it is interpolated within one. Of 9,999 exponential times with a
//! mean of 8 ms, the median is 5.4606 ms: this gives 5.4600, `hdrhistogram` 5.4641 with three
//! digits (in twice the memory) and 5.4723 with two. Results give milliseconds with six decimals.

use headtime_disk::Dur;

const SUB_BITS: u32 = 9;
const SUB: usize = 1 << SUB_BITS;
const BUCKETS: usize = SUB * (64 - SUB_BITS as usize + 1);

/// A distribution of durations.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u64]>,
    samples: u64,
    sum_ns: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS].into_boxed_slice(), samples: 0, sum_ns: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    /// Adds a value.
    #[inline]
    pub fn record(&mut self, d: Dur) {
        let v = d.0;
        self.counts[index(v)] += 1;
        self.samples += 1;
        self.sum_ns += u128::from(v);
        self.min = self.min.min(v);
        self.max = self.max.max(v);
    }

    /// Returns the number of samples.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the exact mean, to the nearest nanosecond; `None` without samples.
    pub fn mean(&self) -> Option<Dur> {
        let n = u128::from(self.samples);
        (n > 0).then(|| Dur(((self.sum_ns + n / 2) / n) as u64))
    }

    /// Returns the maximum; `None` without samples.
    pub fn max(&self) -> Option<Dur> {
        (self.samples > 0).then_some(Dur(self.max))
    }

    /// Returns the minimum; `None` without samples.
    pub fn min(&self) -> Option<Dur> {
        (self.samples > 0).then_some(Dur(self.min))
    }

    /// Returns the value that `permille`/1000 of the samples do not exceed (nearest rank), to 0.2%;
    /// `None` without samples. Panics above 1000.
    pub fn quantile(&self, permille: u32) -> Option<Dur> {
        assert!(permille <= 1000, "a quantile of {permille}/1000");
        if self.samples == 0 {
            return None;
        }
        let rank = (u128::from(self.samples) * u128::from(permille)).div_ceil(1000).max(1) as u64;
        let mut below = 0;
        for (i, &c) in self.counts.iter().enumerate() {
            if below + c >= rank {
                // Samples are assumed to be uniform within their bucket.
                let (low, width) = bounds(i);
                let within = u128::from(width) * (2 * u128::from(rank - below) - 1) / (2 * u128::from(c));
                return Some(Dur((low + within as u64).clamp(self.min, self.max)));
            }
            below += c;
        }
        Some(Dur(self.max))
    }

    /// Adds another histogram's samples.
    pub fn merge(&mut self, other: &Histogram) {
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
            *a += b;
        }
        self.samples += other.samples;
        self.sum_ns += other.sum_ns;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the cumulative distribution: the upper bound of each non-empty bucket, and the share
    /// of samples up to it.
    pub fn cdf(&self) -> Vec<(Dur, f64)> {
        let mut below = 0u64;
        let mut points = Vec::new();
        for (i, &c) in self.counts.iter().enumerate() {
            if c > 0 {
                below += c;
                let (low, width) = bounds(i);
                points.push((Dur((low + (width - 1)).min(self.max)), below as f64 / self.samples as f64));
            }
        }
        points
    }
}

#[inline]
fn index(v: u64) -> usize {
    if v < SUB as u64 {
        return v as usize;
    }
    let shift = 63 - v.leading_zeros() - SUB_BITS;
    ((shift as usize + 1) << SUB_BITS) + ((v >> shift) as usize & (SUB - 1))
}

/// Returns the lowest value and the width of a bucket.
fn bounds(i: usize) -> (u64, u64) {
    if i < SUB {
        return (i as u64, 1);
    }
    let shift = (i >> SUB_BITS) - 1;
    (((SUB + (i & (SUB - 1))) as u64) << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::variates::Variates;

    #[test]
    fn every_value_falls_into_the_bucket_that_holds_it() {
        let mut v = Variates::new(1, 2);
        for i in 0..10_000u32 {
            let x = v.bits() >> (i % 64);
            let (low, width) = bounds(index(x));
            assert!(low <= x && x - low < width, "{x}: {low} {width}");
            assert!(width <= (low / SUB as u64).max(1));
        }
        assert!(index(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles_agree_with_a_sorted_list() {
        let mut v = Variates::new(4, 2);
        let mut h = Histogram::default();
        let mut all: Vec<u64> = (0..9_999).map(|_| v.exponential(8_000_000)).collect();
        for &x in &all {
            h.record(Dur(x));
        }
        all.sort_unstable();
        for permille in [1, 500, 950, 990, 1000] {
            let exact = all[(all.len() * permille as usize).div_ceil(1000) - 1] as f64;
            let got = h.quantile(permille).unwrap().0 as f64;
            assert!((got - exact).abs() <= exact * 0.002 + 1.0, "{permille}: {got} {exact}");
        }
        assert_eq!(h.max(), Some(Dur(all[all.len() - 1])));
        assert_eq!(h.min(), Some(Dur(all[0])));
        let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
        assert!((h.mean().unwrap().0 as f64 - mean).abs() <= 0.5);
    }

    #[test]
    fn merging_is_the_same_as_counting_together() {
        let (mut a, mut b, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for x in 0..1000u64 {
            let d = Dur(x * x * 100);
            if x % 3 == 0 { &mut a } else { &mut b }.record(d);
            both.record(d);
        }
        a.merge(&b);
        assert_eq!(a.quantile(500), both.quantile(500));
        assert_eq!((a.mean(), a.max()), (both.mean(), both.max()));
        assert_eq!(a.cdf().last().unwrap().1, 1.0);
    }

    #[test]
    fn an_empty_histogram_has_no_figures() {
        let h = Histogram::default();
        assert_eq!((h.mean(), h.max(), h.quantile(500)), (None, None, None));
        assert!(h.cdf().is_empty());
    }
}
