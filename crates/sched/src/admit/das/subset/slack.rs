//! How much time there is: what the streams demand and when, laid over each other by [`super::super::sweep`].

use headtime_disk::time::{Dur, Time};

use super::super::sweep::{At, Demand, Slack, bounded, fine, fine_between, grown, sweep};
use super::{Claims, Open, Step, Subset, signed};

impl Subset {
    /// What an optional stream can take of a reservation of `left` at most, with so many requests: the last commands are carried
    /// through.
    pub(super) fn claim(&self, open: &Open, left: Dur, requests: u32) -> Dur {
        let more = u64::from(self.rules.outstanding - 1);
        let overrun = open.worst.0 + more * (open.worst.0 - open.likely.0);
        Dur((left.0 + overrun).min(open.worst.0 * u64::from(requests)))
    }

    /// Whether one more request of a stream can be done in the period under way: at its worst if it is mandatory, out of what is reserved
    /// if it is optional.
    pub(super) fn fits(&mut self, at: usize, now: Time) -> bool {
        match self.streams[at].reservation {
            None => self.slack_with(at, 1, now) >= 0,
            Some(_) => self.is_reserved(at, now),
        }
    }

    /// Whether what is left of a period is enough for everything that is reserved in it, one more request of the
    /// optional stream `at` being there: a request that comes at its end would find the reservation there and the time
    /// gone.
    ///
    /// Mandatory ones count as they are likely to be. So all of a full period can be more than the period, though
    /// condition (3) has admitted it, by the times that they have in the mean. Then the same share of all must be left
    /// as of the period: what comes at its beginning belongs to it in any case.
    fn is_reserved(&self, at: usize, now: Time) -> bool {
        let end = self.streams[at].periods.end();
        let needs = |(i, open): (usize, &Open)| {
            let (periods, release) = (&open.periods, open.periods.end());
            let stream = periods.stream();
            let left = periods.left() + u32::from(i == at);
            let work = |requests: u32| Dur(open.worst.0 * u64::from(requests));
            let likely = |requests: u32| Dur(open.likely.0 * u64::from(requests));
            let (due, each) = match open.reservation {
                None => (likely(left), likely(stream.requests)),
                Some(reserved) => (reserved.saturating_sub(periods.used()).min(work(left)), reserved),
            };
            let late = if open.reservation.is_none() { work(periods.late()) } else { Dur::ZERO };
            let again = u128::from(each.0) * u128::from(end.saturating_since(release).0) / u128::from(stream.period.0);
            let of_it = |due: Dur| if release <= end { u128::from(due.0) + again } else { 0 };
            (u128::from(late.0) + of_it(due), of_it(each))
        };
        let all = self.streams.iter().enumerate().map(needs);
        let (needed, full) = all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let period = u128::from(self.streams[at].periods.stream().period.0);
        let left = u128::from(end.saturating_since(now).0);
        needed * period <= left * period.max(full)
    }

    /// The slack of mandatory streams if one of the streams had `more` requests.
    pub(super) fn slack_with(&mut self, at: usize, more: u32, now: Time) -> i64 {
        self.put_in_order(Some((at, more)));
        self.stale = true;
        self.swept(now).mandatory
    }

    pub(super) fn slack(&mut self, now: Time) -> Slack {
        if self.stale {
            self.put_in_order(None);
            self.stale = false;
        }
        self.swept(now)
    }

    fn swept(&mut self, now: Time) -> Slack {
        let late = self.late_work();
        sweep(&mut self.order, self.at_drive.free_by(now), late)
    }

    /// Mandatory requests that are late, at their worst.
    fn late_work(&self) -> Dur {
        let late = self.streams.iter().filter(|s| s.reservation.is_none());
        Dur(late.map(|s| u64::from(s.periods.late()) * s.worst.0).sum())
    }

