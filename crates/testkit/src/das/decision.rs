//! Eligibility: each query walks all requests ever made.

use std::cmp::Ordering;

use headtime_disk::{Dur, Time};
use headtime_sched::streams::Exhausted;

use super::{AS_ASKED, Asked, Decision, Is, Open, Walk};

/// A stream, the end of its period, and the time that it can use by then.
type Claim = (usize, Time, Dur);

impl Walk {
    /// Returns the eligible requests; the longest best-effort request is `best_effort`.
    pub fn decide(&mut self, best_effort: Dur, now: Time) -> Decision {
        self.lending.take_back();
        self.decision(best_effort, now)
    }

    fn decision(&self, best_effort: Dur, now: Time) -> Decision {
        let slacks = self.slacks(None, AS_ASKED, now);
        let everywhere = slacks.iter().map(|s| s.1).min();
        let claims = self.claims(now);
        let claimed = |d: Time| claims.iter().filter(|c| c.1 <= d).map(|c| i128::from(c.2.0)).sum::<i128>();
        let from = self.at_drive.free(now);
        let left_at = |d: Time| self.left_at(&claims, d, now);
        let claiming = || claims.iter().filter(|c| c.2 > Dur::ZERO);
        let of_mandatory = slacks.iter().map(|&(d, slack)| slack - claimed(d));
        let all = of_mandatory.chain(claiming().map(|c| left_at(c.1))).min();
        // A command that may extend into the next period of a stream must leave that period's
        // claim.
        let next = |longest: Dur| {
            let likely_over = self.at_drive.likely_free(now) + self.rules.likely(longest);
            let next = claims.iter().filter(|c| c.1 < likely_over).map(|&(s, end, _)| {
                left_at(end + self.streams[s].stream.period).max(i128::from(end.saturating_since(from).0))
            });
            next.min()
        };
        let may_cross = |w: Dur, longest: Dur| {
            let fits = |slack: Option<i128>| slack.is_none_or(|slack| slack >= i128::from(w.0));
            let room = self.at_drive.all() < self.crossing as usize && w <= self.rules.crossing;
            fits(all) && (room || fits(next(longest)))
        };
        // Best effort may cross, or a mandatory stream without other work harms no other stream.
        let excused = |s: usize| {
            let w = self.streams[s].worst;
            let own = self.streams[s].reservation.is_none() && self.left(s, now) == 0;
            let others = || self.slacks(Some(s), AS_ASKED, now);
            may_cross(w, self.rules.crossing) || own && others().iter().all(|(_, slack)| *slack >= i128::from(w.0))
        };
        let before = |end: Time| self.left_before(&claims, end, now);
        let mut chosen = Vec::new();
        let mut first = false;
        let may_go = |r: &Asked| matches!(r.is, Is::Waiting | Is::Excused);
        for (number, r) in self.requests.iter().enumerate().filter(|r| may_go(r.1)) {
            let open = &self.streams[r.stream];
            let w = i128::from(open.worst.0);
            let may = match (open.reservation, Some(r.period).cmp(&self.current(r.stream, now))) {
                (_, Ordering::Greater) => false,
                (reservation, Ordering::Less) => match self.oldest_late(r.stream, now) {
                    Some((period, counts)) => {
                        let owed = counts && reservation.is_none();
                        r.period == period && (owed || excused(r.stream))
                    }
                    None => false,
                },
                (None, _) => {
                    let own = self.end(r.stream, now);
                    let any = |is: Is| self.count(r.stream, |o| o.period == r.period && o.is == is) > 0;
                    let earlier = slacks.iter().filter(|(d, _)| *d < own && !self.only_of_stuck(*d, now));
                    let in_time = earlier.into_iter().all(|(_, slack)| *slack >= w);
                    any(Is::Waiting) && in_time || any(Is::Excused) && excused(r.stream)
                }
                (Some(reservation), _) => {
                    let used = self.used(r.stream, now);
                    let there = self.count(r.stream, |o| o.period == r.period && o.is == Is::AtDrive);
                    let older = self.at_drive.older_of((r.stream, r.period)) * self.likely_older(open).0;
                    let begun = Dur(open.likely.0 * there + older);
                    let likely = self.at_drive.likely_free(now) + open.likely <= self.end(r.stream, now);
                    let leaves = before(self.end(r.stream, now)).is_none_or(|left| left >= w);
                    let in_turn = likely && leaves && everywhere.is_none_or(|slack| slack >= w);
                    let used_up = used >= reservation;
                    let usual = self.usual(r.stream, now);
                    let has_more = if used_up { usual } else { used } + begun < reservation;
                    if in_turn
                        && has_more
                        && (!used_up || self.rules.compensates && self.leaves_likely(r.stream, Dur::ZERO, now))
                    {
                        first |= used_up;
                        true
                    } else {
                        let may = used_up
                            && self.rules.exhausted != Exhausted::Skip
                            && may_cross(open.worst, self.rules.crossing);
                        first |= may && self.rules.exhausted == Exhausted::BeforeBestEffort;
                        may
                    }
                }
            };
            if may {
                chosen.push(number);
            }
        }
        (chosen, !first && may_cross(best_effort, best_effort))
    }

