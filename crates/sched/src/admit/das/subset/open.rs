//! A stream at work: its periods, and what its requests take.

use headtime_disk::time::Dur;

use super::super::periods::Periods;
use super::charge::Charges;

/// A stream at work.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub number: u32,
    pub periods: Periods,
    /// w of one of its requests.
    pub worst: Dur,
    /// Worst cases of the older requests for which one of its requests may have to wait.
    pub blocking: Dur,
    /// Of these requests, what one is likely to take; zero where there are none.
    pub likely_older: Dur,
    /// x: with so much time left one of its requests is likely to be done.
    pub likely: Dur,
    /// Service times drawn from X, one for each request, beside those measured; a mandatory stream
    /// has none.
    pub charges: Option<Charges>,
    /// r; `None`: it is mandatory.
    pub reservation: Option<Dur>,
    /// c w / t of a mandatory stream, in [`super::super::rates::PARTS`]; w with what one of its
    /// requests may have to wait for.
    pub rate: u64,
    /// What an optional one can take of its whole reservation, the overrun of its last requests
    /// included.
    pub claim: Dur,
    /// The same in each of its periods, as a rate.
    pub claim_rate: u64,
    /// What all requests of each period are likely to take, as a rate.
    pub likely_rate: u64,
}

impl Open {
    /// What a mandatory stream's requests of the period under way, and `more` of them, take at
    /// their worst, with what they may have to wait for.
    pub fn due(&self, more: u32) -> Dur {
        let left = u64::from(self.periods.left() + more);
        Dur(self.worst.0 * left) + self.periods.blocking(more)
    }

    /// What all of a period's can take.
    pub fn whole(&self) -> Dur {
        self.work(self.periods.stream().requests)
    }

    /// What a number of its requests take at their worst, with what they may have to wait for.
    pub fn work(&self, requests: u32) -> Dur {
        Dur((self.worst + self.blocking).0 * u64::from(requests))
    }

    /// Whether its requests have left something of its reservation behind those that are at the
    /// drive, with this number of older ones; where it is used up, whether times drawn from X would
    /// have.
    pub fn has_more(&self, reservation: Dur, older: u32) -> bool {
        let begun = self.likely.0 * u64::from(self.periods.at_drive()) + self.likely_older.0 * u64::from(older);
        let used = self.periods.used();
        (if used >= reservation { self.periods.usual() } else { used }) + Dur(begun) < reservation
    }

    /// What a number of requests is likely to take; of an optional stream no more than its
    /// reservation leaves of which this is `used`, with the last one carried through.
    pub fn likely_work(&self, requests: u32, used: Dur) -> Dur {
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
