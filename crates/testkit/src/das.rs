//! A reference model of the dynamic active subset: as in figure 2 of Reuther and Pohlack (2003),
//! all requests ever made are in a list, and each query walks the whole list.
//! [`headtime_sched::internals::subset::Subset`] must decide the same.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use headtime_disk::{Dur, Time};
use headtime_sched::internals::charge;
use headtime_sched::internals::subset::Rules;
use headtime_sched::streams::{Distribution, Stream};

mod at_drive;
mod belongs;
mod decision;
mod lending;

use at_drive::AtDrive;
use lending::Lending;

/// No stream has additional requests.
const AS_ASKED: &dyn Fn(usize) -> u64 = &|_| 0;

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Blocked,
    Waiting,
    /// It waited for an older one until its period had no time left for it.
    Excused,
    AtDrive,
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    stream: usize,
    period: u64,
    is: Is,
    took: Dur,
    /// The charge for a request like those of X.
    usual: Dur,
    done: Time,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    stream: Stream,
    worst: Dur,
    likely: Dur,
    /// Worst cases of the older requests that one may have to wait for.
    blocking: Dur,
    reservation: Option<Dur>,
    begins: Time,
}

/// Eligibility: numbers of eligible requests, in order of arrival, and whether best effort is
/// eligible.
pub type Decision = (Vec<usize>, bool);

/// All requests ever made.
#[derive(Clone, Debug)]
pub struct Walk {
    rules: Rules,
    streams: Vec<Open>,
    requests: Vec<Asked>,
    at_drive: AtDrive,
    /// For each stream, the charges for requests like those of X, for all numbers of candidates
    /// ([`charge::times`]), and the number of completed requests.
    charges: Vec<(Vec<Dur>, u64)>,
    /// Number of commands at the drive at a period's start for which periods have room.
    pub crossing: u32,
    lending: Lending,
    /// Time of best-effort commands that a stream's request of a period waited for.
    cost: Vec<(usize, u64, Dur)>,
}

impl Walk {
    /// Returns an empty model.
    pub fn new(rules: Rules) -> Walk {
        Walk {
            rules,
            streams: Vec::new(),
            requests: Vec::new(),
            at_drive: AtDrive::default(),
            charges: Vec::new(),
            crossing: 0,
            lending: Lending::default(),
            cost: Vec::new(),
        }
    }

    /// Opens a stream, known by its index, with its requests' worst case and likely time, and their
    /// X.
    pub fn open(
        &mut self,
        stream: Stream,
        (worst, likely, x): (Dur, Dur, &Distribution),
        reservation: Option<Dur>,
        begins: Time,
    ) {
        self.lending.take_back();
        let blocking = Dur(self.rules.blocker.0 * u64::from(stream.blocked_by));
        self.streams.push(Open { stream, worst, likely, blocking, reservation, begins });
        self.charges.push((charge::times(x), 0));
    }

    /// Gives a reservation to a stream that was served as mandatory.
    pub fn set_reservation(&mut self, s: usize, reservation: Dur) {
        self.lending.take_back();
        self.streams[s].reservation = Some(reservation);
    }

    /// Serves a stream with a reservation as mandatory, if none of its requests waits for an older
    /// one and none can become late by it. Returns whether it does.
    pub fn serve_as_mandatory(&mut self, s: usize, now: Time) -> bool {
        self.lending.take_back();
        let given = |of: usize| self.count(of, |r| Some(r.period) == self.current(of, now));
        let begins_now =
            |of: usize| self.current(of, now).is_some_and(|p| p * self.streams[of].stream.period.0 == now.0);
        let part = |of: usize| self.whole(of) as f64 / self.streams[of].stream.period.0 as f64;
        let parts: f64 = self.mandatory().map(|(of, _)| part(of)).sum();
        let current = self.current(s, now);
        let blocked = self.count(s, |r| r.is == Is::Blocked && Some(r.period) >= current) > 0;
        if blocked && self.streams[s].blocking == Dur::ZERO || parts + part(s) > 1.0 {
            return false;
        }
        let rest = |of: usize| u64::from(self.streams[of].stream.requests) - given(of);
        let rests: Vec<u64> = (0..self.streams.len()).map(|of| if begins_now(of) { rest(of) } else { 0 }).collect();
        let before = self.clone();
        self.streams[s].reservation = None;
        let late = |r: &&mut Asked| r.stream == s && r.is == Is::Waiting && Some(r.period) < current;
        self.requests.iter_mut().filter(late).for_each(|r| r.is = Is::Excused);
        let to_come = |of: usize| if self.streams[of].reservation.is_none() { rests[of] } else { 0 };
        let fits = self.slacks(None, &to_come, now).iter().all(|(_, slack)| *slack >= 0);
        if !fits {
            *self = before;
        }
        fits
    }

