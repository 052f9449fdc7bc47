//! B12: how far B-WF2Q+ is from the ideal system.
//!
//! Valente (2014), sections 3.1 and 3.2. What is allowed, and why, is in `headtime_sched::admit::bwf2q`.

use headtime_sched::admit::bwf2q::{Bwf2q, Since};
use headtime_sim::workload::variates::Variates;

use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Run, RunError, Spec, Table, Test};
use crate::svg::{Axis, Chart, Series, Style, XyChart};

/// The experiment.
pub struct B12;

static SPEC: Spec = Spec {
    id: "B12",
    title: "B-WF2Q+ against the fluid system",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), sections 3.1 and 3.2",
    drive: "none: sectors alone",
    workload: "2 to 1,000 applications of random weights and budgets that become backlogged at random",
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
        ],
        quick: true,
        note: "Over any stretch in which it is backlogged. Delay: sectors served between the moment at which a budget would end if all were backlogged and the moment at which it does.",
    }],
    alone: false,
};

impl Experiment for B12 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn steps(&self) -> u64 {
        COUNTS.len() as u64
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let mut rows = Vec::new();
        let (mut lags, mut delays) = (Vec::new(), Vec::new());
        for count in COUNTS {
            let (lag, delay) = worst(count, run.length(60_000, 15_000), run.seed);
            run.progress.advance(1);
            rows.push([f64::from(count), 100.0 * lag, 100.0 * delay].map(Cell::from).to_vec());
            lags.push((f64::from(count), 100.0 * lag));
            delays.push((f64::from(count), 100.0 * delay));
        }
        let beyond = |of: &[(f64, f64)]| of.iter().filter(|p| p.1 > 100.0).count() as f64;
        let mut f = Findings::default();
        f.figure("B12", &[beyond(&lags), beyond(&delays)]);
        let columns = &["applications", "worst_lag_percent_of_bound", "worst_delay_percent_of_bound"];
        f.tables.push(Table { name: "bounds", columns, rows });
        let series = |name: &str, points| Series { name: name.into(), style: Style::Marked, points };
        f.charts.push(Chart::Xy(XyChart {
            title: "Worst lag and delay by the number of applications".into(),
            subtitle: "Of what is allowed. Neither grows with the number of applications.".into(),
            x: Axis::log("applications"),
            y: Axis::from_zero("% of the bound"),
            series: vec![series("lag", lags), series("delay", delays)],
        }));
        Ok(f)
    }
}

const COUNTS: [u32; 7] = [2, 5, 10, 30, 100, 300, 1_000];
const LARGEST: u64 = 2_000;

struct Application {
    weight: u64,
    most: u64,
    backlog: u64,
    /// What it was due less what it got since it became backlogged, and the least of that so far.
    behind: f64,
    least: f64,
    /// When its budget would end at the latest if it were served as in the ideal system with all backlogged, in sectors served in all.
    ends: f64,
}

/// The worst lag and the worst delay of anybody, each as a part of what is allowed.
fn worst(count: u32, steps: u64, seed: u64) -> (f64, f64) {
    let mut rng = Variates::new(seed, u64::from(count));
    let new = |rng: &mut Variates| {
        let (weight, most) = (1 + rng.below(100), 8 + rng.below(LARGEST - 7));
        Application { weight, most, backlog: 0, behind: 0.0, least: 0.0, ends: 0.0 }
    };
    let mut all: Vec<Application> = (0..count).map(|_| new(&mut rng)).collect();
    let weights: u64 = all.iter().map(|a| a.weight).sum();
    let (mut q, mut served) = (Bwf2q::new(), 0.0_f64);
    let (mut worst_lag, mut worst_delay) = (0.0_f64, 0.0_f64);
    for _ in 0..steps {
        for _ in 0..2 {
            let n = rng.below(u64::from(count));
            let a = &mut all[n as usize];
            let came = 1 + rng.below(3 * LARGEST / 2);
            if a.backlog == 0 {
                (a.behind, a.least) = (0.0, 0.0);
                let budget = came.min(a.most);
                q.activate(n as u32, a.weight, budget, Since::Idle);
                let stamps = q.stamps(n as u32).expect("it has just become backlogged");
                // What it was served ahead of the ideal system comes first there.
                let ahead = (stamps.start.0.saturating_sub(q.now().0)) as f64 / (1u64 << 32) as f64;
                a.ends = served + ahead * weights as f64 + (budget * weights) as f64 / a.weight as f64;
            }
            a.backlog += came;
        }
        let n = q.choose().expect("something has just come") as usize;
        let stamps = q.stamps(n as u32).expect("it was chosen");
        let budget = ((stamps.finish.0 - stamps.start.0) * u128::from(stamps.weight)).div_ceil(1 << 32) as u64;
        q.served(budget);
        served += budget as f64;
        for (m, a) in all.iter_mut().enumerate().filter(|(_, a)| a.backlog > 0) {
            let due = (budget * a.weight) as f64 / weights as f64;
            let before = if m == n { a.behind } else { a.behind + due };
            a.behind = if m == n { a.behind + due - budget as f64 } else { before };
            // It is behind most when its budget begins, and ahead most when that has ended.
            let share = a.weight as f64 / weights as f64;
            let allowed = a.most as f64 * (1.0 - share) + a.most as f64 + (LARGEST - a.most) as f64 * share;
            worst_lag = worst_lag.max((before - a.least) / (allowed + 1.0));
            a.least = a.least.min(a.behind);
        }
        let a = &mut all[n];
        // It may have to wait for one budget that was begun before it came.
        worst_delay = worst_delay.max((served - a.ends) / LARGEST as f64);
        a.backlog -= budget;
        let next = (a.backlog > 0).then(|| (a.weight, a.backlog.min(a.most)));
        if let Some((_, budget)) = next {
            a.ends += (budget * weights) as f64 / a.weight as f64;
        }
        q.expire(budget, next);
    }
    (worst_lag, worst_delay)
}
