//! headtime's own planner: several commands a gap, what passes exactly, and blocks priced by the head time they take.
//!
//! * [`walk`]: which tracks are looked at, those first where most time is left
//! * [`visit`]: the legs that a track offers, also on to the next track
//! * [`front`]: sectors merged with the request, also from the track before
//! * [`habit`]: what the drive does behind two reads on one track, and the last word on a plan
//! * [`prices`]: what a block is worth
//!
//! A search ends when no track left can beat the best plan by more than a little, or when it has looked at
//! [`Settings::tracks`]. Only a plan's first leg is binding: when there is room at the drive again, the rest is planned anew.
//! To favour the winner of a lottery, ask for its blocks first and for anyone's when that finds nothing.

pub mod front;
pub mod habit;
pub mod line;
pub mod prices;
pub mod visit;
pub mod walk;

use headtime_disk::command::Kind;

use super::gap::Plan;
use crate::fill::regions::Regions;
use crate::tasks::wanted::Wanted;
use front::{Front, Merged};
use line::Line;
use visit::{Asked, Point, Visit};
use walk::{Land, Walk};

/// How far a search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Tracks that a search may look at.
    pub tracks: u32,
    /// First legs that are followed further.
    pub beam: usize,
    /// Tracks that a second leg is looked for on.
    pub second: usize,
    /// Ends at which a first leg is tried to be cut short.
    pub cuts: usize,
    /// A plan is good enough when no other can be better by more than this, in thousandths.
    pub slack_permille: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { tracks: 64, beam: 2, second: 3, cuts: 2, slack_permille: 5 }
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

/// The planner: room for a search, used again and again.
#[derive(Clone, Debug, Default)]
pub struct Planner {
    /// How far a search goes.
    pub settings: Settings,
    walk: Walk,
    wanted: Wanted,
    visits: Vec<Visit>,
    lines: Vec<(u64, Line)>,
    /// The best plans, best first.
    best: Vec<Found>,
    /// Tracks looked at by the last search.
    pub looked_at: u32,
}

/// Plans kept, for when the best does not hold.
const KEPT: usize = 6;

impl Planner {
    /// The best plan for a gap.
    pub fn search(&mut self, asked: &Asked, regions: &Regions) -> Option<Found> {
        self.best.clear();
        self.visits.clear();
        self.lines.clear();
        self.looked_at = 0;
        let start = Point::start(asked);
        let front = Front::new(asked);
        if let Some(m) = front.as_ref().and_then(|f| f.best(asked, &start, &mut self.wanted)) {
            self.keep(Plan::of(m.leg, m.sectors), m.value);
        }
        let kinds = [Kind::Read, Kind::Write].map(|k| asked.wants.any(asked.who, k).then_some(k));
        let (model, gap) = (asked.model, asked.gap);
        let land = Land { model, gap, regions, who: asked.who };
        self.walk.begin(&land);
        while let Some((cell, bound)) = self.walk.next(&land) {
            if self.looked_at >= self.settings.tracks || !self.could_gain(asked.prices.most(bound)) {
                break;
            }
            for track in regions.cells().tracks(cell) {
                self.look(asked, &start, front.as_ref(), track, &kinds);
            }
        }
        self.deepen(asked, front.as_ref());
        // The exact last word.
        self.best.iter().copied().find(|f| habit::holds(model, gap, asked.habit, f.plan.legs()))
    }

    /// Whether a plan of this value would be better than the best so far by more than the slack.
    #[inline]
    fn could_gain(&self, value: u64) -> bool {
        self.best.first().is_none_or(|b| value * 1000 > b.value * (1000 + self.settings.slack_permille))
    }

    fn keep(&mut self, plan: Plan, value: u64) {
        if value == 0 || self.best.len() == KEPT && self.best[KEPT - 1].value >= value {
            return;
        }
        let at = self.best.partition_point(|f| f.value >= value);
        self.best.insert(at, Found { plan, value });
        self.best.truncate(KEPT);
    }

