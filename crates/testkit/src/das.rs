//! The dynamic active subset by walking all requests, as figure 2 of Reuther and Pohlack (2003) does: every request that there ever was is in
//! a list, and each question goes through all of it. [`headtime_sched::admit::das::subset`] must decide the same.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use headtime_disk::time::{Dur, Time};
use headtime_sched::admit::das::stream::Stream;
use headtime_sched::admit::das::subset::{Exhausted, Rules};

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Blocked,
    Waiting,
    /// It waited for an older one until there was no time for it in its period any more.
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
    done: Time,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    stream: Stream,
    worst: Dur,
    likely: Dur,
    /// The mean time of its requests, however many there are to choose from.
    usual: Dur,
    /// Worst cases of the older requests that one may have to wait for.
    blocking: Dur,
    reservation: Option<Dur>,
    begins: Time,
}

#[derive(Clone, Copy, Debug)]
struct Command {
    number: u64,
    request: Option<usize>,
    worst: Dur,
    likely: Dur,
    at: Time,
    /// Something that is no stream's went right before it.
    behind_others: bool,
}

/// Who may go: numbers of requests, in the order in which they came, and whether best effort is among them.
pub type Decision = (Vec<usize>, bool);

/// All there ever was.
#[derive(Clone, Debug)]
pub struct Walk {
    rules: Rules,
    streams: Vec<Open>,
    requests: Vec<Asked>,
    drive: Vec<Command>,
    /// Chosen, and not sent yet.
    held: Option<Command>,
    last_done: Time,
    /// The arm may move by itself until then, behind the command that was done last.
    moves_until: Time,
    /// For how many commands that are at the drive when they begin periods have room.
    pub crossing: u32,
    others_last: bool,
    /// By stream and period: of what its requests may have to wait for, what was sent.
    lent: BTreeMap<(usize, u64), Dur>,
    /// What was lent last, to something that has not gone.
    lent_now: Option<((usize, u64), Dur)>,
    /// The same for what is held.
    lent_held: Option<((usize, u64), Dur)>,
}

impl Walk {
    /// Nothing there yet.
    pub fn new(rules: Rules) -> Walk {
        Walk {
            rules,
            streams: Vec::new(),
            requests: Vec::new(),
            drive: Vec::new(),
            held: None,
            last_done: Time::ZERO,
            moves_until: Time::ZERO,
            crossing: 0,
            others_last: false,
            lent: BTreeMap::new(),
            lent_now: None,
            lent_held: None,
        }
    }

    /// A stream, known by how many there were before it, with its worst case, its likely time, and the worst cases of
    /// what one of its requests may have to wait for.
    pub fn open(
        &mut self,
        stream: Stream,
        (worst, likely, usual): (Dur, Dur, Dur),
        reservation: Option<Dur>,
        begins: Time,
    ) {
        self.take_back();
        let blocking = Dur(self.rules.blocker.0 * u64::from(stream.blocked_by));
        self.streams.push(Open { stream, worst, likely, usual, blocking, reservation, begins });
    }

    /// What older requests can still take for which a mandatory stream's of `period`, and `more`, may have to wait.
    fn blocking(&self, s: usize, period: Option<u64>, more: u64) -> Dur {
        let waits = self.count(s, |r| Some(r.period) == period && r.is == Is::Blocked) + more;
        let lent = period.and_then(|p| self.lent.get(&(s, p)).copied()).unwrap_or_default();
        Dur(waits * self.streams[s].blocking.0).saturating_sub(lent)
    }

    /// What a mandatory stream's requests of the period under way, and `more`, take at their worst.
    fn due(&self, s: usize, more: u64, now: Time) -> i128 {
        let work = (self.left(s, now) + more) * self.streams[s].worst.0;
        i128::from(work + self.blocking(s, self.current(s, now), more).0)
    }

    /// What all requests of a mandatory stream's period can take.
    fn whole(&self, s: usize) -> i128 {
        let open = &self.streams[s];
        i128::from(open.stream.requests) * i128::from(open.worst.0 + open.blocking.0)
    }

