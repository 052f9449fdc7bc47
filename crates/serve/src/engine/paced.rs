//! Long calls in pieces: while one client registers a million ranges, the requests of others
//! proceed.
//!
//! A piece has at most [`MAX_RANGES`] ranges. After each piece the engine does other work for
//! [`OTHER_WORK_RATIO`] times as long. The same holds for short calls of the control interface's
//! clients, except for the time they have saved ([`MAX_CREDIT`]).
//!
//! A piece of 4,096 ranges takes one or two milliseconds. If the device completed a command
//! meanwhile, its client would wait, and the next command would be dispatched late: the head then
//! loses up to a revolution. So a piece begins when it ends before the next known event ([`Pace`]).

use headtime_disk::{Dur, Time};
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

/// Longest wait for a time without events that is long enough for a piece.
const MAX_WAIT: Dur = Dur::from_ms(100);

/// When pieces are carried out.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The earliest time for the next piece.
    from: Time,
    /// Expected duration of a piece: the largest of the latest ones, which loses an eighth with
    /// each piece.
    expected: Dur,
}

impl Pace {
    /// Returns whether a piece may begin. `event` is when the device or the core must be served
    /// next. During shutdown (`ends`) it need not end before that.
    pub(crate) fn may_begin(&self, now: Time, event: Option<Time>, ends: bool) -> bool {
        let is_quiet = event.is_none_or(|at| now + self.expected <= at);
        now >= self.from && (is_quiet || ends || now >= self.from + MAX_WAIT)
    }

    /// Records that a piece began at `now`, and its duration.
    pub(crate) fn took(&mut self, now: Time, took: Dur) {
        self.from = now + Dur(took.0 * (1 + OTHER_WORK_RATIO));
        self.expected = took.max(Dur(self.expected.0 / 8 * 7));
    }

    /// Returns the next time at which a piece may begin, if no event makes it possible before.
    pub(crate) fn next(&self, now: Time) -> Time {
        if now < self.from { self.from } else { self.from + MAX_WAIT }
    }
}

/// Returns why a task with `found` ranges is rejected, if it has too many.
pub(crate) fn too_many(found: usize) -> Option<TaskError> {
    (found > MAX_RANGES).then_some(TaskError::Ranges { most: MAX_RANGES, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece that takes 2 ms waits for as much time before the next event, 100 ms at most, and
    /// never during shutdown.
    #[test]
    fn a_piece_ends_before_the_next_event() {
        let ms = |n| Time::ZERO + Dur::from_ms(n);
        let mut pace = Pace::default();
        assert!(pace.may_begin(ms(1), Some(ms(1)), false), "nothing is known yet");
        pace.took(ms(1), Dur::from_ms(2));
        assert_eq!(pace.next(ms(2)), ms(21));
        assert!(!pace.may_begin(ms(20), None, true), "the other work has nine times as long");
        assert!(pace.may_begin(ms(21), None, false) && pace.may_begin(ms(21), Some(ms(23)), false));
        assert!(!pace.may_begin(ms(22), Some(ms(23)), false) && pace.may_begin(ms(22), Some(ms(23)), true));
        assert_eq!(pace.next(ms(22)), ms(121));
        assert!(!pace.may_begin(ms(120), Some(ms(121)), false) && pace.may_begin(ms(121), Some(ms(122)), false));
    }
}
