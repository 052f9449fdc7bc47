//! A drive in the segment files of a directory.
//!
//! Segment n holds the bytes from n times the segment length on. All segments are created with the
//! drive: being sparse they take no space, a read or write never has to open a file, conflicts are
//! found at the start, and a missing segment was lost. The first segment is empty until the others
//! are complete, so that an interrupted creation can be distinguished from a loss and is continued.
//!
//! On a file system whose files cannot be that long, segments are shorter: the largest half,
//! quarter and so on that it supports. The length of the first segment is that of the others.
//!
//! Other files in the directory are ignored.

use std::fs::File;
use std::io;
use std::path::Path;

use super::{Backing, BackingError, lock};
use crate::private;

const PREFIX: &str = "segment-";
/// Digits of a segment's number, so that names sort: enough for the number of files a program can
/// have open.
const DIGITS: usize = 6;
/// The shortest segment of a drive that has several: with shorter ones there would be too many open
/// files. FAT, with the shortest files of all, has some of 4 GiB.
const SHORTEST: u64 = 1 << 30;

/// Returns the file name of segment `number`.
pub(super) fn name(number: u64) -> String {
    format!("{PREFIX}{number:0DIGITS$}")
}

fn number(name: &str) -> Option<u64> {
    let number = name.strip_prefix(PREFIX)?.parse().ok()?;
    (name == self::name(number)).then_some(number)
}

/// Opens or creates the segments of a drive of `bytes` bytes in an existing directory; `longest`:
/// bytes of a segment where the file system supports it.
pub(super) fn open(directory: &Path, bytes: u64, longest: u64) -> Result<Backing, BackingError> {
    let found = numbers(directory)?;
    let first = std::fs::metadata(directory.join(name(0))).ok().filter(|m| m.is_file()).map(|m| m.len());
    let segment = match first {
        None if found.is_empty() => supported(directory, bytes, longest)?,
        Some(0) => supported(directory, bytes, longest)?,
        Some(len) if (SHORTEST..longest).contains(&len) && len.is_power_of_two() && len < bytes => len,
        _ => longest,
    };
    let count = bytes.div_ceil(segment).max(1);
    let length = |n: u64| segment.min(bytes - n * segment);
    let missing = |n| BackingError::Missing { directory: directory.into(), count, drive: bytes, name: name(n) };
    // Nothing is created in another drive's directory.
    if let Some(&excess) = found.iter().max().filter(|&&n| n >= count) {
        return Err(BackingError::Excess { directory: directory.into(), count, drive: bytes, name: name(excess) });
    }
    if !found.is_empty() && !found.contains(&0) {
        return Err(missing(0));
    }
    // The lock on the first segment covers them all; the others are locked against use as a drive's
    // only file.
    let first = take(directory, 0, true)?.ok_or_else(|| missing(0))?;
    let unfinished = first.metadata().map_err(BackingError::io(&directory.join(name(0))))?.len() == 0;
    if !unfinished {
        fit(&first, directory, 0, length(0), bytes, false)?;
    }
    let mut files = vec![first];
    for n in 1..count {
        let file = take(directory, n, unfinished)?.ok_or_else(|| missing(n))?;
        fit(&file, directory, n, length(n), bytes, unfinished)?;
        files.push(file);
    }
    let failed = BackingError::io(directory);
    if unfinished {
        files.iter().try_for_each(File::sync_all).map_err(&failed)?;
    }
    // All names and lengths must survive a power failure before any write is acknowledged,
    // including those that a killed server created. The first segment gets its length only once the
    // others are durable.
    File::open(directory).and_then(|d| d.sync_all()).map_err(&failed)?;
    fit(&files[0], directory, 0, length(0), bytes, unfinished)?;
    files[0].sync_all().map_err(&failed)?;
    private::sync_name(&directory.canonicalize().map_err(&failed)?).map_err(failed)?;
    Ok(Backing::of_segments(files, segment))
}

