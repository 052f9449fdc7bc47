//! B4: how soon BFQ+ reaches full throughput when many readers begin at once.
//!
//! Valente (2014), section 7.2.1, the short benchmark.

use headtime_sim::workload::suite::files::Load;

use crate::common::policy_run::{DRIVE_3, PolicyRun, Runs, STATISTICS, named};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B4: Experiment = Experiment { spec: &SPEC, steps: 2, run };

static SPEC: Spec = Spec {
    id: "B4",
    title: "Full throughput soon after the start",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.2.1",
    drive: DRIVE_3,
    workload: "ten greedy readers in order that begin at once, 15 seconds",
    claims: &[Claim {
        id: "B4",
        claim: "when BFQ+ reaches full throughput",
        paper: "1 to 2 s",
        rule: "at most 2 s",
        checks: &[Check {
            what: "end of the first of two seconds with 95% of the throughput from the fifth second on",
            unit: "s",
            test: Test::AtMost(2.0),
        }],
        quick: true,
        note: "",
    }],
    length: Length::Seconds,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let of = |policy: &str| {
        Runs::of(run, |seed| {
            let suite = PolicyRun::new(DRIVE_3, named(policy), SECONDS as u64, seed).load(&SPEC, Load::Readers10Seq)?;
            let full = suite.rate(5, SECONDS);
            let is_full = |s: usize| suite.second(s) as f64 >= 0.95 * full;
            // The end of the first of two consecutive seconds at full throughput.
            let first = (0..SECONDS - 1).find(|&s| is_full(s) && is_full(s + 1));
            Ok(first.map_or(SECONDS, |s| s + 1) as f64)
        })
    };
    let (plus, original) = (of("bfq+")?, of("bfq")?);
    let mut f = Findings::default();
    f.figure("B4", &[plus.mean()]);
    let rows = vec![plus.row(&["10r-seq", "bfq+"]), original.row(&["10r-seq", "bfq"])];
    f.tables.push(Table { name: "seconds", columns: STATISTICS, rows });
    Ok(f)
}

const SECONDS: usize = 15;
