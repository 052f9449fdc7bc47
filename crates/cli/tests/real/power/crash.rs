//! The possible disk states after a power failure: synced changes are there; of the rest, any
//! sector of any write may be, and a directory's names are as after any of its changes.
//!
//! POSIX permits this of a file system, and journalling ones do it: data reaches the disk in any
//! order, changes of one directory in theirs, and neither waits for the other. Syncing a file does
//! not keep its name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use super::next;
use super::recorder::{Op, TOP};

const SECTOR: u64 = 512;

type Sector = [u8; SECTOR as usize];

/// A file's contents; missing sectors are zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub bytes: u64,
    sectors: BTreeMap<u64, Arc<Sector>>,
}

impl Contents {
    fn cut(&mut self, bytes: u64) {
        if bytes < self.bytes {
            self.clear(bytes, self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    fn change(&mut self, at: u64, bytes: u64, with: impl Fn(u64) -> u8) {
        let (from, to) = ((at % SECTOR) as usize, (at % SECTOR + bytes) as usize);
        let sector = self.sectors.entry(at / SECTOR).or_insert_with(|| Arc::new([0; SECTOR as usize]));
        for (n, byte) in Arc::make_mut(sector)[from..to].iter_mut().enumerate() {
            *byte = with(n as u64);
        }
    }

    fn clear(&mut self, at: u64, bytes: u64) {
        for (at, bytes) in pieces(at, bytes.min(self.bytes.saturating_sub(at))) {
            if bytes == SECTOR {
                self.sectors.remove(&(at / SECTOR));
            } else {
                self.change(at, bytes, |_| 0);
            }
        }
    }

    fn write(&mut self, at: u64, data: &[u8]) {
        self.change(at, data.len() as u64, |n| data[n as usize]);
        self.bytes = self.bytes.max(at + data.len() as u64);
    }

    /// One sector.
    pub fn sector(&self, number: u64) -> Sector {
        self.sectors.get(&number).map_or([0; SECTOR as usize], |s| **s)
    }

    fn save(&self, path: &Path) -> io::Result<()> {
        let file = fs::File::create_new(path)?;
        file.set_len(self.bytes)?;
        for (number, sector) in &self.sectors {
            let at = number * SECTOR;
            let there = SECTOR.min(self.bytes.saturating_sub(at)) as usize;
            file.write_all_at(&sector[..there], at)?;
        }
        Ok(())
    }
}

/// The parts of these bytes, each within a sector.
fn pieces(at: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = at + bytes;
    let first = at / SECTOR;
    let last = if bytes == 0 { first } else { end.div_ceil(SECTOR) };
    (first..last).map(move |n| (at.max(n * SECTOR), end.min((n + 1) * SECTOR))).map(|(a, b)| (a, b - a))
}

/// A disk state.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    files: BTreeMap<u64, Contents>,
    /// Names, by directory.
    names: BTreeMap<u64, BTreeMap<OsString, u64>>,
}

impl Disk {
    fn carry_out(&mut self, op: &Op) {
        match op {
            Op::Create { directory, name, file, is_directory } => {
                self.names.entry(*directory).or_default().insert(name.clone(), *file);
                if *is_directory {
                    self.names.entry(*file).or_default();
                }
            }
            Op::Rename { from, to } => {
                if let Some(file) = self.names.entry(from.0).or_default().remove(&from.1) {
                    self.names.entry(to.0).or_default().insert(to.1.clone(), file);
                }
            }
            Op::Remove { directory, name } => {
                self.names.entry(*directory).or_default().remove(name);
            }
            Op::Length { file, bytes } => self.files.entry(*file).or_default().cut(*bytes),
            Op::Write { file, at, data } => {
                let contents = self.files.entry(*file).or_default();
                let mut rest = &data[..];
                for (at, bytes) in pieces(*at, data.len() as u64) {
                    let (piece, behind) = rest.split_at(bytes as usize);
                    contents.write(at, piece);
                    rest = behind;
                }
            }
            Op::Hole { file, at, bytes } => self.files.entry(*file).or_default().clear(*at, *bytes),
            Op::Sync(_) | Op::Note(_) => {}
        }
    }

    /// A file in the top directory.
    pub fn file(&self, name: &str) -> Option<Contents> {
        self.file_in(TOP, name)
    }

    /// A file in a subdirectory of the top directory.
    pub fn file_below(&self, directory: &str, name: &str) -> Option<Contents> {
        let directory = self.names.get(&TOP)?.get(std::ffi::OsStr::new(directory))?;
        self.file_in(*directory, name)
    }

    fn file_in(&self, directory: u64, name: &str) -> Option<Contents> {
        let file = self.names.get(&directory)?.get(std::ffi::OsStr::new(name))?;
        Some(self.files.get(file).cloned().unwrap_or_default())
    }

    /// Writes the state into an empty directory.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        self.save_directory(TOP, path)
    }

    fn save_directory(&self, directory: u64, path: &Path) -> io::Result<()> {
        for (name, file) in self.names.get(&directory).into_iter().flatten() {
            let path = path.join(name);
            if self.names.contains_key(file) {
                fs::create_dir(&path)?;
                self.save_directory(*file, &path)?;
            } else {
                self.files.get(file).cloned().unwrap_or_default().save(&path)?;
            }
        }
        Ok(())
    }
}

/// The directory whose names an operation changes, or the file whose contents it changes.
fn subject(op: &Op) -> Option<(bool, u64)> {
    match op {
        Op::Create { directory, .. } | Op::Remove { directory, .. } => Some((true, *directory)),
        Op::Rename { from, to } => {
            assert_eq!(from.0, to.0, "a name goes from one directory to another");
            Some((true, from.0))
        }
        Op::Length { file, .. } | Op::Write { file, .. } | Op::Hole { file, .. } => Some((false, *file)),
        Op::Sync(_) | Op::Note(_) => None,
    }
}

/// Power failures in log order, each with a possible disk state.
pub struct Failures<'a> {
    log: &'a [Op],
    /// Length of the log so far, and the state that is certainly on the disk.
    at: usize,
    certain: Disk,
    /// Later operations, which may be on the disk.
    pending: Vec<Op>,
    seed: u64,
}

