//! One interface to all algorithms: takes a gap, returns the best plan for it.

use headtime_disk::{Geometry, Model};

use super::candidate::Look;
use super::config::FillConfig;
use super::gap::{Gap, Leg, Plan};
use super::headtime;
use super::headtime::habit::Habit;
use super::headtime::prices::Prices;
use super::headtime::visit::PlanContext;
use super::left::Left;
use super::placement::Placement;
use super::regions::Regions;
use super::scene::Scene;
use super::search::{Policy, Search};
use crate::tasks::{SessionId, TaskRange, Wants, Who};

/// Input of a plan.
#[derive(Debug)]
pub struct Task<'a, W> {
    /// The model of the drive.
    pub model: &'a Model,
    /// The gap.
    pub gap: &'a Gap,
    /// The wanted sectors by session.
    pub wants: &'a W,
    /// Regions with wanted sectors.
    pub regions: &'a Regions,
    /// The winner of the lottery.
    pub winner: SessionId,
    /// Excluded ranges.
    pub exclude: &'a [TaskRange],
    /// The track on which the command before the gap ends, if that is a read.
    pub last_read: Option<(u32, u16)>,
    /// Legs already sent in this gap.
    pub legs_before: usize,
    /// Only what is read with the request's own command: background commands would cost the
    /// foreground what the drive's cache holds.
    pub front_only: bool,
}

/// An algorithm, and its state across searches.
#[derive(Clone, Debug)]
pub struct Planner {
    placement: Placement,
    budget: (u32, u32),
    which: Which,
    /// Cost of all searches: cells entered, tracks examined and queries of the task layer.
    cost: u64,
}

#[derive(Clone, Debug)]
enum Which {
    /// One of the papers' algorithms.
    Paper(Box<Paper>),
    /// headtime's own: plans the rest of the gap anew.
    Own(Box<headtime::Planner>, Box<Prices>),
}

#[derive(Clone, Debug)]
struct Paper {
    policy: &'static Policy,
    /// The search for the rest of the gap; `None`: the rest of the preceding plan is still in time.
    search: Option<Search>,
    /// The counts of tracks, between searches.
    left: Left,
    /// The second leg of a plan, and the number of legs in the gap once its first was sent.
    rest: Option<(usize, Leg)>,
}

impl Paper {
    /// Returns the counts of tracks, which the search has while there is one.
    fn counts_mut(&mut self) -> &mut Left {
        match &mut self.search {
            Some(search) => search.counts_mut(),
            None => &mut self.left,
        }
    }
}

impl Planner {
    /// Creates the configured planner.
    pub fn new(config: &FillConfig, model: &Model) -> Planner {
        let which = match config.algorithm.policy() {
            Some(policy) => Which::Paper(Box::new(Paper { policy, search: None, left: Left::default(), rest: None })),
            None => Which::Own(Box::default(), Box::new(Prices::new(model))),
        };
        Planner { placement: config.placement, budget: config.budget, which, cost: 0 }
    }

    /// Adds a wanted range.
    pub fn wanted(&mut self, geometry: &Geometry, range: TaskRange) {
        match &mut self.which {
            Which::Own(_, prices) => prices.bands.wanted(range),
            Which::Paper(paper) => paper.counts_mut().forget(geometry, range),
        }
    }

    /// Removes a range that is no longer wanted.
    pub fn gone(&mut self, geometry: &Geometry, range: TaskRange) {
        match &mut self.which {
            Which::Own(_, prices) => prices.bands.gone(range),
            Which::Paper(paper) => paper.counts_mut().forget(geometry, range),
        }
    }

    /// Frees the counts of tracks, when no session is left.
    pub(crate) fn release(&mut self) {
        if let Which::Paper(paper) = &mut self.which {
            *paper.counts_mut() = Left::default();
        }
    }

