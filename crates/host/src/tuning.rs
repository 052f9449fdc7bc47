//! The kernel's queue of a disk whose order is decided here must not decide it again: no I/O
//! scheduler, no merging.
//!
//! What was set before is written to a state file before anything is changed, and comes back when
//! the [`Tuning`] ends; and should the process end without that, when the next one calls
//! [`restore_leftovers`]. A state file names the process that wrote it and the disk it is about, so
//! that the settings of a living process are left alone and nothing is ever put back onto another
//! disk that took the name. A value that somebody else has changed meanwhile is left as he set it.
//!
//! A partition's queue is its disk's. So two processes cannot tune two partitions of one disk.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::blockdev::BlockDevice;
use crate::process::{self, Process};
use crate::state::{self, Lock, StateError};
use crate::sys::{self, Sys, SysError};
use crate::usage::{DeviceNumber, number_of};

/// Beginning of the names of the state files.
const PREFIX: &str = "tuning-";

/// What is set, in this order; it is put back in the opposite one. Where a queue does not have one,
/// it is left out.
const WANTED: [(&str, &str); 2] = [("scheduler", "none"), ("nomerges", "2")];

/// One value of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The file below `queue/`.
    pub name: String,
    /// What it said before.
    pub before: String,
    /// What we write.
    pub ours: String,
}

/// By what a disk is known again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Disk {
    name: String,
    number: DeviceNumber,
    /// Never the same for two disks while the machine runs; absent before kernel 5.15, where the
    /// rest must do.
    diskseq: Option<u64>,
    size: u64,
    model: Option<String>,
    serial: Option<String>,
}

/// What a state file says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    owner: Process,
    disk: Disk,
    settings: Vec<Setting>,
}

/// A queue as it is set for us. Dropped, it becomes again what it was.
#[derive(Debug)]
pub struct Tuning {
    record: Record,
    path: PathBuf,
    queue: PathBuf,
    /// Open since before anything was changed: what is put back needs no rights that the process
    /// may have given up, and cannot come to another disk, because these files end with theirs.
    files: Vec<File>,
    restored: bool,
}

/// What came of putting a queue back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Values that are as they were before.
    pub put_back: Vec<String>,
    /// Values that somebody else has changed since, and that are as he set them.
    pub left: Vec<String>,
    /// The state file that could not be removed, because the directory is not ours any more. It
    /// does no harm: the next [`restore_leftovers`] finds nothing to do, and removes it.
    pub file_left: Option<PathBuf>,
}

/// What a state file of an earlier process turned out to be.
#[derive(Debug)]
pub enum Leftover {
    /// Its process has ended; the queue was put back and the file removed.
    Restored {
        /// The disk's kernel name.
        disk: String,
        /// What was done.
        restored: Restored,
    },
    /// Its process has ended, and its disk is gone, or another has its name, or the machine was
    /// started since. The file was removed and nothing else touched.
    Gone {
        /// The disk's kernel name at that time.
        disk: String,
    },
    /// Its process still runs; nothing was touched.
    InUse {
        /// The disk's kernel name.
        disk: String,
        /// The process.
        pid: u32,
    },
    /// It could not be understood or put back; it is still there.
    Failed {
        /// The state file.
        path: PathBuf,
        /// Why.
        error: TuningError,
    },
}

