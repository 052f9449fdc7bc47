//! Attaching an NBD export as a block device of this kernel, and detaching it.
//!
//! There are two methods. Where the kernel has NBD devices and `nbd-client` is installed, these are
//! used. Otherwise `nbdfuse` exposes the export as a file and `losetup` the file as a block device,
//! with direct I/O, so that data is cached once, in the page cache of the device's user. Flushes
//! are passed through: an fsync or a FUA write at the loop device becomes a flush at the export, a
//! discard a trim. FUA as such is not passed through (a loop device has none: the kernel sends a
//! flush after the write), nor is any ordering that the export would prefer.
//!
//! # Server on the same machine
//!
//! The kernel frees memory by writing dirty pages, and here these pages are written by a user-space
//! program: the server, and with FUSE a second one in between. A deadlock occurs when such a
//! program needs memory in order to write and that memory has to come from pages that wait for the
//! program itself. `nbdfuse`'s manual warns of it explicitly. As countermeasures, `nbdfuse` is
//! started as an *I/O flusher* (its own allocations do not wait for writeback) and is exempt from
//! the OOM killer. Both need `CAP_SYS_RESOURCE`; without it the attachment carries a warning. The
//! server itself must call [`become_flusher`] in each thread before it serves, and lock its memory
//! (`mlockall`). A risk remains: use attached devices for tests and measurement, do not swap to
//! them, and for valuable data prefer the kernel's NBD or a server on another machine.
//!
//! # Lifetime
//!
//! An attachment exists until it is detached and belongs to no process: `nbdfuse` runs in its own
//! session. But a service manager ends every process in a service's control group with the service,
//! so do not attach from within a service that will be restarted. Each attachment has a state file,
//! written before the first step, from which any other process can [`Attachments::detach`] it,
//! complete or not.

mod errors;
mod fuse;
mod kernel;
pub mod programs;
mod queue;
mod uri;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use errors::AttachError;

use crate::process::{self, Process};
use crate::state::{self, Lock, StateError};
use crate::sys::Sys;
use crate::tuning::Setting;
use programs::{ProgramError, Programs};

/// Prefix of the state files' and directories' names.
const PREFIX: &str = "attach-";

/// The attachments of a state directory.
#[derive(Clone, Debug)]
pub struct Attachments {
    /// Directory of the state files, usually [`state::default_directory`].
    pub state_dir: PathBuf,
    /// The host's `/sys`, `/proc`, `/etc` and `/dev`.
    pub sys: Sys,
    /// Where to find the helper programs.
    pub programs: Programs,
    /// Timeout of each wait: for a program to end, a server to answer, a device to disappear.
    pub within: Duration,
}

/// An export to attach, with the device's properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The NBD URI.
    pub uri: String,
    /// Name of the attachment.
    pub name: String,
    /// Method to use.
    pub method: Method,
    /// Sector size of the device, in bytes.
    pub sector_size: u32,
    /// Whether the device refuses writes.
    pub read_only: bool,
    /// Whether the kernel should treat the device as rotational; file systems and read-ahead depend
    /// on it.
    pub rotational: bool,
}

/// Methods of attaching an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The kernel's NBD where it and `nbd-client` are present, else FUSE.
    #[default]
    Auto,
    /// The kernel's NBD.
    Kernel,
    /// `nbdfuse` and a loop device.
    Fuse,
}

/// An attached export, as recorded in its state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attached {
    /// Name of the attachment.
    pub name: String,
    /// The NBD URI.
    pub uri: String,
    /// The block device; `None` when attaching did not get that far.
    pub device: Option<PathBuf>,
    /// How it is attached.
    pub means: Means,
    /// The device's queue settings, with their previous values.
    pub queue: Vec<Setting>,
    /// Settings that failed, and why; the device works without them.
    pub warnings: Vec<String>,
}