    /// Whether something, a request (`what`) or best effort of `worst`, may go because the request `waits` waits for
    /// it.
    pub fn inherits(&mut self, waits: usize, what: Option<usize>, worst: Dur, now: Time) -> bool {
        self.take_back();
        let Asked { stream, period, .. } = self.requests[waits];
        let what = what.map(|r| (self.requests[r].stream, self.requests[r].period));
        let worst = what.map_or(worst, |(s, _)| self.streams[s].worst);
        let counts = Some(period) >= self.current(stream, now);
        let time = if counts { worst.min(self.blocking(stream, Some(period), 0)) } else { Dur::ZERO };
        *self.lent.entry((stream, period)).or_default() += time;
        self.lent_now = Some(((stream, period), time));
        let slack = |d: Time| self.slack(d, (usize::MAX, 0), now);
        let deadlines: Vec<Time> = self.mandatory().map(|(s, _)| self.deadline(s, 0, now)).collect();
        // Deadlines of the one that waits keep nothing back when all that its stream has to do waits for older ones.
        let spared = match Some(period).cmp(&self.current(stream, now)) {
            Ordering::Less => self.left(stream, now) == 0,
            Ordering::Equal => self.count(stream, |r| r.period == period && r.is == Is::Waiting) == 0,
            Ordering::Greater => false,
        };
        let others: Vec<Time> =
            self.mandatory().filter(|(s, _)| *s != stream).map(|(s, _)| self.deadline(s, 0, now)).collect();
        let enough = |d: &Time| spared && !others.contains(d) || slack(*d) >= i128::from(worst.0);
        let waiting = |s, p| self.count(s, |r| r.period == p && r.is == Is::Waiting) > 0;
        let may = match what {
            // One that is late is in the account of what is late, and one of the period under way of its deadline's.
            Some((s, p))
                if self.streams[s].reservation.is_none() && Some(p) < self.current(s, now) && waiting(s, p) =>
            {
                true
            }
            Some((s, p))
                if self.streams[s].reservation.is_none() && Some(p) == self.current(s, now) && waiting(s, p) =>
            {
                let own = self.deadline(s, 0, now);
                deadlines.iter().filter(|d| **d < own).all(enough)
            }
            Some(_) => deadlines.iter().all(enough),
            None => worst <= self.rules.best_effort && deadlines.iter().all(enough),
        };
        if !may {
            self.take_back();
        }
        may
    }

    fn take_back(&mut self) {
        if let Some((of, time)) = self.lent_now.take() {
            let lent = self.lent.entry(of).or_default();
            *lent = lent.saturating_sub(time);
        }
    }

    fn current(&self, s: usize, now: Time) -> Option<u64> {
        (now >= self.streams[s].begins).then(|| now.0 / self.streams[s].stream.period.0)
    }

    /// The end of the period under way, or the beginning of the first.
    fn end(&self, s: usize, now: Time) -> Time {
        match self.current(s, now) {
            Some(p) => Time((p + 1) * self.streams[s].stream.period.0),
            None => self.streams[s].begins,
        }
    }

    fn count(&self, s: usize, matches: impl Fn(&Asked) -> bool) -> u64 {
        self.requests.iter().filter(|r| r.stream == s && matches(r)).count() as u64
    }

    /// Requests of the period under way that were not sent.
    fn left(&self, s: usize, now: Time) -> u64 {
        let current = self.current(s, now);
        let counts = |is: Is| is == Is::Waiting || is == Is::Blocked && self.streams[s].reservation.is_none();
        self.count(s, |r| Some(r.period) == current && counts(r.is))
    }

    fn late(&self, s: usize, now: Time) -> u64 {
        let current = self.current(s, now);
        self.count(s, |r| Some(r.period) < current && r.is == Is::Waiting)
    }

    /// Time that the requests of the period under way have had in it.
    fn used(&self, s: usize, now: Time) -> Dur {
        let current = self.current(s, now);
        let in_it = |r: &Asked| r.done < self.end(s, now) && r.done.0 >= r.period * self.streams[s].stream.period.0;
        let had = |r: &&Asked| r.stream == s && Some(r.period) == current && r.is == Is::Done && in_it(r);
        self.requests.iter().filter(had).map(|r| r.took).sum()
    }

