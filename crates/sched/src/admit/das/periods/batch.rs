//! The requests of one period of a stream: counted, eligible and blocked ones.

use headtime_disk::Dur;

/// Requests of one period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// Number of requests assigned to it.
    pub given: u32,
    /// Of these, the ones that count and were not dispatched.
    pub left: u32,
    /// Of `left`, the eligible ones.
    pub ready: u32,
    /// Of `left`, the ones blocked by an older request.
    pub bound: u32,
    /// Part of their blocking time used by older requests that were dispatched for them.
    pub lent: Dur,
    /// Dispatched before the period began, and not completed.
    pub early: u32,
    /// Blocked requests that do not count.
    pub blocked: u32,
    /// Requests blocked past their period: eligible when best effort is.
    pub excused: u32,
}

impl Batch {
    /// Returns the number of requests not dispatched.
    pub(super) fn rest(&self) -> u32 {
        self.left + self.blocked + self.excused
    }

    /// Returns the remaining blocking time of requests that may be blocked, and of `more` of them;
    /// `each`: of one.
    pub(super) fn blocking(&self, each: Dur, more: u32) -> Dur {
        Dur(each.0 * u64::from(self.left - self.ready + more)).saturating_sub(self.lent)
    }

    /// Stops counting the blocked requests.
    pub(super) fn excuses_bound(&mut self) {
        (self.left, self.blocked) = (self.left - self.bound, self.blocked + self.bound);
        (self.bound, self.lent) = (0, Dur::ZERO);
    }

    /// Stops counting the eligible requests.
    pub(super) fn excuses_ready(&mut self) {
        (self.left, self.excused) = (self.left - self.ready, self.excused + self.ready);
        self.ready = 0;
    }

    /// Removes an eligible request.
    pub(super) fn takes_one(&mut self) {
        match self.ready {
            0 => self.excused -= 1,
            _ => (self.left, self.ready) = (self.left - 1, self.ready - 1),
        }
    }
}
