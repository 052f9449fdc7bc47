//! Service-time distributions: X of Reuther and Pohlack 2003, section 3.1.2, and sums of such
//! times.
//!
//! A distribution is a histogram: mass at whole multiples of one bin. Rounding ensures that no
//! result is better than the samples:
//!
//! * a sample counts at the *upper* end of its bin: times are rounded up, by less than one bin
//!   each;
//! * mass is a whole number of 2^-62, rounded *down* in every division and product; the lost mass
//!   counts as infinite time;
//! * so P(X <= t) is never above that of the samples, and means and quantiles are never below.
//!
//! Sums of independent times are exact in time (multiples of a bin add up to multiples of a bin)
//! and lose at most 2^-62 of mass in each bin. All arithmetic is in integers: the same on every
//! machine.
//!
//! Sampling error is not rounded for: a distribution is only as good as the measured load.

use headtime_disk::Dur;

/// Mass of a certain event: probabilities are in 2^-62.
pub(crate) const CERTAIN: u64 = 1 << 62;

/// Sums of times drop probabilities below this at either end, 2^-40; they count as infinite time.
const NEGLIGIBLE: u64 = 1 << 22;

/// Maximum number of bins of a distribution; 2^20 of 10 us are ten seconds.
pub(crate) const MAX_BINS: u64 = 1 << 20;

/// Why samples do not form a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DistributionError {
    /// There are no samples.
    #[error("service times: expected one sample or more, found none")]
    NoSamples,
    /// A sample exceeds the worst case.
    #[error("service time {index}: expected at most the worst case of {worst}, found {found}")]
    BeyondWorst {
        /// Index of the sample, from 0.
        index: usize,
        /// Its time.
        found: Dur,
        /// The worst case.
        worst: Dur,
    },
    /// Invalid bin width.
    #[error("bin of {bin}: expected more than nothing, and at most {MAX_BINS} bins up to {worst}")]
    Bin {
        /// The bin.
        bin: Dur,
        /// The worst case.
        worst: Dur,
    },
}

/// A distribution of times, in bins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    bin: Dur,
    /// The first bin with mass: `mass[i]` is that at `(first + i) * bin`.
    first: usize,
    mass: Vec<u64>,
}

impl Distribution {
    /// Default bin width.
    pub const BIN: Dur = Dur::from_us(10);

    /// Creates the distribution of samples, none of which exceeds `worst`. A time of zero counts as
    /// one bin: every request takes some time.
    ///
    /// # Errors
    /// No samples, one beyond the worst case, invalid bins.
    pub fn from_samples(samples: &[Dur], bin: Dur, worst: Dur) -> Result<Distribution, DistributionError> {
        if bin == Dur::ZERO || worst.0.div_ceil(bin.0) > MAX_BINS {
            return Err(DistributionError::Bin { bin, worst });
        }
        if samples.is_empty() {
            return Err(DistributionError::NoSamples);
        }
        let mut counts = vec![0u64; worst.0.div_ceil(bin.0).max(1) as usize + 1];
        for (index, &found) in samples.iter().enumerate() {
            if found > worst {
                return Err(DistributionError::BeyondWorst { index, found, worst });
            }
            counts[found.0.div_ceil(bin.0).max(1) as usize] += 1;
        }
        let of = samples.len() as u128;
        let mass = counts.into_iter().map(|n| (u128::from(n) * u128::from(CERTAIN) / of) as u64).collect();
        Ok(Distribution { bin, first: 0, mass }.trimmed())
    }