/// Returns the length of segments that the file system supports; `longest` if it supports none, for
/// the error that follows. The first segment is empty afterwards.
fn supported(directory: &Path, bytes: u64, longest: u64) -> Result<u64, BackingError> {
    let path = directory.join(name(0));
    let failed = BackingError::io(&path);
    let Some(first) = take(directory, 0, true)? else { return Ok(longest) };
    let lengths = std::iter::successors(Some(longest), |n| Some(n / 2).filter(|n| *n >= SHORTEST));
    let mut segment = longest;
    for length in lengths {
        match first.set_len(length.min(bytes)) {
            Ok(()) => {
                segment = length;
                break;
            }
            Err(e) if e.kind() == io::ErrorKind::FileTooLarge => {}
            Err(e) => return Err(failed(e)),
        }
    }
    first.set_len(0).map_err(failed)?;
    Ok(segment)
}

/// Returns the numbers of the existing segments.
fn numbers(directory: &Path) -> Result<Vec<u64>, BackingError> {
    let failed = BackingError::io(directory);
    let entries = std::fs::read_dir(directory).map_err(&failed)?;
    let names = entries.map(|e| e.map(|e| e.file_name())).collect::<io::Result<Vec<_>>>().map_err(&failed)?;
    Ok(names.iter().filter_map(|name| number(name.to_str()?)).collect())
}

/// Opens and locks a segment; returns `None` if it is missing and not to be created.
fn take(directory: &Path, n: u64, make: bool) -> Result<Option<File>, BackingError> {
    let path = directory.join(name(n));
    // Opening a pipe would wait for a reader.
    if std::fs::metadata(&path).is_ok_and(|m| !m.is_file()) {
        return Err(BackingError::NoFile { path, expected: "a plain file or nothing there" });
    }
    match private::open_named(&path, make) {
        Ok(file) => lock(&file, &path).map(|()| Some(file)),
        Err(e) if e.kind() == io::ErrorKind::NotFound && !make => Ok(None),
        Err(e) => Err(BackingError::io(&path)(e)),
    }
}

