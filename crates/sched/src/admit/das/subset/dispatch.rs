//! Dispatch and completion of commands.

use headtime_disk::{Dur, Time};

use super::super::at_drive::Done;
use super::super::periods::Cost;
use super::{Event, Gone, Sent, Subset};

impl Subset {
    /// Records the choice of a request; its command is dispatched at once or after gap filling
    /// ([`Subset::sends`]). Until then it is identified by `token`. `worst`: w of a request without
    /// a stream. Panics if it was not eligible by the last decision, or another request was chosen
    /// since.
    pub fn chosen(&mut self, token: u32, what: Sent, worst: Dur) {
        let (mut late, mut times, mut usual) = (false, (worst, worst), Dur::ZERO);
        match what {
            Sent::Fill => panic!("what fills a gap is not chosen"),
            Sent::BestEffort => {
                assert!(self.active.best_effort, "best effort was not in the subset");
                assert!(worst <= self.decided_for, "a best-effort request of {worst}, longer than was said");
                times.1 = self.rules.likely(worst);
            }
            Sent::Stream(member) => {
                assert!(self.active.members.contains(&member), "{member:?} was not in the subset");
                let at = self.find(member.stream);
                let open = &mut self.streams[at];
                usual = open.charges.as_mut().map_or(Dur::ZERO, |charges| charges.draw(open.periods.left()));
                late = open.periods.sent(member.period);
                times = (open.worst, open.likely);
            }
        }
        let lent = self.lent.as_mut().filter(|lent| lent.token.is_none());
        let waits = lent.map(|lent| {
            lent.token = Some(token);
            lent.member
        });
        // A request of its own stream's current period is charged to that period.
        let is_own =
            matches!(what, Sent::Stream(of) if of.period == self.streams[self.find(of.stream)].periods.current());
        let costs = waits.filter(|waits| !is_own && self.streams[self.find(waits.stream)].reservation.is_some());
        self.at_drive.hold(token, Gone { what, late, usual, in_gap: false, costs }, times);
        self.active.members.clear();
        self.active.best_effort = false;
        self.changed();
    }

    /// Records the dispatch of a chosen request's command. `worst`: its worst case, if a front has
    /// made it longer.
    pub fn sends(&mut self, token: u32, command: u64, worst: Dur, now: Time) {
        self.at_drive.sent_held(token, command, worst, now);
        self.lent = self.lent.filter(|lent| lent.token != Some(token));
    }

    /// Records that a chosen best-effort request is not dispatched. Panics if it is a stream's.
    pub fn withdrawn(&mut self, token: u32) {
        let (Gone { what, .. }, ..) = self.at_drive.withdraw(token);
        assert!(what == Sent::BestEffort, "{what:?} is a guarantee's");
        self.take_back(Some(token));
    }

    /// Records the dispatch of background work in a gap or idle time. The caller ensures that
    /// [`Subset::spare`] has time for it.
    pub fn fills(&mut self, command: u64, worst: Dur, now: Time) {
        // The gap of a best-effort request, which may be withdrawn while it is filled, costs no
        // reservation anything.
        let in_gap = self.at_drive.held().any(|held| matches!(held.what, Sent::Stream(_)));
        let gone = Gone { what: Sent::Fill, late: false, usual: Dur::ZERO, in_gap, costs: None };
        self.at_drive.sent(command, gone, (worst, self.rules.likely(worst)), now);
    }

    /// Records a request that is chosen and dispatched at once.
    pub fn sent(&mut self, command: u64, what: Sent, worst: Dur, now: Time) {
        const AT_ONCE: u32 = u32::MAX;
        match what {
            Sent::Fill => self.fills(command, worst, now),
            _ => {
                self.chosen(AT_ONCE, what, worst);
                self.sends(AT_ONCE, command, Dur::ZERO, now);
            }
        }
    }

    /// Records the completion of a command whose request was not tried: it is retried, and
    /// identified by `token` until then.
    pub fn again(&mut self, command: u64, token: u32, now: Time) {
        self.tick(now);
        let done = self.back(command, now);
        self.at_drive.hold(token, done.what, (done.worst, done.likely));
    }

    fn back(&mut self, command: u64, now: Time) -> Done<Gone> {
        let done = self.at_drive.done(command, self.rules.moves_on, now);
        if done.overdue {
            self.events.push(Event::Overdue { command, took: done.took, worst: done.worst });
        }
        done
    }

    /// Records a completion; returns the service time if it was a stream's.
    pub fn completed(&mut self, command: u64, now: Time) -> Option<Dur> {
        self.tick(now);
        let done = self.back(command, now);
        let Gone { what, late, usual, in_gap, costs } = done.what;
        if in_gap {
            self.gap_took += done.took;
            return None;
        }
        // The time of the gap would have been its own.
        let took = done.took + std::mem::take(&mut self.gap_took);
        if let Some(open) = costs.and_then(|of| self.streams.iter_mut().find(|s| s.number == of.stream)) {
            open.periods.costs(costs.map_or(0, |of| of.period), took);
            self.changed();
        }
        let Sent::Stream(member) = what else { return None };
        let cost = Cost { took, usual };
        if let Some(open) = self.streams.iter_mut().find(|s| s.number == member.stream)
            && !open.periods.done(member.period, late, cost, now)
        {
            self.events.push(Event::Late { command, member });
        }
        self.changed();
        Some(done.took)
    }
}
