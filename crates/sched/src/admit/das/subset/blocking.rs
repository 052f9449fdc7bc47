//! What a mandatory request waits for inherits its deadline.
//!
//! A stream says for how many older requests each of its own may have to wait (`blocked_by` of a
//! [stream](super::super::stream::Stream)). With B of them, each of worst case b, B b is a request's *blocking time*.
//! It counts as the request's until that waits for nothing; so does admission count it. When an older request goes, b
//! is time that passes, and the blocking time of the waiting one is less by b: at its deadline and at later ones the
//! slack is what it was. At earlier deadlines it must be b or more, as for a mandatory request of that deadline. So
//! nothing is late, if no request waits for more than its stream says.
//!
//! If one waits for more, there may be no room for b at its stream's own deadline. But it cannot be in time unless the
//! older one goes. So that deadline does not keep the older one back once all that the stream has left to do waits for
//! older requests: at its worst the stream is late, which it is for certain otherwise. Where the period of the one that
//! waits is over, the stream must have nothing left to do. Other streams' deadlines count all the same: who says too
//! little pays for it itself.

use std::cmp::Ordering;

use headtime_disk::time::{Dur, Time};

use super::{Lent, Member, Sent, Subset, signed};

impl Subset {
    /// Whether a request of `what` may go because one of a mandatory stream, `waits`, waits for it. If so nothing else
    /// may. It may, whatever is reserved for optional streams, if no mandatory request can be late by it. `worst`: w of
    /// what is no stream's.
    pub fn inherits(&mut self, waits: Member, what: Sent, worst: Dur, now: Time) -> bool {
        self.tick(now);
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
        self.active.members.clear();
        self.active.best_effort = of.is_none();
        match what {
            Sent::Stream(member) => self.active.members.push(member),
            _ => self.decided_for = worst,
        }
        true
    }

    /// What might go because a mandatory request waits for it, or was chosen under this name, does not: the other's
    /// time is counted as before.
    pub(super) fn take_back(&mut self, token: Option<u32>) {
        let Some(Lent { member, time, .. }) = self.lent.take_if(|lent| lent.token == token) else { return };
        if let Some(open) = self.streams.iter_mut().find(|s| s.number == member.stream) {
            open.periods.repay(member.period, time);
            self.changed();
        }
    }
}
