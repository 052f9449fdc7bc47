//! A file with a checksum for each unit: the catalogue of a scrub, and the reference for verifying
//! a backup.
//!
//! The checksum is xxh3 with 64 bits: an accidental change goes undetected with probability 2^-64,
//! and the computation is faster than any disk. It does not protect against forged data; that would
//! need a cryptographic hash and a catalogue that an attacker cannot write.
//!
//! The file is a page with the identity of the job, followed by 16 bytes per unit: the checksum,
//! and a check of the checksum, so that damage to the file is not taken for damage to the disk.
//! Sixteen zero bytes mean that no checksum is known.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::progress::Identity;
use crate::private;

/// Bytes before the first checksum.
const HEAD: u64 = 4096;
/// Bytes per checksum.
const ENTRY: u64 = 16;
const MAGIC: &[u8] = b"headtime sums 1\n";

/// Why a file of checksums could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SumsError {
    /// The operating system reports an error.
    #[error("{}: {why}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: io::Error,
    },
    /// The file is damaged or not a file of checksums.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// The checksums are of another disk, export or unit.
    #[error("{}: these checksums are of something else: expected {expected}, found {found}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The expected identity.
        expected: String,
        /// The identity found.
        found: String,
    },
    /// Another program has locked it.
    #[error("{}: another headtime uses it", .0.display())]
    InUse(PathBuf),
}

/// What is known of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// No checksum has been stored.
    Nothing,
    /// The stored checksum.
    Sum(u64),
    /// The file is damaged at this unit.
    Damaged,
}

/// Returns the checksum of a unit's data.
pub(crate) fn sum(data: &[u8]) -> u64 {
    xxh3_64(data)
}

/// A file of checksums.
#[derive(Debug)]
pub struct Sums {
    file: File,
    path: PathBuf,
}

/// Returns the identity that must match for checksums to be comparable; it contains neither the
/// application nor the path.
fn whose(i: &Identity) -> String {
    let (first, count) = (i.ranges.first().map_or(0, |r| r.0), i.ranges.iter().map(|r| r.1).sum::<u64>());
    format!(
        "disk {:?} of {} sectors of {} bytes, {} from sector {first}, {count} sectors in units of {}",
        i.disk, i.sectors, i.sector_bytes, i.what, i.unit
    )
}

/// Returns whether a file has checksums: an empty one, as a missing one, has none.
pub(super) fn exist(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.len() > 0)
}

impl Sums {
    /// Opens the file of a job with this number of units, or creates it, and locks it. Returns true
    /// if it existed.
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
            // The file is replaced by a complete one: with a partial header it would count as
            // damaged.
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

    /// Creates a locked file of `len` bytes without checksums.
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

    /// Returns what is known of unit `index`.
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

    /// Stores the checksum of unit `index`.
    pub fn set(&self, index: u64, sum: u64) -> Result<(), SumsError> {
        self.file.write_all_at(&bytes(index, sum), HEAD + index * ENTRY).map_err(|e| self.failed(e))
    }

    /// Removes the checksum of unit `index`.
    pub fn clear(&self, index: u64) -> Result<(), SumsError> {
        self.file.write_all_at(&[0; ENTRY as usize], HEAD + index * ENTRY).map_err(|e| self.failed(e))
    }

    /// Makes stored checksums durable.
    pub fn sync(&self) -> Result<(), SumsError> {
        self.file.sync_data().map_err(|e| self.failed(e))
    }
}

fn bytes(index: u64, sum: u64) -> [u8; ENTRY as usize] {
    let mut entry = [0; ENTRY as usize];
    entry[..8].copy_from_slice(&sum.to_le_bytes());
    // A checksum of 0 with a check of 0 would mean that none is known; the set lowest bit prevents
    // that.
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
    fn sums_are_read_back_and_units_without_one_are_distinguished() {
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
