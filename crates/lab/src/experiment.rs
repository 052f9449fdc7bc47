//! What an experiment is, and when a claim holds.

use crate::svg::Chart;

/// A condition on one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Test {
    /// Between the two, both included.
    Between(f64, f64),
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// Less than this.
    Below(f64),
    /// The figure is the number of cases in which a statement was wrong, and must be zero.
    Never,
}

impl Test {
    /// Whether `v` passes. A figure that is not a number passes nothing.
    pub fn passes(self, v: f64) -> bool {
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
    /// What the figure is.
    pub what: &'static str,
    /// Its unit, empty for a plain number.
    pub unit: &'static str,
    /// When it passes.
    pub test: Test,
}

/// A paper's claim, and the rule by which it holds here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Short name: the experiment's id, and a letter where it has several claims.
    pub id: &'static str,
    /// What is claimed.
    pub claim: &'static str,
    /// The paper's figure, as text.
    pub paper: &'static str,
    /// The rule, as text.
    pub rule: &'static str,
    /// The rule as conditions; all must pass. The first one's figure is the claim's own.
    pub checks: &'static [Check],
    /// Whether a shortened run can show it. If not, `--quick` leaves it out.
    pub quick: bool,
    /// What a reader must know when comparing: a known difference and its cause. May be empty.
    pub note: &'static str,
}

/// What an experiment is about.
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
    /// The workload in words.
    pub workload: &'static str,
    /// What must be shown.
    pub claims: &'static [Claim],
    /// It measures processor time, so nothing may run beside it.
    pub alone: bool,
}

/// How one run is to be done.
pub struct Run<'a> {
    /// Seed of everything that is chance in it.
    pub seed: u64,
    /// Shorten it.
    pub quick: bool,
    /// Told how far the run is.
    pub progress: &'a dyn Progress,
}

impl Run<'_> {
    /// `full`, or `quick` in a shortened run.
    pub fn length(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }
}

/// Somebody who watches.
pub trait Progress: Sync {
    /// So many more steps of the work announced by [`Experiment::steps`] are done.
    fn advance(&self, steps: u64);
}

/// Nobody watches.
pub struct Unwatched;

impl Progress for Unwatched {
    fn advance(&self, _steps: u64) {}
}

/// Rows for a CSV file.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Short name, part of the file's name.
    pub name: &'static str,
    /// Column names, units included.
    pub columns: &'static [&'static str],
    /// Rows, as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
}

/// One value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
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

/// What one run found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// For each claim, by id: the figures of its checks, in their order.
    pub figures: Vec<(&'static str, Vec<f64>)>,
    /// Measurements.
    pub tables: Vec<Table>,
    /// Pictures.
    pub charts: Vec<Chart>,
    /// What the run itself has to say about a claim, by id.
    pub notes: Vec<(&'static str, String)>,
}

impl Findings {
    /// Adds the figures of one claim.
    pub fn figure(&mut self, claim: &'static str, values: &[f64]) {
        self.figures.push((claim, values.to_vec()));
    }
}

/// Why a run could not be done.
#[derive(Debug, thiserror::Error)]
#[error("{id}: {reason}")]
pub struct RunError {
    /// The experiment.
    pub id: &'static str,
    /// What went wrong.
    pub reason: String,
}

/// An experiment.
pub trait Experiment: Sync {
    /// What it is about.
    fn spec(&self) -> &'static Spec;

    /// How many steps one run takes, for the progress bar.
    fn steps(&self) -> u64;

    /// Runs it once.
    fn run(&self, run: &Run) -> Result<Findings, RunError>;
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