    /// When the drive is free, if everything there takes its worst case and the arm moves by itself.
    fn free(&self, now: Time) -> Time {
        self.free_from(self.last_done.max(self.moves_until), now, |c| c.worst)
    }

    /// When the drive is free, if everything there takes as long as `each` says and the first begins at `from`.
    fn free_from(&self, from: Time, now: Time, each: impl Fn(&Command) -> Dur) -> Time {
        let free = self.drive.iter().fold(from, |t, c| t.max(c.at) + each(c)).max(now);
        self.held.iter().fold(free, |t, c| t + each(c))
    }

    fn claim(&self, s: usize, left: Dur, requests: u64) -> Dur {
        let Open { worst, likely, .. } = self.streams[s];
        let overrun = worst.0 + u64::from(self.rules.outstanding - 1) * (worst.0 - likely.0);
        Dur((left.0 + overrun).min(requests * worst.0))
    }

    fn optional(&self) -> impl Iterator<Item = (usize, &Open)> {
        self.streams.iter().enumerate().filter(|s| s.1.reservation.is_some())
    }

    fn mandatory(&self) -> impl Iterator<Item = (usize, &Open)> {
        self.streams.iter().enumerate().filter(|s| s.1.reservation.is_none())
    }

    /// What mandatory requests of one stream need by `d`: those that are there, and those of later periods, evenly.
    fn needs(&self, s: usize, d: Time, more: u64, now: Time) -> i128 {
        let (open, end) = (&self.streams[s], self.end(s, now));
        let left = self.left(s, now) + more;
        let all = self.whole(s);
        let since = i128::from(d.0) - i128::from(end.0);
        let (from, at_once) = match left {
            0 => (i128::from(open.stream.period.0), 0),
            _ => (0, self.due(s, more, now)),
        };
        if since < from { 0 } else { at_once + all * since / i128::from(open.stream.period.0) }
    }

    /// Slack of mandatory requests at `d`, one stream asking for `more` than it does.
    fn slack(&self, d: Time, (who, more): (usize, u64), now: Time) -> i128 {
        let late: i128 = self.mandatory().map(|(s, o)| i128::from(self.late(s, now)) * i128::from(o.worst.0)).sum();
        let needed: i128 = self.mandatory().map(|(s, _)| self.needs(s, d, if s == who { more } else { 0 }, now)).sum();
        i128::from(d.0) - i128::from(self.free(now).0) - needed - late
    }

    /// What is held does not go.
    pub fn withdraw(&mut self) {
        self.held = None;
        self.lent_now = self.lent_held.take();
        self.take_back();
    }

    /// The deadline that counts of a mandatory stream.
    fn deadline(&self, s: usize, more: u64, now: Time) -> Time {
        let end = self.end(s, now);
        if self.left(s, now) + more > 0 { end } else { end + self.streams[s].stream.period }
    }

    /// A stream's request comes: which period it belongs to. It waits for another when it is `blocked`.
    pub fn submit(&mut self, s: usize, blocked: bool, now: Time) -> u64 {
        self.take_back();
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
        self.requests.push(Asked { stream: s, period, is, took: Dur::ZERO, done: Time::ZERO });
        period
    }

    /// A request waits for nobody any more.
    pub fn ready(&mut self, request: usize, now: Time) {
        self.take_back();
        let Asked { stream, period, .. } = self.requests[request];
        if let Some(lent) = self.lent.get_mut(&(stream, period)) {
            *lent = lent.saturating_sub(self.streams[stream].blocking);
        }
        let current = self.current(stream, now);
        let counts = Some(period) >= current;
        self.requests[request].is = if counts { Is::Waiting } else { Is::Excused };
    }

    /// Whether there is time for one more request of a stream in its period.
    fn fits(&self, s: usize, now: Time) -> bool {
        if self.streams[s].reservation.is_some() {
            return self.is_reserved(s, now);
        }
        self.mandatory().all(|(m, _)| {
            let more = u64::from(m == s);
            self.slack(self.deadline(m, more, now), (s, 1), now) >= 0
        })
    }

