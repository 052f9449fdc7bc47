//! headtime's own planner: several commands per gap, exact computation of what passes, and blocks
//! priced by the head time they take.
//!
//! * [`walk`]: which tracks are examined, those with the highest bound first
//! * [`visit`]: the legs that a track offers, including those that continue on the next track
//! * `second_legs`: a second leg after the best first ones
//! * `pairs`: pairs of legs of which the second can follow unchanged
//! * [`front`]: sectors merged with the request, also from the track before
//! * [`habit`]: the drive's read-ahead after two reads on one track, and the final check of a plan
//! * [`prices`], [`bands`]: the value of a block
//! * [`grain`]: an upper bound of what a time can bring when blocks come in whole units
//!
//! A search proceeds in steps of a given cost ([`Planner::step`]) until no remaining track can beat
//! the best plan by more than a little; the best plan so far is available at any moment
//! ([`Planner::best`]). Only a plan's first leg is binding: the rest is planned anew when there is
//! room at the drive. To favour the winner of a lottery, search for its blocks first, and for those
//! of all sessions when that finds nothing.
//!
//! Candidate first legs are extended in three ways: with a second leg on one of the most promising
//! tracks; shortened, then extended; and with any other leg found, if that leg can follow
//! unchanged.
//!
//! # Cost
//!
//! One for each cell that the walk enters, two for each track examined and each leg that is sought
//! or cut after another. The cost of pairing legs has its own bound (`pairs`).

pub(crate) mod bands;
pub(crate) mod front;
pub(crate) mod grain;
pub(crate) mod habit;
pub(crate) mod line;
mod pairs;
pub(crate) mod prices;
mod second_legs;
pub(crate) mod visit;
pub(crate) mod walk;

use super::gap::{Plan, Window};
use super::stay::KINDS;
use crate::fill::regions::Regions;
use crate::tasks::wanted::Wanted;
use front::{Front, Merged};
use line::Lines;
use pairs::Rank;
use second_legs::Offering;
use visit::{PlanContext, Point, Visit};
use walk::{Land, Stop, Walk};

/// Limits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// First legs that are extended.
    pub beam: usize,
    /// Tracks on which a second leg is sought.
    pub second: usize,
    /// Times a first leg is shortened.
    pub cuts: usize,
    /// A plan is accepted when no other can be better by more than this, in thousandths.
    pub slack_permille: u64,
    /// Cost without an improvement of more than the slack after which a search ends, where the
    /// remaining tracks could be half as good again or better. The smaller the possible
    /// improvement, the sooner it ends.
    pub patience: u64,
}

/// Twice as many first legs and cuts brought no more in a whole scan. With six tracks for a second
/// leg instead of four, and patience renewed by any better plan, searches cost 3% more and plans
/// were worth 0.1 to 0.2% more late in a scan. With a patience of 112 they are worth 0.7 to 1.1%
/// less when a fourteenth of the disk is left (docs/freeblock.md). The slack is not tuned.
impl Default for Settings {
    fn default() -> Settings {
        Settings { beam: 2, second: 4, cuts: 2, slack_permille: 5, patience: 144 }
    }
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The plan.
    pub plan: Plan,
    /// Its value.
    pub value: u64,
}

