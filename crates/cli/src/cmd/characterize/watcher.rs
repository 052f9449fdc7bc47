//! Who watches a characterisation: bars, Ctrl-C, and what is kept when it ends early.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headtime_lab::output;
use headtime_probe::sampler::Watch;
use serde::Serialize;

use crate::failure::Failure;
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

/// What is kept of a characterisation that ended early.
#[derive(Serialize)]
struct Checkpoint<'a> {
    device: &'a str,
    seed: u64,
    ended: &'a str,
    stage: &'a str,
    /// Of the stage.
    share: f64,
    findings: &'a [Told],
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

    /// Keeps what was found before it ended, in `path`, and says so. Nothing found: nothing kept.
    pub fn keep(&self, path: &Path, device: &str, seed: u64, ended: &str) -> Result<(), Failure> {
        if self.told.is_empty() {
            return Ok(());
        }
        let share = self.step as f64 / STEPS as f64;
        let kept = Checkpoint { device, seed, ended, stage: self.stage, share, findings: &self.told };
        let text = serde_json::to_string_pretty(&kept).map_err(Failure::input)?;
        output::write_whole(path, (text + "\n").as_bytes())?;
        screen::note(&format!("what was found by then is in {}", path.display()));
        Ok(())
    }
}

/// Where the checkpoint of an output lies: beside it.
pub fn checkpoint_of(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_os_string();
    name.push(".unfinished.json");
    output.with_file_name(name)
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
    fn what_was_found_before_the_end_is_kept_and_nothing_else() {
        let dir = std::env::temp_dir().join(format!("headtime-watcher-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = checkpoint_of(&dir.join("p.toml"));
        let mut watcher = Watcher { bar: None, stage: "", step: 0, stop: Arc::default(), told: Vec::new() };
        watcher.keep(&path, "sdx", 7, "stopped").unwrap();
        assert!(!path.exists());
        assert!(watcher.progress("rotation", 0.25));
        watcher.found("period", "6 ms", "reads", "well");
        watcher.stop.store(true, Ordering::Relaxed);
        assert!(!watcher.progress("rotation", 0.5));
        watcher.keep(&path, "sdx", 7, "stopped").unwrap();
        let kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!((&kept["stage"], &kept["share"], &kept["seed"]), (&"rotation".into(), &0.5.into(), &7.into()));
        assert_eq!(kept["findings"][0]["value"], "6 ms");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_checkpoint_lies_beside_its_output() {
        assert_eq!(checkpoint_of(Path::new("a/b.toml")), Path::new("a/b.toml.unfinished.json"));
    }
}
