//! Errors of the background applications.

use std::io;
use std::path::{Path, PathBuf};

use crate::control::client::ClientError;

use super::progress::JournalError;
use super::sums::SumsError;
use super::units::UnitsError;

/// Why a background application failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// The server cannot be reached or rejects a call.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The journal is damaged, or of another job.
    #[error(transparent)]
    Journal(JournalError),
    /// The file of checksums is damaged, or of another job.
    #[error(transparent)]
    Sums(SumsError),
    /// The range to read does not exist.
    #[error(transparent)]
    Units(#[from] UnitsError),
    /// An error on a file of this program.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: io::Error,
    },
    /// No space is left for a file of this program.
    #[error("{}: no room is left for it", .0.display())]
    Full(PathBuf),
    /// The output file exists.
    #[error("{}: expected no file of this name, found one (--overwrite replaces it)", .0.display())]
    Exists(PathBuf),
    /// The path of a file names something other than a plain file.
    #[error("{}: expected a plain file, found a directory, a device or a pipe", .0.display())]
    NoPlainFile(PathBuf),
    /// The path cannot name a file.
    #[error("{}: expected the name of a file, found that of a directory", .0.display())]
    NoName(PathBuf),
    /// A file of an earlier run does not fit.
    #[error("{}: {why}; --restart begins anew", path.display())]
    Leftover {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another headtime process uses this file.
    #[error("{}: another headtime uses it", .0.display())]
    InUse(PathBuf),
    /// The length of a write's input differs from that of the ranges.
    #[error("{}: expected {expected} bytes, as the range has, found {found}", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes of the range.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// A pattern is empty or too long.
    #[error("pattern: expected 1 to {most} bytes, found {found}")]
    Pattern {
        /// The longest, bytes.
        most: usize,
        /// Its bytes.
        found: usize,
    },
    /// A unit is shorter than the pattern.
    #[error("unit: expected at least {least} sectors for a search, found {found}")]
    SearchUnit {
        /// The least, sectors.
        least: u64,
        /// The unit given, sectors.
        found: u32,
    },
    /// Too many partial matches at block boundaries.
    #[error("more than {0} partial matches at block boundaries: expected a pattern that is rarer, or a larger --unit")]
    PartialMatches(usize),
    /// The program to which blocks are passed reads no more of its input.
    #[error("the program reads no more of its input: {0}")]
    Program(io::Error),
    /// A copy's destination cannot be written.
    #[error("cannot copy to {what}: {why}")]
    Destination {
        /// The export or the whole disk.
        what: String,
        /// The cause.
        why: &'static str,
    },
    /// The session with a copy's destination was lost.
    #[error("the destination: {0}; the same command goes on")]
    DestinationLost(String),
    /// A copy's destination is too small.
    #[error("cannot copy to {what}: expected at least {expected} bytes, found {found}")]
    DestinationSize {
        /// The export or the whole disk.
        what: String,
        /// Bytes of the source.
        expected: u64,
        /// Bytes of the destination.
        found: u64,
    },
    /// A copy's destination has data.
    #[error(
        "cannot copy to {0}: expected nothing but zeros at its beginning and end, found data (--overwrite replaces it)"
    )]
    DestinationData(String),
    /// A copy's destination could not write a block.
    #[error("cannot copy to {what}: expected to write {bytes} bytes at byte {offset} of it, found: {why}")]
    DestinationWrite {
        /// The export or the whole disk.
        what: String,
        /// Offset in the export or on the disk, bytes.
        offset: u64,
        /// Bytes that were not written.
        bytes: u64,
        /// The server's cause.
        why: String,
    },
    /// A copy's destination could not be flushed, so what was written last may not be durable.
    #[error("cannot copy to {what}: expected a flush of its disk, found: {why}")]
    DestinationFlush {
        /// The export or the whole disk.
        what: String,
        /// The server's cause.
        why: String,
    },
    /// A copy or its units are not whole sectors of the destination.
    #[error(
        "expected whole sectors of {sector} bytes at the destination, found a copy of {bytes} bytes in units of {unit}"
    )]
    CopySectors {
        /// Bytes of a sector of the destination.
        sector: u64,
        /// Bytes of the copy.
        bytes: u64,
        /// Bytes of a unit.
        unit: u64,
    },
    /// The server has no such export.
    #[error("expected one of the exports {there}, found \"{name}\"")]
    NoExport {
        /// The name asked for.
        name: String,
        /// The existing exports.
        there: String,
    },
    /// The export is not reorganised.
    #[error("export {name:?}: expected a reserve in the server's configuration (export.reorganise), found none")]
    NotReorganised {
        /// Its name.
        name: String,
    },
    /// Units of an export are in its reserve, so its sectors are not what its clients see.
    #[error(
        "{moved} units of export {name:?} are in its reserve: 'headtime reorganise --undo' brings them home, or read \
         the export as its client"
    )]
    Reorganised {
        /// Its name.
        name: String,
        /// Units that are not at home.
        moved: u64,
    },
    /// The reserve of an export is within it, so the sectors behind it are not where its clients
    /// see them.
    #[error("export {name:?} has its reserve within it: read it as its client")]
    ReserveWithin {
        /// Its name.
        name: String,
    },
    /// The server does no background work.
    #[error(
        "the server does no background work: its scheduler.fill is \"none\", or its disk's write cache is on, or it is \
         no rotating disk"
    )]
    NoFill,
    /// The server has another disk than before.
    #[error("the server has another disk now: expected {expected}, found {found}")]
    OtherDisk {
        /// The previous disk.
        expected: String,
        /// The current disk.
        found: String,
    },
    /// The export has changed since the job started; the server was restarted.
    #[error("export {name:?} is another now than when this began; what was read of it does not go with what would be")]
    OtherExport {
        /// Its name.
        name: String,
    },
    /// Another program uses the same journal.
    #[error("{}: another program works with this journal", .0.display())]
    JournalInUse(PathBuf),
    /// It was stopped before the server answered.
    #[error("stopped before it began")]
    Stopped,
    /// The server rejected a call.
    #[error("the server refused: {0}")]
    Refused(String),
    /// The disk no longer responds.
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

/// Checks that the path names a plain file or nothing: opening a pipe would wait, and a device has
/// no end or would be replaced by a file.
pub fn plain_or_none(path: &Path) -> Result<(), AppError> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(AppError::NoPlainFile(path.into())),
        _ => Ok(()),
    }
}

impl AppError {
    /// Converts a system error on a file; a full disk is kept apart, since space can be freed.
    pub fn file(path: &Path, why: io::Error) -> AppError {
        match why.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => AppError::Full(path.into()),
            _ => AppError::File { path: path.into(), why },
        }
    }
}