    /// Remaining worst-case time of older requests that a mandatory stream's requests of `period`,
    /// and `more`, may have to wait for.
    fn blocking(&self, s: usize, period: Option<u64>, more: u64) -> Dur {
        let waits = self.count(s, |r| Some(r.period) == period && r.is == Is::Blocked) + more;
        let lent = period.map_or(Dur::ZERO, |p| self.lending.of((s, p)));
        Dur(waits * self.streams[s].blocking.0).saturating_sub(lent)
    }

    /// Worst-case time of a mandatory stream's requests of the current period, and `more`.
    fn due(&self, s: usize, more: u64, now: Time) -> i128 {
        let work = (self.left(s, now) + more) * self.streams[s].worst.0;
        i128::from(work + self.blocking(s, self.current(s, now), more).0)
    }

    /// Worst-case time of all requests of a mandatory stream's period.
    fn whole(&self, s: usize) -> i128 {
        let open = &self.streams[s];
        i128::from(open.stream.requests) * i128::from(open.worst.0 + open.blocking.0)
    }

    /// Returns whether a request (`what`), or best effort of `worst`, is eligible because the
    /// request `waits` waits for it.
    pub fn inherits(&mut self, waits: usize, what: Option<usize>, worst: Dur, now: Time) -> bool {
        self.lending.take_back();
        let Asked { stream, period, .. } = self.requests[waits];
        let what = what.map(|r| (self.requests[r].stream, self.requests[r].period));
        let times = what.map(|(s, _)| (self.streams[s].worst, self.streams[s].likely));
        let (worst, likely) = times.unwrap_or((worst, self.rules.likely(worst)));
        if self.streams[stream].reservation.is_some() {
            let longer = what.is_none() && worst > self.rules.best_effort;
            let may = !longer && self.inherits_reservation((stream, period), (worst, likely), now);
            if may {
                self.lending.lend((stream, period), Dur::ZERO);
            }
            return may;
        }
        let counts = Some(period) >= self.current(stream, now);
        let time = if counts { worst.min(self.blocking(stream, Some(period), 0)) } else { Dur::ZERO };
        self.lending.lend((stream, period), time);
        // Deadlines of the waiting request's stream have no effect if all of its work waits for
        // older requests.
        let spared = match Some(period).cmp(&self.current(stream, now)) {
            Ordering::Less => self.left(stream, now) == 0,
            Ordering::Equal => self.count(stream, |r| r.period == period && r.is == Is::Waiting) == 0,
            Ordering::Greater => false,
        };
        let slacks = self.slacks(spared.then_some(stream), AS_ASKED, now);
        let enough = |slack: &(Time, i128)| slack.1 >= i128::from(worst.0);
        let waiting = |s, p| self.count(s, |r| r.period == p && r.is == Is::Waiting) > 0;
        let may = match what {
            // A late request is counted with late work, and one of the current period by its
            // deadline.
            Some((s, p))
                if self.streams[s].reservation.is_none() && Some(p) < self.current(s, now) && waiting(s, p) =>
            {
                true
            }
            Some((s, p))
                if self.streams[s].reservation.is_none() && Some(p) == self.current(s, now) && waiting(s, p) =>
            {
                let own = self.end(s, now);
                slacks.iter().filter(|(d, _)| *d < own).all(enough)
            }
            Some(_) => slacks.iter().all(enough),
            None => worst <= self.rules.best_effort && slacks.iter().all(enough),
        };
        if !may {
            self.lending.take_back();
        }
        may
    }

    fn current(&self, s: usize, now: Time) -> Option<u64> {
        (now >= self.streams[s].begins).then(|| now.0 / self.streams[s].stream.period.0)
    }

    /// The end of the current period, or the start of the first.
    fn end(&self, s: usize, now: Time) -> Time {
        match self.current(s, now) {
            Some(p) => Time((p + 1) * self.streams[s].stream.period.0),
            None => self.streams[s].begins,
        }
    }

    fn count(&self, s: usize, matches: impl Fn(&Asked) -> bool) -> u64 {
        self.requests.iter().filter(|r| r.stream == s && matches(r)).count() as u64
    }

    /// Requests of the current period that were not sent.
    fn left(&self, s: usize, now: Time) -> u64 {
        let current = self.current(s, now);
        let open = &self.streams[s];
        let waits = open.reservation.is_none() || open.blocking > Dur::ZERO;
        let counts = |is: Is| is == Is::Waiting || is == Is::Blocked && waits;
        self.count(s, |r| Some(r.period) == current && counts(r.is))
    }

    fn late(&self, s: usize, now: Time) -> u64 {
        let current = self.current(s, now);
        self.count(s, |r| Some(r.period) < current && r.is == Is::Waiting)
    }