    /// Creates the distribution of a histogram, none of whose times exceeds `worst`: bin n holds
    /// the number of times longer than n - 1 bins and at most n. It equals that of the counted
    /// samples.
    ///
    /// # Errors
    /// Nothing counted, a time beyond the worst case, invalid bins.
    pub fn from_counts(
        counts: impl Iterator<Item = (u32, u32)> + Clone,
        bin: Dur,
        worst: Dur,
    ) -> Result<Distribution, DistributionError> {
        if bin == Dur::ZERO || worst.0.div_ceil(bin.0) > MAX_BINS {
            return Err(DistributionError::Bin { bin, worst });
        }
        let of: u128 = counts.clone().map(|c| u128::from(c.1)).sum();
        if of == 0 {
            return Err(DistributionError::NoSamples);
        }
        let last = worst.0.div_ceil(bin.0).max(1);
        let mut mass = vec![0u64; last as usize + 1];
        let mut before = 0;
        for (n, count) in counts.filter(|c| c.1 > 0) {
            if u64::from(n) > last {
                return Err(DistributionError::BeyondWorst { index: before, found: Dur(bin.0 * u64::from(n)), worst });
            }
            mass[n.max(1) as usize] += (u128::from(count) * u128::from(CERTAIN) / of) as u64;
            before += count as usize;
        }
        Ok(Distribution { bin, first: 0, mass }.trimmed())
    }

    /// Creates a constant time of `bins` bins.
    pub fn certain(bin: Dur, bins: usize) -> Distribution {
        Distribution { bin, first: bins, mass: vec![CERTAIN] }
    }

    /// Creates a distribution from mass in bins, the first of them at time zero. Panics if the
    /// total exceeds [`CERTAIN`].
    pub(super) fn from_mass(bin: Dur, mass: Vec<u64>) -> Distribution {
        let sum: u128 = mass.iter().map(|&m| u128::from(m)).sum();
        assert!(sum <= u128::from(CERTAIN), "a distribution of more than everything");
        Distribution { bin, first: 0, mass }.trimmed()
    }

    /// Removes empty bins at either end.
    fn trimmed(mut self) -> Distribution {
        let end = self.mass.iter().rposition(|&m| m > 0).map_or(0, |last| last + 1);
        self.mass.truncate(end);
        let empty = self.mass.iter().position(|&m| m > 0).unwrap_or(0);
        self.mass.drain(..empty);
        self.first += empty;
        self
    }

    /// Returns the bin width.
    pub fn bin(&self) -> Dur {
        self.bin
    }

    /// Returns the first bin with mass, and the mass of it and the following ones.
    pub(super) fn bins(&self) -> (usize, &[u64]) {
        (self.first, &self.mass)
    }

    /// Returns the mass of each bin that may have some: bin number and mass, ascending.
    pub fn masses(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.mass.iter().enumerate().map(|(i, &m)| (self.first + i, m))
    }

    /// Returns one past the last bin with mass.
    pub fn end(&self) -> usize {
        self.first + self.mass.len()
    }

    /// Returns P(X <= t) in 2^-62, rounded down.
    pub fn at_most(&self, t: Dur) -> u64 {
        let bins = (t.0 / self.bin.0) as usize;
        let upto = (bins + 1).saturating_sub(self.first).min(self.mass.len());
        self.mass[..upto].iter().sum()
    }

    /// Returns P(X <= t) for all t: the mass up to bin `i` at index `i`, for `bins` bins, in 2^-62
    /// and rounded down.
    pub(super) fn cumulated(&self, bins: usize) -> Vec<u64> {
        let mut all = vec![0; bins];
        let mut sum = 0;
        for (bin, at) in all.iter_mut().enumerate() {
            sum += bin.checked_sub(self.first).and_then(|i| self.mass.get(i)).copied().unwrap_or(0);
            *at = sum;
        }
        all
    }

    /// Returns the mean, rounded up; mass lost to rounding counts as the longest time.
    pub fn mean(&self) -> Dur {
        let known: u128 = self.masses().map(|(bin, m)| bin as u128 * u128::from(m)).sum();
        let sum: u64 = self.mass.iter().sum();
        let lost = u128::from(CERTAIN - sum) * self.end().saturating_sub(1) as u128;
        Dur(((known + lost) * u128::from(self.bin.0)).div_ceil(u128::from(CERTAIN)) as u64)
    }

