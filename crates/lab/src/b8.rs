//! B8: throughput with NCQ.
//!
//! Valente (2014), section 7.2.2, figure 4.

use headtime_sim::workload::suite::files::Load;

use crate::admitted::{Bench, DRIVE_2, Runs, STATISTICS, bars, named};
use crate::experiment::{Check, Claim, Experiment, Findings, Run, RunError, Spec, Table, Test};

/// The experiment.
pub struct B8;

static SPEC: Spec = Spec {
    id: "B8",
    title: "Throughput with NCQ",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.2.2, figure 4",
    drive: "maxtor-7l250s0",
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
        note: "",
    }],
    alone: false,
};

impl Experiment for B8 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn steps(&self) -> u64 {
        16
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let seconds = run.length(120, 40) as usize;
        let mut f = Findings::default();
        let (mut rows, mut means) = (Vec::new(), Vec::new());
        for name in ["bfq+", "bfq", "cfq", "none"] {
            let mut of_policy = Vec::new();
            for load in Load::ALL {
                let runs = Runs::of(run, |seed| {
                    let bench = Bench { ncq: true, ..Bench::new(DRIVE_2, named(name), seconds as u64, seed) };
                    Ok(bench.load(&SPEC, load)?.rate(20, seconds) / 1e6)
                })?;
                rows.push(runs.row(&[load.name(), name]));
                of_policy.push(runs.mean());
            }
            means.push((name, of_policy));
        }
        let noop = |load: usize| 100.0 * (means[3].1[load] / means[0].1[load] - 1.0);
        f.figure("B8", &[noop(0), noop(3)]);
        f.tables.push(Table { name: "throughput", columns: STATISTICS, rows });
        f.charts.push(bars("Throughput of greedy readers and writers, drive 2, NCQ", "", "MB/s", &means));
        Ok(f)
    }
}
