//! Settings of the kernel's queue for a disk that headtime schedules: no I/O scheduler and no
//! merging, so that the kernel does not reorder requests again.
//!
//! The previous values are written to a state file before any change. They are restored when the
//! [`Tuning`] ends, or, if the process dies first, by the next call of [`restore_leftovers`]. A
//! state file names its process and its disk: the settings of a running process are left alone, and
//! values are never written to another disk that took over the name. A value that was changed by
//! another program in the interval is left as it is.
//!
//! A partition shares its disk's queue, so two processes cannot tune two partitions of one disk.

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

/// Prefix of the state files' names.
const PREFIX: &str = "tuning-";

/// The settings, in the order in which they are applied; restored in reverse. An attribute that the
/// queue does not have is skipped.
const WANTED: [(&str, &str); 2] = [("scheduler", "none"), ("nomerges", "2")];

/// A queue attribute with its previous and new value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The attribute's file below `queue/`.
    pub name: String,
    /// The previous value.
    pub before: String,
    /// The value that headtime writes.
    pub ours: String,
}

/// Identity of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Disk {
    name: String,
    number: DeviceNumber,
    /// Unique among disks until reboot. Absent before kernel 5.15, where the other fields must
    /// suffice.
    diskseq: Option<u64>,
    size: u64,
    model: Option<String>,
    serial: Option<String>,
}

/// Contents of a state file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    owner: Process,
    disk: Disk,
    settings: Vec<Setting>,
}

/// A tuned queue. Dropping it restores the previous values.
#[derive(Debug)]
pub struct Tuning {
    record: Record,
    path: PathBuf,
    queue: PathBuf,
    /// Opened before any change: restoring needs no privileges that the process may have dropped
    /// since, and cannot reach another disk, because these files disappear with their disk.
    files: Vec<File>,
    restored: bool,
}

/// Result of restoring a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Attributes that have their previous values again.
    pub put_back: Vec<String>,
    /// Attributes that were changed by another program since, and were left as they are.
    pub left: Vec<String>,
    /// The state file that could not be removed because the directory is no longer writable. It is
    /// harmless: the next [`restore_leftovers`] finds nothing to restore and removes it.
    pub file_left: Option<PathBuf>,
}

/// Outcome for a state file of an earlier process.
#[derive(Debug)]
pub enum Leftover {
    /// The process has ended; the queue was restored and the file removed.
    Restored {
        /// The disk's kernel name.
        disk: String,
        /// What was restored.
        restored: Restored,
    },
    /// The process has ended, and the disk is gone, its name belongs to another disk, or the
    /// machine was rebooted. The file was removed and nothing else changed.
    Gone {
        /// The disk's kernel name at that time.
        disk: String,
    },
    /// The process still runs; nothing was changed.
    InUse {
        /// The disk's kernel name.
        disk: String,
        /// The process.
        pid: u32,
    },
    /// The file could not be parsed or the queue not restored; the file is still there.
    Failed {
        /// The state file.
        path: PathBuf,
        /// The cause.
        error: TuningError,
    },
}

