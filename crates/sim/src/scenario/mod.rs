//! Scenarios: a complete simulation as a short text file.
//!
//! Every setting of [`Scenario`] is a key of such a file and, with the feature `clap`, a flag of
//! `headtime simulate`, with `-` for `_`; flags on the command line override the file. User-defined
//! tasks are `[[task]]` tables in place of `workload` or `trace`:
//!
//! ```toml
//! disk = "atlas10k"
//! order = "sptf"
//! seconds = 60
//!
//! [[task]]               # eight clients that think for 20 ms on average
//! name = "clients"
//! tasks = 8
//! think_ms = 20.0
//! think = "exponential"  # or "fixed" (default)
//! reads = 0.7            # share of reads; default 1
//! size_mean = "8k"       # whole steps, geometrically distributed
//! size_step = "4k"
//!
//! [[task]]               # a log: 50 synchronous writes a second
//! name = "log"
//! rate = 50.0            # Poisson arrivals instead of tasks that think
//! reads = 0.0
//! size = "4k"
//! place = "sequential"
//! fua = true
//! ```

mod build;
mod checks;
mod disk;
pub mod filling;
#[cfg(feature = "clap")]
pub mod flags;
mod prepared;
mod settings;
mod source;
mod stream_table;
mod task_table;
#[cfg(test)]
mod tests;
mod toml_error;
mod values;

pub use disk::{DEFAULT_DISK, DiskError, load as load_disk};
pub use prepared::{Outcome, PrepareError, Prepared};
pub use settings::Scenario;
pub use source::Source;
pub use stream_table::StreamTable;
pub use task_table::TaskTable;
pub use values::{Bytes, Figure, Sizes};

use std::path::Path;

use serde::Deserialize;
use toml::de::{DeTable, Deserializer};

use headtime_disk::{DriveNoise, Dur, Time, profile};
use headtime_sched::streams::Exhausted;
use headtime_sched::{FillConfig, NameError, Placement, Policy, joined, write_cache};

use crate::background::Background;
use crate::input;
use crate::run::Limits;
use crate::simulate::Scheduling;
use crate::workload::{About, HostTime, Mode, Target, WorkloadError, unknown};
use source::Sources;

/// Names of ADMIT; after `das:`, the policy of best effort.
pub const ADMITS: [&str; Policy::NAMES.len() + 2] = joined(&Policy::NAMES, &["das", "das:POLICY"]);
/// Maximum size of a scenario file in bytes.
const LONGEST_FILE: u64 = 1 << 20;
/// Maximum duration in virtual seconds (ten years).
pub const LONGEST_RUN_S: f64 = 315_360_000.0;

/// Resolves a disk named by a file in `folder`: the name of a built-in drive takes precedence over
/// a file; another name that looks like a file's, or is one's, is relative to the folder.
pub fn beside(folder: &Path, disk: String) -> String {
    let file = folder.join(&disk);
    let is_file = disk.contains(['/', '.']) || (!disk.is_empty() && file.exists());
    if profile::builtin_names().any(|known| known == disk) || !is_file {
        return disk;
    }
    file.display().to_string()
}

/// Gives an error of settings that are in no file the place that they came from.
fn in_place(e: WorkloadError, place: &str) -> WorkloadError {
    let message = match e {
        WorkloadError::Scenario { message, .. } => message,
        e => e.to_string(),
    };
    WorkloadError::Scenario { place: place.to_owned(), message }
}

impl Scenario {
    /// Parses a scenario and checks each setting. Errors have file and line.
    pub fn parse(text: &str, file: &str) -> Result<Scenario, WorkloadError> {
        let wrong = |e: toml::de::Error| toml_error::fault(text, file, &e);
        let document = DeTable::parse(text).map_err(wrong)?;
        let sources = Sources::new(document.get_ref(), text, file);
        let mut s = Scenario::deserialize(Deserializer::from(document)).map_err(wrong)?;
        for (task, source) in s.task.iter_mut().zip(sources.tasks) {
            task.source = Some(source);
        }
        for (stream, source) in s.stream.iter_mut().zip(sources.streams) {
            stream.source = Some(source);
        }
        s.check_settings(&sources.own)?;
        s.source = sources.own;
        Ok(s)
    }

