//! A second leg after the best first ones: unchanged, and shortened so that more fits after them.
//!
//! Only the tracks with the best offers are examined again: when a sector passes there does not
//! depend on where the head comes from.

use headtime_disk::Time;

use crate::fill::gap::Plan;

use super::line::Line;
use super::visit::{PlanContext, Point, Visit};
use super::{LOOK, Planner};
use crate::fill::stay::KINDS;

/// A track with an offer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offering {
    /// The track.
    pub line: Line,
    /// The value of its best leg, in ns of head time.
    pub most: u64,
    /// The latest end of a read or a write there, where computed.
    pub leave: [Option<Time>; 2],
}

impl Planner {
    /// Extends the best first legs: shortens them, and adds a second leg.
    pub(super) fn deepen(&mut self, asked: &PlanContext) {
        let firsts = std::mem::take(&mut self.firsts);
        let lines = std::mem::take(&mut self.lines);
        for first in &firsts {
            let mut v = *first;
            for cut in 0..=self.settings.cuts {
                if cut > 0 {
                    let start = Point::start(asked);
                    let Some(shorter) = asked.cut(&start, &v, &mut self.wanted, &mut self.near) else { break };
                    v = shorter;
                    self.cost += LOOK;
                    self.finish(asked, Plan::of(v.leg, v.sectors), v.value, &v.end);
                }
                lines.iter().for_each(|line| self.second(asked, &v, line));
            }
        }
        self.firsts = firsts;
        self.lines = lines;
    }

    /// Examines one track for a second leg.
    fn second(&mut self, asked: &PlanContext, v: &Visit, Offering { line, leave, .. }: &Offering) {
        for (i, kind) in KINDS.into_iter().enumerate() {
            let left = leave[i].unwrap_or(asked.gap.starts).saturating_since(v.end.head.at);
            if !self.kinds[i] || !self.could_gain(v.value + asked.prices.most_at(left, line.track.cylinder, self.own)) {
                continue;
            }
            let head = v.end.head_for(asked, kind);
            let Some(window) = asked.window(&head, line.at(), kind) else { continue };
            if !self.could_gain(v.value + asked.prices.most_at(window.length(), line.track.cylinder, self.own)) {
                continue;
            }
            self.cost += LOOK;
            let mut seconds = std::mem::take(&mut self.seconds);
            seconds.clear();
            asked.visits(&v.end, line, kind, &window, &mut self.wanted, &mut seconds);
            for w in &mut seconds {
                if w.leg.range().overlaps(&v.leg.range())
                    || !self.could_gain(v.value + w.value + self.front_at_most(asked, &w.end))
                {
                    continue;
                }
                asked.appraise(w, &mut self.near);
                if let Some(plan) = Plan::of(v.leg, v.sectors).and(w.leg, w.sectors) {
                    self.keep(plan, v.value + w.value);
                    self.finish(asked, plan, v.value + w.value, &w.end);
                }
            }
            self.seconds = seconds;
        }
    }
}
