//! Events for the client of a session.

use bytes::Bytes;
use headtime_sched::{TaskEvent, TaskId, TaskRange};

use crate::device::Fault;

/// An event for a session's client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// An event of one of its tasks, as the core reports it: with the data of delivered sectors
    /// (empty otherwise), or with the cause of a failure. [`TaskEvent::GetBuffer`] is sent to a
    /// client only if the data was not here: it is needed soon.
    Task(TaskEvent, Result<Bytes, Fault>),
    /// Data was not accepted: the limit was reached, or the length does not match.
    NotTaken {
        /// The task.
        task: TaskId,
        /// The sectors.
        range: TaskRange,
    },
    /// Sectors of a point-in-time task were overwritten before they could be delivered. The task
    /// was aborted.
    Lost {
        /// The task.
        task: TaskId,
        /// The sectors.
        range: TaskRange,
    },
    /// The session was suspended (true) or resumed (false).
    Suspended(bool),
    /// The device is gone: no task will complete.
    DeviceGone,
    /// The server ends; this is the last event.
    ServerEnds,
}

impl SessionEvent {
    /// Returns the task that the event is about.
    pub fn task(&self) -> Option<TaskId> {
        match *self {
            SessionEvent::Task(event, _) => Some(match event {
                TaskEvent::Delivered { task, .. }
                | TaskEvent::GetBuffer { task, .. }
                | TaskEvent::Written { task, .. }
                | TaskEvent::Superseded { task, .. }
                | TaskEvent::Failed { task, .. }
                | TaskEvent::Done { task, .. } => task,
            }),
            SessionEvent::NotTaken { task, .. } | SessionEvent::Lost { task, .. } => Some(task),
            SessionEvent::Suspended(_) | SessionEvent::DeviceGone | SessionEvent::ServerEnds => None,
        }
    }

    /// Returns whether this is the last event of its task.
    pub fn ends_task(&self) -> bool {
        matches!(self, SessionEvent::Task(TaskEvent::Done { .. }, _) | SessionEvent::Lost { .. })
    }

    /// Returns the number of sectors that the client must acknowledge.
    pub fn delivered_sectors(&self) -> u64 {
        match self {
            SessionEvent::Task(TaskEvent::Delivered { range, .. }, _) => range.count,
            _ => 0,
        }
    }
}