    /// Returns the least time t with P(X <= t) of at least `ppm` parts per million; the longest
    /// time if rounding has lost too much mass for that.
    pub fn quantile(&self, ppm: u32) -> Dur {
        let wanted = (u128::from(CERTAIN) * u128::from(ppm)).div_ceil(1_000_000);
        let mut sum = 0;
        let reached = self.masses().find(|&(_, m)| {
            sum += u128::from(m);
            sum >= wanted
        });
        let bin = reached.map_or(self.end().saturating_sub(1), |(bin, _)| bin);
        Dur(self.bin.0 * bin as u64)
    }

    /// Returns the sum of this and another, independent time of the same bin, up to bin `limit`;
    /// longer sums are dropped and count as infinite time, as do negligible masses at both ends.
    pub fn plus(&self, other: &Distribution, limit: usize) -> Distribution {
        assert!(self.bin == other.bin, "times in bins of {} and of {}", self.bin, other.bin);
        let (sparse, dense) =
            if self.bins_with_mass() < other.bins_with_mass() { (self, other) } else { (other, self) };
        let first = self.first + other.first;
        let bins = (self.mass.len() + other.mass.len()).saturating_sub(1).min((limit + 1).saturating_sub(first));
        // Sums of products of masses are at most CERTAIN squared, 2^124.
        let mut sums = vec![0u128; bins];
        for (i, &a) in sparse.mass.iter().enumerate().take(bins) {
            if a > 0 {
                for (sum, &b) in sums[i..].iter_mut().zip(&dense.mass) {
                    *sum += u128::from(a) * u128::from(b);
                }
            }
        }
        let mass = sums.into_iter().map(|s| (s >> 62) as u64).collect();
        Distribution { bin: self.bin, first, mass }.without_ends()
    }

    fn bins_with_mass(&self) -> usize {
        self.mass.iter().filter(|m| **m > 0).count()
    }

    /// Drops mass at both ends that sums to less than [`NEGLIGIBLE`] at each; it counts as infinite
    /// time.
    fn without_ends(mut self) -> Distribution {
        let cut = |masses: &mut dyn Iterator<Item = u64>| {
            let mut sum = 0u64;
            masses
                .take_while(|m| {
                    sum = sum.saturating_add(*m);
                    sum < NEGLIGIBLE
                })
                .count()
        };
        let above = cut(&mut self.mass.iter().rev().copied());
        self.mass.truncate(self.mass.len() - above);
        let below = cut(&mut self.mass.iter().copied());
        self.mass.drain(..below);
        self.first += below;
        self.trimmed()
    }

    /// Returns the sum of `n` independent times like this one, up to bin `limit`.
    pub fn times(&self, n: u64, limit: usize) -> Distribution {
        let (mut sum, mut power, mut left) = (Distribution::certain(self.bin, 0), self.clone(), n);
        while left > 0 {
            if left & 1 == 1 {
                sum = sum.plus(&power, limit);
            }
            left >>= 1;
            if left > 0 {
                power = power.plus(&power, limit);
            }
        }
        sum
    }

    /// Returns times longer by `more`, rounded up to a bin.
    pub(super) fn later(&self, more: Dur) -> Distribution {
        let first = self.first + more.0.div_ceil(self.bin.0) as usize;
        Distribution { first, ..self.clone() }
    }

    /// Limits times to `most`, rounded up to a bin.
    pub(super) fn capped(mut self, most: Dur) -> Distribution {
        let last = most.0.div_ceil(self.bin.0) as usize;
        while self.end() > last + 1 && self.mass.len() > 1 {
            let beyond = self.mass.pop().unwrap_or(0);
            if let Some(mass) = self.mass.last_mut() {
                *mass += beyond;
            }
        }
        self.first = self.first.min(last);
        self
    }

    /// Returns the time in excess of `bins` bins, zero if less.
    pub(super) fn beyond(&self, bins: usize) -> Distribution {
        let mut mass = vec![0u64; self.end().saturating_sub(bins).max(1)];
        self.masses().for_each(|(bin, m)| mass[bin.saturating_sub(bins)] += m);
        Distribution { bin: self.bin, first: 0, mass }.trimmed()
    }

