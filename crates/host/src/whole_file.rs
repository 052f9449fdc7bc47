//! Files that are either complete or absent.
//!
//! A file is written under a temporary name in the same directory and then renamed. Temporary files
//! are recorded, so that an interrupted program ([`discard_unfinished`], from its handler for
//! Ctrl-C) leaves none behind.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Existing temporary files.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    /// The target.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// Writes `contents` to `path` completely or not at all.
pub fn write_whole(path: &Path, contents: &[u8]) -> Result<(), WriteError> {
    let failed = |source| WriteError { path: path.to_path_buf(), source };
    let mut file = WholeFile::create(path)?;
    file.write_all(contents).map_err(failed)?;
    file.finish()
}

/// A file under construction, without its final name until [`WholeFile::finish`]. Dropped before
/// that, it leaves nothing. A replaced file's mode is kept.
///
/// A target that is not a regular file (a terminal, a pipe, `/dev/null`) is written directly. A
/// symbolic link stays, and its target is replaced.
#[derive(Debug)]
pub struct WholeFile {
    /// The requested name.
    path: PathBuf,
    out: BufWriter<fs::File>,
    /// The temporary name and the final one; `None` if written directly, or finished.
    pending: Option<(PathBuf, PathBuf)>,
}

impl WholeFile {
    /// Begins a file.
    pub fn create(path: &Path) -> Result<WholeFile, WriteError> {
        let failed = |source| WriteError { path: path.to_path_buf(), source };
        let begun = |file, pending| WholeFile { path: path.to_path_buf(), out: BufWriter::new(file), pending };
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let replaced = fs::metadata(&target).ok();
        if let Some(meta) = &replaced {
            if meta.is_dir() {
                return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")));
            }
            // Also refuses an unwritable file, which must not be replaced only because its
            // directory is writable.
            let existing = fs::OpenOptions::new().append(true).open(&target).map_err(failed)?;
            if !meta.is_file() {
                return Ok(begun(existing, None));
            }
        }
        let Some(temporary) = beside(&target) else {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "expected the name of a file")));
        };
        let file = begin(&temporary).map_err(failed)?;
        let whole = begun(file, Some((temporary, target)));
        if let Some(meta) = replaced {
            // Set before any data is written, so that a private file stays private.
            whole.out.get_ref().set_permissions(meta.permissions()).map_err(failed)?;
        }
        Ok(whole)
    }

    /// Renames the file to its final name.
    pub fn finish(mut self) -> Result<(), WriteError> {
        let failed = |source| WriteError { path: self.path.clone(), source };
        self.out.flush().map_err(failed)?;
        if let Some((temporary, target)) = &self.pending {
            // Without this, a power failure could leave the new name with an empty file.
            self.out.get_ref().sync_all().map_err(failed)?;
            // Held during the rename: a concurrent handler either removes the temporary file or
            // finds the finished one under its final name.
            let mut names = unfinished();
            fs::rename(temporary, target).map_err(failed)?;
            names.remove(temporary);
            let directory = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            fs::File::open(directory).and_then(|d| d.sync_all()).map_err(failed)?;
        }
        self.pending = None;
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.pending {
            let mut names = unfinished();
            let _ = fs::remove_file(temporary);
            names.remove(temporary);
        }
    }
}

/// Creates a directory and its parents.
pub fn make_directory(path: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(path).map_err(|source| {
        // The system's error for a name taken by another kind of file is "File exists": true, but
        // no help.
        let source = match fs::metadata(path) {
            Ok(meta) if !meta.is_dir() => {
                let found = if meta.is_file() { "a file" } else { "a device, pipe or socket" };
                io::Error::new(io::ErrorKind::NotADirectory, format!("expected a directory, found {found}"))
            }
            _ => source,
        };
        WriteError { path: path.to_path_buf(), source }
    })
}

/// Removes every temporary file, and returns their number. For a program that is about to exit
/// early; it keeps the list locked, so that no writer continues.
pub fn discard_unfinished() -> usize {
    let names = unfinished();
    let removed = names.iter().filter(|name| fs::remove_file(name).is_ok()).count();
    // Never released: a writer that starts another temporary file waits here until the process
    // exits.
    std::mem::forget(names);
    removed
}

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a temporary file under the lock of the list: no file can appear that a handler for
/// Ctrl-C, which keeps the lock, has not seen.
fn begin(temporary: &Path) -> io::Result<fs::File> {
    let mut names = unfinished();
    // A file of this name is left over from a crash, or was created by another user.
    match fs::remove_file(temporary) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let file = fs::File::create_new(temporary)?;
    names.insert(temporary.to_path_buf());
    Ok(file)
}

/// A temporary name in the same directory, so that the rename stays within one file system.
fn beside(target: &Path) -> Option<PathBuf> {
    let name = target.file_name()?.to_string_lossy();
    Some(target.with_file_name(format!(".{name}.{}.tmp", std::process::id())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("headtime-output-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_written_file_is_whole_and_leaves_nothing_beside_it() {
        let dir = scratch("whole");
        let path = dir.join("a.svg");
        write_whole(&path, b"first").unwrap();
        write_whole(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_missing_directory_is_named_in_the_error() {
        let path = scratch("missing").join("no/such/a.svg");
        let e = write_whole(&path, b"x").unwrap_err();
        assert!(e.to_string().contains("no/such/a.svg"), "{e}");
        assert!(!e.to_string().contains('\n'));
    }

    #[test]
    fn a_name_that_is_taken_by_something_else_is_no_directory() {
        let dir = scratch("taken");
        let file = dir.join("file");
        fs::write(&file, "x").unwrap();
        let e = make_directory(&file).unwrap_err().to_string();
        assert_eq!(e, format!("cannot write {}: expected a directory, found a file", file.display()));
        make_directory(&dir).unwrap();
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_directory_is_not_replaced() {
        let dir = scratch("dir");
        assert!(write_whole(&dir, b"x").is_err());
        assert!(dir.is_dir());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_file_that_is_given_up_leaves_nothing() {
        let dir = scratch("dropped");
        let path = dir.join("a.json");
        let mut f = WholeFile::create(&path).unwrap();
        f.write_all(&[b'x'; 100_000]).unwrap();
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "the temporary file");
        assert!(!path.exists());
        drop(f);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        fs::remove_dir_all(dir).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_keeps_pointing_and_a_device_stays_a_device() {
        let dir = scratch("link");
        let (real, link) = (dir.join("real"), dir.join("link"));
        fs::write(&real, b"old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        write_whole(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        fs::remove_dir_all(dir).unwrap();
    }
}
