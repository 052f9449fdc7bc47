//! F2: head times of random 4 KB reads are predictable from outside the drive.
//!
//! Lumb, Schindler and Ganger (FAST 2002), section 5.2 and figure 7a. Two requests are at the
//! drive, as its scheduler keeps them. In addition to the claims, the table shows ten outstanding
//! under SPTF, which is harder, because SPTF prefers requests that the head only just reaches.

use headtime_sched::{Order, PredictionStats};
use headtime_sim::workload::random_4k;

use crate::common::predictions;
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Test};

/// The experiment.
pub(crate) const F2: Experiment = Experiment { spec: &SPEC, steps: 5, run };

static SPEC: Spec = Spec {
    id: "F2",
    title: "Predicted head time of random 4 KB reads",
    source: "Lumb, Schindler, Ganger, Freeblock Scheduling Outside of Disk Firmware (FAST 2002), section 5.2, figure \
            7a",
    drive: "atlas10k, cheetah18lp",
    workload: "random 4 KiB reads, two at the drive",
    claims: &[
        Claim {
            id: "F2a",
            claim: "random 4 KB reads whose head time is predicted within 50 us, Atlas 10K",
            paper: "97.5%",
            rule: "clean drive: at least 97.5%; drive that errs: 1.3 to 2.3% a whole turn late and 0.3 to 1.1% early, \
                   landings inside the request counted apart",
            checks: &[
                Check { what: "within 50 us", unit: "%", test: Test::AtLeast(97.5) },
                Check { what: "a whole turn late, drive that errs", unit: "%", test: Test::Between(1.3, 2.3) },
                Check { what: "a whole turn early, drive that errs", unit: "%", test: Test::Between(0.3, 1.1) },
            ],
            quick: true,
            note: "This drive reads on arrival: a head that lands inside a request is done when it has come round. The \
                   seek's deviation, which the wait for the first sector absorbs otherwise, then shows in the \
                   completion, here and in the request after it. The drive that errs has the errors of moves that the \
                   paper's turns imply and the completion delays of a measured trace (docs/validation.md, section 2); \
                   that the turns come out again shows that the scheduler adds none.",
        },
        Claim {
            id: "F2b",
            claim: "the same, Cheetah 18LP",
            paper: "99.3%",
            rule: "at least 99.3%",
            checks: &[Check { what: "within 50 us", unit: "%", test: Test::AtLeast(99.3) }],
            quick: true,
            note: "Judged on the clean drive, as the paper's rule. On this drive with the errors of moves and the \
                   completion delays of F2a's, fewer are; the table and the note of the run have the figures.",
        },
    ],
    length: Length::Seconds,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let measure = |drive, tasks, order| predictions::measure(&SPEC, run, drive, random_4k(tasks), order);
    let atlas = measure("atlas10k", 2, Order::Fcfs)?;
    let cheetah = measure("cheetah18lp", 2, Order::Fcfs)?;
    let chosen = measure("atlas10k", 10, Order::Sptf)?;
    let (erring, landings) = predictions::erring(&SPEC, run, "atlas10k", random_4k(2), Order::Fcfs)?;
    let (cheetah_errs, _) = predictions::erring(&SPEC, run, "cheetah18lp", random_4k(2), Order::Fcfs)?;
    let of_all = |n| predictions::percent(n, erring.samples);
    let within = |p: &PredictionStats| predictions::percent(p.within_50us, p.samples);
    let runs = [
        ("atlas10k", &atlas),
        ("cheetah18lp", &cheetah),
        ("atlas10k, SPTF among ten", &chosen),
        ("atlas10k, errs", &erring),
        ("cheetah18lp, errs", &cheetah_errs),
    ];
    let mut f = Findings::default();
    f.figure("F2a", &[within(&atlas), of_all(erring.extra_turn), of_all(erring.early_turn)]);
    f.figure("F2b", &[within(&cheetah)]);
    f.notes.push((
        "F2a",
        format!(
            "Seed {}: on the drive that errs {:.1}% within 50 us and {:.1}% within 150 us; the head is predicted to \
             land inside {:.1}% of the requests. Off by more than 50 us but not by a turn: {:.1}% that it lands \
             inside, {:.1}% others.",
            run.seed,
            within(&erring),
            of_all(erring.within_150us),
            of_all(landings.all),
            of_all(landings.off),
            of_all(landings.off_elsewhere),
        ),
    ));
    let of_cheetah = |n| predictions::percent(n, cheetah_errs.samples);
    f.notes.push((
        "F2b",
        format!(
            "Seed {}: on the drive that errs {:.1}% within 50 us and {:.1}% within 150 us; {:.1}% a whole turn late \
             and {:.1}% early.",
            run.seed,
            within(&cheetah_errs),
            of_cheetah(cheetah_errs.within_150us),
            of_cheetah(cheetah_errs.extra_turn),
            of_cheetah(cheetah_errs.early_turn),
        ),
    ));
    f.tables.push(predictions::summary(&runs));
    f.tables.push(predictions::table(&runs));
    f.charts.push(predictions::chart("Prediction error, random 4 KB reads, Atlas 10K", &atlas));
    f.charts.push(predictions::chart("Prediction error, random 4 KB reads, Atlas 10K that errs", &erring));
    f.charts.push(predictions::chart("Prediction error, random 4 KB reads, Cheetah 18LP", &cheetah));
    f.charts.push(predictions::chart("Prediction error, random 4 KB reads, Cheetah 18LP that errs", &cheetah_errs));
    Ok(f)
}
