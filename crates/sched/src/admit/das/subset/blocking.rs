//! Deadline inheritance: a request that blocks a mandatory one inherits its deadline.
//!
//! A stream declares by how many older requests each of its own may be blocked (`blocked_by` of a
//! [stream](super::super::stream::Stream)). With B of them, each of worst case b, B b is a
//! request's *blocking time*. It counts as the request's until the request is unblocked, in
//! admission as well. When an older request is dispatched, b of time passes, and the blocking time
//! of the blocked one is less by b: at its deadline and at later ones the slack is unchanged. At
//! earlier deadlines it must be b or more, as for a mandatory request of that deadline. So nothing
//! is late, if no request is blocked by more than its stream declares.
//!
//! If one is blocked by more, there may be no room for b at its stream's own deadline. But it
//! cannot be in time unless the older one is served. So that deadline does not hold back the older
//! one once all remaining requests of the stream are blocked: at worst the stream is late, which is
//! certain otherwise. If the period of the blocked one is over, the stream must have nothing left
//! to do. Other streams' deadlines count all the same: a stream that declares too little is late at
//! its own cost.
//!
//! A request that blocks an *optional* one, in its period, is dispatched next if a request of that
//! stream would be eligible, and is charged to the stream's reservation. Admission counts B of them
//! before each request, at their real times. A stream whose requests are blocked by more has less
//! time for them, but gets the part of its reservation that X would not have used up beyond that
//! ([`super::charge`]).

use std::cmp::Ordering;

use headtime_disk::{Dur, Time};

use super::{Lent, Member, Sent, Subset, signed};

impl Subset {
    /// Returns whether a request of `what` may be dispatched because it blocks a stream's request,
    /// `waits`. If so, no other may. For a mandatory stream it may, whatever is reserved for
    /// optional streams, if it can make no mandatory request late. `worst`: w of a request without
    /// a stream.
    pub fn inherits(&mut self, waits: Member, what: Sent, worst: Dur, now: Time) -> bool {
        self.tick(now);
        if let Some(reservation) = self.streams[self.find(waits.stream)].reservation {
            return self.inherits_reservation((waits, reservation), what, worst, now);
        }
        let of = match what {
            Sent::Stream(member) => Some((self.find(member.stream), member.period)),
            Sent::BestEffort | Sent::Fill => None,
        };
        let worst = of.map_or(worst, |(at, _)| self.streams[at].worst);
        let at = self.find(waits.stream);
        let time = self.streams[at].periods.lend(waits.period, worst);
        self.lent = Some(Lent { member: waits, time, token: None });
        self.changed();
        // Whether the blocked request's own deadlines are ignored.
        let periods = &self.streams[at].periods;
        let spared = match waits.period.cmp(&periods.current()) {
            Ordering::Less => periods.left() == 0,
            Ordering::Equal => periods.waiting() == 0,
            Ordering::Greater => false,
        };
        let slack = self.slack(now);
        let least = |subset: &Subset, until: Option<usize>| match (spared, until) {
            (true, until) => {
                let until = until.map(|own| subset.streams[own].periods.end());
                subset.slack_but_of(at, until, slack.from)
            }
            (false, Some(own)) => subset.points[subset.point_of[own]].before,
            (false, None) => slack.mandatory,
        };
        let enough = |slack: i64| slack >= signed(worst);
        let may = match of {
            // Its demand is already counted at its own deadline, or as late.
            Some((own, period))
                if self.streams[own].reservation.is_none() && self.streams[own].periods.counts(period) =>
            {
                period < self.streams[own].periods.current() || enough(least(self, Some(own)))
            }
            None if worst > self.rules.best_effort => false,
            _ => enough(least(self, None)),
        };
        if !may {
            self.take_back(None);
            return false;
        }
        self.goes_next(what, worst);
        true
    }

    /// The same for an optional stream's blocked request, with its stream's reservation.
    fn inherits_reservation(&mut self, waits: (Member, Dur), what: Sent, worst: Dur, now: Time) -> bool {
        let (member, reservation) = waits;
        let (worst, likely) = match what {
            Sent::Stream(of) => {
                let open = &self.streams[self.find(of.stream)];
                (open.worst, open.likely)
            }
            Sent::BestEffort if worst <= self.rules.best_effort => (worst, self.rules.likely(worst)),
            Sent::BestEffort | Sent::Fill => return false,
        };
        let (at, likely_free) = (self.find(member.stream), self.at_drive.likely_free_by(now));
        let open = &self.streams[at];
        let in_time = likely_free + likely + open.likely <= open.periods.end();
        // With declared blocking, the stream's eligible requests are dispatched first.
        let goes_first = open.blocking > Dur::ZERO && (open.periods.waiting() > 0 || self.older_at_drive(member) > 0);
        if member.period != open.periods.current() || goes_first || !in_time || !open.has_more(reservation, 0) {
            return false;
        }
        let slack = self.slack(now);
        self.claims(slack.from, likely_free, worst);
        let open = &self.streams[at];
        let used_up = open.periods.used() >= reservation;
        let compensates = || {
            self.rules.compensates && self.likely_spare(likely_free)[self.point_of[at]] >= signed(likely + open.likely)
        };
        let may = slack.mandatory.min(self.before[at]) >= signed(worst) && (!used_up || compensates());
        if may {
            self.lent = Some(Lent { member, time: Dur::ZERO, token: None });
            self.goes_next(what, worst);
        }
        may
    }

    /// Returns the number of requests in flight or held that block an optional stream's request.
    pub(super) fn older_at_drive(&self, of: Member) -> u32 {
        self.at_drive.each().filter(|gone| gone.costs == Some(of)).count() as u32
    }

    fn goes_next(&mut self, what: Sent, worst: Dur) {
        self.active.members.clear();
        self.active.best_effort = !matches!(what, Sent::Stream(_));
        match what {
            Sent::Stream(member) => self.active.members.push(member),
            _ => self.decided_for = worst,
        }
    }

    /// Withdraws a request that was eligible, or chosen under this identifier, because it blocks a
    /// mandatory one: the blocking time is counted as before.
    pub(super) fn take_back(&mut self, token: Option<u32>) {
        let Some(Lent { member, time, .. }) = self.lent.take_if(|lent| lent.token == token) else { return };
        if let Some(open) = self.streams.iter_mut().find(|s| s.number == member.stream) {
            open.periods.repay(member.period, time);
            self.changed();
        }
    }
}
