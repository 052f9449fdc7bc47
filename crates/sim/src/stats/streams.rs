//! Results of streams per period, as seen by their applications.
//!
//! Whether a request is in time is determined here, from its due time and completion, not from the
//! scheduler's own account: schedulers with and without guarantees are measured alike. A period
//! counts if it ends before the run does.

use headtime_disk::{Dur, Time};
use headtime_sched::streams::Stream;

/// A stream's request and result.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamAccount {
    /// Its name.
    pub name: String,
    /// Its application number.
    pub owner: u32,
    /// Its requirements.
    pub stream: Stream,
    /// Begin of its first period.
    pub begins: Time,
    /// r of an optional stream under a scheduler with reservations, current value.
    pub reservation: Option<Dur>,
    /// Requests submitted.
    pub asked: u64,
    /// Requests dropped by the scheduler.
    pub dropped: u64,
    /// Requests done after the end of their period.
    pub late: u64,
    /// Requests that failed, in time or not.
    pub errors: u64,
    /// Sectors moved without error, in time or not.
    pub sectors: u64,
    /// Number of periods by requests done in time, from none to all.
    pub by_period: Vec<u64>,
    /// The current period, and its number of finished requests.
    under_way: u64,
    done: u32,
    /// The first period without requests after its end.
    stops: u64,
}

impl StreamAccount {
    /// Creates the account of a stream whose first period begins at `begins`.
    pub fn new(name: String, owner: u32, stream: Stream, begins: Time) -> StreamAccount {
        StreamAccount {
            name,
            owner,
            stream,
            begins,
            reservation: None,
            asked: 0,
            dropped: 0,
            late: 0,
            errors: 0,
            sectors: 0,
            by_period: vec![0; stream.requests as usize + 1],
            under_way: begins.0 / stream.period.0,
            done: 0,
            stops: u64::MAX,
        }
    }

    fn end(&self) -> Time {
        Time((self.under_way + 1) * self.stream.period.0)
    }

    /// Counts a finished request that was due at `due`.
    pub fn finished(&mut self, due: Time, done: Time, sectors: u64, error: bool) {
        // A request done at the last instant of its period is in time, so the period ends after
        // that instant.
        while self.end() < done && self.under_way < self.stops {
            self.count();
        }
        let in_time = due.0 / self.stream.period.0 == self.under_way && done <= self.end();
        self.late += u64::from(!in_time);
        self.errors += u64::from(error);
        if !error {
            self.sectors += sectors;
            self.done += u32::from(in_time);
        }
    }

    /// Notes that the stream ends at `now`, the end of its last period.
    pub fn closed(&mut self, now: Time) {
        self.stops = now.0 / self.stream.period.0;
    }

    /// Notes the end of the run.
    pub fn ended(&mut self, now: Time) {
        while self.end() <= now && self.under_way < self.stops {
            self.count();
        }
    }

    fn count(&mut self) {
        self.by_period[self.done as usize] += 1;
        (self.under_way, self.done) = (self.under_way + 1, 0);
    }

    /// Returns the number of ended periods.
    pub fn periods(&self) -> u64 {
        self.by_period.iter().sum()
    }

    /// Returns the number of requests done in time, in ended periods.
    pub fn in_time(&self) -> u64 {
        self.by_period.iter().zip(0..).map(|(periods, done)| periods * done).sum()
    }

    /// Returns the number of requests not done in time, in ended periods.
    pub fn missed(&self) -> u64 {
        self.periods() * u64::from(self.stream.requests) - self.in_time()
    }

    /// Returns the share of requests done in time, 0 to 1; `None` before a period has ended.
    pub fn quality(&self) -> Option<f64> {
        let wanted = self.periods() * u64::from(self.stream.requests);
        (wanted > 0).then(|| self.in_time() as f64 / wanted as f64)
    }

