//! Sources of requests: synthetic tasks, scenarios and recorded traces.
//!
//! A [`Workload`] is a state machine in virtual time: it returns when its next request is due,
//! returns the request, and is notified when one is finished. Synthetic workloads are a
//! [`Population`] of tasks; the named ones (`oltp`, `closed:N`, ...) are functions that return a
//! [`GroupSpec`], so that an experiment can start from a name and change a figure.

mod beside;
mod closed;
pub mod das;
mod files;
mod generator;
mod host_time;
mod micro;
mod oltp;
mod open;
mod orders;
mod playback;
mod population;
mod random;
mod replay;
pub mod scenario;
mod size;
mod source;
mod stream_table;
mod streams;
pub mod suite;
mod task_table;
mod values;
pub mod variates;

pub use beside::{Beside, FOREGROUND, Pace, READER, ReaderSpec, SCAN};
pub use closed::closed;
pub use files::{Files, FilesSpec, Layout, LayoutSpec, Range};
pub use generator::{Pattern, PatternSpec, PlaceSpec};
pub use host_time::HostTime;
pub use micro::{MICRO_OUTSTANDING, freeblock_micro, freeblock_micro_open};
pub use oltp::oltp;
pub use open::open;
pub use playback::Playback;
pub use population::{Arrivals, Gaps, GroupSpec, Population, Think};
pub use random::{local_4k, random_4k, random_40k};
pub use replay::{Beyond, Mode, Refusals, Replay};
pub(crate) use scenario::unknown;
pub use size::SizeSpec;
pub use source::Source;
pub use stream_table::StreamTable;
pub use streams::{BEST_EFFORT, FIRST_STREAM, MOST_STREAMS, StreamCall, StreamSpec, Streams, stream_of};
pub use task_table::TaskTable;
pub use values::{Bytes, Figure, Sizes};

use std::sync::Arc;

use headtime_disk::command::Kind;
use headtime_disk::geometry::Geometry;
use headtime_disk::time::Time;

use crate::traces::TraceError;

/// A request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// When it becomes due.
    pub due: Time,
    /// Read, write or flush.
    pub kind: Kind,
    /// First sector, in the drive's sectors.
    pub lbn: u64,
    /// Length in the drive's sectors.
    pub count: u32,
    /// Whether it is a write with FUA.
    pub fua: bool,
    /// Whether its application waits for it.
    pub sync: bool,
    /// Its application.
    pub owner: u32,
    /// Its class in statistics: an index into [`Workload::classes`], 0 where there are none.
    pub class: u16,
}

/// A source of requests in virtual time.
pub trait Workload {
    /// Returns when the next request is due; `None` when there is none, or when it depends on an
    /// unfinished request. Never before the last due time returned.
    fn next_due(&self) -> Option<Time>;

    /// Returns the next due request. To be called only when [`Workload::next_due`] is `Some`.
    fn take(&mut self) -> Result<Ask, WorkloadError>;

    /// Notifies it that a request of `owner` is finished.
    fn finished(&mut self, owner: u32, now: Time);

    /// Notifies it that this request is finished, for workloads in which the next requests depend
    /// on which one it was.
    fn completed(&mut self, ask: &Ask, now: Time) {
        self.finished(ask.owner, now);
    }

    /// Whether it is endless, so that a run needs another limit.
    fn endless(&self) -> bool;

    /// Returns the names of the requests' classes besides read and write; empty for a single class.
    fn classes(&self) -> &[String] {
        &[]
    }

    /// Returns further measurements at the end, such as programs' start-up times, as names and
    /// values.
    fn measures(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Returns when a stream next begins or ends, for a scheduler with guarantees; `None` without
    /// streams.
    fn next_call(&self) -> Option<Time> {
        None
    }

    /// Returns that event. To be called only when [`Workload::next_call`] is `Some`.
    fn call(&mut self) -> Option<StreamCall> {
        None
    }

    /// Notifies it that the stream opened last starts with the period that begins at `begins`.
    fn opened(&mut self, _owner: u32, _begins: Time) {}

    /// Returns the requests that were not submitted because they exceed the disk's capacity.
    fn refusals(&self) -> Option<&Refusals> {
        None
    }
}

/// The disk's description for workloads.
#[derive(Clone, Debug)]
pub struct Target {
    /// Number of sectors.
    pub capacity: u64,
    /// Bytes per sector: 512 or 4096.
    pub sector_bytes: u32,
    /// Its geometry, for workloads with locality by cylinder.
    pub geometry: Option<Arc<Geometry>>,
}

/// Why a workload cannot be built or continued.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// Unknown name.
    #[error("unknown {what} \"{name}\"; known: {known}")]
    Unknown {
        /// Kind of object.
        what: &'static str,
        /// The given name.
        name: String,
        /// The known names.
        known: String,
    },
    /// A figure out of range.
    #[error("{what}: expected {low} to {high}, found {found}")]
    OutOfRange {
        /// The figure's name.
        what: String,
        /// The given value.
        found: String,
        /// Lower bound.
        low: String,
        /// Upper bound.
        high: String,
    },
    /// Conflicting settings, or a missing one.
    #[error("{0}")]
    Conflict(String),
    /// Locality by cylinder without a geometry.
    #[error("{what} needs the disk's geometry, and this disk has none")]
    NeedsGeometry {
        /// The setting.
        what: &'static str,
    },
    /// A scenario file is invalid.
    #[error("{place}: {message}")]
    Scenario {
        /// File, and line if known, separated by a colon.
        place: String,
        /// Reason.
        message: String,
    },
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A recorded request exceeds the disk's capacity.
    #[error("{file}:{line}: expected sectors below {capacity} (512 bytes each), found {lbn} to {lbn}+{count}")]
    BeyondCapacity {
        /// File.
        file: String,
        /// Line, from 1.
        line: u64,
        /// First sector, of 512 bytes.
        lbn: u64,
        /// Number of 512-byte sectors.
        count: u32,
        /// The disk's capacity in sectors of 512 bytes.
        capacity: u64,
    },
}