/// Why a queue cannot be set or put back.
#[derive(Debug, thiserror::Error)]
pub enum TuningError {
    /// A living process has set it.
    #[error("the queue of {disk} is in use by process {pid} ({})", path.display())]
    InUse {
        /// The disk's kernel name.
        disk: String,
        /// The process.
        pid: u32,
        /// Its state file.
        path: PathBuf,
    },
    /// A process that has ended left a state file.
    #[error("expected no leftover of an earlier process, found {}: its settings must be put back \
            first", path.display())]
    Leftover {
        /// The state file.
        path: PathBuf,
    },
    /// A value was not taken.
    #[error("cannot write {value:?} to {}: {source}", path.display())]
    Set {
        /// The file.
        path: PathBuf,
        /// The value.
        value: String,
        /// What the system said.
        source: io::Error,
    },
    /// The disk is not the one any more that was looked at.
    #[error("{disk} was exchanged since it was looked at")]
    Exchanged {
        /// The disk's kernel name.
        disk: String,
    },
    /// The state file is not usable.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system's description is not usable.
    #[error(transparent)]
    Sys(#[from] SysError),
}

impl Tuning {
    /// Sets the queue of the disk that `device` is or lies on. The state file goes into
    /// `state_dir`, which is made if need be. Whatever fails, nothing is left changed.
    ///
    /// # Errors
    /// [`TuningError`].
    pub fn apply(sys: &Sys, device: &BlockDevice, state_dir: &Path) -> Result<Tuning, TuningError> {
        let disk = Disk::read(sys, device.disk())?;
        if disk.diskseq != device.diskseq {
            return Err(TuningError::Exchanged { disk: disk.name });
        }
        let queue = sys.block(&disk.name).join("queue");
        let (mut settings, mut files) = (Vec::new(), Vec::new());
        for (name, ours) in WANTED {
            let path = queue.join(name);
            let Some(before) = sys::text_if_there(&path)?.and_then(|text| chosen(&text)) else { continue };
            files.push(OpenOptions::new().read(true).write(true).open(&path).map_err(SysError::read(&path))?);
            settings.push(Setting { name: name.to_string(), before, ours: ours.to_string() });
        }
        let directory = state::make_directory(state_dir)?;
        // Nobody puts back a leftover while the file of the same name is being written.
        let _lock = Lock::take(&directory)?;
        let path = directory.join(format!("{PREFIX}{}-{}.json", disk.number.major, disk.number.minor));
        let record = Record { owner: Process::own(sys)?, disk, settings };
        match state::write_new(&path, &record) {
            Ok(()) => {}
            Err(StateError::Exists { .. }) => return Err(taken(sys, path)?),
            Err(e) => return Err(e.into()),
        }
        // From here on dropping it puts back what was changed.
        let tuning = Tuning { record, path, queue, files, restored: false };
        for (setting, file) in tuning.record.settings.iter().zip(&tuning.files) {
            set(file, &tuning.queue.join(&setting.name), &setting.ours)?;
        }
        Ok(tuning)
    }

    /// What was set, and what it was before.
    pub fn settings(&self) -> &[Setting] {
        &self.record.settings
    }

