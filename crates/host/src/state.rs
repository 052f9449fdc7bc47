//! State files: small files that record what must be restored, and that survive a crash.
//!
//! A file is written under a temporary name, flushed and renamed, and its directory is flushed
//! after that: a state file that exists is complete. The directory should be one that is emptied at
//! boot, because the state that the files describe does not survive a reboot either. A writer or
//! remover of a state file holds the directory's [`Lock`].

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a state file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The directory cannot be created or locked.
    #[error("cannot use the state directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// Other users may write to the directory.
    #[error(
        "{}: expected a directory to which only root or this user may write, found one of user {uid} with \
         mode {mode:o}",
        path.display()
    )]
    Theirs {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        uid: u32,
        /// Its mode.
        mode: u32,
    },
    /// Another process holds the lock.
    #[error("{}: another headtime has had it for {seconds} s", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// How long the caller waited.
        seconds: u64,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// A file that should be new exists already.
    #[error("expected no file {}, found one", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The contents are not what this program writes.
    #[error("{}: expected what headtime writes there: {source}", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// The parse error.
        source: serde_json::Error,
    },
    /// The file cannot be removed.
    #[error("cannot remove {}: {source}", path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
}

/// Returns the default state directory: `/run/headtime` for root, `$XDG_RUNTIME_DIR/headtime` for
/// other users that have one.
pub fn default_directory() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_absolute());
    directory_for(rustix::process::geteuid().is_root(), runtime.map(PathBuf::from))
}

fn directory_for(root: bool, runtime: Option<PathBuf>) -> PathBuf {
    match runtime {
        Some(runtime) if !root => runtime.join("headtime"),
        _ => PathBuf::from("/run/headtime"),
    }
}

/// Creates the directory, writable only by its owner (it may also hold servers' sockets), and
/// returns its absolute path.
///
/// # Errors
/// [`StateError::Directory`]; [`StateError::Theirs`] when the directory exists and other users may
/// write to it.
pub fn make_directory(path: &Path) -> Result<PathBuf, StateError> {
    let failed = |source| StateError::Directory { path: path.to_path_buf(), source };
    fs::DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(failed)?;
    let path = path.canonicalize().map_err(failed)?;
    let found = fs::metadata(&path).map_err(failed)?;
    let owners = [0, rustix::process::geteuid().as_raw()];
    match owners.contains(&found.uid()) && found.mode() & 0o022 == 0 {
        true => Ok(path),
        false => Err(StateError::Theirs { path, uid: found.uid(), mode: found.mode() & 0o7777 }),
    }
}

/// The lock file. Its mode keeps other users out; a lock on the directory itself could be taken by
/// any user with read permission.
const LOCK: &str = ".lock";
/// How long to wait for the lock, which is held only briefly.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Polling interval while the lock is held.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Lock on a state directory against other processes, held until dropped.
#[derive(Debug)]
pub struct Lock {
    /// Held for the lock that ends with it.
    _file: File,
    path: PathBuf,
}

impl Drop for Lock {
    /// Removes the file before the lock is released: a waiting process then finds that the name is
    /// gone and creates a new file.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Lock {
    /// Takes the lock, waiting at most 30 s for it. The directory must exist.
    ///
    /// # Errors
    /// [`StateError::Directory`], [`StateError::Locked`].
    pub fn take(directory: &Path) -> Result<Lock, StateError> {
        Lock::take_within(directory, LOCK_TIMEOUT)
    }

    fn take_within(directory: &Path, most: Duration) -> Result<Lock, StateError> {
        let path = directory.join(LOCK);
        let failed = |source| StateError::Directory { path: path.clone(), source };
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let until = Instant::now() + most;
        let mut file = options.open(&path).map_err(failed)?;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let (ours, named) = (file.metadata().map_err(failed)?, fs::symlink_metadata(&path));
                    if named.is_ok_and(|named| (named.dev(), named.ino()) == (ours.dev(), ours.ino())) {
                        return Ok(Lock { _file: file, path });
                    }
                    file = options.open(&path).map_err(failed)?;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(LOCK_POLL_INTERVAL),
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(StateError::Locked { path, seconds: most.as_secs() }),
                Err(e) => return Err(failed(e.into())),
            }
        }
    }
}

/// Writes a new file atomically; returns when it is on the medium.
///
/// # Errors
/// [`StateError::Exists`], [`StateError::Write`].
pub fn write_new(path: &Path, contents: &impl Serialize) -> Result<(), StateError> {
    write(path, contents, RenameFlags::NOREPLACE)
}

/// Replaces a file atomically, or creates it.
///
/// # Errors
/// [`StateError::Write`].
pub fn replace(path: &Path, contents: &impl Serialize) -> Result<(), StateError> {
    write(path, contents, RenameFlags::empty())
}

