//! The task manager: the requests of background applications (Thereska 2003 sections 2.1, 3.3 and
//! 4.2).
//!
//! An application opens a *session* with a priority and registers *tasks* in it: sets of block
//! ranges to be read or written, in any order, whenever that costs the foreground nothing. No call
//! blocks: blocks come back as [`TaskEvent`]s, in any order, each exactly once. A task's ranges are
//! cut into *units* of `min_pickup` sectors (MIN_PICKUP_SIZE), a multiple of its `blksize`; one bit
//! per unit says whether it is still wanted.
//!
//! * [`manager`]: sessions and tasks, the calls, the events, and the end of a unit; further calls
//!   are in other files: registration and removal of tasks ([`register`]), completed and submitted
//!   commands ([`deliver`]), requests for write data ([`writes`]), promoted tasks ([`promote`]),
//!   queries of searches ([`query`])
//! * [`sessions`]: the session list, the lottery; [`table`]: the records of a task and of a range
//! * [`bits`]: the bits of one range; [`slab`]: records by number
//! * [`index`]: the ranges that want something in a part of the disk
//! * [`marks`]: pieces in progress; [`memory`]: memory of all structures
//! * [`wanted`]: the wanted sectors of a range, as a search queries them

pub(crate) mod bits;
pub(crate) mod deliver;
pub(crate) mod index;
pub(crate) mod manager;
pub(crate) mod marks;
pub(crate) mod memory;
pub(crate) mod promote;
pub(crate) mod query;
pub(crate) mod register;
pub(crate) mod sessions;
pub(crate) mod slab;
pub(crate) mod table;
pub(crate) mod wanted;
pub(crate) mod writes;

use headtime_disk::Kind;

/// A session's ID. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// A task's ID. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// A range of consecutive sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskRange {
    /// First LBN.
    pub lbn: u64,
    /// Sectors, at least 1.
    pub count: u64,
}

impl TaskRange {
    /// Returns one past the last LBN.
    #[inline]
    pub fn end(&self) -> u64 {
        self.lbn + self.count
    }

    /// Returns the number of sectors that both contain.
    #[inline]
    pub fn in_common(&self, other: &TaskRange) -> u64 {
        self.end().min(other.end()).saturating_sub(self.lbn.max(other.lbn))
    }

    /// Returns whether the two have a sector in common.
    #[inline]
    pub fn overlaps(&self, other: &TaskRange) -> bool {
        self.lbn < other.end() && other.lbn < self.end()
    }
}

/// Specification of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// Read or write; a flush is rejected.
    pub kind: Kind,
    /// Its sectors: not empty, no two overlapping, in any order.
    pub ranges: Vec<TaskRange>,
    /// The unit in which data is useful to the application, in sectors, counted from the beginning
    /// of each range.
    pub blksize: u32,
    /// The unit in which blocks are picked up, in sectors: a multiple of `blksize`.
    pub min_pickup: u32,
}

/// Notification of an application.
///
/// Exhaustive on purpose: an application that ignored an event would wait for its blocks for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEvent {
    /// These sectors of a read task have been read; their data is in the completed command that
    /// this follows. One or more whole units, within one of the task's ranges.
    Delivered {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// What was read.
        range: TaskRange,
    },
    /// These sectors of a write task are about to be written: the application must have their data
    /// ready, and answer with `buffer(task, range, true)`, or `false` for "not now". No answer
    /// before the next `poll` is "not now".
    GetBuffer {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// What is to be written.
        range: TaskRange,
    },
    /// These sectors of a write task have been written.
    Written {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// What was written.
        range: TaskRange,
    },
    /// Newer data has been or will be written to these sectors by the foreground or by a task
    /// registered later, so this task will not write them any more: old data never overwrites new.
    Superseded {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// What will not be written.
        range: TaskRange,
    },
    /// The drive could not read (or write) these sectors; they are no longer wanted, and the task
    /// continues.
    Failed {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// The units that contain the bad sector.
        range: TaskRange,
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

impl TaskEvent {
    /// Returns the session that it is for.
    #[inline]
    pub fn session(&self) -> SessionId {
        match *self {
            TaskEvent::Delivered { session, .. }
            | TaskEvent::GetBuffer { session, .. }
            | TaskEvent::Written { session, .. }
            | TaskEvent::Superseded { session, .. }
            | TaskEvent::Failed { session, .. }
            | TaskEvent::Done { session, .. } => session,
        }
    }

    /// Returns the sectors that were read or written successfully.
    #[inline]
    pub fn brought(&self) -> Option<TaskRange> {
        match *self {
            TaskEvent::Delivered { range, .. } | TaskEvent::Written { range, .. } => Some(range),
            _ => None,
        }
    }

    /// Returns the task that it is about.
    #[inline]
    pub fn task(&self) -> TaskId {
        match *self {
            TaskEvent::Delivered { task, .. }
            | TaskEvent::GetBuffer { task, .. }
            | TaskEvent::Written { task, .. }
            | TaskEvent::Superseded { task, .. }
            | TaskEvent::Failed { task, .. }
            | TaskEvent::Done { task, .. } => task,
        }
    }
}

/// Limits of the task layer. Reaching one is reported ([`TaskError::Full`]), not a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    /// Maximum open sessions.
    pub sessions: usize,
    /// Maximum tasks, over all sessions.
    pub tasks: usize,
    /// Maximum ranges, over all tasks.
    pub ranges: usize,
    /// Maximum bytes of sessions, tasks, their bits and the scheduling layer's regions together.
    /// Queues have bounds of their own.
    pub bytes: usize,
    /// Of these, the maximum for the regions.
    pub region_bytes: usize,
    /// Maximum events waiting to be polled; at this number nothing more is picked up.
    pub events: usize,
}

