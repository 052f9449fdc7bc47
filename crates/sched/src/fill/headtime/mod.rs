//! headtime's own planner: several commands a gap, what passes exactly, and blocks priced by the
//! head time they take.
//!
//! * [`walk`]: which tracks are looked at, those first where most can be won
//! * [`visit`]: the legs that a track offers, also on to the next track
//! * `seconds`: a second leg behind the best first ones
//! * `pairs`: two legs put together, of which the second follows as it stands
//! * [`front`]: sectors merged with the request, also from the track before
//! * [`habit`]: what the drive does behind two reads on one track, and the last word on a plan
//! * [`prices`], [`bands`]: what a block is worth
//! * [`grain`]: what a length of time can bring at most when blocks come in whole units
//!
//! A search goes on in steps of a given cost ([`Planner::step`]) until no track left can beat the
//! best plan by more than a little; the best plan so far can be taken at any moment
//! ([`Planner::best`]). Only a plan's first leg is binding: when there is room at the drive again,
//! the rest is planned anew. To favour the winner of a lottery, ask for its blocks first and for
//! anyone's when that finds nothing.
//!
//! Candidate first legs are extended in three ways: with a second leg on one of the most promising
//! tracks; shortened, then extended; and with any other leg found, if that leg can follow
//! unchanged.
//!
//! # Cost
//!
//! One for each cell that the walk comes to, two for each track looked at and each leg that is
//! looked for or cut behind another. Putting together what was offered is bounded by itself
//! (`pairs`).

pub mod bands;
pub mod front;
pub mod grain;
pub mod habit;
pub mod line;
mod pairs;
pub mod prices;
mod seconds;
pub mod visit;
pub mod walk;

use headtime_disk::command::Kind;
use headtime_disk::rotation::JUST_PASSED;

use super::gap::{Plan, Window};
use crate::fill::regions::Regions;
use crate::tasks::wanted::Wanted;
use front::{Front, Merged};
use line::Lines;
use pairs::Rank;
use seconds::Offering;
use visit::{Asked, Point, Visit};
use walk::{Land, Stop, Walk};

/// How far a search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// First legs that are followed further.
    pub beam: usize,
    /// Tracks that a second leg is looked for on.
    pub second: usize,
    /// Ends at which a first leg is tried to be cut short.
    pub cuts: usize,
    /// A plan is good enough when no other can be better by more than this, in thousandths.
    pub slack_permille: u64,
    /// Cost after which a search ends that has found no plan better by more than the slack, where
    /// what is left could be half as good again or better. The less better it could be, the sooner
    /// it ends.
    pub patience: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { beam: 2, second: 4, cuts: 2, slack_permille: 5, patience: 144 }
    }
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The plan.
    pub plan: Plan,
    /// What it is worth.
    pub value: u64,
}

/// The planner: a search at any stage, and room for the next.
#[derive(Clone, Debug, Default)]
pub struct Planner {
    /// How far a search goes.
    pub settings: Settings,
    walk: Walk,
    /// Sectors of the request itself that may complete a unit.
    own: u32,
    front: Option<Front>,
    /// What merging is worth at most, wherever the head comes from.
    front_most: u64,
    /// Read, write: does anyone asked about want any?
    kinds: [bool; 2],
    windows: [[Option<Cached>; 4]; 2],
    wanted: Wanted,
    near: Wanted,
    /// The best first legs, best first.
    firsts: Vec<Visit>,
    /// The tracks that offered most, best first.
    lines: Vec<Offering>,
    /// Neighbours of the track that was looked at last.
    alike: Option<Lines>,
    /// Second legs of one track: room for the next.
    seconds: Vec<Visit>,
    /// All legs that were offered, and how many there were when they were put together last.
    offered: Vec<Visit>,
    paired: usize,
    /// Which of them may come first, best first, and which second ([`Rank`]).
    pairs: [Vec<Rank>; 2],
    /// The best plans, best first.
    best: Vec<Found>,
    /// A plan is better than the best so far by more than the slack if it is worth more than this,
    /// in ns of head time.
    bar: u64,
    cost: u64,
    /// From which cost on patience counts.
    patient_from: u64,
    /// First legs were found that have not been followed further.
    fresh: bool,
    through: bool,
}

/// Plans kept, for when the best does not hold.
const KEPT: usize = 6;
/// Tracks that are looked at without being judged before, from one that was found worth a look on.
const TRUSTED: u32 = 4;
/// What a track looked at costs.
const LOOK: u64 = 2;
const KINDS: [Kind; 2] = [Kind::Read, Kind::Write];

/// The time on a cylinder, for a kind: the same on all its surfaces, but for those of the gap's two
/// ends.
#[derive(Clone, Copy, Debug)]
struct Cached {
    cylinder: u32,
    /// And the regions that pass in it.
    window: Option<(Window, u64)>,
}

