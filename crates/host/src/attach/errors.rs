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
pub enum AttachError {
    /// The name cannot be part of a file's.
    #[error(
        "expected a name of 1 to 64 letters, digits, dots, hyphens or underscores that begins with none of the \
             signs, found {found:?}"
    )]
    Name {
        /// The name.
        found: String,
    },
    /// The address is none.
    #[error("expected an NBD URI{}, found {found:?}", if *.kernel { " that nbd-client can use (nbd:// or \
            nbd+unix://)" } else { "" })]
    Uri {
        /// What was given.
        found: String,
        /// Whether it is for nbd-client, which cannot use all of them.
        kernel: bool,
    },
    /// No device has such sectors.
    #[error("expected sectors of 512, 1024, 2048 or 4096 bytes, found {found}")]
    SectorSize {
        /// What was given.
        found: u32,
    },
    /// Something of that name is attached, or was not detached to the end.
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
    /// It took too long.
    #[error("{what} was not ready within {within:?}: {said}")]
    NotReady {
        /// What was waited for.
        what: String,
        /// How long it was waited for.
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
    /// The size leaves a piece of a sector at the end, which no block device can have.
    #[error("{uri}: expected a size of whole sectors of {sector} bytes, found {size} bytes")]
    Uneven {
        /// The export.
        uri: String,
        /// The size.
        size: u64,
        /// The sectors.
        sector: u32,
    },
    /// The loop device keeps data in a cache of its own.
    #[error("{}: expected direct I/O, found {found:?}: data would be cached twice", device.display())]
    NotDirect {
        /// The loop device.
        device: PathBuf,
        /// What it says.
        found: String,
    },
    /// The kernel has no NBD, or nbd-client is not there.
    #[error("the kernel has no NBD devices (module nbd)")]
    NoKernelNbd,
    /// All NBD devices of the kernel are in use.
    #[error("expected a free NBD device, found none among {found} (module nbd, parameter nbds_max)")]
    NoFreeDevice {
        /// How many there are.
        found: usize,
    },
    /// The device is mounted or in use in another way.
    #[error(transparent)]
    Used(#[from] UseError),
    /// The device cannot be looked at.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// Somebody still has the device open. It goes when he closes it; then the rest can be taken
    /// away.
    #[error("{} is still open somewhere; once it is closed, detach again", device.display())]
    StillOpen {
        /// The device.
        device: PathBuf,
    },
    /// nbdfuse did not end.
    #[error("nbdfuse (process {pid}) did not end within {within:?}")]
    Stays {
        /// Its number.
        pid: u32,
        /// How long it was given.
        within: Duration,
    },
    /// A file or directory of the attachment is not usable.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The state file is not usable.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system's description is not usable.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// Attaching failed, and so did taking away what was there by then. Detaching it tries again.
    #[error("{error}; and it could not be taken away again: {cleanup}")]
    Cleanup {
        /// Why attaching failed.
        error: Box<AttachError>,
        /// Why taking away failed.
        cleanup: Box<AttachError>,
    },
}
