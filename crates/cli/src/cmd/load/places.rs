//! The files and devices of a load's applications.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headtime_serve::config;
use rustix::fs::OFlags;

use crate::screen;

/// A file or device that holds the disk's part from a byte offset on.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file.
    pub file: Arc<File>,
    /// Offset of its first byte on the disk.
    pub start: u64,
    /// Length, bytes.
    pub bytes: u64,
}

/// One place for all applications, or one for each.
#[derive(Debug)]
pub struct Places(Vec<Place>);

/// Splits `PATH@START`. An existing file of the whole name takes precedence.
fn split(given: &Path) -> (PathBuf, u64) {
    let text = given.to_string_lossy();
    match text.rsplit_once('@') {
        Some((path, start)) if !given.exists() => match config::bytes(start) {
            Some(start) => (path.into(), start),
            None => (given.to_owned(), 0),
        },
        _ => (given.to_owned(), 0),
    }
}

/// Opens a file for direct I/O; a device that is written is opened exclusively.
fn open(path: &Path, write: bool) -> Result<File, String> {
    let fault = |e: std::io::Error| format!("{}: {e}", path.display());
    let kind = std::fs::metadata(path).map_err(fault)?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(format!("{}: expected a block device or a file", path.display()));
    }
    let exclusive = if write && kind.is_block_device() { OFlags::EXCL } else { OFlags::empty() };
    let how = |flags: OFlags| OpenOptions::new().read(true).write(write).custom_flags(flags.bits() as i32).open(path);
    match how(OFlags::DIRECT | exclusive) {
        // The file system does not support direct I/O (tmpfs, for example).
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            screen::note(&format!("{}: no direct I/O there: what is measured is the page cache, too", path.display()));
            how(exclusive).map_err(fault)
        }
        opened => opened.map_err(fault),
    }
}

impl Places {
    /// Opens the places. The error is one line.
    pub fn open(given: &[PathBuf], actors: usize, write: bool) -> Result<Places, String> {
        if given.len() != 1 && given.len() != actors {
            return Err(format!(
                "expected one place for all, or one for each of {actors} applications, found {}",
                given.len()
            ));
        }
        let mut places = Vec::with_capacity(given.len());
        let mut opened: BTreeMap<PathBuf, Arc<File>> = BTreeMap::new();
        for path in given {
            let (path, start) = split(path);
            // Each path is opened once, because a written device is opened exclusively.
            let file = match opened.get(&path) {
                Some(file) => Arc::clone(file),
                None => Arc::new(open(&path, write)?),
            };
            let bytes = (&*file).seek(SeekFrom::End(0)).map_err(|e| format!("{}: {e}", path.display()))?;
            if start.checked_add(bytes).is_none_or(|end| end > i64::MAX as u64) {
                return Err(format!(
                    "{}: expected an end within 2^63 bytes, found {start} and {bytes} bytes",
                    path.display()
                ));
            }
            opened.insert(path, Arc::clone(&file));
            places.push(Place { file, start, bytes });
        }
        Ok(Places(places))
    }

    /// The disk's length: up to the end of the last place.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|p| p.start + p.bytes).max().unwrap_or(0)
    }

    /// The place of an actor.
    pub fn of(&self, actor: usize) -> &Place {
        if self.0.len() == 1 { &self.0[0] } else { &self.0[actor] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_path_or_a_path_with_where_it_begins() {
        assert_eq!(split(Path::new("/dev/loop7")), ("/dev/loop7".into(), 0));
        assert_eq!(split(Path::new("/dev/loop7@24 GiB")), ("/dev/loop7".into(), 24 << 30));
        assert_eq!(split(Path::new("disk@home")), ("disk@home".into(), 0));
    }

    #[test]
    fn too_few_places_and_what_is_none_are_refused() {
        let said =
            |paths: &[&str]| Places::open(&paths.iter().map(PathBuf::from).collect::<Vec<_>>(), 3, false).unwrap_err();
        assert!(said(&["a", "b"]).contains("each of 3 applications, found 2"));
        assert!(said(&["/"]).contains("expected a block device or a file"));
        assert!(said(&["/nowhere/at/all"]).starts_with("/nowhere/at/all: "));
    }
}
