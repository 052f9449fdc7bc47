//! Greedy readers and writers of one file each (Valente 2014 section 7.2).
//!
//! A reader asks for one piece after the other: 128 KiB when it reads in order (what the page cache
//! reads ahead), 4 KiB at random places otherwise. A writer fills the page cache, which writes
//! behind its back and keeps several requests under way: 512 KiB in order, or 4 KiB.

use super::super::variates::Variates;
use super::{Actor, Disk, Piece};
use headtime_disk::command::Kind;
use headtime_disk::time::Time;

/// Bytes of a file, when the disk has room.
pub const FILE: u64 = 5_000_000_000;
const READ_AHEAD: u64 = 128 << 10;
const WRITE_BEHIND: u64 = 512 << 10;
const PAGE: u64 = 4 << 10;
/// Requests that the cache has under way for one file that is written: in order, or at random
/// places.
const BEHIND: (u32, u32) = (8, 32);

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
    /// It can ask from here on.
    now: Time,
}

impl FileActor {
    /// Reads or writes file `i` of `n`, in order or at random places.
    pub fn new(disk: &Disk, kind: Kind, random: bool, (i, n): (u64, u64), seed: u64) -> FileActor {
        let (first, sectors) = disk.file(i, n, FILE);
        let piece = match (kind, random) {
            (_, true) => PAGE,
            (Kind::Write, false) => WRITE_BEHIND,
            (_, false) => READ_AHEAD,
        };
        let most = match kind {
            Kind::Write if random => BEHIND.1,
            Kind::Write => BEHIND.0,
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

/// The four loads of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Ten readers, in order.
    Readers10Seq,
    /// Ten readers at random places.
    Readers10Rand,
    /// Five readers and five writers, in order.
    Mixed5Seq,
    /// Five readers and five writers at random places.
    Mixed5Rand,
}

impl Load {
    /// All of them.
    pub const ALL: [Load; 4] = [Load::Readers10Seq, Load::Readers10Rand, Load::Mixed5Seq, Load::Mixed5Rand];

    /// Its name in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Load::Readers10Seq => "10r-seq",
            Load::Readers10Rand => "10r-rand",
            Load::Mixed5Seq => "5r5w-seq",
            Load::Mixed5Rand => "5r5w-rand",
        }
    }

    /// Its actors. Of [`FILES`] files there are two left for others, from number 10 on.
    pub fn actors(self, disk: &Disk, seed: u64) -> Vec<Box<dyn Actor>> {
        let random = matches!(self, Load::Readers10Rand | Load::Mixed5Rand);
        let writers = if matches!(self, Load::Mixed5Seq | Load::Mixed5Rand) { 5 } else { 0 };
        greedy(disk, 10 - writers, writers, random, seed)
    }
}

/// So many writers and so many readers after them, in order or at random places, each with a file
/// of its own; two more files lie behind theirs. Readers' and writers' files lie between each
/// other, as long as there are both.
pub fn greedy(disk: &Disk, readers: u64, writers: u64, random: bool, seed: u64) -> Vec<Box<dyn Actor>> {
    let both = readers.min(writers);
    let actor = |kind, i: u64, offset| {
        let file = if i < both { 2 * i + offset } else { both + i };
        Box::new(FileActor::new(disk, kind, random, (file, readers + writers + 2), seed)) as Box<dyn Actor>
    };
    let writes = (0..writers).map(|i| actor(Kind::Write, i, 1));
    writes.chain((0..readers).map(|i| actor(Kind::Read, i, 0))).collect()
}

/// Files on the disk: those of the loads, and two more.
pub const FILES: u64 = 12;
