//! What a turn is charged (Valente 2014 sections 3.5 and 4.4).
//!
//! A turn is charged the sectors served. It is charged the whole budget if the slice timed out, or
//! if the rate was so low that the budget could not have been used up in a slice (sections 3.5 and
//! 4.4): a slow application then has an equal share of the *time*, not of the sectors. H-fairness
//! makes two exceptions: an application that was served very little (1/8 of the largest budget),
//! because the initial seek dominates its time, and one that used most of its budget (2/3), because
//! it is slow only due to its zone. Of slices that timed out, the first exception includes only the
//! first one since the application began to issue requests: a scattered application is never served
//! more than that in a slice, and would never be charged for its time. (In the code that the paper
//! measured it includes none.) Virtual time advances by the
//! charge.
//!
//! The asynchronous queue is not slow, since a drive may complete its writes at any time. BFQ
//! charges each of its turns a whole budget instead, and BFQ+ each sector ten times.

use headtime_disk::Dur;

use super::Bfq;
use super::active::Active;
use super::budget::Over;
use crate::admit::ASYNCHRONOUS;

impl Bfq {
    /// Returns the charge for a turn.
    pub(super) fn charge(&self, active: &Active, over: Over, time: Dur, most: u64) -> u64 {
        let charged = active.charged;
        if charged >= active.budget {
            return charged;
        }
        if over == Over::Displaced {
            // An application served by time is charged in proportion to the time it had.
            let by_time = u128::from(active.budget) * u128::from(time.0) / u128::from(active.slice.0.max(1));
            let random = self.is_random(&self.applications[active.queue]);
            return if random { charged.max(by_time.min(u128::from(active.budget)) as u64) } else { charged };
        }
        if active.queue == ASYNCHRONOUS && self.rules.charges_whole_asynchronous_turns {
            return active.budget;
        }
        // At this rate the budget could not have been used up in a slice.
        let slow = active.queue != ASYNCHRONOUS
            && u128::from(charged) * u128::from(active.slice.0) < u128::from(active.budget) * u128::from(time.0);
        let timed_out = over == Over::Timeout;
        let is_first = self.rules.excepts_first_timeout && self.applications[active.queue].is_new();
        let little = charged <= most / 8 && (!timed_out || is_first);
        let excepted = self.rules.fairness && (little || charged >= active.budget - active.budget / 3);
        if (slow || timed_out) && !excepted { active.budget } else { charged }
    }
}