    /// Loads a scenario's file; its trace and profile are relative to it.
    pub fn load(path: &Path) -> Result<Scenario, WorkloadError> {
        let file = path.display().to_string();
        let text = input::text(path, LONGEST_FILE)
            .map_err(|message| WorkloadError::Scenario { place: file.clone(), message })?;
        let mut s = Scenario::parse(&text, &file)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        s.trace = s.trace.map(|trace| folder.join(trace));
        s.disk = s.disk.map(|disk| beside(folder, disk));
        Ok(s)
    }

    /// Makes a scenario of settings that were put together, such as those of one of many runs, and
    /// checks them. A relative trace or profile is relative to `folder`. Errors begin with `place`.
    pub fn from_table(settings: toml::Table, folder: &Path, place: &str) -> Result<Scenario, WorkloadError> {
        let s = Scenario::part_of_table(settings, folder, place)?;
        s.check().map_err(|e| in_place(e, place))?;
        Ok(s)
    }

    /// Makes settings of a table that others are to complete, and checks only their types.
    pub fn part_of_table(settings: toml::Table, folder: &Path, place: &str) -> Result<Scenario, WorkloadError> {
        let mut s = Scenario::read_table(settings, place)?;
        s.trace = s.trace.map(|trace| folder.join(trace));
        s.disk = s.disk.map(|disk| beside(folder, disk));
        Ok(s)
    }

    /// Checks each of these settings alone, whether or not they go together. Errors begin with
    /// `place`.
    pub fn check_each(settings: toml::Table, place: &str) -> Result<(), WorkloadError> {
        let s = Scenario::read_table(settings, place)?;
        s.check_settings(&Source::default()).map_err(|e| in_place(e, place))
    }

    fn read_table(settings: toml::Table, place: &str) -> Result<Scenario, WorkloadError> {
        toml::Value::Table(settings).try_into().map_err(|e: toml::de::Error| WorkloadError::Scenario {
            place: place.to_owned(),
            message: toml_error::of_value(&e),
        })
    }

    /// Merges this scenario's settings over a file's: flags over a file. Workload, trace and tasks
    /// are alternatives, and so are the limits of a run: flags that give one replace the file's.
    pub fn over(self, mut file: Scenario) -> Scenario {
        let given = self.given();
        let source = std::mem::take(&mut file.source);
        if self.workload.is_some() || self.trace.is_some() || !self.task.is_empty() {
            (file.workload, file.trace, file.trace_format) = (None, None, None);
            (file.device, file.replay, file.beyond) = (None, None, None);
            file.task.clear();
        }
        if self.seconds.is_some() || self.requests.is_some() || self.until_scanned.is_some() {
            (file.seconds, file.requests, file.until_scanned) = (None, None, None);
        }
        let both = self.or(file);
        // What a flag replaced is no longer the file's.
        let left = both.given();
        Scenario { source: source.keeping(|key| left.contains(&key) && !given.contains(&key)), ..both }
    }

    /// Returns the ADMIT policy; with guarantees to streams, that of best effort.
    pub fn policy(&self) -> Result<Policy, WorkloadError> {
        let name = self.admit.as_deref().unwrap_or("none");
        let below = match name.strip_prefix("das") {
            Some("") => "none",
            Some(below) => below.strip_prefix(':').unwrap_or(name),
            None => name,
        };
        below.parse().map_err(|e: NameError| match below.starts_with("bfq+:") {
            // The error names the switch.
            true => e.into(),
            false => NameError::unknown("admit", name, &ADMITS).into(),
        })
    }

    /// Returns whether streams have guarantees, and the handling of an optional stream's requests
    /// when its reservation is used up.
    pub fn guarantees(&self) -> Result<Option<Exhausted>, WorkloadError> {
        let exhausted = match self.exhausted.as_deref() {
            None => Exhausted::Skip,
            Some(name) => Exhausted::named(name).ok_or_else(|| unknown("exhausted", name, &Exhausted::NAMES))?,
        };
        let das = self.admit.as_deref().is_some_and(|a| a == "das" || a.starts_with("das:"));
        Ok(das.then_some(exhausted))
    }

