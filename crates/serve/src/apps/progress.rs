//! The completed units of a job, and the journal that stores them.
//!
//! In memory there is one bit per unit. The journal consists of a line of JSON with the identity of
//! the job, the bits, and a checksum over both: a journal that is damaged, or of another disk or
//! job, is rejected and never silently used. It is written under a temporary name and renamed, so
//! it is complete after a crash at any time. It may lag behind the work by a few seconds; those
//! units are done again.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use headtime_sched::TaskRange;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::ranges::Ranges;
use super::units::Units;
use crate::private;

/// The first line of a journal.
const MAGIC: &[u8] = b"headtime journal 1\n";
/// Ranges of unreadable sectors that are listed individually; for a disk with more of them the list
/// is of no use.
const MAX_UNREADABLE: usize = 1 << 16;
/// The longest journal without its bits, bytes: the identity and the lists.
const LONGEST_HEAD: u64 = 16 << 20;

/// The identity of a job, which must match the journal's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The application.
    pub app: String,
    /// The disk's name.
    pub disk: String,
    /// The disk's sectors.
    pub sectors: u64,
    /// Bytes per sector.
    pub sector_bytes: u32,
    /// The scope: an export's name, or the ranges.
    pub what: String,
    /// Sectors per unit.
    pub unit: u32,
    /// First sector and count of each range.
    pub ranges: Vec<(u64, u64)>,
}

impl Identity {
    /// Describes how `found` differs from this identity.
    fn differs(&self, found: &Identity) -> Option<String> {
        let mut differ = Vec::new();
        let mut compare = |what: &str, a: String, b: String| {
            if a != b {
                differ.push(format!("{what}: expected {a}, found {b}"));
            }
        };
        compare("application", self.app.clone(), found.app.clone());
        compare("disk", self.disk.clone(), found.disk.clone());
        compare("sectors", self.sectors.to_string(), found.sectors.to_string());
        compare("bytes a sector", self.sector_bytes.to_string(), found.sector_bytes.to_string());
        compare("job", self.what.clone(), found.what.clone());
        compare("sectors a unit", self.unit.to_string(), found.unit.to_string());
        if self.ranges != found.ranges {
            differ.push("the ranges".into());
        }
        (!differ.is_empty()).then(|| differ.join("; "))
    }
}

/// Further content of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// Sectors that could not be read: first and count.
    unreadable: Vec<(u64, u64)>,
    /// Bytes that were promoted.
    pub promoted_bytes: u64,
    /// Milliseconds of work so far, without pauses.
    pub milliseconds: u64,
    /// Changed ranges that the application found: first sector and count.
    pub changed: Vec<(u64, u64)>,
    /// The application's counters.
    pub counts: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    identity: Identity,
    notes: Notes,
}

/// Why a journal was not read or not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The operating system reports an error.
    #[error("{}: {why}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: io::Error,
    },
    /// It is not a journal, or is incomplete.
    #[error("{}: {what}; --restart begins anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// The file to be replaced is not a journal.
    #[error("{}: expected a journal of headtime's or nothing there, found something else", .0.display())]
    NoJournal(PathBuf),
    /// It belongs to another job.
    #[error("{}: this journal is of another job ({how}); --restart begins anew", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// How the jobs differ.
        how: String,
    },
}

/// Checks that a new journal may be written at `path`: only a journal may be replaced, and removed
/// at the end.
///
/// # Errors
/// The system's error; or the file is not a journal.
pub fn may_begin_anew(path: &Path) -> Result<(), JournalError> {
    let mut head = Vec::new();
    let read = private::open(path, false).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut head));
    match read {
        Ok(_) if MAGIC.starts_with(&head) => Ok(()),
        Ok(_) => Err(JournalError::NoJournal(path.into())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(why) => Err(JournalError::Io { path: path.into(), why }),
    }
}

/// The completed units of a job.
#[derive(Clone, Debug)]
pub struct Progress {
    identity: Identity,
    units: Units,
    /// One bit per unit, set when it is done.
    bits: Vec<u64>,
    done: u64,
    done_sectors: u64,
    unreadable: Ranges,
    /// Further content of the journal.
    pub notes: Notes,
}

impl Progress {
    /// Creates the progress of a job without completed units.
    pub fn new(app: &str, disk: &str, sectors: u64, sector_bytes: u32, what: &str, units: Units) -> Progress {
        let identity = Identity {
            app: app.into(),
            disk: disk.into(),
            sectors,
            sector_bytes,
            what: what.into(),
            unit: units.unit(),
            ranges: units.ranges().iter().map(|r| (r.lbn, r.count)).collect(),
        };
        let bits = vec![0; units.len().div_ceil(64) as usize];
        Progress {
            identity,
            units,
            bits,
            done: 0,
            done_sectors: 0,
            unreadable: Ranges::default(),
            notes: Notes::default(),
        }
    }

    /// Returns the identity of the job.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the units of the job.
    pub fn units(&self) -> &Units {
        &self.units
    }

    /// Returns the bytes per sector.
    pub fn sector_bytes(&self) -> u64 {
        self.identity.sector_bytes.into()
    }

    /// Returns whether unit `index` is done.
    pub fn is_done(&self, index: u64) -> bool {
        self.bits[(index / 64) as usize] >> (index % 64) & 1 == 1
    }

    /// Marks unit `index` as done. Returns false if it was already.
    pub fn mark(&mut self, index: u64) -> bool {
        if self.is_done(index) {
            return false;
        }
        self.bits[(index / 64) as usize] |= 1 << (index % 64);
        self.done += 1;
        self.done_sectors += self.units.range(index).count;
        true
    }

