//! The watcher of a probe: it receives progress and findings, and can stop the probe.

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The measured property.
    pub what: &'static str,
    /// Its value.
    pub value: String,
    /// The method.
    pub how: String,
    /// The confidence.
    pub sure: String,
}

/// A watcher of the probe.
pub trait Watch {
    /// Reports the completed share of a stage; `false`: stop.
    fn progress(&mut self, stage: &'static str, share: f64) -> bool;

    /// Reports a finding with its confidence, so that it can be kept if the run ends early.
    fn found(&mut self, _finding: &Finding) {}
}

/// A watcher that does nothing.
#[derive(Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn progress(&mut self, _: &'static str, _: f64) -> bool {
        true
    }
}
