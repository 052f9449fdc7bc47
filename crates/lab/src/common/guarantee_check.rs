//! Whether streams kept their guarantees.

use headtime_sim::stats::Stats;
use headtime_sim::stats::streams::StreamAccount;

use crate::experiment::{Check, Test};

/// Percentage points below the requested quality that still count as kept.
const MARGIN: f64 = 0.5;
/// A larger deviation, in percentage points, means no guarantee at all.
const MAX_DEVIATION_POINTS: f64 = 5.0;
/// Standard deviations exceeded by chance in one case of a hundred.
const CHANCE: f64 = 2.326;
/// Standard deviations in half the width of a 95% interval.
const DEVIATIONS: f64 = 1.96;

/// Checks of [`GuaranteeCheck::figures`].
pub(crate) const CHECKS: [Check; 2] = [
    Check {
        what: "optional streams more than 0.5 points below what they asked for, beyond chance at 99%",
        unit: "% of them",
        test: Test::AtMost(1.0),
    },
    Check {
        what: "requests not in time of streams that are served as mandatory ones",
        unit: "requests",
        test: Test::Never,
    },
];

/// Results of the streams of several runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuaranteeCheck {
    /// Optional streams served with reservations.
    pub reserved: u64,
    /// Optional streams served as mandatory ones, which complete all of their requests.
    pub as_mandatory: u64,
    /// Of the former, those more than half a point below their quality, beyond chance at 99%.
    pub below: u64,
    /// Of the former, those more than five points below.
    pub far: u64,
    /// Requests not completed in their period, of streams that are mandatory or served as such.
    pub missed: u64,
    /// The least achieved minus requested quality, in percentage points.
    pub least: f64,
}

impl GuaranteeCheck {
    /// The counts of no run.
    pub(crate) fn none() -> GuaranteeCheck {
        GuaranteeCheck { reserved: 0, as_mandatory: 0, below: 0, far: 0, missed: 0, least: f64::INFINITY }
    }

    /// Counts one run with guarantees; returns how many streams are below, and the least margin.
    pub(crate) fn count(&mut self, stats: &Stats) -> (u64, f64) {
        let (before, mut least) = (self.below, f64::INFINITY);
        for s in &stats.streams {
            if s.reservation.is_none() {
                self.missed += s.missed();
                self.as_mandatory += u64::from(!s.stream.is_mandatory());
                continue;
            }
            let Some(margin) = margin(s) else { continue };
            let beyond = margin + CHANCE * 100.0 * s.quality_plus_minus().unwrap_or(1.0) / DEVIATIONS;
            self.reserved += 1;
            self.below += u64::from(beyond < -MARGIN);
            self.far += u64::from(beyond < -MAX_DEVIATION_POINTS);
            least = least.min(margin);
        }
        self.least = self.least.min(least);
        (self.below - before, least)
    }

    /// Share of streams below, in percent.
    pub(crate) fn percent(&self) -> f64 {
        100.0 * self.below as f64 / self.reserved.max(1) as f64
    }

    /// The figures of [`CHECKS`].
    pub(crate) fn figures(&self) -> [f64; 2] {
        [self.percent(), self.missed as f64]
    }

    /// Describes the counts.
    pub(crate) fn words(&self) -> String {
        format!(
            "{} of {} optional streams below, the least margin {:.2} points; {} more served as mandatory ones; {} \
             requests of such and of mandatory streams not in time",
            self.below, self.reserved, self.least, self.as_mandatory, self.missed
        )
    }
}

/// Achieved minus requested quality, in percentage points; `None`: no period is over.
pub(crate) fn margin(s: &StreamAccount) -> Option<f64> {
    s.quality().map(|q| 100.0 * q - f64::from(s.stream.quality.ppm()) / 1e4)
}
