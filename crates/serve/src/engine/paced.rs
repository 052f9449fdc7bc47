//! Long calls in pieces: while one client registers a million ranges, the requests of others
//! proceed.
//!
//! A piece has at most [`MAX_RANGES`] ranges. After each piece the engine does other work for
//! [`OTHER_WORK_RATIO`] times as long. The same holds for short calls of the control interface's
//! clients, except for the time they have saved ([`MAX_CREDIT`]).

use headtime_disk::Dur;
use headtime_sched::{SessionId, TaskError, TaskId, TaskSpec};

use super::messages::Reply;

/// Ranges of one task. A client that needs more registers several tasks.
pub const MAX_RANGES: usize = 4096;
/// Calls with no more ranges than this are carried out at once.
pub(crate) const MAX_IMMEDIATE_RANGES: usize = 64;
/// The ratio of other work to such calls, which get a tenth of the time.
pub const OTHER_WORK_RATIO: u64 = 9;
/// Credit for time without calls, up to this; a tenth of it is available to calls at once. A client
/// that calls only as often as background work needs never waits.
pub const MAX_CREDIT: Dur = Dur::from_ms(100);

/// A long call, or the rest of one.
#[derive(Debug)]
pub(crate) enum Work {
    /// Registers a task.
    Register {
        /// The session.
        session: SessionId,
        /// The task.
        spec: TaskSpec,
        /// Reads the disk as it is when the registration completes.
        point_in_time: bool,
        /// The answer.
        reply: Reply<TaskId>,
    },
    /// Aborts a task.
    Abort {
        /// Its session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// The answer.
        reply: Reply<()>,
    },
    /// Closes a session after aborting its tasks. Nothing more is picked up for it.
    Close {
        /// The session.
        session: SessionId,
        /// The tasks that have not ended.
        tasks: Vec<TaskId>,
        /// The answer; `None` if the client has gone.
        reply: Option<Reply<()>>,
    },
}

/// Returns why a task with `found` ranges is rejected, if it has too many.
pub(crate) fn too_many(found: usize) -> Option<TaskError> {
    (found > MAX_RANGES).then_some(TaskError::Ranges { most: MAX_RANGES, found })
}
