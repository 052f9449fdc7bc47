//! How fast a job goes, when it will end, and what must be promoted so that it does not fall behind.
//!
//! Time is an argument here: a moment is the time since the job began to run in this process, with pauses left out.

use std::collections::VecDeque;
use std::time::Duration;

/// The last minutes, for the estimate.
const LATELY: Duration = Duration::from_secs(180);
/// Samples are at least so far apart.
const SAMPLE: Duration = Duration::from_secs(1);
/// An estimate from less time than this would jump about.
const LEAST: Duration = Duration::from_secs(3);

/// Bytes over time, over all of it and over the last minutes.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    samples: VecDeque<(Duration, u64)>,
    bytes: u64,
    now: Duration,
}

impl Rates {
    /// So many bytes more.
    pub fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// It is `now`, in working time.
    pub fn at(&mut self, now: Duration) {
        self.now = now;
        if self.samples.back().is_none_or(|s| now >= s.0 + SAMPLE) {
            self.samples.push_back((now, self.bytes));
        }
        while self.samples.len() > 2 && self.samples[1].0 + LATELY <= now {
            self.samples.pop_front();
        }
    }

    /// Bytes a second since the beginning.
    pub fn overall(&self) -> f64 {
        self.bytes as f64 / self.now.as_secs_f64().max(1e-3)
    }

    /// Bytes a second over the last minutes.
    pub fn lately(&self) -> f64 {
        match self.samples.front() {
            Some(&(at, bytes)) if self.now > at => (self.bytes - bytes) as f64 / (self.now - at).as_secs_f64(),
            _ => self.overall(),
        }
    }

    /// How long `left` more bytes will take, if the last minutes are anything to go by.
    pub fn left(&self, left: u64) -> Option<Duration> {
        let rate = self.lately();
        let seconds = left as f64 / rate;
        (self.now >= LEAST && rate > 0.0 && seconds < 1e9).then(|| Duration::from_secs_f64(seconds))
    }
}

/// What the user asks of the rate. Either, both or none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Floor {
    /// At least so many bytes a second.
    pub bytes_s: Option<f64>,
    /// All of it within so long from now, by the clock on the wall.
    pub within: Option<Duration>,
}

/// What is owed to the floor at most, in seconds of it: after a stall no more than this is made good at once.
const MOST_OWED: f64 = 2.0;
/// How much of what came for free beyond the floor counts for later: a floor is kept over such a time.
const MOST_AHEAD: f64 = 3.0;
/// What one reckoning covers at most; a longer time means that nobody could work (a pause, a machine asleep).
const LONGEST_STEP: Duration = Duration::from_secs(1);
/// A deadline that is nearer than this counts as this far: the rate would become infinite.
const NEAREST: Duration = Duration::from_secs(10);

/// Reckons what has to be promoted. A floor is kept as a debt: it grows with time, and shrinks with what comes, whether
/// for free or not.
#[derive(Clone, Copy, Debug)]
pub struct Debt {
    floor: Floor,
    /// Bytes behind the floor; negative: ahead of it.
    owed: f64,
    last: Duration,
}

impl Debt {
    /// Nothing is owed yet.
    pub fn new(floor: Floor) -> Debt {
        Debt { floor, owed: 0.0, last: Duration::ZERO }
    }

    /// So many bytes have come.
    pub fn came(&mut self, bytes: u64) {
        self.owed -= bytes as f64;
    }

    /// The rate that is needed now: `wall` since the job began, `left` bytes to do.
    pub fn needed(&self, wall: Duration, left: u64) -> Option<f64> {
        let by = self.floor.within.map(|within| {
            let left_s = within.saturating_sub(wall).max(NEAREST).as_secs_f64();
            left as f64 / left_s
        });
        match (self.floor.bytes_s, by) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }

    /// It is `wall` since the job began: the bytes that should be under way as promoted work. Time while it could not work
    /// (`working` false) makes no debt.
    pub fn owes(&mut self, wall: Duration, left: u64, working: bool) -> u64 {
        let step = wall.saturating_sub(self.last).min(LONGEST_STEP);
        self.last = wall;
        let Some(rate) = self.needed(wall, left) else { return 0 };
        if working {
            self.owed += rate * step.as_secs_f64();
        }
        self.owed = self.owed.clamp(-rate * MOST_AHEAD, rate * MOST_OWED);
        if self.owed <= 0.0 { 0 } else { (self.owed as u64).min(left) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;
    fn s(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn the_estimate_follows_the_last_minutes_and_not_the_first_hour() {
        let mut r = Rates::default();
        for second in 0..3600 {
            r.at(s(f64::from(second)));
            r.add(if second < 3000 { 10 * MB } else { MB });
        }
        r.at(s(3600.0));
        assert!((r.lately() / 1e6 - 1.0).abs() < 0.01, "{}", r.lately());
        assert!((r.overall() / 1e6 - 8.5).abs() < 0.01);
        assert_eq!(r.left(60 * MB).unwrap().as_secs(), 60);
        assert!(r.samples.len() < 200);
    }

    #[test]
    fn nothing_is_estimated_from_nothing() {
        let mut r = Rates::default();
        r.at(s(1.0));
        assert_eq!(r.left(MB), None);
        r.at(s(10.0));
        assert_eq!(r.left(MB), None, "nothing has come yet");
    }

    #[test]
    fn what_is_missing_to_the_floor_is_owed_and_no_more() {
        let mut d = Debt::new(Floor { bytes_s: Some(1e6), within: None });
        let mut promoted = 0;
        for tick in 1..=400 {
            // A quarter of the floor comes for free, and what is owed comes at once.
            d.came(MB / 16);
            let owed = d.owes(s(f64::from(tick) * 0.25), u64::MAX, true);
            d.came(owed);
            promoted += owed;
        }
        assert!((promoted as f64 / 75e6 - 1.0).abs() < 0.02, "three quarters of 100 MB: {promoted}");
    }

    #[test]
    fn a_floor_that_is_kept_for_free_promotes_nothing() {
        let mut d = Debt::new(Floor { bytes_s: Some(1e6), within: None });
        for tick in 1..=100 {
            d.came(MB / 2);
            assert_eq!(d.owes(s(f64::from(tick) * 0.25), u64::MAX, true), 0);
        }
        let quiet = (1..=40).find(|t| d.owes(s(25.0 + f64::from(*t) * 0.25), u64::MAX, true) > 0).unwrap();
        assert!((10..=14).contains(&quiet), "what came beyond it counts for three seconds, not for ever: {quiet}");
    }

    #[test]
    fn a_pause_is_not_made_good_by_a_burst() {
        let mut d = Debt::new(Floor { bytes_s: Some(1e6), within: None });
        for tick in 1..=4000 {
            assert_eq!(d.owes(s(f64::from(tick) * 0.25), u64::MAX, false), 0);
        }
        assert!(d.owes(s(1000.25), u64::MAX, true) <= MB);
        assert!(d.owes(s(9000.0), u64::MAX, true) <= 2 * MB, "nor a night of sleep of the whole machine");
    }

    #[test]
    fn a_deadline_needs_what_is_left_over_the_time_that_is_left() {
        let d = Debt::new(Floor { bytes_s: None, within: Some(s(100.0)) });
        assert_eq!(d.needed(s(0.0), 1000 * MB), Some(10e6));
        assert_eq!(d.needed(s(50.0), 250 * MB), Some(5e6));
        assert_eq!(d.needed(s(500.0), 100 * MB), Some(10e6), "past it, as if ten seconds were left");
        assert_eq!(Debt::new(Floor::default()).needed(s(0.0), MB), None);
    }
}