impl Default for TaskLimits {
    fn default() -> TaskLimits {
        TaskLimits {
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

/// Why a call was rejected. A rejected call changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// No such session is open.
    #[error("session {} is not open", .0.0)]
    NoSession(SessionId),
    /// No such task exists (any more).
    #[error("task {} does not exist or has ended", .0.0)]
    NoTask(TaskId),
    /// A priority of zero would never be served.
    #[error("priority: expected 1 to 1000000, found {0}")]
    Priority(u32),
    /// Neither read nor write.
    #[error("a task reads or writes")]
    Kind,
    /// No range, or an empty one.
    #[error("range {index} is empty, or there is none")]
    Empty {
        /// Index of the range.
        index: usize,
    },
    /// More ranges than a driver accepts in one task.
    #[error("ranges of a task: expected at most {most}, found {found}; several tasks may have more")]
    Ranges {
        /// The maximum.
        most: usize,
        /// The number found.
        found: usize,
    },
    /// A range extends beyond the disk.
    #[error("range {index} ends at sector {end}, and the disk has {capacity}")]
    OutOfRange {
        /// Index of the range.
        index: usize,
        /// One past its last sector.
        end: u64,
        /// Sectors of the disk.
        capacity: u64,
    },
    /// Two ranges of one task overlap: its blocks could not be delivered exactly once.
    #[error("the ranges at sectors {first} and {second} overlap")]
    Overlap {
        /// First LBN of one.
        first: u64,
        /// First LBN of the other.
        second: u64,
    },
    /// A block size of zero, a pick-up size that is not a multiple of it, or one too large to be
    /// picked up.
    #[error(
        "blksize {blksize}, min_pickup {min_pickup} sectors: expected blksize 1 or more and min_pickup a multiple of \
         it, at most {most}"
    )]
    Unit {
        /// Requested sectors.
        blksize: u32,
        /// Requested sectors.
        min_pickup: u32,
        /// Largest pick-up size.
        most: u32,
    },
    /// A core without FILL does no background work.
    #[error("the core was set up without FILL, and does no background work")]
    NoFill,
    /// A limit was reached.
    #[error("no room for more {what}: {limit} at most")]
    Full {
        /// What the limit applies to.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// The sessions whose blocks a search may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// One session.
    Session(SessionId),
    /// Every session that is not suspended.
    Anyone,
}

/// Queries of a search to the task layer. The task manager implements it; tests have simpler
/// implementations.
pub trait Wants {
    /// Marks in `out`, of which nothing is marked, every sector of every unit that lies entirely in
    /// its range and that `who` wants read or written (`kind`). Units of suspended sessions, and
    /// units that must not be requested now, are not marked.
    fn wanted(&self, who: Who, kind: Kind, out: &mut wanted::Wanted);

    /// Marks everything that is not done yet, including what must not be requested now (a suspended
    /// session's units, write units whose buffer was refused). The regions clear their bits by
    /// this, so it must include anything that [`Wants::wanted`] may mark later.
    fn pending(&self, who: Who, kind: Kind, out: &mut wanted::Wanted) {
        self.wanted(who, kind, out);
    }

    /// Returns whether a schedulable session wants something of this kind at all.
    fn any(&self, who: Who, kind: Kind) -> bool;
}