impl WorkloadError {
    /// Makes the error of a figure out of range.
    pub(crate) fn range(
        what: impl Into<String>,
        found: impl ToString,
        low: impl ToString,
        high: impl ToString,
    ) -> WorkloadError {
        WorkloadError::OutOfRange {
            what: what.into(),
            found: shown(found.to_string()),
            low: low.to_string(),
            high: high.to_string(),
        }
    }
}

/// Shortens a figure for a message: floats print all their digits, up to three hundred.
fn shown(figure: String) -> String {
    const MOST: usize = 40;
    if figure.len() <= MOST {
        return figure;
    }
    match figure.parse::<f64>() {
        Ok(f) if f.is_finite() => format!("{f:e}"),
        _ => format!("{}...", figure.chars().take(MOST).collect::<String>()),
    }
}

/// Named workloads that consist of tasks, as typed.
const TASKS: [&str; 6] = ["oltp", "closed:N", "random-4k[:N]", "random-40k[:N]", "local-4k[:N]", "open:RATE"];

/// All named workloads, as typed: tasks, the benchmark suite's, and those with streams.
pub const NAMES: [&str; 11] = {
    let ([a, b, c, d, e, f], [g, h, i], [j, k]) = (TASKS, suite::named::NAMES, das::NAMES);
    [a, b, c, d, e, f, g, h, i, j, k]
};

/// Returns the tasks of a named workload. Errors list the known names, or the valid range.
pub fn by_name(name: &str) -> Result<GroupSpec, WorkloadError> {
    let (word, figure) = match name.split_once(':') {
        Some((w, f)) => (w, Some(f)),
        None => (name, None),
    };
    let unknown = || WorkloadError::Unknown { what: "workload", name: name.to_owned(), known: TASKS.join(", ") };
    let level = |default: u32| match figure {
        None => Ok(default),
        Some(f) => f.parse().ok().filter(|n| (1..=population::MOST_TASKS).contains(n)).ok_or_else(|| {
            WorkloadError::range(format!("N of workload {word}:N"), format!("\"{f}\""), 1, population::MOST_TASKS)
        }),
    };
    match (word, figure) {
        ("oltp", None) => Ok(oltp()),
        ("closed", Some(_)) => Ok(closed(level(1)?)),
        ("random-4k", _) => Ok(random_4k(level(random::OUTSTANDING)?)),
        ("random-40k", _) => Ok(random_40k(level(random::OUTSTANDING)?)),
        ("local-4k", _) => Ok(local_4k(level(random::OUTSTANDING)?)),
        ("open", Some(f)) => {
            let rate = f.parse().map_err(|_| {
                WorkloadError::range(
                    "RATE of workload open:RATE (requests per second)",
                    format!("\"{f}\""),
                    open::SLOWEST,
                    open::FASTEST,
                )
            })?;
            open(rate)
        }
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_workloads_list_the_known_ones() {
        for name in ["", "tpcc", "oltp:3", "closed", "open"] {
            let e = by_name(name).unwrap_err().to_string();
            assert!(e.contains("closed:N") && e.contains("open:RATE"), "{e}");
        }
    }

    #[test]
    fn figures_out_of_range_say_the_range() {
        for name in ["closed:0", "closed:x", "random-4k:0", "closed:100001"] {
            let e = by_name(name).unwrap_err().to_string();
            assert!(e.contains("expected 1 to 100000"), "{name}: {e}");
        }
        for name in ["open:0", "open:fast", "open:1e9", "open:-5", "open:nan"] {
            let e = by_name(name).unwrap_err().to_string();
            assert!(e.contains("expected 0.001 to 1000000"), "{name}: {e}");
        }
    }

    #[test]
    fn every_name_gives_a_workload() {
        for name in ["oltp", "closed:10", "random-4k", "random-40k:3", "local-4k", "open:100", "open:0.5"] {
            assert!(by_name(name).is_ok(), "{name}");
        }
    }
}
