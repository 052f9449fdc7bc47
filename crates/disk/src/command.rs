//! Commands to a drive, and their completions.

use crate::time::{Dur, Time};

/// Kind of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Reads sectors.
    Read,
    /// Writes sectors.
    Write,
    /// Makes every acknowledged write durable (`lbn` and `count` are ignored).
    Flush,
}

impl Kind {
    /// Whether this is a read.
    #[inline]
    pub fn is_read(self) -> bool {
        matches!(self, Kind::Read)
    }
}

/// A command to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The host's identifier, returned in the completion. Unique among outstanding commands.
    pub id: u64,
    /// Read, write or flush.
    pub kind: Kind,
    /// First logical block.
    pub lbn: u64,
    /// Number of sectors.
    pub count: u32,
    /// Force unit access: a write completes only when it is on the media.
    pub fua: bool,
}

impl Command {
    /// Returns one past the last logical block.
    #[inline]
    pub fn end(&self) -> u64 {
        self.lbn + u64::from(self.count)
    }
}

/// Outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success.
    Ok,
    /// A sector could not be read; `lbn` is the first bad one.
    MediaError {
        /// The first unreadable logical block.
        lbn: u64,
    },
    /// The drive no longer responds.
    Dead,
}

/// Why a drive rejected a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The drive's queue is full.
    #[error("the drive's queue is full ({depth} commands outstanding)")]
    Full {
        /// The drive's queue depth.
        depth: u32,
    },
    /// The command exceeds the drive's capacity, or is empty.
    #[error("sectors {lbn} to {lbn}+{count} are not on a drive of {capacity} sectors")]
    OutOfRange {
        /// First logical block requested.
        lbn: u64,
        /// Sectors requested.
        count: u32,
        /// The drive's usable sectors.
        capacity: u64,
    },
}

/// Times of a command's phases, as the drive knows them. A host cannot see these; plots and tests
/// can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaTimes {
    /// The mechanism started on this command.
    pub start: Time,
    /// The seek and settling ended.
    pub seek_end: Time,
    /// The first sector began to pass under the head.
    pub transfer_start: Time,
    /// The last sector had passed; the mechanism was idle.
    pub end: Time,
    /// Time between `transfer_start` and `end` in which no wanted sector passed, because the head
    /// landed inside the wanted range and had to wait for its beginning. It counts as rotational
    /// latency like the wait for a first sector.
    pub turned: Dur,
}

impl MediaTimes {
    /// Returns the time of the move to the first track, including settling.
    #[inline]
    pub fn seek(&self) -> Dur {
        self.seek_end.since(self.start)
    }

    /// Returns the rotational latency: the wait for the first sector, and for the range's beginning
    /// after landing inside it.
    #[inline]
    pub fn rotate(&self) -> Dur {
        self.transfer_start.since(self.seek_end) + self.turned
    }

    /// Returns the transfer time, including moves at track ends.
    #[inline]
    pub fn transfer(&self) -> Dur {
        self.end.since(self.transfer_start) - self.turned
    }
}

/// Completion of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The command's identifier.
    pub id: u64,
    /// Its outcome.
    pub outcome: Outcome,
    /// When the host was notified.
    pub at: Time,
    /// Times of its phases; `None` when it completed without the mechanism (a cache hit, a cached
    /// write).
    pub media: Option<MediaTimes>,
}
