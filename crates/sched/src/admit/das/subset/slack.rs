//! Available time: the demand of the streams by deadline, for [`super::super::sweep`].

use headtime_disk::{Dur, Time};

use super::super::calendar::Periodic;
use super::super::rates::{bounded, fine, fine_between, grown};
use super::super::sweep::{Point, Slack, points, sweep};
use super::{Claims, Open, Step, Subset, signed};

impl Subset {
    /// Returns the maximum use of a reservation of `left` by an optional stream with that number of
    /// `requests`: the last commands complete beyond it.
    pub(super) fn claim(&self, open: &Open, left: Dur, requests: u32) -> Dur {
        let more = u64::from(self.rules.outstanding - 1);
        let longest = self.longest(open);
        let overrun = longest.0 + more * (longest.0 - open.likely.0);
        Dur((left.0 + overrun).min(open.work(requests).0))
    }

    /// Returns the worst case of the longest command charged to a stream.
    fn longest(&self, open: &Open) -> Dur {
        if open.blocking > Dur::ZERO { open.worst.max(self.rules.blocker) } else { open.worst }
    }

    /// Returns whether one more request of a stream can complete in the current period: at its
    /// worst case if mandatory, within the reservation if optional. A request that arrives at the
    /// start of the period was counted before, and belongs to it even if it makes other streams
    /// late.
    pub(super) fn fits(&mut self, at: usize, now: Time) -> bool {
        if self.streams[at].periods.to_come(now) > 0 {
            return true;
        }
        match self.streams[at].reservation {
            None => self.slack_with_one_more(at, now) >= 0,
            Some(_) => self.is_reserved(at, now),
        }
    }

    /// Returns the slack of mandatory streams with one more request of one of them, at the end of
    /// its period and later. At earlier deadlines it changes nothing.
    fn slack_with_one_more(&mut self, at: usize, now: Time) -> i64 {
        self.put_down(|stream| u32::from(stream == at));
        self.stale = true;
        let (before, from_its_end) = self.points.split_at_mut(self.point_of[at]);
        let due_before = Dur(before.iter().map(|p| p.must).sum());
        sweep(from_its_end, self.at_drive.free_by(now), self.late + due_before).mandatory
    }

    /// Returns whether the rest of a period suffices for all reservations in it, with one more
    /// request of the optional stream `at`: a request that arrives at its end would find
    /// reservation left but no time.
    ///
    /// Mandatory requests count with their likely times. So the demand of a full period can exceed
    /// the period, although condition (3) admitted it by mean times. Then the same fraction of the
    /// demand must be left as of the period: a request that arrives at its start belongs to it in
    /// any case.
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
                Some(reserved) => (reserved.saturating_sub(periods.used()).min(open.work(left)), reserved),
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

    /// Returns the likely time left at each point and all later ones, in ns, if optional streams
    /// use exactly their reservations; the drive is likely to be free at `from`.
    ///
    /// Shortly before mandatory streams are released no request may start, if they leave less than
    /// its worst case free. This is computed with the longest worst case of any optional stream and
    /// the shortest likely time, which never overestimates the time left.
    pub(super) fn likely_spare(&self, from: Time) -> Vec<i64> {
        let optional = || self.streams.iter().filter(|s| s.reservation.is_some());
        let worst = optional().map(|s| signed(self.longest(s))).max().unwrap_or(0);
        let likely = optional().map(|s| signed(s.likely)).min().unwrap_or(0);
        let (mut needed, mut rate, mut last) = (fine(self.late), 0u64, Time::ZERO);
        let mut spare = vec![i64::MAX; self.points.len()];
        for here in self.by_end.chunk_by(|&a, &b| self.point_of[a] == self.point_of[b]) {
            let point = self.point_of[here[0]];
            let end = self.points[point].end;
            needed += grown(rate, end.since(last).0);
            last = end;
            for &at in here {
                let open = &self.streams[at];
                needed += fine(open.likely_work(open.periods.left(), open.periods.used()));
                rate = rate.saturating_add(open.likely_rate);
            }
            if here.iter().any(|&at| self.streams[at].reservation.is_some()) {
                spare[point] = bounded(fine_between(from, end) - needed);
            }
        }
        let (mut later, mut least) = (i64::MAX, i64::MAX);
        for (point, spare) in self.points.iter().zip(&mut spare).rev() {
            later = later.min(point.later);
            // No request may start later than `later - worst`; one started then is likely to be
            // done at `later - worst + likely`. The time from then until the end is lost.
            let early = signed(Dur(point.end.0)).saturating_sub(later.saturating_sub(worst).saturating_add(likely));
            least = least.min(spare.saturating_sub(early.max(0)));
            *spare = least;
        }
        spare
    }

    /// Returns the slack of mandatory streams if stream i had `more(i)` requests more.
    pub(super) fn slack_with(&mut self, more: impl Fn(usize) -> u32, now: Time) -> i64 {
        self.put_down(more);
        self.stale = true;
        self.swept(now).mandatory
    }

    pub(super) fn slack(&mut self, now: Time) -> Slack {
        if self.stale {
            self.put_down(|_| 0);
            self.stale = false;
        }
        self.swept(now)
    }

    fn swept(&mut self, now: Time) -> Slack {
        sweep(&mut self.points, self.at_drive.free_by(now), self.late)
    }

