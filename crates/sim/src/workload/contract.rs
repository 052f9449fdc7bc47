//! The contract between a source of requests and the event loop: requests, their source, the disk
//! that they are made for, and why a source cannot be built.

use std::sync::Arc;

use headtime_disk::{Geometry, Kind, Time};
use headtime_sched::NameError;

use super::{Refusals, StreamCall};
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

    /// Notifies it that the run ends now, with whatever is not finished.
    fn ended(&mut self, _now: Time) {}

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
    /// A setting of the scheduler with a name that it does not have.
    #[error(transparent)]
    Name(#[from] NameError),
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
    /// An error of one of these settings.
    #[error("{error}")]
    Setting {
        /// Keys of the table that describes the workload, the likeliest cause first.
        keys: &'static [&'static str],
        /// Whether the message names the task or the stream.
        is_named: bool,
        /// What is wrong.
        error: Box<WorkloadError>,
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
    /// Adds the keys of the settings that the error is about, the likeliest cause first. The reader
    /// of a file adds the line of the first that the file has.
    #[must_use]
    pub(crate) fn about(self, keys: &'static [&'static str]) -> WorkloadError {
        match self {
            // The place where it was found knows best.
            e @ (WorkloadError::Setting { .. } | WorkloadError::Scenario { .. } | WorkloadError::Trace(_)) => e,
            e => WorkloadError::Setting { keys, is_named: false, error: Box::new(e) },
        }
    }

    /// Marks an error whose message names its task or stream.
    #[must_use]
    pub(crate) fn named(self) -> WorkloadError {
        match self {
            WorkloadError::Setting { keys, error, .. } => WorkloadError::Setting { keys, is_named: true, error },
            e => WorkloadError::Setting { keys: &[], is_named: true, error: Box::new(e) },
        }
    }

    /// Returns the keys of the settings that it is about.
    pub(crate) fn keys(&self) -> &'static [&'static str] {
        match self {
            WorkloadError::Setting { keys, .. } => keys,
            _ => &[],
        }
    }

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

/// Adds keys to the error of a result ([`WorkloadError::about`]).
pub(crate) trait About<T> {
    /// Adds the keys of the settings that an error is about.
    fn about(self, keys: &'static [&'static str]) -> Result<T, WorkloadError>;
}

impl<T, E: Into<WorkloadError>> About<T> for Result<T, E> {
    fn about(self, keys: &'static [&'static str]) -> Result<T, WorkloadError> {
        self.map_err(|e| e.into().about(keys))
    }
}

/// Makes the error of an unknown name.
pub(crate) fn unknown(what: &'static str, name: &str, known: &[&str]) -> WorkloadError {
    WorkloadError::Unknown { what, name: name.to_owned(), known: known.join(", ") }
}

/// Shortens a figure for a message: floats print all their digits, up to three hundred.
pub(crate) fn shown(figure: String) -> String {
    const MAX_CHARACTERS: usize = 40;
    if figure.len() <= MAX_CHARACTERS {
        return figure;
    }
    match figure.parse::<f64>() {
        Ok(f) if f.is_finite() => format!("{f:e}"),
        _ => format!("{}...", figure.chars().take(MAX_CHARACTERS).collect::<String>()),
    }
}
