//! B1: throughput of greedy readers and writers, without NCQ.
//!
//! Valente (2014), section 7.2.1, figure 3.

use headtime_disk::Kind;
use headtime_sim::workload::suite::files::{FILES, FileActor};
use headtime_sim::workload::suite::{Actor, Disk};

use super::beside;
use super::paper::FIGURE_3;
use crate::common::policy_run::{DRIVE_3, PolicyRun, Runs, STATISTICS, by_load, compared};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B1: Experiment = Experiment { spec: &SPEC, steps: 15, run };

static SPEC: Spec = Spec {
    id: "B1",
    title: "Throughput under four loads",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.2.1, figure 3",
    drive: DRIVE_3,
    workload: "ten greedy readers, or five readers and five writers, in order or at random places, two minutes",
    claims: &[Claim {
        id: "B1",
        claim: "throughput with loads in order, BFQ+ and BFQ over CFQ",
        paper: "+24%",
        rule: "at least +15%",
        checks: &[
            Check { what: "10r-seq, BFQ+ over CFQ", unit: "%", test: Test::AtLeast(15.0) },
            Check { what: "10r-seq, BFQ over CFQ", unit: "%", test: Test::AtLeast(15.0) },
            Check { what: "5r5w-seq, BFQ+ over CFQ", unit: "%", test: Test::AtLeast(15.0) },
            Check { what: "5r5w-seq, BFQ over CFQ", unit: "%", test: Test::AtLeast(15.0) },
        ],
        quick: true,
        note: "Of the four only BFQ with five readers and five writers in order fails, by two points. When its turns \
               of asynchronous writes were charged the sectors served, and not a whole budget as in its code, it had \
               23% less than CFQ. Pauses of the writers change nothing (the table's last rows).",
    }],
    length: Length::Seconds,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let seconds = run.length(120, 40) as usize;
    let mut f = Findings::default();
    let policies = compared();
    let (mut rows, means) = by_load(run, &policies, "", |policy, load, seed| {
        let suite = PolicyRun::new(DRIVE_3, policy.clone(), seconds as u64, seed).load(&SPEC, load)?;
        // Without the first seconds, which are not the steady state (section 7.2).
        Ok(suite.rate(20, seconds) / 1e6)
    })?;
    let over_cfq = |policy: usize, load: usize| 100.0 * (means[policy][load] / means[2][load] - 1.0);
    f.figure("B1", &[over_cfq(0, 0), over_cfq(1, 0), over_cfq(0, 2), over_cfq(1, 2)]);
    for policy in &policies {
        let runs = Runs::of(run, |seed| {
            let bench = PolicyRun::new(DRIVE_3, policy.clone(), seconds as u64, seed);
            let (suite, _) = bench.run(&SPEC, |disk| with_pauses(disk, seed))?;
            Ok(suite.rate(20, seconds) / 1e6)
        })?;
        rows.push(runs.row(&["5r5w-seq, writers with pauses", policy.name()]));
    }
    let about = "Steady state, mean of the runs. Random loads move a hundredth of what loads in order do.";
    f.charts.push(beside::chart(&FIGURE_3, about, &beside::means(&rows)));
    f.tables.push(Table { name: "throughput", columns: STATISTICS, rows });
    Ok(f)
}

/// Five readers and five writers in order; the writers pause for half of the time. The load itself
/// has none, since programs that write as fast as they can leave the page cache always above the
/// level at which it writes back.
fn with_pauses(disk: &Disk, seed: u64) -> Vec<Box<dyn Actor>> {
    let writer = |file| FileActor::new(disk, Kind::Write, false, (file, FILES), seed).with_pauses();
    let reader = |file| FileActor::new(disk, Kind::Read, false, (file, FILES), seed);
    let both = (0..5).flat_map(|i| [writer(2 * i + 1), reader(2 * i)]);
    both.map(|actor| Box::new(actor) as Box<dyn Actor>).collect()
}
