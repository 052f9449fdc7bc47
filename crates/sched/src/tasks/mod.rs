//! The task manager: what background applications want of the disk (Thereska 2003 sections 2.1, 3.3
//! and 4.2).
//!
//! An application opens a *session* with a priority and registers *tasks* in it: sets of block
//! ranges that it wants read or written, in any order, whenever that costs the foreground nothing.
//! Nothing blocks: blocks come back as [`Event`]s, in any order, each exactly once. A task's ranges
//! are cut into *units* of `min_pickup` sectors (MIN_PICKUP_SIZE), a multiple of its `blksize`; one
//! bit a unit says whether it is still wanted.
//!
//! * [`manager`]: sessions and tasks, the calls, the events, and what becomes of a unit; the calls
//!   are in several files: tasks come and go ([`register`]), commands complete and are submitted
//!   ([`deliver`]), data to be written is asked for ([`writes`]), promoted tasks are handed out
//!   ([`promote`]), searches ask ([`query`])
//! * [`sessions`]: the session list, the lottery; [`table`]: what is kept of a task and of a range
//! * [`bits`]: the bits of one range; [`slab`]: records by number
//! * [`index`]: which ranges want something in a stretch of the disk
//! * [`marks`]: what is under way; [`memory`]: what all of it takes
//! * [`wanted`]: what a search asks for: the wanted sectors of a stretch

pub mod bits;
pub mod deliver;
pub mod index;
pub mod manager;
pub mod marks;
pub mod memory;
pub mod promote;
pub mod query;
pub mod register;
pub mod sessions;
pub mod slab;
pub mod table;
pub mod wanted;
pub mod writes;

use headtime_disk::command::Kind;

/// A session's name. Never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// A task's name. Never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// A stretch of consecutive sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// First LBN.
    pub lbn: u64,
    /// Sectors, at least 1.
    pub count: u64,
}

impl Range {
    /// One past the last LBN.
    #[inline]
    pub fn end(&self) -> u64 {
        self.lbn + self.count
    }

    /// How many sectors the two have in common.
    #[inline]
    pub fn in_common(&self, other: &Range) -> u64 {
        self.end().min(other.end()).saturating_sub(self.lbn.max(other.lbn))
    }

    /// Whether the two have a sector in common.
    #[inline]
    pub fn overlaps(&self, other: &Range) -> bool {
        self.lbn < other.end() && other.lbn < self.end()
    }
}

/// What one task asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// Read or write; a flush is refused.
    pub kind: Kind,
    /// What it covers: not empty, no two overlapping, in any order.
    pub ranges: Vec<Range>,
    /// The unit in which data is useful to the application, in sectors, counted from the beginning
    /// of each range.
    pub blksize: u32,
    /// The unit in which blocks are picked up, in sectors: a multiple of `blksize`.
    pub min_pickup: u32,
}

/// What the driver is to tell the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// These sectors of a read task have been read; their data is in the completed command that
    /// this follows. One or more whole units, within one of the task's ranges.
    Delivered {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// What was read.
        range: Range,
    },
    /// These sectors of a write task are on their way to the disk next: have their data ready, and
    /// answer with `buffer(task, range, true)`, or `false` for "not now". No answer before the next
    /// `poll` is "not now".
    GetBuffer {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// What is to be written.
        range: Range,
    },
    /// These sectors of a write task have been written.
    Written {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// What was written.
        range: Range,
    },
    /// Newer data has been or will be written to these sectors by somebody else (the foreground, or
    /// a task registered later), so this task will not write them any more: old data is never put
    /// over new.
    Superseded {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// What will not be written.
        range: Range,
    },
    /// The drive could not read (or write) these sectors; they are no longer wanted, and the task
    /// goes on.
    Failed {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// The units that hold the bad sector.
        range: Range,
    },
    /// Nothing of this task is wanted any more: every block was delivered, written, superseded or
    /// failed. The last event of a task that is not aborted.
    Done {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
    },
}

impl Event {
    /// Whom it is for.
    #[inline]
    pub fn session(&self) -> SessionId {
        match *self {
            Event::Delivered { session, .. }
            | Event::GetBuffer { session, .. }
            | Event::Written { session, .. }
            | Event::Superseded { session, .. }
            | Event::Failed { session, .. }
            | Event::Done { session, .. } => session,
        }
    }

    /// What of a task was read or written with success.
    #[inline]
    pub fn brought(&self) -> Option<Range> {
        match *self {
            Event::Delivered { range, .. } | Event::Written { range, .. } => Some(range),
            _ => None,
        }
    }

