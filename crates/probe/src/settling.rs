//! The most revolutions that a request waits for its sector: parameter n of equation 5 (Reuther and
//! Pohlack 2003).
//!
//! Occasionally the head does not settle and waits for another revolution. To provoke that, the arm
//! moves from one edge of the disk to the other and back, 100,000 times or more (section 4.1), each
//! time for a request that is known to take no longer, apart from its rotational latency, than the
//! terms of equation 5. The excess is revolutions.
//!
//! Requests are single sectors, which end on the track on which they begin, so that track
//! boundaries cost nothing. The drive must not start read-ahead either, because it may then be
//! moving to another track when the next request arrives, and finishes that first. So two requests
//! are at the drive, one of them pending, and they avoid sectors that may be in its cache: after a
//! hit some drives start read-ahead although another request is pending.

use headtime_disk::{Dur, Time};

use crate::device::Ask;
use crate::error::ProbeError;
use crate::sampler::Sampler;
use crate::seeks::Seeks;
use crate::spindle::Spindle;

/// Chooses the requests, and collects their times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settling {
    /// All terms except the revolutions.
    rest: Dur,
    turn: Dur,
    capacity: u64,
    asked: u64,
    counts: Vec<u64>,
}

/// The inverse size of a region: wide enough that a drive's cache is a small part of it, narrow
/// enough that nearly the whole stroke lies between the two.
const REGIONS: u64 = 200;

/// Cap of counted revolutions: a drive that hangs is no matter of settling.
const MAX_TURNS: u64 = 64;

impl Settling {
    /// For a drive of `capacity` sectors and a revolution of `turn`. `rest` is the longest time of
    /// a request of one sector without revolutions, each term an upper bound. If `rest` is too long
    /// by a part of a revolution, that part of the requests is hidden, no more: their latencies are
    /// uniform over a revolution, and n is that of the longest.
    pub fn new(rest: Dur, turn: Dur, capacity: u64) -> Settling {
        Settling { rest, turn: Dur(turn.0.max(1)), capacity, asked: 0, counts: Vec::new() }
    }

    /// Returns the next sector, alternately in the first region and in the last.
    ///
    /// Within a region the sequence follows the golden section, which returns to a neighbourhood as
    /// late as any sequence can: by then the drive has reused its cache.
    pub fn ask(&mut self) -> u64 {
        let region = (self.capacity / REGIONS).max(1);
        let step = (self.asked / 2).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let within = ((u128::from(step) * u128::from(region)) >> 64) as u64;
        let innermost = self.asked % 2 == 1;
        self.asked += 1;
        if innermost { self.capacity.saturating_sub(region) + within } else { within }
    }

    /// Adds a request's time, from the previous completion to its own, and returns its revolutions.
    pub fn observe(&mut self, time: Dur) -> u32 {
        let turns = time.saturating_sub(self.rest).0.div_ceil(self.turn.0).min(MAX_TURNS) as usize;
        if self.counts.len() <= turns {
            self.counts.resize(turns + 1, 0);
        }
        self.counts[turns] += 1;
        turns as u32
    }

    /// n: the most revolutions that a request waited; 0 before the first.
    pub fn turns(&self) -> u32 {
        self.counts.len().saturating_sub(1) as u32
    }

    /// Bound of moves after which the head settles later than in any observed one: at most this
    /// number in a million, with a confidence of 99% ([`unseen_ppm`]). n is [`Settling::turns`] or
    /// more.
    ///
    /// A request whose rotational latency was below the excess of `rest` does not show its last
    /// revolution. Its share is that of the requests without any revolution, which are left out of
    /// the trials.
    pub fn later_ppm(&self) -> f64 {
        let count = |turns: usize| self.counts.get(turns).copied().unwrap_or(0);
        let (hidden, shown) = (count(0), count(1));
        if shown == 0 {
            return 1e6;
        }
        let trials = u128::from(self.requests()) * u128::from(shown) / (u128::from(hidden) + u128::from(shown));
        unseen_ppm(trials as u64)
    }