    /// Returns the least slack of mandatory streams from `from` on if the deadlines of one of them
    /// are ignored; at deadlines before `until`, if given.
    pub(super) fn slack_but_of(&self, stream: usize, until: Option<Time>, from: Time) -> i64 {
        let counts = |at: usize| at != stream;
        let mut points = self.points_of(counts);
        let late = self.put_down_at(&mut points, |_| 0, counts);
        let slack = sweep(&mut points, from, late);
        let until = until.and_then(|until| points.iter().find(|p| p.end >= until));
        until.map_or(slack.mandatory, |p| p.before)
    }

    /// Returns the points with slack in which the period ends of stuck streams do not count; `None`
    /// if no stream is stuck. All remaining requests of a stuck stream are blocked for longer than
    /// declared: delaying other requests cannot make it be in time.
    pub(super) fn points_but_of_stuck(&self, from: Time) -> Option<Vec<Point>> {
        let is_stuck = |open: &Open| open.reservation.is_none() && open.periods.is_stuck();
        self.streams.iter().any(is_stuck).then(|| {
            let mut points = self.points.clone();
            let late = self.put_down_at(&mut points, |_| 0, |at| !is_stuck(&self.streams[at]));
            sweep(&mut points, from, late);
            points
        })
    }

    /// Updates the demand at each point, with `more(i)` requests more of stream i.
    fn put_down(&mut self, more: impl Fn(usize) -> u32) {
        if self.points.is_empty() {
            let key = |&at: &usize| (self.streams[at].periods.end(), self.streams[at].periods.stream().period, at);
            self.by_end.clear();
            self.by_end.extend(0..self.streams.len());
            self.by_end.sort_unstable_by_key(key);
            self.points = self.points_of(|_| true);
            let of = |open: &Open| self.points.partition_point(|p| p.end < open.periods.end());
            self.point_of = self.streams.iter().map(of).collect();
        }
        let mut points = std::mem::take(&mut self.points);
        self.late = self.put_down_at(&mut points, more, |_| true);
        self.points = points;
    }

    /// Returns the points at the ends of all streams' periods; `counts`: whether a mandatory
    /// stream's deadlines count.
    fn points_of(&self, counts: impl Fn(usize) -> bool) -> Vec<Point> {
        let times = |&at: &usize| (self.streams[at].periods.end(), self.streams[at].periods.stream().period);
        let is_mandatory = |at: &&usize| self.streams[**at].reservation.is_none();
        let mandatory: Vec<usize> = self.by_end.iter().filter(is_mandatory).copied().collect();
        let together = mandatory.chunk_by(|a, b| times(a) == times(b)).map(|of| {
            let (end, period) = times(&of[0]);
            let work = of.iter().map(|&at| self.streams[at].whole().0).sum();
            Periodic { end, period, work, counts: of.iter().any(|&at| counts(at)) }
        });
        points(self.by_end.iter().map(|at| times(at).0), &together.collect::<Vec<_>>())
    }

    /// Updates the demand at each of `points`; returns that of late mandatory requests.
    fn put_down_at(&self, points: &mut [Point], more: impl Fn(usize) -> u32, counts: impl Fn(usize) -> bool) -> Dur {
        let mut late = 0;
        points.iter_mut().for_each(|p| (p.must, p.claims, p.counts) = (0, 0, false));
        for (at, open) in self.streams.iter().enumerate() {
            let point = &mut points[self.point_of[at]];
            let (more, left) = (more(at), open.periods.left());
            match open.reservation {
                None => {
                    late += u64::from(open.periods.late()) * open.worst.0;
                    point.must += open.due(more).0;
                    point.counts |= left + more > 0 && counts(at);
                }
                Some(reservation) => point.claims += self.claimed(open, reservation, left + more).0,
            }
        }
        Dur(late)
    }

    /// Returns the time beyond the reservations of optional streams, from `from` on.
    ///
    /// At each end of an optional stream's period, the deduction is the maximum use by streams with
    /// this end or an earlier one, and the maximum demand of mandatory streams before it, which may
    /// be served first whenever it is due. Demand of the period after the current one counts in
    /// full at its end, and from there on grows linearly, as in [`sweep`].
    pub(super) fn claims(&mut self, from: Time, likely_free: Time, best_effort: Dur) -> Claims {
        assert!(!self.stale, "claims are laid over what is due, which was not put down");
        let likely_over = |worst: Dur| likely_free + self.rules.likely(worst);
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
        let (now, next) = (i64::MAX, i64::MAX);
        let mut claims = Claims { now, next, next_for_streams: next, next_for_best_effort: next };
        let waits = self.points.iter().map(|p| fine(Dur(p.must))).sum::<i128>();
        let (mut must, mut rate, mut last) = (fine(self.late) + waits, 0u64, Time::ZERO);
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
                        let begin = open.periods.end();
                        begins = Some(begins.map_or(begin, |b: Time| b.min(begin)));
                    }
                    (Step::Ends, None) => {}
                }
            }
            let left = bounded(fine_between(from, end) - must);
            if claimed {
                claims.now = claims.now.min(left);
            }
            if let Some(begins) = begins {
                let next = left.max(signed(begins.saturating_since(from)));
                claims.next = claims.next.min(next);
                if likely_over(self.rules.crossing) > begins {
                    claims.next_for_streams = claims.next_for_streams.min(next);
                }
                if likely_over(best_effort) > begins {
                    claims.next_for_best_effort = claims.next_for_best_effort.min(next);
                }
            }
            // The demand that follows is due later.
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

    /// Returns the maximum use of its reservation by an optional stream for the rest of the current
    /// period.
    fn claimed(&self, open: &Open, reservation: Dur, left: u32) -> Dur {
        let reserved = reservation.saturating_sub(open.periods.used());
        if left > 0 && reserved > Dur::ZERO { self.claim(open, reserved, left) } else { Dur::ZERO }
    }
}
