//! Evidence of seek times from completions, and its interpretation.
//!
//! From outside, a command is visible only when it completes, and its transfer ends at the same
//! angle however long the seek took (Lumb 2002 section 3.3). So one completion never shows a seek
//! time; it shows on which side of an instant the arm arrived:
//!
//! * as predicted, with latency *l*: before the first sector passed, so the seek took at most *l*
//!   longer than predicted; and after it passed the time before, a revolution earlier;
//! * a revolution late: after the first sector passed, so the seek took more than *l* longer;
//! * a revolution early: more than a revolution less *l* quicker. Nothing else shows that a seek is
//!   quicker than predicted: where latencies are short, as under SPTF, a quicker seek waits longer
//!   and ends at the same instant;
//! * a drive that reads on arrival and just misses the first sector begins inside the request, and
//!   ends one revolution after it landed: that alone shows the arrival itself, to the sector.
//!
//! [`Belief`] keeps the log likelihood of each correction on a grid, and decays slowly. It needs
//! neither a clock nor randomness, and the weight of each contradicting completion (a settling that
//! failed, a recalibration) is bounded.

use headtime_disk::{Dur, Kind, Place};

use crate::classify::CLOSE;
use crate::request::{Prediction, Surprise};

/// A completed command that moved the head, as input of the estimation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Read or write.
    pub kind: Kind,
    /// The track from which the head came: cylinder and surface.
    pub from: (u32, u16),
    /// The track of the command's first sector.
    pub to: (u32, u16),
    /// Predicted seek time, without margins, with the correction in force when it was sent.
    pub seek: Dur,
    /// Predicted rotational latency: the slack.
    pub latency: Dur,
    /// Time in which the command's sectors pass.
    pub media: Dur,
    /// Whether all its sectors are on one track.
    pub one_track: bool,
    /// Observed less predicted head time, in ns.
    pub error_ns: i64,
    /// Classification of the error.
    pub surprise: Surprise,
    /// It was sent to a drive that had nothing to do, so it began later than predicted by the
    /// host's latency.
    pub alone: bool,
}

impl Seen {
    /// Creates the evidence of a command to `place`, sent while the head was to be on track `from`,
    /// to a drive with nothing else to do or not (`alone`). `None` where there is nothing to learn:
    /// the cache was involved, or the head did not move.
    pub fn new(from: (u32, u16), place: &Place, kind: Kind, p: &Prediction, alone: bool) -> Option<Seen> {
        let to = (place.cylinder, place.surface);
        (!p.cached && from != to).then(|| Seen {
            kind,
            from,
            to,
            seek: p.seek,
            latency: p.latency,
            media: place.media,
            one_track: place.tracks == 1,
            error_ns: p.error_ns(),
            surprise: p.surprise,
            alone,
        })
    }
}

/// Bounds on the arm's arrival, from the start of its move, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Not before this.
    pub after: i64,
    /// Not after this.
    pub before: i64,
    /// Both bounds are the arrival itself, to the sector.
    pub exact: bool,
}

/// Returns the bounds on the arm's arrival that a completion shows; `None` when it shows none.
///
/// Late ends of requests on several tracks are ignored: any of the moves between the tracks may
/// have been late.
pub(crate) fn arrival(seen: &Seen, turn: Dur, on_arrival: bool) -> Option<Arrival> {
    let (turn, close) = (turn.0 as i64, CLOSE.0 as i64);
    let (media, error) = (seen.media.0 as i64, seen.error_ns);
    let due = (seen.seek + seen.latency).0 as i64;
    if seen.surprise == Surprise::CacheHit {
        return None;
    }
    let exactly = |at: i64| Some(Arrival { after: at, before: at, exact: true });
    if on_arrival && seen.latency.0 as i64 + media > turn {
        // It was predicted to land inside the request and did: the end is one revolution after the
        // arrival.
        return match seen.one_track && error.abs() <= close {
            true => exactly(due + media + error - turn),
            false => None,
        };
    }
    match seen.surprise {
        Surprise::None | Surprise::Overlap => {
            // A drive that reads on arrival would have begun inside the request had it arrived
            // while that passed, and ended earlier by the remaining sectors: within the last
            // `close` of it the difference cannot be detected.
            let passed = if on_arrival { (media - close).max(0) } else { 0 };
            return Some(Arrival { after: due + passed - turn, before: due, exact: false });
        }
        Surprise::EarlyTurn => return Some(Arrival { after: due - 2 * turn, before: due - turn, exact: false }),
        _ if error < 0 || !seen.one_track => return None,
        _ => {}
    }
    // From the first sector's left edge to the arrival, if it landed inside the request.
    let inside = error - (turn - media);
    if on_arrival && inside > 0 && inside + close < media {
        return exactly(due + inside);
    }
    // Two revolutions late is not a slightly longer seek.
    let one_turn = seen.surprise == Surprise::ExtraTurn && error < turn + turn / 2;
    one_turn.then_some(Arrival { after: due, before: due + turn, exact: false })
}