    /// The state file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts everything back and removes the state file.
    ///
    /// # Errors
    /// [`TuningError`]; the state file is kept then, for [`restore_leftovers`].
    pub fn restore(mut self) -> Result<Restored, TuningError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<Restored, TuningError> {
        self.restored = true;
        let mut restored = Restored::default();
        let mut failed = None;
        for (setting, file) in self.record.settings.iter().zip(&self.files).rev() {
            // One that cannot be put back does not keep the others from it.
            if let Err(e) = put_back(setting, file, &self.queue, &mut restored) {
                failed.get_or_insert(e);
            }
        }
        if let Some(e) = failed {
            return Err(e);
        }
        restored.file_left = match state::remove(&self.path) {
            Ok(()) => None,
            Err(StateError::Remove { path, source }) if source.kind() == io::ErrorKind::PermissionDenied => Some(path),
            Err(e) => return Err(e.into()),
        };
        Ok(restored)
    }
}

impl Drop for Tuning {
    fn drop(&mut self) {
        if !self.restored {
            // What fails here is still in the state file.
            let _ = self.put_back();
        }
    }
}

/// Puts back what processes that have ended left in `state_dir`, and says what became of each state
/// file. For the start of a program, before it tunes anything, and while it still has its rights.
///
/// # Errors
/// [`TuningError::State`] when the directory cannot be read, [`TuningError::Sys`] when `/proc`
/// cannot; what concerns one file only is a [`Leftover::Failed`].
pub fn restore_leftovers(sys: &Sys, state_dir: &Path) -> Result<Vec<Leftover>, TuningError> {
    let boot = process::boot(sys)?;
    if !state_dir.is_dir() {
        return Ok(Vec::new());
    }
    let _lock = match Lock::take(state_dir) {
        // Another user's, closed to us: he left what is to be put back there, and we could not.
        Err(StateError::Directory { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(Vec::new());
        }
        lock => lock?,
    };
    let files = state::files(state_dir, PREFIX)?;
    let examined = files
        .into_iter()
        .map(|path| leftover(sys, &boot, &path).unwrap_or_else(|error| Some(Leftover::Failed { path, error })));
    Ok(examined.flatten().collect())
}

/// What is to be said of one state file; `None` when another process has removed it meanwhile.
fn leftover(sys: &Sys, boot: &str, path: &Path) -> Result<Option<Leftover>, TuningError> {
    let Some(record) = state::read::<Record>(path)? else { return Ok(None) };
    let disk = record.disk.name.clone();
    if record.owner.is_running(sys)? {
        return Ok(Some(Leftover::InUse { disk, pid: record.owner.pid }));
    }
    let queue = sys.block(&disk).join("queue");
    // Opened before the disk is compared: should it go and another come in between, these files are
    // still the first one's, and writing to them fails.
    let mut open = Vec::new();
    for setting in &record.settings {
        // The record is only a file: nothing but what this program sets is ever written to.
        let known = WANTED.iter().any(|(name, _)| *name == setting.name);
        if let Some(file) = known.then(|| OpenOptions::new().read(true).write(true).open(queue.join(&setting.name))) {
            open.push((setting, file));
        }
    }
    let same_boot = record.owner.boot == boot;
    if !same_boot || !Disk::read(sys, &disk).is_ok_and(|now| now.is(&record.disk)) {
        state::remove(path)?;
        return Ok(Some(Leftover::Gone { disk }));
    }
    let mut restored = Restored::default();
    for (setting, file) in open.into_iter().rev() {
        let name = queue.join(&setting.name);
        put_back(setting, &file.map_err(SysError::read(&name))?, &queue, &mut restored)?;
    }
    state::remove(path)?;
    Ok(Some(Leftover::Restored { disk, restored }))
}

pub(crate) fn put_back(
    setting: &Setting,
    file: &File,
    queue: &Path,
    restored: &mut Restored,
) -> Result<(), TuningError> {
    let path = queue.join(&setting.name);
    let now = current(file).map_err(SysError::read(&path))?;
    if now == setting.before {
        restored.put_back.push(setting.name.clone());
    } else if now == setting.ours {
        set(file, &path, &setting.before)?;
        restored.put_back.push(setting.name.clone());
    } else {
        restored.left.push(setting.name.clone());
    }
    Ok(())
}

/// Why the state file is there already.
fn taken(sys: &Sys, path: PathBuf) -> Result<TuningError, TuningError> {
    Ok(match state::read::<Record>(&path)? {
        Some(record) if record.owner.is_running(sys)? => {
            TuningError::InUse { disk: record.disk.name, pid: record.owner.pid, path }
        }
        _ => TuningError::Leftover { path },
    })
}

/// A value as it is written: of a choice such as `[none] mq-deadline`, the one in brackets. `None`
/// when there is nothing to choose.
pub(crate) fn chosen(text: &str) -> Option<String> {
    let text = text.trim();
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
    match bracketed {
        Some(chosen) => Some(chosen.to_string()),
        // A queue without schedulers says `none`; a number is a number.
        None => Some(text).filter(|text| !text.is_empty() && *text != "none").map(str::to_string),
    }
}

fn current(file: &File) -> io::Result<String> {
    let mut bytes = [0; 4096];
    let read = file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..read]);
    Ok(chosen(&text).unwrap_or_else(|| text.trim().to_string()))
}

/// Sysfs takes a value in one write, from the beginning.
pub(crate) fn set(file: &File, path: &Path, value: &str) -> Result<(), TuningError> {
    let failed = |source| TuningError::Set { path: path.to_path_buf(), value: value.to_string(), source };
    let written = file.write_at(value.as_bytes(), 0).map_err(failed)?;
    if written != value.len() {
        return Err(failed(io::ErrorKind::WriteZero.into()));
    }
    Ok(())
}

impl Disk {
    fn read(sys: &Sys, name: &str) -> Result<Disk, SysError> {
        let directory = sys.block(name);
        Ok(Disk {
            name: name.to_string(),
            number: number_of(sys, name)?,
            diskseq: sys::number_if_there(&directory.join("diskseq"))?,
            size: sys::number(&directory.join("size"))?,
            model: sys::text_if_there(&directory.join("device/model"))?,
            serial: sys::serial(&directory)?,
        })
    }

    /// Whether it is the same disk. One that grew is the same, as long as the kernel counts disks.
    fn is(&self, other: &Disk) -> bool {
        match (self.diskseq, other.diskseq) {
            (Some(one), Some(two)) => self.number == other.number && one == two,
            _ => self == other,
        }
    }
}

#[cfg(test)]
mod tests;
