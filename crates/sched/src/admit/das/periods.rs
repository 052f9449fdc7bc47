//! One stream at work: which period each of its requests belongs to, what is left of each, and what
//! it has used.
//!
//! A request is given a period when it comes, and keeps it. That is the one under way as long as
//! the stream has asked for less than it declared, and it would not come too late for it; else the
//! first after it that has room. So a stream that asks for more than it declared gets no more of
//! what was reserved: what is too much waits for its period, and for its predecessors.
//!
//! A request that waits for an older one, which overlaps it, cannot go. A mandatory one counts all
//! the same, and the older one inherits its deadline ([`super::streams`]). For an optional one the
//! older one goes at its stream's cost; it counts meanwhile if its stream said that it may have to
//! wait, and else not until it may go. One whose period is over by then is *excused*: it goes like
//! best effort, so that what is in its way takes nothing from other streams.

mod batch;
mod tally;
mod waits;

use std::cmp::Ordering;
use std::collections::VecDeque;

use headtime_disk::time::{Dur, Time};

use super::stream::Stream;
use batch::Batch;
pub use tally::{Cost, Tally};

/// A stream at work.
#[derive(Clone, Debug)]
pub struct Periods {
    stream: Stream,
    /// What the older requests take at their worst for which one of its requests may have to wait.
    blocking: Dur,
    /// The number of the period under way: it begins at so many times its length.
    current: u64,
    end: Time,
    now: Batch,
    /// The periods after it, one after the other.
    later: VecDeque<Batch>,
    /// Periods before it of which something is left, with their numbers.
    late: VecDeque<(u64, Batch)>,
    /// What requests of the period under way have cost the reservation in it, and how many of them
    /// are at the drive.
    used: Dur,
    /// What as many like those that X was measured with would have cost.
    usual: Dur,
    at_drive: u32,
    tally: Tally,
}

impl Periods {
    /// A stream whose first period begins at `begins`, on its grid, and not before `now`. Until
    /// then nothing belongs to the period under way. `blocking`: worst cases of the older requests
    /// that each of its requests may have to wait for.
    pub fn new(stream: Stream, blocking: Dur, begins: Time, now: Time) -> Periods {
        assert!(begins.0.is_multiple_of(stream.period.0) && begins >= now, "{begins} begins no period of {stream:?}");
        let number = begins.0 / stream.period.0;
        let full = Batch { given: stream.requests, ..Batch::default() };
        let (current, end, under_way) = match begins > now {
            true => (number - 1, begins, full),
            false => (number, begins + stream.period, Batch::default()),
        };
        Periods {
            stream,
            blocking,
            current,
            end,
            now: under_way,
            later: VecDeque::new(),
            late: VecDeque::new(),
            used: Dur::ZERO,
            usual: Dur::ZERO,
            at_drive: 0,
            tally: Tally::default(),
        }
    }

    /// Goes on to the period that `now` lies in; whether it was another.
    pub fn roll(&mut self, now: Time) -> bool {
        if now < self.end {
            return false;
        }
        let number = now.0 / self.stream.period.0;
        while self.current < number {
            // What still waits for an older request has missed its period.
            self.now.excuses_bound();
            if self.now.rest() > 0 {
                self.tally.late += u64::from(self.now.rest());
                self.late.push_back((self.current, self.now));
            }
            self.now = self.later.pop_front().unwrap_or_default();
            // Nobody asked for anything in the periods that are jumped over.
            self.current =
                if self.later.is_empty() && self.now == Batch::default() { number } else { self.current + 1 };
        }
        self.end = Time((number + 1) * self.stream.period.0);
        (self.used, self.usual, self.at_drive) = (Dur::ZERO, Dur::ZERO, std::mem::take(&mut self.now.early));
        true
    }

    /// Whether a request that comes now may belong to the period under way by what was declared.
    pub fn has_room(&self) -> bool {
        self.now.given < self.stream.requests && self.later.is_empty()
    }

    /// Gives a new request its period: the one under way, or the first after it that has room.
    /// Panics when the one under way has none.
    pub fn give(&mut self, under_way: bool) -> u64 {
        assert!(!under_way || self.has_room(), "more than {} requests in a period", self.stream.requests);
        self.tally.asked += 1;
        self.tally.deferred += u64::from(!under_way && self.has_room());
        let full = self.later.back().is_none_or(|b| b.given == self.stream.requests);
        if !under_way && full {
            self.later.push_back(Batch::default());
        }
        let ahead = if under_way { 0 } else { self.later.len() as u64 };
        let batch = self.batch(self.current + ahead);
        (batch.given, batch.left) = (batch.given + 1, batch.left + 1);
        self.current + ahead
    }

    fn batch(&mut self, period: u64) -> &mut Batch {
        let batch = match period.checked_sub(self.current) {
            Some(0) => Some(&mut self.now),
            Some(ahead) => self.later.get_mut(ahead as usize - 1),
            None => self.late.iter_mut().find(|b| b.0 == period).map(|b| &mut b.1),
        };
        batch.expect("a request belongs to a period that it was given")
    }

