//! Periods of one stream: the period of each request, the requests left in each, and the time used.
//!
//! A request is assigned a period on arrival and keeps it: the current one if the stream has
//! submitted fewer requests than declared and there is still time for it; else the first later one
//! with room. A stream that submits more than declared therefore gets no more than its reservation:
//! excess requests wait for their period, and for the earlier ones.
//!
//! A request blocked by an older one that overlaps it is not eligible. A mandatory one counts all
//! the same, and the older one inherits its deadline ([`super::streams`]). For an optional one the
//! older request is served at its stream's cost; the blocked request counts during that time if its
//! stream declared blocking, and otherwise only once it is eligible. One whose period is over by
//! then is *excused*: it is eligible when best effort is, so that the blocking request takes
//! nothing from other streams.

mod batch;
mod tally;
mod waits;

use std::cmp::Ordering;
use std::collections::VecDeque;

use headtime_disk::{Dur, Time};

use super::stream::Stream;
use batch::Batch;
pub(crate) use tally::Cost;
pub use tally::Tally;

/// A stream's periods.
#[derive(Clone, Debug)]
pub(crate) struct Periods {
    stream: Stream,
    /// Blocking time of one of its requests: worst case of the older requests.
    blocking: Dur,
    /// Number of the current period: it begins at that multiple of the period.
    current: u64,
    end: Time,
    now: Batch,
    /// The following periods, in order.
    later: VecDeque<Batch>,
    /// Earlier periods with pending requests, with their numbers.
    late: VecDeque<(u64, Batch)>,
    /// Cost of the current period's requests to the reservation, and number of them in flight.
    used: Dur,
    /// Cost of the same number of requests like those that X was measured with.
    usual: Dur,
    at_drive: u32,
    tally: Tally,
}

