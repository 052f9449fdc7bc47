//! Small files that say what is to be put back, and outlive a crash.
//!
//! A file is written under a temporary name, forced to the medium, and renamed, and then its directory is forced out,
//! too: whoever finds it finds all of it. They belong in a directory that is empty after the machine was started,
//! because what they describe is so, too. Whoever writes or removes one holds the directory's [`Lock`].

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a state file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Its directory cannot be made or locked.
    #[error("cannot use the state directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// One that should be new is there already.
    #[error("expected no file {}, found one", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not what this program writes.
    #[error("{}: expected what headtime writes there: {source}", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// It cannot be removed.
    #[error("cannot remove {}: {source}", path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The directory to use when none is named: `/run/headtime` for root, `$XDG_RUNTIME_DIR/headtime` for others who have
/// one.
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

/// Makes the directory, in which only its owner may write (sockets of servers may lie there, too), and says its absolute name.
///
/// # Errors
/// [`StateError::Directory`].
pub fn make_directory(path: &Path) -> Result<PathBuf, StateError> {
    let failed = |source| StateError::Directory { path: path.to_path_buf(), source };
    fs::DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(failed)?;
    path.canonicalize().map_err(failed)
}

/// Keeps other processes out of a state directory until it is dropped; waits for those that are in.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "held for the lock that ends with it")] File);

impl Lock {
    /// Waits for its turn. The directory must exist.
    ///
    /// # Errors
    /// [`StateError::Directory`].
    pub fn take(directory: &Path) -> Result<Lock, StateError> {
        let failed = |source| StateError::Directory { path: directory.to_path_buf(), source };
        let file = File::open(directory).map_err(failed)?;
        loop {
            match rustix::fs::flock(&file, FlockOperation::LockExclusive) {
                Err(rustix::io::Errno::INTR) => {}
                done => return done.map(|()| Lock(file)).map_err(|e| failed(e.into())),
            }
        }
    }
}

/// Writes a file that must not be there yet, whole or not at all, and not before it is on the medium.
///
/// # Errors
/// [`StateError::Exists`], [`StateError::Write`].
pub fn write_new(path: &Path, contents: &impl Serialize) -> Result<(), StateError> {
    write(path, contents, RenameFlags::NOREPLACE)
}

/// Writes a file in the place of the one that is there, whole or not at all.
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
        // One that is left from a process that died halfway is written over.
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
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

/// What a file says; `None` when there is none.
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

/// Removes a file. That there is none is well, too.
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
    // Best effort: should the file come back after a crash, whoever finds it sees that there is nothing to put back.
    if let Some(Ok(directory)) = path.parent().map(File::open) {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// The files in a state directory whose names begin with `prefix` and end with `.json`, sorted; none when there is no
/// such directory.
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
        let other = File::open(dir.path()).unwrap();
        assert!(rustix::fs::flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
        drop(lock);
        rustix::fs::flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    }
}
