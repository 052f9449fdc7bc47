//! The storage of a virtual drive: a sparse file as long as the drive, or a directory of segment
//! files, locked against use by another drive.
//!
//! A drive can be larger than the largest file of a file system (ext4: 16 TiB less one block). Its
//! sectors are then in the segment files of a directory (`segments`), each at most [`SEGMENT`]
//! long, and shorter where the file system's files are.

mod segments;

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use rustix::fs::{FlockOperation, SeekFrom, flock};
use rustix::io::Errno;

use crate::private;

/// Bytes of a segment file. Every file system with sparse files supports it (the smallest limits
/// are 2 TiB on ext3 and 3.9 TiB on F2FS), and a drive of 20 TB needs no more than 19 open files.
/// Where files are shorter (FAT: 4 GiB less one byte), so are segments.
pub const SEGMENT: u64 = 1 << 40;

/// Why a file or a directory cannot be used as a drive's storage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackingError {
    /// The operating system reports an error.
    #[error("{}: {why}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        why: io::Error,
    },
    /// It is neither a plain file nor a directory, or a segment is not a plain file.
    #[error("{}: expected {expected}, found something else", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
        /// The valid file types.
        expected: &'static str,
    },
    /// A path that ends in `/` names a file.
    #[error("{}: expected a directory or nothing there, found a file", .0.display())]
    NoDirectory(PathBuf),
    /// The file's length is not the drive's: it belongs to another drive or is another file.
    #[error("{}: expected an empty file or one of {expected} bytes, as the drive has, found {found}", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes of the drive.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// The file system does not support files of this length.
    #[error(
        "{}: expected a file system with files of {bytes} bytes, as the drive has, found that its files are shorter; \
         --backing DIR/ (in a configuration: backing = \"DIR/\") keeps the drive in files of 1 TiB",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Bytes of the drive.
        bytes: u64,
    },
    /// A segment belongs to another drive or was truncated.
    #[error(
        "{}: expected {expected} bytes, as this segment of a drive of {drive} bytes has, found {found}",
        path.display()
    )]
    SegmentLength {
        /// The segment's file.
        path: PathBuf,
        /// Bytes of the segment.
        expected: u64,
        /// Bytes of the drive.
        drive: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// A segment is missing while others exist.
    #[error("{}: expected the segments of a drive of {drive} bytes ({count}), found no {name}", directory.display())]
    Missing {
        /// The directory.
        directory: PathBuf,
        /// Segments of the drive.
        count: u64,
        /// Bytes of the drive.
        drive: u64,
        /// The missing segment.
        name: String,
    },
    /// There are more segments than the drive has.
    #[error("{}: expected the segments of a drive of {drive} bytes ({count}), found {name}, too", directory.display())]
    Excess {
        /// The directory.
        directory: PathBuf,
        /// Segments of the drive.
        count: u64,
        /// Bytes of the drive.
        drive: u64,
        /// The highest excess segment.
        name: String,
    },
    /// Another program has locked it.
    #[error("{}: another virtual drive uses it", .0.display())]
    InUse(PathBuf),
}

impl BackingError {
    fn io(path: &Path) -> impl Fn(io::Error) -> BackingError {
        move |why| BackingError::Io { path: path.into(), why }
    }
}

/// The open files that hold a drive's bytes in sequence. While it exists no other drive can use
/// them.
#[derive(Debug)]
pub struct Backing {
    files: Vec<File>,
    /// Bytes of each file but the last, whose length only the kernel checks.
    segment: u64,
}

/// The position of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the file.
    pub file: usize,
    /// The offset in that file.
    pub offset: u64,
    /// Bytes from there on in the same file; unlimited for the last file, whose length is not known
    /// here.
    pub room: u64,
}

impl Backing {
    /// Creates a backing of files of `segment` bytes each, of which the last may be shorter or
    /// longer.
    pub(crate) fn of_segments(files: Vec<File>, segment: u64) -> Backing {
        assert!(!files.is_empty() && segment > 0, "a drive has at least one file, and no file is empty");
        Backing { files, segment }
    }

