//! What a host asks of a drive, and what it hears back.

use crate::time::{Dur, Time};

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Put every acknowledged write on the media (`lbn` and `count` are ignored).
    Flush,
}

impl Kind {
    /// Whether this is a read.
    #[inline]
    pub fn is_read(self) -> bool {
        matches!(self, Kind::Read)
    }
}

/// One command as a drive sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The host's name for it; comes back in the completion. Unique among outstanding commands.
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
    /// One past the last logical block.
    #[inline]
    pub fn end(&self) -> u64 {
        self.lbn + u64::from(self.count)
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it was done.
    Ok,
    /// A sector could not be read; the first bad one is named.
    MediaError {
        /// The first unreadable logical block.
        lbn: u64,
    },
    /// The drive does not answer any more.
    Dead,
}

/// Why a drive refused a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The drive's queue is full.
    #[error("the drive's queue is full ({depth} commands outstanding)")]
    Full {
        /// The drive's queue depth.
        depth: u32,
    },
    /// The command reaches beyond the drive's last sector, or asks for nothing.
    #[error("sectors {lbn} to {lbn}+{count} are not on a drive of {capacity} sectors")]
    OutOfRange {
        /// First logical block asked for.
        lbn: u64,
        /// Sectors asked for.
        count: u32,
        /// The drive's usable sectors.
        capacity: u64,
    },
}

/// When the parts of a command happened, as the drive knows it. A host cannot see these; pictures
/// and tests can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaTimes {
    /// The mechanism began to work for this command.
    pub start: Time,
    /// The arm had arrived and settled.
    pub seek_end: Time,
    /// The first sector began to pass under the head.
    pub transfer_start: Time,
    /// The last sector had passed; the mechanism was free.
    pub end: Time,
    /// Between `transfer_start` and `end`, the time in which nothing wanted passed because the head
    /// had landed inside a wanted stretch and had to come round to its front. It is rotational
    /// latency like the wait before a first sector.
    pub turned: Dur,
}

impl MediaTimes {
    /// Moving to the first track, settling included.
    #[inline]
    pub fn seek(&self) -> Dur {
        self.seek_end.since(self.start)
    }

    /// Rotational latency: the wait for the first sector, and what was turned past inside the
    /// request.
    #[inline]
    pub fn rotate(&self) -> Dur {
        self.transfer_start.since(self.seek_end) + self.turned
    }

    /// Transfer: wanted sectors passing, moves at track ends included.
    #[inline]
    pub fn transfer(&self) -> Dur {
        self.end.since(self.transfer_start) - self.turned
    }
}

/// A finished command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The command's name.
    pub id: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// When the host heard of it.
    pub at: Time,
    /// When its parts happened; `None` when the mechanism did nothing for it before it completed (a
    /// cache hit, a write that went to the cache).
    pub media: Option<MediaTimes>,
}