    /// Looks at one track for a first leg.
    fn look(
        &mut self,
        asked: &Asked,
        start: &Point,
        front: Option<&Front>,
        track: (u32, u16),
        kinds: &[Option<Kind>; 2],
    ) {
        for kind in kinds.iter().flatten().copied() {
            let Some(time) = asked.time_on(asked.gap.head(kind), track, kind) else { continue };
            if !self.could_gain(asked.prices.most(time)) {
                continue;
            }
            let Some(track) = asked.model.geometry.track(track.0, track.1) else { continue };
            self.looked_at += 1;
            let line = Line::new(&asked.model.geometry, &asked.model.mechanics, track);
            let before = self.visits.len();
            asked.visits(start, &line, kind, &mut self.wanted, &mut self.visits);
            for i in before..self.visits.len() {
                let v = self.visits[i];
                self.keep(Plan::of(v.leg, v.sectors), v.value);
                self.finish(asked, front, Plan::of(v.leg, v.sectors), v.value, &v.end);
            }
            if self.visits.len() > before {
                let value = self.visits[before..].iter().map(|v| v.value).max().unwrap_or(0);
                self.lines.push((value, line));
            }
        }
    }

    /// A plan so far, with the request's command made to begin earlier behind it.
    fn finish(&mut self, asked: &Asked, front: Option<&Front>, plan: Plan, value: u64, end: &Point) {
        let Some(front) = front else { return };
        let Some(lo) = front.reaches(asked, end) else { return };
        if !self.could_gain(value + front.worth_at_most(asked, lo)) {
            return;
        }
        if let Some(Merged { leg, sectors, value: more }) = front.merged(asked, lo, &mut self.wanted)
            && let Some(plan) = plan.and(leg, sectors)
        {
            self.keep(plan, value + more);
        }
    }

    /// Follows the best first legs further: cut short, and with a second one.
    fn deepen(&mut self, asked: &Asked, front: Option<&Front>) {
        let Settings { beam, second, cuts, .. } = self.settings;
        if beam == 0 {
            return;
        }
        self.visits.sort_by_key(|v| std::cmp::Reverse(v.value));
        self.visits.truncate(beam);
        self.lines.sort_by_key(|l| std::cmp::Reverse(l.0));
        self.lines.truncate(second);
        let firsts = std::mem::take(&mut self.visits);
        let lines = std::mem::take(&mut self.lines);
        let mut more = Vec::new();
        for first in &firsts {
            let mut v = *first;
            for cut in 0..=cuts {
                if cut > 0 {
                    let Some(shorter) = asked.cut(&Point::start(asked), &v, &mut self.wanted) else { break };
                    v = shorter;
                    self.finish(asked, front, Plan::of(v.leg, v.sectors), v.value, &v.end);
                }
                let left = asked.gap.starts.saturating_since(v.end.head.at);
                if !self.could_gain(v.value + asked.prices.most(left)) {
                    continue;
                }
                for (_, line) in &lines {
                    for kind in [Kind::Read, Kind::Write] {
                        if !asked.wants.any(asked.who, kind) {
                            continue;
                        }
                        let head = v.end.head_for(asked, kind);
                        let Some(time) = asked.time_on(&head, line.at(), kind) else { continue };
                        if !self.could_gain(v.value + asked.prices.most(time)) {
                            continue;
                        }
                        more.clear();
                        asked.visits(&v.end, line, kind, &mut self.wanted, &mut more);
                        for w in &more {
                            if w.leg.range().overlaps(&v.leg.range()) {
                                continue;
                            }
                            if let Some(plan) = Plan::of(v.leg, v.sectors).and(w.leg, w.sectors) {
                                self.keep(plan, v.value + w.value);
                                self.finish(asked, front, plan, v.value + w.value, &w.end);
                            }
                        }
                    }
                }
            }
        }
        self.visits = firsts;
        self.lines = lines;
    }
}