    /// Returns the residual time at an independent instant during a sequence of such times: P(r) is
    /// proportional to the probability that a time is r or longer.
    pub(super) fn residual(&self) -> Distribution {
        let mut tail: u64 = self.mass.iter().sum();
        let mut tails = vec![0u64];
        for bin in 1..self.end() {
            tails.push(tail);
            tail -= bin.checked_sub(self.first).and_then(|i| self.mass.get(i)).copied().unwrap_or(0);
        }
        let all: u128 = tails.iter().map(|&t| u128::from(t)).sum();
        let mass = tails.into_iter().map(|t| (u128::from(t) * u128::from(CERTAIN) / all.max(1)) as u64).collect();
        Distribution { bin: self.bin, first: 0, mass }.trimmed()
    }

    /// Returns the distribution if `by_turns[k]` parts per million of commands take k + 1
    /// revolutions longer, and `never` never complete.
    pub(super) fn delayed(&self, turn: Dur, by_turns: &[u64], never: u64) -> Distribution {
        const ALL: u64 = 1_000_000;
        let turn = turn.0.div_ceil(self.bin.0) as usize;
        let as_before = ALL.saturating_sub(by_turns.iter().sum::<u64>() + never);
        let mut mass = vec![0u64; self.end() + by_turns.len() * turn];
        let parts = std::iter::once(&as_before).chain(by_turns).enumerate();
        for (turns, &part) in parts.filter(|p| *p.1 > 0) {
            for (bin, m) in self.masses() {
                mass[bin + turns * turn] += (u128::from(m) * u128::from(part) / u128::from(ALL)) as u64;
            }
        }
        Distribution { bin: self.bin, first: 0, mass }.trimmed()
    }

    /// Returns the distribution limited to `bins` bins.
    pub(super) fn at_most_bins(&self, bins: usize) -> Distribution {
        let mut mass = vec![0u64; self.end().min(bins + 1).max(1)];
        self.masses().for_each(|(bin, m)| mass[bin.min(bins)] += m);
        Distribution { bin: self.bin, first: 0, mass }.trimmed()
    }

    /// Returns the same time in bins of `bin`, a multiple or a fraction of this one's, up to bin
    /// `limit`: rounded up if they are wider.
    pub(super) fn in_bins(&self, bin: Dur, limit: usize) -> Distribution {
        if bin >= self.bin {
            assert!(bin.0.is_multiple_of(self.bin.0), "bins of {} in bins of {bin}", self.bin);
            return self.coarser((bin.0 / self.bin.0) as usize);
        }
        assert!(self.bin.0.is_multiple_of(bin.0), "bins of {} in bins of {bin}", self.bin);
        let parts = (self.bin.0 / bin.0) as usize;
        let within = || self.masses().map(|(at, m)| (at * parts, m)).take_while(|m| m.0 <= limit);
        let mut mass = vec![0u64; within().last().map_or(1, |m| m.0 + 1)];
        within().for_each(|(at, m)| mass[at] += m);
        Distribution { bin, first: 0, mass }.trimmed()
    }

    /// Returns the same in bins `factor` times as wide: times are rounded up again.
    pub(super) fn coarser(&self, factor: usize) -> Distribution {
        let mut mass = vec![0u64; self.end().div_ceil(factor) + 1];
        self.masses().for_each(|(bin, m)| mass[bin.div_ceil(factor)] += m);
        Distribution { bin: Dur(self.bin.0 * factor as u64), first: 0, mass }.trimmed()
    }

    /// Returns the longer of this and another at each probability. Panics if their bins differ.
    pub(super) fn longer_of(&self, other: &Distribution) -> Distribution {
        assert!(self.bin == other.bin, "bins of {} and of {}", self.bin, other.bin);
        let bins = self.end().max(other.end());
        let (a, b) = (self.cumulated(bins), other.cumulated(bins));
        let least: Vec<u64> = a.into_iter().zip(b).map(|(a, b)| a.min(b)).collect();
        let before = std::iter::once(0).chain(least.iter().copied());
        let mass = least.iter().zip(before).map(|(upto, before)| upto - before).collect();
        Distribution { bin: self.bin, first: 0, mass }.trimmed()
    }
}

#[cfg(test)]
mod tests;
