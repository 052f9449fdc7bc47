//! Why a background application did not reach its end.

use std::io;
use std::path::{Path, PathBuf};

use crate::control::client::ClientError;

use super::progress::JournalError;
use super::sums::SumsError;
use super::units::UnitsError;

/// Why.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The server cannot be reached or refuses.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The journal is damaged, or of another job.
    #[error(transparent)]
    Journal(JournalError),
    /// The file of checksums is damaged, or of another job.
    #[error(transparent)]
    Sums(SumsError),
    /// What is to be read is not there.
    #[error(transparent)]
    Units(#[from] UnitsError),
    /// A file of ours.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// No room for a file of ours.
    #[error("{}: no room is left for it", .0.display())]
    Full(PathBuf),
    /// There is something already where the result should go.
    #[error("{}: expected no file of this name, found one (--overwrite replaces it)", .0.display())]
    Exists(PathBuf),
    /// A file of ours is to be there, or was named, and something else is.
    #[error("{}: expected a plain file, found a directory, a device or a pipe", .0.display())]
    NoPlainFile(PathBuf),
    /// A file of ours cannot be called that.
    #[error("{}: expected the name of a file, found that of a directory", .0.display())]
    NoName(PathBuf),
    /// Something of an earlier run does not fit.
    #[error("{}: {why}; --restart begins anew", path.display())]
    Leftover {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another headtime works on this file.
    #[error("{}: another headtime uses it", .0.display())]
    InUse(PathBuf),
    /// The input of a write is not as long as what is to be written.
    #[error("{}: expected {expected} bytes, as the range has, found {found}", path.display())]
    Length {
        /// Which file.
        path: PathBuf,
        /// Bytes of the range.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// The server has no such export.
    #[error("expected one of the exports {there}, found \"{name}\"")]
    NoExport {
        /// The name asked for.
        name: String,
        /// Those that there are.
        there: String,
    },
    /// The server does no background work.
    #[error(
        "the server does no background work: its scheduler.fill is \"none\", or its disk's write cache is on, or it is \
         no rotating disk"
    )]
    NoFill,
    /// It is not the disk it was before.
    #[error("the server has another disk now: expected {expected}, found {found}")]
    OtherDisk {
        /// What was served before.
        expected: String,
        /// What is served now.
        found: String,
    },
    /// After a new start of the server the export is another than it was.
    #[error("export {name:?} is another now than when this began; what was read of it does not go with what would be")]
    OtherExport {
        /// Its name.
        name: String,
    },
    /// Another program works with the same journal.
    #[error("{}: another program works with this journal", .0.display())]
    JournalInUse(PathBuf),
    /// Somebody stopped it before the server had answered.
    #[error("stopped before it began")]
    Stopped,
    /// The server refused a call.
    #[error("the server refused: {0}")]
    Refused(String),
    /// The disk does not answer any more.
    #[error("the disk is gone")]
    Gone,
    /// Blocks of a point-in-time image were overwritten before they could be read, or the session
    /// ended.
    #[error("the image of one point in time is lost: {0}")]
    Lost(String),
}

impl From<JournalError> for AppError {
    fn from(e: JournalError) -> AppError {
        match e {
            JournalError::Io { path, why } => AppError::file(&path, why),
            e => AppError::Journal(e),
        }
    }
}

impl From<SumsError> for AppError {
    fn from(e: SumsError) -> AppError {
        match e {
            SumsError::Io { path, why } => AppError::file(&path, why),
            e => AppError::Sums(e),
        }
    }
}

/// What is at this path, if anything is, must be a plain file: a pipe would be waited for, a device
/// has no end or would be replaced by a file of its name.
pub fn plain_or_none(path: &Path) -> Result<(), AppError> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(AppError::NoPlainFile(path.into())),
        _ => Ok(()),
    }
}

impl AppError {
    /// What the system says of a file of ours; a full disk is told apart, since more room cures it.
    pub fn file(path: &Path, why: io::Error) -> AppError {
        match why.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => AppError::Full(path.into()),
            _ => AppError::File { path: path.into(), why },
        }
    }
}
