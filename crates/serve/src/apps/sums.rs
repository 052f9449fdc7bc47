//! A checksum for each unit, in a file: a scrub's catalogue, and what a backup is verified against.
//!
//! xxh3 with 64 bits: a unit that changed by accident goes unnoticed once in 2^64, and it is
//! quicker than any disk. It is no protection against somebody who forges data; a catalogue kept
//! where he cannot write would need a cryptographic one.
//!
//! The file is a page that says whose it is, and 16 bytes a unit behind it: the sum, and a check of
//! the sum, so that damage to the file itself is not taken for damage to the disk. Sixteen zero
//! bytes mean that no sum is known.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::progress::Identity;
use crate::private;

/// Bytes before the first sum.
const HEAD: u64 = 4096;
/// Bytes of a sum.
const ENTRY: u64 = 16;
const MAGIC: &[u8] = b"headtime sums 1\n";

/// Why a file of sums was not taken, or could not be used.
#[derive(Debug, thiserror::Error)]
pub enum SumsError {
    /// The system refuses.
    #[error("{}: {why}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// It is something else.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What was expected.
        what: &'static str,
    },
    /// It is of another disk, export or unit.
    #[error("{}: these checksums are of something else: expected {expected}, found {found}", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// Whose was expected.
        expected: String,
        /// Whose it is.
        found: String,
    },
    /// Another program has it.
    #[error("{}: another headtime uses it", .0.display())]
    InUse(PathBuf),
}

/// What is known of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// No sum was kept yet.
    Nothing,
    /// This sum.
    Sum(u64),
    /// The file is damaged here.
    Damaged,
}

/// The sum of a unit's data.
pub fn sum(data: &[u8]) -> u64 {
    xxh3_64(data)
}

/// A file of sums.
#[derive(Debug)]
pub struct Sums {
    file: File,
    path: PathBuf,
}

/// What must be the same for sums to be comparable: not the application, and not where it was read
/// from.
fn whose(i: &Identity) -> String {
    let (first, count) = (i.ranges.first().map_or(0, |r| r.0), i.ranges.iter().map(|r| r.1).sum::<u64>());
    format!(
        "disk {:?} of {} sectors of {} bytes, {} from sector {first}, {count} sectors in units of {}",
        i.disk, i.sectors, i.sector_bytes, i.what, i.unit
    )
}

impl Sums {
    /// Opens the file of a job with so many units, or makes it. True: it was there before. Nobody
    /// else can use it meanwhile.
    pub fn open(path: &Path, identity: &Identity, units: u64) -> Result<(Sums, bool), SumsError> {
        let failed = |why| SumsError::Io { path: path.into(), why };
        let file = private::open(path, true).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(SumsError::InUse(path.into())),
            Err(e) => return Err(failed(e.into())),
        }
        let (len, expected) = (HEAD + units * ENTRY, whose(identity));
        let there = file.metadata().map_err(failed)?.len();
        if there == 0 {
            // In its place comes one that is whole: with a part of its head it would be taken for
            // something else.
            let file = Sums::made(path, len, &expected).map_err(failed)?;
            return Ok((Sums { file, path: path.into() }, false));
        }
        let sums = Sums { file, path: path.into() };
        let damaged = |what| SumsError::Damaged { path: path.into(), what };
        let mut head = vec![0; HEAD as usize];
        let whole = sums.file.read_exact_at(&mut head, 0).is_ok() && head.starts_with(MAGIC);
        let (text, check) = head.split_last_chunk::<8>().expect("a page is longer than that");
        if !whole || xxh3_64(text) != u64::from_le_bytes(*check) {
            return Err(damaged("expected checksums of headtime's, found something else"));
        }
        let text = &text[MAGIC.len()..];
        let text = &text[..text.iter().position(|&b| b == b'\n' || b == 0).unwrap_or(text.len())];
        let found = String::from_utf8_lossy(text).into_owned();
        if !expected.starts_with(&found) || found.is_empty() {
            return Err(SumsError::Foreign { path: path.into(), expected, found });
        }
        match there == len {
            true => Ok((sums, true)),
            false => Err(damaged("the file of checksums is cut short, or too long")),
        }
    }

    /// A file of `len` bytes that knows nothing yet, locked.
    fn made(path: &Path, len: u64, whose: &str) -> io::Result<File> {
        let mut head = vec![0; HEAD as usize];
        let text = [MAGIC, whose.as_bytes(), b"\n"].concat();
        let fits = text.len().min(head.len() - 8);
        head[..fits].copy_from_slice(&text[..fits]);
        let check = xxh3_64(&head[..HEAD as usize - 8]).to_le_bytes();
        head[HEAD as usize - 8..].copy_from_slice(&check);
        private::write_whole(path, |file| {
            flock(&*file, FlockOperation::NonBlockingLockExclusive)?;
            file.write_all_at(&head, 0)?;
            file.set_len(len)
        })
    }

    fn failed(&self, why: io::Error) -> SumsError {
        SumsError::Io { path: self.path.clone(), why }
    }

    /// What is known of unit `index`.
    pub fn get(&self, index: u64) -> Result<Known, SumsError> {
        let mut entry = [0; ENTRY as usize];
        self.file.read_exact_at(&mut entry, HEAD + index * ENTRY).map_err(|e| self.failed(e))?;
        if entry == [0; ENTRY as usize] {
            return Ok(Known::Nothing);
        }
        let sum = u64::from_le_bytes(*entry.first_chunk().expect("sixteen bytes"));
        let whole = entry == bytes(index, sum);
        Ok(if whole { Known::Sum(sum) } else { Known::Damaged })
    }

    /// The sum of unit `index` is `sum`.
    pub fn set(&self, index: u64, sum: u64) -> Result<(), SumsError> {
        self.file.write_all_at(&bytes(index, sum), HEAD + index * ENTRY).map_err(|e| self.failed(e))
    }

    /// Nothing is known of unit `index` any more.
    pub fn clear(&self, index: u64) -> Result<(), SumsError> {
        self.file.write_all_at(&[0; ENTRY as usize], HEAD + index * ENTRY).map_err(|e| self.failed(e))
    }

    /// What was set survives.
    pub fn sync(&self) -> Result<(), SumsError> {
        self.file.sync_data().map_err(|e| self.failed(e))
    }
}

