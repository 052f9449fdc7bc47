//! Scenarios: a complete simulation as a short text file.
//!
//! Every option of `headtime simulate` is a key, with `_` for `-`; flags on the command line
//! override the file. User-defined tasks are `[[task]]` tables in place of `workload` or `trace`:
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

use std::path::{Path, PathBuf};

use serde::Deserialize;

use headtime_disk::profile;
use headtime_disk::time::{Dur, Time};
use headtime_sched::streams::Exhausted;
use headtime_sched::{FillConfig, Placement, Policy, write_cache};

pub use super::orders::{ORDERS, order, order_name};
use super::source::{Source, fault, sources};
use super::stream_table::StreamTable;
use super::task_table::TaskTable;
pub use super::values::{Bytes, Figure};
use super::{HostTime, Mode, Target, WorkloadError};
use crate::background::Background;
use crate::filling;
use crate::input;
use crate::simulate::Scheduling;

/// Options of a simulation; `None` if not given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Name of a built-in disk, or a profile's file; in a scenario's file, relative to it.
    pub disk: Option<String>,
    /// A named workload.
    pub workload: Option<String>,
    /// A trace to replay; in a scenario's file, relative to it.
    pub trace: Option<PathBuf>,
    /// Its format.
    pub trace_format: Option<String>,
    /// Restricts the trace to requests of this device.
    pub device: Option<u32>,
    /// When recorded requests are due: `auto`, `open`, `closed`.
    pub replay: Option<String>,
    /// Host time from a completion to the same client's next request: microseconds, or
    /// `exponential:MEAN`.
    pub host_us: Option<Figure>,
    /// ADMIT.
    pub admit: Option<String>,
    /// ORDER.
    pub order: Option<String>,
    /// FILL.
    pub fill: Option<String>,
    /// Placement of FILL.
    pub placement: Option<String>,
    /// Background work.
    pub background: Option<String>,
    /// Margin for moves that are slower than predicted when a gap is filled: microseconds, or
    /// `adaptive`.
    pub conservatism_us: Option<Figure>,
    /// Whether the run ends when the background work is complete.
    pub until_scanned: Option<bool>,
    /// Memory of a write-back cache in front of the scheduler, with the drive's own off.
    #[serde(alias = "write-cache")]
    pub write_cache: Option<Bytes>,
    /// Maximum number of commands at the drive.
    pub depth: Option<u32>,
    /// End of the run in virtual seconds.
    pub seconds: Option<f64>,
    /// End of the run in requests.
    pub requests: Option<u64>,
    /// Seed.
    pub seed: Option<u64>,
    /// Handling of an optional stream's requests when its reservation is used up.
    pub exhausted: Option<String>,
    /// User-defined tasks.
    pub task: Vec<TaskTable>,
    /// Streams besides the other workload.
    pub stream: Vec<StreamTable>,
    /// Settings from a file, with their locations; empty without one.
    #[serde(skip)]
    pub source: Source,
}

/// Names of ADMIT; after `das:`, the policy of best effort.
pub const ADMITS: [&str; 6] = ["none", "cfq", "bfq", "bfq+", "das", "das:POLICY"];
/// Maximum size of a scenario file in bytes.
const LONGEST_FILE: u64 = 1 << 20;
/// Maximum duration in virtual seconds (ten years).
pub const LONGEST_RUN_S: f64 = 315_360_000.0;

pub(crate) fn unknown(what: &'static str, name: &str, known: &[&str]) -> WorkloadError {
    WorkloadError::Unknown { what, name: name.to_owned(), known: known.join(", ") }
}

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

