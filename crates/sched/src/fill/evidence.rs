//! What completions tell about seek times, and what to make of it.
//!
//! From outside, a command is seen only when it has completed, and its transfer ends at the same
//! angle however long the arm was on its way (Lumb 2002 section 3.3). So one completion never shows
//! a seek time; it shows on which side of an instant the arm arrived:
//!
//! * as predicted, with latency *l*: before the first sector passed, so the seek took at most *l*
//!   longer than predicted; and after it passed the time before, a turn earlier;
//! * a turn late: after the first sector passed, so the seek took more than *l* longer;
//! * a turn early: more than a turn less *l* quicker. Nothing else shows that a seek is quicker
//!   than thought: where latencies are short, as under SPTF, a quicker seek waits longer and ends
//!   at the same instant;
//! * a drive that reads on arrival and just misses the first sector begins inside the request, and
//!   ends one turn after it landed: that alone shows the arrival itself, to the sector.
//!
//! [`Belief`] keeps, for a grid of possible corrections, how badly each one explains what was seen
//! (the logarithm of its likelihood), and forgets slowly. It needs no clock and no chance, and a
//! few contradicting completions (a settling that failed, a recalibration) weigh no more than the
//! limit on what one of them may say.

use headtime_disk::command::Kind;
use headtime_disk::model::Place;
use headtime_disk::time::Dur;

use crate::classify::CLOSE;
use crate::request::{Prediction, Surprise};

/// One completed command that moved the head, as the learning needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Read or write.
    pub kind: Kind,
    /// The track the head came from: cylinder and surface.
    pub from: (u32, u16),
    /// The track of the command's first sector.
    pub to: (u32, u16),
    /// Predicted time to get there, without margins, with whatever correction was in force when it
    /// was sent.
    pub seek: Dur,
    /// Predicted rotational latency: the slack.
    pub latency: Dur,
    /// Time in which the command's sectors pass.
    pub media: Dur,
    /// All its sectors are on one track.
    pub one_track: bool,
    /// Observed less predicted head time, in ns.
    pub error_ns: i64,
    /// What that looks like.
    pub surprise: Surprise,
    /// It was sent to a drive that had nothing to do: it began as much later than predicted as the
    /// host took to get it there.
    pub alone: bool,
}

impl Seen {
    /// Of a command to `place` sent while the head was to be on track `from`, to a drive with
    /// nothing else to do or not. `None` where there is nothing to learn: the cache had a part in
    /// it, or the head did not move.
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

/// When the arm arrived, from when it set out, in ns; `None`: not known on that side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Not before this.
    pub after: i64,
    /// Not after this.
    pub before: i64,
    /// Both bounds are the arrival itself, to the sector.
    pub exact: bool,
}

