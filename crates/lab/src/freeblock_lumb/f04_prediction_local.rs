//! F4: local requests are predicted as well as those over the whole drive.
//!
//! Lumb, Schindler and Ganger (FAST 2002), section 5.2: random requests within a range of 50
//! cylinders. The seed determines the range; the figure is compared with F2's, measured with the
//! same seed.

use headtime_sched::Order;
use headtime_sim::workload::{GroupSpec, local_4k, random_4k};

use crate::common::predictions;
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Test};

/// The experiment.
pub(crate) const F4: Experiment = Experiment { spec: &SPEC, steps: 4, run };

static SPEC: Spec = Spec {
    id: "F4",
    title: "Predicted head time of local 4 KB reads",
    source: "Lumb, Schindler, Ganger, Freeblock Scheduling Outside of Disk Firmware (FAST 2002), section 5.2",
    drive: "atlas10k",
    workload: "random 4 KiB reads within 50 cylinders, two at the drive",
    claims: &[Claim {
        id: "F4",
        claim: "random 4 KB reads within 50 cylinders are predicted as well as those of F2a",
        paper: "as F2",
        rule: "within 1 point of F2a, on a drive that errs, too",
        checks: &[
            Check { what: "distance from F2a's share within 50 us", unit: "points", test: Test::AtMost(1.0) },
            Check { what: "the same, drive that errs", unit: "points", test: Test::AtMost(1.0) },
        ],
        quick: true,
        note: "The drive keeps what passes under the head while it waits, so about one read in eighty within the range \
               is answered from its cache. The scheduler follows that cache and foresees nearly all of these; a \
               scheduler that does not would be some two points off. On the drive that errs local requests are \
               predicted better than the others, by 0.6 to 1.3 points (a turn late or early: 2.0 to 2.4% instead of \
               2.5 to 2.6%): there the errors of a few short distances count instead of the mean of all.",
    }],
    length: Length::Seconds,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let measure = |load: GroupSpec| predictions::measure(&SPEC, run, "atlas10k", load, Order::Fcfs);
    let everywhere = measure(random_4k(2))?;
    let near = measure(local_4k(2))?;
    let erring = |load| predictions::erring(&SPEC, run, "atlas10k", load, Order::Fcfs);
    let ((everywhere_errs, _), (near_errs, _)) = (erring(random_4k(2))?, erring(local_4k(2))?);
    let runs = [
        ("whole drive", &everywhere),
        ("50 cylinders", &near),
        ("whole drive, errs", &everywhere_errs),
        ("50 cylinders, errs", &near_errs),
    ];
    let [a, b, c, d] = runs.map(|(_, p)| predictions::percent(p.within_50us, p.samples));
    let mut f = Findings::default();
    f.figure("F4", &[(a - b).abs(), (c - d).abs()]);
    f.notes.push((
        "F4",
        format!(
            "Seed {}: {b:.2}% within 50 us, F2a's run {a:.2}%; {:.2}% from the cache. Drive that errs: {d:.2}% and \
             {c:.2}%.",
            run.seed,
            predictions::percent(near.cache_hit, near.samples)
        ),
    ));
    f.tables.push(predictions::summary(&runs));
    f.tables.push(predictions::table(&runs));
    f.charts.push(predictions::chart("Prediction error, random 4 KB reads within 50 cylinders, Atlas 10K", &near));
    Ok(f)
}
