//! What clients with a session are told.

use bytes::Bytes;
use headtime_sched::tasks::{Range, TaskId};

use crate::device::Fault;

/// What a session's client hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// These sectors of a read task, with their data.
    Delivered {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
        /// Their bytes.
        data: Bytes,
    },
    /// A gap for these sectors of a write task was found, and their data was not here: it is wanted
    /// soon.
    Wanted {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
    },
    /// They are on the disk.
    Written {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
    },
    /// They will not be written: newer data was or will be.
    Superseded {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
    },
    /// They could not be read or written.
    Failed {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
        /// Why.
        fault: Fault,
    },
    /// Data that was sent could not be kept: there is too much of it here already, or it is not as
    /// long as it says.
    NotTaken {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
    },
    /// Of a point-in-time task: these sectors were overwritten before they could be delivered. It
    /// was aborted.
    Broken {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
    },
    /// The session was suspended, or goes on.
    Suspended(bool),
    /// Nothing of the task is wanted any more.
    Done {
        /// The task.
        task: TaskId,
    },
    /// The device is gone: nothing will come of any task.
    Gone,
    /// The server ends; no event follows.
    End,
}

impl Told {
    /// Which task it is about.
    pub fn task(&self) -> Option<TaskId> {
        match *self {
            Told::Delivered { task, .. }
            | Told::Wanted { task, .. }
            | Told::Written { task, .. }
            | Told::Superseded { task, .. }
            | Told::Failed { task, .. }
            | Told::NotTaken { task, .. }
            | Told::Broken { task, .. }
            | Told::Done { task } => Some(task),
            Told::Suspended(_) | Told::Gone | Told::End => None,
        }
    }
}