    /// Formats an error of the setting `key`, with file and line if it is from a file rather than
    /// the command line.
    pub fn fault_at(&self, key: &str, message: impl std::fmt::Display) -> String {
        self.source.place(key).map_or_else(|| message.to_string(), |place| format!("{place}: {message}"))
    }

    /// Checks every name and figure that does not depend on a disk. Errors of settings in a file
    /// have its line.
    pub fn check(&self) -> Result<(), WorkloadError> {
        self.check_all().map_err(|e| self.source.fault(e))
    }

    /// Returns the scheduling; SPTF by default.
    pub fn scheduling(&self) -> Result<Scheduling, WorkloadError> {
        Ok(self.order.as_deref().unwrap_or("sptf").parse()?)
    }

    /// Returns the limits of a write cache in front of the scheduler.
    pub fn write_cache(&self) -> Result<Option<write_cache::Limits>, WorkloadError> {
        let Some(Bytes(memory)) = self.write_cache else { return Ok(None) };
        let limits = write_cache::Limits::new(memory);
        let wrong = || WorkloadError::range("write_cache", format!("{memory} bytes"), "1 MiB", "16 GiB");
        limits.ok_or_else(wrong).map(Some)
    }

    /// Returns the limits of the run.
    pub fn limits(&self) -> Result<Limits, WorkloadError> {
        let until = match self.seconds {
            None => None,
            Some(s) if s > 0.0 && s <= LONGEST_RUN_S => Some(Time::ZERO + Dur::from_ms_f64(s * 1e3)),
            Some(s) => return Err(WorkloadError::range("seconds", s, "more than 0", LONGEST_RUN_S).about(&["seconds"])),
        };
        if self.requests == Some(0) {
            return Err(WorkloadError::range("requests", 0, 1, u64::MAX).about(&["requests"]));
        }
        Ok(Limits { until, requests: self.requests, until_scanned: self.until_scanned == Some(true) })
    }

    /// Returns FILL; `None` for `none`. By default, headtime's own algorithm if there is background
    /// work.
    pub fn fill(&self, seed: u64) -> Result<Option<FillConfig>, WorkloadError> {
        let placement = self.placement().about(&["placement"])?;
        let margin = self.conservatism_us.as_ref().map(|figure| figure.text().parse());
        let margin = margin.transpose().about(&["conservatism_us"])?;
        let work = self.background.as_deref().is_some_and(|b| b != "none");
        let default = if work { "headtime" } else { "none" };
        filling::fill(self.fill.as_deref().unwrap_or(default), placement, margin, seed).about(&["fill"])
    }

    /// Returns the placement of FILL.
    pub fn placement(&self) -> Result<Placement, WorkloadError> {
        Ok(self.placement.as_deref().unwrap_or("host").parse()?)
    }

    /// Returns the random behaviour of the drive. Gap filling inside the drive is compared with the
    /// same drive without filling, and a scheduler inside knows the truth, so by default such a
    /// drive has none.
    pub fn noise(&self) -> Result<DriveNoise, WorkloadError> {
        match self.noise.as_deref() {
            Some(name) => DriveNoise::parse(name).ok_or_else(|| unknown("noise", name, &DriveNoise::NAMES)),
            None if self.placement()? != Placement::Host => Ok(DriveNoise::Off),
            None => Ok(DriveNoise::Profile),
        }
    }

    /// Returns the background work for a disk.
    pub fn background(&self, target: &Target) -> Result<Box<dyn Background>, WorkloadError> {
        let filled = self.fill(0)?.is_some();
        filling::background(self.background.as_deref().filter(|_| filled).unwrap_or("none"), target)
    }

    /// Returns the host time from a completion to the same client's next request.
    pub fn host(&self) -> Result<HostTime, WorkloadError> {
        self.host_us.as_ref().map_or(Ok(HostTime::default()), |figure| HostTime::parse(&figure.text()))
    }

    fn mode(&self) -> Result<Mode, WorkloadError> {
        match self.replay.as_deref() {
            None | Some("auto") => Ok(Mode::Auto),
            Some("open") => Ok(Mode::Open),
            Some("closed") => Ok(Mode::Closed),
            Some(other) => Err(unknown("way of replaying", other, &["auto", "open", "closed"])),
        }
    }
}
