//! Adaptive conservatism: seek times and margins that are learned from the drive.
//!
//! Each completion of a command that moved the head may provide evidence ([`super::evidence`]) for
//! two quantities:
//!
//! * *Corrections*, signed, by class of seek distance: the difference between the drive's seek
//!   times and its profile's. "This factor adaptively changes and attempts to closely track the
//!   true seek time" (Thereska 2003 section 4.8). They are applied to the curves that ORDER and the
//!   predictor use, not to FILL alone: with a profile that is 5% too fast SPTF prefers exactly the
//!   requests whose sectors it will miss. Most deviations are a common factor (another unit of the
//!   same model, another temperature). So one scale common to all classes is estimated first, which
//!   takes a few dozen completions, then the residual of each class.
//! * *Margins*, by class of seek distance: how much longer than predicted, corrections included, a
//!   move may take before FILL loses a revolution (Lumb 2002 sections 3.3 and 4.2). The target is
//!   [`TARGET_PPM`] misses in a million moves whose slack was about the margin.
//!
//! A command sent to a drive without work starts later than predicted by the host's latency, which
//! only the host's load bounds. A miss of such a move is attributed to that latency, and a *delay*
//! of the host is learned like a margin; FILL adds it to moves that begin with such a command. (In
//! a simulator only misses with other causes raise it.)
//!
//! The margin is a quantile found by stochastic approximation (H. Robbins and S. Monro, 1951): at
//! each move whose slack was near the margin m it increases by step * (1 - p) if the move missed
//! and decreases by step * p if not. It converges where a share p of such moves misses, whatever
//! the distribution; a constant step lets it follow a drive that changes.

use headtime_disk::{Dur, Kind, Mechanics, Model};

use super::conservatism::{CLASSES, Margins, centre_of, class_of};
use super::evidence::{BIT, Belief, SHORTER, Seen, arrival, likeliest};
use crate::request::Surprise;

/// Initial margin: Lumb 2002 section 5.3 found that it costs the foreground less than 2%.
pub const START: Dur = Dur::from_us(300);
/// Lower bound of the margins: seeks of one distance differ by "tens of us" (Lumb 2002 section
/// 4.2), and the end of the preceding move is known only to some us.
pub const FLOOR: Dur = Dur::from_us(50);
/// Upper bound of the margins: with a quarter of a revolution lost per move, filling gains little.
pub const CEILING: Dur = Dur::from_us(1_500);

/// Target: misses in a million moves whose slack was about the margin (one in 128). Less than half
/// of all filled gaps end in such a move, and a miss costs a revolution, two thirds of a small
/// request. So the foreground loses a quarter of a percent, an eighth of the 2% that Lumb 2002
/// section 5.3 accepts.
pub(crate) const TARGET_PPM: i64 = 7_812;
/// A miss widens the margin of its class by this and by [`STEP_COMMON`]; a success narrows it by
/// 1/128 of that: 0.6 us. With the fifty such moves a second of a busy disk, narrowing from 300 us
/// to 100 us takes some ten seconds; widening by as much takes three misses.
const STEP_CLASS: i64 = 40_000;
/// The same step for all classes together: rarely used classes learn from the others.
const STEP_COMMON: i64 = 40_000;
/// A slack counts as near the margin within half of the margin, but at least within this.
const NEAR_NS: i64 = 50_000;
/// Upper bound, in a million, of the drive's own misses (settling, internal activity). They are
/// measured where the slack is too large for a seek error to explain them, and subtracted from the
/// misses near the margin, since no margin would prevent them.
const MAX_OTHER_PPM: i64 = 50_000;

