//! What a mandatory request waits for inherits its deadline.
//!
//! A stream says for how many older requests each of its own may have to wait (`blocked_by` of a [stream](super::super::stream::Stream)). With B of them, each of worst case b, a request counts w + B b until it
//! waits for none, and w from then on; so does admission. When an older one goes, its b counts as time that passes, and
//! is taken off what the waiting one counts: at its deadline and behind it the slack is what it was. At earlier deadlines
//! it must be b or more, as for a mandatory request of that deadline. So nothing is late, whatever is waited for, if it
//! is no more than was said.

use headtime_disk::time::{Dur, Time};

use super::{Lent, Member, Sent, Subset, signed};

impl Subset {
    /// Whether a request of `what` may go because one of a mandatory stream, `waits`, waits for it. If so nothing else
    /// may. It may, whatever is reserved for optional streams, if no mandatory request can be late by it. `worst`: w of
    /// what is no stream's.
    pub fn inherits(&mut self, waits: Member, what: Sent, worst: Dur, now: Time) -> bool {
        self.tick(now);
        self.take_back(None);
        let stream = match what {
            Sent::Stream(member) => Some((self.find(member.stream), member.period)),
            Sent::BestEffort | Sent::Fill => None,
        };
        if stream.is_some_and(|(at, period)| period > self.streams[at].periods.current()) {
            return false;
        }
        let worst = stream.map_or(worst, |(at, _)| self.streams[at].worst);
        let at = self.find(waits.stream);
        let time = self.streams[at].periods.lend(waits.period, worst);
        self.lent = Some(Lent { member: waits, time, token: None });
        self.changed();
        let slack = self.slack(now).mandatory;
        let may = match stream {
            None => worst <= self.rules.best_effort && slack >= signed(worst),
            // It counts at its own deadline, or as late, already.
            Some((at, period)) if self.streams[at].reservation.is_none() => {
                period < self.streams[at].periods.current() || self.before(at) >= signed(worst)
            }
            Some(_) => slack >= signed(worst),
        };
        if !may {
            self.take_back(None);
            return false;
        }
        self.active.members.clear();
        self.active.best_effort = stream.is_none();
        match what {
            Sent::Stream(member) => self.active.members.push(member),
            _ => self.decided_for = worst,
        }
        true
    }

    /// The least slack at deadlines before a mandatory stream's own.
    fn before(&self, stream: usize) -> i64 {
        self.order.iter().find(|at| at.stream == stream).map_or(i64::MAX, |at| at.before)
    }

    /// What might go because a mandatory request waits for it, or was chosen under this name, does not: the other's time
    /// is counted as before.
    pub(super) fn take_back(&mut self, token: Option<u32>) {
        let Some(Lent { member, time, .. }) = self.lent.take_if(|lent| lent.token == token) else { return };
        if let Some(open) = self.streams.iter_mut().find(|s| s.number == member.stream) {
            open.periods.repay(member.period, time);
            self.changed();
        }
    }
}
