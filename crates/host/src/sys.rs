//! The locations of `/sys`, `/proc` and `/etc`, and reading their small files.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fs, io};

/// Root directories of the system's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sys {
    /// Normally `/sys`.
    pub sys: PathBuf,
    /// Normally `/proc`.
    pub proc: PathBuf,
    /// Normally `/etc`.
    pub etc: PathBuf,
    /// Normally `/dev`.
    pub dev: PathBuf,
}

impl Default for Sys {
    fn default() -> Sys {
        Sys::below(Path::new("/"))
    }
}

/// Why a system file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SysError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// Its contents are not as expected.
    #[error("{}: expected {expected}, found {found:?}", path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: String,
    },
}

impl SysError {
    /// For `map_err`: makes the error of reading `path`.
    pub fn read(path: &Path) -> impl FnOnce(io::Error) -> SysError {
        let path = path.to_path_buf();
        move |source| SysError::Read { path, source }
    }
}

impl Sys {
    /// Returns the four directories below `root`: `/` for the real ones.
    pub fn below(root: &Path) -> Sys {
        Sys { sys: root.join("sys"), proc: root.join("proc"), etc: root.join("etc"), dev: root.join("dev") }
    }

    /// Returns the sysfs directory of the block device with this kernel name, without checking that
    /// it exists.
    pub fn block(&self, name: &str) -> PathBuf {
        self.sys.join("class/block").join(name)
    }
}

/// Reads a file and trims white space.
///
/// # Errors
/// [`SysError::Read`].
pub fn text(path: &Path) -> Result<String, SysError> {
    // Model names and the like may not be valid UTF-8.
    let bytes = fs::read(path).map_err(SysError::read(path))?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_string())
}

/// Reads a file and trims white space; `None` when there is no such file.
///
/// # Errors
/// [`SysError::Read`], for any other reason.
pub fn text_if_there(path: &Path) -> Result<Option<String>, SysError> {
    match text(path) {
        Ok(text) => Ok(Some(text)),
        Err(SysError::Read { source, .. }) if is_absent(&source) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Reads a number from a file.
///
/// # Errors
/// [`SysError::Read`], and [`SysError::Unexpected`] when it is no number.
pub fn number<T: FromStr>(path: &Path) -> Result<T, SysError> {
    let found = text(path)?;
    found.parse().map_err(|_| SysError::Unexpected { path: path.to_path_buf(), expected: "a number", found })
}

/// Reads a number from a file; `None` when there is no such file.
///
/// # Errors
/// As [`number`], for any other reason.
pub fn number_if_there<T: FromStr>(path: &Path) -> Result<Option<T>, SysError> {
    match number(path) {
        Ok(number) => Ok(Some(number)),
        Err(SysError::Read { source, .. }) if is_absent(&source) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Lists the names in a directory, sorted; empty when there is no such directory.
///
/// # Errors
/// [`SysError::Read`], for any other reason.
pub fn names(path: &Path) -> Result<Vec<String>, SysError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if is_absent(&e) => return Ok(Vec::new()),
        Err(e) => return Err(SysError::Read { path: path.to_path_buf(), source: e }),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(SysError::read(path))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Whether an error means that the file does not exist. A device that disappears while its
/// directory is read gives `ENODEV`, a process `ESRCH`.
fn is_absent(e: &io::Error) -> bool {
    let gone = [rustix::io::Errno::NODEV, rustix::io::Errno::SRCH];
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || gone.iter().any(|errno| e.raw_os_error() == Some(errno.raw_os_error()))
}

/// Returns a disk's world-wide name or serial number, if sysfs has one.
pub(crate) fn serial(disk: &Path) -> Result<Option<String>, SysError> {
    for file in ["wwid", "device/wwid", "serial", "device/serial"] {
        let found = text_if_there(&disk.join(file))?.filter(|serial| !serial.is_empty());
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn missing_files_are_distinguished_from_errors() {
        let dir = Scratch::new("sys");
        assert_eq!(text_if_there(&dir.path().join("none")).unwrap(), None);
        assert_eq!(number_if_there::<u64>(&dir.path().join("none")).unwrap(), None);
        assert!(names(&dir.path().join("none")).unwrap().is_empty());
        dir.file("size", "twelve\n");
        let e = number::<u64>(&dir.path().join("size")).unwrap_err().to_string();
        assert!(e.ends_with("size: expected a number, found \"twelve\""), "{e}");
        let e = text(&dir.path().join("none")).unwrap_err().to_string();
        assert!(e.starts_with("cannot read ") && e.contains("none"), "{e}");
    }

    #[test]
    fn white_space_around_a_value_is_not_part_of_it() {
        let dir = Scratch::new("sys-trim");
        dir.file("model", "ST4000DM000-1F21  \n");
        assert_eq!(text(&dir.path().join("model")).unwrap(), "ST4000DM000-1F21");
    }
}