    /// Resets all progress.
    pub fn forget(&mut self) {
        self.bits.fill(0);
        (self.done, self.done_sectors) = (0, 0);
        self.unreadable = Ranges::default();
        self.notes = Notes::default();
    }

    /// Returns the number of completed units.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Returns whether all units are done.
    pub fn is_complete(&self) -> bool {
        self.done == self.units.len()
    }

    /// Returns the bytes done, and in total.
    pub fn bytes(&self) -> (u64, u64) {
        (self.done_sectors * self.sector_bytes(), self.units.sectors() * self.sector_bytes())
    }

    /// Adds unreadable sectors.
    pub fn unreadable(&mut self, range: TaskRange) {
        if self.unreadable.len() < MAX_UNREADABLE {
            self.unreadable.insert(range);
        }
        let sectors = self.unreadable.sectors();
        self.notes.counts.insert("unreadable_sectors".into(), sectors);
    }

    /// Returns the unreadable sectors.
    pub fn unreadable_ranges(&self) -> &Ranges {
        &self.unreadable
    }

    /// Returns the first unit in `from..to` that is done (or not done), or `to`.
    fn find(&self, from: u64, to: u64, done: bool) -> u64 {
        let mut at = from;
        while at < to {
            let word = self.bits[(at / 64) as usize];
            let word = (if done { word } else { !word }) >> (at % 64);
            if word != 0 {
                return (at + u64::from(word.trailing_zeros())).min(to);
            }
            at = (at / 64 + 1) * 64;
        }
        to
    }

    /// Returns the next range of units that are not done, from unit `from` on: the first and one
    /// past the last.
    pub fn next_left(&self, from: u64) -> Option<(u64, u64)> {
        let len = self.units.len();
        let first = self.find(from, len, false);
        (first < len).then(|| (first, self.find(first, len, true)))
    }

    /// Returns the remaining sectors in about `most` ranges at most. If they are more fragmented,
    /// nearby ranges are merged, and completed units between them are read again.
    pub fn left(&self, most: usize) -> Vec<TaskRange> {
        let mut gap = 0;
        loop {
            match self.left_with(gap, most.max(self.units.ranges().len())) {
                Some(left) => return left.into_iter().flat_map(|(a, b)| self.units.stretches(a, b)).collect(),
                None => gap = (gap * 4).max(1),
            }
        }
    }

    /// Returns the remaining ranges of units, merging those at most `gap` units apart; `None` if
    /// there are too many.
    fn left_with(&self, gap: u64, most: usize) -> Option<Vec<(u64, u64)>> {
        let (mut all, mut from): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
        while let Some((first, end)) = self.next_left(from) {
            let full = all.len() == most;
            match all.last_mut() {
                Some(last) if first - last.1 <= gap => last.1 = end,
                _ if full => return None,
                _ => all.push((first, end)),
            }
            from = end;
        }
        Some(all)
    }

    /// Writes the journal. Either the old or the new one exists at any time.
    pub fn save(&mut self, path: &Path) -> Result<(), JournalError> {
        let failed = |why| JournalError::Io { path: path.into(), why };
        self.notes.unreadable = self.unreadable.iter().map(|r| (r.lbn, r.count)).collect();
        let header = Header { identity: self.identity.clone(), notes: self.notes.clone() };
        let mut text = MAGIC.to_vec();
        serde_json::to_writer(&mut text, &header).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        self.bits.iter().for_each(|w| text.extend_from_slice(&w.to_le_bytes()));
        text.extend_from_slice(&xxh3_64(&text).to_le_bytes());
        private::write_whole(path, |file| file.write_all(&text)).map(drop).map_err(failed)
    }

    /// Reads the journal at `path`. Returns false if there is none. A journal of another job is
    /// rejected without any change.
    pub fn resume(&mut self, path: &Path) -> Result<bool, JournalError> {
        let most = LONGEST_HEAD + self.bits.len() as u64 * 8;
        let mut text = Vec::new();
        // Another user's link or file would control which units are skipped.
        let read = private::open(path, false).and_then(|file| file.take(most + 1).read_to_end(&mut text));
        match read {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(why) => return Err(JournalError::Io { path: path.into(), why }),
        }
        let damaged = |what| JournalError::Damaged { path: path.into(), what };
        if text.len() as u64 > most {
            return Err(damaged("the journal is longer than one of this job can be"));
        }
        if !text.starts_with(MAGIC) {
            return Err(damaged("expected a journal of headtime's, found something else"));
        }
        let (body, sum) = text.split_last_chunk::<8>().ok_or_else(|| damaged("the journal is cut short"))?;
        if xxh3_64(body) != u64::from_le_bytes(*sum) {
            return Err(damaged("the journal is damaged: its checksum is wrong"));
        }
        let body = body.strip_prefix(MAGIC).ok_or_else(|| damaged("the journal is cut short"))?;
        let end = body.iter().position(|&b| b == b'\n').ok_or_else(|| damaged("the journal has no header"))?;
        let Header { identity, notes } =
            serde_json::from_slice(&body[..end]).map_err(|_| damaged("the journal's header is not as expected"))?;
        if let Some(how) = self.identity.differs(&identity) {
            return Err(JournalError::Foreign { path: path.into(), how });
        }
        let words = &body[end + 1..];
        if words.len() != self.bits.len() * 8 {
            return Err(damaged("the journal is not as long as it should be"));
        }
        self.forget();
        for (i, word) in words.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            for index in (0..64).filter(|b| word >> b & 1 == 1).map(|b| i as u64 * 64 + b) {
                if index < self.units.len() {
                    self.mark(index);
                }
            }
        }
        self.unreadable = notes.unreadable.iter().map(|&(lbn, count)| TaskRange { lbn, count }).collect();
        self.notes = notes;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
