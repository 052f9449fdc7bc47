//! Where an application keeps its journal, and the lock on it.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::error::{AppError, plain_or_none};
use super::link::disk;
use crate::control::v1::InfoReply;
use crate::private;

/// The location of a journal.
#[derive(Clone, Debug)]
pub enum Journal {
    /// This file.
    At(PathBuf),
    /// This directory, with a file name specific to the application, the disk and the export. The
    /// directory is created if it is missing.
    In(PathBuf),
}

impl Journal {
    /// Returns the journal's path. `app` is the application, and what else its jobs differ in.
    pub(super) fn path(&self, app: &str, info: &InfoReply, export: Option<&str>) -> Result<PathBuf, AppError> {
        let folder = match self {
            Journal::At(path) => return Ok(path.clone()),
            Journal::In(folder) => folder,
        };
        std::fs::create_dir_all(folder).map_err(|e| AppError::file(folder, e))?;
        let plain =
            |text: &str| text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
        let of = export.map_or(String::new(), |e| format!("-export-{}", plain(e)));
        Ok(folder.join(format!("{app}-{}-{}{of}.journal", plain(&disk(info)), info.sectors)))
    }
}

/// Locks a journal against other applications while the result exists. The lock is on a separate
/// file, since the journal's file is replaced on each write.
pub(super) fn lock(journal: &Path) -> Result<File, AppError> {
    plain_or_none(journal)?;
    let mut path = journal.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let file = private::open(&path, true).map_err(|e| AppError::file(&path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(AppError::JournalInUse(journal.into())),
        Err(TryLockError::Error(e)) => Err(AppError::file(&path, e)),
    }
}
