//! Calls that take long, a piece at a time: while one client registers a million ranges, the
//! requests of others go on.
//!
//! A piece has [`MOST_RANGES`] ranges at most. After each the engine does something else for
//! [`REST`] times as long as it took. So it does after short calls of the control interface's
//! clients, but for what they have saved ([`SAVED`]).

use headtime_disk::time::Dur;
use headtime_sched::tasks::{SessionId, TaskError, TaskId, TaskSpec};

use super::telling::Reply;

/// Ranges of one task at most. Who wants more registers several.
pub const MOST_RANGES: usize = 4096;
/// What has as few ranges is done at once.
pub const FEW: usize = 64;
/// The part of the time that such calls leave: a tenth is theirs.
pub const REST: u64 = 9;
/// Time in which no client called counts as theirs, up to this: a tenth of it goes to calls at
/// once. Who calls as often as background work needs never waits for it.
pub const SAVED: Dur = Dur::from_ms(100);

/// A call, or what is left of it.
#[derive(Debug)]
pub enum Work {
    /// Of a task.
    Register {
        /// In this session.
        session: SessionId,
        /// What is wanted.
        spec: TaskSpec,
        /// As it is when the registration is done.
        point_in_time: bool,
        /// The answer.
        reply: Reply<TaskId>,
    },
    /// A task's end.
    Abort {
        /// Its session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// The answer.
        reply: Reply<()>,
    },
    /// A session's end, that of its tasks first. Nothing is picked up for it any more.
    Close {
        /// The session.
        session: SessionId,
        /// Those that have not ended.
        tasks: Vec<TaskId>,
        /// The answer; `None`: its client has gone.
        reply: Option<Reply<()>>,
    },
}

/// Why a task with `found` ranges is not registered, if it has too many.
pub fn too_many(found: usize) -> Option<TaskError> {
    (found > MOST_RANGES).then_some(TaskError::Ranges { most: MOST_RANGES, found })
}