/// What connects an export to its block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Means {
    /// `nbdfuse` and a loop device.
    Fuse {
        /// The directory of the file that is the export.
        directory: PathBuf,
        /// The `nbdfuse` process; `None` before it is started.
        server: Option<Process>,
    },
    /// A kernel NBD device.
    Kernel {
        /// The boot in which it was connected.
        boot: String,
        /// The process that the device reports as its connector, which identifies this connection
        /// among later ones; `None` before it is connected.
        pid: Option<String>,
    },
}

/// State of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Everything is in place.
    Working,
    /// Attaching was interrupted, or is still in progress.
    Half,
    /// A part is missing; it can only be detached.
    Broken {
        /// The missing part.
        what: &'static str,
    },
}

/// An attachment and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The contents of its state file.
    pub attached: Attached,
    /// Its state on this machine.
    pub status: Status,
}

/// Result of detaching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detached {
    /// The attachment as it was.
    pub attached: Attached,
    /// The error of the last flush, if it failed: writes may be lost.
    pub unflushed: Option<String>,
}

impl Export {
    /// Creates a writable, rotational export with 512-byte sectors, to be attached by either
    /// method.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Export {
        let (uri, name) = (uri.into(), name.into());
        Export { uri, name, method: Method::Auto, sector_size: 512, read_only: false, rotational: true }
    }
}

/// Marks the calling thread as an I/O flusher: its own allocations do not wait for writeback. For
/// servers of block devices on the same machine, in each thread; threads and programs started later
/// inherit it.
///
/// # Errors
/// The system's error: a kernel before 5.6, or no `CAP_SYS_RESOURCE`.
pub fn become_flusher() -> std::io::Result<()> {
    rustix::process::configure_io_flusher_behavior(true).map_err(Into::into)
}

impl Attachments {
    /// Returns the attachments of a state directory, with the installed programs.
    pub fn in_directory(state_dir: impl Into<PathBuf>) -> Attachments {
        let (sys, programs) = (Sys::default(), Programs::default());
        Attachments { state_dir: state_dir.into(), sys, programs, within: Duration::from_secs(15) }
    }

    /// Attaches an export. On an error, nothing of it remains.
    ///
    /// # Errors
    /// [`AttachError`]; only after [`AttachError::Cleanup`] do parts remain, with the state file.
    pub fn attach(&self, export: &Export) -> Result<Attached, AttachError> {
        check_name(&export.name)?;
        if !uri::is_nbd(&export.uri) {
            return Err(AttachError::Uri { found: export.uri.clone(), kernel: false });
        }
        if ![512, 1024, 2048, 4096].contains(&export.sector_size) {
            return Err(AttachError::SectorSize { found: export.sector_size });
        }
        let way = self.way(export)?;
        let directory = state::make_directory(&self.state_dir)?;
        let _lock = Lock::take(&directory)?;
        let path = directory.join(format!("{PREFIX}{}.json", export.name));
        let means = match way {
            Way::Kernel(_) => Means::Kernel { boot: process::boot(&self.sys)?, pid: None },
            Way::Fuse => Means::Fuse { directory: directory.join(format!("{PREFIX}{}", export.name)), server: None },
        };
        let (name, uri) = (export.name.clone(), export.uri.clone());
        let mut attached = Attached { name, uri, device: None, means, queue: Vec::new(), warnings: Vec::new() };
        match state::write_new(&path, &attached) {
            Ok(()) => {}
            Err(StateError::Exists { path }) => return Err(AttachError::Taken { name: attached.name, path }),
            Err(e) => return Err(e.into()),
        }
        let save = |attached: &Attached| state::replace(&path, attached);
        let done = match &way {
            Way::Kernel(parsed) => kernel::attach(self, export, parsed, &mut attached, &save),
            Way::Fuse => fuse::attach(self, export, &mut attached, &save),
        };
        match done {
            Ok(()) => Ok(attached),
            Err(error) => match self.take_down(&attached, &path) {
                Ok(_) => Err(error),
                Err(cleanup) => Err(AttachError::Cleanup { error: error.into(), cleanup: cleanup.into() }),
            },
        }
    }