    /// Returns half the width of its 95% confidence interval, assuming independent periods; `None`
    /// with fewer than two.
    pub fn quality_plus_minus(&self) -> Option<f64> {
        let (n, mean) = (self.periods() as f64, self.quality()?);
        let share = |done: u32| f64::from(done) / f64::from(self.stream.requests);
        let squares =
            self.by_period.iter().zip(0..).map(|(&periods, done)| periods as f64 * (share(done) - mean).powi(2));
        (n >= 2.0).then(|| 1.96 * (squares.sum::<f64>() / (n - 1.0) / n).sqrt())
    }

    /// Returns the fewest requests done in time in one of its periods.
    pub fn fewest(&self) -> Option<u32> {
        self.by_period.iter().position(|&periods| periods > 0).map(|done| done as u32)
    }

    /// Returns the number of periods in which all were.
    pub fn whole(&self) -> u64 {
        self.by_period.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_sched::streams::Quality;

    /// Three requests every 100 ms, from 200 ms on.
    fn account() -> StreamAccount {
        let stream = Stream::new(3, Dur::from_ms(100), Quality::MANDATORY, 8).unwrap();
        StreamAccount::new("a".into(), 0, stream, ms(200))
    }

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    #[test]
    fn a_request_is_in_time_up_to_the_last_instant_of_its_period() {
        let mut a = account();
        a.finished(ms(200), ms(210), 8, false);
        a.finished(ms(200), ms(300), 8, false);
        a.finished(ms(200), Time(300_000_001), 8, false);
        a.finished(ms(300), ms(400), 8, false);
        a.ended(ms(400));
        assert_eq!(a.by_period, [0, 1, 1, 0]);
        assert_eq!((a.periods(), a.in_time(), a.late, a.missed(), a.sectors), (2, 3, 1, 3, 32));
        assert_eq!((a.quality(), a.fewest(), a.whole()), (Some(0.5), Some(1), 0));
    }

    #[test]
    fn an_unserved_request_counts_and_a_period_that_is_not_over_does_not() {
        let mut a = account();
        assert_eq!((a.quality(), a.fewest()), (None, None));
        (0..3).for_each(|_| a.finished(ms(600), ms(650), 8, false));
        a.ended(ms(699));
        // No request of the periods at 200, 300, 400 and 500 ms was in time.
        assert_eq!((a.by_period.clone(), a.quality()), (vec![4, 0, 0, 0], Some(0.0)));
        a.ended(ms(700));
        assert_eq!((a.by_period.clone(), a.fewest(), a.whole()), (vec![4, 0, 0, 1], Some(0), 1));
    }

    #[test]
    fn a_stream_that_ended_has_no_periods_any_more() {
        let mut a = account();
        (0..3).for_each(|_| a.finished(ms(200), ms(220), 8, false));
        a.closed(ms(300));
        a.finished(ms(200), ms(900), 8, false);
        a.ended(ms(1_000));
        assert_eq!((a.by_period.clone(), a.late), (vec![0, 0, 0, 1], 1));
    }

    #[test]
    fn a_request_in_error_is_not_what_was_asked_for() {
        let mut a = account();
        a.finished(ms(200), ms(210), 8, true);
        a.finished(ms(200), ms(220), 8, false);
        a.ended(ms(300));
        assert_eq!((a.by_period.clone(), a.errors, a.sectors), (vec![0, 1, 0, 0], 1, 8));
    }

    #[test]
    fn confidence_is_that_of_independent_periods() {
        let mut a = account();
        // Alternately all and none: standard deviation one half, so 1.96 * 0.5 / sqrt(n), slightly
        // more for n - 1.
        for period in (2..102).step_by(2) {
            (0..3).for_each(|_| a.finished(ms(100 * period), ms(100 * period + 1), 8, false));
        }
        a.ended(ms(10_200));
        assert_eq!((a.periods(), a.quality()), (100, Some(0.5)));
        let found = a.quality_plus_minus().unwrap();
        assert!((found - 1.96 * 0.5 / 99f64.sqrt()).abs() < 1e-9, "{found}");
    }
}