/// The planner: a search at any stage, and buffers for the next.
#[derive(Clone, Debug, Default)]
pub struct Planner {
    /// Limits of a search.
    pub settings: Settings,
    walk: Walk,
    /// Sectors of the request itself that may complete a unit.
    own: u32,
    front: Option<Front>,
    /// Upper bound of the value of merging, wherever the head comes from.
    front_most: u64,
    /// Read, write: whether any session of `who` wants any.
    kinds: [bool; 2],
    windows: [[Option<Cached>; 4]; 2],
    wanted: Wanted,
    near: Wanted,
    /// The best first legs, best first.
    firsts: Vec<Visit>,
    /// The tracks with the best offers, best first.
    lines: Vec<Offering>,
    /// Neighbours of the track examined last.
    alike: Option<Lines>,
    /// Buffer for second legs of one track.
    seconds: Vec<Visit>,
    /// All legs found; `paired`: their number when they were last paired.
    offered: Vec<Visit>,
    paired: usize,
    /// The legs that may come first, best first, and those that may come second ([`Rank`]).
    pairs: [Vec<Rank>; 2],
    /// The best plans, best first.
    best: Vec<Found>,
    /// A plan worth more than this, in ns of head time, beats the best so far by more than the
    /// slack.
    bar: u64,
    cost: u64,
    /// The cost from which patience counts.
    patient_from: u64,
    /// First legs were found that have not been extended.
    fresh: bool,
    through: bool,
}

/// Plans kept, in case the best does not pass the final check. Not tuned: a few, because each that
/// is kept is moved when a better one is found.
const KEPT: usize = 6;
/// Tracks examined without a bound check, after one that passed the check. Not tuned: the next
/// tracks of a cell differ little in what they can bring, so most would pass too.
const TRUSTED: u32 = 4;
/// Cost of examining a track.
const LOOK: u64 = 2;

/// The window on a cylinder, for a kind: the same on all its surfaces, except those of the gap's
/// two ends.
#[derive(Clone, Copy, Debug)]
struct Cached {
    cylinder: u32,
    /// The window, and the regions that pass in it.
    window: Option<(Window, u64)>,
}

impl Planner {
    /// Returns the best plan for a gap that can be found at this cost.
    pub fn search(&mut self, asked: &PlanContext, regions: &Regions, budget: u64) -> Option<Found> {
        self.begin(asked, regions);
        self.step(asked, regions, budget);
        self.best(asked)
    }

    /// Begins a search. `asked` and `regions` must be the same in every step.
    pub fn begin(&mut self, asked: &PlanContext, regions: &Regions) {
        self.best.clear();
        (self.bar, self.patient_from) = (0, 0);
        self.firsts.clear();
        self.lines.clear();
        self.alike = None;
        self.offered.clear();
        self.paired = 0;
        self.windows = [[None; 4]; 2];
        (self.cost, self.fresh, self.through) = (1, false, false);
        self.kinds = KINDS.map(|k| asked.wants.any(asked.who, k));
        self.front = Front::new(asked);
        let start = Point::start(asked);
        self.front_most = 0;
        if let Some(front) = self.front {
            // After a leg the head comes later: it reaches less, but may leave no fragment where it
            // left one.
            let lo = front.reaches(asked, &start);
            match lo.and_then(|lo| front.merged(asked, lo, &mut self.wanted, &mut self.near)) {
                Some(m) => {
                    self.keep(Plan::of(m.leg, m.sectors), m.value);
                    self.front_most = m.value + asked.prices.fragment_on(asked.gap.dest.cylinder);
                }
                None => self.front = None,
            }
        }
        self.own = front::own(asked);
        self.walk.begin(&land(asked, regions), self.kinds);
    }

    /// Continues until at least `budget` has been spent, possibly slightly more, or nothing remains
    /// that could be better.
    pub fn step(&mut self, asked: &PlanContext, regions: &Regions, budget: u64) {
        let until = self.cost.saturating_add(budget);
        let land = land(asked, regions);
        while !self.through && self.cost < until {
            let Some(stop) = self.walk.next(&land).filter(|s| self.could_gain(s.ahead)) else {
                self.through = true;
                break;
            };
            self.cost += 1;
            if self.could_gain(stop.worth) {
                self.enter(asked, regions, &land, &stop);
            }
            // With a plan known and this much cost without a better one, the search ends.
            if self.cost > self.patient_from.saturating_add(self.patience(stop.ahead)) {
                self.through = self.best(asked).is_some();
                self.patient_from = self.cost;
            }
        }
        let before = self.cost;
        if std::mem::take(&mut self.fresh) {
            self.deepen(asked);
        }
        if self.paired < self.offered.len() {
            self.paired = self.offered.len();
            self.pair(asked);
        }
        // Extending found legs does not count against patience.
        self.patient_from += self.cost - before;
    }

