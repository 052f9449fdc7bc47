//! A limit of an application's rate above the scheduler, as Linux's `blk-throttle` sits above the
//! elevator: a token bucket for bytes and one for requests.
//!
//! A request may pass while no bucket is in debt, and its whole cost is then charged. A bucket may
//! thus go into debt by one request, and the next one waits until the debt is paid. So the size of
//! a request is not bounded by the burst, and the rate is exact in the long run.
//!
//! **Burst.** Unused rate is kept for [`BURST`]. In any interval of length t a throttle passes at
//! most rate * (t + `BURST`) and one request. A shorter burst would lose rate: while another
//! application has the disk for a turn, this one's clients have all their requests below the
//! throttle and send no more. A longer one would let a client that paused disturb others.
//!
//! Time is an argument, and the arithmetic is in integers: wake-up times are exact to the
//! nanosecond, and no fraction of a byte is lost. The driver keeps the requests that wait.

use std::num::NonZeroU64;

use headtime_disk::{Dur, Time};

/// Unused rate is kept for this long. It is the slice of `blk-throttle` on rotating disks
/// (`DFL_THROTL_SLICE_HD`: HZ / 10), and about a turn of BFQ.
pub const BURST: Dur = Dur::from_ms(100);

/// Parts of a unit, so that a rate of 0.001 units per second adds one part per nanosecond.
const PARTS: i128 = 1_000_000_000_000;

/// A rate of more than zero, in thousandths of a unit per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// The highest rate, units per second.
    pub const MAX_PER_SECOND: f64 = 1e12;

    /// Returns a rate of this many units per second, rounded to the nearest thousandth; `None` for
    /// less than 0.0005, for more than [`Rate::MAX_PER_SECOND`], and if it is not a number.
    pub fn per_second(units: f64) -> Option<Rate> {
        let valid = units > 0.0 && units <= Rate::MAX_PER_SECOND;
        NonZeroU64::new(if valid { (units * 1e3).round() as u64 } else { 0 }).map(Rate)
    }

    /// Returns the units per second, for reports only.
    pub fn as_per_second(self) -> f64 {
        self.0.get() as f64 / 1e3
    }
}

/// The limits of an application; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimit {
    /// Bytes read and written.
    pub bytes: Option<Rate>,
    /// Requests of all kinds.
    pub requests: Option<Rate>,
}

impl RateLimit {
    /// Returns whether there is no limit.
    pub fn is_none(&self) -> bool {
        self.bytes.is_none() && self.requests.is_none()
    }
}

/// One bucket.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: Rate,
    /// In [`PARTS`] of a unit; negative: debt.
    level: i128,
    /// For how long unused rate is kept.
    burst: Dur,
    at: Time,
}

impl Bucket {
    /// Returns a bucket with neither credit nor debt.
    fn new(rate: Rate, burst: Dur, now: Time) -> Bucket {
        Bucket { rate, level: 0, burst, at: now }
    }

    fn fill(&mut self, now: Time) {
        let (rate, passed) = (i128::from(self.rate.0.get()), now.saturating_since(self.at));
        self.level = (self.level + rate * i128::from(passed.0)).min(rate * i128::from(self.burst.0));
        self.at = self.at.max(now);
    }

    /// Returns the first instant without debt.
    fn ready_at(&self) -> Time {
        let (rate, debt) = (i128::from(self.rate.0.get()), -self.level.min(0));
        let wait = (debt + rate - 1) / rate;
        self.at + Dur(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    fn charge(&mut self, units: u64) {
        self.level -= i128::from(units) * PARTS;
    }

    /// Changes the rate. What was charged before stays, so that a change gives no credit.
    fn set_rate(bucket: &mut Option<Bucket>, rate: Option<Rate>, burst: Dur, now: Time) {
        *bucket = rate.map(|rate| {
            let mut bucket = bucket.unwrap_or(Bucket::new(rate, burst, now));
            bucket.fill(now);
            bucket.rate = rate;
            // Credit beyond the burst of the new rate is dropped.
            bucket.fill(now);
            bucket
        });
    }
}

/// The state of an application's limits.
#[derive(Clone, Debug)]
pub struct Throttle {
    bytes: Option<Bucket>,
    requests: Option<Bucket>,
    burst: Dur,
}

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle::keeping(BURST)
    }
}

