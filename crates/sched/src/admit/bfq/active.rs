//! The turn of the application in service.

use headtime_disk::{Dur, Time};

use super::Bfq;
use super::application::Application;
use super::budget::Over;
use crate::admit::{ASYNCHRONOUS, Class};

/// The application in service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) queue: u32,
    pub(super) class: Class,
    pub(super) budget: u64,
    /// Sectors served, and sectors charged for them.
    pub(super) sectors: u64,
    pub(super) charged: u64,
    /// Number of its requests that were dispatched.
    pub(super) requests: u32,
    /// Maximum service time, from the dispatch of its first request.
    pub(super) slice: Dur,
    /// See `slice`.
    pub(super) since: Option<Time>,
    /// When idling for the application ends, after its last completion.
    pub(super) waits_until: Time,
    /// An application with a raised weight arrived, and this one's is not raised.
    pub(super) displaced: bool,
    /// Time in which the disk served streams since the application became idle; not part of its own
    /// time.
    pub(super) others: Dur,
}

impl Active {
    /// Creates a turn in which no request was dispatched yet.
    pub(super) fn new(queue: u32, class: Class, budget: u64, slice: Dur) -> Active {
        Active {
            queue,
            class,
            budget,
            sectors: 0,
            charged: 0,
            requests: 0,
            slice,
            since: None,
            waits_until: Time::ZERO,
            displaced: false,
            others: Dur::ZERO,
        }
    }
}

impl Bfq {
    /// Returns how long the disk idles for an application with an empty queue.
    pub(super) fn waits(&self, active: &Active, a: &Application, now: Time) -> Dur {
        let never = active.queue == ASYNCHRONOUS || active.class == Class::Idle || self.rules.idle == Dur::ZERO;
        if never || self.held_back.contains(&active.queue) {
            return Dur::ZERO;
        }
        // Until then it may be slow only because it has just begun (section 4.4, the third case).
        let little = active.charged < self.rate.most() / 8;
        match self.rules.low_latency.filter(|_| a.is_raised(now)) {
            Some(raised) => self.rules.idle.max(raised.wait),
            None if self.is_random(a) && !little && self.rules.ncq => Dur::ZERO,
            None if self.is_random(a) && !(little && self.rules.fairness) => self.rules.idle_random,
            None => self.rules.idle,
        }
    }

    /// Ends the turn of an application whose weight is not raised as soon as one whose weight is
    /// raised would be selected. It may have arrived ahead of its share and become eligible only
    /// now; otherwise it would wait for the rest of a slice.
    pub(super) fn displace_for_raised(&mut self, now: Time) {
        let preempts = self.rules.low_latency.is_some_and(|l| l.preempts);
        let Some(active) = self.active.filter(|active| preempts && active.class == Class::BestEffort) else { return };
        let a = &self.applications[active.queue];
        if a.is_raised(now) {
            return;
        }
        let Some((finish, first)) = self.best_effort.first_eligible() else { return };
        // Where the active one would wait after its turn.
        let stamps = self.best_effort.stamps(active.queue).expect("the active application is backlogged");
        let again = stamps.start.after(active.charged + active.budget, stamps.weight);
        let is_selected = a.queued == 0 || (finish, first) < (again, active.queue);
        if is_selected && self.applications[first].is_raised(now) {
            self.active = Some(Active { displaced: true, ..active });
        }
    }

    /// Returns why the active application's turn is over, or until when the disk idles for it.
    pub(super) fn look(&self, active: &Active, a: &Application, now: Time) -> Result<Option<Time>, Over> {
        let outranked = active.class == Class::Idle && self.best_effort.backlogged() > 0;
        if active.displaced || (active.since.is_some() && outranked) {
            return Err(Over::Displaced);
        }
        let ends = active.since.map_or(Time::NEVER, |since| since + active.slice);
        if a.queued > 0 {
            return match () {
                () if now >= ends => Err(Over::Timeout),
                () if active.charged >= active.budget || self.has_sent_enough(active) => Err(Over::UsedUp),
                () => Ok(None),
            };
        }
        let much_is_left = active.budget.saturating_sub(active.charged) >= active.budget / 3;
        if now >= ends && a.outstanding == 0 && much_is_left && !self.rules.idles_past_slice {
            return Err(Over::Timeout);
        }
        let until = match a.outstanding {
            0 => active.waits_until,
            // While the drive serves its request, with an upper bound.
            _ => ends + active.slice,
        };
        // A departed application was served until its last completion, however long ago.
        let served_until = if a.is_idle() { a.idle_since + active.others } else { now };
        match now >= until || self.waits(active, a, now) == Dur::ZERO {
            true if served_until >= ends => Err(Over::Timeout),
            true => Err(Over::NoMore { outstanding: a.outstanding > 0 }),
            false => Ok(Some(until)),
        }
    }
}
