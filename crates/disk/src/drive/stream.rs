//! A prefetch that runs on after a read, evaluated only when somebody asks how far it got.
//!
//! A read that waits in the queue and continues the one that the media is busy with is known before
//! that one ends: the drive goes on reading for it without a break, as it would ahead of the host.
//! So it does for a read of which the prefetch is about to read the first sector: what the drive
//! needs to decode a command does not keep the head from reading. (In DiskSim, and in a drive set
//! up to do as DiskSim does, such a read is a miss.) A read that arrives when the prefetch has
//! stopped there is a miss.

use crate::command::Command;
use crate::drive::Drive;
use crate::drive::cache::State;
use crate::drive::mechanism::Leg;
use crate::profile::Prefetch;
use crate::time::Time;

impl Drive {
    /// Whether the drive can go on reading into `segment` for a command that waits.
    pub(super) fn may_go_on(&self, segment: usize) -> bool {
        self.cache_spec.prefetch != Prefetch::None && self.cache.get(segment).state == State::Reading
    }

    /// Whether a command is a read that begins in `segment` or right behind it.
    pub(super) fn continues(&self, command: &Command, segment: usize) -> bool {
        let s = self.cache.get(segment);
        command.kind.is_read() && s.first <= command.lbn && command.lbn <= s.end
    }

    /// The media has brought what was wanted into `segment`. If the command that goes next is a
    /// read that continues it, the drive reads on without a break: one past the last LBN of that
    /// read.
    pub(super) fn goes_on_for(&mut self, segment: usize, at: Time) -> Option<u64> {
        if self.queue.is_empty() || !self.may_go_on(segment) {
            return None;
        }
        let next = self.choose(at, Some(segment))?;
        let next = self.queue[next].command;
        self.continues(&next, segment).then(|| next.lbn + u64::from(next.count))
    }
}

/// A running (or finished) prefetch into one cache segment.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The segment it fills.
    pub segment: usize,
    /// What has passed and will pass; in LBN order and in time order.
    pub legs: Vec<Leg>,
    /// One past the last LBN it will read.
    pub limit: u64,
    /// Once `limit` is reached everything up to here is known, because it passed under the head
    /// before.
    pub known_to: u64,
    /// Whether it is there at all.
    pub running: bool,
    /// When it began, and where the arm was then.
    pub from: (Time, (u32, u16)),
}

/// How a prefetch stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// When the mechanism was free.
    pub at: Time,
    /// One past the last LBN in the buffer.
    pub end: u64,
    /// Where the arm is.
    pub arm: (u32, u16),
}

impl Stream {
    /// A stream that is extended again and again would be walked through from ever farther back: of
    /// what has passed only the last legs are kept, more than any segment holds tracks of that a
    /// read could still hit.
    pub fn forget_passed(&mut self, now: Time) {
        const KEPT: usize = 16;
        let passed = self.legs.iter().take_while(|l| l.end() <= now).count();
        if passed > 2 * KEPT {
            self.legs.drain(..passed - KEPT);
        }
    }

    /// When the last leg will have passed.
    pub fn end(&self) -> Time {
        self.legs.last().map_or(Time::ZERO, Leg::end)
    }

    /// One past the last LBN in the buffer at `t`, for legs in LBN order.
    pub fn reached(&self, t: Time) -> u64 {
        let mut reached = self.legs.first().map_or(0, |l| l.lbn);
        for leg in &self.legs {
            let n = leg.count_at(t);
            if n > 0 {
                reached = leg.lbn + n as u64;
            }
            if n < leg.count {
                return reached;
            }
        }
        if reached >= self.limit { reached.max(self.known_to) } else { reached }
    }

    /// When it would be out of the way of a command that turns up at `t`. A move under way is
    /// finished first, but not one that would begin at `t`; a rotational wait and a sector are
    /// finished unless `in_sector`.
    pub fn stop(&self, t: Time, in_sector: bool) -> Option<Stopped> {
        let mut end = self.legs.first()?.lbn;
        let (mut ended, mut arm) = self.from;
        for leg in &self.legs {
            if t >= leg.end() {
                end = leg.end_lbn();
                (ended, arm) = (leg.end(), (leg.cylinder, leg.surface));
                continue;
            }
            if t == ended {
                return Some(Stopped { at: t, end, arm });
            }
            let track = (leg.cylinder, leg.surface);
            if t < leg.arrived {
                return Some(Stopped { at: leg.arrived, end, arm: track });
            }
            if t < leg.start {
                return Some(Stopped { at: if in_sector { t } else { leg.start }, end, arm: track });
            }
            let n = leg.count_at(t);
            if in_sector || leg.passed(n) == t {
                return Some(Stopped { at: t, end: end.max(leg.lbn + n as u64), arm: track });
            }
            return Some(Stopped { at: leg.passed(n + 1), end: leg.lbn + n as u64 + 1, arm: track });
        }
        if end >= self.limit {
            end = end.max(self.known_to);
        }
        Some(Stopped { at: t, end, arm })
    }
}