/// When the arm arrived, as far as a completion tells; `None` when it tells nothing.
///
/// Of requests on several tracks a late end is not looked at: any of the moves between the tracks
/// may have been late.
pub fn arrival(seen: &Seen, turn: Dur, on_arrival: bool) -> Option<Arrival> {
    let (turn, close) = (turn.0 as i64, CLOSE.0 as i64);
    let (media, error) = (seen.media.0 as i64, seen.error_ns);
    let due = (seen.seek + seen.latency).0 as i64;
    if seen.surprise == Surprise::CacheHit {
        return None;
    }
    let exactly = |at: i64| Some(Arrival { after: at, before: at, exact: true });
    if on_arrival && seen.latency.0 as i64 + media > turn {
        // It was to land inside the request and did: the end is one turn after the arrival.
        return match seen.one_track && error.abs() <= close {
            true => exactly(due + media + error - turn),
            false => None,
        };
    }
    match seen.surprise {
        Surprise::None | Surprise::Overlap => {
            // A drive that reads on arrival would have begun inside the request had it arrived
            // while that passed, and ended that much earlier as was still to pass: only of the last
            // of it could that not be told.
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
    // Two turns late is no seek that took a little longer.
    let one_turn = seen.surprise == Surprise::ExtraTurn && error < turn + turn / 2;
    one_turn.then_some(Arrival { after: due, before: due + turn, exact: false })
}

/// Distance between neighbouring corrections of the grid: the spread of seeks of one distance
/// ("tens of us", Lumb 2002 section 4.2), below which the grid would only resolve noise.
pub const STEP_NS: i64 = 24_000;
/// Corrections on either side of zero; the largest, 1.25 ms, is 8% of the longest seeks that drives
/// make.
pub const SIDE: i64 = 52;
/// The deviation that seeks of one distance are taken to have. Where the true one is larger, what
/// is found is larger than the mean: more of the slacks beyond it turn out to be misses than
/// expected. Where it is smaller, less. Slacks on the other side of what is believed are rarely
/// tried, so nothing balances that; and as a seek thought too short costs turns and one thought too
/// long hardly anything (Lumb 2002 section 3.2), the smallest usual spread is assumed.
const SPREAD_NS: i64 = 16_000;
const CELLS: usize = 2 * SIDE as usize + 1;

/// That a seek is shorter than thought must be this much better founded than that it is longer:
/// taking it for too short costs turns, for too long hardly anything (Lumb 2002 section 3.2), and
/// where latencies are short no completion ever says that it was too long.
pub const SHORTER: i64 = 4;

/// What a figure of its own must explain better than the expected one, so that what is only chance
/// in a few hundred completions is not taken for a property of the drive: half the logarithm of
/// their number (G. Schwarz, 1978).
pub const ONE_MORE: i64 = 4 * BIT;

/// One bit of likelihood.
pub const BIT: i64 = 4096;
/// One completion that contradicts says this much at most: for success, that the correction
/// explains it in one of 64 cases.
const MOST_SUCCESS: i64 = 6 * BIT;
/// A turn too many has causes other than the seek (settling, internal activity), of the order of
/// one in 100 on drives that do so often; with less weight, those that fall by chance next to what
/// was predicted mislead less.
const MOST_MISS: i64 = 9 * BIT / 2;
/// What is remembered fades by 1/512 with each new completion that tells something.
const FADE: u32 = 9;

/// How well each correction explains what was seen of one class of moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belief {
    /// Log likelihood relative to a perfect explanation, never above zero.
    cells: [i32; CELLS],
    seen: u32,
}

impl Default for Belief {
    fn default() -> Belief {
        Belief { cells: [0; CELLS], seen: 0 }
    }
}

/// -log2 of the probability that a normal variate of deviation [`SPREAD_NS`] lies on the right side
/// of a bound that is `over_ns` on the wrong one; straight lines between whole deviations, from -2
/// to 3.
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
    /// Takes note of an arrival: the correction is more than `after` and at most `before`. Returns
    /// whether that told anything.
    pub fn learn(&mut self, after: i64, before: i64, missed: bool) -> bool {
        let reach = (SIDE + 2) * STEP_NS;
        if after < -reach && before > reach {
            return false;
        }
        let (most_after, most_before) = if missed { (MOST_MISS, MOST_SUCCESS) } else { (MOST_SUCCESS, MOST_SUCCESS) };
        for (i, cell) in self.cells.iter_mut().enumerate() {
            let x = (i as i64 - SIDE) * STEP_NS;
            let told = penalty(x - before, most_before) + penalty(after - x, most_after);
            *cell -= (*cell >> FADE) + told as i32;
        }
        self.seen = self.seen.saturating_add(1);
        true
    }

    /// Completions that told something.
    pub fn seen(&self) -> u32 {
        self.seen
    }

    /// The log likelihood of correction `x`; outside the grid that of its nearest end.
    #[inline]
    pub fn of(&self, x: i64) -> i64 {
        let x = x.clamp(-SIDE * STEP_NS, SIDE * STEP_NS) + SIDE * STEP_NS;
        let (i, part) = ((x / STEP_NS) as usize, x % STEP_NS);
        let (a, b) = (i64::from(self.cells[i]), i64::from(self.cells[(i + 1).min(CELLS - 1)]));
        a + (b - a) * part / STEP_NS
    }

    /// The log likelihood of the best correction.
    pub fn best(&self) -> i64 {
        self.cells.iter().copied().max().map_or(0, i64::from)
    }
}