    /// A request of `period` may go from now on.
    pub fn ready(&mut self, period: u64) {
        let batch = self.batch(period);
        batch.ready += 1;
        assert!(batch.ready <= batch.left, "more requests may go than wait");
    }

    /// What is late goes as best effort does from now on: the stream is served as a mandatory one,
    /// and it was not.
    pub fn excuses_late(&mut self) {
        self.late.iter_mut().for_each(|(_, batch)| batch.excuses_ready());
    }

    /// A request of `period` goes to the drive; whether it is late already. Before its period it
    /// goes only because another stream's waits for it. Panics when none of them may go. Those that
    /// count go first: which of its requests a stream would rather have in time is not known.
    pub fn sent(&mut self, period: u64) -> bool {
        let current = self.current;
        let batch = self.batch(period);
        assert!(batch.ready + batch.excused > 0, "none of period {period} may go");
        batch.takes_one();
        match period.cmp(&current) {
            Ordering::Less => self.late.retain(|b| b.1.rest() > 0),
            Ordering::Equal => self.at_drive += 1,
            Ordering::Greater => batch.early += 1,
        }
        period < current
    }

    /// A request of `period`, which was late when it was sent or was not, is done now. Whether it
    /// is in time, the last instant of its period included.
    pub fn done(&mut self, period: u64, was_late: bool, cost: Cost, now: Time) -> bool {
        match period.cmp(&self.current) {
            Ordering::Less => {}
            Ordering::Equal => {
                self.at_drive -= 1;
                (self.used, self.usual) = (self.used + cost.took, self.usual + cost.usual);
            }
            Ordering::Greater => self.batch(period).early -= 1,
        }
        let in_time = now.0 <= (period + 1) * self.stream.period.0;
        if in_time {
            self.tally.in_time += 1;
        } else if !was_late {
            self.tally.late += 1;
        }
        in_time
    }

    /// Something for which a request of `period` waited took so long, at the cost of what is
    /// reserved. Where that has room for it, it is no more than usual.
    pub fn costs(&mut self, period: u64, took: Dur) {
        if period == self.current {
            self.used += took;
            self.usual += if self.blocking > Dur::ZERO { took } else { Dur::ZERO };
        }
    }

    /// A request of a period that is over is given up; `ready`: it could have gone. Panics when
    /// none is left.
    pub fn give_up(&mut self, period: u64, ready: bool) {
        assert!(period < self.current, "a request of period {period} is given up in period {}", self.current);
        let batch = self.batch(period);
        assert!(if ready { batch.ready + batch.excused } else { batch.blocked } > 0, "none is left");
        match ready {
            true => batch.takes_one(),
            false => batch.blocked -= 1,
        }
        self.late.retain(|b| b.1.rest() > 0);
        self.tally.given_up += 1;
    }

    /// What it asked for.
    #[inline]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// When the period under way began.
    #[inline]
    pub fn begins(&self) -> Time {
        Time(self.current * self.stream.period.0)
    }

    /// When the period under way ends.
    #[inline]
    pub fn end(&self) -> Time {
        self.end
    }

    /// The number of the period under way.
    #[inline]
    pub fn current(&self) -> u64 {
        self.current
    }

    /// Requests of the period under way that count and were not sent.
    #[inline]
    pub fn left(&self) -> u32 {
        self.now.left
    }

