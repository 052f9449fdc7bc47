//! The pace of a job: its rate, the estimated time to completion, and the promotion needed to keep
//! its floor.
//!
//! Time is a parameter here: the time since the job started in this process, without pauses.

use std::collections::VecDeque;
use std::time::Duration;

/// The averaging period of the estimate.
const AVERAGING_PERIOD: Duration = Duration::from_secs(180);
/// The shortest interval between samples.
const SAMPLE: Duration = Duration::from_secs(1);
/// The least time for an estimate; a shorter one would fluctuate.
const MIN_ESTIMATE_TIME: Duration = Duration::from_secs(3);

/// The transfer rate, overall and over the last minutes.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    samples: VecDeque<(Duration, u64)>,
    bytes: u64,
    now: Duration,
}

impl Rates {
    /// Adds transferred bytes.
    pub fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Sets the current time, in working time.
    pub fn at(&mut self, now: Duration) {
        self.now = now;
        if self.samples.back().is_none_or(|s| now >= s.0 + SAMPLE) {
            self.samples.push_back((now, self.bytes));
        }
        while self.samples.len() > 2 && self.samples[1].0 + AVERAGING_PERIOD <= now {
            self.samples.pop_front();
        }
    }

    /// Returns the overall rate, bytes a second.
    pub fn overall(&self) -> f64 {
        self.bytes as f64 / self.now.as_secs_f64().max(1e-3)
    }

    /// Returns the rate over the last minutes, bytes a second.
    pub fn lately(&self) -> f64 {
        match self.samples.front() {
            Some(&(at, bytes)) if self.now > at => (self.bytes - bytes) as f64 / (self.now - at).as_secs_f64(),
            _ => self.overall(),
        }
    }

    /// Returns the estimated time for `left` more bytes, at the rate of the last minutes.
    pub fn time_left(&self, left: u64) -> Option<Duration> {
        let rate = self.lately();
        let seconds = left as f64 / rate;
        (self.now >= MIN_ESTIMATE_TIME && rate > 0.0 && seconds < 1e9).then(|| Duration::from_secs_f64(seconds))
    }
}

/// The user's requirements on the rate: either, both or none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Floor {
    /// The least rate, bytes a second.
    pub bytes_s: Option<f64>,
    /// The deadline for all of it, in wall-clock time from now.
    pub within: Option<Duration>,
}

impl Floor {
    /// Returns the floor of a step that transfers `part` of the `all` bytes that are left, `passed`
    /// since the deadline was set: the step gets its share of the time that is left.
    pub fn of_step(self, passed: Duration, part: u64, all: u64) -> Floor {
        let share = if all == 0 { 1.0 } else { (part as f64 / all as f64).min(1.0) };
        Floor { within: self.within.map(|within| within.saturating_sub(passed).mul_f64(share)), ..self }
    }
}

/// The largest debt, in seconds at the floor: after a stall no more than this is made up at once.
const MAX_OWED: f64 = 2.0;
/// The largest credit for bytes from gaps beyond the floor, in seconds at the floor: the period
/// over which a floor is kept.
const MAX_AHEAD: f64 = 3.0;
/// The longest time that one call accounts for; a longer one means that no work was possible (a
/// pause, a suspended machine).
const LONGEST_STEP: Duration = Duration::from_secs(1);
/// The least time to a deadline in calculations; otherwise the rate would become infinite.
const MIN_TIME_LEFT: Duration = Duration::from_secs(10);

/// The reciprocal of the share of the time to a deadline that is kept in reserve, since the rate of
/// the gaps is a mean over the last minutes.
const RESERVE: u32 = 50;

/// Calculates the bytes to promote.
///
/// A least rate is kept as a debt: it grows with time, and shrinks with delivered bytes, whether
/// from gaps or promoted.
///
/// A deadline is not a rate. The rate of the gaps falls towards the end of a scan, and a rate based
/// on their current yield would promote all that is missing at once in the last part of the time.
/// So the same rate is promoted from the beginning as will be needed throughout (`spread`).
#[derive(Clone, Debug)]
pub struct Debt {
    floor: Floor,
    /// Bytes behind the least rate; negative if ahead.
    owed: f64,
    /// Bytes to promote for the deadline; negative if more than that were promoted.
    due: f64,
    /// The promotion rate for the deadline, bytes a second.
    rate: f64,
    /// Bytes delivered, and those of them that were promoted.
    came: u64,
    promoted: u64,
    /// Bytes from gaps.
    free: Rates,
    worked: Duration,
    last: Duration,
}