/// The likeliest correction by several beliefs at once, each shifted, when `expected` is what one
/// would think without them. To be `per_bit` longer than that must be outweighed by one bit, to be
/// as much shorter by [`SHORTER`] bits.
///
/// Where little speaks against it that is `expected` itself. Otherwise the top between the points
/// of the grid is found by a parabola through the best one and its neighbours.
pub fn likeliest(beliefs: &[(&Belief, i64)], expected: i64, per_bit: i64) -> i64 {
    let of = |x: i64| {
        let told: i64 = beliefs.iter().map(|(b, shift)| b.of(x + shift)).sum();
        let per_bit = if x < expected { per_bit / SHORTER } else { per_bit };
        told - (x - expected).abs() * BIT / per_bit
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

    fn told(s: &Seen, on_arrival: bool) -> Option<(i64, i64)> {
        arrival(s, TURN, on_arrival).map(|a| (a.after / 1_000, a.before / 1_000))
    }

    #[test]
    fn a_success_bounds_the_arrival_on_both_sides() {
        let s = seen(700, 140, 30, Surprise::None);
        assert_eq!(told(&s, false), Some((3_700 - 6_000, 3_700)));
        assert_eq!(told(&s, true), Some((3_700 - 6_000, 3_700)));
        let s = seen(700, 1_000, 30, Surprise::None);
        assert_eq!(told(&s, true), Some((3_700 - 6_000 + 850, 3_700)));
        let s = seen(700, 140, -800, Surprise::Overlap);
        assert_eq!(told(&s, false), Some((3_700 - 6_000, 3_700)));
    }

    #[test]
    fn turns_too_many_and_too_few_say_on_which_side_of_the_sector_it_arrived() {
        assert_eq!(told(&seen(100, 140, 6_010, Surprise::ExtraTurn), false), Some((3_100, 9_100)));
        assert_eq!(told(&seen(5_900, 140, -6_010, Surprise::EarlyTurn), false), Some((8_900 - 12_000, 2_900)));
        assert_eq!(told(&seen(100, 140, 12_010, Surprise::ExtraTurn), false), None);
        assert_eq!(told(&seen(100, 140, 2_000, Surprise::Other), false), None);
        assert_eq!(told(&seen(100, 140, -2_000, Surprise::CacheHit), false), None);
        let two_tracks = Seen { one_track: false, ..seen(100, 140, 6_010, Surprise::ExtraTurn) };
        assert_eq!(told(&two_tracks, false), None);
    }

    #[test]
    fn a_landing_shows_the_arrival_itself() {
        // 2 ms of sectors; it arrived 300 us after the first had begun to pass, and ended one turn
        // after that.
        let s = seen(100, 2_000, 300 + 6_000 - 2_000, Surprise::Other);
        assert_eq!(told(&s, true), Some((3_400, 3_400)));
        // The same on a drive that reads from front to back is something else.
        assert_eq!(told(&s, false), None);
        // It was to land and did, 80 us later than predicted: head time was 3 ms and 7 ms, and is
        // 80 us more.
        let s = seen(5_000, 2_000, 80, Surprise::None);
        assert_eq!(told(&s, true), Some((3_000 + 1_000 + 80, 3_000 + 1_000 + 80)));
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
        // Far away from zero the sums stay where 32 bits hold them.
        assert!(b.best() <= 0 && b.cells.iter().all(|&c| c > -(12 << (FADE + 12))));
    }
}