    /// Returns whether only mandatory periods end here whose requests all wait for older ones,
    /// without blocking time left.
    fn only_of_stuck(&self, d: Time, now: Time) -> bool {
        let ends = |(s, o): (usize, &Open)| {
            let end = self.end(s, now);
            let later = d > end && d.since(end).0.is_multiple_of(o.stream.period.0);
            (later || d == end && self.left(s, now) > 0).then_some((s, later))
        };
        let is_stuck = |s: usize| {
            let current = self.current(s, now);
            self.count(s, |r| Some(r.period) == current && r.is == Is::Waiting) == 0
                && self.blocking(s, current, 0) == Dur::ZERO
        };
        self.mandatory().filter_map(ends).all(|(s, later)| !later && is_stuck(s))
    }

    /// The remaining reservations that optional streams can use, with their deadlines.
    fn claims(&self, now: Time) -> Vec<Claim> {
        let claim = |(s, o): (usize, &Open)| {
            let left = o.reservation.unwrap_or_default().saturating_sub(self.used(s, now));
            let n = if left > Dur::ZERO { self.left(s, now) } else { 0 };
            (s, self.end(s, now), if n > 0 { self.claim(s, left, n) } else { Dur::ZERO })
        };
        self.optional().map(claim).collect()
    }

    /// The time left at `d` after the drive is free, less all reserved work: of optional streams
    /// that due by then, of mandatory ones all possible requests, whenever due.
    fn left_at(&self, claims: &[Claim], d: Time, now: Time) -> i128 {
        let mandatory = self.mandatory().map(|(s, o)| {
            let each = self.whole(s);
            let there = self.due(s, 0, now) + i128::from(self.late(s, now) * o.worst.0);
            let end = self.end(s, now);
            there + if d > end { each + each * i128::from(d.since(end).0) / i128::from(o.stream.period.0) } else { 0 }
        });
        let optional = claims.iter().map(|&(s, end, claim)| {
            let o = &self.streams[s];
            let (all, t) = (u64::from(o.stream.requests), o.stream.period);
            let each = i128::from(self.claim(s, o.reservation.unwrap_or_default(), all).0);
            let more = if d >= end + t { each + each * i128::from(d.since(end + t).0) / i128::from(t.0) } else { 0 };
            if d >= end { i128::from(claim.0) + more } else { 0 }
        });
        i128::from(d.0) - i128::from(self.at_drive.free(now).0) - mandatory.sum::<i128>() - optional.sum::<i128>()
    }

    /// The least time left at any claim's end before `end`.
    fn left_before(&self, claims: &[Claim], end: Time, now: Time) -> Option<i128> {
        let before = claims.iter().filter(|c| c.2 > Dur::ZERO && c.1 < end);
        before.map(|c| self.left_at(claims, c.1, now)).min()
    }