impl Periods {
    /// Creates a stream whose first period begins at `begins`, on its grid, and not before `now`.
    /// Until then no request belongs to the current period. `blocking`: worst case of the older
    /// requests that may block each of its requests.
    pub(crate) fn new(stream: Stream, blocking: Dur, begins: Time, now: Time) -> Periods {
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

    /// Advances to the period of `now`; returns whether it changed.
    pub(crate) fn roll(&mut self, now: Time) -> bool {
        if now < self.end {
            return false;
        }
        let number = now.0 / self.stream.period.0;
        while self.current < number {
            // A request that is still blocked has missed its period.
            self.now.excuses_bound();
            if self.now.rest() > 0 {
                self.tally.late += u64::from(self.now.rest());
                self.late.push_back((self.current, self.now));
            }
            self.now = self.later.pop_front().unwrap_or_default();
            // The skipped periods have no requests.
            self.current =
                if self.later.is_empty() && self.now == Batch::default() { number } else { self.current + 1 };
        }
        self.end = Time((number + 1) * self.stream.period.0);
        (self.used, self.usual, self.at_drive) = (Dur::ZERO, Dur::ZERO, std::mem::take(&mut self.now.early));
        true
    }

    /// Returns whether the current period has room for another request by the declared number.
    pub(crate) fn has_room(&self) -> bool {
        self.now.given < self.stream.requests && self.later.is_empty()
    }

    /// Assigns a new request its period: the current one, or the first later one with room. Panics
    /// if the current one has none.
    pub(crate) fn give(&mut self, under_way: bool) -> u64 {
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

    /// Marks a request of `period` as eligible.
    pub(crate) fn ready(&mut self, period: u64) {
        let batch = self.batch(period);
        batch.ready += 1;
        assert!(batch.ready <= batch.left, "more requests may go than wait");
    }

    /// Makes late requests eligible as best effort: the stream is now served as a mandatory one.
    pub(crate) fn excuses_late(&mut self) {
        self.late.iter_mut().for_each(|(_, batch)| batch.excuses_ready());
    }

    /// Records the dispatch of a request of `period`; returns whether it is late already. It
    /// precedes its period only if another stream's request is blocked by it. Panics if none is
    /// eligible. Requests that count are dispatched first: which of its requests a stream prefers
    /// to be in time is unknown.
    pub(crate) fn sent(&mut self, period: u64) -> bool {
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

    /// Records the completion of a request of `period`; `was_late`: it was late at dispatch.
    /// Returns whether it is in time, the last instant of its period included.
    pub(crate) fn done(&mut self, period: u64, was_late: bool, cost: Cost, now: Time) -> bool {
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

    /// Charges the reservation for a request that blocked one of `period`. If the reservation
    /// includes blocking time, the usual cost grows by as much.
    pub(crate) fn costs(&mut self, period: u64, took: Dur) {
        if period == self.current {
            self.used += took;
            self.usual += if self.blocking > Dur::ZERO { took } else { Dur::ZERO };
        }
    }

    /// Records the expiry of a request of a period that is over; `ready`: it was eligible. Panics
    /// if none is left.
    pub(crate) fn give_up(&mut self, period: u64, ready: bool) {
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

    /// Returns the stream's parameters.
    #[inline]
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the start of the current period.
    #[inline]
    pub(crate) fn begins(&self) -> Time {
        Time(self.current * self.stream.period.0)
    }

    /// Returns the end of the current period.
    #[inline]
    pub(crate) fn end(&self) -> Time {
        self.end
    }

    /// Returns the number of the current period.
    #[inline]
    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    /// Returns the number of requests of the current period that count and were not dispatched.
    #[inline]
    pub(crate) fn left(&self) -> u32 {
        self.now.left
    }

    /// Returns how many of these are eligible.
    #[inline]
    pub(crate) fn waiting(&self) -> u32 {
        self.now.ready
    }

    /// Returns whether an eligible request of this period counts in its period, or as late;
    /// otherwise it is eligible as best effort, or before its period begins.
    pub(crate) fn counts(&self, period: u64) -> bool {
        let late = || self.late.iter().any(|b| b.0 == period && b.1.ready > 0);
        if period == self.current { self.now.ready > 0 } else { late() }
    }

    /// Returns whether a request of the current period is eligible as best effort.
    #[inline]
    pub(crate) fn has_excused(&self) -> bool {
        self.now.excused > 0
    }

    /// Returns the cost of the current period's requests to the reservation.
    #[inline]
    pub(crate) fn used(&self) -> Dur {
        self.used
    }

    /// Returns the cost of the same number of requests like those that X was measured with.
    #[inline]
    pub(crate) fn usual(&self) -> Dur {
        self.usual
    }

    /// Returns the number of requests of the current period in flight.
    #[inline]
    pub(crate) fn at_drive(&self) -> u32 {
        self.at_drive
    }

    /// Returns the number of requests that counted and were not dispatched in their periods.
    pub(crate) fn late(&self) -> u32 {
        self.late.iter().map(|b| b.1.ready).sum()
    }

    /// Returns the number of eligible requests of a period that is over.
    pub(crate) fn waiting_late(&self, period: u64) -> u32 {
        self.late.iter().find(|b| b.0 == period).map_or(0, |b| b.1.ready + b.1.excused)
    }

    /// Returns the oldest earlier period with an eligible request, and whether it counted: those
    /// come first.
    #[inline]
    pub(crate) fn oldest_late(&self) -> Option<(u64, bool)> {
        let oldest = |of: fn(&Batch) -> u32| self.late.iter().find(|b| of(&b.1) > 0).map(|b| b.0);
        let excused = || oldest(|b| b.excused).map(|period| (period, false));
        oldest(|b| b.ready).map(|period| (period, true)).or_else(excused)
    }

    /// Returns whether no request is waiting.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.now.rest() == 0 && self.late.is_empty() && self.later.is_empty()
    }

    /// Returns how many requests may still be submitted in a period that begins now.
    pub(crate) fn to_come(&self, now: Time) -> u32 {
        if self.begins() == now { self.stream.requests - self.now.given } else { 0 }
    }

    /// Returns the statistics of its requests.
    pub(crate) fn tally(&self) -> Tally {
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
        // Two are submitted already, so there is room for one more; but three of the previous
        // period are late.
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
        // Two in flight; one of the next period, which is then current, is not dispatched in it.
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
        // No request for a long time.
        p.ready(3);
        p.sent(3);
        p.roll(ms(999_999_950));
        assert_eq!((p.end(), p.left(), p.is_idle()), (ms(1_000_000_000), 0, true));
        assert_eq!(p.give(true), 9_999_999);
        // A request may be deferred although there is room.
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
