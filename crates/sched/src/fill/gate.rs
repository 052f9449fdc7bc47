//! The gate: disables filling while predictions fail persistently, and enables it when they succeed
//! again.
//!
//! A scheduler outside the drive fills gaps by predicting to the tenth of a millisecond when the
//! head passes a sector. If the drive acts on its own (a write-back cache that moves the arm,
//! internal activity, firmware that reorders), "cache hits and prefetch activities will often
//! surprise it" (Lumb 2002 section 3.1), and work that was meant to be free costs the foreground
//! revolutions. Predictions continue while the gate is shut, to detect when they succeed again.

use super::history::History;
use crate::request::Surprise;

/// Surprises among the last 64 predictions that shut it: one in three. The worst workload
/// for which filling is known to pay, files of a file system on a drive with a cache, surprises in
/// one of six (Lumb 2002 section 5.2: of 24% not predicted within 150 us, 5% are overlap of bus and
/// media, which is harmless); three deviations of a count with that mean are below this. Write-back
/// surprises in about every second.
pub(crate) const SHUT_AT: u32 = 21;
/// The gate opens with at most this number of surprises among the last 64: one in five,
/// which that workload reaches.
pub(crate) const OPEN_AT: u32 = 12;
/// To open it, the last 256 predictions must not have more than one in five either.
const LONG_OPEN_AT: u32 = 51;
/// Minimum number of predictions while shut. Doubled each time it is shut again soon: then filling
/// itself causes the surprises.
const MIN_SHUT: u32 = 64;
/// Upper bound of that number: a minute or so of a busy disk.
const MAX_SHUT: u32 = 8_192;
/// Soon: within this number of predictions.
const SOON_PREDICTIONS: u32 = 1_024;

/// Switch that permits or forbids filling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Whether each of the last predictions was a surprise.
    history: History,
    shut: bool,
    /// Predictions since it was shut or opened.
    since: u32,
    least_shut: u32,
    overdue: bool,
    /// How often it was shut.
    times_shut: u64,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate {
            history: History::default(),
            shut: false,
            since: SOON_PREDICTIONS,
            least_shut: MIN_SHUT,
            overdue: false,
            times_shut: 0,
        }
    }
}

impl Gate {
    /// Returns whether gaps may be filled now.
    #[inline]
    pub fn is_open(&self) -> bool {
        !self.shut && !self.overdue
    }

    /// Returns how often it was shut for surprises.
    pub fn times_shut(&self) -> u64 {
        self.times_shut
    }

    /// Returns the surprises among the last 64 predictions.
    #[inline]
    pub fn surprises(&self) -> u32 {
        self.history.of_last_64()
    }

    /// Records the outcome of a read or a write: the kind of prediction error, `None` when there
    /// could be no prediction. A revolution that is `explained` (the prediction knew that the
    /// sector was barely reached or barely missed) is no surprise, nor is the overlap of bus and
    /// media, which leaves the head where it was predicted.
    pub fn observe(&mut self, surprise: Option<Surprise>, explained: bool) {
        let surprised = match surprise {
            Some(Surprise::None | Surprise::Overlap) => false,
            Some(Surprise::ExtraTurn | Surprise::EarlyTurn) => !explained,
            Some(Surprise::CacheHit | Surprise::Other) | None => true,
        };
        self.history.push(surprised);
        self.since = self.since.saturating_add(1);
        if !self.shut && self.surprises() >= SHUT_AT {
            self.least_shut = match self.since < SOON_PREDICTIONS {
                true => (self.least_shut * 2).min(MAX_SHUT),
                false => MIN_SHUT,
            };
            (self.shut, self.since) = (true, 0);
            self.times_shut += 1;
        } else if self.shut && self.since >= self.least_shut && self.is_calm() {
            (self.shut, self.since) = (false, 0);
        }
    }

    fn is_calm(&self) -> bool {
        self.surprises() <= OPEN_AT && self.history.of_last_256() <= LONG_OPEN_AT
    }

    /// Records whether a command at the drive is overdue: later than predicted by more than the
    /// usual extra revolutions. Until it completes, the drive's state is unknown.
    #[inline]
    pub fn set_overdue(&mut self, overdue: bool) {
        self.overdue = overdue;
    }

    /// Returns whether a command at the drive is overdue.
    pub fn is_overdue(&self) -> bool {
        self.overdue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tell(gate: &mut Gate, n: u32, surprised: impl Fn(u32) -> bool) {
        for i in 0..n {
            gate.observe(Some(if surprised(i) { Surprise::Other } else { Surprise::None }), false);
        }
    }

    #[test]
    fn a_drive_that_surprises_in_one_of_six_is_filled() {
        let mut g = Gate::default();
        tell(&mut g, 10_000, |i| i % 6 == 0);
        assert_eq!((g.is_open(), g.times_shut()), (true, 0));
    }

    #[test]
    fn a_drive_that_surprises_in_every_second_is_not() {
        let mut g = Gate::default();
        tell(&mut g, 64, |i| i % 2 == 0);
        assert!(!g.is_open());
        tell(&mut g, 10_000, |i| i % 2 == 0);
        assert_eq!((g.is_open(), g.times_shut()), (false, 1));
        // One in four would not have shut it, and does not open it either.
        tell(&mut g, 10_000, |i| i % 4 == 0);
        assert!(!g.is_open());
        tell(&mut g, 300, |_| false);
        assert!(g.is_open());
    }

    #[test]
    fn a_single_burst_shuts_it_for_no_more_than_a_hundred_predictions() {
        let mut g = Gate::default();
        tell(&mut g, 500, |_| false);
        // A recalibration spoils two or three.
        tell(&mut g, 3, |_| true);
        assert!(g.is_open());
        tell(&mut g, 30, |_| true);
        assert!(!g.is_open());
        tell(&mut g, 100, |_| false);
        assert!(g.is_open());
    }

    #[test]
    fn a_drive_that_is_calm_only_while_nothing_is_filled_is_left_alone_for_longer_each_time() {
        let mut g = Gate::default();
        let (mut open, mut shut_for, mut lasted) = (true, 0u32, vec![]);
        for _ in 0..40_000 {
            tell(&mut g, 1, |_| open);
            shut_for = if open { 0 } else { shut_for + 1 };
            if !open && g.is_open() {
                lasted.push(shut_for);
            }
            open = g.is_open();
        }
        assert!(lasted.windows(2).all(|w| w[0] <= w[1]), "{lasted:?}");
        assert!(lasted[0] <= 128 && lasted.contains(&MAX_SHUT), "{lasted:?}");
    }

    #[test]
    fn what_could_not_be_predicted_counts_and_what_was_risked_does_not() {
        let mut g = Gate::default();
        (0..200).for_each(|_| g.observe(Some(Surprise::ExtraTurn), true));
        (0..200).for_each(|_| g.observe(Some(Surprise::Overlap), false));
        assert!(g.is_open());
        (0..SHUT_AT).for_each(|_| g.observe(None, false));
        assert!(!g.is_open());
    }

    #[test]
    fn an_overdue_command_shuts_it_until_it_is_answered() {
        let mut g = Gate::default();
        g.set_overdue(true);
        assert!(!g.is_open());
        g.set_overdue(false);
        assert_eq!((g.is_open(), g.times_shut()), (true, 0));
    }
}