    /// Returns the bytes of the counts of tracks.
    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.which {
            Which::Own(..) => 0,
            Which::Paper(paper) => {
                paper.left.memory_bytes() + paper.search.as_ref().map_or(0, |search| search.counts().memory_bytes())
            }
        }
    }

    /// Returns the best plan for the rest of a gap: a quick pass, and the configured refinement.
    pub fn plan<W: Wants>(&mut self, task: &Task<W>) -> Option<Plan> {
        if let Which::Own(_, prices) = &mut self.which
            && task.legs_before == 0
        {
            prices.bands.gap(task.gap.dest.lbn);
        }
        self.begin(task);
        let (quick, more) = self.budget;
        if self.step(task, u64::from(quick)) {
            self.step(task, u64::from(more));
        }
        self.best(task)
    }

    /// Returns the value of the best plan that a quick pass finds, in ns of head time. `None`: the
    /// papers' algorithms have no such value.
    pub fn worth<W: Wants>(&mut self, task: &Task<W>) -> Option<u64> {
        if let Which::Paper(paper) = &mut self.which {
            // The rest of the last plan was for another gap.
            paper.rest = None;
            return None;
        }
        self.begin(task);
        self.step(task, u64::from(self.budget.0));
        let Which::Own(planner, prices) = &mut self.which else { return None };
        let (found, cost) = found(planner, prices, self.placement, self.budget, task);
        self.cost += cost;
        Some(found.map_or(0, |found| found.value))
    }

    /// Begins a search.
    pub fn begin<W: Wants>(&mut self, task: &Task<W>) {
        let who = Who::Session(task.winner);
        match &mut self.which {
            Which::Own(planner, prices) => {
                prices.grain.set(task.regions.grain());
                planner.begin(&asked(task, self.placement, prices, who), task.regions);
            }
            Which::Paper(paper) => {
                paper.left = std::mem::take(paper.counts_mut());
                let scene = scene(task, self.placement, paper.policy);
                let left = &mut paper.left;
                let search = || {
                    let search = Search::begin(paper.policy, &scene).remembering(std::mem::take(left), &scene);
                    if task.front_only { search.merged_only() } else { search }
                };
                let in_time = |(behind, leg): &(usize, Leg)| {
                    task.legs_before == *behind && !task.front_only && task.gap.holds(task.model, &[*leg])
                };
                paper.rest = paper.rest.filter(in_time);
                paper.search = paper.rest.is_none().then(search);
            }
        }
    }

    /// Continues the search until `budget` more has been spent, for the same task. Returns whether
    /// anything remains.
    pub fn step<W: Wants>(&mut self, task: &Task<W>, budget: u64) -> bool {
        let who = Who::Session(task.winner);
        match &mut self.which {
            Which::Own(..) if task.front_only => false,
            Which::Own(planner, prices) => {
                let before = planner.cost();
                planner.step(&asked(task, self.placement, prices, who), task.regions, budget);
                self.cost += planner.cost() - before;
                !planner.exhausted()
            }
            Which::Paper(paper) => paper.search.as_mut().is_some_and(|search| {
                self.cost += search.step(&scene(task, self.placement, paper.policy), budget);
                !search.exhausted()
            }),
        }
    }

    /// Returns the cost of all searches so far (docs of [`super::search`], "Cost").
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns the best plan so far, at any stage.
    pub fn best<W: Wants>(&mut self, task: &Task<W>) -> Option<Plan> {
        match &mut self.which {
            Which::Own(planner, prices) => {
                let (found, cost) = found(planner, prices, self.placement, self.budget, task);
                self.cost += cost;
                Some(found?.plan)
            }
            Which::Paper(paper) => {
                let Some(search) = &paper.search else {
                    // The second leg of the plan, which is still in time.
                    let (_, leg) = paper.rest.take()?;
                    return Some(Plan::of(leg, leg.count));
                };
                let plan = search.best()?;
                paper.rest = plan.legs().get(1).map(|leg| (task.legs_before + 1, *leg));
                Some(plan)
            }
        }
    }
}

/// Returns the best plan of headtime's own planner, of the winner's blocks, or of any session's if
/// none of those fits; and the cost of the search for the latter.
fn found<W: Wants>(
    planner: &mut headtime::Planner,
    prices: &Prices,
    placement: Placement,
    budget: (u32, u32),
    task: &Task<W>,
) -> (Option<headtime::Found>, u64) {
    let found = planner.best(&asked(task, placement, prices, Who::Session(task.winner)));
    if found.is_some() || !task.regions.is_shared() || task.front_only {
        return (found, 0);
    }
    let anyone = asked(task, placement, prices, Who::Anyone);
    let found = planner.search(&anyone, task.regions, u64::from(budget.0) + u64::from(budget.1));
    (found, planner.cost())
}

fn asked<'a, W: Wants>(task: &'a Task<W>, placement: Placement, prices: &'a Prices, who: Who) -> PlanContext<'a> {
    let Task { model, gap, wants, regions, exclude, .. } = *task;
    let habit = Habit::before(model, placement, task.last_read);
    PlanContext { model, gap, habit, wants, who, exclude, widest: regions.widest_unit(), prices }
}

fn scene<'a, W: Wants>(task: &Task<'a, W>, placement: Placement, policy: &Policy) -> Scene<'a, W> {
    let Task { model, gap, wants, regions, winner, exclude, .. } = *task;
    let mut rules = placement.rules();
    // What passes after the end of the request's track takes a separate command.
    rules.both_ranges &= !task.front_only;
    let by_angle = policy.by_angle;
    let look = Look { model, wants, gap, exclude, rules, by_angle, grain: regions.grain() };
    Scene { look, regions, winner: Who::Session(winner) }
}