    /// Returns whether a command that a request of an optional stream waits for is eligible,
    /// charged to its reservation.
    pub(super) fn inherits_reservation(&self, (s, period): (usize, u64), times: (Dur, Dur), now: Time) -> bool {
        let (worst, likely) = times;
        let open = &self.streams[s];
        let there = self.count(s, |r| r.period == period && r.is == Is::AtDrive);
        let reservation = open.reservation.unwrap_or_default();
        let used_up = self.used(s, now) >= reservation;
        let used = if used_up { self.usual(s, now) } else { self.used(s, now) };
        // If a stream declares `blocked-by`, its ready requests go first, and older ones one at a
        // time.
        let ready = self.count(s, |r| Some(r.period) == self.current(s, now) && r.is == Is::Waiting);
        let first = ready > 0 || self.at_drive.older_of((s, period)) > 0;
        let in_turn = open.stream.blocked_by == 0 || !first;
        let more = used + Dur(open.likely.0 * there) < reservation && in_turn;
        let has_more = more && (!used_up || self.rules.compensates && self.leaves_likely(s, likely, now));
        let in_time = self.at_drive.likely_free(now) + likely + open.likely <= self.end(s, now);
        let enough = |left: i128| left >= i128::from(worst.0);
        let others = self.left_before(&self.claims(now), self.end(s, now), now).is_none_or(enough);
        let mandatory = self.slacks(None, AS_ASKED, now).iter().all(|(_, slack)| enough(*slack));
        Some(period) == self.current(s, now) && has_more && in_time && others && mandatory
    }

    /// Returns whether one more request of an optional stream with an exhausted reservation leaves
    /// all optional streams whose periods end with its own or later their reservations, with likely
    /// times.
    fn leaves_likely(&self, stream: usize, older: Dur, now: Time) -> bool {
        let free = i128::from(self.at_drive.likely_free(now).0);
        let own = &self.streams[stream];
        let longest = i128::from(self.optional().map(|(_, o)| self.longest(o).0).max().unwrap_or(0));
        let shortest = i128::from(self.optional().map(|(_, o)| o.likely.0).min().unwrap_or(0));
        let late: u64 = self.mandatory().map(|(s, o)| self.late(s, now) * o.worst.0).sum();
        let ends = self.optional().map(|(s, _)| self.end(s, now)).filter(|end| *end >= self.end(stream, now));
        ends.into_iter().all(|end| {
            let needs = |(s, o): (usize, &Open)| {
                // No more than the reservation, but the last request is completed.
                let older = self.likely_older(o).0;
                let each = o.likely.0 + older * u64::from(o.stream.blocked_by);
                let work = |requests: u64, reserved: Option<u64>| match reserved {
                    Some(0) => 0,
                    Some(reserved) => (requests * each).min(reserved + o.likely.0.max(older)),
                    None => requests * o.likely.0,
                };
                let reserved = o.reservation.map(|r| r.saturating_sub(self.used(s, now)).0);
                let left = work(self.left(s, now), reserved);
                let all = work(u64::from(o.stream.requests), o.reservation.map(|r| r.0));
                let since = i128::from(end.0) - i128::from(self.end(s, now).0);
                let again = i128::from(all) * since / i128::from(o.stream.period.0);
                if since < 0 { 0 } else { i128::from(left) + again }
            };
            let needed: i128 = self.streams.iter().enumerate().map(needs).sum();
            // After this no command of the longest duration may begin.
            let begun_by =
                self.to_come(now).into_iter().filter(|(d, _)| *d >= end).map(|(_, left)| left - longest).min();
            let until = begun_by.map_or(i128::from(end.0), |by| i128::from(end.0).min(by + shortest));
            needed + i128::from(older.0 + own.likely.0 + late) <= until - free
        })
    }

    /// Likely time of an older request, for a stream that declares `blocked-by`.
    fn likely_older(&self, open: &Open) -> Dur {
        if open.stream.blocked_by > 0 { self.rules.likely(self.rules.blocker) } else { Dur::ZERO }
    }

    /// The oldest earlier period with an eligible request, and whether it is counted: counted ones
    /// come first.
    fn oldest_late(&self, s: usize, now: Time) -> Option<(u64, bool)> {
        let current = self.current(s, now);
        let oldest = |is: Is| {
            let late = |o: &&Asked| o.stream == s && o.is == is && Some(o.period) < current;
            self.requests.iter().filter(late).map(|o| o.period).min()
        };
        let excused = || oldest(Is::Excused).map(|period| (period, false));
        oldest(Is::Waiting).map(|period| (period, true)).or_else(excused)
    }
}