impl Debt {
    /// Creates a debt of zero.
    pub fn new(floor: Floor) -> Debt {
        let (zero, free) = (Duration::ZERO, Rates::default());
        Debt { floor, owed: 0.0, due: 0.0, rate: 0.0, came: 0, promoted: 0, free, worked: zero, last: zero }
    }

    /// Counts delivered bytes.
    pub fn delivered(&mut self, bytes: u64) {
        self.owed -= bytes as f64;
        self.came += bytes;
    }

    /// Counts bytes that promoted tasks delivered. They count as [delivered](Debt::delivered), too.
    pub fn promoted(&mut self, bytes: u64) {
        self.due -= bytes as f64;
        self.promoted += bytes;
    }

    /// Returns the time to the deadline, less [`RESERVE`], at `wall` since the job started; `None`
    /// without a deadline.
    fn time_left(&self, wall: Duration) -> Option<Duration> {
        self.floor.within.map(|within| (within - within / RESERVE).saturating_sub(wall).max(MIN_TIME_LEFT))
    }

    /// Returns the rate needed for `left` bytes at `wall` since the job started.
    pub fn needed(&self, wall: Duration, left: u64) -> Option<f64> {
        let by = self.time_left(wall).map(|time| left as f64 / time.as_secs_f64());
        match (self.floor.bytes_s, by) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns the bytes that should be in flight as promoted work at `wall` since the job started.
    /// Time without work (`working` false) adds no debt.
    pub fn owes(&mut self, wall: Duration, left: u64, working: bool) -> u64 {
        let step = wall.saturating_sub(self.last).min(LONGEST_STEP);
        self.last = wall;
        if working {
            self.worked += step;
        }
        // Delivered bytes may be counted before their promotion is.
        self.free.bytes = self.free.bytes.max(self.came.saturating_sub(self.promoted));
        self.free.at(self.worked);
        let step = if working { step.as_secs_f64() } else { 0.0 };
        if let Some(rate) = self.floor.bytes_s {
            self.owed = (self.owed + rate * step).clamp(-rate * MAX_AHEAD, rate * MAX_OWED);
        }
        // The rate of the gaps is not known earlier.
        if let Some(time) = self.time_left(wall).filter(|_| self.worked >= MIN_ESTIMATE_TIME) {
            let rate = spread(self.free.lately(), left as f64, time.as_secs_f64());
            // A rate that fell with the remaining bytes would never complete them.
            self.rate = if time == MIN_TIME_LEFT { rate.max(self.rate) } else { rate };
            let rate = self.rate;
            self.due = (self.due + rate * step).clamp(-rate * MAX_AHEAD, rate * MAX_OWED);
        }
        let rate = self.floor.bytes_s.map_or(0.0, |_| self.owed);
        (rate.max(self.due).max(0.0) as u64).min(left)
    }
}

/// The time that gaps need for the rest of a scan, as a multiple of the rest divided by their
/// current rate ([`spread`]).
const GAP_SLOWDOWN: f64 = 1.75;
/// Intervals of the numerical integration in [`spread`].
const PARTS: usize = 64;

/// Returns the constant promotion rate, bytes a second, with which `left` bytes are done after
/// `time` seconds if gaps yield `free` bytes a second now.
///
/// The yield of gaps falls with the fraction f of `left` that remains, about as f to the power of
/// 3/7: alone they take [`GAP_SLOWDOWN`] = 7/4 times as long as at the current rate (below, s =
/// f^(4/7)). So a scan takes 1.53 times as long as at the mean rate of its first half. Measured
/// were 1.5 to 1.9 times (`oltp`, Atlas 10K and 20 TB drive, sptf-joint and sptf-ahead; `headtime
/// reproduce X9`); a law in the middle of these promotes more at the beginning than is needed
/// later. With r the current rate of gaps and x that of promotion,
///
/// ```text
/// left * df/dt = -(r f^(3/7) + x),  time = 7/4 left / r * integral from 0 to 1 of s^(3/4) / (s^(3/4) + x / r) ds
/// ```
///
/// On a disk whose background work runs mostly in idle time the rate does not fall. The job then
/// gets ahead, and less is promoted.
fn spread(free: f64, left: f64, time: f64) -> f64 {
    if free <= 0.0 {
        return left / time;
    }
    let share = time * free / (GAP_SLOWDOWN * left);
    if left <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    let part = |i: usize| ((i as f64 + 0.5) / PARTS as f64).powf(0.75);
    let parts: [f64; PARTS] = std::array::from_fn(part);
    let integral = |y: f64| parts.iter().map(|p| p / (p + y)).sum::<f64>() / PARTS as f64;
    // More promotion takes less time; without gaps it would take `left / time`.
    let (mut low, mut high) = (0.0, left / time / free);
    for _ in 0..30 {
        let y = (low + high) / 2.0;
        match integral(y) > share {
            true => low = y,
            false => high = y,
        }
    }
    high * free
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
        assert_eq!(r.time_left(60 * MB).unwrap().as_secs(), 60);
        assert!(r.samples.len() < 200);
    }

