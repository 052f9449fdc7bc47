//! Messages between the machine, the scheduler and clients.

use std::collections::VecDeque;

use headtime_disk::Kind;

use super::Traffic;
use crate::tasks::TaskRange;

/// A request of a client.
#[derive(Debug)]
pub struct Ask<T: Traffic> {
    /// Read, write or flush.
    pub kind: Kind,
    /// First sector of the disk.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// A write that completes only when it is on the media.
    pub fua: bool,
    /// The application it belongs to.
    pub owner: u32,
    /// A write's data, exactly its sectors.
    pub data: T::Data,
    /// Identifies the request in its answer.
    pub ticket: T::Ticket,
}

/// A call to the scheduler. Tokens are answered with [`Event::Answered`].
#[derive(Clone, Debug)]
pub enum Call<T: Traffic> {
    /// Reads sectors, in the foreground.
    Read {
        /// Its token.
        token: u64,
        /// What is read.
        range: TaskRange,
        /// For this application.
        owner: u32,
    },
    /// Writes them through to the media (FUA), in the foreground.
    Write {
        /// Its token.
        token: u64,
        /// What is written.
        range: TaskRange,
        /// Its data.
        data: T::Data,
    },
    /// Flushes the device.
    Flush {
        /// Its token.
        token: u64,
    },
    /// Registers a write task; data for all of it follows.
    Register {
        /// The machine's ID of the task.
        task: u64,
        /// The sectors that it covers.
        ranges: Vec<TaskRange>,
        /// Pick-up unit in sectors.
        unit: u32,
    },
    /// Data of a task.
    Data {
        /// The task.
        task: u64,
        /// First sector.
        lbn: u64,
        /// Whole sectors.
        data: T::Data,
    },
    /// Permits or forbids the tasks to be picked up.
    Free(bool),
}

/// A message of the scheduler.
#[derive(Clone, Debug)]
pub enum Event<T: Traffic> {
    /// These sectors of a task are on the disk.
    Written {
        /// The task.
        task: u64,
        /// The sectors.
        range: TaskRange,
    },
    /// The task will not write these sectors: they are superseded by newer data, or there was no
    /// room for their data.
    NotWritten {
        /// The task.
        task: u64,
        /// The sectors.
        range: TaskRange,
    },
    /// Their write failed.
    Failed {
        /// The task.
        task: u64,
        /// The sectors.
        range: TaskRange,
    },
    /// Nothing of the task is wanted any more.
    Done {
        /// The task.
        task: u64,
    },
    /// A task was rejected.
    Refused {
        /// The task.
        task: u64,
    },
    /// A foreground request has ended.
    Answered {
        /// Its token.
        token: u64,
        /// A read's data, or the fault, as a value and as text.
        answer: Result<T::Data, (T::Fault, String)>,
    },
    /// The device has gone: what is in flight is requested again in another session.
    Gone,
}

/// Answers not yet fetched.
pub(super) type Answers<T> = VecDeque<Answer<T>>;

/// A request's ticket and its result: a read's data, nothing for others.
pub type Answer<T> = (<T as Traffic>::Ticket, Result<<T as Traffic>::Data, <T as Traffic>::Fault>);

/// Number of sorts of tokens; the remainder of a token is its sort.
pub(super) const SORTS: u64 = 4;
/// Tokens of reads.
pub(super) const READ: u64 = 0;
/// Tokens of writes.
pub(super) const WRITE: u64 = 1;
/// Tokens of flushes.
pub(super) const FLUSH: u64 = 2;

/// Generator of tokens for the machine's own requests.
#[derive(Debug, Default)]
pub(super) struct Tokens(u64);

impl Tokens {
    pub(super) fn next(&mut self, sort: u64) -> u64 {
        self.0 += SORTS;
        self.0 + sort
    }
}

/// Calls not yet fetched.
#[derive(Debug)]
pub(super) struct Calls<T: Traffic> {
    /// Reads may overtake all other calls: no queued write covers their sectors.
    pub(super) reads: VecDeque<Call<T>>,
    /// All others, in order.
    pub(super) others: VecDeque<Call<T>>,
}

impl<T: Traffic> Default for Calls<T> {
    fn default() -> Calls<T> {
        Calls { reads: VecDeque::new(), others: VecDeque::new() }
    }
}

impl<T: Traffic> Calls<T> {
    /// Returns whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.others.is_empty()
    }

    /// Returns the next call.
    pub(super) fn pop(&mut self) -> Option<Call<T>> {
        self.reads.pop_front().or_else(|| self.others.pop_front())
    }

    /// Puts back a call that the scheduler had no room for; it is the next one again.
    pub(super) fn put_back(&mut self, call: Call<T>) {
        match call {
            Call::Read { .. } => self.reads.push_front(call),
            _ => self.others.push_front(call),
        }
    }
}
