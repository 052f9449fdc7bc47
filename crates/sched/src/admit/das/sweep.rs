//! Slack: at every deadline, the time beyond what must be done by then.
//!
//! The demand of the current periods changes from decision to decision and counts at their ends.
//! The demand of future periods ([`super::calendar`]) does not change, so of all deadlines between
//! two such ends only the minimum matters. A sweep visits each end once, however many deadlines
//! there are.
//!
//! Deadlines up to the last end of a second period are evaluated one by one. Beyond, demand is
//! bounded by linear growth; streams take at most all of the time (condition 2), so slack only
//! grows from there.

use headtime_disk::{Dur, Time};

use super::calendar::{Deadlines, Periodic, evenly};

/// The end of the current period of one or more streams, and all deadlines from there until the
/// next such end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Time of the end.
    pub end: Time,
    /// The time until `end` from the start of the run, less the demand of future periods due by
    /// then, in ns.
    here: i64,
    /// The minimum of this at deadlines of future periods, from `end` on.
    pub later: i64,
    /// Demand of the current periods due here.
    pub must: u64,
    /// Whether the deadline counts.
    pub counts: bool,
    /// Maximum use by optional streams by then.
    pub claims: u64,
    /// Least slack of mandatory streams at deadlines before `end`, in ns; set by [`sweep`].
    pub before: i64,
}

/// The least slack at any deadline, in ns; negative if deadlines may be missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slack {
    /// The time from which it counts: the drive is free by then.
    pub from: Time,
    /// Of mandatory streams alone.
    pub mandatory: i64,
    /// Including the maximum use by optional streams before their ends; at most `mandatory`.
    pub all: i64,
}

/// Slack without deadlines.
const ENDLESS: i64 = i64::MAX;

/// Returns the time from the start of the run until `d`, less `due`.
fn left(d: Time, due: u64) -> i64 {
    signed(d.0).saturating_sub(signed(due))
}

fn signed(ns: u64) -> i64 {
    ns.min(i64::MAX as u64) as i64
}

/// Returns the points at these sorted ends; `all`: the demand of mandatory streams.
pub(super) fn points(ends: impl Iterator<Item = Time>, all: &[Periodic]) -> Vec<Point> {
    let none = Point { end: Time::ZERO, here: 0, later: ENDLESS, must: 0, counts: false, claims: 0, before: ENDLESS };
    let mut points: Vec<Point> = Vec::new();
    for end in ends {
        if points.last().is_none_or(|last| last.end < end) {
            points.push(Point { end, ..none });
        }
    }
    let last = all.iter().map(|p| p.end + p.period).max().unwrap_or(Time::ZERO);
    let mut deadlines = Deadlines::of(all);
    let upto = |d: Time| Time(d.min(last).0 + 1);
    for i in 0..points.len() {
        let next = points.get(i + 1).map_or(Time::NEVER, |p| p.end).min(upto(last));
        let point = &mut points[i];
        let here = deadlines.next_before(upto(point.end));
        point.here = left(point.end, deadlines.due_by(point.end));
        let later = std::iter::from_fn(|| deadlines.next_before(next));
        let counts = here.into_iter().chain(later).filter(|d| d.counts);
        point.later = counts.map(|d| left(d.at, d.due)).min().unwrap_or(ENDLESS);
    }
    // All demand due at ends of mandatory streams' periods is due by then.
    if let Some(point) = points.iter_mut().rfind(|p| p.end <= last && all.iter().any(|p| p.counts)) {
        point.later = point.later.min(left(last, evenly(all, last)));
    }
    points
}