    /// Time that the current period's requests have used in it.
    fn used(&self, s: usize, now: Time) -> Dur {
        self.cost_of(s, now, |r| r.took) + self.paid(s, now)
    }

    /// The charges for as many requests like those of X.
    fn usual(&self, s: usize, now: Time) -> Dur {
        let older = if self.streams[s].stream.blocked_by > 0 { self.paid(s, now) } else { Dur::ZERO };
        self.cost_of(s, now, |r| r.usual) + older
    }

    /// Its charges for older requests.
    fn paid(&self, s: usize, now: Time) -> Dur {
        let of_it = self.cost.iter().filter(|c| c.0 == s && Some(c.1) == self.current(s, now));
        of_it.map(|c| c.2).sum()
    }

    fn cost_of(&self, s: usize, now: Time, of: impl Fn(&Asked) -> Dur) -> Dur {
        let current = self.current(s, now);
        let in_it = |r: &Asked| r.done < self.end(s, now) && r.done.0 >= r.period * self.streams[s].stream.period.0;
        let had = |r: &&Asked| r.stream == s && Some(r.period) == current && r.is == Is::Done && in_it(r);
        self.requests.iter().filter(had).map(of).sum()
    }

    /// The longest command charged to a stream.
    fn longest(&self, open: &Open) -> Dur {
        if open.blocking > Dur::ZERO { open.worst.max(self.rules.blocker) } else { open.worst }
    }

    fn claim(&self, s: usize, left: Dur, requests: u64) -> Dur {
        let Open { worst, likely, blocking, .. } = self.streams[s];
        let longest = self.longest(&self.streams[s]);
        let overrun = longest.0 + u64::from(self.rules.outstanding - 1) * (longest.0 - likely.0);
        Dur((left.0 + overrun).min(requests * (worst + blocking).0))
    }

    fn optional(&self) -> impl Iterator<Item = (usize, &Open)> {
        self.streams.iter().enumerate().filter(|s| s.1.reservation.is_some())
    }

    fn mandatory(&self) -> impl Iterator<Item = (usize, &Open)> {
        self.streams.iter().enumerate().filter(|s| s.1.reservation.is_none())
    }

    /// Time that mandatory requests of one stream need by `d`: pending ones, and those of later
    /// periods that end by then.
    fn needs(&self, s: usize, d: Time, more: u64, now: Time) -> i128 {
        let end = self.end(s, now);
        if d < end {
            return 0;
        }
        let later = d.since(end).0 / self.streams[s].stream.period.0;
        assert!(later <= 256, "period {later} of one stream: beyond these the subset takes a line for steps");
        self.due(s, more, now) + self.whole(s) * i128::from(later)
    }

    /// All deadlines of mandatory streams except the stream `but`, with the slack of pending
    /// mandatory requests, each stream with `more` of them; and after the last examined deadline,
    /// the slack if all demand grew linearly up to there.
    fn slacks(&self, but: Option<usize>, more: &dyn Fn(usize) -> u64, now: Time) -> Vec<(Time, i128)> {
        let late: i128 = self.mandatory().map(|(s, o)| i128::from(self.late(s, now)) * i128::from(o.worst.0)).sum();
        let free = i128::from(self.at_drive.free(now).0) + late;
        let counted = || self.mandatory().filter(|(s, _)| Some(*s) != but).map(|(s, o)| (s, o.stream.period));
        let ends = self.mandatory().map(|(s, o)| self.end(s, now) + o.stream.period);
        let Some(last) = ends.max().filter(|_| counted().count() > 0) else { return Vec::new() };
        let mut deadlines = Vec::new();
        for (s, period) in counted() {
            let mut d = self.end(s, now);
            let first = if self.left(s, now) + more(s) > 0 { Some(d) } else { None };
            deadlines.extend(first);
            while d + period <= last {
                d += period;
                deadlines.push(d);
            }
        }
        let needed = |d: Time| self.mandatory().map(|(s, _)| self.needs(s, d, more(s), now)).sum::<i128>();
        let mut slacks: Vec<_> = deadlines.into_iter().map(|d| (d, i128::from(d.0) - free - needed(d))).collect();
        // Streams with coinciding periods grow as one.
        let mut all: BTreeMap<(Time, Dur), i128> = BTreeMap::new();
        let due: i128 = self.mandatory().map(|(s, _)| self.due(s, more(s), now)).sum();
        for (s, o) in self.mandatory() {
            *all.entry((self.end(s, now), o.stream.period)).or_default() += self.whole(s);
        }
        let grown = |((end, period), work): (&(Time, Dur), &i128)| {
            work * i128::from(last.saturating_since(*end).0) / i128::from(period.0)
        };
        slacks.push((last, i128::from(last.0) - free - due - all.iter().map(grown).sum::<i128>()));
        slacks
    }

