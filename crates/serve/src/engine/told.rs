//! Events for clients with a session.

use bytes::Bytes;
use headtime_sched::{TaskId, TaskRange};

use crate::device::Fault;

/// An event for a session's client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Sectors of a read task were read.
    Delivered {
        /// The task.
        task: TaskId,
        /// The sectors.
        range: TaskRange,
        /// Their data.
        data: Bytes,
    },
    /// A gap for these sectors of a write task was found, but their data was not here: it is needed
    /// soon.
    Wanted {
        /// The task.
        task: TaskId,
        /// The sectors.
        range: TaskRange,
    },
    /// Sectors were written to the disk.
    Written {
        /// The task.
        task: TaskId,
        /// The sectors.
        range: TaskRange,
    },
    /// Sectors will not be written, since newer data was or will be.
    Superseded {
        /// The task.
        task: TaskId,
        /// The sectors.
        range: TaskRange,
    },
    /// Sectors could not be read or written.
    Failed {
        /// The task.
        task: TaskId,
        /// The sectors.
        range: TaskRange,
        /// The cause.
        fault: Fault,
    },
    /// Data was not accepted: the limit was reached, or the length does not match.
    NotTaken {
        /// The task.
        task: TaskId,
        /// The sectors.
        range: TaskRange,
    },
    /// Sectors of a point-in-time task were overwritten before they could be delivered. The task
    /// was aborted.
    Broken {
        /// The task.
        task: TaskId,
        /// The sectors.
        range: TaskRange,
    },
    /// The session was suspended (true) or resumed (false).
    Suspended(bool),
    /// The task is complete.
    Done {
        /// The task.
        task: TaskId,
    },
    /// The device is gone: no task will complete.
    Gone,
    /// The server ends; this is the last event.
    End,
}

impl Told {
    /// Returns the task that the event is about.
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
