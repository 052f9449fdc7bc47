//! A prefetch that runs on after a read, evaluated only when somebody asks how far it got.

use crate::drive::mechanism::Leg;
use crate::time::Time;

/// A running (or finished) prefetch into one cache segment.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The segment it fills.
    pub segment: usize,
    /// What has passed and will pass; in LBN order and in time order.
    pub legs: Vec<Leg>,
    /// One past the last LBN it will read.
    pub limit: u64,
    /// Once `limit` is reached everything up to here is known, because it passed under the head before.
    pub known_to: u64,
    /// Whether it is there at all.
    pub running: bool,
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
    /// A stream that is extended again and again would be walked through from ever farther back: of what has passed only the
    /// last legs are kept, more than any segment holds tracks of that a read could still hit.
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

    /// When it would be out of the way of a command that turns up at `t`. A move under way is finished first; a
    /// rotational wait and a sector are finished unless `in_sector`.
    pub fn stop(&self, t: Time, in_sector: bool) -> Option<Stopped> {
        let mut arm = self.legs.first().map(|l| (l.cylinder, l.surface))?;
        let mut end = self.legs[0].lbn;
        for leg in &self.legs {
            if t >= leg.end() {
                end = leg.end_lbn();
                arm = (leg.cylinder, leg.surface);
                continue;
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