/// Prior: a residual of a class beyond the common scale costs a bit per 64 us. Not tuned, like the
/// other two priors: a few completions that agree outweigh them.
const RESIDUAL_PER_BIT: i64 = 64_000;
/// Prior: a settling time before writes costs a bit per 64 us.
const SETTLE_PER_BIT: i64 = 64_000;
/// Prior: the common scale costs a bit per percent.
const SCALE_PER_BIT_PPM: i64 = 10_000;
/// Upper bound of the scale in both directions: 12%.
const MAX_SCALE_PPM: i64 = 120_000;
/// Upper bound of one class's evidence about the common scale, so that one wrong class cannot
/// outweigh the others.
const CLASS_SAYS: i64 = 64 * BIT;
/// Corrections are revised, which takes a fifth of a millisecond, after this number of informative
/// completions: soon at the beginning, when each changes much, later every second or two of a busy
/// disk. Pairs of the revisions made so far and the completions required from then on.
const REVISE_AFTER: [(u32, u32); 3] = [(0, 12), (8, 24), (32, 128)];
/// Corrections that differ by less do not justify new curves. Not tuned: it is small beside
/// [`FLOOR`], the least margin.
const MIN_CHANGE_NS: i64 = 4_000;
/// After a correction by more than this, margins that the error had widened are reset.
const LARGE_NS: i64 = 50_000;

/// What a completion says about the accuracy of predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// It was a revolution late.
    pub missed: bool,
    /// It was a revolution late or early, and so close to the other outcome that the variance of
    /// seeks explains it.
    pub explained: bool,
}

/// Corrections in force.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Corrections {
    scale_ppm: i64,
    /// Added to every write that moved, when its seek time is that of reads plus settling.
    settle_ns: i64,
    /// Residuals beyond the scale, by class; for class 0 (head switches) the whole correction.
    read: [i64; CLASSES],
    write: [i64; CLASSES],
}

/// Estimator of corrections and margins.
#[derive(Clone, Debug)]
pub struct Adaptive {
    /// The mechanics of the profile.
    base: Mechanics,
    /// The longest seek distance.
    longest: u32,
    read: Vec<Belief>,
    write: Vec<Belief>,
    in_force: Corrections,
    /// Informative completions since the last revision.
    since_revision: u32,
    revisions: u32,
    common: i64,
    of_class: [i64; CLASSES],
    margins: Margins,
    /// Time in ns until a command reaches a drive that has nothing to do; at least
    /// [`Adaptive::least_delay`].
    delay: i64,
    least_delay: i64,
    /// Misses of moves with much slack, in a million: of requests on one track, and on several.
    other_ppm: [i64; 2],
    /// Moves counted in `other_ppm`, up to 256.
    far: [i64; 2],
}

impl Adaptive {
    /// Starts from the profile in `model`, with no evidence of the drive. A command takes at least
    /// `least_delay` from the host to the drive.
    pub fn new(model: &Model, least_delay: Dur) -> Adaptive {
        Adaptive {
            base: model.mechanics.clone(),
            longest: model.geometry.cylinders().saturating_sub(1).max(1),
            read: vec![Belief::default(); CLASSES],
            write: vec![Belief::default(); CLASSES],
            in_force: Corrections { scale_ppm: 0, settle_ns: 0, read: [0; CLASSES], write: [0; CLASSES] },
            since_revision: 0,
            revisions: 0,
            common: START.0 as i64,
            of_class: [0; CLASSES],
            margins: Margins::fixed(START),
            delay: least_delay.0 as i64,
            least_delay: least_delay.0 as i64,
            other_ppm: [0; 2],
            far: [0; 2],
        }
    }

    /// Returns the margins that FILL adds to predicted moves.
    #[inline]
    pub fn margins(&self) -> &Margins {
        &self.margins
    }

    /// Returns the time that FILL assumes for a command to reach a drive that has nothing to do.
    #[inline]
    pub fn delay(&self) -> Dur {
        Dur(self.delay as u64)
    }

    /// Returns the common scale: by how much seeks are longer than the profile's, in parts per
    /// million.
    pub fn scale_ppm(&self) -> i64 {
        self.in_force.scale_ppm
    }