    /// Returns the number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Returns a file. Panics if there is none with this number.
    pub fn file(&self, number: usize) -> BorrowedFd<'_> {
        self.files[number].as_fd()
    }

    /// Returns the position of byte `at` of the drive. Bytes beyond the end are in the last file.
    pub fn place(&self, at: u64) -> Place {
        let last = self.files.len() - 1;
        let file = usize::try_from(at / self.segment).map_or(last, |n| n.min(last));
        let offset = at - file as u64 * self.segment;
        let room = if file == last { u64::MAX } else { self.segment - offset };
        Place { file, offset, room }
    }

    /// Returns whether none of these bytes was ever written. False if the file system does not
    /// report it, or if a file ends before them.
    pub fn is_empty(&self, at: u64, len: u64) -> bool {
        let end = at + len;
        let mut from = at;
        while from < end {
            let place = self.place(from);
            let here = place.room.min(end - from);
            let file = self.file(place.file);
            let empty = match rustix::fs::seek(file, SeekFrom::Data(place.offset)) {
                Ok(data) => data >= place.offset + here,
                // Nothing was written from here on, or the file is too short, which must not be
                // hidden by zeros.
                Err(Errno::NXIO) => rustix::fs::fstat(file).is_ok_and(|s| s.st_size as u64 >= place.offset + here),
                Err(_) => false,
            };
            if !empty {
                return false;
            }
            from += here;
        }
        true
    }
}

impl From<File> for Backing {
    /// Uses one file for the whole drive.
    fn from(file: File) -> Backing {
        Backing::of_segments(vec![file], u64::MAX)
    }
}

/// The time to wait for a lock: the kernel tears down the io_uring of a killed server
/// asynchronously and releases the file after that.
const LET_GO: Duration = Duration::from_secs(1);

/// Opens or creates the storage of a drive of `bytes` bytes, locked while it is open. A directory,
/// or a path that ends in `/`, holds it in segment files of at most [`SEGMENT`] bytes; any other
/// path is one sparse file. Existing storage of the right length is used as it is.
pub fn open(path: &Path, bytes: u64) -> Result<Backing, BackingError> {
    match (std::fs::metadata(path), ends_in_slash(path)) {
        (Ok(m), _) if m.is_dir() => segments::open(path, bytes, SEGMENT),
        // Opening a pipe would wait for a reader.
        (Ok(m), _) if !m.is_file() => {
            Err(BackingError::NoFile { path: path.into(), expected: "a plain file or a directory, or nothing there" })
        }
        (Err(e), true) if e.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir(path).map_err(BackingError::io(path))?;
            segments::open(path, bytes, SEGMENT)
        }
        (Err(e), true) if e.kind() == io::ErrorKind::NotADirectory && without_slash(path).exists() => {
            Err(BackingError::NoDirectory(path.into()))
        }
        (Err(e), true) => Err(BackingError::io(path)(e)),
        (_, false) | (Ok(_), true) => single(path, bytes),
    }
}

fn ends_in_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Returns the path without a slash at the end, which components omit.
fn without_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

fn single(path: &Path, bytes: u64) -> Result<Backing, BackingError> {
    let failed = BackingError::io(path);
    let new = !path.exists();
    let file = private::open_named(path, true).map_err(&failed)?;
    lock(&file, path)?;
    match file.metadata().map_err(&failed)?.len() {
        0 => {
            if let Err(e) = file.set_len(bytes) {
                // The user may need the name for a directory now.
                if new {
                    let _ = std::fs::remove_file(path);
                }
                return Err(match e.kind() {
                    io::ErrorKind::FileTooLarge => BackingError::TooLarge { path: path.into(), bytes },
                    _ => failed(e),
                });
            }
        }
        found if found == bytes => {}
        found => return Err(BackingError::Length { path: path.into(), expected: bytes, found }),
    }
    // Name and length must survive a power failure before any write is acknowledged, even if the
    // server that created the file was killed.
    file.sync_all().and_then(|()| private::sync_name(path)).map_err(failed)?;
    Ok(file.into())
}