    /// Returns whether nothing remains that could be better.
    #[inline]
    pub fn exhausted(&self) -> bool {
        self.through
    }

    /// Returns the cost so far.
    #[inline]
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns the best plan so far that passes the exact final check.
    pub fn best(&self, asked: &PlanContext) -> Option<Found> {
        let holds = |f: &Found| habit::holds(asked.model, asked.gap, asked.habit, f.plan.legs());
        self.best.iter().copied().find(holds)
    }

    /// Returns whether a plan of this value would beat the best so far by more than the slack.
    #[inline]
    fn could_gain(&self, value: u64) -> bool {
        value > self.bar
    }

    /// Returns the cost spent without a better plan where the remaining tracks could be worth
    /// `ahead`.
    #[inline]
    fn patience(&self, ahead: u64) -> u64 {
        let best = self.best.first().map_or(0, |b| b.value);
        let (most, better) = (self.settings.patience, ahead.saturating_sub(best));
        most.saturating_mul(2 * better).checked_div(best).map_or(most, |patience| patience.min(most))
    }

    fn keep(&mut self, plan: Plan, value: u64) {
        if value == 0 || self.best.len() == KEPT && self.best[KEPT - 1].value >= value {
            return;
        }
        let at = self.best.partition_point(|f| f.value >= value);
        if at == 0 {
            if self.could_gain(value) {
                self.patient_from = self.cost;
            }
            self.bar = value * (1000 + self.settings.slack_permille) / 1000;
        }
        self.best.truncate(KEPT - 1);
        self.best.insert(at, Found { plan, value });
    }

    /// Returns the window on a track, and the regions that pass in it.
    #[inline]
    fn window(&mut self, asked: &PlanContext, regions: &Regions, track: (u32, u16), i: usize) -> Option<(Window, u64)> {
        let which =
            usize::from(track.1 == asked.gap.source().1) + 2 * usize::from(track.1 == asked.gap.destination().1);
        if let Some(c) = &self.windows[i][which]
            && c.cylinder == track.0
        {
            return c.window;
        }
        let window = asked.window(asked.gap.head(KINDS[i]), track, KINDS[i]);
        let window = window.map(|w| (w, regions.in_window(&asked.model.mechanics.rotation, &w)));
        self.windows[i][which] = Some(Cached { cylinder: track.0, window });
        window
    }

    /// Examines the tracks of a cell, the nearest first.
    fn enter(&mut self, asked: &PlanContext, regions: &Regions, land: &Land, stop: &Stop) {
        let mask = regions.mask(asked.who, stop.cell);
        let left = |walk: &Walk, track: (u32, u16)| asked.prices.most_at(walk.left(land, track), track.0, land.own);
        // If even its far end passes the bound check, or all of it is equally near, its tracks need
        // not be checked one by one. The neighbours of a track that passes are likely to pass too:
        // each is checked exactly when it is examined.
        let sure = stop.one || stop.falls && self.could_gain(left(&self.walk, stop.furthest));
        let mut trusted = 0;
        for track in regions.cells().tracks_from(stop.cell, stop.up) {
            if !sure && trusted == 0 {
                if !self.could_gain(left(&self.walk, track)) {
                    if stop.falls {
                        break;
                    }
                    continue;
                }
                trusted = TRUSTED;
            }
            trusted = trusted.saturating_sub(1);
            self.look(asked, regions, track, mask);
        }
    }