/// Step of the grid of corrections: the spread of seeks of one distance ("tens of us", Lumb 2002
/// section 4.2), below which the grid would only resolve noise.
pub(crate) const STEP_NS: i64 = 24_000;
/// Corrections on either side of zero; the largest, 1.25 ms, is 8% of the longest seeks of drives.
pub(crate) const SIDE: i64 = 52;
/// Assumed deviation of seeks of one distance. If the true one is larger, the estimate exceeds the
/// mean, since more of the slacks beyond it turn out to be misses than expected; if smaller, it is
/// below. Slacks on the other side of the estimate are rarely tried, so nothing balances that. A
/// seek assumed too short costs revolutions and one assumed too long hardly anything (Lumb 2002
/// section 3.2), so the smallest usual spread is assumed.
const SPREAD_NS: i64 = 16_000;
const CELLS: usize = 2 * SIDE as usize + 1;

/// Factor by which evidence for a shorter seek must exceed that for a longer one: assuming it too
/// short costs revolutions, too long hardly anything (Lumb 2002 section 3.2), and where latencies
/// are short no completion ever shows that it was assumed too long.
pub(crate) const SHORTER: i64 = 4;

/// Evidence required to replace the expected value, so that chance in a few hundred completions is
/// not taken for a property of the drive: half the logarithm of their number (G. Schwarz, 1978).
pub(crate) const ONE_MORE: i64 = 4 * BIT;

/// One bit of likelihood.
pub(crate) const BIT: i64 = 4096;
/// Upper bound of the weight of one contradicting success: the correction explains it in one of 64
/// cases.
const MAX_SUCCESS: i64 = 6 * BIT;
/// The same of a miss. An extra revolution has causes other than the seek (settling, internal
/// activity), of the order of one in 100 on drives with many; a smaller weight reduces the error
/// from those that fall close to a prediction by chance.
const MAX_MISS: i64 = 9 * BIT / 2;
/// Decay of the evidence: by 1/512 with each new informative completion.
const FADE: u32 = 9;

/// Log likelihood of each correction for one class of moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Belief {
    /// Log likelihood relative to a perfect explanation, never above zero.
    cells: [i32; CELLS],
    seen: u32,
}

impl Default for Belief {
    fn default() -> Belief {
        Belief { cells: [0; CELLS], seen: 0 }
    }
}

/// Returns -log2 of the probability that a normal variate of deviation [`SPREAD_NS`] lies on the
/// right side of a bound that is `over_ns` on the wrong one; linear between whole deviations, from
/// -2 to 3.
#[inline]
fn penalty(over_ns: i64, most: i64) -> i64 {
    const AT: [i64; 6] = [0, 1_024, 4_096, 10_895, 22_364, 38_900];
    let t = over_ns + 2 * SPREAD_NS;
    if t <= 0 {
        return 0;
    }
    let (whole, part) = ((t / SPREAD_NS) as usize, t % SPREAD_NS);
    match AT.get(whole + 1) {
        Some(&next) => (AT[whole] + (next - AT[whole]) * part / SPREAD_NS).min(most),
        None => most,
    }
}

