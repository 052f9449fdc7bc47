//! State of one queue in CFQ.

use std::collections::VecDeque;

use headtime_disk::{Dur, Time};

use super::Kind;
use crate::admit::Share;

/// Order of a round: a time, and the queue.
pub(super) type Key = (i64, u32);

/// A queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) share: Share,
    pub(super) queued: u32,
    pub(super) outstanding: u32,
    /// Arrivals of its requests, oldest first, as if they were finished in that order.
    pub(super) arrivals: VecDeque<Time>,
    /// Last 32 requests, one bit each: scattered.
    pub(super) seeks: u32,
    pub(super) end: Option<u64>,
    /// Number of think times, and a low-pass filter over them.
    pub(super) thinks: u32,
    pub(super) think: Dur,
    pub(super) done_at: Time,
    /// Its place in its round while it is not being served.
    pub(super) place: Option<(Kind, Key)>,
    /// The time of its place before the offset for its weight.
    pub(super) from: i64,
    /// Unused part of its last slice, in ns; negative after an overrun.
    pub(super) rest: i64,
}

impl Queue {
    /// Creates the state of a queue without requests.
    pub(super) fn new(share: Share, now: Time) -> Queue {
        Queue {
            share,
            queued: 0,
            outstanding: 0,
            arrivals: VecDeque::new(),
            seeks: 0,
            end: None,
            thinks: 0,
            think: Dur::ZERO,
            done_at: now,
            place: None,
            from: 0,
            rest: 0,
        }
    }
}