fn bytes(index: u64, sum: u64) -> [u8; ENTRY as usize] {
    let mut entry = [0; ENTRY as usize];
    entry[..8].copy_from_slice(&sum.to_le_bytes());
    // The sum 0 with a check of 0 would say that nothing is known; with the lowest bit set it never
    // does.
    let check = xxh3_64_with_seed(&sum.to_le_bytes(), index) | 1;
    entry[8..].copy_from_slice(&check.to_le_bytes());
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(disk: &str) -> Identity {
        Identity {
            app: "scrub".into(),
            disk: disk.into(),
            sectors: 1000,
            sector_bytes: 512,
            what: "data".into(),
            unit: 8,
            ranges: vec![(0, 1000)],
        }
    }

    #[test]
    fn sums_are_there_again_and_units_without_one_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let (s, there) = Sums::open(&path, &identity("d"), 125).unwrap();
        assert!(!there);
        s.set(3, 0).unwrap();
        s.set(124, 77).unwrap();
        assert!(matches!(Sums::open(&path, &identity("d"), 125), Err(SumsError::InUse(_))));
        drop(s);
        let (s, there) = Sums::open(&path, &identity("d"), 125).unwrap();
        assert!(there);
        assert_eq!([2, 3, 124].map(|i| s.get(i).unwrap()), [Known::Nothing, Known::Sum(0), Known::Sum(77)]);
    }

    #[test]
    fn damage_to_the_catalogue_is_not_taken_for_damage_to_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let (s, _) = Sums::open(&path, &identity("d"), 125).unwrap();
        s.set(3, 5).unwrap();
        for byte in 0..ENTRY {
            let mut entry = bytes(3, 5);
            entry[byte as usize] ^= 4;
            s.file.write_all_at(&entry, HEAD + 3 * ENTRY).unwrap();
            assert_eq!(s.get(3).unwrap(), Known::Damaged);
        }
        s.file.write_all_at(&bytes(4, 5), HEAD + 3 * ENTRY).unwrap();
        assert_eq!(s.get(3).unwrap(), Known::Damaged, "another unit's sum");
    }

    #[test]
    fn sums_of_something_else_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(Sums::open(&path, &identity("d"), 125).unwrap());
        assert!(matches!(Sums::open(&path, &identity("e"), 125), Err(SumsError::Foreign { .. })));
        assert!(matches!(Sums::open(&path, &identity("d"), 126), Err(SumsError::Damaged { .. })));
        std::fs::write(&path, "dear").unwrap();
        assert!(matches!(Sums::open(&path, &identity("d"), 125), Err(SumsError::Damaged { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"dear");
    }
}