impl Scenario {
    /// Parses a scenario and checks each setting. Errors have file and line.
    pub fn parse(text: &str, file: &str) -> Result<Scenario, WorkloadError> {
        let mut s: Scenario = toml::from_str(text).map_err(|e| fault(text, file, &e))?;
        let (own, tasks, streams) = sources(text, file);
        for (task, source) in s.task.iter_mut().zip(tasks) {
            task.source = Some(source);
        }
        for (stream, source) in s.stream.iter_mut().zip(streams) {
            stream.source = Some(source);
        }
        s.check_settings(&own)?;
        s.source = own;
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

    /// Merges this scenario's settings over `other`'s: flags over a file. Workload, trace and tasks
    /// are alternatives, and so are the limits of a run: flags that give one replace the file's.
    pub fn over(self, other: Scenario) -> Scenario {
        let given = self.given();
        let chosen = self.workload.is_some() || self.trace.is_some() || !self.task.is_empty();
        let (workload, trace, trace_format, task) = if chosen {
            (self.workload, self.trace, self.trace_format, self.task)
        } else {
            (other.workload, other.trace, self.trace_format.or(other.trace_format), other.task)
        };
        let own_end = self.seconds.is_some() || self.requests.is_some() || self.until_scanned.is_some();
        let (seconds, requests, until_scanned) = match own_end {
            true => (self.seconds, self.requests, self.until_scanned),
            false => (other.seconds, other.requests, other.until_scanned),
        };
        let both = Scenario {
            disk: self.disk.or(other.disk),
            workload,
            trace,
            trace_format,
            device: self.device.or(if chosen { None } else { other.device }),
            replay: self.replay.or(if chosen { None } else { other.replay }),
            host_us: self.host_us.or(other.host_us),
            admit: self.admit.or(other.admit),
            order: self.order.or(other.order),
            fill: self.fill.or(other.fill),
            placement: self.placement.or(other.placement),
            background: self.background.or(other.background),
            conservatism_us: self.conservatism_us.or(other.conservatism_us),
            until_scanned,
            write_cache: self.write_cache.or(other.write_cache),
            depth: self.depth.or(other.depth),
            seconds,
            requests,
            seed: self.seed.or(other.seed),
            exhausted: self.exhausted.or(other.exhausted),
            task,
            stream: if self.stream.is_empty() { other.stream } else { self.stream },
            source: Source::default(),
        };
        // What a flag replaced is no longer the file's.
        let left = both.given();
        Scenario { source: other.source.keeping(|key| left.contains(&key) && !given.contains(&key)), ..both }
    }

    /// Returns the keys that are set.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("disk", self.disk.is_some()),
            ("workload", self.workload.is_some()),
            ("trace", self.trace.is_some()),
            ("trace_format", self.trace_format.is_some()),
            ("device", self.device.is_some()),
            ("replay", self.replay.is_some()),
            ("host_us", self.host_us.is_some()),
            ("admit", self.admit.is_some()),
            ("order", self.order.is_some()),
            ("fill", self.fill.is_some()),
            ("placement", self.placement.is_some()),
            ("background", self.background.is_some()),
            ("conservatism_us", self.conservatism_us.is_some()),
            ("until_scanned", self.until_scanned.is_some()),
            ("write_cache", self.write_cache.is_some()),
            ("depth", self.depth.is_some()),
            ("seconds", self.seconds.is_some()),
            ("requests", self.requests.is_some()),
            ("seed", self.seed.is_some()),
            ("exhausted", self.exhausted.is_some()),
            ("task", !self.task.is_empty()),
            ("stream", !self.stream.is_empty()),
        ];
        all.iter().filter(|(_, said)| *said).map(|(key, _)| *key).collect()
    }

    /// Returns the ADMIT policy; with guarantees to streams, that of best effort.
    pub fn policy(&self) -> Result<Policy, WorkloadError> {
        let name = self.admit.as_deref().unwrap_or("none");
        let below = match name.strip_prefix("das") {
            Some("") => "none",
            Some(below) => below.strip_prefix(':').unwrap_or(name),
            None => name,
        };
        Policy::named(below).ok_or_else(|| unknown("admit", name, &ADMITS))
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
        self.check_all().map_err(|e| self.source.fault_if_named(e))
    }

    /// Returns the scheduling; SPTF by default.
    pub fn scheduling(&self) -> Result<Scheduling, WorkloadError> {
        order(self.order.as_deref().unwrap_or("sptf"))
    }

    /// Returns the limits of a write cache in front of the scheduler.
    pub fn write_cache(&self) -> Result<Option<write_cache::Limits>, WorkloadError> {
        let Some(Bytes(memory)) = self.write_cache else { return Ok(None) };
        let limits = write_cache::Limits::new(memory);
        let wrong = || WorkloadError::range("write_cache", format!("{memory} bytes"), "1 MiB", "16 GiB");
        limits.ok_or_else(wrong).map(Some)
    }

    /// Returns the limits of the run.
    pub fn limits(&self) -> Result<crate::run::Limits, WorkloadError> {
        let until = match self.seconds {
            None => None,
            Some(s) if s > 0.0 && s <= LONGEST_RUN_S => Some(Time::ZERO + Dur::from_ms_f64(s * 1e3)),
            Some(s) => return Err(WorkloadError::range("seconds", s, "more than 0", LONGEST_RUN_S)),
        };
        if self.requests == Some(0) {
            return Err(WorkloadError::range("requests", 0, 1, u64::MAX));
        }
        Ok(crate::run::Limits { until, requests: self.requests, until_scanned: self.until_scanned == Some(true) })
    }

    /// Returns FILL; `None` for `none`. By default, headtime's own algorithm if there is background
    /// work.
    pub fn fill(&self, seed: u64) -> Result<Option<FillConfig>, WorkloadError> {
        let margin = self.conservatism_us.as_ref().map(Figure::text);
        let work = self.background.as_deref().is_some_and(|b| b != "none");
        let default = if work { "headtime" } else { "none" };
        filling::fill(self.fill.as_deref().unwrap_or(default), self.placement.as_deref(), margin.as_deref(), seed)
    }

    /// Returns the placement of FILL.
    pub fn placement(&self) -> Result<Placement, WorkloadError> {
        filling::placement(self.placement.as_deref().unwrap_or("host"))
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

mod build;
mod checks;
#[cfg(test)]
mod tests;