fn write(path: &Path, contents: &impl Serialize, how: RenameFlags) -> Result<(), StateError> {
    let failed = |source: io::Error| StateError::Write { path: path.to_path_buf(), source };
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "expected the name of a file")));
    };
    let mut text = serde_json::to_vec_pretty(contents).map_err(|e| failed(e.into()))?;
    text.push(b'\n');
    let temporary = temporary_for(directory, name);
    let renamed = || -> io::Result<()> {
        // A process that died midway may have left one.
        match fs::remove_file(&temporary) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(&text)?;
        file.sync_all()?;
        rustix::fs::renameat_with(CWD, &temporary, CWD, path, how)?;
        File::open(directory)?.sync_all()
    };
    renamed().map_err(|e| {
        let _ = fs::remove_file(&temporary);
        match e.kind() {
            io::ErrorKind::AlreadyExists => StateError::Exists { path: path.to_path_buf() },
            _ => failed(e),
        }
    })
}

fn temporary_for(directory: &Path, name: &OsStr) -> PathBuf {
    directory.join(format!(".{}.tmp", name.to_string_lossy()))
}

/// Reads a state file; `None` when there is none.
///
/// # Errors
/// [`StateError::Read`], [`StateError::Contents`].
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StateError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StateError::Read { path: path.to_path_buf(), source }),
    };
    let parsed = serde_json::from_slice(&text);
    parsed.map(Some).map_err(|source| StateError::Contents { path: path.to_path_buf(), source })
}

/// Removes a file; succeeds when there is none.
///
/// # Errors
/// [`StateError::Remove`].
pub fn remove(path: &Path) -> Result<(), StateError> {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(StateError::Remove { path: path.to_path_buf(), source }),
    }
    if let (Some(directory), Some(name)) = (path.parent(), path.file_name()) {
        let _ = fs::remove_file(temporary_for(directory, name));
    }
    // Best effort: if the file reappears after a crash, the reader finds nothing to restore.
    if let Some(Ok(directory)) = path.parent().map(File::open) {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// Lists the files in a state directory whose names begin with `prefix` and end with `.json`,
/// sorted; empty when the directory does not exist.
///
/// # Errors
/// [`StateError::Directory`].
pub fn files(directory: &Path, prefix: &str) -> Result<Vec<PathBuf>, StateError> {
    let failed = |source| StateError::Directory { path: directory.to_path_buf(), source };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(prefix) && name.ends_with(".json") {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_file_is_whole_and_nothing_is_left_beside_it() {
        let dir = Scratch::new("state");
        let path = dir.path().join("tuning-8-0.json");
        assert_eq!(read::<u32>(&path).unwrap(), None);
        write_new(&path, &1u32).unwrap();
        replace(&path, &2u32).unwrap();
        assert_eq!(read::<u32>(&path).unwrap(), Some(2));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_new_file_never_takes_the_place_of_another() {
        let dir = Scratch::new("state-new");
        let path = dir.path().join("a.json");
        write_new(&path, &1u32).unwrap();
        assert!(matches!(write_new(&path, &2u32), Err(StateError::Exists { .. })));
        assert_eq!(read::<u32>(&path).unwrap(), Some(1));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file");
    }

    #[test]
    fn what_is_not_ours_is_named_and_not_taken_for_ours() {
        let dir = Scratch::new("state-bad");
        let path = dir.file("tuning-x.json", "{");
        let e = read::<u32>(&path).unwrap_err();
        assert!(matches!(e, StateError::Contents { .. }) && e.to_string().contains("tuning-x.json"), "{e}");
        dir.file("other", "");
        dir.file(".tuning-x.json.tmp", "");
        assert_eq!(files(dir.path(), "tuning-").unwrap(), [path]);
        assert!(files(&dir.path().join("none"), "").unwrap().is_empty());
    }

    #[test]
    fn root_uses_run_and_others_their_own_directory() {
        let theirs = || Some(PathBuf::from("/run/user/1000"));
        assert_eq!(directory_for(true, theirs()), Path::new("/run/headtime"));
        assert_eq!(directory_for(false, theirs()), Path::new("/run/user/1000/headtime"));
        assert_eq!(directory_for(false, None), Path::new("/run/headtime"));
    }

    #[test]
    fn a_lock_is_held_by_one() {
        let dir = Scratch::new("state-lock");
        let lock = Lock::take(dir.path()).unwrap();
        let e = Lock::take_within(dir.path(), Duration::from_millis(50)).unwrap_err();
        assert!(matches!(e, StateError::Locked { .. }), "{e}");
        drop(lock);
        // A process that can only read the directory excludes no other.
        let other = File::open(dir.path()).unwrap();
        rustix::fs::flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
        let lock = Lock::take_within(dir.path(), Duration::from_millis(50)).unwrap();
        assert_eq!(fs::metadata(dir.path().join(LOCK)).unwrap().mode() & 0o777, 0o600);
        drop(lock);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn of_several_that_wait_for_a_lock_one_has_it_at_a_time() {
        let dir = Scratch::new("state-locks");
        let (within, most) = (std::sync::atomic::AtomicU32::new(0), 40);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..most {
                        let _lock = Lock::take(dir.path()).unwrap();
                        assert_eq!(within.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        within.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        let dir = Scratch::new("state-theirs");
        assert!(make_directory(dir.path()).is_ok());
        fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let e = make_directory(dir.path()).unwrap_err();
        assert!(matches!(e, StateError::Theirs { mode: 0o777, .. }), "{e}");
    }
}
