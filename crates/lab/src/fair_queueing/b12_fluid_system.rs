//! B12: the deviation of B-WF2Q+ from the ideal system.
//!
//! Valente (2014), sections 3.1 and 3.2. The bounds and their derivation are in
//! `headtime_sched::internals::bwf2q::Bwf2q`.

use std::collections::VecDeque;

use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::internals::bwf2q::{Bwf2q, Since};
use headtime_sched::internals::fluid::Fluid;
use headtime_sim::workload::variates::Variates;

use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B12: Experiment = Experiment { spec: &SPEC, steps: (COUNTS.len() * MANNERS.len()) as u64, run };

static SPEC: Spec = Spec {
    id: "B12",
    title: "B-WF2Q+ against the fluid system",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), sections 3.1 and 3.2",
    drive: "none: sectors alone",
    workload: "2 to 1,000 applications of random weights and budgets that become backlogged at random; budgets that \
            are used up, budgets that are too large or cut off, and with both of these applications that were idle for \
            a moment only",
    claims: &[Claim {
        id: "B12",
        claim: "B-WF2Q+ against the fluid system: worst lag and delay",
        paper: "bounded, does not grow with N",
        rule: "within the bound for every N up to 1,000",
        checks: &[
            Check {
                what: "numbers of applications with a lag beyond what is allowed",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "numbers of applications with a delay beyond what is allowed",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "numbers of applications with either beyond the bound that is proved",
                unit: "cases",
                test: Test::Never,
            },
        ],
        quick: true,
        note: "Against a fluid server of its own for each application, which has its part of the rate when all have \
               work. Lag: at every moment, and over any stretch in which it is backlogged. Delay: sectors served \
               between the moment at which a request would be done there and that at which it is. The bounds have no \
               number of applications in them: what an application may have to its credit after a moment's idleness, \
               which the proof allows twice for each, is not allowed here. The table has both.",
    }],
    length: Length::Seconds,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut rows = Vec::new();
    let mut worst = Vec::new();
    for count in COUNTS {
        let mut of_count = Worst::default();
        for manners in MANNERS {
            let w = World::new(count, manners, run.seed).run(run.length(60_000, 15_000));
            run.progress.advance(1);
            let figures = [w.lag, w.stretch, w.delay, w.proved].map(|part| Cell::from(100.0 * part));
            let first = [Cell::from(f64::from(count)), Cell::from(manners.name)];
            rows.push(first.into_iter().chain(figures).collect());
            of_count = of_count.max(w);
        }
        worst.push((f64::from(count), of_count));
    }
    let beyond = |part: fn(&Worst) -> f64| worst.iter().filter(|w| part(&w.1) > 1.0).count() as f64;
    let mut f = Findings::default();
    f.figure("B12", &[beyond(|w| w.lag.max(w.stretch)), beyond(|w| w.delay), beyond(|w| w.proved)]);
    let columns = &[
        "applications",
        "budgets",
        "worst_lag_percent_of_bound",
        "worst_lag_of_a_stretch_percent_of_bound",
        "worst_delay_percent_of_bound",
        "worst_of_both_percent_of_the_proved_bound",
    ];
    f.tables.push(Table { name: "bounds", columns, rows });
    let series = |name: &str, part: fn(&Worst) -> f64| {
        let points = worst.iter().map(|(count, w)| (*count, 100.0 * part(w))).collect();
        Series { name: name.into(), style: Style::Marked, points }
    };
    f.charts.push(Chart::Xy(XyChart {
        title: "Worst lag and delay by the number of applications".into(),
        subtitle: "Of what is allowed, however budgets are used. Neither grows with the number of applications.".into(),
        x: Axis::log("applications"),
        y: Axis::from_zero("% of the bound"),
        series: vec![series("lag", |w| w.lag.max(w.stretch)), series("delay", |w| w.delay)],
    }));
    Ok(f)
}

const COUNTS: [u32; 7] = [2, 5, 10, 30, 100, 300, 1_000];
/// Largest budget, sectors.
const MAX_BUDGET_SECTORS: u64 = 2_000;

/// How budgets are used.
#[derive(Clone, Copy)]
struct Manners {
    name: &'static str,
    /// Whether budgets occasionally exceed the backlog or end early.
    unused: bool,
    /// Most credit of a deceptively idle application, sectors. 0: no application counts as
    /// deceptively idle.
    credit: u64,
}

const MANNERS: [Manners; 3] = [
    Manners { name: "used up", unused: false, credit: 0 },
    Manners { name: "not used up", unused: true, credit: 0 },
    Manners { name: "not used up, idle for a moment", unused: true, credit: MAX_BUDGET_SECTORS },
];

/// The largest deviations of any application, relative to their bounds.
#[derive(Clone, Copy, Default)]
struct Worst {
    lag: f64,
    stretch: f64,
    delay: f64,
    /// The largest of them, relative to the bounds with credit, which are proved.
    proved: f64,
}

impl Worst {
    fn max(self, other: Worst) -> Worst {
        Worst {
            lag: self.lag.max(other.lag),
            stretch: self.stretch.max(other.stretch),
            delay: self.delay.max(other.delay),
            proved: self.proved.max(other.proved),
        }
    }
}

struct Application {
    weight: u64,
    /// Its largest budget, and the current one.
    most: u64,
    budget: u64,
    /// Service since it became backlogged, and the largest end of a budget since then.
    place: u64,
    furthest: u64,
    waiting: VecDeque<u64>,
    ideal: Fluid,
    /// Total service at the last update of `ideal`; its own service; and both when it became
    /// backlogged.
    seen: u64,
    got: u64,
    began: (u64, u64),
    /// Smallest lag behind its share since it became backlogged.
    least: f64,
}

