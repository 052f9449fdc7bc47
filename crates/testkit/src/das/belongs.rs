//! The period of a request.

use headtime_disk::{Dur, Time};

use super::{Asked, Is, Walk};

impl Walk {
    /// Submits a stream's request, and returns its period. It waits for an older one if `blocked`.
    pub fn submit(&mut self, s: usize, blocked: bool, now: Time) -> u64 {
        self.lending.take_back();
        let open = self.streams[s];
        let given = |p: u64| self.count(s, |r| r.period == p);
        let current = self.current(s, now);
        let next = current.map_or(open.begins.0 / open.stream.period.0, |p| p + 1);
        let waits = self.requests.iter().any(|r| r.stream == s && r.period >= next);
        let fits = |_: &u64| self.fits(s, now);
        let c = u64::from(open.stream.requests);
        let period = match current.filter(|&p| given(p) < c && !waits).filter(fits) {
            Some(p) => p,
            None => (next..).find(|&p| given(p) < c).unwrap_or(next),
        };
        let is = if blocked { Is::Blocked } else { Is::Waiting };
        self.requests.push(Asked { stream: s, period, is, took: Dur::ZERO, usual: Dur::ZERO, done: Time::ZERO });
        period
    }

    /// Returns whether one more request of a stream fits into its period.
    fn fits(&self, s: usize, now: Time) -> bool {
        let end = self.end(s, now);
        if end == now + self.streams[s].stream.period {
            return true;
        }
        if self.streams[s].reservation.is_some() {
            return self.is_reserved(s, now);
        }
        let slacks = self.slacks(None, &|other| u64::from(other == s), now);
        slacks.iter().all(|(at, slack)| *at < end || *slack >= 0)
    }

    /// Returns whether all reservations before the end of an optional stream's period remain
    /// possible with one more request of it.
    fn is_reserved(&self, s: usize, now: Time) -> bool {
        let end = self.end(s, now);
        let (mut needed, mut full) = (0u128, 0u128);
        for (i, o) in self.streams.iter().enumerate() {
            let left = self.left(i, now) + u64::from(i == s);
            let release = self.end(i, now);
            let (due, each) = match o.reservation {
                None => {
                    needed += u128::from(self.late(i, now) * o.worst.0);
                    (left * o.likely.0, u64::from(o.stream.requests) * o.likely.0)
                }
                Some(all) => ((left * (o.worst + o.blocking).0).min(all.saturating_sub(self.used(i, now)).0), all.0),
            };
            if release <= end {
                let since = end.since(release).0;
                let again = u128::from(each) * u128::from(since) / u128::from(o.stream.period.0);
                (needed, full) = (needed + u128::from(due) + again, full + u128::from(each) + again);
            }
        }
        // Of a period shorter than the total, the same share must be left.
        let period = u128::from(self.streams[s].stream.period.0);
        needed * period <= u128::from(end.since(now).0) * period.max(full)
    }
}
