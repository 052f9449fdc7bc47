//! How fast a job goes, when it will end, and what must be promoted so that it does not fall
//! behind.
//!
//! Time is an argument here: a moment is the time since the job began to run in this process, with
//! pauses left out.

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

/// What is owed to the floor at most, in seconds of it: after a stall no more than this is made
/// good at once.
const MOST_OWED: f64 = 2.0;
/// How much of what came for free beyond the floor counts for later: a floor is kept over such a
/// time.
const MOST_AHEAD: f64 = 3.0;
/// What one reckoning covers at most; a longer time means that nobody could work (a pause, a
/// machine asleep).
const LONGEST_STEP: Duration = Duration::from_secs(1);
/// A deadline that is nearer than this counts as this far: the rate would become infinite.
const NEAREST: Duration = Duration::from_secs(10);

/// One part in this of the time up to a deadline is kept in reserve: the rate of the gaps is the
/// mean of the last minutes.
const RESERVE: u32 = 50;

/// Reckons what has to be promoted.
///
/// A rate is kept as a debt: it grows with time, and shrinks with what comes, whether for free or
/// not.
///
/// A deadline is not a rate. What gaps bring falls while a scan comes to its end, and a rate that
/// counts on what they bring now would have all that is missing promoted in the last part of the
/// time, at once. So as much is promoted from the beginning as will be needed all the time
/// ([`spread`]).
#[derive(Clone, Debug)]
pub struct Debt {
    floor: Floor,
    /// Bytes behind the rate; negative: ahead of it.
    owed: f64,
    /// Bytes to promote for the deadline; negative: more than that were.
    due: f64,
    /// Bytes a second that are promoted for it.
    rate: f64,
    /// Bytes that have come, and those of them that were promoted.
    came: u64,
    promoted: u64,
    /// What came for free.
    free: Rates,
    worked: Duration,
    last: Duration,
}

impl Debt {
    /// Nothing is owed yet.
    pub fn new(floor: Floor) -> Debt {
        let (zero, free) = (Duration::ZERO, Rates::default());
        Debt { floor, owed: 0.0, due: 0.0, rate: 0.0, came: 0, promoted: 0, free, worked: zero, last: zero }
    }

    /// Counts delivered bytes.
    pub fn came(&mut self, bytes: u64) {
        self.owed -= bytes as f64;
        self.came += bytes;
    }

    /// Counts bytes that promoted tasks delivered. They count as [delivered](Debt::came), too.
    pub fn promoted(&mut self, bytes: u64) {
        self.due -= bytes as f64;
        self.promoted += bytes;
    }

    /// The time left for it, less [`RESERVE`]: `wall` since the job began; `None`: as long as it
    /// takes.
    fn time_left(&self, wall: Duration) -> Option<Duration> {
        self.floor.within.map(|within| (within - within / RESERVE).saturating_sub(wall).max(NEAREST))
    }

    /// The rate that is needed now: `wall` since the job began, `left` bytes to do.
    pub fn needed(&self, wall: Duration, left: u64) -> Option<f64> {
        let by = self.time_left(wall).map(|time| left as f64 / time.as_secs_f64());
        match (self.floor.bytes_s, by) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }

    /// It is `wall` since the job began: the bytes that should be under way as promoted work. Time
    /// while it could not work (`working` false) makes no debt.
    pub fn owes(&mut self, wall: Duration, left: u64, working: bool) -> u64 {
        let step = wall.saturating_sub(self.last).min(LONGEST_STEP);
        self.last = wall;
        if working {
            self.worked += step;
        }
        // What was promoted may be said to have come before it is said that it was promoted.
        self.free.bytes = self.free.bytes.max(self.came.saturating_sub(self.promoted));
        self.free.at(self.worked);
        let step = if working { step.as_secs_f64() } else { 0.0 };
        if let Some(rate) = self.floor.bytes_s {
            self.owed = (self.owed + rate * step).clamp(-rate * MOST_AHEAD, rate * MOST_OWED);
        }
        // The rate of the gaps is not known before.
        if let Some(time) = self.time_left(wall).filter(|_| self.worked >= LEAST) {
            let rate = spread(self.free.lately(), left as f64, time.as_secs_f64());
            // A rate that fell with what is left would never come to the end.
            self.rate = if time == NEAREST { rate.max(self.rate) } else { rate };
            let rate = self.rate;
            self.due = (self.due + rate * step).clamp(-rate * MOST_AHEAD, rate * MOST_OWED);
        }
        let rate = self.floor.bytes_s.map_or(0.0, |_| self.owed);
        (rate.max(self.due).max(0.0) as u64).min(left)
    }
}