/// Why a queue cannot be tuned or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuningError {
    /// A running process has tuned it.
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
    /// A value was not accepted.
    #[error("cannot write {value:?} to {}: {source}", path.display())]
    Set {
        /// The file.
        path: PathBuf,
        /// The value.
        value: String,
        /// The I/O error.
        source: io::Error,
    },
    /// The disk was replaced after it was inspected.
    #[error("{disk} was exchanged since it was looked at")]
    Exchanged {
        /// The disk's kernel name.
        disk: String,
    },
    /// The state file or directory is unusable.
    #[error(transparent)]
    State(#[from] StateError),
    /// An attribute in `/sys` or `/proc` is unusable.
    #[error(transparent)]
    Sys(#[from] SysError),
}

impl Tuning {
    /// Tunes the queue of the disk that `device` is or lies on. Creates `state_dir` if necessary.
    /// On any error, no change remains.
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
        // Keeps other processes from restoring a leftover while the file of the same name is
        // written.
        let _lock = Lock::take(&directory)?;
        let path = directory.join(format!("{PREFIX}{}-{}.json", disk.number.major, disk.number.minor));
        let record = Record { owner: Process::own(sys)?, disk, settings };
        match state::write_new(&path, &record) {
            Ok(()) => {}
            Err(StateError::Exists { .. }) => return Err(taken(sys, path)?),
            Err(e) => return Err(e.into()),
        }
        // From here on, dropping `tuning` restores what was changed.
        let tuning = Tuning { record, path, queue, files, restored: false };
        for (setting, file) in tuning.record.settings.iter().zip(&tuning.files) {
            set(file, &tuning.queue.join(&setting.name), &setting.ours)?;
        }
        Ok(tuning)
    }

    /// Returns the settings with their previous values.
    pub fn settings(&self) -> &[Setting] {
        &self.record.settings
    }

    /// Returns the path of the state file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Restores the previous values and removes the state file.
    ///
    /// # Errors
    /// [`TuningError`]; the state file is then kept for [`restore_leftovers`].
    pub fn restore(mut self) -> Result<Restored, TuningError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<Restored, TuningError> {
        self.restored = true;
        let mut restored = Restored::default();
        let mut failed = None;
        for (setting, file) in self.record.settings.iter().zip(&self.files).rev() {
            // An attribute that cannot be restored does not prevent the others from being restored.
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
            // On an error, the state file remains.
            let _ = self.put_back();
        }
    }
}

/// Restores the queues that processes which have ended left tuned, and returns the outcome for each
/// state file in `state_dir`. To be called when a program starts, before it tunes a queue and while
/// it still has its privileges.
///
/// # Errors
/// [`TuningError::State`] when the directory cannot be read, [`TuningError::Sys`] when `/proc`
/// cannot; an error of a single file is a [`Leftover::Failed`].
pub fn restore_leftovers(sys: &Sys, state_dir: &Path) -> Result<Vec<Leftover>, TuningError> {
    let boot = process::boot(sys)?;
    if !state_dir.is_dir() {
        return Ok(Vec::new());
    }
    let _lock = match Lock::take(state_dir) {
        // The directory belongs to another user: its leftovers are that user's, and cannot be
        // restored by this process.
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

/// Handles one state file; `None` when another process has removed it since.
fn leftover(sys: &Sys, boot: &str, path: &Path) -> Result<Option<Leftover>, TuningError> {
    let Some(record) = state::read::<Record>(path)? else { return Ok(None) };
    let disk = record.disk.name.clone();
    if record.owner.is_running(sys)? {
        return Ok(Some(Leftover::InUse { disk, pid: record.owner.pid }));
    }
    let queue = sys.block(&disk).join("queue");
    // Opened before the disk is compared: if the disk is replaced in between, these files still
    // belong to the first disk, and writes to them fail.
    let mut open = Vec::new();
    for setting in &record.settings {
        // The record is only a file: write to no attribute but those that this program sets.
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

/// Explains why the state file exists already.
fn taken(sys: &Sys, path: PathBuf) -> Result<TuningError, TuningError> {
    Ok(match state::read::<Record>(&path)? {
        Some(record) if record.owner.is_running(sys)? => {
            TuningError::InUse { disk: record.disk.name, pid: record.owner.pid, path }
        }
        _ => TuningError::Leftover { path },
    })
}

/// Extracts an attribute's value: of a choice such as `[none] mq-deadline`, the one in brackets.
/// `None` when there is no choice.
pub(crate) fn chosen(text: &str) -> Option<String> {
    let text = text.trim();
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
    match bracketed {
        Some(chosen) => Some(chosen.to_string()),
        // A queue without schedulers reads `none`; a numeric attribute reads as its number.
        None => Some(text).filter(|text| !text.is_empty() && *text != "none").map(str::to_string),
    }
}

fn current(file: &File) -> io::Result<String> {
    let mut bytes = [0; 4096];
    let read = file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..read]);
    Ok(chosen(&text).unwrap_or_else(|| text.trim().to_string()))
}

/// Writes an attribute; sysfs expects a single write at offset 0.
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

    /// Whether both are the same disk. With `diskseq`, a disk that has grown is still the same.
    fn is(&self, other: &Disk) -> bool {
        match (self.diskseq, other.diskseq) {
            (Some(one), Some(two)) => self.number == other.number && one == two,
            _ => self == other,
        }
    }
}

#[cfg(test)]
mod tests;
