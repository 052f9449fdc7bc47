//! The file beneath a virtual drive: sparse, as long as the drive, and nobody else's.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

/// Why a file cannot be a drive's.
#[derive(Debug, thiserror::Error)]
pub enum BackingError {
    /// The system refuses.
    #[error("{}: {why}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// It is no plain file.
    #[error("{}: expected a plain file, or none", .0.display())]
    NoFile(PathBuf),
    /// It is another drive's, or something else altogether.
    #[error("{}: expected an empty file or one of {expected} bytes, as the drive has, found {found}", path.display())]
    Length {
        /// Which.
        path: PathBuf,
        /// Bytes of the drive.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// Another program has it.
    #[error("{}: another virtual drive uses it", .0.display())]
    InUse(PathBuf),
}

/// A server that was killed may be gone and its io_uring not yet: the kernel takes that down behind its back, and lets go of the file then.
const LET_GO: Duration = Duration::from_secs(1);

/// Opens or makes the file of a drive of so many bytes. As long as it is open no other drive can use it. An existing file
/// of the right length is taken as it is.
pub fn open(path: &Path, bytes: u64) -> Result<OwnedFd, BackingError> {
    let failed = |why| BackingError::Io { path: path.into(), why };
    // A pipe would make the open wait for a reader.
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return Err(BackingError::NoFile(path.into()));
    }
    let file: File =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
    let patience = Instant::now() + LET_GO;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < patience => std::thread::sleep(LET_GO / 50),
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(BackingError::InUse(path.into())),
            Err(e) => return Err(failed(e.into())),
        }
    }
    match file.metadata().map_err(failed)?.len() {
        0 => file.set_len(bytes).map_err(failed)?,
        found if found == bytes => {}
        found => return Err(BackingError::Length { path: path.into(), expected: bytes, found }),
    }
    Ok(file.into())
}

/// Which file it is, as long as it is not copied: its file system, its number, and when it was made, where the file system knows
/// that: a number is given again to the next file when one is removed.
pub fn id(path: &Path) -> io::Result<String> {
    let found = std::fs::metadata(path)?;
    let made = found.created().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Ok(format!("file {:x}:{:x}:{:x}", found.dev(), found.ino(), made.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_as_long_as_the_drive_and_takes_no_room() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d");
        drop(open(&path, 1 << 40).unwrap());
        let m = std::fs::metadata(&path).unwrap();
        assert_eq!((m.len(), m.blocks()), (1 << 40, 0));
        assert!(open(&path, 1 << 40).is_ok(), "and is taken again");
    }

    #[test]
    fn a_file_that_was_made_anew_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d");
        let make = || {
            drop(open(&path, 1 << 20).unwrap());
            id(&path).unwrap()
        };
        let first = make();
        assert_eq!(make(), first);
        // The number is often the same again.
        let mut ids = vec![first];
        for _ in 0..5 {
            std::fs::remove_file(&path).unwrap();
            // File systems' clocks have steps of some milliseconds.
            std::thread::sleep(std::time::Duration::from_millis(30));
            let new = make();
            assert!(!ids.contains(&new), "{new}");
            ids.push(new);
        }
    }

    #[test]
    fn a_file_of_another_length_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("letter");
        std::fs::write(&path, "dear").unwrap();
        let e = open(&path, 512).unwrap_err();
        assert!(matches!(e, BackingError::Length { expected: 512, found: 4, .. }), "{e}");
        assert_eq!(std::fs::read(&path).unwrap(), b"dear");
        assert!(matches!(open(dir.path(), 512), Err(BackingError::NoFile(_))));
        assert!(matches!(open(&dir.path().join("no/d"), 512), Err(BackingError::Io { .. })));
    }

    #[test]
    fn two_drives_never_share_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d");
        let first = open(&path, 512).unwrap();
        assert!(matches!(open(&path, 512), Err(BackingError::InUse(_))));
        drop(first);
        assert!(open(&path, 512).is_ok());
    }
}
