//! A reader of the same small part of the disk: after the first pass the drive's cache serves it,
//! at the rate of the bus. It misleads an estimator that takes the highest observed rate for the
//! disk's (Valente 2014 section 4.2).

use headtime_disk::{Kind, Time};

use super::{Actor, Disk, Piece};

const PIECE: u64 = 128 << 10;

/// The reader.
#[derive(Clone, Debug)]
pub struct Rereader {
    first: u64,
    pieces: u64,
    piece: u64,
    at: u64,
    due: Option<Time>,
}

impl Rereader {
    /// Reads `bytes` in the middle of the disk repeatedly.
    pub fn new(disk: &Disk, bytes: u64) -> Rereader {
        let piece = disk.sectors(PIECE);
        let pieces = (disk.sectors(bytes) / piece).max(1);
        Rereader { first: disk.capacity / 2, pieces, piece, at: 0, due: Some(Time::ZERO) }
    }
}

impl Actor for Rereader {
    fn next_due(&self) -> Option<Time> {
        self.due
    }

    fn take(&mut self) -> Piece {
        self.due = None;
        let lbn = self.first + self.at % self.pieces * self.piece;
        self.at += 1;
        Piece { kind: Kind::Read, lbn, count: self.piece as u32, sync: true, process: 0 }
    }

    fn finished(&mut self, _: u32, now: Time) {
        self.due = Some(now);
    }
}
