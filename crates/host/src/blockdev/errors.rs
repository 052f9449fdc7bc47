//! Why a device is refused.

use std::io;
use std::path::PathBuf;

use crate::sys::SysError;
use crate::usage::DeviceNumber;

/// Why a path could not be inspected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The path does not exist or is not accessible.
    #[error("cannot look at {}: {source}", path.display())]
    Look {
        /// The requested path.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// It is neither a block device nor a file.
    #[error("{}: expected a block device or a regular file, found {found}", path.display())]
    NeitherDeviceNorFile {
        /// The requested path.
        path: PathBuf,
        /// Its kind.
        found: &'static str,
    },
    /// It is a regular file.
    #[error("{}: expected a block device, found a regular file", path.display())]
    NotADevice {
        /// The requested path.
        path: PathBuf,
    },
    /// The node exists, but the device does not.
    #[error("{}: expected a device {number} in {}, found none", path.display(), place.display())]
    NoDevice {
        /// The requested path.
        path: PathBuf,
        /// Its device number.
        number: DeviceNumber,
        /// The sysfs path that was searched.
        place: PathBuf,
    },
    /// Its sysfs attributes are not as expected.
    #[error(transparent)]
    Sys(#[from] SysError),
}

/// Why a device or file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UseError {
    /// It is mounted.
    #[error("{} is mounted at {}", path.display(), at.display())]
    Mounted {
        /// The device.
        path: PathBuf,
        /// The mount point.
        at: PathBuf,
    },
    /// A partition of it is mounted, or the disk that it is a partition of.
    #[error("{}: {part} is mounted at {}", path.display(), at.display())]
    PartMounted {
        /// The device.
        path: PathBuf,
        /// The kernel name of what is mounted.
        part: String,
        /// The mount point.
        at: PathBuf,
    },
    /// The device, a partition of it or the disk it is on, or the file, is used as swap.
    #[error("{}: {part} is used as swap", path.display())]
    Swap {
        /// The device or file.
        path: PathBuf,
        /// The name of the swap device or file.
        part: String,
    },
    /// Another device is stacked upon it, upon a partition of it, or upon the disk it is on.
    #[error("{}: {part} is held by {by}", path.display())]
    Held {
        /// The device or file.
        path: PathBuf,
        /// The name of what is held.
        part: String,
        /// The kernel name of the holder.
        by: String,
    },
    /// It is open exclusively elsewhere.
    #[error("{} is in use: another program or the kernel has it open exclusively", path.display())]
    Busy {
        /// The device or file.
        path: PathBuf,
    },
    /// It is read-only.
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
    /// It was replaced after it was inspected.
    #[error("{}: expected {expected}, found {found}: it was exchanged in between", path.display())]
    Exchanged {
        /// The device or file.
        path: PathBuf,
        /// The inspected device.
        expected: String,
        /// The opened device.
        found: String,
    },
    /// It does not support direct I/O.
    #[error("{}: its file system does not offer direct I/O", path.display())]
    NoDirect {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be opened for another reason.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The device or file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// Its users could not be determined.
    #[error(transparent)]
    Sys(#[from] SysError),
}