    /// Of them, those that may go.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.now.ready
    }

    /// Whether a request of this period that may go counts as one of its period, or as late; else
    /// it goes as best effort does, or before its period begins.
    pub fn counts(&self, period: u64) -> bool {
        let late = || self.late.iter().any(|b| b.0 == period && b.1.ready > 0);
        if period == self.current { self.now.ready > 0 } else { late() }
    }

    /// Whether one of the period under way may go like best effort.
    #[inline]
    pub fn has_excused(&self) -> bool {
        self.now.excused > 0
    }

    /// What requests of the period under way have cost the reservation.
    #[inline]
    pub fn used(&self) -> Dur {
        self.used
    }

    /// What as many like those that X was measured with would have cost.
    #[inline]
    pub fn usual(&self) -> Dur {
        self.usual
    }

    /// Requests of the period under way that are at the drive.
    #[inline]
    pub fn at_drive(&self) -> u32 {
        self.at_drive
    }

    /// Requests that were not sent in their periods although they counted.
    pub fn late(&self) -> u32 {
        self.late.iter().map(|b| b.1.ready).sum()
    }

    /// Requests of a period that is over that may go.
    pub fn waiting_late(&self, period: u64) -> u32 {
        self.late.iter().find(|b| b.0 == period).map_or(0, |b| b.1.ready + b.1.excused)
    }

    /// The oldest period before the one under way of which a request may go, and whether it
    /// counted: those come first.
    #[inline]
    pub fn oldest_late(&self) -> Option<(u64, bool)> {
        let oldest = |of: fn(&Batch) -> u32| self.late.iter().find(|b| of(&b.1) > 0).map(|b| b.0);
        let excused = || oldest(|b| b.excused).map(|period| (period, false));
        oldest(|b| b.ready).map(|period| (period, true)).or_else(excused)
    }

    /// Whether no request waits to be sent.
    pub fn is_idle(&self) -> bool {
        self.now.rest() == 0 && self.late.is_empty() && self.later.is_empty()
    }

    /// Requests that may still be asked for in a period that begins now.
    pub fn to_come(&self, now: Time) -> u32 {
        if self.begins() == now { self.stream.requests - self.now.given } else { 0 }
    }

    /// What it has asked for and had.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::Quality;
    use super::*;

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// Three requests every 100 ms.
    fn three() -> Periods {
        let stream = Stream::new(3, Dur::from_ms(100), Quality::MANDATORY, 8).expect("a stream");
        Periods::new(stream, Dur::ZERO, ms(100), ms(100))
    }

    fn cost(ms: u64) -> Cost {
        Cost { took: Dur::from_ms(ms), usual: Dur::from_ms(ms - 1) }
    }

    fn ask(p: &mut Periods) -> u64 {
        let under_way = p.has_room();
        let period = p.give(under_way);
        p.ready(period);
        period
    }

    #[test]
    fn what_is_more_than_was_declared_waits_for_its_period() {
        let mut p = three();
        let periods: Vec<u64> = (0..8).map(|_| ask(&mut p)).collect();
        assert_eq!(periods, [1, 1, 1, 2, 2, 2, 3, 3]);
        assert_eq!((p.left(), p.waiting(), p.tally().deferred), (3, 3, 0));
        (0..3).for_each(|_| assert!(!p.sent(1)));
        assert!(!p.has_room() && p.waiting() == 0);
        assert!(!p.roll(ms(199)) && p.roll(ms(200)));
        assert_eq!((p.waiting(), p.end()), (3, ms(300)));
        assert!(p.roll(ms(300)));
        // Two are asked for already, so one more has room; but three of the period before are late.
        assert_eq!((ask(&mut p), ask(&mut p)), (3, 4));
        assert_eq!((p.late(), p.oldest_late(), p.tally().late), (3, Some((2, true)), 3));
    }

    #[test]
    fn a_request_is_in_time_when_it_is_done_in_its_period() {
        let mut p = three();
        (0..3).for_each(|_| _ = ask(&mut p));
        p.sent(1);
        assert!(p.done(1, false, cost(9), ms(110)));
        assert_eq!((p.used(), p.usual(), p.at_drive()), (Dur::from_ms(9), Dur::from_ms(8), 0));
        p.sent(1);
        p.sent(1);
        (0..2).for_each(|_| _ = ask(&mut p));
        p.roll(ms(200));
        // Two at the drive; one of the next period, which is under way then, and one that is not
        // sent in it.
        assert!(p.done(1, false, cost(9), ms(200)));
        assert!(!p.done(1, false, cost(9), ms(201)));
        p.sent(2);
        p.roll(ms(300));
        let late = p.sent(2);
        assert!(late && p.oldest_late().is_none());
        assert!(!p.done(2, late, cost(9), ms(310)));
        assert!(!p.done(2, false, cost(9), ms(311)));
        assert_eq!(p.tally(), Tally { asked: 5, in_time: 2, late: 3, deferred: 0, given_up: 0 });
        assert_eq!(p.used(), Dur::ZERO);
    }

    #[test]
    fn a_stream_that_begins_later_has_no_period_under_way() {
        let stream = Stream::new(2, Dur::from_ms(100), Quality::MANDATORY, 8).expect("a stream");
        let mut p = Periods::new(stream, Dur::ZERO, ms(300), ms(150));
        assert!(!p.has_room());
        assert_eq!(p.give(false), 3);
        assert_eq!((p.left(), p.end()), (0, ms(300)));
        p.roll(ms(310));
        assert_eq!((p.left(), p.current()), (1, 3));
        // Nobody asks for a long time.
        p.ready(3);
        p.sent(3);
        p.roll(ms(999_999_950));
        assert_eq!((p.end(), p.left(), p.is_idle()), (ms(1_000_000_000), 0, true));
        assert_eq!(p.give(true), 9_999_999);
        // And it may be put off although there is room.
        assert_eq!((p.give(false), p.tally().deferred), (10_000_000, 1));
    }

    #[test]
    fn what_goes_before_its_period_is_at_the_drive_when_that_begins() {
        let mut p = three();
        (0..5).for_each(|_| _ = ask(&mut p));
        assert!(!p.sent(2) && !p.sent(2) && p.at_drive() == 0, "the last two belong to the next period");
        p.done(2, false, cost(8), ms(190));
        p.roll(ms(200));
        assert_eq!((p.at_drive(), p.used(), p.left()), (1, Dur::ZERO, 0));
        assert!(p.done(2, false, cost(8), ms(205)));
        assert_eq!((p.at_drive(), p.used()), (0, Dur::from_ms(8)));
    }
}
