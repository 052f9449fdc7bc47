//! Whose weight is raised when it becomes backlogged: an application that begins, unless many begin
//! together, and a soft real-time application (Valente 2014 section 4.1, and what the kernel's BFQ
//! added).

use headtime_disk::{Dur, Time};

use super::{Bfq, NEW_AFTER};
use crate::admit::{ASYNCHRONOUS, BACKGROUND, Class, Share};

/// Returns whether a weight may be raised: not for asynchronous, background or idle-class queues.
fn raisable(queue: u32, share: Share) -> bool {
    queue != ASYNCHRONOUS && queue != BACKGROUND && share.class == Class::BestEffort
}

impl Bfq {
    /// Handles an application that has become backlogged, and was without a request for `idle_for`;
    /// `None`: it is new.
    pub(super) fn becomes_backlogged(&mut self, queue: u32, idle_for: Option<Dur>, now: Time) {
        let a = self.applications.get_mut(queue).expect("it is known");
        if idle_for.is_some_and(|idle| idle >= NEW_AFTER) {
            a.begin();
        }
        // Requests of it may be at the drive still.
        let soft = self.rules.soft_real_time.filter(|_| a.queued + a.outstanding == 1);
        let soft = soft.filter(|_| a.batch.begin(now) && !a.pattern.is_scattered() && !a.in_burst);
        let Some(rules) = self.rules.low_latency.filter(|_| raisable(queue, a.share)) else { return };
        if idle_for.is_none_or(|idle| idle >= rules.idle) {
            let mut lowered = Vec::new();
            let bursts = self.rules.bursts;
            let large = bursts.is_some_and(|bursts| self.burst.join(&bursts, queue, &mut lowered, now));
            let a = self.applications.get_mut(queue).expect("it is known");
            a.in_burst = large;
            match large {
                // It may be raised still from when it began before.
                true => a.lower(),
                false => a.raise(&rules, self.raised_sectors, now),
            }
            for member in lowered {
                if let Some(a) = self.applications.get_mut(member) {
                    a.in_burst = true;
                    a.lower();
                }
                self.stands(member, now);
            }
        } else if let Some(soft) = soft {
            a.raise_soft(&soft, now);
        }
    }

    /// Handles an application that has no request any more.
    pub(super) fn becomes_idle(&mut self, queue: u32, now: Time) {
        let (idle, sector_bytes) = (self.rules.idle, self.sector_bytes);
        let a = self.applications.get_mut(queue).expect("whose request was sent is known");
        a.idle_since = now;
        if let Some(rules) = &self.rules.soft_real_time {
            a.batch.end(rules, sector_bytes, idle, now);
        }
    }
}
