//! The algorithms behind one call: a gap in, the best plan for it out.

use headtime_disk::geometry::Geometry;
use headtime_disk::model::Model;
use headtime_disk::time::Time;

use super::candidate::Look;
use super::gap::{Gap, Leg, Plan};
use super::headtime;
use super::headtime::habit::Habit;
use super::headtime::prices::Prices;
use super::headtime::visit::Asked;
use super::placement::Placement;
use super::regions::Regions;
use super::search::{Policy, Scene, Search};
use super::subsystem::FillConfig;
use crate::tasks::{Range, SessionId, Wants, Who};

/// What a plan is made for.
#[derive(Debug)]
pub struct Task<'a, W> {
    /// The drive, as believed.
    pub model: &'a Model,
    /// The gap.
    pub gap: &'a Gap,
    /// Who wants what.
    pub wants: &'a W,
    /// Where.
    pub regions: &'a Regions,
    /// Who won the lottery.
    pub winner: SessionId,
    /// What no leg may touch.
    pub exclude: &'a [Range],
    /// The track on which the command before the gap ends, if that is a read.
    pub last_read: Option<(u32, u16)>,
    /// Legs that were put into this gap already.
    pub legs_before: usize,
}

/// An algorithm, and what it keeps from search to search.
#[derive(Clone, Debug)]
pub struct Planner {
    placement: Placement,
    budget: (u32, u32),
    which: Which,
}

#[derive(Clone, Debug)]
enum Which {
    /// One of the papers': one plan a gap; what is left of it when its first leg was sent.
    Paper(&'static Policy, Option<Leg>),
    /// headtime's own: a plan again for what is left of the gap.
    Own(Box<headtime::Planner>, Box<Prices>),
}

impl Planner {
    /// As configured.
    pub fn new(config: &FillConfig, geometry: &Geometry) -> Planner {
        let which = match config.algorithm.policy() {
            Some(policy) => Which::Paper(policy, None),
            None => Which::Own(Box::default(), Box::new(Prices::new(geometry))),
        };
        Planner { placement: config.placement, budget: config.budget, which }
    }

    /// This is wanted from now on.
    pub fn wanted(&mut self, range: Range) {
        if let Which::Own(_, prices) = &mut self.which {
            prices.bands.wanted(range);
        }
    }

    /// This is not wanted any more.
    pub fn gone(&mut self, range: Range) {
        if let Which::Own(_, prices) = &mut self.which {
            prices.bands.gone(range);
        }
    }

    /// The best plan for what is left of a gap.
    pub fn plan<W: Wants>(&mut self, task: &Task<W>) -> Option<Plan> {
        let Task { model, gap, wants, regions, winner, exclude, .. } = *task;
        let who = Who::Session(winner);
        match &mut self.which {
            Which::Own(planner, prices) => {
                let habit = Habit::before(model, self.placement, task.last_read);
                if task.legs_before == 0 {
                    prices.bands.gap(gap.dest.lbn);
                }
                let asked = Asked { model, gap, habit, wants, who, exclude, widest: regions.widest_unit(), prices };
                let mut plan = |who| {
                    let asked = Asked { who, ..asked };
                    planner.begin(&asked, regions);
                    planner.step(&asked, regions, u64::from(self.budget.0));
                    if !planner.exhausted() {
                        planner.step(&asked, regions, u64::from(self.budget.1));
                    }
                    planner.best(&asked).map(|f| f.plan)
                };
                // What the winner cannot use is not left to nobody.
                plan(who).or_else(|| if regions.is_shared() { plan(Who::Anyone) } else { None })
            }
            Which::Paper(policy, rest) => {
                let rules = self.placement.rules();
                if task.legs_before > 0 {
                    // One plan a gap: the second of its legs, if there is one and it is still in time.
                    let leg = rest.take().filter(|leg| gap.holds(model, &[*leg]))?;
                    return Some(Plan::of(leg, leg.count));
                }
                let look =
                    Look { model, wants, gap, exclude, rules, by_angle: policy.by_angle, not_before: Time::ZERO };
                let scene = Scene { look, regions, winner: who };
                let mut search = Search::begin(policy, &scene);
                search.step(&scene, u64::from(self.budget.0));
                if !search.exhausted() {
                    search.step(&scene, u64::from(self.budget.1));
                }
                let plan = search.best()?;
                *rest = plan.legs().get(1).copied();
                Some(plan)
            }
        }
    }
}
