//! What the machine says to a scheduler, and what it hears from it and from clients.

use std::collections::VecDeque;

use headtime_disk::command::Kind;

use super::Traffic;
use crate::tasks::Range;

/// A request of a client.
#[derive(Debug)]
pub struct Ask<T: Traffic> {
    /// Read, write or flush.
    pub kind: Kind,
    /// First sector of the disk.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// A write is answered only when it is on the media.
    pub fua: bool,
    /// The application it belongs to.
    pub owner: u32,
    /// A write's data, exactly its sectors.
    pub data: T::Data,
    /// Names the request when it is answered.
    pub ticket: T::Ticket,
}

/// A call for the scheduler. Tokens are answered with [`Event::Answered`].
#[derive(Clone, Debug)]
pub enum Call<T: Traffic> {
    /// Reads sectors, in the foreground.
    Read {
        /// The machine's name for it.
        token: u64,
        /// What is read.
        range: Range,
        /// For this application.
        owner: u32,
    },
    /// Writes them through to the media (FUA), in the foreground.
    Write {
        /// The machine's name for it.
        token: u64,
        /// What is written.
        range: Range,
        /// Its data.
        data: T::Data,
    },
    /// Flushes the device.
    Flush {
        /// The machine's name for it.
        token: u64,
    },
    /// Registers a write task; data for all of it follows.
    Register {
        /// The machine's name for the task.
        task: u64,
        /// What it covers.
        ranges: Vec<Range>,
        /// Sectors in which it is picked up.
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
    /// Tasks may be picked up from now on, or may not.
    Free(bool),
}

/// What the scheduler says.
#[derive(Clone, Debug)]
pub enum Event<T: Traffic> {
    /// These sectors of a task are on the disk.
    Written {
        /// The task.
        task: u64,
        /// The sectors.
        range: Range,
    },
    /// They will not be written by it: newer data was or will be, or there was no room for their
    /// data.
    NotWritten {
        /// The task.
        task: u64,
        /// The sectors.
        range: Range,
    },
    /// They could not be written.
    Failed {
        /// The task.
        task: u64,
        /// The sectors.
        range: Range,
    },
    /// Nothing of the task is wanted any more.
    Done {
        /// The task.
        task: u64,
    },
    /// A task was refused.
    Refused {
        /// The task.
        task: u64,
    },
    /// A foreground request has ended.
    Answered {
        /// Its name.
        token: u64,
        /// A read's data, or why it failed, for the program and in words.
        answer: Result<T::Data, (T::Fault, String)>,
    },
    /// The device has gone: what is under way is asked for anew in another session.
    Gone,
}

/// Answers that were not fetched yet.
pub(super) type Answers<T> = VecDeque<Answer<T>>;

/// A request's ticket and what became of it: a read's data, nothing for others.
pub type Answer<T> = (<T as Traffic>::Ticket, Result<<T as Traffic>::Data, <T as Traffic>::Fault>);

/// Where each token came from: the lowest bits say it.
pub(super) const SORTS: u64 = 4;
/// Tokens of reads.
pub(super) const READ: u64 = 0;
/// Tokens of writes.
pub(super) const WRITE: u64 = 1;
/// Tokens of flushes.
pub(super) const FLUSH: u64 = 2;

/// Names for requests of the machine's own.
#[derive(Debug, Default)]
pub(super) struct Tokens(u64);

impl Tokens {
    pub(super) fn next(&mut self, sort: u64) -> u64 {
        self.0 += SORTS;
        self.0 + sort
    }
}

/// Calls that were not fetched yet.
#[derive(Debug)]
pub(super) struct Calls<T: Traffic> {
    /// Reads may overtake all other calls: no queued write covers their sectors.
    pub(super) reads: VecDeque<Call<T>>,
    /// All others, in their order.
    pub(super) others: VecDeque<Call<T>>,
}

impl<T: Traffic> Default for Calls<T> {
    fn default() -> Calls<T> {
        Calls { reads: VecDeque::new(), others: VecDeque::new() }
    }
}

impl<T: Traffic> Calls<T> {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.others.is_empty()
    }

    /// The next one.
    pub(super) fn pop(&mut self) -> Option<Call<T>> {
        self.reads.pop_front().or_else(|| self.others.pop_front())
    }

    /// One that the scheduler had no room for comes first again.
    pub(super) fn put_back(&mut self, call: Call<T>) {
        match call {
            Call::Read { .. } => self.reads.push_front(call),
            _ => self.others.push_front(call),
        }
    }
}