impl Belief {
    /// Adds an arrival: the correction is more than `after` and at most `before`. Returns whether
    /// that was informative.
    pub(crate) fn learn(&mut self, after: i64, before: i64, missed: bool) -> bool {
        let reach = (SIDE + 2) * STEP_NS;
        if after < -reach && before > reach {
            return false;
        }
        let (most_after, most_before) = if missed { (MAX_MISS, MAX_SUCCESS) } else { (MAX_SUCCESS, MAX_SUCCESS) };
        for (i, cell) in self.cells.iter_mut().enumerate() {
            let x = (i as i64 - SIDE) * STEP_NS;
            let penalty_bits = penalty(x - before, most_before) + penalty(after - x, most_after);
            *cell -= (*cell >> FADE) + penalty_bits as i32;
        }
        self.seen = self.seen.saturating_add(1);
        true
    }

    /// Returns the number of informative completions.
    pub(crate) fn seen(&self) -> u32 {
        self.seen
    }

    /// Returns the log likelihood of correction `x`; outside the grid that of its nearest end.
    #[inline]
    pub(crate) fn of(&self, x: i64) -> i64 {
        let x = x.clamp(-SIDE * STEP_NS, SIDE * STEP_NS) + SIDE * STEP_NS;
        let (i, part) = ((x / STEP_NS) as usize, x % STEP_NS);
        let (a, b) = (i64::from(self.cells[i]), i64::from(self.cells[(i + 1).min(CELLS - 1)]));
        a + (b - a) * part / STEP_NS
    }

    /// Returns the log likelihood of the best correction.
    pub(crate) fn best(&self) -> i64 {
        self.cells.iter().copied().max().map_or(0, i64::from)
    }
}

