//! A prefetch that continues after a read, evaluated only when its progress is needed.
//!
//! A queued read that continues the current one is known before that one ends: the drive reads on
//! for it without a break, as in read-ahead. The same holds for a read whose first sector the
//! prefetch reads next: decoding a command does not interrupt reading. (In DiskSim, and in a drive
//! configured to follow it, such a read is a miss.) A read that arrives after the prefetch has
//! stopped there is a miss.

use crate::command::Command;
use crate::drive::Drive;
use crate::drive::cache::State;
use crate::drive::mechanism::Stretch;
use crate::profile::Prefetch;
use crate::time::Time;

impl Drive {
    /// Whether the drive can continue reading into `segment` for a queued command.
    pub(super) fn may_continue(&self, segment: usize) -> bool {
        self.cache_spec.prefetch != Prefetch::None && self.cache.get(segment).state == State::Reading
    }

    /// Whether a command is a read that begins in `segment` or directly after it.
    pub(super) fn continues(&self, command: &Command, segment: usize) -> bool {
        let s = self.cache.get(segment);
        command.kind.is_read() && s.first <= command.lbn && command.lbn <= s.end
    }

    /// Returns the limit up to which the drive reads on without a break after filling `segment`, if
    /// the next command is a read that continues it: one past that read's last LBN.
    pub(super) fn continuation_end(&mut self, segment: usize, at: Time) -> Option<u64> {
        if self.queue.is_empty() || !self.may_continue(segment) {
            return None;
        }
        let next = self.choose(at, Some(segment))?;
        let next = self.queue[next].command;
        self.continues(&next, segment).then(|| next.lbn + u64::from(next.count))
    }
}

/// A running or finished prefetch into a cache segment.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    /// The segment it fills.
    pub segment: usize,
    /// Past and future stretches, in order of LBN and time.
    pub stretches: Vec<Stretch>,
    /// One past the last LBN it will read.
    pub limit: u64,
    /// Once `limit` is reached, everything up to here is known, because it passed under the head
    /// before.
    pub known_to: u64,
    /// Whether there is a prefetch.
    pub running: bool,
    /// Its start time, and the arm's position then.
    pub from: (Time, (u32, u16)),
}

/// State of a stopped prefetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopped {
    /// When the mechanism is idle.
    pub at: Time,
    /// One past the last LBN in the buffer.
    pub end: u64,
    /// Position of the arm.
    pub arm: (u32, u16),
}

impl Stream {
    /// Drops past stretches. A stream that is extended repeatedly would otherwise grow without
    /// bound; the last stretches are kept, more than the number of tracks in a segment that a read
    /// could still hit.
    pub(super) fn forget_passed(&mut self, now: Time) {
        const KEPT_STRETCHES: usize = 16;
        let passed = self.stretches.iter().take_while(|l| l.end() <= now).count();
        if passed > 2 * KEPT_STRETCHES {
            self.stretches.drain(..passed - KEPT_STRETCHES);
        }
    }

    /// Returns the time at which the last stretch ends.
    pub(super) fn end(&self) -> Time {
        self.stretches.last().map_or(Time::ZERO, Stretch::end)
    }

    /// Returns one past the last LBN in the buffer at `t`, for stretches in LBN order.
    pub(super) fn reached(&self, t: Time) -> u64 {
        let mut reached = self.stretches.first().map_or(0, |l| l.lbn);
        for stretch in &self.stretches {
            let n = stretch.count_at(t);
            if n > 0 {
                reached = stretch.lbn + n as u64;
            }
            if n < stretch.count {
                return reached;
            }
        }
        if reached >= self.limit { reached.max(self.known_to) } else { reached }
    }

    /// Returns the state after stopping for a command that arrives at `t`. A move in progress is
    /// completed, but one that would begin at `t` is not; a rotational wait and a sector are
    /// completed unless `in_sector`.
    pub(super) fn stop(&self, t: Time, in_sector: bool) -> Option<Stopped> {
        let mut end = self.stretches.first()?.lbn;
        let (mut ended, mut arm) = self.from;
        for stretch in &self.stretches {
            if t >= stretch.end() {
                end = stretch.end_lbn();
                (ended, arm) = (stretch.end(), (stretch.cylinder, stretch.surface));
                continue;
            }
            if t == ended {
                return Some(Stopped { at: t, end, arm });
            }
            let track = (stretch.cylinder, stretch.surface);
            if t < stretch.arrived {
                return Some(Stopped { at: stretch.arrived, end, arm: track });
            }
            if t < stretch.start {
                return Some(Stopped { at: if in_sector { t } else { stretch.start }, end, arm: track });
            }
            let n = stretch.count_at(t);
            if in_sector || stretch.passed(n) == t {
                return Some(Stopped { at: t, end: end.max(stretch.lbn + n as u64), arm: track });
            }
            return Some(Stopped { at: stretch.passed(n + 1), end: stretch.lbn + n as u64 + 1, arm: track });
        }
        if end >= self.limit {
            end = end.max(self.known_to);
        }
        Some(Stopped { at: t, end, arm })
    }
}
