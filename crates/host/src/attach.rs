//! An NBD export as a block device of this kernel, and away again.
//!
//! There are two ways. Where the kernel has NBD devices and `nbd-client` is installed, these are
//! used. Elsewhere `nbdfuse` makes a file of the export and `losetup` a block device of the file,
//! with direct I/O, so that data is cached once, in the page cache of whoever uses the device.
//! Flushes get through: an fsync or a write with FUA at the loop device is a flush at the export, a
//! discard is a trim. What does not get through is FUA as such (a loop device has none: the kernel
//! sends a flush behind the write) and any idea of the order that the export would have liked.
//!
//! # When the server is on the same machine
//!
//! Memory is freed by writing dirty pages, and these pages are written by a user program here: the
//! server, and with FUSE another one between. When a program needs memory in order to write, and
//! the memory would have to come from pages that wait for that very program, nobody gets on.
//! `nbdfuse`'s manual warns of this in as many words. What is done against it: `nbdfuse` is started
//! as an *I/O flusher* (its own allocations do not wait for writing) and is not chosen when the
//! kernel kills for want of memory. Both need `CAP_SYS_RESOURCE`; without it the attachment carries
//! a warning. What a server must do itself is call [`become_flusher`] in each of its threads before
//! it serves, and keep its memory (`mlockall`). What remains is a risk: use attached devices for
//! tests and measurement, do not swap to them, and prefer the kernel's NBD, or a server on another
//! machine, for data that matters.
//!
//! # What outlives what
//!
//! An attachment is there until it is detached, and belongs to no process: `nbdfuse` runs in a
//! session of its own. But a service manager ends everything in a service's control group with the
//! service, so that one should not attach from within a service that is to be restarted. Each
//! attachment has a state file, written before anything is begun, from which any other process can
//! [`Attachments::detach`] it, complete or not.

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

/// Beginning of the names of state files and directories.
const PREFIX: &str = "attach-";

/// The attachments of a state directory, and how to make more.
#[derive(Clone, Debug)]
pub struct Attachments {
    /// Where the state files are; [`state::default_directory`] as a rule.
    pub state_dir: PathBuf,
    /// The system.
    pub sys: Sys,
    /// Where other programs are found.
    pub programs: Programs,
    /// How long to wait for anything: a program to end, a server to answer, a device to go.
    pub within: Duration,
}

/// What is to be attached, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The NBD URI.
    pub uri: String,
    /// What the attachment is to be called.
    pub name: String,
    /// By which way.
    pub method: Method,
    /// The device's sectors, in bytes.
    pub sector_size: u32,
    /// Whether writes are to be refused.
    pub read_only: bool,
    /// What the kernel is to think about whether it turns; file systems and readahead care.
    pub rotational: bool,
}

/// Ways from an export to a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The kernel's NBD where there is one and `nbd-client`, else by way of FUSE.
    #[default]
    Auto,
    /// The kernel's NBD.
    Kernel,
    /// `nbdfuse` and a loop device.
    Fuse,
}

/// An attached export, as its state file tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attached {
    /// What it is called.
    pub name: String,
    /// The NBD URI.
    pub uri: String,
    /// The block device; `None` when attaching did not get so far.
    pub device: Option<PathBuf>,
    /// By which way.
    pub means: Means,
    /// What was set of the device's queue, and what it was before.
    pub queue: Vec<Setting>,
    /// What could not be set, and why; the device works all the same.
    pub warnings: Vec<String>,
}

/// What stands between an export and its block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Means {
    /// `nbdfuse` and a loop device.
    Fuse {
        /// The directory with the file that is the export.
        directory: PathBuf,
        /// `nbdfuse`; `None` when it was not started yet.
        server: Option<Process>,
    },
    /// A kernel NBD device.
    Kernel {
        /// Since which start of the machine.
        boot: String,
        /// What the device says of who connected it, by which our connection is told from a later
        /// one; `None` when it was not connected yet.
        pid: Option<String>,
    },
}