impl Throttle {
    /// Creates a throttle with neither credit nor debt.
    pub fn new(limit: RateLimit, now: Time) -> Throttle {
        let mut throttle = Throttle::default();
        throttle.set(limit, now);
        throttle
    }

    /// Creates a throttle without limits that will keep unused rate for this long.
    pub(crate) const fn keeping(burst: Dur) -> Throttle {
        Throttle { bytes: None, requests: None, burst }
    }

    /// Changes the limits at once. A limit that stays keeps its debt, which is paid at the new
    /// rate.
    pub fn set(&mut self, limit: RateLimit, now: Time) {
        Bucket::set_rate(&mut self.bytes, limit.bytes, self.burst, now);
        Bucket::set_rate(&mut self.requests, limit.requests, self.burst, now);
    }

    /// Returns the limits in force.
    pub fn limit(&self) -> RateLimit {
        RateLimit { bytes: self.bytes.map(|b| b.rate), requests: self.requests.map(|b| b.rate) }
    }

    /// Returns when a request of `bytes` bytes may pass, if none passes before: a past instant
    /// if it may pass at once. A request without bytes, a flush, does not wait for the limit
    /// of bytes.
    pub fn ready_at(&self, bytes: u64) -> Time {
        let of_bytes = self.bytes.as_ref().filter(|_| bytes > 0);
        [of_bytes, self.requests.as_ref()].into_iter().flatten().map(Bucket::ready_at).max().unwrap_or(Time::ZERO)
    }

    /// Lets a request of `bytes` bytes pass and charges it.
    ///
    /// # Errors
    /// When it may pass, if not now; nothing is charged.
    pub fn pass(&mut self, bytes: u64, now: Time) -> Result<(), Time> {
        let ready = self.ready_at(bytes);
        if ready > now {
            return Err(ready);
        }
        self.charge(bytes, now);
        Ok(())
    }