    #[test]
    fn nothing_is_estimated_from_nothing() {
        let mut r = Rates::default();
        r.at(s(1.0));
        assert_eq!(r.time_left(MB), None);
        r.at(s(10.0));
        assert_eq!(r.time_left(MB), None, "nothing has come yet");
    }

    #[test]
    fn what_is_missing_to_the_floor_is_owed_and_no_more() {
        let mut d = Debt::new(Floor { bytes_s: Some(1e6), within: None });
        let mut promoted = 0;
        for tick in 1..=400 {
            // A quarter of the floor comes from gaps, and the debt is delivered at once.
            d.delivered(MB / 16);
            let owed = d.owes(s(f64::from(tick) * 0.25), u64::MAX, true);
            d.delivered(owed);
            promoted += owed;
        }
        assert!((promoted as f64 / 75e6 - 1.0).abs() < 0.02, "three quarters of 100 MB: {promoted}");
    }

    #[test]
    fn a_floor_that_is_kept_for_free_promotes_nothing() {
        let mut d = Debt::new(Floor { bytes_s: Some(1e6), within: None });
        for tick in 1..=100 {
            d.delivered(MB / 2);
            assert_eq!(d.owes(s(f64::from(tick) * 0.25), u64::MAX, true), 0);
        }
        let quiet = (1..=40).find(|t| d.owes(s(25.0 + f64::from(*t) * 0.25), u64::MAX, true) > 0).unwrap();
        assert!((10..=14).contains(&quiet), "what came beyond it counts for three seconds, not for ever: {quiet}");
    }

    #[test]
    fn what_comes_before_it_counts_as_promoted_leaves_a_rate() {
        let mut d = Debt::new(Floor { bytes_s: None, within: Some(s(100_000.0)) });
        d.delivered(MB);
        d.owes(s(0.25), u64::MAX, true);
        d.promoted(MB);
        let owed = (1..=1_000).map(|tick| d.owes(s(f64::from(tick) * 0.25), 1 << 30, true));
        assert!(owed.max() < Some(MB), "no more than is needed from now on");
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

    /// Simulates a scan of a GB of which gaps alone would deliver 50, 90, 99, 99.9 and 100% after
    /// `marks` seconds; returns the bytes promoted in each tenth of the time, and the completion
    /// time. `owes` returns the bytes to promote, given the time, the remaining bytes, and the last
    /// yield of gaps.
    fn scan(marks: [f64; 5], within: f64, mut owes: impl FnMut(f64, f64, f64) -> f64) -> ([f64; 10], f64) {
        let at = [1e9, 5e8, 1e8, 1e7, 1e6, 0.0];
        let (mut left, mut tenths, mut second) = (1e9, [0.0; 10], 0.0);
        let mut free = 0.0;
        while left >= 1e3 && second < 3.0 * within {
            let stage = (0..4).find(|&i| left > at[i + 1]).unwrap_or(4);
            let took = marks[stage] - if stage > 0 { marks[stage - 1] } else { 0.0 };
            second += 1.0;
            let came: f64 = f64::min((at[stage] - at[stage + 1]) / took, left);
            free += came;
            left -= came;
            let promoted = owes(second, left, came).min(left);
            left -= promoted;
            tenths[((second / within * 10.0) as usize).min(9)] += promoted;
        }
        assert!(free > 0.0);
        (tenths, second)
    }

    /// Returns what `debt` promotes, all of which is delivered at once.
    fn promoting(debt: &mut Debt) -> impl FnMut(f64, f64, f64) -> f64 + '_ {
        |second, left, came| {
            debt.delivered(came as u64);
            let owed = debt.owes(s(second), left as u64, true);
            debt.delivered(owed);
            debt.promoted(owed);
            owed as f64
        }
    }

