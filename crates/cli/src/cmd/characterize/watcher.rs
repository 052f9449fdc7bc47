//! The monitor of a characterisation: progress bars, Ctrl-C, and the findings so far.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headtime_probe::Finding;
use headtime_probe::watch::Watch;

use crate::interrupt;
use crate::screen::{self, Bar};

/// Steps of a stage's bar.
const STEPS: u64 = 1_000;

/// Shows progress, and requests the stop.
pub struct Watcher {
    bar: Option<Bar>,
    stage: &'static str,
    step: u64,
    stop: Arc<AtomicBool>,
    told: Vec<Finding>,
}

impl Watcher {
    /// Creates a monitor, and starts to handle signals ([`interrupt::flag`]).
    pub fn new() -> Watcher {
        Watcher { bar: None, stage: "", step: 0, stop: interrupt::flag(), told: Vec::new() }
    }

    /// Removes the bar, so that the next output stands alone.
    pub fn end(&mut self) {
        self.bar = None;
    }

    /// The findings so far and the progress of the current stage, one per line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.told.iter().map(|t| format!("{}: {}", t.what, t.value)).collect();
        lines.push(format!("in stage \"{}\", {:.0}% of it", self.stage, 100.0 * self.step as f64 / STEPS as f64));
        lines
    }
}

impl Watch for Watcher {
    fn progress(&mut self, stage: &'static str, share: f64) -> bool {
        if stage != self.stage {
            // Dropped first: two bars at a time would share a line.
            self.bar = None;
            self.bar = Some(Bar::with_message(STEPS, stage));
            (self.stage, self.step) = (stage, 0);
        }
        let step = (share.clamp(0.0, 1.0) * STEPS as f64) as u64;
        if step != self.step {
            self.step = step;
            if let Some(bar) = &self.bar {
                bar.reach(step);
            }
        }
        !self.stop.load(Ordering::Relaxed)
    }

    fn found(&mut self, finding: &Finding) {
        let line = format!("{}: {}", finding.what, finding.value);
        match &self.bar {
            Some(bar) => bar.note(&line),
            None => screen::note(&line),
        }
        self.told.push(finding.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_and_the_end_are_reported() {
        let mut watcher = Watcher { bar: None, stage: "", step: 0, stop: Arc::default(), told: Vec::new() };
        assert!(watcher.progress("rotation", 0.25));
        let finding = Finding { what: "period", value: "6 ms".into(), how: "reads".into(), sure: "well".into() };
        watcher.found(&finding);
        watcher.stop.store(true, Ordering::Relaxed);
        assert!(!watcher.progress("rotation", 0.5));
        assert_eq!(watcher.lines(), ["period: 6 ms", "in stage \"rotation\", 50% of it"]);
    }
}
