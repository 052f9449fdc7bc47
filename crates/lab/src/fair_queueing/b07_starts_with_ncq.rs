//! B7: with NCQ the guarantees are lost.
//!
//! Valente (2014), section 7.3.2, table 2.

use headtime_sched::Policy;
use headtime_sim::workload::suite::files::Load;
use headtime_sim::workload::suite::startup::Program;

use crate::common::policy_run::{DRIVE_2, PolicyRun, Runs, STATISTICS, named};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B7: Experiment = Experiment { spec: &SPEC, steps: 24, run };

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
        note: "A start that does not come to its end within the run counts as long as the run. Without idling, each of \
               bash's reads waits beside commands of one sequential reader, which the drive prefers until the read is \
               two seconds old.",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let most = run.length(10, 3) as usize;
    let mut rows = Vec::new();
    let mut worst = |program: Program, name: &str, policy: &Policy, ncq: bool| {
        let mut worst = 0.0_f64;
        for load in Load::ALL {
            let runs = Runs::of(run, |seed| {
                let bench = PolicyRun { ncq, ..PolicyRun::new(DRIVE_2, policy.clone(), MAX_RUN_S, seed) };
                Ok(bench.starts(&SPEC, Some(load), program, most)?.mean().min(MAX_RUN_S as f64))
            })?;
            worst = worst.max(runs.mean());
            let which = if ncq { "NCQ" } else { "no NCQ" };
            rows.push(runs.row(&[load.name(), &format!("{name}, {}, {which}", policy.name())]));
        }
        Ok::<f64, RunError>(worst)
    };
    let mut bash = Vec::new();
    for name in ["bfq+", "bfq", "cfq", "none"] {
        bash.push(worst(Program::BASH, "bash", &named(name), true)?);
    }
    let with = worst(Program::KONSOLE, "konsole", &named("bfq+"), true)?;
    let without = worst(Program::KONSOLE, "konsole", &named("bfq+"), false)?;
    let mut f = Findings::default();
    f.figure("B7", &[bash[1] / bash[0], bash[2] / bash[1], with / without]);
    f.tables.push(Table { name: "startup_seconds", columns: STATISTICS, rows });
    Ok(f)
}

/// Time limit of a run, seconds.
const MAX_RUN_S: u64 = 400;