impl<'a> Failures<'a> {
    pub fn of(log: &'a [Op], seed: u64) -> Failures<'a> {
        Failures { log, at: 0, certain: Disk::default(), pending: Vec::new(), seed }
    }

    /// Moves the power failure to after the first `at` operations of the log; `at` never decreases.
    pub fn go_to(&mut self, at: usize) {
        assert!(at >= self.at && at <= self.log.len());
        for op in &self.log[self.at..at] {
            if let Op::Sync(which) = op {
                let pending = std::mem::take(&mut self.pending);
                for op in pending {
                    if subject(&op).is_some_and(|s| s.1 == *which) {
                        self.certain.carry_out(&op);
                    } else {
                        self.pending.push(op);
                    }
                }
            } else {
                self.pending.push(op.clone());
            }
        }
        self.at = at;
    }

    /// Returns a possible disk state if the power fails here.
    pub fn disk(&mut self) -> Disk {
        let mut disk = self.certain.clone();
        // None, nearly none, half, nearly all or all of the pending operations.
        let kept_percent = [0, 3, 50, 97, 100][self.chance(5) as usize];
        let names = self.pending.iter().filter(|op| matches!(subject(op), Some((true, _)))).count() as u64;
        let mut changes = match kept_percent {
            0 => 0,
            100 => names,
            _ => self.chance(names + 1),
        };
        let pending = std::mem::take(&mut self.pending);
        for op in &pending {
            match subject(op) {
                Some((true, _)) if changes > 0 => {
                    disk.carry_out(op);
                    changes -= 1;
                }
                Some((false, _)) => self.keep_some(op, kept_percent, &mut disk),
                Some((true, _)) | None => {}
            }
        }
        self.pending = pending;
        disk
    }

    fn keep_some(&mut self, op: &Op, kept_percent: u64, disk: &mut Disk) {
        let Op::Write { file, at, data } = op else {
            if self.chance(100) < kept_percent {
                disk.carry_out(op);
            }
            return;
        };
        let mut rest = &data[..];
        for (at, bytes) in pieces(*at, data.len() as u64) {
            let (piece, behind) = rest.split_at(bytes as usize);
            rest = behind;
            if self.chance(100) < kept_percent {
                disk.carry_out(&Op::Write { file: *file, at, data: piece.into() });
            }
        }
    }

    fn chance(&mut self, of: u64) -> u64 {
        self.seed = next(self.seed);
        self.seed % of
    }
}
