//! What the machine says to a scheduler, and what it hears from it and from clients.

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
    /// They will not be written by it: newer data was or will be, or there was no room for their data.
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