/// Time that gaps need for the rest of a scan, as a multiple of the rest divided by their present
/// rate ([`spread`]).
const SLOWS: f64 = 1.75;
/// Parts of the integral in [`spread`].
const PARTS: usize = 64;

/// Bytes a second to promote from now on, always as many, so that `left` bytes are done after
/// `time` seconds, gaps bringing `free` bytes a second now.
///
/// What gaps bring falls with the share f of `left` that is left, about as f to the power of 3/7:
/// alone they take [`SLOWS`] = 7/4 times as long as at the rate of now (below, s = f^(4/7)). So a
/// scan takes 1.53 times as long as at the mean rate of its first half. Measured were 1.5 to 1.9
/// times (`oltp`, Atlas 10K and 20 TB drive, sptf-joint and sptf-ahead; `headtime reproduce X9`); a
/// law in the middle of these promotes more at the beginning than is needed later. With r the rate
/// of gaps now and x that of promotion,
///
/// ```text
/// left * df/dt = -(r f^(3/7) + x),  time = SLOWS left / r * integral from 0 to 1 of s^(3/4) / (s^(3/4) + x / r) ds
/// ```
///
/// On a disk on which idle time brings most the rate does not fall. Then it is found to be ahead,
/// and less is promoted.
fn spread(free: f64, left: f64, time: f64) -> f64 {
    if free <= 0.0 {
        return left / time;
    }
    let share = time * free / (SLOWS * left);
    if left <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    let part = |i: usize| ((i as f64 + 0.5) / PARTS as f64).powf(0.75);
    let parts: [f64; PARTS] = std::array::from_fn(part);
    let integral = |y: f64| parts.iter().map(|p| p / (p + y)).sum::<f64>() / PARTS as f64;
    // The more is promoted the less time it takes; without gaps it would be `left / time`.
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
    fn what_comes_before_it_counts_as_promoted_leaves_a_rate() {
        let mut d = Debt::new(Floor { bytes_s: None, within: Some(s(100_000.0)) });
        d.came(MB);
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

    /// Bytes promoted in each tenth of the time, and when it is done, of a scan of a GB of which
    /// gaps alone would bring 50, 90, 99, 99.9 and 100% after `marks` seconds; `owes`: bytes to
    /// promote, given the time, what is left, and what gaps just brought.
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

    /// What `debt` has promoted, all of which comes at once.
    fn promoting(debt: &mut Debt) -> impl FnMut(f64, f64, f64) -> f64 + '_ {
        |second, left, came| {
            debt.came(came as u64);
            let owed = debt.owes(s(second), left as u64, true);
            debt.came(owed);
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
            // What would be promoted if the rate of the gaps were taken to stay, as it is.
            let (late, _) = scan(marks, within, |second, left, came| {
                (left / (within - second).max(NEAREST.as_secs_f64()) - came).max(0.0)
            });
            let peak = |of: &[f64; 10]| of.iter().copied().fold(0.0, f64::max);
            // Where little is missing, little is promoted in any part of the time.
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
    fn a_deadline_needs_what_is_left_over_the_time_that_is_left() {
        let d = Debt::new(Floor { bytes_s: None, within: Some(s(100.0)) });
        assert_eq!(d.needed(s(0.0), 980 * MB), Some(10e6), "2% are kept in reserve");
        assert_eq!(d.needed(s(50.0), 240 * MB), Some(5e6));
        assert_eq!(d.needed(s(500.0), 100 * MB), Some(10e6), "past it, as if ten seconds were left");
        assert_eq!(Debt::new(Floor::default()).needed(s(0.0), MB), None);
    }
}