    /// Whether all that is reserved before the end of an optional stream's period is still possible, with one more request of it.
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
                Some(all) => ((left * o.worst.0).min(all.saturating_sub(self.used(i, now)).0), all.0),
            };
            if release <= end {
                let since = end.since(release).0;
                let again = u128::from(each) * u128::from(since) / u128::from(o.stream.period.0);
                (needed, full) = (needed + u128::from(due) + again, full + u128::from(each) + again);
            }
        }
        // Of a period that all of it is more than, the same share must be left.
        let period = u128::from(self.streams[s].stream.period.0);
        needed * period <= u128::from(end.since(now).0) * period.max(full)
    }

    /// A command goes to the drive, for a request or for nobody.
    pub fn sent(&mut self, number: u64, request: Option<usize>, worst: Dur, now: Time) {
        let command = self.command(number, request, worst, now);
        self.drive.push(command);
    }

    /// A request, or best effort, is chosen, and its command goes later.
    pub fn hold(&mut self, request: Option<usize>, worst: Dur, now: Time) {
        self.held = Some(self.command(0, request, worst, now));
    }

    /// What is held goes.
    pub fn send_held(&mut self, number: u64, now: Time) {
        let held = self.held.take().expect("something is held");
        self.lent_held = None;
        self.drive.push(Command { number, at: now, ..held });
    }

    fn command(&mut self, number: u64, request: Option<usize>, worst: Dur, now: Time) -> Command {
        let (mut worst, mut likely) = (worst, worst);
        self.lent_held = self.lent_now.take();
        if let Some(r) = request {
            let open = self.streams[self.requests[r].stream];
            (worst, likely) = (open.worst, open.likely);
            // Those that count go first.
            let Asked { stream, period, is, .. } = self.requests[r];
            let other = self.requests.iter_mut().find(|o| (o.stream, o.period, o.is) == (stream, period, Is::Waiting));
            if let Some(other) = other.filter(|_| is == Is::Excused) {
                other.is = Is::Excused;
            }
            self.requests[r].is = Is::AtDrive;
        }
        let behind_others = self.others_last;
        // What goes while a request is held goes before that one.
        self.others_last = if self.held.is_none() { request.is_none() } else { self.others_last };
        Command { number, request, worst, likely, at: now, behind_others }
    }

    /// It comes back.
    pub fn completed(&mut self, number: u64, now: Time) {
        self.take_back();
        let at = self.drive.iter().position(|c| c.number == number).expect("it was sent");
        let gone = self.drive.remove(at);
        let began = gone.at.max(self.last_done);
        let took = now.since(began);
        self.moves_until = began + self.rules.moves_on;
        self.last_done = now;
        if let Some(r) = gone.request {
            let usual = self.streams[self.requests[r].stream].usual;
            let charged = if gone.behind_others { took.min(usual) } else { took };
            let r = &mut self.requests[r];
            (r.is, r.took, r.done) = (Is::Done, charged, now);
        }
    }

    /// Who may go, the longest best-effort request being one of `best_effort`.
    pub fn decide(&mut self, best_effort: Dur, now: Time) -> Decision {
        self.take_back();
        self.decision(best_effort, now)
    }

    fn decision(&self, best_effort: Dur, now: Time) -> Decision {
        let nobody = (usize::MAX, 0);
        let deadlines: Vec<Time> = self.mandatory().map(|(s, _)| self.deadline(s, 0, now)).collect();
        let mandatory = |d: Time| self.slack(d, nobody, now);
        let everywhere = deadlines.iter().map(|&d| mandatory(d)).min();
        // What optional streams can take of their reservations.
        let claims: Vec<(usize, Time, Dur)> = self
            .optional()
            .map(|(s, o)| {
                let left = o.reservation.unwrap_or_default().saturating_sub(self.used(s, now));
                let n = if left > Dur::ZERO { self.left(s, now) } else { 0 };
                (s, self.end(s, now), if n > 0 { self.claim(s, left, n) } else { Dur::ZERO })
            })
            .collect();
        let claimed = |d: Time| claims.iter().filter(|c| c.1 <= d).map(|c| i128::from(c.2.0)).sum::<i128>();
        let from = self.free(now);
        // What may go before `d`, as far as it is reserved: of optional streams what is due by then, of mandatory
        // ones all that they can ask for, whenever it is due.
        let left_at = |d: Time| {
            let mandatory = self.mandatory().map(|(s, o)| {
                let each = self.whole(s);
                let there = self.due(s, 0, now) + i128::from(self.late(s, now) * o.worst.0);
                let end = self.end(s, now);
                there
                    + if d > end { each + each * i128::from(d.since(end).0) / i128::from(o.stream.period.0) } else { 0 }
            });
            let optional = claims.iter().map(|&(s, end, claim)| {
                let o = &self.streams[s];
                let (all, t) = (u64::from(o.stream.requests), o.stream.period);
                let each = i128::from(self.claim(s, o.reservation.unwrap_or_default(), all).0);
                let more =
                    if d >= end + t { each + each * i128::from(d.since(end + t).0) / i128::from(t.0) } else { 0 };
                if d >= end { i128::from(claim.0) + more } else { 0 }
            });
            i128::from(d.0) - i128::from(from.0) - mandatory.sum::<i128>() - optional.sum::<i128>()
        };
        let claiming = || claims.iter().filter(|c| c.2 > Dur::ZERO);
        let of_mandatory = deadlines.iter().map(|&d| mandatory(d) - claimed(d));
        let all = of_mandatory.chain(claiming().map(|c| left_at(c.1))).min();
        let next = claims.iter().map(|&(s, end, _)| {
            left_at(end + self.streams[s].stream.period).max(i128::from(end.saturating_since(from).0))
        });
        let next = next.min();
        let may_cross = |w: Dur| {
            let fits = |slack: Option<i128>| slack.is_none_or(|slack| slack >= i128::from(w.0));
            let there = self.drive.len() + usize::from(self.held.is_some());
            let room = there < self.crossing as usize && w <= self.rules.crossing;
            fits(all) && (room || fits(next))
        };
        // Where best effort may, and where a mandatory stream that has nothing to do harms nobody else.
        let excused = |s: usize| {
            let w = self.streams[s].worst;
            let own = self.streams[s].reservation.is_none() && self.left(s, now) == 0;
            let mut others = self.mandatory().filter(|(o, _)| *o != s).map(|(o, _)| self.deadline(o, 0, now));
            may_cross(w) || own && others.all(|d| mandatory(d) >= i128::from(w.0))
        };
        let before = |end: Time| claiming().filter(|c| c.1 < end).map(|c| left_at(c.1)).min();
        let mut chosen = Vec::new();
        let mut exhausted = false;
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
                    let own = self.deadline(r.stream, 0, now);
                    let any = |is: Is| self.count(r.stream, |o| o.period == r.period && o.is == is) > 0;
                    let in_time = deadlines.iter().filter(|&&d| d < own).all(|&d| mandatory(d) >= w);
                    any(Is::Waiting) && in_time || any(Is::Excused) && excused(r.stream)
                }
                (Some(reservation), _) => {
                    let used = self.used(r.stream, now);
                    let there = self.count(r.stream, |o| o.period == r.period && o.is == Is::AtDrive);
                    let likely =
                        self.free_from(self.last_done, now, |c| c.likely) + open.likely <= self.end(r.stream, now);
                    if used >= reservation {
                        let may = self.rules.exhausted != Exhausted::Skip && may_cross(open.worst);
                        exhausted |= may;
                        may
                    } else {
                        let some_left = used + Dur(open.likely.0 * there) < reservation;
                        let first = before(self.end(r.stream, now)).is_none_or(|left| left >= w);
                        some_left && likely && first && everywhere.is_none_or(|slack| slack >= w)
                    }
                }
            };
            if may {
                chosen.push(number);
            }
        }
        let first = exhausted && self.rules.exhausted == Exhausted::BeforeBestEffort;
        (chosen, !first && may_cross(best_effort))
    }

    /// The oldest period before this one of which a request may go, and whether it counts: those come first.
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
