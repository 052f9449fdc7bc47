//! The requests of one period of a stream: how many of them count, may go, wait for older ones.

use headtime_disk::time::Dur;

/// Requests of one period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// Given to it.
    pub given: u32,
    /// Of them, those that count and were not sent to the drive.
    pub left: u32,
    /// Of those, the ones that may go.
    pub ready: u32,
    /// Of those that count, the ones that wait for an older request.
    pub bound: u32,
    /// Of their blocking time, what older requests had that went for them.
    pub lent: Dur,
    /// Sent before the period began, and not done.
    pub early: u32,
    /// Those that wait for an older request and do not count.
    pub blocked: u32,
    /// Those that waited for one too long: they may go where best effort may.
    pub excused: u32,
}

impl Batch {
    /// Requests that were not sent.
    pub fn rest(&self) -> u32 {
        self.left + self.blocked + self.excused
    }

    /// What is left of the blocking time of those that may have to wait for older ones, and of
    /// `more`; `each`: of one.
    pub fn blocking(&self, each: Dur, more: u32) -> Dur {
        Dur(each.0 * u64::from(self.left - self.ready + more)).saturating_sub(self.lent)
    }

    /// Those that count and wait for an older request do not count any more.
    pub fn excuses_bound(&mut self) {
        (self.left, self.blocked) = (self.left - self.bound, self.blocked + self.bound);
        (self.bound, self.lent) = (0, Dur::ZERO);
    }

    /// Those that may go do not count any more.
    pub fn excuses_ready(&mut self) {
        (self.left, self.excused) = (self.left - self.ready, self.excused + self.ready);
        self.ready = 0;
    }

    /// One that may go is gone.
    pub fn takes_one(&mut self) {
        match self.ready {
            0 => self.excused -= 1,
            _ => (self.left, self.ready) = (self.left - 1, self.ready - 1),
        }
    }
}
