//! What a mandatory request waits for inherits its deadline.
//!
//! A stream says for how many older requests each of its own may have to wait (`blocked_by` of a
//! [stream](super::super::stream::Stream)). With B of them, each of worst case b, B b is a
//! request's *blocking time*. It counts as the request's until that waits for nothing; so does
//! admission count it. When an older request goes, b is time that passes, and the blocking time of
//! the waiting one is less by b: at its deadline and at later ones the slack is what it was. At
//! earlier deadlines it must be b or more, as for a mandatory request of that deadline. So nothing
//! is late, if no request waits for more than its stream says.
//!
//! If one waits for more, there may be no room for b at its stream's own deadline. But it cannot be
//! in time unless the older one goes. So that deadline does not keep the older one back once all
//! that the stream has left to do waits for older requests: at its worst the stream is late, which
//! it is for certain otherwise. Where the period of the one that waits is over, the stream must
//! have nothing left to do. Other streams' deadlines count all the same: who says too little pays
//! for it itself.
//!
//! What an *optional* request waits for, in its period, goes next where a request of its stream
//! could, and costs the stream's reservation what it takes. Admission counts B of them before each
//! request, at their real times. A stream whose requests wait for more has less time for them; but
//! what X would not have used up of its reservation it may have beyond that ([`super::charge`]).

use std::cmp::Ordering;

use headtime_disk::time::{Dur, Time};

use super::{Lent, Member, Sent, Subset, signed};

impl Subset {
    /// Whether a request of `what` may go because one of a stream, `waits`, waits for it. If so
    /// nothing else may. For a mandatory stream it may, whatever is reserved for optional streams,
    /// if no mandatory request can be late by it. `worst`: w of what is no stream's.
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
        // Whether the waiting one's own deadlines keep nothing back.
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
            // It is in the account of its own deadline, or of what is late, already.
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

    /// The same where an optional stream's waits, with its stream's reservation.
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
        // A stream's requests go one behind what each waits for, if it is counted so: then what can
        // go goes first.
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

    /// Older requests at the drive, or held for it, for which one of an optional stream waits in
    /// this period.
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

    /// What might go because a mandatory request waits for it, or was chosen under this name, does
    /// not: the other's time is counted as before.
    pub(super) fn take_back(&mut self, token: Option<u32>) {
        let Some(Lent { member, time, .. }) = self.lent.take_if(|lent| lent.token == token) else { return };
        if let Some(open) = self.streams.iter_mut().find(|s| s.number == member.stream) {
            open.periods.repay(member.period, time);
            self.changed();
        }
    }
}
