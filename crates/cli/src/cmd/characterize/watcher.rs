//! Who watches a characterisation: bars, Ctrl-C, and what was found so far.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headtime_lab::output;
use headtime_probe::sampler::Watch;
use serde::Serialize;

use crate::screen::{self, Bar};

/// Steps of a stage's bar.
const STEPS: u64 = 1_000;

/// A finding as it is kept and printed.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// What it is.
    pub what: &'static str,
    /// What was found.
    pub value: String,
    /// How.
    pub how: String,
    /// How sure it is.
    pub sure: String,
}

/// Shows how it goes, and says when to stop.
pub struct Watcher {
    bar: Option<Bar>,
    stage: &'static str,
    step: u64,
    stop: Arc<AtomicBool>,
    told: Vec<Told>,
}

impl Watcher {
    /// Ctrl-C, SIGTERM and SIGHUP are heard from now on; a second one is not waited for.
    pub fn new() -> Watcher {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        // Without a handler it still works; it only leaves no checkpoint.
        let _ = ctrlc::set_handler(move || {
            if told.swap(true, Ordering::Relaxed) {
                output::discard_unfinished();
                std::process::exit(130);
            }
        });
        Watcher { bar: None, stage: "", step: 0, stop, told: Vec::new() }
    }

    /// The bar goes: what is printed next stands alone.
    pub fn end(&mut self) {
        self.bar = None;
    }

    /// What was found so far, and how far it is with the rest: a line each.
    pub fn told(&self) -> Vec<String> {
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
            self.bar = Some(Bar::told(STEPS, stage));
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

    fn found(&mut self, what: &'static str, value: &str, how: &str, sure: &str) {
        let line = format!("{what}: {value}");
        match &self.bar {
            Some(bar) => bar.note(&line),
            None => screen::note(&line),
        }
        self.told.push(Told { what, value: value.into(), how: how.into(), sure: sure.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_and_where_it_ended_is_told() {
        let mut watcher = Watcher { bar: None, stage: "", step: 0, stop: Arc::default(), told: Vec::new() };
        assert!(watcher.progress("rotation", 0.25));
        watcher.found("period", "6 ms", "reads", "well");
        watcher.stop.store(true, Ordering::Relaxed);
        assert!(!watcher.progress("rotation", 0.5));
        assert_eq!(watcher.told(), ["period: 6 ms", "in stage \"rotation\", 50% of it"]);
    }
}