/// Whether an attachment is what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Everything is there.
    Working,
    /// Attaching it did not come to its end, or goes on just now.
    Half,
    /// A part of it is gone; it can only be detached.
    Broken {
        /// What is gone.
        what: &'static str,
    },
}

/// An attachment and how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What its state file says.
    pub attached: Attached,
    /// What the system says.
    pub status: Status,
}

/// What was detached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detached {
    /// As it was.
    pub attached: Attached,
    /// Why the last flush failed, if it did: writes may be lost.
    pub unflushed: Option<String>,
}

impl Export {
    /// An export as a device that turns, of 512-byte sectors, to be written to, by whichever way
    /// there is.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Export {
        let (uri, name) = (uri.into(), name.into());
        Export { uri, name, method: Method::Auto, sector_size: 512, read_only: false, rotational: true }
    }
}

/// Tells the kernel that this thread writes what memory waits for: its own allocations will not
/// wait for writing. For servers of block devices of the same machine, in each thread; threads and
/// programs started by it inherit it.
///
/// # Errors
/// What the system says: older than 5.6, or no `CAP_SYS_RESOURCE`.
pub fn become_flusher() -> std::io::Result<()> {
    rustix::process::configure_io_flusher_behavior(true).map_err(Into::into)
}

impl Attachments {
    /// Those of a state directory, with the programs that are installed.
    pub fn in_directory(state_dir: impl Into<PathBuf>) -> Attachments {
        let (sys, programs) = (Sys::default(), Programs::default());
        Attachments { state_dir: state_dir.into(), sys, programs, within: Duration::from_secs(15) }
    }

    /// Attaches an export. Whatever fails, nothing of it is left.
    ///
    /// # Errors
    /// [`AttachError`]; only with [`AttachError::Cleanup`] something is left, and its state file,
    /// too.
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

    /// Detaches what has this name or is this device; `None` when nothing is, which is well, too.
    ///
    /// # Errors
    /// [`AttachError::Used`] when it is mounted, swapped to or held, and nothing has changed then.
    /// After any other error it can be tried again.
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
                // One that cannot be read may be the one only if it has the name.
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

    /// All attachments of the directory, by name; those whose state files cannot be read as errors.
    ///
    /// # Errors
    /// [`AttachError::State`] when the directory cannot be read.
    pub fn list(&self) -> Result<Vec<Result<Listed, AttachError>>, AttachError> {
        let files = state::files(&self.state_dir, PREFIX)?;
        let looked = files.into_iter().map(|path| {
            let attached: Option<Attached> = state::read(&path)?;
            attached.map(|attached| self.status(&attached).map(|status| Listed { attached, status })).transpose()
        });
        // A file that is gone by the time it is read was an attachment that is detached by now.
        Ok(looked.filter_map(Result::transpose).collect())
    }

    /// Whether an attachment is what it should be.
    ///
    /// # Errors
    /// [`AttachError::Sys`].
    pub fn status(&self, attached: &Attached) -> Result<Status, AttachError> {
        match &attached.means {
            Means::Fuse { directory, server } => fuse::status(self, attached, directory, server.as_ref()),
            Means::Kernel { boot, pid } => kernel::status(self, attached, boot, pid.as_deref()),
        }
    }

    /// Which way to go, with everything it needs at hand before anything is begun.
    fn way(&self, export: &Export) -> Result<Way, AttachError> {
        let kernel = || kernel::way(self, export);
        match export.method {
            Method::Kernel => kernel(),
            Method::Fuse => fuse::way(self),
            // That the other way is not open either is what people can do something about.
            Method::Auto => kernel().or_else(|_| fuse::way(self)),
        }
    }

    /// Takes away whatever there is of an attachment, and its state file at last; why the last
    /// flush failed.
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

/// A way that is open.
enum Way {
    Kernel(uri::Export),
    Fuse,
}

/// A name becomes a part of file names.
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