    /// Returns the bytes it occupies.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Adaptive>() + self.base.memory_bytes() + (self.read.len() + self.write.len()) * size_of::<Belief>()
    }

    /// Learns from a completed command that moved the head.
    pub fn observe(&mut self, seen: &Seen) -> Verdict {
        let turn = self.base.rotation.period();
        let Some(arrived) = arrival(seen, turn, self.base.on_arrival(seen.kind)) else {
            return self.observe_late(seen, turn);
        };
        let due = (seen.seek + seen.latency).0 as i64;
        let exact_miss = arrived.exact && seen.error_ns > turn.0 as i64 / 4;
        let missed = (!arrived.exact && arrived.after >= due) || exact_miss;
        let margin = self.margin_before(seen);
        let room = match seen.surprise {
            Surprise::EarlyTurn => Some(turn.saturating_sub(seen.latency)),
            _ => missed.then_some(seen.latency),
        };
        let late = arrived.exact.then_some(arrived.after - seen.seek.0 as i64);
        self.widen_or_narrow(seen, missed, late);
        self.learn(seen, arrived.after, arrived.before, missed && !arrived.exact);
        Verdict { missed, explained: room.is_some_and(|r| r <= margin) }
    }

    /// Returns the slack that FILL left before this move.
    fn margin_before(&self, seen: &Seen) -> Dur {
        self.margins.of_move(seen.from, seen.to) + if seen.alone { self.delay() } else { Dur::ZERO }
    }

    /// Learns from a completion that does not show when the arm arrived. If it is one revolution
    /// late, and on several tracks, one of the moves between them may be the cause; usually it is
    /// the first, whose slack FILL has used. So it counts as a miss for the margins: the successes
    /// of such requests count, and alone they would narrow the margins whatever the misses. The
    /// misses of the other moves are known from requests with much slack (`other_ppm`).
    fn observe_late(&mut self, seen: &Seen, turn: Dur) -> Verdict {
        // A drive that reads on arrival would land inside a request of this length, and its
        // successes tell nothing.
        let lands = self.base.on_arrival(seen.kind) && seen.latency + seen.media > turn;
        let one_turn = seen.surprise == Surprise::ExtraTurn && seen.error_ns < (turn.0 + turn.0 / 2) as i64;
        if seen.one_track || !one_turn || lands {
            return Verdict::default();
        }
        let margin = self.margin_before(seen);
        self.widen_or_narrow(seen, true, None);
        Verdict { missed: true, explained: seen.latency <= margin }
    }

    /// Adds the evidence of this move for the correction of its class, scaled to the class's
    /// centre.
    fn learn(&mut self, seen: &Seen, after: i64, before: i64, missed: bool) {
        let base = self.base.reposition(seen.from, seen.to, seen.kind).0 as i64;
        let distance = seen.from.0.abs_diff(seen.to.0);
        let arm = self.arm(distance, seen.kind);
        // If the surface changes too, the longer of the two moves was observed.
        let class = match seen.from.1 != seen.to.1 && arm <= self.base.head_switch.0 as i64 {
            true => 0,
            false => class_of(distance),
        };
        let middle = self.arm_of(class, seen.kind);
        let there = |x: i64| match class == 0 || arm == 0 {
            true => x,
            // An error proportional to the seek, the usual one, is the same share of the seek at
            // the centre.
            false => (i128::from(x) * i128::from(middle) / i128::from(arm)) as i64,
        };
        let beliefs = if seen.kind == Kind::Write { &mut self.write } else { &mut self.read };
        self.since_revision += u32::from(beliefs[class].learn(there(after - base), there(before - base), missed));
    }

    /// Returns the arm's time for a distance, without settling before writes.
    fn arm(&self, distance: u32, kind: Kind) -> i64 {
        let curve = match (&self.base.write_seek, kind) {
            (Some(w), Kind::Write) => w,
            _ => &self.base.seek,
        };
        curve.time(distance).0 as i64
    }

    /// Returns the arm's time at the centre of a class; zero for head switches, which a slow arm
    /// does not slow down.
    fn arm_of(&self, class: usize, kind: Kind) -> i64 {
        self.arm(centre_of(class).min(self.longest), kind)
    }

    fn margin_of(&self, class: usize) -> i64 {
        (self.common + self.of_class[class]).clamp(FLOOR.0 as i64, CEILING.0 as i64)
    }

    /// Makes one step of the stochastic approximation. `late`: the lateness of the move, where
    /// known.
    fn widen_or_narrow(&mut self, seen: &Seen, missed: bool, late: Option<i64>) {
        let turn = self.base.rotation.period().0 as i64;
        let slack = seen.latency.0 as i64 - if seen.alone { self.delay } else { 0 };
        let miss_ppm = if missed { 1_000_000 } else { 0 };
        let tracks = usize::from(!seen.one_track);
        if late.is_none() && (CEILING.0 as i64..turn - CEILING.0 as i64).contains(&slack) {
            // Mean of the first 256, exponentially decaying afterwards. The first counts half, so
            // that it does not determine the mean alone.
            self.far[tracks] = (self.far[tracks] + 1).min(256);
            self.other_ppm[tracks] += (miss_ppm - self.other_ppm[tracks]) / (self.far[tracks] + 1);
        }
        let class = class_of(seen.from.0.abs_diff(seen.to.0));
        let margin = self.margin_of(class);
        let missed_margin = match late {
            Some(late) => late > margin,
            None if (slack - margin).abs() > (margin / 2).max(NEAR_NS) => return,
            None => missed,
        };
        let off = if missed_margin { 1_000_000 } else { 0 } - TARGET_PPM - self.other_ppm[tracks].min(MAX_OTHER_PPM);
        let (floor, ceiling) = (FLOOR.0 as i64, CEILING.0 as i64);
        if seen.alone && late.is_none() {
            self.delay = (self.delay + STEP_CLASS * off / 1_000_000).clamp(self.least_delay, ceiling);
            if missed_margin {
                return;
            }
        }
        self.common = (self.common + STEP_COMMON * off / 1_000_000).clamp(floor, ceiling);
        let own = self.of_class[class] + STEP_CLASS * off / 1_000_000;
        self.of_class[class] = own.clamp(floor - self.common, ceiling - self.common);
        self.set_margins();
    }

    fn set_margins(&mut self) {
        self.margins = Margins::by_class(std::array::from_fn(|class| Dur(self.margin_of(class) as u64)));
    }

    /// Puts new corrections into `mechanics` if they differ enough, and returns whether it did. To
    /// be called after each observed completion. Values computed with the old corrections
    /// (predictions of commands at the drive, transfers over several tracks) remain until they are
    /// recomputed.
    pub fn revise(&mut self, mechanics: &mut Mechanics) -> bool {
        let after = REVISE_AFTER.iter().rev().find(|a| a.0 <= self.revisions).map_or(1, |a| a.1);
        if self.since_revision < after {
            return false;
        }
        self.since_revision = 0;
        self.revisions = self.revisions.saturating_add(1);
        let next = self.estimate();
        let change = self.change(&next);
        if change < MIN_CHANGE_NS {
            return false;
        }
        if change > LARGE_NS {
            self.common = self.common.min(START.0 as i64);
            self.of_class = self.of_class.map(|c| c.min(0));
            self.set_margins();
        }
        self.in_force = next;
        self.correct(mechanics);
        true
    }

    /// Returns the largest difference between the corrections in force and others, over the classes
    /// that the drive has, in ns.
    fn change(&self, next: &Corrections) -> i64 {
        let total = |c: &Corrections, class: usize, kind: Kind| {
            let (own, settle) = match (kind, self.own_write_curve()) {
                (Kind::Write, true) => (c.write[class], 0),
                (Kind::Write, false) => (c.read[class], c.settle_ns),
                _ => (c.read[class], 0),
            };
            self.arm_of(class, kind) * c.scale_ppm / 1_000_000 + own + settle
        };
        let of = |class, kind| (total(next, class, kind) - total(&self.in_force, class, kind)).abs();
        self.classes().map(|c| of(c, Kind::Read).max(of(c, Kind::Write))).max().unwrap_or(0)
    }

    /// Sets the moving parts of a model to the profile's with the corrections in force.
    pub fn correct(&self, mechanics: &mut Mechanics) {
        let c = &self.in_force;
        let offsets = |of: &[i64; CLASSES]| -> Vec<(u32, i64)> {
            self.classes().skip(1).map(|class| (centre_of(class).min(self.longest), of[class])).collect()
        };
        mechanics.seek = self.base.seek.corrected(c.scale_ppm, &offsets(&c.read));
        mechanics.head_switch = self.base.head_switch.saturating_add_signed(c.read[0]);
        match &self.base.write_seek {
            Some(w) => mechanics.write_seek = Some(w.corrected(c.scale_ppm, &offsets(&c.write))),
            None => mechanics.write_settle_ns = self.base.write_settle_ns + c.settle_ns,
        }
    }

    fn own_write_curve(&self) -> bool {
        self.base.write_seek.is_some()
    }

    /// Returns the classes that contain distances of the drive.
    fn classes(&self) -> impl Iterator<Item = usize> {
        // No distance lies between 1 and 2.
        let last = class_of(self.longest);
        (0..=last).filter(|&c| c != 2)
    }

    /// Estimates the corrections that best explain the evidence.
    fn estimate(&self) -> Corrections {
        let scale_ppm = self.scale();
        let scaled = |class: usize, kind: Kind| self.arm_of(class, kind) * scale_ppm / 1_000_000;
        let mut next = Corrections { scale_ppm, settle_ns: 0, read: [0; CLASSES], write: [0; CLASSES] };
        if !self.own_write_curve() {
            let told = self.classes().skip(1).filter(|&c| self.write[c].seen() > 0);
            let all: Vec<(&Belief, i64)> = told.map(|c| (&self.write[c], scaled(c, Kind::Write))).collect();
            next.settle_ns = likeliest(&all, 0, SETTLE_PER_BIT);
        }
        for class in self.classes() {
            let (read, write) = (&self.read[class], &self.write[class]);
            let expected = scaled(class, Kind::Read);
            let own = match self.own_write_curve() {
                // Without settling of their own, head switches before writes equal those before
                // reads.
                true if class == 0 => likeliest(&[(read, 0), (write, 0)], 0, RESIDUAL_PER_BIT),
                true => likeliest(&[(read, 0)], expected, RESIDUAL_PER_BIT),
                false => likeliest(&[(read, 0), (write, next.settle_ns)], expected, RESIDUAL_PER_BIT),
            };
            next.read[class] = own - expected;
            if self.own_write_curve() && class > 0 {
                let expected = scaled(class, Kind::Write);
                next.write[class] = likeliest(&[(write, 0)], expected, RESIDUAL_PER_BIT) - expected;
            }
        }
        next
    }

    /// Estimates the scale common to all classes: a coarse search, then a fine one around its
    /// result.
    fn scale(&self) -> i64 {
        let classes: Vec<(&Belief, i64, i64)> = self
            .classes()
            .skip(1)
            .flat_map(|c| [(&self.read[c], Kind::Read, c), (&self.write[c], Kind::Write, c)])
            .filter(|(b, ..)| b.seen() > 0)
            .map(|(b, kind, c)| (b, self.arm_of(c, kind), b.best()))
            .collect();
        let of = |ppm: i64| -> i64 {
            let told = classes.iter().map(|(b, arm, best)| (best - b.of(arm * ppm / 1_000_000)).min(CLASS_SAYS));
            let per_bit = if ppm < 0 { SCALE_PER_BIT_PPM / SHORTER } else { SCALE_PER_BIT_PPM };
            -told.sum::<i64>() - ppm.abs() * BIT / per_bit
        };
        let best = |from: i64, to: i64, step: i64| {
            let tried = (0..=(to - from) / step).map(|i| from + i * step);
            tried.max_by_key(|&ppm| (of(ppm), -ppm.abs())).unwrap_or(0)
        };
        let coarse = best(-MAX_SCALE_PPM, MAX_SCALE_PPM, 5_000);
        best(coarse - 5_000, coarse + 5_000, 500)
    }
}
