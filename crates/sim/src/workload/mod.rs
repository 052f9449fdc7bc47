//! Where requests come from: synthetic tasks, scenarios and recorded traces.
//!
//! A [`Workload`] is a state machine in virtual time like everything else: it says when its next
//! request is due, hands it out, and is told when one of its requests is finished. Synthetic
//! workloads are a [`Population`] of tasks; the named ones (`oltp`, `closed:N`, ...) are functions
//! that give a [`GroupSpec`] to build one from, so that an experiment can start from a name and
//! change a figure.

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

/// One request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// When it should be submitted.
    pub due: Time,
    /// Read, write or flush.
    pub kind: Kind,
    /// First sector, in the drive's sectors.
    pub lbn: u64,
    /// Length in the drive's sectors.
    pub count: u32,
    /// A write that is done only when it is on the media.
    pub fua: bool,
    /// Its application waits for it before it goes on.
    pub sync: bool,
    /// The application it belongs to.
    pub owner: u32,
    /// Its class in statistics: an index into [`Workload::classes`], 0 where there are none.
    pub class: u16,
}

/// A source of requests in virtual time.
pub trait Workload {
    /// When the next request is due; `None` when there is none, or when it depends on a request
    /// that is not finished yet. Never before the due time handed out last.
    fn next_due(&self) -> Option<Time>;

    /// Hands out the request that is due next. To be called only when [`Workload::next_due`] is
    /// `Some`.
    fn take(&mut self) -> Result<Ask, WorkloadError>;

    /// Tells it that a request of `owner` is finished.
    fn finished(&mut self, owner: u32, now: Time);

    /// Tells it that this request is finished, for workloads in which what follows depends on which
    /// request it was.
    fn completed(&mut self, ask: &Ask, now: Time) {
        self.finished(ask.owner, now);
    }

    /// Whether it goes on for ever, so that a run needs another end.
    fn endless(&self) -> bool;

    /// Names of the classes requests belong to beside read and write; empty when there is only one.
    fn classes(&self) -> &[String] {
        &[]
    }

    /// What else there is to say of it at the end: how long programs took to start, say. Names and
    /// values.
    fn measures(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// When a stream of it begins or ends next, which a scheduler with guarantees is to be told;
    /// `None` where there are no streams.
    fn next_call(&self) -> Option<Time> {
        None
    }

    /// What to tell then. To be called only when [`Workload::next_call`] is `Some`.
    fn call(&mut self) -> Option<StreamCall> {
        None
    }

    /// Tells it that the stream it called for last begins with the period that begins at `begins`.
    fn opened(&mut self, _owner: u32, _begins: Time) {}

    /// Requests that were not handed out because the disk has no such sectors.
    fn refusals(&self) -> Option<&Refusals> {
        None
    }
}

/// The disk as a workload needs to know it.
#[derive(Clone, Debug)]
pub struct Target {
    /// Sectors it has.
    pub capacity: u64,
    /// Bytes a sector holds: 512 or 4096.
    pub sector_bytes: u32,
    /// Where its sectors lie, for workloads with locality by cylinder.
    pub geometry: Option<Arc<Geometry>>,
}

/// Why a workload cannot be built or goes no further.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// No such name.
    #[error("unknown {what} \"{name}\"; known: {known}")]
    Unknown {
        /// What was named.
        what: &'static str,
        /// The name given.
        name: String,
        /// The names known.
        known: String,
    },
    /// A figure out of range.
    #[error("{what}: expected {low} to {high}, found {found}")]
    OutOfRange {
        /// What the figure is.
        what: String,
        /// What was given.
        found: String,
        /// Smallest figure allowed.
        low: String,
        /// Largest figure allowed.
        high: String,
    },
    /// Two settings that do not go together, or one that is missing.
    #[error("{0}")]
    Conflict(String),
    /// Locality by cylinder without a geometry.
    #[error("{what} needs the disk's geometry, and this disk has none")]
    NeedsGeometry {
        /// The setting.
        what: &'static str,
    },
    /// A scenario file that is not what it should be.
    #[error("{place}: {message}")]
    Scenario {
        /// File, and after a colon the line where it is known.
        place: String,
        /// Reason.
        message: String,
    },
    /// A trace that cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A recorded request that the disk has no sectors for.
    #[error("{file}:{line}: expected sectors below {capacity} (512 bytes each), found {lbn} to {lbn}+{count}")]
    BeyondCapacity {
        /// File.
        file: String,
        /// Line, from 1.
        line: u64,
        /// First sector, of 512 bytes.
        lbn: u64,
        /// Sectors of 512 bytes.
        count: u32,
        /// The disk's capacity in sectors of 512 bytes.
        capacity: u64,
    },
}

impl WorkloadError {
    /// A figure out of range.
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

/// A figure as a message shows it: floats print all their digits, and nobody reads three hundred of
/// them.
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

/// Named workloads that are tasks, as typed.
const TASKS: [&str; 6] = ["oltp", "closed:N", "random-4k[:N]", "random-40k[:N]", "local-4k[:N]", "open:RATE"];

/// The named workloads, as typed: tasks, the benchmark suite's, and those with streams.
pub const NAMES: [&str; 11] = {
    let ([a, b, c, d, e, f], [g, h, i], [j, k]) = (TASKS, suite::named::NAMES, das::NAMES);
    [a, b, c, d, e, f, g, h, i, j, k]
};

/// The tasks of a named workload. Unknown names list the known ones; figures out of range say the
/// range.
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
