//! B2: ten readers in order have nearly the rate of one.
//!
//! Valente (2014), section 7.2.1.

use headtime_disk::command::Kind;
use headtime_sched::admit::Policy;
use headtime_sim::workload::suite::Actor;
use headtime_sim::workload::suite::files::{FILES, FileActor, Load};

use crate::admitted::{Bench, DRIVE_3, Runs, STATISTICS, named};
use crate::experiment::{Check, Claim, Experiment, Findings, Run, RunError, Spec, Table, Test};

/// The experiment.
pub struct B2;

static SPEC: Spec = Spec {
    id: "B2",
    title: "Ten readers in order against the peak rate",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.2.1",
    drive: "maxtor-stm332061",
    workload: "ten greedy readers of a file each, in order; each file read alone",
    claims: &[Claim {
        id: "B2",
        claim: "throughput of ten readers in order, BFQ+, share of the peak rate",
        paper: "close to peak",
        rule: "at least 90%",
        checks: &[Check {
            what: "10r-seq, BFQ+, of the mean rate at which the same files are read alone",
            unit: "%",
            test: Test::AtLeast(90.0),
        }],
        quick: true,
        note: "The peak rate is that of the zones that are read: each of the ten files read alone, the mean of the ten.",
    }],
    alone: false,
};

impl Experiment for B2 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn steps(&self) -> u64 {
        2
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let seconds = run.length(120, 40) as usize;
        let ten = Runs::of(run, |seed| {
            let suite = Bench::new(DRIVE_3, named("bfq+"), seconds as u64, seed).load(&SPEC, Load::Readers10Seq)?;
            Ok(suite.rate(20, seconds) / 1e6)
        })?;
        let peak = Runs::of(run, |seed| {
            let mut sum = 0.0;
            for i in 0..10 {
                let alone = |disk: &_| -> Vec<Box<dyn Actor>> {
                    vec![Box::new(FileActor::new(disk, Kind::Read, false, (i, FILES), seed))]
                };
                sum += Bench::new(DRIVE_3, Policy::None, 6, seed).run(&SPEC, alone)?.0.rate(1, 6) / 1e6;
            }
            Ok(sum / 10.0)
        })?;
        let mut f = Findings::default();
        f.figure("B2", &[100.0 * ten.mean() / peak.mean()]);
        let rows = vec![ten.row(&["10r-seq", "bfq+"]), peak.row(&["each file alone", "none"])];
        f.tables.push(Table { name: "rates", columns: STATISTICS, rows });
        Ok(f)
    }
}
