//! Greedy readers and writers, each with its own file (Valente 2014 section 7.2).
//!
//! A reader at random places submits one request of 4 KiB after another. A sequential reader reads
//! through the page cache's read-ahead: windows of 16 KiB to begin with, each twice as long as the
//! previous one, up to 128 KiB. A window is submitted when the reader touches the first page of the
//! previous one, whether that has been read or not (`ondemand_readahead` of the kernel). So while
//! it waits for one window, another is submitted, and the disk does not see its queue empty between
//! two windows. A writer fills the page cache, which writes back asynchronously with several
//! requests in flight: 512 KiB in sequential order, otherwise 4 KiB.

use super::super::variates::Variates;
use super::{Actor, Disk, Piece};
use headtime_disk::{Dur, Kind, Time};

/// Bytes of a file, if the disk has room.
pub const FILE: u64 = 5_000_000_000;
/// The first read-ahead window and the longest, bytes.
const READ_AHEAD: (u64, u64) = (16 << 10, 128 << 10);
/// Read-ahead windows in flight: the one that the reader waits for, and the next.
const WINDOWS: u32 = 2;
const WRITE_BEHIND: u64 = 512 << 10;
const PAGE: u64 = 4 << 10;
/// A writer with pauses writes for the first half of each such interval: that of the kernel's
/// flusher.
const FLUSHER_INTERVAL: Dur = Dur::from_secs(5);
/// The page cache's writes in flight per file: sequential, or random.
const WRITES_IN_FLIGHT: (u32, u32) = (8, 32);

/// A reader or a writer.
#[derive(Clone, Debug)]
pub struct FileActor {
    kind: Kind,
    random: bool,
    first: u64,
    sectors: u64,
    /// Size of the next request, and of the largest.
    piece: u64,
    largest: u64,
    /// Sector of the file at which the next sequential request begins.
    at: u64,
    most: u32,
    under_way: u32,
    rng: Variates,
    /// It can submit from here on.
    now: Time,
    with_pauses: bool,
}

impl FileActor {
    /// Reads or writes file `i` of `n`, sequentially or at random places.
    pub fn new(disk: &Disk, kind: Kind, random: bool, (i, n): (u64, u64), seed: u64) -> FileActor {
        let (first, sectors) = disk.file(i, n, FILE);
        let (piece, largest, most) = match (kind, random) {
            (Kind::Write, true) => (PAGE, PAGE, WRITES_IN_FLIGHT.1),
            (Kind::Write, false) => (WRITE_BEHIND, WRITE_BEHIND, WRITES_IN_FLIGHT.0),
            (_, true) => (PAGE, PAGE, 1),
            (_, false) => (READ_AHEAD.0, READ_AHEAD.1, WINDOWS),
        };
        let [piece, largest] = [piece, largest].map(|bytes| disk.sectors(bytes).min(sectors));
        let rng = Variates::new(seed, i);
        FileActor {
            kind,
            random,
            first,
            sectors,
            piece,
            largest,
            at: 0,
            most,
            under_way: 0,
            rng,
            now: Time::ZERO,
            with_pauses: false,
        }
    }

    /// Pauses for half of the time, 2.5 s in every five.
    #[must_use]
    pub fn with_pauses(self) -> FileActor {
        FileActor { with_pauses: true, ..self }
    }

    /// Returns when it can submit, from `now` on.
    fn from(&self, now: Time) -> Time {
        let within = now.0 % FLUSHER_INTERVAL.0;
        match self.with_pauses && within >= FLUSHER_INTERVAL.0 / 2 {
            true => now + Dur(FLUSHER_INTERVAL.0 - within),
            false => now,
        }
    }
}

impl Actor for FileActor {
    fn next_due(&self) -> Option<Time> {
        (self.under_way < self.most).then(|| self.from(self.now))
    }

    fn take(&mut self) -> Piece {
        self.under_way += 1;
        let count = self.piece;
        let at = match self.random {
            true => count * self.rng.below((self.sectors / count).max(1)),
            // From its beginning again when another request does not fit.
            false => {
                let at = if self.at + count > self.sectors { 0 } else { self.at };
                self.at = at + count;
                self.piece = (2 * count).min(self.largest);
                at
            }
        };
        Piece { kind: self.kind, lbn: self.first + at, count: count as u32, sync: self.kind == Kind::Read, process: 0 }
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
