//! State of an open stream: its periods, and the service times of its requests.

use headtime_disk::Dur;

use super::super::periods::Periods;
use super::charge::Charges;

/// An open stream.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub number: u32,
    pub periods: Periods,
    /// w of one of its requests.
    pub worst: Dur,
    /// Blocking time of one of its requests: worst case of the older requests.
    pub blocking: Dur,
    /// Likely service time of one of these requests; zero if there are none.
    pub likely_older: Dur,
    /// x: the remaining time in which one of its requests is likely to complete.
    pub likely: Dur,
    /// Service times drawn from X, one per request, in addition to the measured ones; `None` for a
    /// mandatory stream.
    pub charges: Option<Charges>,
    /// r; `None`: it is served as a mandatory one.
    pub reservation: Option<Dur>,
    /// c w / t of a stream served as a mandatory one, in [`super::super::rates::PARTS`]; w includes
    /// the blocking time.
    pub rate: u64,
    /// Maximum use of its whole reservation, including the overrun of its last requests.
    pub claim: Dur,
    /// `claim` per period, as a rate.
    pub claim_rate: u64,
    /// Likely service time of all requests of each period, as a rate.
    pub likely_rate: u64,
}

impl Open {
    /// Returns the worst-case demand of a mandatory stream's requests of the current period, and of
    /// `more` of them, including blocking time.
    pub(super) fn due(&self, more: u32) -> Dur {
        let left = u64::from(self.periods.left() + more);
        Dur(self.worst.0 * left) + self.periods.blocking(more)
    }

    /// Returns the worst-case demand of a whole period.
    pub(super) fn whole(&self) -> Dur {
        self.work(self.periods.stream().requests)
    }

    /// Returns the worst-case demand of this number of requests, including blocking time.
    pub(super) fn work(&self, requests: u32) -> Dur {
        Dur((self.worst + self.blocking).0 * u64::from(requests))
    }

    /// Returns whether some of the reservation is left after the requests in flight and this number
    /// of blocking ones; if it is used up, whether times drawn from X would have left some.
    pub(super) fn has_more(&self, reservation: Dur, older: u32) -> bool {
        let begun = self.likely.0 * u64::from(self.periods.at_drive()) + self.likely_older.0 * u64::from(older);
        let used = self.periods.used();
        (if used >= reservation { self.periods.usual() } else { used }) + Dur(begun) < reservation
    }

    /// Returns the likely service time of this number of requests; for an optional stream at most
    /// the rest of its reservation after `used`, with the last request completed.
    pub(super) fn likely_work(&self, requests: u32, used: Dur) -> Dur {
        let each = |older: u64| Dur((self.likely.0 + older * self.likely_older.0) * u64::from(requests));
        match self.reservation.map(|reserved| reserved.saturating_sub(used)) {
            Some(Dur::ZERO) => Dur::ZERO,
            Some(left) => {
                let older = u64::from(self.periods.stream().blocked_by);
                each(older).min(left + self.likely.max(self.likely_older))
            }
            None => each(0),
        }
    }
}