    /// Number of requests.
    pub fn requests(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Number of requests by revolutions, rounded up, from 0 on.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

/// -ln(0.01), for a confidence of 99%. For 95% it is the 3 of the rule of three.
const RULE_OF_THREE: f64 = 4.605_170_185_988_092;

/// An event not seen in `trials` independent trials occurs at most this often in a million, with a
/// confidence of 99%: the one-sided binomial bound p with (1 - p)^trials = 0.01, from above by p <
/// -ln(0.01) / trials.
pub fn unseen_ppm(trials: u64) -> f64 {
    match trials {
        0 => 1e6,
        n => (1e6 * RULE_OF_THREE / n as f64).min(1e6),
    }
}

/// Requests between two reports to the watcher.
const BATCH: usize = 64;
/// Longest over shortest interval of regular events, and the fewest events. Intervals between
/// random events are distributed exponentially; the probability that the longest of k is no more
/// than r times the shortest is k ∫ e^-m (e^-m - e^-rm)^(k-1) dm: a third for three intervals and r
/// = 4, 0.01 for eight, 0.003 for nine.
const MAX_INTERVAL_RATIO: f64 = 4.0;
const MIN_EVENTS: usize = 10;

/// Occasional losses over some hundred thousand requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Number of requests.
    pub requests: u64,
    /// Requests that waited for additional revolutions, without recalibrations.
    pub retries: u64,
    /// The most additional revolutions of one of them.
    pub turns: u32,
    /// Mean interval and duration of regular events: recalibrations.
    pub recalibrations: Option<(Dur, Dur)>,
    /// Upper bound of a recalibration, from whole revolutions; zero without any.
    pub longest: Dur,
}

impl Lost {
    /// The resolution of this number of requests, as text: an event that none of them met may occur
    /// three times in as many, with a probability of one in twenty.
    pub fn unseen(&self) -> String {
        format!("what is rarer than {:.1} in a million is not seen", 3e6 / self.requests.max(1) as f64)
    }
}

/// Moves the arm from edge to edge for the given number of requests.
///
/// # Errors
/// As [`Sampler::run`].
pub fn provoke(
    sampler: &mut Sampler,
    spindle: &Spindle,
    seeks: &Seeks,
    overhead: Dur,
    requests: u64,
) -> Result<Lost, ProbeError> {
    sampler.stage("settling");
    let turn = spindle.period();
    // The longest measured seek, plus its variation and a margin, which hides a sixteenth of all
    // requests.
    let seek = seeks.points.iter().map(|p| p.time.0 + 4 * p.spread.0.max(p.error.0)).max().unwrap_or(0);
    let rest = Dur(seek + seeks.command.0 + overhead.0 + turn.0 / 16);
    let mut settling = Settling::new(rest, turn, sampler.sectors());
    // Times, and revolutions beyond the first.
    let mut events: Vec<(Time, u32)> = Vec::new();
    let mut before: Option<Time> = None;
    while settling.requests() < requests {
        sampler.share(settling.requests() as f64 / requests as f64);
        let asks: Vec<Ask> = (0..BATCH).map(|_| Ask::read(settling.ask(), 1)).collect();
        // Two at the drive; the first of a batch finds an idle drive.
        for answer in sampler.run(&asks, 2)? {
            if let Some(last) = before {
                let turns = settling.observe(answer.done.saturating_since(last.max(answer.sent)));
                if turns > 1 {
                    events.push((answer.done, turns - 1));
                }
            }
            before = Some(answer.done);
        }
    }
    Ok(told_apart(&events, settling.requests(), turn))
}

/// Separates recalibrations, which recur at similar intervals and with equal durations.
fn told_apart(events: &[(Time, u32)], requests: u64, turn: Dur) -> Lost {
    let mut lost = Lost { requests, ..Lost::default() };
    let most = events.iter().map(|e| e.1).max().unwrap_or(0);
    // The smallest duration from which on events are regular: shorter ones are settling failures.
    let regular = (2..=most).find_map(|least| {
        let times: Vec<Time> = events.iter().filter(|e| e.1 >= least).map(|e| e.0).collect();
        let intervals: Vec<u64> = times.windows(2).map(|w| w[1].saturating_since(w[0]).0).collect();
        let (short, long) = (intervals.iter().min()?, intervals.iter().max()?);
        let is_regular = times.len() >= MIN_EVENTS && *long as f64 <= MAX_INTERVAL_RATIO * (*short).max(1) as f64;
        // All recalibrations take equally long, to a revolution: shorter events came in between by
        // chance.
        let mut turns: Vec<u32> = events.iter().map(|e| e.1).filter(|t| *t >= least).collect();
        turns.sort_unstable();
        let usual = turns[turns.len() / 2].saturating_sub(1).max(least);
        is_regular.then(|| (usual, Dur(intervals.iter().sum::<u64>() / intervals.len() as u64)))
    });
    let is_settling = |turns: u32| regular.is_none_or(|(least, _)| turns < least);
    lost.retries = events.iter().filter(|e| is_settling(e.1)).count() as u64;
    lost.turns = events.iter().map(|e| e.1).filter(|t| is_settling(*t)).max().unwrap_or(0);
    // A request that waits for t revolutions in all, the first of them its own, has lost at most t
    // to the recalibration.
    if let Some((least, _)) = regular {
        let most = events.iter().map(|e| e.1).filter(|t| *t >= least).max().unwrap_or(0);
        lost.longest = Dur((u64::from(most) + 1).saturating_mul(turn.0));
    }
    lost.recalibrations = regular.map(|(least, every)| {
        let long: Vec<u32> = events.iter().map(|e| e.1).filter(|t| *t >= least).collect();
        // The recalibration delays a request by itself and by half a revolution on average; only
        // additional whole revolutions are visible.
        let mean = long.iter().map(|t| f64::from(*t)).sum::<f64>() / long.len() as f64;
        (every, Dur(((mean - 0.5).max(0.0) * turn.0 as f64) as u64))
    });
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 1 of the paper, Ultrastar 36Z15, with requests of 8 sectors: 7.18 + 0.08 + 0.07 + 1.06
    /// ms, and a revolution.
    const REST: Dur = Dur::from_us(8_390);
    const TURN: Dur = Dur::from_us(4_020);

    #[test]
    fn what_the_other_terms_do_not_explain_is_turns() {
        let mut s = Settling::new(REST, TURN, 1_000_000);
        assert_eq!((s.turns(), s.requests()), (0, 0));
        for (more, n) in [(0, 0), (1, 1), (4_020, 1), (4_021, 2), (3 * 4_020, 3), (4 * 4_020 + 1, 5)] {
            s.observe(REST + Dur::from_us(more));
            assert_eq!(s.turns(), n, "{more}");
        }
        assert_eq!(s.counts(), [1, 2, 1, 1, 0, 1]);
        assert_eq!(s.requests(), 6);
        // All of equation 5 is five revolutions and not six.
        let mut s = Settling::new(REST, TURN, 1_000_000);
        s.observe(REST + Dur(5 * TURN.0));
        assert_eq!(s.turns(), 5);
    }

    #[test]
    fn what_was_not_met_is_bounded_by_the_requests_that_would_have_shown_it() {
        // (1 - p)^100,000 is 0.01 at p = 46.05 in a million, and 0.05 at 29.96.
        assert!(
            (unseen_ppm(100_000) - 46.05).abs() < 0.01 && unseen_ppm(100_000) > 46.050_6,
            "{}",
            unseen_ppm(100_000)
        );
        assert_eq!((unseen_ppm(0), unseen_ppm(1), unseen_ppm(4)), (1e6, 1e6, 1e6));
        let mut s = Settling::new(REST, TURN, 1_000_000);
        assert_eq!(s.later_ppm(), 1e6);
        for _ in 0..3_000 {
            s.observe(REST + Dur::from_us(100));
        }
        assert_eq!(s.later_ppm(), unseen_ppm(3_000));
        // As many again whose latency is below the excess of `rest` add no information.
        for _ in 0..3_000 {
            s.observe(REST.saturating_sub(Dur::from_us(100)));
        }
        assert_eq!(s.later_ppm(), unseen_ppm(3_000));
    }

    #[test]
    fn a_request_that_is_quicker_than_thought_or_hangs_breaks_nothing() {
        let mut s = Settling::new(REST, Dur::ZERO, 0);
        assert_eq!([s.ask(), s.ask()], [0, 0]);
        s.observe(Dur::ZERO);
        s.observe(Dur(u64::MAX));
        assert_eq!((s.turns(), s.requests()), (64, 2));
    }

    #[test]
    fn requests_go_to_both_edges_in_turn_and_keep_away_from_those_before_them() {
        let mut s = Settling::new(REST, TURN, 36_000_000);
        let all: Vec<u64> = (0..2_000).map(|_| s.ask()).collect();
        assert!(all.iter().step_by(2).all(|lbn| *lbn < 180_000));
        assert!(all.iter().skip(1).step_by(2).all(|lbn| (35_820_000..36_000_000).contains(lbn)));
        // Of the sixty before it in the same region none is within a track of the widest zone.
        let outer: Vec<u64> = all.iter().copied().step_by(2).collect();
        for (i, lbn) in outer.iter().enumerate() {
            let before = &outer[i.saturating_sub(60)..i];
            assert!(before.iter().all(|b| b.abs_diff(*lbn) > 1_100), "{i}");
        }
    }

    #[test]
    fn what_comes_regularly_is_no_matter_of_settling() {
        let at = |s: u64| Time(s * 1_000_000_000);
        let recalibrations: Vec<(Time, u32)> =
            (1..13).map(|i| (at(300 * i + 40 * (i % 3)), 5 - (i % 2) as u32)).collect();
        let mut events = recalibrations.clone();
        events.extend([(at(17), 1), (at(20), 1), (at(2_000), 2)]);
        events.sort_unstable();
        let lost = told_apart(&events, 100_000, Dur::from_ms(6));
        assert_eq!((lost.retries, lost.turns, lost.requests), (3, 2, 100_000));
        let (every, takes) = lost.recalibrations.expect("eight of them");
        assert!((250..320).contains(&(every.0 / 1_000_000_000)), "{every:?}");
        assert_eq!(takes, Dur::from_ms(24));
        // Five revolutions beyond a request's own.
        assert_eq!(lost.longest, Dur::from_ms(36));
        let rare = [(at(1), 1), (at(2), 4), (at(500), 4), (at(501), 4)];
        assert_eq!(
            told_apart(&rare, 10, Dur::from_ms(6)),
            Lost { requests: 10, retries: 4, turns: 4, ..Lost::default() }
        );
        assert_eq!(told_apart(&[], 10, Dur::from_ms(6)), Lost { requests: 10, ..Lost::default() });
    }

    #[test]
    fn what_comes_by_chance_is_hardly_ever_taken_for_regular() {
        let mut state = 7u64;
        let mut chance = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 1.0) / (1u64 << 53) as f64
        };
        let regular = (0..1_000).filter(|i| {
            let mut at = 0.0;
            let events: Vec<(Time, u32)> = (0..4 + i % 9)
                .map(|_| {
                    at -= 1e9 * chance().ln();
                    (Time(at as u64), 2)
                })
                .collect();
            told_apart(&events, 10, Dur::from_ms(6)).recalibrations.is_some()
        });
        let found = regular.count();
        assert!(found < 10, "{found} of 1000");
    }
}
