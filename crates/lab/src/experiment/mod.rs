//! Definitions of experiments and of the rules by which claims hold.

pub mod registry;
pub mod report;
pub mod runner;

use headtime_disk::{Command, Time};
use headtime_plot::Chart;
use headtime_sim::observe::Observer;

/// A condition on one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Test {
    /// Between the two, inclusive.
    Between(f64, f64),
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// Less than this.
    Below(f64),
    /// The figure is the number of cases in which a statement was wrong, and must be zero.
    Never,
}

impl Test {
    /// Returns whether `v` passes. NaN never passes.
    pub(crate) fn passes(self, v: f64) -> bool {
        v.is_finite()
            && match self {
                Test::Between(low, high) => low <= v && v <= high,
                Test::AtLeast(low) => v >= low,
                Test::AtMost(high) => v <= high,
                Test::Below(high) => v < high,
                Test::Never => v == 0.0,
            }
    }
}

/// One figure of a claim, with its condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// Description of the figure.
    pub what: &'static str,
    /// Its unit, empty for a plain number.
    pub unit: &'static str,
    /// Condition.
    pub test: Test,
}

/// A paper's claim, and the rule by which it holds here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Short name: the experiment's id, and a letter if it has several claims.
    pub id: &'static str,
    /// What is claimed.
    pub claim: &'static str,
    /// The paper's figure, as text.
    pub paper: &'static str,
    /// The rule, as text.
    pub rule: &'static str,
    /// The rule as conditions; all must pass. The first one's figure is the claim's own.
    pub checks: &'static [Check],
    /// Whether a shortened run can show it. Otherwise `--quick` leaves it out.
    pub quick: bool,
    /// A known difference from the paper and its cause. May be empty.
    pub note: &'static str,
}

/// Description of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    /// Short name, letters then digits.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// The paper, and the section, figure or table that is reproduced.
    pub source: &'static str,
    /// The drive or drives, by profile name.
    pub drive: &'static str,
    /// Description of the workload.
    pub workload: &'static str,
    /// The claims to be shown.
    pub claims: &'static [Claim],
    /// Order of the processor time of a shortened run.
    pub length: Length,
    /// It measures processor time, so it runs alone.
    pub alone: bool,
}

/// The order of an experiment's processor time for one seed, in a shortened run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Seconds: the tests of this crate run it.
    Seconds,
    /// Minutes: it is run with `headtime reproduce`.
    Minutes,
}

/// Parameters of one run.
pub(crate) struct Run<'a> {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Whether the run is shortened.
    pub quick: bool,
    /// Receives the progress of the run.
    pub progress: &'a dyn Progress,
}

impl Run<'_> {
    /// `full`, or `quick` in a shortened run.
    pub(crate) fn length(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }

    /// An observer of a long simulation: it ends the experiment within a step if the runs are to
    /// end.
    pub(crate) fn stop_within(&self) -> StopWithin<'_> {
        StopWithin { progress: self.progress, commands: 0 }
    }
}

/// Asks now and then whether the runs are to end.
pub(crate) struct StopWithin<'a> {
    progress: &'a dyn Progress,
    commands: u32,
}

/// Commands between two questions: some 10 ms of simulation.
const ASK_AFTER: u32 = 1024;

impl Observer for StopWithin<'_> {
    fn issued(&mut self, _command: &Command, _now: Time) {
        self.commands += 1;
        if self.commands.is_multiple_of(ASK_AFTER) {
            // The runner ends the experiment where it reports progress.
            self.progress.advance(0);
        }
    }
}

/// A watcher of progress.
pub trait Progress: Sync {
    /// Reports further completed steps, of those that [`crate::runner::steps`] announces.
    fn advance(&self, steps: u64);
    /// Returns whether the runs are to end now. It is asked after every step, and within long ones.
    fn stops(&self) -> bool {
        false
    }
}

/// A watcher that does nothing.
pub struct Unwatched;

impl Progress for Unwatched {
    fn advance(&self, _steps: u64) {}
}

/// Rows for a CSV file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    /// Short name, part of the file's name.
    pub name: &'static str,
    /// Column names, units included.
    pub columns: &'static [&'static str],
    /// Rows, as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
}

/// One value of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// Text.
    Text(String),
    /// A number.
    Number(f64),
}

impl From<&str> for Cell {
    fn from(s: &str) -> Cell {
        Cell::Text(s.into())
    }
}

impl From<f64> for Cell {
    fn from(v: f64) -> Cell {
        Cell::Number(v)
    }
}

/// Results of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Findings {
    /// For each claim, by id: the figures of its checks, in their order.
    pub figures: Vec<(&'static str, Vec<f64>)>,
    /// Measurements.
    pub tables: Vec<Table>,
    /// Pictures.
    pub charts: Vec<Chart>,
    /// Remarks of the run about a claim, by id.
    pub notes: Vec<(&'static str, String)>,
}

impl Findings {
    /// Adds the figures of one claim.
    pub(crate) fn figure(&mut self, claim: &'static str, values: &[f64]) {
        self.figures.push((claim, values.to_vec()));
    }
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[error("{id}: {reason}")]
pub struct RunError {
    /// The experiment.
    pub id: &'static str,
    /// The reason.
    pub reason: String,
}

/// The error of an experiment that failed.
pub(crate) fn failed(spec: &Spec, reason: impl std::fmt::Display) -> RunError {
    RunError { id: spec.id, reason: reason.to_string() }
}

/// An experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its description.
    pub spec: &'static Spec,
    /// Steps of one run, for the progress bar.
    pub(crate) steps: u64,
    /// Runs it once.
    pub(crate) run: fn(&Run) -> Result<Findings, RunError>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_include_their_limits() {
        assert!(Test::Between(29.0, 37.0).passes(29.0));
        assert!(Test::Between(29.0, 37.0).passes(37.0));
        assert!(!Test::Between(29.0, 37.0).passes(28.999));
        assert!(Test::AtLeast(97.5).passes(97.5));
        assert!(!Test::AtLeast(97.5).passes(97.499));
        assert!(Test::AtMost(2.0).passes(2.0));
        assert!(!Test::Below(2.0).passes(2.0));
        assert!(Test::Never.passes(0.0));
        assert!(!Test::Never.passes(1.0));
    }

    #[test]
    fn what_is_not_a_number_passes_nothing() {
        for t in [
            Test::Between(f64::MIN, f64::MAX),
            Test::AtLeast(f64::MIN),
            Test::AtMost(f64::MAX),
            Test::Below(f64::MAX),
            Test::Never,
        ] {
            assert!(!t.passes(f64::NAN), "{t:?}");
            assert!(!t.passes(f64::INFINITY), "{t:?}");
        }
    }
}