impl Planner {
    /// The best plan for a gap that can be found for so much.
    pub fn search(&mut self, asked: &Asked, regions: &Regions, budget: u64) -> Option<Found> {
        self.begin(asked, regions);
        self.step(asked, regions, budget);
        self.best(asked)
    }

    /// Begins a search. `asked` and `regions` are to be the same in every step.
    pub fn begin(&mut self, asked: &Asked, regions: &Regions) {
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
            // Behind a leg the head comes later: it reaches less, but may leave no fragment where
            // it left one.
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

    /// Goes on until `budget` more has been spent, or a little more than that, or nothing is left
    /// that could be better.
    pub fn step(&mut self, asked: &Asked, regions: &Regions, budget: u64) {
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
            // Where a plan is known and so much has brought no better one, it is time to make do.
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
        // Following what was found further is not looking in vain.
        self.patient_from += self.cost - before;
    }

    /// Whether there is nothing left to look at that could be better.
    #[inline]
    pub fn exhausted(&self) -> bool {
        self.through
    }

    /// What the search has cost so far.
    #[inline]
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// The best plan so far, followed exactly once more.
    pub fn best(&self, asked: &Asked) -> Option<Found> {
        let holds = |f: &Found| habit::holds(asked.model, asked.gap, asked.habit, f.plan.legs());
        self.best.iter().copied().find(holds)
    }

    /// Whether a plan of this value would be better than the best so far by more than the slack.
    #[inline]
    fn could_gain(&self, value: u64) -> bool {
        value > self.bar
    }

    /// How much is spent without a better plan where what is left could be worth `ahead`.
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

    /// The time on a track, and the regions that pass in it.
    #[inline]
    fn window(&mut self, asked: &Asked, regions: &Regions, track: (u32, u16), i: usize) -> Option<(Window, u64)> {
        let which =
            usize::from(track.1 == asked.gap.source().1) + 2 * usize::from(track.1 == asked.gap.destination().1);
        if let Some(c) = &self.windows[i][which]
            && c.cylinder == track.0
        {
            return c.window;
        }
        let window = asked.window(asked.gap.head(KINDS[i]), track, KINDS[i]).map(|w| {
            let rotation = &asked.model.mechanics.rotation;
            let length = w.length();
            let arc = match length >= rotation.period() {
                true => regions.all(),
                // What passes by rounding counts as passing.
                false => {
                    let span = rotation.angle_after(length).0.saturating_add(2 * JUST_PASSED.0);
                    regions.arc(w.angle - JUST_PASSED, span)
                }
            };
            (w, arc)
        });
        self.windows[i][which] = Some(Cached { cylinder: track.0, window });
        window
    }

    /// Looks at the tracks of a cell, the nearest first.
    fn enter(&mut self, asked: &Asked, regions: &Regions, land: &Land, stop: &Stop) {
        let mask = regions.mask(asked.who, stop.cell);
        let left = |walk: &Walk, track: (u32, u16)| asked.prices.most_at(walk.left(land, track), track.0, land.own);
        // Where even its far end is worth a look, or all of it is equally near, its tracks need not
        // be judged one by one. Those next to one that will do are likely to: each is judged
        // exactly when it is looked at.
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

    /// Looks at one track for a first leg; `mask`: the regions of its cell in which something is
    /// wanted.
    fn look(&mut self, asked: &Asked, regions: &Regions, track: (u32, u16), mask: u64) {
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

    /// Whether a leg that is worth no more than this may be of use.
    #[inline]
    fn is_worth_appraising(&self, asked: &Asked, v: &Visit) -> bool {
        let is_first = self.firsts.get(self.settings.beam.wrapping_sub(1)).is_none_or(|f| v.value > f.value);
        is_first && self.settings.beam > 0 || self.could_gain(v.value + self.front_at_most(asked, &v.end))
    }

    /// What merging can bring at most behind what ends at `end`.
    #[inline]
    fn front_at_most(&self, asked: &Asked, end: &Point) -> u64 {
        let left = asked.gap.starts.saturating_since(end.head.at);
        match self.front {
            Some(_) => asked.prices.most_at(left, asked.gap.dest.cylinder, self.own).min(self.front_most),
            None => 0,
        }
    }

    /// A plan so far, with the request's command made to begin earlier behind it.
    fn finish(&mut self, asked: &Asked, plan: Plan, value: u64, end: &Point) {
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

fn land<'a>(asked: &Asked<'a>, regions: &'a Regions) -> Land<'a> {
    let (model, gap, who, prices, own) = (asked.model, asked.gap, asked.who, asked.prices, front::own(asked));
    Land { model, gap, regions, who, prices, own }
}

/// Puts something into a list of the `most` best, best first. False when it is not one of them.
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