    /// Charges a request of `bytes` bytes that has passed, whatever the debt.
    pub(crate) fn charge(&mut self, bytes: u64, now: Time) {
        for (bucket, units) in [(&mut self.bytes, bytes), (&mut self.requests, 1)] {
            if let Some(bucket) = bucket {
                bucket.fill(now);
                bucket.charge(units);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: f64 = 1e6;
    const SECOND: u64 = 1_000_000_000;

    fn throttle(bytes: Option<f64>, requests: Option<f64>) -> Throttle {
        let rate = |r: Option<f64>| r.map(|r| Rate::per_second(r).expect("a rate"));
        Throttle::new(RateLimit { bytes: rate(bytes), requests: rate(requests) }, Time::ZERO)
    }

    /// Passes requests of `bytes` bytes from `from` to `to`, each as early as it may; returns how
    /// many.
    fn passed(t: &mut Throttle, bytes: u64, from: u64, to: u64) -> u64 {
        let (mut now, mut count) = (Time(from), 0);
        while now.0 < to {
            match t.pass(bytes, now) {
                Ok(()) => count += 1,
                Err(ready) => now = ready,
            }
        }
        count
    }

    #[test]
    fn the_rate_is_kept_in_each_second_whatever_the_sizes() {
        for (rate, bytes) in [(10.0 * MB, 4096), (10.0 * MB, 65_536), (0.7 * MB, 4096), (3e9, 1 << 20)] {
            let mut t = throttle(Some(rate), None);
            for second in 0..5 {
                let got = passed(&mut t, bytes, second * SECOND, (second + 1) * SECOND) * bytes;
                let off = (got as f64 - rate).abs();
                assert!(off < 0.01 * rate, "{got} bytes of {rate} in second {second}");
            }
        }
        let mut t = throttle(None, Some(333.3));
        assert!((332..=336).contains(&passed(&mut t, 1 << 20, 0, SECOND)));
        // No fraction is lost: a thousand seconds have exactly their number, after the first.
        let mut t = throttle(None, Some(0.333));
        assert_eq!(passed(&mut t, 512, 0, 1_000 * SECOND), 333);
    }

    #[test]
    fn a_pause_is_made_up_for_by_the_burst_and_no_more() {
        let mut t = throttle(Some(10.0 * MB), None);
        passed(&mut t, 4096, 0, SECOND);
        for pause in [SECOND, 3600 * SECOND] {
            let from = t.bytes.expect("a limit").at.0 + pause;
            let most = 10.0 * MB * (1.0 + BURST.as_secs_f64());
            let got = passed(&mut t, 4096, from, from + SECOND) * 4096;
            assert!((got as f64) <= most + 4096.0 && got as f64 > most - 4096.0, "{got} bytes, most {most}");
        }
        // A pause shorter than the burst loses nothing.
        let mut t = throttle(Some(10.0 * MB), None);
        let got: u64 =
            (0..10).map(|n| passed(&mut t, 4096, n * SECOND / 10 + 90_000_000, (n + 1) * SECOND / 10) * 4096).sum();
        assert!(got as f64 > 9.99 * MB, "{got}");
    }

    #[test]
    fn the_wake_up_is_the_first_nanosecond_at_which_a_request_passes() {
        let mut t = throttle(Some(7.0), None);
        assert_eq!(t.pass(1, Time(5)), Ok(()));
        // A byte takes 1/7 s less the 5 ns that had passed: rounded up.
        let ready = t.pass(1, Time(5)).unwrap_err();
        assert_eq!(ready, Time(142_857_143));
        assert_eq!(t.pass(1, Time(ready.0 - 1)), Err(ready));
        assert_eq!(t.pass(1, ready), Ok(()));
        // The later of the two limits counts, and a request's size is not bounded.
        let mut t = throttle(Some(MB), Some(2.0));
        assert_eq!(t.pass(2_000_000, Time::ZERO), Ok(()));
        assert_eq!(t.pass(1, Time::ZERO), Err(Time(2 * SECOND)));
        assert_eq!(t.pass(1, Time(2 * SECOND)), Ok(()));
        assert_eq!(t.pass(1, Time(2 * SECOND)), Err(Time(2 * SECOND + 400_000_000)));
    }

    #[test]
    fn a_flush_waits_for_requests_and_not_for_bytes() {
        let mut t = throttle(Some(1.0), None);
        t.pass(1 << 20, Time::ZERO).unwrap();
        assert_eq!(t.pass(0, Time::ZERO), Ok(()));
        let mut t = throttle(Some(MB), Some(1.0));
        t.pass(1, Time::ZERO).unwrap();
        assert_eq!(t.pass(0, Time::ZERO), Err(Time(SECOND)));
    }

    #[test]
    fn a_change_holds_at_once_keeps_debt_and_gives_no_credit() {
        let limit = |mb: f64| RateLimit { bytes: Rate::per_second(mb * MB), requests: None };
        let mut t = throttle(Some(MB), None);
        t.pass(10_000_000, Time::ZERO).unwrap();
        assert_eq!(t.ready_at(1), Time(10 * SECOND));
        t.set(limit(10.0), Time(5 * SECOND));
        assert_eq!(t.ready_at(1), Time(5 * SECOND + SECOND / 2));
        t.set(RateLimit::default(), Time(5 * SECOND));
        assert_eq!((t.ready_at(1), t.pass(1 << 30, Time(5 * SECOND))), (Time::ZERO, Ok(())));
        assert!(t.limit().is_none());
        // What passed without a limit is no debt, and a pause without one no credit.
        t.set(limit(1.0), Time(60 * SECOND));
        assert!(passed(&mut t, 1000, 60 * SECOND, 61 * SECOND) <= 1001);
        // The credit of a high rate is worth no more at a low one.
        t.set(limit(1000.0), Time(70 * SECOND));
        t.pass(1, Time(80 * SECOND)).unwrap();
        t.set(limit(1.0), Time(80 * SECOND));
        assert!(passed(&mut t, 1000, 80 * SECOND, 81 * SECOND) <= 1101);
        assert_eq!(t.limit(), limit(1.0));
    }

    #[test]
    fn rates_outside_of_the_range_are_none() {
        for none in [0.0, -1.0, 0.0004, 1e13, f64::NAN, f64::INFINITY] {
            assert_eq!(Rate::per_second(none), None, "{none}");
        }
        assert_eq!(Rate::per_second(0.5).map(Rate::as_per_second), Some(0.5));
        // The slowest rate and the largest request do not overflow.
        let mut t = throttle(Some(0.001), None);
        t.pass(u64::MAX, Time::ZERO).unwrap();
        assert_eq!(t.ready_at(1), Time(u64::MAX));
    }
}
