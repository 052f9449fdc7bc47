//! B3: random readers get no less under BFQ+ than under CFQ.
//!
//! Valente (2014), section 7.2.1.

use headtime_sched::{BfqRules, Policy};
use headtime_sim::workload::suite::files::Load;

use super::beside;
use super::paper::FIGURE_3_RANDOM;
use crate::common::policy_run::{DRIVE_3, PUBLISHED_NAME, PolicyRun, Runs, STATISTICS, named};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B3: Experiment = Experiment { spec: &SPEC, steps: 3, run };

static SPEC: Spec = Spec {
    id: "B3",
    title: "Ten readers at random places",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.2.1",
    drive: DRIVE_3,
    workload: "ten greedy readers at random places, two minutes",
    claims: &[Claim {
        id: "B3",
        claim: "throughput of ten readers at random places, BFQ+ against CFQ",
        paper: "comparable",
        rule: "within 10%",
        checks: &[Check { what: "10r-rand, BFQ+ more or less than CFQ", unit: "%", test: Test::AtMost(10.0) }],
        quick: true,
        note: "With the rules that the report measured. The table's second row is headtime's BFQ+, which serves such \
               readers together, from all of their requests.",
    }],
    length: Length::Seconds,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let seconds = run.length(120, 40) as usize;
    let of = |policy: &Policy| {
        Runs::of(run, |seed| {
            let suite =
                PolicyRun::new(DRIVE_3, policy.clone(), seconds as u64, seed).load(&SPEC, Load::Readers10Rand)?;
            Ok(suite.rate(20, seconds) / 1e6)
        })
    };
    let (published, cfq) = (of(&Policy::Bfq(BfqRules::published()))?, of(&named("cfq"))?);
    let together = of(&named("bfq+"))?;
    let mut f = Findings::default();
    f.figure("B3", &[100.0 * (published.mean() / cfq.mean() - 1.0).abs()]);
    let rows = vec![
        published.row(&["10r-rand", PUBLISHED_NAME]),
        together.row(&["10r-rand", "bfq+"]),
        cfq.row(&["10r-rand", "cfq"]),
    ];
    let about = "Steady state, mean of the runs.";
    f.charts.push(beside::chart(&FIGURE_3_RANDOM, about, &beside::means(&rows)));
    f.tables.push(Table { name: "throughput", columns: STATISTICS, rows });
    Ok(f)
}
