//! Blocked requests of a stream.

use headtime_disk::Dur;

use super::Periods;

impl Periods {
    /// Marks a request of `period` not yet reported as ready as blocked by an older one; `counts`:
    /// it counts while blocked.
    pub(crate) fn blocked(&mut self, period: u64, counts: bool) {
        let batch = self.batch(period);
        assert!(batch.left > batch.ready + batch.bound, "no request of period {period} waits");
        if counts {
            batch.bound += 1;
        } else {
            (batch.left, batch.blocked) = (batch.left - 1, batch.blocked + 1);
        }
    }

    /// Unblocks a request. `in_account`: one that did not count does so from now on.
    pub(crate) fn unblocked(&mut self, period: u64, in_account: bool) {
        let each = self.blocking;
        let batch = self.batch(period);
        if batch.bound > 0 {
            (batch.bound, batch.ready) = (batch.bound - 1, batch.ready + 1);
            // Its share is returned, so the others' remaining blocking time does not grow.
            batch.lent = batch.lent.saturating_sub(each);
            return;
        }
        assert!(batch.blocked > 0, "no request of period {period} waits for an older one");
        batch.blocked -= 1;
        match in_account {
            true => (batch.left, batch.ready) = (batch.left + 1, batch.ready + 1),
            false => batch.excused += 1,
        }
    }

    /// Stops counting blocked requests until they are eligible: the stream is no longer served as a
    /// mandatory one.
    pub(crate) fn counts_no_more_what_waits(&mut self) {
        for batch in self.later.iter_mut().chain([&mut self.now]) {
            batch.excuses_bound();
        }
    }

    /// Returns whether a request of the current or a later period is blocked and does not count.
    pub(crate) fn has_blocked(&self) -> bool {
        self.later.iter().chain([&self.now]).any(|batch| batch.blocked > 0)
    }

    /// Returns whether all requests left in the current period are blocked for longer than the
    /// stream declared.
    pub(crate) fn is_stuck(&self) -> bool {
        self.now.left > 0 && self.now.ready == 0 && self.blocking(0) == Dur::ZERO
    }

    /// Returns the remaining blocking time of requests of the current period that may be blocked,
    /// and of `more` of them.
    #[inline]
    pub(crate) fn blocking(&self, more: u32) -> Dur {
        self.now.blocking(self.blocking, more)
    }

    /// Records that an older request that blocks one of `period` is dispatched, with this worst
    /// case; returns how much of it is deducted from the period's blocking time.
    pub(crate) fn lend(&mut self, period: u64, worst: Dur) -> Dur {
        if period < self.current {
            return Dur::ZERO;
        }
        let each = self.blocking;
        let batch = self.batch(period);
        let lent = worst.min(batch.blocking(each, 0));
        batch.lent += lent;
        lent
    }

    /// Restores the blocking time deducted for an older request that was not dispatched.
    pub(crate) fn repay(&mut self, period: u64, lent: Dur) {
        if period >= self.current {
            let batch = self.batch(period);
            batch.lent = batch.lent.saturating_sub(lent);
        }
    }
}
