//! Limits of a queue's requests at the drive, and of the asynchronous queue's slice
//! (`cfq_may_dispatch` and `cfq_dispatch_requests` of Linux 2.6.34).

use headtime_disk::Time;

use super::{Active, Cfq, Kind, part};
use crate::admit::{ASYNCHRONOUS, Class};

/// Requests at the drive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InFlight {
    synchronous: u32,
    asynchronous: u32,
    /// When a delayed synchronous request was finished last.
    delayed_at: Option<Time>,
}

impl InFlight {
    fn of(&mut self, queue: u32) -> &mut u32 {
        if queue == ASYNCHRONOUS { &mut self.asynchronous } else { &mut self.synchronous }
    }

    pub(super) fn sent(&mut self, queue: u32) {
        *self.of(queue) += 1;
    }

    pub(super) fn completed(&mut self, queue: u32, delayed: bool, now: Time) {
        *self.of(queue) -= 1;
        if delayed && queue != ASYNCHRONOUS {
            self.delayed_at = Some(now);
        }
    }
}

impl Cfq {
    fn do_others_wait(&self) -> bool {
        self.busy() + self.idle_round.len() > 1
    }

    /// Returns whether the slice of the asynchronous queue is over by its number of requests.
    pub(super) fn has_sent_enough(&self, active: &Active) -> bool {
        let enough = active.queue == ASYNCHRONOUS && active.requests >= self.rules.slice_async_requests;
        enough && self.do_others_wait()
    }

    /// Returns whether the active queue may dispatch a request now; otherwise it waits for a
    /// completion.
    pub(super) fn may_dispatch(&self, active: &Active, now: Time) -> bool {
        let asynchronous = active.queue == ASYNCHRONOUS;
        let q = &self.queues[&active.queue];
        // Sequential queues, which are idled for, begin after the last asynchronous request.
        let drains = !asynchronous && self.kind_of(active.queue) == Kind::InOrder && self.in_flight.asynchronous > 0;
        if drains || (asynchronous && self.in_flight.synchronous > 0) {
            return false;
        }
        let mut most = match q.share.class {
            Class::Idle => 1,
            Class::BestEffort => (self.rules.quantum / 2).max(1),
        };
        if q.outstanding >= most {
            if q.share.class == Class::Idle {
                return false;
            }
            if self.do_others_wait() {
                if self.is_nearly_over(active, q.outstanding, now) {
                    return false;
                }
                most = self.rules.quantum.max(1);
            } else {
                most = u32::MAX;
            }
        }
        if asynchronous
            && self.rules.low_latency
            && let Some(delayed_at) = self.in_flight.delayed_at
        {
            let depth = now.saturating_since(delayed_at).0 / self.rules.slice_sync.0.max(1);
            let depth = if depth == 0 && q.outstanding == 0 { 1 } else { depth };
            most = most.min(u32::try_from(depth).unwrap_or(u32::MAX));
        }
        q.outstanding < most
    }

    /// Returns whether the slice will be over when the requests at the drive are finished
    /// (`cfq_slice_used_soon`).
    fn is_nearly_over(&self, active: &Active, outstanding: u32, now: Time) -> bool {
        let Some(ends) = active.ends else { return true };
        now + part(self.rules.slice_idle, u64::from(outstanding), 1) > ends
    }
}
