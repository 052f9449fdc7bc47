//! Requests of a stream that wait for older ones.

use headtime_disk::time::Dur;

use super::Periods;

impl Periods {
    /// A request of `period` that has not been told to be ready waits for an older one; whether it
    /// counts meanwhile.
    pub fn blocked(&mut self, period: u64, counts: bool) {
        let batch = self.batch(period);
        assert!(batch.left > batch.ready + batch.bound, "no request of period {period} waits");
        if counts {
            batch.bound += 1;
        } else {
            (batch.left, batch.blocked) = (batch.left - 1, batch.blocked + 1);
        }
    }

    /// It waits no longer. `in_account`: one that did not count does so from now on.
    pub fn unblocked(&mut self, period: u64, in_account: bool) {
        let each = self.blocking;
        let batch = self.batch(period);
        if batch.bound > 0 {
            (batch.bound, batch.ready) = (batch.bound - 1, batch.ready + 1);
            // Its share of it; so what is left of the others' blocking time is no more than it was.
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

    /// Requests that wait for older ones do not count any more until they may go: the stream is
    /// served as a mandatory one no longer.
    pub fn counts_no_more_what_waits(&mut self) {
        for batch in self.later.iter_mut().chain([&mut self.now]) {
            batch.excuses_bound();
        }
    }

    /// Whether there is a request that waits for an older one and does not count, of the period
    /// under way or a later one.
    pub fn has_blocked(&self) -> bool {
        self.later.iter().chain([&self.now]).any(|batch| batch.blocked > 0)
    }

    /// Whether all that is left of the period under way waits for older requests, for longer than
    /// the stream said.
    pub fn is_stuck(&self) -> bool {
        self.now.left > 0 && self.now.ready == 0 && self.blocking(0) == Dur::ZERO
    }

    /// What is left of the blocking time of requests of the period under way that may have to wait
    /// for older ones, and of `more` of them.
    #[inline]
    pub fn blocking(&self, more: u32) -> Dur {
        self.now.blocking(self.blocking, more)
    }

    /// An older request for which one of `period` waits goes, with this worst case: how much of
    /// that was blocking time of the period, which is less by it from now on.
    pub fn lend(&mut self, period: u64, worst: Dur) -> Dur {
        if period < self.current {
            return Dur::ZERO;
        }
        let each = self.blocking;
        let batch = self.batch(period);
        let lent = worst.min(batch.blocking(each, 0));
        batch.lent += lent;
        lent
    }

    /// It did not go.
    pub fn repay(&mut self, period: u64, lent: Dur) {
        if period >= self.current {
            let batch = self.batch(period);
            batch.lent = batch.lent.saturating_sub(lent);
        }
    }
}