/// Computes the slack over all deadlines. The drive is free at `from` at the latest; late mandatory
/// requests take `late` before anything else.
pub(super) fn sweep(points: &mut [Point], from: Time, late: Dur) -> Slack {
    let mut slack = Slack { from, mandatory: ENDLESS, all: ENDLESS };
    // Demand due by the current point, and maximum use by optional streams by then.
    let (mut must, mut claims) = (left(from, 0).saturating_add(signed(late.0)), 0i64);
    for point in points {
        point.before = slack.mandatory;
        must = must.saturating_add(signed(point.must));
        claims = claims.saturating_add(signed(point.claims));
        let here = if point.counts { point.here } else { ENDLESS };
        let least = here.min(point.later);
        if least < ENDLESS {
            slack.mandatory = slack.mandatory.min(least.saturating_sub(must));
            slack.all = slack.all.min(least.saturating_sub(must).saturating_sub(claims));
        }
    }
    slack
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// `work` ms in each `period` ms; the current period, in which all of it is due, ends at `by`.
    fn mandatory(by: u64, work: u64, period: u64) -> Periodic {
        Periodic { end: ms(by), period: Dur::from_ms(period), work: work * 1_000_000, counts: true }
    }

    /// Points with the whole demand of the current periods, and the use by optional streams by some
    /// instants, in ms.
    fn laid(all: &[Periodic], optional: &[(u64, u64)]) -> Vec<Point> {
        let mut ends: Vec<Time> = all.iter().map(|p| p.end).chain(optional.iter().map(|o| ms(o.0))).collect();
        ends.sort_unstable();
        let mut points = points(ends.into_iter(), all);
        for point in &mut points {
            let here = || all.iter().filter(|p| p.end == point.end);
            (point.must, point.counts) = (here().map(|p| p.work).sum(), here().count() > 0);
            point.claims = optional.iter().filter(|o| ms(o.0) == point.end).map(|o| o.1 * 1_000_000).sum();
        }
        points
    }

    fn slack(points: &mut [Point], from: u64, late: u64) -> (i64, i64) {
        let slack = sweep(points, ms(from), Dur::from_ms(late));
        (slack.mandatory / 1_000_000, slack.all / 1_000_000)
    }

    #[test]
    fn with_one_period_slack_is_what_figure_2_has_left() {
        // The paper's example: three requests of 30 ms with 100 ms to go.
        let mut points = laid(&[mandatory(500, 90, 500)], &[(500, 7)]);
        assert_eq!(slack(&mut points, 400, 0), (10, 3));
        assert_eq!(slack(&mut points, 400, 4), (6, -1));
        let none = sweep(&mut [], ms(400), Dur::ZERO);
        assert_eq!((none.mandatory, none.all), (ENDLESS, ENDLESS));
    }

    #[test]
    fn a_shorter_period_asks_again_before_a_longer_ones_end() {
        // 40 of each 100, and 300 of 1000: by 1000, 10 times 40 and 300.
        let mut points = laid(&[mandatory(100, 40, 100), mandatory(1000, 300, 1000)], &[]);
        assert_eq!(slack(&mut points, 0, 0), (60, 60));
        assert_eq!((points[0].before, points[1].before / 1_000_000), (ENDLESS, 60));
        let mut points = laid(&[mandatory(100, 40, 100), mandatory(1000, 580, 1000)], &[]);
        assert_eq!(slack(&mut points, 0, 0).0, 20);
    }

    #[test]
    fn what_is_asked_for_is_due_in_steps() {
        // 124 by 200, 217 by 300, 341 by 400, 558 by 600, 930 by 1000; by linear growth 279 by 300
        // and 372 by 400.
        let mut points = laid(&[mandatory(200, 124, 200), mandatory(300, 93, 300), mandatory(1000, 31, 1000)], &[]);
        assert_eq!(slack(&mut points, 0, 0), (42, 42));
        let before: Vec<i64> = points.iter().map(|p| p.before / 1_000_000).skip(1).collect();
        assert_eq!(before, [76, 42]);
        // Half of it done: at 200 there is time for 138 before the next release of the shorter
        // ones.
        points[0].must /= 2;
        assert_eq!((slack(&mut points, 0, 0).0, points[1].before / 1_000_000), (104, 138));
    }

    #[test]
    fn what_optional_streams_take_counts_at_the_deadlines_behind_it() {
        let mut points = laid(&[mandatory(100, 50, 300), mandatory(300, 20, 300)], &[(200, 10)]);
        // 50 by 100; 50 and 20 by 300; 100 and 20 by 400.
        assert_eq!(slack(&mut points, 0, 0), (50, 50));
        let mut points = laid(&[mandatory(300, 20, 300)], &[(100, 90)]);
        assert_eq!(slack(&mut points, 0, 0), (280, 190));
    }

    #[test]
    fn deadlines_at_one_instant_do_not_come_before_each_other() {
        let mut points = laid(&[mandatory(100, 60, 100), mandatory(100, 40, 100)], &[]);
        assert_eq!(slack(&mut points, 0, 0).0, 0);
        assert_eq!((points.len(), points[0].before), (1, ENDLESS));
    }

    /// Beyond 256 periods of the shorter stream its demand grows linearly, at the longer one's end
    /// as well.
    #[test]
    fn what_is_asked_for_very_often_counts_at_the_end_of_a_long_period() {
        let all = [mandatory(10, 4, 10), mandatory(7_000, 2_000, 7_000)];
        let mut points = laid(&all, &[]);
        // By 7,000, 700 times 4 and 2,000.
        assert_eq!(slack(&mut points, 0, 0).0, 6);
        assert_eq!(points[1].here / 1_000_000, 7_000 - 699 * 4);
        // The demand by then takes all the time.
        let mut points = laid(&[mandatory(10, 4, 10), mandatory(7_000, 4_200, 7_000)], &[]);
        assert_eq!(slack(&mut points, 0, 0).0, 0);
    }

    /// Against a walk over every instant, for sets that take up to all of the time.
    #[test]
    fn the_least_slack_is_that_of_all_deadlines() {
        use headtime_testkit::profiles::{between, rng};
        let mut tight = 0;
        for seed in 0..300 {
            let rng = &mut rng(seed);
            let mut all = Vec::new();
            let mut taken = 0.0;
            for _ in 0..between(rng, 1, 4) {
                let period = [20, 30, 40, 70, 100][between(rng, 0, 4) as usize];
                let work = between(rng, 1, period);
                if taken + work as f64 / period as f64 <= 1.0 {
                    taken += work as f64 / period as f64;
                    let end = between(rng, 1, period);
                    all.push(Periodic { counts: between(rng, 0, 3) > 0, ..mandatory(end, work, period) });
                }
            }
            let mut points = laid(&all, &[]);
            let here = |p: &Point| all.iter().any(|o| o.end == p.end && o.counts);
            points.iter_mut().for_each(|p| p.counts = here(p));
            let found = sweep(&mut points, Time::ZERO, Dur::ZERO).mandatory;
            let last = all.iter().map(|p| p.end + p.period).max().expect("one at least");
            if all.iter().all(|p| !p.counts) {
                assert_eq!(found, ENDLESS);
                continue;
            }
            let steps =
                |p: &Periodic, d: Time| if d < p.end { 0 } else { p.work * (1 + d.since(p.end).0 / p.period.0) };
            let ends = |p: &Periodic, d: Time| p.counts && d >= p.end && d.since(p.end).0.is_multiple_of(p.period.0);
            let due = |d: Time| d.0 as i64 - all.iter().map(|p| steps(p, d)).sum::<u64>() as i64;
            let instants = |until: u64| (0..=until).map(ms).filter(|&d| all.iter().any(|p| ends(p, d))).map(due).min();
            let upto = instants(last.0 / 1_000_000).unwrap_or(ENDLESS);
            let line = all.iter().map(|p| p.work).sum::<u64>() + evenly(&all, last);
            assert_eq!(found, upto.min(left(last, line)), "{seed}");
            // Later slack is never below the result.
            assert!(found <= instants(20_000).expect("a deadline"), "{seed}");
            tight += u64::from(found == upto && taken > 0.9);
        }
        assert!(tight > 30, "{tight}");
    }
}
