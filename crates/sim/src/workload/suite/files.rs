//! Greedy readers and writers, each with its own file (Valente 2014 section 7.2).
//!
//! A reader submits one request after another: 128 KiB in sequential order (the page cache's
//! read-ahead), otherwise 4 KiB at random places. A writer fills the page cache, which writes back
//! asynchronously with several requests in flight: 512 KiB in sequential order, otherwise 4 KiB.

use super::super::variates::Variates;
use super::{Actor, Disk, Piece};
use headtime_disk::{Kind, Time};

/// Bytes of a file, if the disk has room.
pub const FILE: u64 = 5_000_000_000;
const READ_AHEAD: u64 = 128 << 10;
const WRITE_BEHIND: u64 = 512 << 10;
const PAGE: u64 = 4 << 10;
/// The page cache's writes in flight per file: sequential, or random.
const WRITES_IN_FLIGHT: (u32, u32) = (8, 32);

/// A reader or a writer.
#[derive(Clone, Debug)]
pub struct FileActor {
    kind: Kind,
    random: bool,
    first: u64,
    sectors: u64,
    piece: u64,
    at: u64,
    most: u32,
    under_way: u32,
    rng: Variates,
    /// It can submit from here on.
    now: Time,
}

impl FileActor {
    /// Reads or writes file `i` of `n`, sequentially or at random places.
    pub fn new(disk: &Disk, kind: Kind, random: bool, (i, n): (u64, u64), seed: u64) -> FileActor {
        let (first, sectors) = disk.file(i, n, FILE);
        let piece = match (kind, random) {
            (_, true) => PAGE,
            (Kind::Write, false) => WRITE_BEHIND,
            (_, false) => READ_AHEAD,
        };
        let most = match kind {
            Kind::Write if random => WRITES_IN_FLIGHT.1,
            Kind::Write => WRITES_IN_FLIGHT.0,
            _ => 1,
        };
        let piece = disk.sectors(piece).min(sectors);
        let rng = Variates::new(seed, i);
        FileActor { kind, random, first, sectors, piece, at: 0, most, under_way: 0, rng, now: Time::ZERO }
    }
}

impl Actor for FileActor {
    fn next_due(&self) -> Option<Time> {
        (self.under_way < self.most).then_some(self.now)
    }

    fn take(&mut self) -> Piece {
        self.under_way += 1;
        let pieces = (self.sectors / self.piece).max(1);
        let at = if self.random { self.rng.below(pieces) } else { self.at % pieces };
        self.at += 1;
        Piece {
            kind: self.kind,
            lbn: self.first + at * self.piece,
            count: self.piece as u32,
            sync: self.kind == Kind::Read,
            process: 0,
        }
    }

    fn finished(&mut self, _: u32, now: Time) {
        self.under_way -= 1;
        self.now = now;
    }
}

/// The suite's four loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Ten sequential readers.
    Readers10Seq,
    /// Ten random readers.
    Readers10Rand,
    /// Five readers and five writers, sequential.
    Mixed5Seq,
    /// Five readers and five writers, random.
    Mixed5Rand,
}

impl Load {
    /// All loads.
    pub const ALL: [Load; 4] = [Load::Readers10Seq, Load::Readers10Rand, Load::Mixed5Seq, Load::Mixed5Rand];

    /// Returns its name in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Load::Readers10Seq => "10r-seq",
            Load::Readers10Rand => "10r-rand",
            Load::Mixed5Seq => "5r5w-seq",
            Load::Mixed5Rand => "5r5w-rand",
        }
    }

    /// Returns its actors. Two of the [`FILES`] files, from number 10 on, are left for others.
    pub fn actors(self, disk: &Disk, seed: u64) -> Vec<Box<dyn Actor>> {
        let random = matches!(self, Load::Readers10Rand | Load::Mixed5Rand);
        let writers = if matches!(self, Load::Mixed5Seq | Load::Mixed5Rand) { 5 } else { 0 };
        greedy(disk, 10 - writers, writers, random, seed)
    }
}

/// Returns writers followed by readers, sequential or random, each with its own file; two more
/// files follow theirs. Readers' and writers' files alternate as long as there are both.
pub fn greedy(disk: &Disk, readers: u64, writers: u64, random: bool, seed: u64) -> Vec<Box<dyn Actor>> {
    let both = readers.min(writers);
    let actor = |kind, i: u64, offset| {
        let file = if i < both { 2 * i + offset } else { both + i };
        Box::new(FileActor::new(disk, kind, random, (file, readers + writers + 2), seed)) as Box<dyn Actor>
    };
    let writes = (0..writers).map(|i| actor(Kind::Write, i, 1));
    writes.chain((0..readers).map(|i| actor(Kind::Read, i, 0))).collect()
}

/// Number of files on the disk: those of the loads, and two more.
pub const FILES: u64 = 12;