/// Returns the likeliest correction by several beliefs at once, each shifted, given the value
/// `expected` without them. Each `per_bit` above that must be outweighed by one bit, below it by
/// [`SHORTER`] bits.
///
/// Without sufficient evidence that is `expected` itself. Otherwise the maximum between grid points
/// is found by a parabola through the best one and its neighbours.
pub(crate) fn likeliest(beliefs: &[(&Belief, i64)], expected: i64, per_bit: i64) -> i64 {
    let of = |x: i64| {
        let likelihood: i64 = beliefs.iter().map(|(b, shift)| b.of(x + shift)).sum();
        let per_bit = if x < expected { per_bit / SHORTER } else { per_bit };
        likelihood - (x - expected).abs() * BIT / per_bit
    };
    let at = |i: i64| of(i * STEP_NS);
    let Some(best) = (-SIDE..=SIDE).max_by_key(|&i| (at(i), -(i * STEP_NS - expected).abs())) else {
        return expected;
    };
    if of(expected) + ONE_MORE >= at(best) {
        return expected;
    }
    if best.abs() == SIDE {
        return best * STEP_NS;
    }
    let (left, top, right) = (at(best - 1), at(best), at(best + 1));
    let bend = 2 * top - left - right;
    let aside = if bend > 0 { (right - left) * STEP_NS / (2 * bend) } else { 0 };
    best * STEP_NS + aside.clamp(-STEP_NS / 2, STEP_NS / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Dur = Dur(6_000_000);

    fn seen(latency: u64, media: u64, error: i64, surprise: Surprise) -> Seen {
        Seen {
            kind: Kind::Read,
            from: (0, 0),
            to: (100, 0),
            seek: Dur::from_us(3_000),
            latency: Dur::from_us(latency),
            media: Dur::from_us(media),
            one_track: true,
            error_ns: error * 1_000,
            surprise,
            alone: false,
        }
    }

    fn bounds_us(s: &Seen, on_arrival: bool) -> Option<(i64, i64)> {
        arrival(s, TURN, on_arrival).map(|a| (a.after / 1_000, a.before / 1_000))
    }

    #[test]
    fn a_success_bounds_the_arrival_on_both_sides() {
        let s = seen(700, 140, 30, Surprise::None);
        assert_eq!(bounds_us(&s, false), Some((3_700 - 6_000, 3_700)));
        assert_eq!(bounds_us(&s, true), Some((3_700 - 6_000, 3_700)));
        let s = seen(700, 1_000, 30, Surprise::None);
        assert_eq!(bounds_us(&s, true), Some((3_700 - 6_000 + 850, 3_700)));
        let s = seen(700, 140, -800, Surprise::Overlap);
        assert_eq!(bounds_us(&s, false), Some((3_700 - 6_000, 3_700)));
    }

    #[test]
    fn turns_too_many_and_too_few_say_on_which_side_of_the_sector_it_arrived() {
        assert_eq!(bounds_us(&seen(100, 140, 6_010, Surprise::ExtraTurn), false), Some((3_100, 9_100)));
        assert_eq!(bounds_us(&seen(5_900, 140, -6_010, Surprise::EarlyTurn), false), Some((8_900 - 12_000, 2_900)));
        assert_eq!(bounds_us(&seen(100, 140, 12_010, Surprise::ExtraTurn), false), None);
        assert_eq!(bounds_us(&seen(100, 140, 2_000, Surprise::Other), false), None);
        assert_eq!(bounds_us(&seen(100, 140, -2_000, Surprise::CacheHit), false), None);
        let two_tracks = Seen { one_track: false, ..seen(100, 140, 6_010, Surprise::ExtraTurn) };
        assert_eq!(bounds_us(&two_tracks, false), None);
    }

    #[test]
    fn a_landing_shows_the_arrival_itself() {
        // 2 ms of sectors; it arrived 300 us after the first had begun to pass, and ended one
        // revolution after that.
        let s = seen(100, 2_000, 300 + 6_000 - 2_000, Surprise::Other);
        assert_eq!(bounds_us(&s, true), Some((3_400, 3_400)));
        // The same on a drive that reads from front to back means something else.
        assert_eq!(bounds_us(&s, false), None);
        // It was predicted to land and did, 80 us later: head time was 3 ms and 7 ms, and is 80 us
        // more.
        let s = seen(5_000, 2_000, 80, Surprise::None);
        assert_eq!(bounds_us(&s, true), Some((3_000 + 1_000 + 80, 3_000 + 1_000 + 80)));
    }

    #[test]
    fn without_evidence_the_expected_is_kept() {
        let b = Belief::default();
        assert_eq!(likeliest(&[(&b, 0)], 0, 64_000), 0);
        assert_eq!(likeliest(&[(&b, 0)], 77_123, 64_000), 77_123);
    }

    #[test]
    fn the_edge_between_misses_and_successes_is_found() {
        for truth in [-613_000i64, -90_000, 0, 47_000, 250_000, 1_100_000] {
            let mut b = Belief::default();
            for i in 0..200i64 {
                // Slacks spread evenly around the truth.
                let slack = truth + (i * 37 % 200 - 100) * 4_000;
                match truth > slack {
                    true => b.learn(slack, slack + TURN.0 as i64, true),
                    false => b.learn(slack - TURN.0 as i64, slack, false),
                };
            }
            let found = likeliest(&[(&b, 0)], 0, 64_000);
            assert!((found - truth).abs() < 16_000, "{truth}: {found}");
        }
    }

    #[test]
    fn misses_of_other_causes_do_not_mislead() {
        let truth = 100_000i64;
        let mut b = Belief::default();
        for i in 0..400i64 {
            let slack = i * 37 % 400 * 5_000;
            match truth > slack || i % 25 == 3 {
                true => b.learn(slack, slack + TURN.0 as i64, true),
                false => b.learn(slack - TURN.0 as i64, slack, false),
            };
        }
        let found = likeliest(&[(&b, 0)], 0, 64_000);
        assert!((found - truth).abs() < 25_000, "{found}");
    }

    #[test]
    fn what_is_long_ago_fades() {
        let mut b = Belief::default();
        for truth in [300_000i64, 100_000] {
            for i in 0..3_000i64 {
                let slack = i * 37 % 200 * 4_000;
                match truth > slack {
                    true => b.learn(slack, slack + TURN.0 as i64, true),
                    false => b.learn(slack - TURN.0 as i64, slack, false),
                };
            }
            let found = likeliest(&[(&b, 0)], 0, 64_000);
            assert!((found - truth).abs() < 16_000, "{truth}: {found}");
        }
        // Far from zero the sums still fit into 32 bits.
        assert!(b.best() <= 0 && b.cells.iter().all(|&c| c > -(12 << (FADE + 12))));
    }
}