    /// How much time there is beyond what optional streams have reserved, from `from` on.
    ///
    /// At each end of an optional stream's period count what streams with this end, or an earlier one, can take by
    /// then, and everything that mandatory streams can ask for before it, for these may go first whenever it is due.
    /// Of the period after the one under way all is counted at its end, and from there on as growing evenly, as in
    /// [`sweep`].
    pub(super) fn claims(&mut self, from: Time) -> Claims {
        let mut ends = std::mem::take(&mut self.ends);
        if ends.is_empty() {
            for (at, open) in self.streams.iter().enumerate() {
                let end = open.periods.end();
                ends.push((end, Step::Ends, at));
                if open.reservation.is_some() {
                    ends.push((end + open.periods.stream().period, Step::NextEnds, at));
                }
            }
            ends.sort_unstable();
        }
        self.before.clear();
        self.before.resize(self.streams.len(), i64::MAX);
        let mut claims = Claims { now: i64::MAX, next: i64::MAX };
        let waits = self.streams.iter().filter(|s| s.reservation.is_none());
        let waits = waits.map(|s| fine(s.due(0))).sum::<i128>();
        let (mut must, mut rate, mut last) = (fine(self.late_work()) + waits, 0u64, Time::ZERO);
        for here in ends.chunk_by(|a, b| a.0 == b.0) {
            let end = here[0].0;
            must += grown(rate, end.since(last).0);
            last = end;
            let least = claims.now;
            let (mut claimed, mut begins) = (false, None);
            for &(_, step, at) in here {
                let open = &self.streams[at];
                match (step, open.reservation) {
                    (Step::Ends, Some(reserved)) => {
                        self.before[at] = least;
                        let work = self.claimed(open, reserved, open.periods.left());
                        must += fine(work);
                        claimed |= work > Dur::ZERO;
                    }
                    (Step::NextEnds, _) => {
                        must += fine(open.claim);
                        let begin = open.periods.end().saturating_since(from);
                        begins = Some(begins.map_or(begin, |b: Dur| b.min(begin)));
                    }
                    (Step::Ends, None) => {}
                }
            }
            let left = bounded(fine_between(from, end) - must);
            if claimed {
                claims.now = claims.now.min(left);
            }
            if let Some(begins) = begins {
                claims.next = claims.next.min(left.max(signed(begins)));
            }
            // What comes from here on is due later.
            for &(_, step, at) in here {
                let open = &self.streams[at];
                let (more, grows) = match (step, open.reservation) {
                    (Step::Ends, None) => (open.whole().0, open.rate),
                    (Step::NextEnds, _) => (0, open.claim_rate),
                    (Step::Ends, Some(_)) => (0, 0),
                };
                must += fine(Dur(more));
                rate = rate.saturating_add(grows);
            }
        }
        self.ends = ends;
        claims
    }

    /// What an optional stream can still take of its reservation in the period under way, at its worst.
    fn claimed(&self, open: &Open, reservation: Dur, left: u32) -> Dur {
        let reserved = reservation.saturating_sub(open.periods.used());
        if left > 0 && reserved > Dur::ZERO { self.claim(open, reserved, left) } else { Dur::ZERO }
    }

    /// Deadlines as they are, or as they would be with more requests of one stream.
    fn put_in_order(&mut self, with: Option<(usize, u32)>) {
        self.order.clear();
        for (stream, open) in self.streams.iter().enumerate() {
            let more = with.filter(|w| w.0 == stream).map_or(0, |w| w.1);
            let demand = self.demand(open, more);
            self.order.push(At { stream, demand, before: 0, here: i64::MAX });
        }
        self.order.sort_unstable_by_key(|at| (at.demand.at(), at.stream));
    }

    fn demand(&self, open: &Open, more: u32) -> Demand {
        let (end, stream) = (open.periods.end(), open.periods.stream());
        let left = open.periods.left() + more;
        match open.reservation {
            None if left > 0 => Demand::Mandatory { by: end, work: open.due(more), rate: open.rate },
            None => Demand::Mandatory { by: end + stream.period, work: open.whole(), rate: open.rate },
            Some(reservation) => Demand::Optional { by: end, work: self.claimed(open, reservation, left) },
        }
    }
}