    /// Examines one track for a first leg; `mask`: the regions of its cell with wanted sectors.
    fn look(&mut self, asked: &PlanContext, regions: &Regions, track: (u32, u16), mask: u64) {
        if asked.habit.bars(asked.gap, track) {
            return;
        }
        let (mut line, mut leave) = (None, [None; 2]);
        for (i, kind) in KINDS.into_iter().enumerate() {
            if !self.kinds[i] {
                continue;
            }
            let Some((window, arc)) = self.window(asked, regions, track, i) else { continue };
            if mask & arc == 0 || !self.could_gain(asked.prices.most_at(window.length(), track.0, self.own)) {
                continue;
            }
            let line = match line {
                Some(line) => line,
                None => {
                    let Some(found) = Lines::at(&mut self.alike, asked.model, track) else { return };
                    *line.insert(found)
                }
            };
            leave[i] = Some(window.leave);
            self.cost += LOOK;
            let from = self.offered.len();
            let start = Point::start(asked);
            asked.visits(&start, &line, kind, &window, &mut self.wanted, &mut self.offered);
            let mut most = 0;
            for i in from..self.offered.len() {
                if !self.is_worth_appraising(asked, &self.offered[i]) {
                    continue;
                }
                asked.appraise(&mut self.offered[i], &mut self.near);
                let Visit { leg, sectors, value, end, .. } = self.offered[i];
                most = value.max(most);
                self.keep(Plan::of(leg, sectors), value);
                self.finish(asked, Plan::of(leg, sectors), value, &end);
                self.fresh |= insert(&mut self.firsts, self.settings.beam, &self.offered[i], |v| v.value);
            }
            self.offered.truncate(pairs::OFFERED);
            if most > 0 {
                insert(&mut self.lines, self.settings.second, &Offering { line, most, leave }, |l| l.most);
            }
        }
    }

    /// Returns whether a leg of at most this value may be of use.
    #[inline]
    fn is_worth_appraising(&self, asked: &PlanContext, v: &Visit) -> bool {
        let is_first = self.firsts.get(self.settings.beam.wrapping_sub(1)).is_none_or(|f| v.value > f.value);
        is_first && self.settings.beam > 0 || self.could_gain(v.value + self.front_at_most(asked, &v.end))
    }

    /// Returns an upper bound of the value of merging after `end`.
    #[inline]
    fn front_at_most(&self, asked: &PlanContext, end: &Point) -> u64 {
        let left = asked.gap.starts.saturating_since(end.head.at);
        match self.front {
            Some(_) => asked.prices.most_at(left, asked.gap.dest.cylinder, self.own).min(self.front_most),
            None => 0,
        }
    }

    /// Considers a plan so far with a merged leg after it.
    fn finish(&mut self, asked: &PlanContext, plan: Plan, value: u64, end: &Point) {
        let Some(front) = &self.front else { return };
        if !self.could_gain(value + self.front_at_most(asked, end)) {
            return;
        }
        let Some(lo) = front.reaches(asked, end) else { return };
        if !self.could_gain(value + front.worth_at_most(asked, lo)) {
            return;
        }
        if let Some(Merged { leg, sectors, value: more }) = front.merged(asked, lo, &mut self.wanted, &mut self.near)
            && let Some(plan) = plan.and(leg, sectors)
        {
            self.keep(plan, value + more);
        }
    }
}

fn land<'a>(asked: &PlanContext<'a>, regions: &'a Regions) -> Land<'a> {
    let (model, gap, who, prices, own) = (asked.model, asked.gap, asked.who, asked.prices, front::own(asked));
    Land { model, gap, regions, who, prices, own }
}

/// Inserts an item into a list of the `most` best, best first. False when it is not one of them.
fn insert<T: Copy>(list: &mut Vec<T>, most: usize, item: &T, value: impl Fn(&T) -> u64) -> bool {
    let worth = value(item);
    let at = list.partition_point(|i| value(i) >= worth);
    if at >= most {
        return false;
    }
    list.truncate(most - 1);
    list.insert(at, *item);
    true
}
