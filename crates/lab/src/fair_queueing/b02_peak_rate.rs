//! B2: ten sequential readers have nearly the rate of one.
//!
//! Valente (2014), section 7.2.1; the peak rates of table 1.

use headtime_disk::Kind;
use headtime_sched::Policy;
use headtime_sim::workload::suite::Actor;
use headtime_sim::workload::suite::files::{FILES, FileActor, Load};

use super::beside;
use super::paper::TABLE_1;
use crate::common::policy_run::{DRIVE_1, DRIVE_2, DRIVE_3, PolicyRun, Runs, STATISTICS, alone, named};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B2: Experiment = Experiment { spec: &SPEC, steps: 5, run };

static SPEC: Spec = Spec {
    id: "B2",
    title: "Ten readers in order against the peak rate",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.2.1, table 1",
    drive: DRIVE_3,
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
        note: "The peak rate is that of the zones that are read: each of the ten files read alone, the mean of the \
               ten.",
    }],
    length: Length::Seconds,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let seconds = run.length(120, 40) as usize;
    let ten = Runs::of(run, |seed| {
        let suite = PolicyRun::new(DRIVE_3, named("bfq+"), seconds as u64, seed).load(&SPEC, Load::Readers10Seq)?;
        Ok(suite.rate(20, seconds) / 1e6)
    })?;
    let peak = alone(run, &SPEC)?;
    let mut f = Findings::default();
    f.figure("B2", &[100.0 * ten.mean() / peak.mean()]);
    let rows = vec![ten.row(&["10r-seq", "bfq+"]), peak.row(&["each file alone", "none"])];
    f.tables.push(Table { name: "rates", columns: STATISTICS, rows });
    let mut rows = Vec::new();
    for drive in [DRIVE_1, DRIVE_2, DRIVE_3] {
        rows.push(outermost(run, drive)?.row(&[drive, "none"]));
    }
    let about = "Measured with one reader in order at the outer edge.";
    f.charts.push(beside::chart(&TABLE_1, about, &beside::means(&rows)));
    f.tables.push(Table { name: "peak_rates", columns: STATISTICS, rows });
    Ok(f)
}

/// Rate of the first of the files, read alone, in MB/s: the highest that the drive has.
fn outermost(run: &Run, drive: &'static str) -> Result<Runs, RunError> {
    Runs::of(run, |seed| {
        let reader = |disk: &_| -> Vec<Box<dyn Actor>> {
            vec![Box::new(FileActor::new(disk, Kind::Read, false, (0, FILES), seed))]
        };
        Ok(PolicyRun::new(drive, Policy::None, 6, seed).run(&SPEC, reader)?.0.rate(1, 6) / 1e6)
    })
}
