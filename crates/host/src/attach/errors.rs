//! Why an export was not attached, or not detached.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::attach::programs::ProgramError;
use crate::blockdev::{InspectError, UseError};
use crate::state::StateError;
use crate::sys::SysError;

/// Why an export was not attached, or not detached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The name is not usable in a file name.
    #[error(
        "expected a name of 1 to 64 letters, digits, dots, hyphens or underscores that begins with none of the \
             signs, found {found:?}"
    )]
    Name {
        /// The name.
        found: String,
    },
    /// The URI is invalid.
    #[error("expected an NBD URI{}, found {found:?}", if *.kernel { " that nbd-client can use (nbd:// or \
            nbd+unix://)" } else { "" })]
    Uri {
        /// What was given.
        found: String,
        /// Whether it is for nbd-client, which supports only some URIs.
        kernel: bool,
    },
    /// The sector size is not supported.
    #[error("expected sectors of 512, 1024, 2048 or 4096 bytes, found {found}")]
    SectorSize {
        /// What was given.
        found: u32,
    },
    /// An attachment of that name exists, or was only partly detached.
    #[error("{name:?} is attached already, or was left half attached ({})", path.display())]
    Taken {
        /// The name.
        name: String,
        /// Its state file.
        path: PathBuf,
    },
    /// A program is missing or failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// nbdfuse ended before it served anything.
    #[error("nbdfuse ended with {status}: {said}")]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// What it printed.
        said: String,
    },
    /// A wait timed out.
    #[error("{what} was not ready within {within:?}: {said}")]
    NotReady {
        /// What was waited for.
        what: String,
        /// The timeout.
        within: Duration,
        /// What the program printed.
        said: String,
    },
    /// The export has no size.
    #[error("{uri}: expected a size, found 0 bytes")]
    Empty {
        /// The export.
        uri: String,
    },
    /// The size is not a multiple of the sector size, as a block device requires.
    #[error("{uri}: expected a size of whole sectors of {sector} bytes, found {size} bytes")]
    Uneven {
        /// The export.
        uri: String,
        /// The size.
        size: u64,
        /// The sector size.
        sector: u32,
    },
    /// The loop device does not use direct I/O.
    #[error("{}: expected direct I/O, found {found:?}: data would be cached twice", device.display())]
    NotDirect {
        /// The loop device.
        device: PathBuf,
        /// Its `dio` attribute.
        found: String,
    },
    /// The kernel has no NBD devices.
    #[error("the kernel has no NBD devices (module nbd)")]
    NoKernelNbd,
    /// All NBD devices of the kernel are in use.
    #[error("expected a free NBD device, found none among {found} (module nbd, parameter nbds_max)")]
    NoFreeDevice {
        /// The number of devices.
        found: usize,
    },
    /// The device is mounted or in use in another way.
    #[error(transparent)]
    Used(#[from] UseError),
    /// The device cannot be inspected.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// Another process still has the device open. The device disappears when that closes it; then
    /// the rest can be detached.
    #[error("{} is still open somewhere; once it is closed, detach again", device.display())]
    StillOpen {
        /// The device.
        device: PathBuf,
    },
    /// nbdfuse did not end.
    #[error("nbdfuse (process {pid}) did not end within {within:?}")]
    Stays {
        /// Its PID.
        pid: u32,
        /// The timeout.
        within: Duration,
    },
    /// A file or directory of the attachment is unusable.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The state file is unusable.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file in `/sys` or `/proc` is unusable.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// Attaching failed, and so did the cleanup. Detaching tries the cleanup again.
    #[error("{error}; and it could not be taken away again: {cleanup}")]
    Cleanup {
        /// Why attaching failed.
        error: Box<AttachError>,
        /// Why the cleanup failed.
        cleanup: Box<AttachError>,
    },
}
