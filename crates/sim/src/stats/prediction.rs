//! How well the scheduler foresaw what the drive did (seed 001, figure 7).

use headtime_sched::request::{Prediction, Surprise};

/// Predictions counted against observations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictionStats {
    /// Requests that had a prediction.
    pub samples: u64,
    /// Observed within 50 us of it.
    pub within_50us: u64,
    /// Observed within 150 us of it.
    pub within_150us: u64,
    /// About one or more turns late.
    pub extra_turn: u64,
    /// About one turn early.
    pub early_turn: u64,
    /// Came from the drive's cache.
    pub cache_hit: u64,
    /// Off by what bus and media overlap explains.
    pub overlap: u64,
    /// Anything else.
    pub other: u64,
    /// Sum of the errors (observed less predicted), ns.
    pub error_sum_ns: i128,
}

impl PredictionStats {
    /// Counts one.
    #[inline]
    pub fn record(&mut self, p: &Prediction) {
        self.samples += 1;
        let off = p.observed.0.abs_diff(p.predicted.0);
        self.within_50us += u64::from(off <= 50_000);
        self.within_150us += u64::from(off <= 150_000);
        self.error_sum_ns += i128::from(p.observed.0) - i128::from(p.predicted.0);
        match p.surprise {
            Surprise::None => {}
            Surprise::CacheHit => self.cache_hit += 1,
            Surprise::ExtraTurn => self.extra_turn += 1,
            Surprise::EarlyTurn => self.early_turn += 1,
            Surprise::Overlap => self.overlap += 1,
            Surprise::Other => self.other += 1,
        }
    }

    /// A count as a share of all predictions; `None` when there was none.
    pub fn share(&self, count: u64) -> Option<f64> {
        (self.samples > 0).then(|| count as f64 / self.samples as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::time::Dur;

    #[test]
    fn errors_are_counted_by_size_and_by_kind() {
        let mut s = PredictionStats::default();
        let mut see = |predicted, observed, surprise| {
            s.record(&Prediction {
                predicted: Dur::from_us(predicted),
                observed: Dur::from_us(observed),
                seek: Dur::ZERO,
                latency: Dur::ZERO,
                transfer: Dur::ZERO,
                surprise,
            });
        };
        see(5000, 5050, Surprise::None);
        see(5000, 4949, Surprise::None);
        see(5000, 5150, Surprise::None);
        see(5000, 11_000, Surprise::ExtraTurn);
        see(9000, 3000, Surprise::EarlyTurn);
        assert_eq!((s.samples, s.within_50us, s.within_150us), (5, 1, 3));
        assert_eq!((s.extra_turn, s.early_turn), (1, 1));
        assert_eq!(s.share(s.within_150us), Some(0.6));
        assert_eq!(s.error_sum_ns, 149_000);
        assert_eq!(PredictionStats::default().share(0), None);
    }
}