fn lock(file: &File, path: &Path) -> Result<(), BackingError> {
    let patience = Instant::now() + LET_GO;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if Instant::now() < patience => std::thread::sleep(LET_GO / 50),
            Err(Errno::WOULDBLOCK) => return Err(BackingError::InUse(path.into())),
            Err(e) => return Err(BackingError::io(path)(e.into())),
        }
    }
}

/// Returns a persistent identifier of the file or directory: its device, inode number and creation
/// time, if the file system records it, since inode numbers are reused. A directory is identified
/// by its first segment, so that new segments give a new identifier.
pub fn id(path: &Path) -> io::Result<String> {
    let mut found: Metadata = std::fs::metadata(path)?;
    if found.is_dir() {
        found = std::fs::metadata(path.join(segments::name(0)))?;
    }
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
        let directory = dir.path().join("directory/");
        for (drive, removed) in [(&path, &path), (&directory, &directory.join(segments::name(0)))] {
            let make = || {
                open(drive, 1 << 20).map(drop).unwrap();
                id(drive).unwrap()
            };
            let first = make();
            assert_eq!(make(), first);
            // The inode number is often reused.
            let mut ids = vec![first];
            for _ in 0..5 {
                std::fs::remove_file(removed).unwrap();
                // File system timestamps have a granularity of some milliseconds.
                std::thread::sleep(std::time::Duration::from_millis(30));
                let new = make();
                assert!(!ids.contains(&new), "{new}");
                ids.push(new);
            }
        }
        assert_eq!(id(&directory).unwrap(), id(&dir.path().join("directory")).unwrap());
    }

    #[test]
    fn a_directory_that_is_not_there_is_made_for_a_path_that_ends_in_a_slash() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/");
        assert_eq!(open(&path, (2 << 40) + 512).unwrap().files(), 3);
        let lengths = [0, 1, 2].map(|n| std::fs::metadata(path.join(segments::name(n))).map(|m| (m.len(), m.blocks())));
        assert_eq!(lengths.map(Result::unwrap), [(1 << 40, 0), (1 << 40, 0), (512, 0)]);
        assert_eq!(open(&dir.path().join("new"), (2 << 40) + 512).unwrap().files(), 3, "a directory needs no slash");
        assert!(matches!(open(&dir.path().join("no/new/"), 512), Err(BackingError::Io { .. })));
    }

    #[test]
    fn a_byte_is_found_in_its_file_whatever_the_kernel_says_of_the_last_ones_end() {
        let files = || (0..3).map(|_| tempfile::tempfile().unwrap()).collect();
        let three = Backing::of_segments(files(), 100);
        let place = |file, offset, room| Place { file, offset, room };
        assert_eq!([0, 99, 100].map(|at| three.place(at)), [place(0, 0, 100), place(0, 99, 1), place(1, 0, 100)]);
        assert_eq!([200, 350].map(|at| three.place(at).offset), [0, 150]);
        assert_eq!([200, 350, u64::MAX].map(|at| three.place(at).file), [2; 3]);
        let one = Backing::from(tempfile::tempfile().unwrap());
        assert_eq!(
            [0, 1 << 50, u64::MAX].map(|at| (one.place(at).file, one.place(at).offset)),
            [0, 1 << 50, u64::MAX].map(|at| (0, at))
        );
    }

    #[test]
    fn a_file_of_another_length_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("letter");
        std::fs::write(&path, "dear").unwrap();
        let e = open(&path, 512).unwrap_err();
        assert!(matches!(e, BackingError::Length { expected: 512, found: 4, .. }), "{e}");
        assert_eq!(std::fs::read(&path).unwrap(), b"dear");
        assert!(matches!(open(Path::new("/dev/null"), 512), Err(BackingError::NoFile { .. })));
        assert!(matches!(open(&dir.path().join("no/d"), 512), Err(BackingError::Io { .. })));
        let e = open(&dir.path().join("letter/"), 512).unwrap_err();
        assert!(e.to_string().ends_with("letter/: expected a directory or nothing there, found a file"), "{e}");
        assert!(matches!(open(&dir.path().join("letter/d/"), 512), Err(BackingError::Io { .. })));
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
