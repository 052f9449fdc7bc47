//! Limits of what the active application may have at the drive, and of the asynchronous queue's
//! turn. They follow the kernel's code that Valente 2014 measured (`bfq_dispatch_requests`).

use super::Bfq;
use super::active::Active;
use crate::admit::{ASYNCHRONOUS, Class};

impl Bfq {
    /// Returns whether another application waits for its turn. The active one is counted, too.
    fn do_others_wait(&self) -> bool {
        self.best_effort.backlogged() + self.idle_class.backlogged() > 1
    }

    /// Returns an application's budget in its next turn.
    pub(super) fn budget_of(&self, queue: u32, own: u64) -> u64 {
        let is_limited = queue == ASYNCHRONOUS && self.rules.asynchronous.is_some();
        if is_limited { self.rate.most() } else { own }
    }

    /// Returns whether the turn of the asynchronous queue is over by its number of requests.
    pub(super) fn has_sent_enough(&self, active: &Active) -> bool {
        let limits = self.rules.asynchronous.filter(|_| active.queue == ASYNCHRONOUS);
        limits.is_some_and(|l| active.requests >= l.requests) && self.do_others_wait()
    }

    /// Returns whether the active application must wait for a completion before another of its
    /// requests is dispatched.
    pub(super) fn has_enough_at_drive(&self, active: &Active, outstanding: u32) -> bool {
        let limits = self.rules.asynchronous.filter(|_| active.queue == ASYNCHRONOUS);
        if limits.is_some() && self.synchronous > 0 {
            return true;
        }
        let (beside, alone) = match (limits, active.class) {
            (_, Class::Idle) => (1, 4),
            (Some(limits), _) => (limits.requests, limits.requests.saturating_mul(4)),
            (None, _) => self.rules.at_drive,
        };
        // One at least: a completion must follow.
        let limit = if self.do_others_wait() { beside } else { alone }.max(1);
        outstanding >= limit
    }
}