    #[test]
    fn a_deadline_is_paid_for_all_the_time_and_not_at_its_end() {
        // X9: sptf-joint and sptf-ahead on an Atlas 10K, the same on a 20 TB drive; ten times as
        // long.
        let scans = [
            [683.0, 1_528.0, 2_063.0, 2_365.0, 2_427.0],
            [818.0, 1_858.0, 2_551.0, 3_084.0, 3_151.0],
            [450.0, 924.0, 1_170.0, 1_282.0, 1_366.0],
            [655.0, 1_372.0, 1_915.0, 2_389.0, 2_392.0],
        ];
        for (marks, part) in scans.into_iter().flat_map(|m| [0.5, 0.7, 0.85].map(|part| (m.map(|t| 10.0 * t), part))) {
            let within = marks[4] * part;
            let mut debt = Debt::new(Floor { bytes_s: None, within: Some(s(within)) });
            let (tenths, done) = scan(marks, within, promoting(&mut debt));
            assert!(done <= within, "{marks:?}, {part}: {done} of {within}");
            // The promotion if the current rate of the gaps were assumed to persist.
            let (late, _) = scan(marks, within, |second, left, came| {
                (left / (within - second).max(MIN_TIME_LEFT.as_secs_f64()) - came).max(0.0)
            });
            let peak = |of: &[f64; 10]| of.iter().copied().fold(0.0, f64::max);
            // If little is missing, little is promoted in any part of the time.
            let most = if part < 0.8 { peak(&late) / 1.5 } else { 0.02e9 };
            assert!(peak(&tenths) < most, "{marks:?}, {part}: {late:.0?}, {tenths:.0?}");
        }
    }

    #[test]
    fn a_scan_of_two_minutes_is_done_about_in_time() {
        let within = 121.0;
        let mut debt = Debt::new(Floor { bytes_s: None, within: Some(s(within)) });
        let (_, done) = scan([68.0, 153.0, 206.0, 236.0, 243.0], within, promoting(&mut debt));
        assert!((within - 5.0..within + 3.0).contains(&done), "{done}");
    }

    #[test]
    fn a_deadline_that_gaps_keep_costs_nothing() {
        let marks = [6_830.0, 15_280.0, 20_630.0, 23_650.0, 24_270.0];
        let mut debt = Debt::new(Floor { bytes_s: None, within: Some(s(32_000.0)) });
        let (tenths, done) = scan(marks, 32_000.0, promoting(&mut debt));
        assert!(tenths.iter().sum::<f64>() < 2e6 && done < 24_300.0, "{tenths:?}");
        assert_eq!((spread(0.0, 1e6, 100.0), spread(2e4, 1e6, 100.0)), (1e4, 0.0));
    }

    #[test]
    fn two_steps_share_the_time_to_one_deadline() {
        let whole = Floor { bytes_s: Some(5.0), within: Some(s(100.0)) };
        let first = whole.of_step(s(0.0), 300, 400);
        assert_eq!(first, Floor { bytes_s: Some(5.0), within: Some(s(75.0)) });
        // The last step gets all that is left: more if the first was early, nothing if late.
        assert_eq!(whole.of_step(s(30.0), 100, 100).within, Some(s(70.0)));
        assert_eq!(whole.of_step(s(130.0), 100, 100).within, Some(s(0.0)));
        assert_eq!(
            (whole.of_step(s(0.0), 0, 0).within, Floor::default().of_step(s(9.0), 1, 2).within),
            (whole.within, None)
        );
    }

    #[test]
    fn a_deadline_needs_what_is_left_over_the_time_that_is_left() {
        let d = Debt::new(Floor { bytes_s: None, within: Some(s(100.0)) });
        assert_eq!(d.needed(s(0.0), 980 * MB), Some(10e6), "2% are kept in reserve");
        assert_eq!(d.needed(s(50.0), 240 * MB), Some(5e6));
        assert_eq!(d.needed(s(500.0), 100 * MB), Some(10e6), "past it, as if ten seconds were left");
        assert_eq!(Debt::new(Floor::default()).needed(s(0.0), MB), None);
    }
}