    /// Detaches the attachment with this name or device; `Ok(None)` when there is none.
    ///
    /// # Errors
    /// [`AttachError::Used`] when the device is mounted, swapped to or held; nothing has changed
    /// then. After any other error it can be tried again.
    pub fn detach(&self, name_or_device: &str) -> Result<Option<Detached>, AttachError> {
        if !self.state_dir.is_dir() {
            return Ok(None);
        }
        let directory = state::make_directory(&self.state_dir)?;
        let _lock = Lock::take(&directory)?;
        for path in state::files(&directory, PREFIX)? {
            let named =
                path.file_name().is_some_and(|name| name.to_string_lossy() == format!("{PREFIX}{name_or_device}.json"));
            let found = match state::read::<Attached>(&path) {
                Ok(found) => found,
                // An unreadable state file counts only if its name matches.
                Err(e) if named => return Err(e.into()),
                Err(_) => None,
            };
            let Some(attached) = found.filter(|attached| named || is_its_device(attached, name_or_device)) else {
                continue;
            };
            let unflushed = self.take_down(&attached, &path)?;
            return Ok(Some(Detached { attached, unflushed }));
        }
        Ok(None)
    }

    /// Returns all attachments in the directory, by name; unreadable state files as errors.
    ///
    /// # Errors
    /// [`AttachError::State`] when the directory cannot be read.
    pub fn list(&self) -> Result<Vec<Result<Listed, AttachError>>, AttachError> {
        let files = state::files(&self.state_dir, PREFIX)?;
        let looked = files.into_iter().map(|path| {
            let attached: Option<Attached> = state::read(&path)?;
            attached.map(|attached| self.status(&attached).map(|status| Listed { attached, status })).transpose()
        });
        // A file that disappears before it is read belonged to an attachment that is now detached.
        Ok(looked.filter_map(Result::transpose).collect())
    }

    /// Checks the state of an attachment.
    ///
    /// # Errors
    /// [`AttachError::Sys`].
    pub fn status(&self, attached: &Attached) -> Result<Status, AttachError> {
        match &attached.means {
            Means::Fuse { directory, server } => fuse::status(self, attached, directory, server.as_ref()),
            Means::Kernel { boot, pid } => kernel::status(self, attached, boot, pid.as_deref()),
        }
    }

    /// Chooses the method, and checks its prerequisites before the first step.
    fn way(&self, export: &Export) -> Result<Way, AttachError> {
        let kernel = || kernel::way(self, export);
        match export.method {
            Method::Kernel => kernel(),
            Method::Fuse => fuse::way(self),
            // Of the two errors, the one for FUSE is what a user can act upon.
            Method::Auto => kernel().or_else(|_| fuse::way(self)),
        }
    }

    /// Removes all parts of an attachment, its state file last; returns the error of the last
    /// flush, if it failed.
    fn take_down(&self, attached: &Attached, path: &Path) -> Result<Option<String>, AttachError> {
        let unflushed = match &attached.means {
            Means::Fuse { directory, server } => fuse::take_down(self, attached, directory, server.as_ref()),
            Means::Kernel { boot, pid } => kernel::take_down(self, attached, boot, pid.as_deref()),
        }?;
        state::remove(path)?;
        Ok(unflushed)
    }

    fn run(&self, program: programs::Program, arguments: &[&std::ffi::OsStr]) -> Result<String, ProgramError> {
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_os_string()).collect();
        self.programs.run(program, &arguments, self.within)
    }
}

/// A usable method.
enum Way {
    Kernel(uri::Export),
    Fuse,
}

/// Checks a name, which becomes part of file names.
fn check_name(name: &str) -> Result<(), AttachError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    if begins && name.len() <= 64 && name.bytes().all(plain) {
        return Ok(());
    }
    Err(AttachError::Name { found: name.to_string() })
}

fn is_its_device(attached: &Attached, device: &str) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    device.contains('/') && attached.device.as_deref().is_some_and(|own| real(own) == real(Path::new(device)))
}

#[cfg(test)]
mod tests;