impl Application {
    fn catch_up(&mut self, now: u64) {
        self.ideal.serve(now - self.seen);
        self.seen = now;
    }

    /// Lag behind its share since it became backlogged.
    fn behind(&self, now: u64, share: f64) -> f64 {
        (now - self.began.0) as f64 * share - (self.got - self.began.1) as f64
    }
}

struct World {
    rng: Variates,
    q: Bwf2q,
    all: Vec<Application>,
    weights: u64,
    manners: Manners,
    /// Total service in sectors: the virtual clock.
    now: u64,
    worst: Worst,
}

impl World {
    fn new(count: u32, manners: Manners, seed: u64) -> World {
        let mut rng = Variates::new(seed, u64::from(count));
        let drawn: Vec<(u64, u64)> =
            (0..count).map(|_| (1 + rng.below(100), 8 + rng.below(MAX_BUDGET_SECTORS - 7))).collect();
        let weights = drawn.iter().map(|d| d.0).sum();
        let new = |(weight, most): (u64, u64)| Application {
            weight,
            most,
            budget: 0,
            place: 0,
            furthest: 0,
            waiting: VecDeque::new(),
            ideal: Fluid::guaranteed(weight, weights),
            seen: 0,
            got: 0,
            began: (0, 0),
            least: 0.0,
        };
        let all = drawn.into_iter().map(new).collect();
        World { rng, q: Bwf2q::new(), all, weights, manners, now: 0, worst: Worst::default() }
    }

    fn run(mut self, turns: u64) -> Worst {
        for _ in 0..turns {
            for _ in 0..2 {
                let n = self.rng.below(self.all.len() as u64) as usize;
                self.arrive(n);
            }
            self.turn();
        }
        self.worst
    }

    /// The next budget of a backlogged application.
    fn budget(&mut self, n: usize) -> u64 {
        let backlog: u64 = self.all[n].waiting.iter().sum();
        let most = self.all[n].most;
        match self.manners.unused && self.rng.below(2) == 0 {
            true => 1 + self.rng.below(most),
            false => most.min(backlog),
        }
    }

    /// Adds requests of an application that is not in service.
    fn arrive(&mut self, n: usize) {
        let mut left = 1 + self.rng.below(3 * MAX_BUDGET_SECTORS / 2);
        let was_idle = self.all[n].waiting.is_empty();
        self.all[n].catch_up(self.now);
        while left > 0 {
            let request = (1 + self.rng.below(MAX_BUDGET_SECTORS)).min(left);
            left -= request;
            self.all[n].waiting.push_back(request);
            self.all[n].ideal.arrive(0, request);
        }
        if was_idle {
            let budget = self.budget(n);
            let for_a_moment = self.manners.credit > 0 && self.rng.below(2) == 0;
            let most = self.manners.credit;
            let since = if for_a_moment { Since::Deceptively { most } } else { Since::Idle };
            let a = &mut self.all[n];
            (a.budget, a.place, a.furthest) = (budget, 0, budget);
            (a.began, a.least) = ((self.now, a.got), 0.0);
            self.q.activate(n as u32, a.weight, budget, since);
        }
    }

    /// Serves one budget of the chosen application.
    fn turn(&mut self) {
        let n = self.q.choose().expect("something has just come") as usize;
        let mut used = 0;
        while used < self.all[n].budget && !self.all[n].waiting.is_empty() {
            if self.manners.unused && used > 0 && self.rng.below(8) == 0 {
                break;
            }
            let sectors = self.all[n].waiting[0].min(self.all[n].budget - used);
            used += sectors;
            self.serve(n, sectors);
        }
        let goes_on = !self.all[n].waiting.is_empty();
        let next = goes_on.then(|| self.budget(n));
        let a = &mut self.all[n];
        a.budget = next.unwrap_or(0);
        a.furthest = a.furthest.max(a.place + a.budget);
        self.q.expire(used, next.map(|budget| (a.weight, budget)));
    }

    /// Serves `sectors` sectors of an application's first request.
    fn serve(&mut self, n: usize, sectors: u64) {
        let credit = (2 * self.manners.credit * self.all.len() as u64) as f64;
        let a = &mut self.all[n];
        let share = a.weight as f64 / self.weights as f64;
        let most = a.most as f64;
        // The lag is largest when its service begins, and smallest when that has ended. One sector
        // is for rounding.
        a.catch_up(self.now);
        let allowed = most + (MAX_BUDGET_SECTORS as f64 - most) * share + 1.0;
        let in_a_stretch = allowed + most * (1.0 - share);
        let (lag, stretch) = (a.ideal.served(0) - a.got as f64, a.behind(self.now, share) - a.least);
        let credited = credit * share;
        let mut worst = Worst {
            lag: lag / allowed,
            stretch: stretch / in_a_stretch,
            delay: 0.0,
            proved: (lag / (allowed + credited))
                .max(stretch / (in_a_stretch + credited + self.manners.credit as f64 * share)),
        };
        self.q.served(sectors);
        self.now += sectors;
        a.got += sectors;
        a.place += sectors;
        a.catch_up(self.now);
        a.least = a.least.min(a.behind(self.now, share));
        a.waiting[0] -= sectors;
        if a.waiting[0] == 0 {
            a.waiting.pop_front();
            // A request that is incomplete in the ideal system is not late.
            if let Some(done) = a.ideal.done(0) {
                let delay = self.now as f64 - done;
                let unused = a.furthest.saturating_sub(a.place) as f64;
                let allowed = MAX_BUDGET_SECTORS as f64 + unused * (1.0 / share - 1.0) + 1.0;
                worst.delay = delay / allowed;
                worst.proved = worst.proved.max(delay / (allowed + credit));
            }
        }
        self.worst = self.worst.max(worst);
    }
}
