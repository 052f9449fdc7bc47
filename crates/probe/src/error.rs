//! Why a probe ends early.

use crate::device::DeviceError;

/// Why a probe ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The watcher requested the stop.
    #[error("stopped")]
    Stopped,
    /// The time limit expired.
    #[error("the budget of {minutes} minutes is used up in: {stage}")]
    Budget {
        /// The limit.
        minutes: u64,
        /// The current stage.
        stage: &'static str,
    },
    /// A measurement does not fit a rotating disk.
    #[error("{what}: expected {expected}, found {found}")]
    NoDisk {
        /// What was measured.
        what: &'static str,
        /// The expectation for a rotating disk.
        expected: String,
        /// The measured value.
        found: String,
    },
    /// Too many sectors are unreadable.
    #[error("sectors {lbn} and {more} more could not be read: expected a drive that reads, found one that fails")]
    Unreadable {
        /// The first.
        lbn: u64,
        /// Number of others.
        more: u64,
    },
}
