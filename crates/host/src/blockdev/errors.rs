//! Why a device is refused.

use std::io;
use std::path::PathBuf;

use crate::sys::SysError;
use crate::usage::DeviceNumber;

/// Why a path could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// There is nothing of that name, or one may not look.
    #[error("cannot look at {}: {source}", path.display())]
    Look {
        /// The path asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is neither a block device nor a file.
    #[error("{}: expected a block device or a regular file, found {found}", path.display())]
    NeitherDeviceNorFile {
        /// The path asked for.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// It is a regular file.
    #[error("{}: expected a block device, found a regular file", path.display())]
    NotADevice {
        /// The path asked for.
        path: PathBuf,
    },
    /// The node is there, the device is not.
    #[error("{}: expected a device {number} in {}, found none", path.display(), place.display())]
    NoDevice {
        /// The path asked for.
        path: PathBuf,
        /// Its numbers.
        number: DeviceNumber,
        /// Where it was looked for.
        place: PathBuf,
    },
    /// Sysfs does not describe it as expected.
    #[error(transparent)]
    Sys(#[from] SysError),
}

/// Why a device or file cannot be ours.
#[derive(Debug, thiserror::Error)]
pub enum UseError {
    /// It is mounted.
    #[error("{} is mounted at {}", path.display(), at.display())]
    Mounted {
        /// The device.
        path: PathBuf,
        /// Where.
        at: PathBuf,
    },
    /// A partition of it is mounted, or the disk that it is a partition of.
    #[error("{}: {part} is mounted at {}", path.display(), at.display())]
    PartMounted {
        /// The device.
        path: PathBuf,
        /// The kernel name of what is mounted.
        part: String,
        /// Where.
        at: PathBuf,
    },
    /// It, or a part of it, or the disk it is on, is swapped to.
    #[error("{}: {part} is used as swap", path.display())]
    Swap {
        /// The device or file.
        path: PathBuf,
        /// The name of what is swapped to.
        part: String,
    },
    /// Another device is built upon it, or upon a part of it, or upon the disk it is on.
    #[error("{}: {part} is held by {by}", path.display())]
    Held {
        /// The device or file.
        path: PathBuf,
        /// The name of what is held.
        part: String,
        /// The kernel name of who holds it.
        by: String,
    },
    /// Someone has it open for himself alone.
    #[error("{} is in use: another program or the kernel has it open exclusively", path.display())]
    Busy {
        /// The device or file.
        path: PathBuf,
    },
    /// It refuses writes.
    #[error("{}: expected to write to it, found it read-only", path.display())]
    ReadOnly {
        /// The device.
        path: PathBuf,
    },
    /// It has no medium.
    #[error("{}: expected a size, found 0 bytes", path.display())]
    Empty {
        /// The device or file.
        path: PathBuf,
    },
    /// It is not the one any more that was looked at.
    #[error("{}: expected {expected}, found {found}: it was exchanged in between", path.display())]
    Exchanged {
        /// The device or file.
        path: PathBuf,
        /// What was looked at.
        expected: String,
        /// What was opened.
        found: String,
    },
    /// It cannot be read and written past the page cache.
    #[error("{}: its file system does not offer direct I/O", path.display())]
    NoDirect {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be opened, for another reason.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The device or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its uses could not be found out.
    #[error(transparent)]
    Sys(#[from] SysError),
}