/// Checks a segment's length, and sets it if the segment is new.
fn fit(file: &File, directory: &Path, n: u64, expected: u64, drive: u64, new: bool) -> Result<(), BackingError> {
    let path = directory.join(name(n));
    let failed = BackingError::io(&path);
    match file.metadata().map_err(&failed)?.len() {
        0 if new => file.set_len(expected).map_err(&failed),
        found if found == expected => Ok(()),
        found => Err(BackingError::SegmentLength { path: path.clone(), expected, drive, found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const SEGMENT: u64 = 1000;
    const DRIVE: u64 = 4500;

    fn drive() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(open(dir.path(), DRIVE, SEGMENT).unwrap().files(), 5);
        dir
    }

    /// Returns the error message after the directory's path.
    fn refused(dir: &Path, bytes: u64) -> String {
        let before = lengths(dir);
        let e = open(dir, bytes, SEGMENT).unwrap_err().to_string();
        assert_eq!((lengths(dir), e.lines().count()), (before, 1), "what is refused is left as it is: {e}");
        e.strip_prefix(&dir.display().to_string()).expect("it begins with the path").into()
    }

    fn lengths(dir: &Path) -> BTreeMap<String, u64> {
        let of = |e: std::fs::DirEntry| (e.file_name().into_string().unwrap(), e.metadata().unwrap().len());
        std::fs::read_dir(dir).unwrap().map(|e| of(e.unwrap())).collect()
    }

    fn remove(dir: &Path, n: u64) {
        std::fs::remove_file(dir.join(name(n))).unwrap();
    }

    fn cut(dir: &Path, n: u64, len: u64) {
        File::options().write(true).open(dir.join(name(n))).unwrap().set_len(len).unwrap();
    }

    #[test]
    fn segments_are_as_long_as_the_drive_together_and_are_taken_again() {
        let dir = drive();
        let expected = (0..5).map(|n| (format!("segment-00000{n}"), if n < 4 { 1000 } else { 500 })).collect();
        assert_eq!(lengths(dir.path()), expected);
        std::fs::write(dir.path().join("segment-1"), "no segment's name").unwrap();
        assert!(open(dir.path(), DRIVE, SEGMENT).is_ok());
        let whole = tempfile::tempdir().unwrap();
        assert_eq!(open(whole.path(), 3000, SEGMENT).unwrap().files(), 3, "and no empty one at the end");
        assert_eq!((number("segment-000012"), number("segment-12"), number("segment-+00012")), (Some(12), None, None));
    }

    #[test]
    fn segments_of_another_drive_are_refused() {
        let dir = drive();
        let (dir, of) = (dir.path(), "expected the segments of a drive of 4000 bytes (4)");
        assert_eq!(refused(dir, 4000), format!(": {of}, found segment-000004, too"));
        let last = "/segment-000004: expected 1000 bytes, as this segment of a drive of 7000 bytes has, found 500";
        assert_eq!(refused(dir, 7000), last);
        cut(dir, 4, 1000);
        assert_eq!(refused(dir, 7000), ": expected the segments of a drive of 7000 bytes (7), found no segment-000005");
        let short = tempfile::tempdir().unwrap();
        drop(open(short.path(), 700, SEGMENT).unwrap());
        let first = "/segment-000000: expected 1000 bytes, as this segment of a drive of 4500 bytes has, found 700";
        assert_eq!(refused(short.path(), DRIVE), first);
    }

    #[test]
    fn a_segment_that_is_missing_or_was_cut_is_refused() {
        for n in 0..5 {
            let dir = drive();
            remove(dir.path(), n);
            let missing = format!(": expected the segments of a drive of 4500 bytes (5), found no {}", name(n));
            assert_eq!(refused(dir.path(), DRIVE), missing);
        }
        for (n, len) in [(0, 999), (0, 1001), (2, 0), (2, 1), (4, 1000)] {
            let dir = drive();
            cut(dir.path(), n, len);
            let expected = if n == 4 { 500 } else { 1000 };
            let wrong = "bytes, as this segment of a drive of 4500 bytes has, found";
            assert_eq!(refused(dir.path(), DRIVE), format!("/{}: expected {expected} {wrong} {len}", name(n)));
        }
        let dir = drive();
        remove(dir.path(), 3);
        std::fs::create_dir(dir.path().join(name(3))).unwrap();
        let directory = "/segment-000003: expected a plain file or nothing there, found something else";
        assert_eq!(refused(dir.path(), DRIVE), directory);
    }

    #[test]
    fn a_start_that_was_interrupted_is_gone_on_with() {
        for there in 1..=5 {
            let dir = drive();
            (there..5).for_each(|n| remove(dir.path(), n));
            cut(dir.path(), there - 1, 0);
            cut(dir.path(), 0, 0);
            assert_eq!(open(dir.path(), DRIVE, SEGMENT).unwrap().files(), 5);
            assert_eq!(lengths(dir.path()).values().copied().collect::<Vec<_>>(), [1000, 1000, 1000, 1000, 500]);
        }
    }

    #[test]
    fn two_drives_never_share_a_directory_or_a_file_of_it() {
        let dir = drive();
        let first = open(dir.path(), DRIVE, SEGMENT).unwrap();
        let e = open(dir.path(), DRIVE, SEGMENT).unwrap_err();
        assert!(matches!(&e, BackingError::InUse(path) if path.ends_with("segment-000000")), "{e}");
        let third = super::super::open(&dir.path().join(name(3)), 1000);
        assert!(matches!(third, Err(BackingError::InUse(_))));
        drop(first);
        assert!(open(dir.path(), DRIVE, SEGMENT).is_ok());
    }

    #[test]
    fn a_directory_in_which_no_file_can_be_made_is_named() {
        // Not even root can create a file there.
        let e = open(Path::new("/sys"), DRIVE, SEGMENT).unwrap_err();
        assert!(matches!(&e, BackingError::Io { path, .. } if path.starts_with("/sys")), "{e}");
    }
}