    /// Deadlines of future periods, and the last examined one, with the time from the beginning of
    /// the run until then that those periods leave.
    fn to_come(&self, now: Time) -> Vec<(Time, i128)> {
        let ends = self.mandatory().map(|(s, o)| self.end(s, now) + o.stream.period);
        let Some(last) = ends.max() else { return Vec::new() };
        let due = |d: Time| {
            let by_then = self.mandatory().filter(|(s, _)| d >= self.end(*s, now));
            by_then.map(|(s, _)| self.due(s, 0, now)).sum::<i128>()
        };
        let free = |now: Time| {
            let late: i128 = self.mandatory().map(|(s, o)| i128::from(self.late(s, now)) * i128::from(o.worst.0)).sum();
            i128::from(self.at_drive.free(now).0) + late
        };
        let is_step = |(d, _): &(Time, i128)| {
            *d == last
                || self.mandatory().any(|(s, o)| {
                    let end = self.end(s, now);
                    *d > end && d.since(end).0.is_multiple_of(o.stream.period.0)
                })
        };
        let slacks = self.slacks(None, AS_ASKED, now).into_iter().filter(is_step);
        slacks.map(|(d, slack)| (d, slack + free(now) + due(d))).collect()
    }

    /// The held command is withdrawn.
    pub fn withdraw(&mut self) {
        self.at_drive.withdraw();
        self.lending.withdrawn();
    }

    /// A request no longer waits for older ones.
    pub fn ready(&mut self, request: usize, now: Time) {
        self.lending.take_back();
        let Asked { stream, period, .. } = self.requests[request];
        self.lending.end((stream, period), self.streams[stream].blocking);
        let current = self.current(stream, now);
        let counts = Some(period) >= current;
        self.requests[request].is = if counts { Is::Waiting } else { Is::Excused };
    }

    /// A command is dispatched, for a request or for none.
    pub fn sent(&mut self, number: u64, request: Option<usize>, worst: Dur, now: Time) {
        let (times, costs) = self.goes(request, worst, now);
        self.at_drive.send(number, (request, costs), times, now);
    }

    /// A request, or best effort, is chosen; its command is dispatched later.
    pub fn hold(&mut self, request: Option<usize>, worst: Dur, now: Time) {
        let (times, costs) = self.goes(request, worst, now);
        self.at_drive.hold((request, costs), times, now);
    }

    /// The held command is dispatched.
    pub fn send_held(&mut self, number: u64, now: Time) {
        self.at_drive.send_held(number, now);
        self.lending.sent();
    }

    /// A request, or a command of this worst case, is chosen. Returns its worst-case and likely
    /// times, and the stream and period whose reservation is charged because a request of it waits.
    fn goes(&mut self, request: Option<usize>, worst: Dur, now: Time) -> ((Dur, Dur), Option<(usize, u64)>) {
        let waits = self.lending.goes();
        let own = request.map(|r| (self.requests[r].stream, self.requests[r].period));
        let is_current = own.is_some_and(|(s, period)| Some(period) == self.current(s, now));
        let costs = waits.filter(|waits| !is_current && self.streams[waits.0].reservation.is_some());
        let Some(r) = request else { return ((worst, self.rules.likely(worst)), costs) };
        let open = self.streams[self.requests[r].stream];
        // Counted requests go before excused ones.
        let Asked { stream, period, is, .. } = self.requests[r];
        let other = self.requests.iter_mut().find(|o| (o.stream, o.period, o.is) == (stream, period, Is::Waiting));
        if let Some(other) = other.filter(|_| is == Is::Excused) {
            other.is = Is::Excused;
        }
        self.requests[r].is = Is::AtDrive;
        ((open.worst, open.likely), costs)
    }

    /// The charge for a request like those of X.
    fn draw(&mut self, stream: usize) -> Dur {
        let (times, drawn) = &mut self.charges[stream];
        *drawn += 1;
        times[charge::share(stream as u32, *drawn)]
    }

    /// A command completes.
    pub fn completed(&mut self, number: u64, now: Time) {
        self.lending.take_back();
        let (gone, took) = self.at_drive.completed(number, self.rules.moves_on, now);
        let costs = gone.costs.filter(|(s, period)| Some(*period) == self.current(*s, now));
        self.cost.extend(costs.map(|(s, period)| (s, period, took)));
        if let Some(r) = gone.request {
            let stream = self.requests[r].stream;
            let usual = self.draw(stream);
            let r = &mut self.requests[r];
            (r.is, r.took, r.usual, r.done) = (Is::Done, took, usual, now);
        }
    }
}
