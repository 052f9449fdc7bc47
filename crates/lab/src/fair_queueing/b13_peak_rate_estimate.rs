//! B13: the peak rate of the disk as both estimators find it.
//!
//! Valente (2014), section 4.2.

use headtime_sched::{BfqRules, Policy};
use headtime_sim::workload::suite::Actor;
use headtime_sim::workload::suite::files::Load;
use headtime_sim::workload::suite::rereader::Rereader;

use crate::common::policy_run::{DRIVE_3, PolicyRun, Runs, STATISTICS, alone};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B13: Experiment = Experiment { spec: &SPEC, steps: 5, run };

static SPEC: Spec = Spec {
    id: "B13",
    title: "The disk's peak rate, estimated",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 4.2",
    drive: DRIVE_3,
    workload: "ten greedy readers in order over the zones of the disk, and one that reads the same 2 MB again and \
            again out of the drive's cache",
    claims: &[Claim {
        id: "B13",
        claim: "peak-rate estimate on a zoned drive with cache hits at bus rate (55 to 90 MB/s)",
        paper: "converges near the average",
        rule: "within 10% of the true average, old estimator shown wrong",
        checks: &[
            Check {
                what: "new estimator against the mean rate of the files read alone",
                unit: "%",
                test: Test::AtMost(10.0),
            },
            Check { what: "the same, begun with half the usual rate", unit: "%", test: Test::AtMost(10.0) },
            Check { what: "the same, begun with twice the usual rate", unit: "%", test: Test::AtMost(10.0) },
            Check { what: "old estimator against the same", unit: "%", test: Test::AtLeast(10.0) },
        ],
        // In the 60 s of a quick run the estimate is still on its way: 17% below.
        quick: false,
        note: "The true average is the mean over the ten files, each read alone.",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let seconds = run.length(120, 60);
    let of = |filtered: bool, times: u64| {
        // Only the estimator and its initial value differ, the latter in halves of the default.
        let first_budget = BfqRules::plus().first_budget * times / 2;
        let policy = Policy::Bfq(BfqRules { peak_rate: filtered, first_budget, ..BfqRules::plus() });
        Runs::of(run, |seed| {
            let actors = |disk: &_| {
                let mut actors: Vec<Box<dyn Actor>> = Load::Readers10Seq.actors(disk, seed);
                actors.push(Box::new(Rereader::new(disk, REREAD_BYTES)));
                actors
            };
            let stats = PolicyRun::new(DRIVE_3, policy.clone(), seconds, seed).run(&SPEC, actors)?.1;
            Ok(stats.peak_rate.unwrap_or(f64::NAN) * SECTOR / 1e6)
        })
    };
    let (new, low, high, old) = (of(true, 2)?, of(true, 1)?, of(true, 4)?, of(false, 2)?);
    let truth = alone(run, &SPEC)?;
    let mut f = Findings::default();
    let off = |r: &Runs| 100.0 * (r.mean() / truth.mean() - 1.0);
    f.figure("B13", &[off(&new).abs(), off(&low).abs(), off(&high).abs(), off(&old)]);
    let rows = vec![
        truth.row(&["each file alone", "true"]),
        new.row(&["10r-seq and hits", "filter"]),
        low.row(&["10r-seq and hits", "filter, from half the usual rate"]),
        high.row(&["10r-seq and hits", "filter, from twice the usual rate"]),
        old.row(&["10r-seq and hits", "highest"]),
    ];
    f.tables.push(Table { name: "mb_per_second", columns: STATISTICS, rows });
    Ok(f)
}

/// Bytes of the repeatedly read range.
const REREAD_BYTES: u64 = 2_000_000;
/// Sector size of this drive, bytes.
const SECTOR: f64 = 512.0;
