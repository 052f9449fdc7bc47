//! Statistics of the core: accuracy of predictions, and cost of decisions.

use std::fmt;

use headtime_disk::Dur;

use crate::admit::das::streams::SubsetSizes;
use crate::request::{Prediction, Surprise};

/// Width of a bin of the error histogram.
pub(crate) const BIN: Dur = Dur::from_us(50);
/// Bins on each side of zero: errors up to 20 ms in either direction have their own bin.
pub(crate) const BINS_A_SIDE: usize = 400;

/// Predictions compared with observations.
#[derive(Clone, PartialEq, Eq)]
pub struct PredictionStats {
    /// Predictions compared.
    pub samples: u64,
    /// Off by 50 us at most.
    pub within_50us: u64,
    /// Off by 150 us at most.
    pub within_150us: u64,
    /// One or more whole revolutions late.
    pub extra_turn: u64,
    /// One whole revolution early.
    pub early_turn: u64,
    /// Answered from the drive's cache.
    pub cache_hit: u64,
    /// Errors that the overlap of bus and media explains.
    pub overlap: u64,
    /// Other errors.
    pub other: u64,
    errors: Vec<u64>,
}

impl Default for PredictionStats {
    fn default() -> PredictionStats {
        PredictionStats {
            samples: 0,
            within_50us: 0,
            within_150us: 0,
            extra_turn: 0,
            early_turn: 0,
            cache_hit: 0,
            overlap: 0,
            other: 0,
            errors: vec![0; 2 * BINS_A_SIDE + 2],
        }
    }
}

impl fmt::Debug for PredictionStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PredictionStats")
            .field("samples", &self.samples)
            .field("within_50us", &self.within_50us)
            .field("within_150us", &self.within_150us)
            .field("extra_turn", &self.extra_turn)
            .field("early_turn", &self.early_turn)
            .field("cache_hit", &self.cache_hit)
            .field("overlap", &self.overlap)
            .field("other", &self.other)
            .finish_non_exhaustive()
    }
}

impl PredictionStats {
    /// Counts one prediction.
    #[inline]
    pub fn add(&mut self, p: &Prediction) {
        let error = p.error_ns();
        self.samples += 1;
        self.within_50us += u64::from(error.unsigned_abs() <= 50_000);
        self.within_150us += u64::from(error.unsigned_abs() <= 150_000);
        match p.surprise {
            Surprise::None => {}
            Surprise::CacheHit => self.cache_hit += 1,
            Surprise::ExtraTurn => self.extra_turn += 1,
            Surprise::EarlyTurn => self.early_turn += 1,
            Surprise::Overlap => self.overlap += 1,
            Surprise::Other => self.other += 1,
        }
        let bin = error.div_euclid(BIN.0 as i64) + BINS_A_SIDE as i64 + 1;
        let last = self.errors.len() - 1;
        self.errors[bin.clamp(0, last as i64) as usize] += 1;
    }

    /// Returns the histogram of errors (observed less predicted): for each bin that is not empty,
    /// its lower edge in ns and its number of errors. Errors beyond the bins are in the outermost
    /// ones.
    pub fn histogram(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        let lowest = -(BINS_A_SIDE as i64) - 1;
        self.errors
            .iter()
            .enumerate()
            .filter(|&(_, &n)| n > 0)
            .map(move |(i, &n)| ((lowest + i as i64) * BIN.0 as i64, n))
    }
}

/// Cost of decisions, in work done; the driver measures their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecisionCost {
    /// Requests chosen.
    pub decisions: u64,
    /// Requests examined for these.
    pub looked_at: u64,
    /// Searches for freeblock work.
    pub fill_searches: u64,
}

/// Sizes of the active subset, over all decisions (Reuther and Pohlack 2003, figure 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubsetStats {
    /// Times that it was computed.
    pub made: u64,
    /// Of these, the ones with requests of streams and without best effort.
    pub streams_only: u64,
    /// Of these, the ones without any eligible request.
    pub empty: u64,
    /// Sums of the requests of mandatory streams, of optional ones and of best effort.
    pub requests: (u64, u64, u64),
}

impl SubsetStats {
    /// Counts one subset.
    pub fn count(&mut self, sizes: SubsetSizes) {
        let SubsetSizes { mandatory, optional, best_effort } = sizes;
        self.made += 1;
        self.streams_only += u64::from(best_effort == 0 && mandatory + optional > 0);
        self.empty += u64::from(best_effort + mandatory + optional == 0);
        let (m, o, b) = &mut self.requests;
        (*m, *o, *b) = (*m + u64::from(mandatory), *o + u64::from(optional), *b + u64::from(best_effort));
    }
}

/// All statistics of the core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Predictions of foreground requests.
    pub prediction: PredictionStats,
    /// Predictions of commands of freeblock work alone.
    pub free_prediction: PredictionStats,
    /// Decisions.
    pub cost: DecisionCost,
    /// Active subsets.
    pub subset: SubsetStats,
    /// Whether the drive's write cache is on, where its completions contradict its profile; `None`:
    /// they do not.
    pub write_cache: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prediction(predicted: u64, observed: u64, surprise: Surprise) -> Prediction {
        Prediction {
            predicted: Dur(predicted),
            observed: Dur(observed),
            seek: Dur(predicted),
            latency: Dur::ZERO,
            transfer: Dur::ZERO,
            cached: false,
            surprise,
        }
    }

    #[test]
    fn errors_fall_into_bins_of_50_us_from_early_to_late() {
        let mut s = PredictionStats::default();
        s.add(&prediction(1_000_000, 1_000_000, Surprise::None));
        s.add(&prediction(1_000_000, 1_049_999, Surprise::None));
        s.add(&prediction(1_000_000, 999_999, Surprise::None));
        s.add(&prediction(1_000_000, 1_120_000, Surprise::None));
        s.add(&prediction(90_000_000, 0, Surprise::CacheHit));
        let bins: Vec<_> = s.histogram().collect();
        assert_eq!(bins, [(-20_050_000, 1), (-50_000, 1), (0, 2), (100_000, 1)]);
        assert_eq!((s.samples, s.within_50us, s.within_150us), (5, 3, 4));
        assert_eq!((s.cache_hit, s.other), (1, 0));
    }
}
