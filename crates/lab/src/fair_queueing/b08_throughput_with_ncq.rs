//! B8: throughput with NCQ.
//!
//! Valente (2014), section 7.2.2, figure 4.

use super::beside;
use super::paper::FIGURE_4;
use crate::common::policy_run::{DRIVE_2, PolicyRun, STATISTICS, by_load, named};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B8: Experiment = Experiment { spec: &SPEC, steps: 16, run };

static SPEC: Spec = Spec {
    id: "B8",
    title: "Throughput with NCQ",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.2.2, figure 4",
    drive: DRIVE_2,
    workload: "the four loads, the drive ordering 31 commands itself",
    claims: &[Claim {
        id: "B8",
        claim: "with NCQ: NOOP loses with 10r-seq and gains with 5r5w-rand, against BFQ+",
        paper: "loses; 50% gain",
        rule: "same signs, gain at least 20%",
        checks: &[
            Check { what: "NOOP against BFQ+, 10r-seq", unit: "%", test: Test::Below(0.0) },
            Check { what: "NOOP against BFQ+, 5r5w-rand", unit: "%", test: Test::AtLeast(20.0) },
        ],
        quick: true,
        note: "The drive's own order finds the two read-ahead windows of each reader and continues with the second: it \
               loses less by the order of arrival than a drive that does not.",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let seconds = run.length(120, 40) as usize;
    let mut f = Findings::default();
    let policies = ["bfq+", "bfq", "cfq", "none"].map(named);
    let (rows, means) = by_load(run, &policies, "", |policy, load, seed| {
        let bench = PolicyRun { ncq: true, ..PolicyRun::new(DRIVE_2, policy.clone(), seconds as u64, seed) };
        Ok(bench.load(&SPEC, load)?.rate(20, seconds) / 1e6)
    })?;
    let noop = |load: usize| 100.0 * (means[3][load] / means[0][load] - 1.0);
    f.figure("B8", &[noop(0), noop(3)]);
    f.charts.push(beside::chart(&FIGURE_4, "Steady state, mean of the runs.", &beside::means(&rows)));
    f.tables.push(Table { name: "throughput", columns: STATISTICS, rows });
    Ok(f)
}
