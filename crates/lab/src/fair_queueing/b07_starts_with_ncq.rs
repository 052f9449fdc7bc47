//! B7: with NCQ the guarantees are lost.
//!
//! Valente (2014), section 7.3.2, table 2.

use headtime_sched::Policy;
use headtime_sim::workload::suite::files::Load;
use headtime_sim::workload::suite::startup::Program;

use super::beside::{self, Measured};
use super::paper::TABLE_2;
use crate::common::policy_run::{DRIVE_2, PolicyRun, Runs, STATISTICS, named};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B7: Experiment = Experiment { spec: &SPEC, steps: 36, run };

static SPEC: Spec = Spec {
    id: "B7",
    title: "Starting programs with NCQ",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.3.2, table 2",
    drive: DRIVE_2,
    workload: "bash and konsole started beside each of the four loads, the drive ordering 31 commands itself",
    claims: &[Claim {
        id: "B7",
        claim: "with NCQ: guarantees collapse; order BFQ+ < BFQ < CFQ for bash",
        paper: "bash 0.27 to 0.32, 0.51 to 0.74, 1.05 to 7.44 s; konsole up to 196, 188, 2940 s",
        rule: "same order, worst konsole at least 10 times worse than without",
        checks: &[
            Check { what: "BFQ, worst bash, over BFQ+", unit: "times", test: Test::AtLeast(1.0) },
            Check { what: "CFQ, worst bash, over BFQ", unit: "times", test: Test::AtLeast(1.0) },
            Check { what: "worst konsole under BFQ+, with NCQ over without", unit: "times", test: Test::AtLeast(10.0) },
        ],
        quick: true,
        note: "A start that the end of the run cuts off counts from its beginning to that end. Table 2 is \
               of the code, which idles for a scattered application until it was served 1/8 of the largest budget. \
               Where the disk does not idle (`none`), each of bash's reads waits beside commands of one sequential \
               reader, which the drive prefers until the read is two seconds old.",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let most = run.length(10, 3) as usize;
    let mut rows = Vec::new();
    let mut by_load = |program: Program, name: &str, policy: &Policy, ncq: bool| {
        let mut means = Vec::new();
        for load in Load::ALL {
            let runs = Runs::of(run, |seed| {
                let bench = PolicyRun { ncq, ..PolicyRun::new(DRIVE_2, policy.clone(), MAX_RUN_S, seed) };
                Ok(bench.starts(&SPEC, Some(load), program, most)?.mean())
            })?;
            means.push(runs.mean());
            let which = if ncq { "NCQ" } else { "no NCQ" };
            rows.push(runs.row(&[load.name(), &format!("{name}, {}, {which}", policy.name())]));
        }
        Ok::<Vec<f64>, RunError>(means)
    };
    let mut ranges = Vec::new();
    for (program, name) in [(Program::BASH, "bash"), (Program::KONSOLE, "konsole")] {
        for policy in ["bfq+", "bfq", "cfq", "none"] {
            ranges.push(Measured::range(name, policy, &by_load(program, name, &named(policy), true)?));
        }
    }
    let without = Measured::range("konsole", "bfq+", &by_load(Program::KONSOLE, "konsole", &named("bfq+"), false)?);
    let worst = |i: usize| ranges[i].value;
    let mut f = Findings::default();
    f.figure("B7", &[worst(1) / worst(0), worst(2) / worst(1), worst(4) / without.value]);
    let about = format!(
        "Means of the starts of all runs. A run ends after {MAX_RUN_S} s; a start that this cuts off counts until then."
    );
    f.charts.push(beside::chart(&TABLE_2, &about, &ranges));
    f.tables.push(Table { name: "startup_seconds", columns: STATISTICS, rows });
    Ok(f)
}

/// Time limit of a run, seconds.
const MAX_RUN_S: u64 = 400;