    /// Which task it is about.
    #[inline]
    pub fn task(&self) -> TaskId {
        match *self {
            Event::Delivered { task, .. }
            | Event::GetBuffer { task, .. }
            | Event::Written { task, .. }
            | Event::Superseded { task, .. }
            | Event::Failed { task, .. }
            | Event::Done { task, .. } => task,
        }
    }
}

/// What is bounded. Reaching a bound is an answer ([`TaskError::Full`]), not a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open sessions at most.
    pub sessions: usize,
    /// Tasks at most, over all sessions.
    pub tasks: usize,
    /// Ranges at most, over all tasks.
    pub ranges: usize,
    /// Bytes that sessions, tasks, their bits and the scheduling layer's regions may take in all.
    /// Queues have bounds of their own.
    pub bytes: usize,
    /// Of these, what the regions may take.
    pub region_bytes: usize,
    /// Events that may wait to be polled; while this many wait nothing more is picked up for
    /// anyone.
    pub events: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            sessions: 1_024,
            tasks: 1 << 20,
            ranges: 1 << 22,
            // With queues of 4 MiB that is 128 MiB, what a drive of 20 TB may need.
            bytes: 124 << 20,
            region_bytes: 16 << 20,
            events: 1 << 16,
        }
    }
}

/// Why a call was refused. A refused call changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// No such session is open.
    #[error("session {} is not open", .0.0)]
    NoSession(SessionId),
    /// No such task exists (any more).
    #[error("task {} does not exist or has ended", .0.0)]
    NoTask(TaskId),
    /// A priority of zero would never get anything.
    #[error("priority: expected 1 to 1000000, found {0}")]
    Priority(u32),
    /// Neither read nor write.
    #[error("a task reads or writes")]
    Kind,
    /// No range, or an empty one.
    #[error("range {index} is empty, or there is none")]
    Empty {
        /// Which of the ranges.
        index: usize,
    },
    /// More than a driver takes in one task.
    #[error("ranges of a task: expected at most {most}, found {found}; several tasks may have more")]
    Ranges {
        /// How many there may be.
        most: usize,
        /// How many there are.
        found: usize,
    },
    /// A range reaches beyond the disk.
    #[error("range {index} ends at sector {end}, and the disk has {capacity}")]
    OutOfRange {
        /// Which of the ranges.
        index: usize,
        /// One past its last sector.
        end: u64,
        /// Sectors of the disk.
        capacity: u64,
    },
    /// Two ranges of one task overlap: its blocks could not come exactly once.
    #[error("the ranges at sectors {first} and {second} overlap")]
    Overlap {
        /// First LBN of one.
        first: u64,
        /// First LBN of the other.
        second: u64,
    },
    /// A block size of zero, or a pick-up size that is no multiple of it, or one too large to be
    /// picked up.
    #[error(
        "blksize {blksize}, min_pickup {min_pickup} sectors: expected blksize 1 or more and min_pickup a multiple of \
         it, at most {most}"
    )]
    Unit {
        /// Sectors asked for.
        blksize: u32,
        /// Sectors asked for.
        min_pickup: u32,
        /// Largest pick-up size.
        most: u32,
    },
    /// A core without FILL does no background work.
    #[error("the core was set up without FILL, and does no background work")]
    NoFill,
    /// A bound was reached.
    #[error("no room for more {what}: {limit} at most")]
    Full {
        /// What there are too many of.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
}

/// Whose blocks a search is after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// One session's.
    Session(SessionId),
    /// Those of every session that is not suspended.
    Anyone,
}

/// What a search asks of the task layer. The task manager is one; tests have simpler ones.
pub trait Wants {
    /// Marks in `out`, of which nothing is marked, every sector of every unit that lies wholly in
    /// the stretch that it covers and that `who` wants read or written (`kind`). Units of suspended
    /// sessions, of units not to be asked for now, are not marked.
    fn wanted(&self, who: Who, kind: Kind, out: &mut wanted::Wanted);

    /// The same of everything that is not done yet, also what is not to be asked for now (a
    /// suspended session's units, write units whose buffer was refused). By it the regions decide
    /// what to forget, so it must not leave out anything that [`Wants::wanted`] may name later.
    fn pending(&self, who: Who, kind: Kind, out: &mut wanted::Wanted) {
        self.wanted(who, kind, out);
    }

    /// Whether a schedulable session wants something of this kind at all.
    fn any(&self, who: Who, kind: Kind) -> bool;
}
