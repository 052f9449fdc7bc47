//! S5: angles instead of sectors shorten the whole scan.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.4, figure 6: BW-EP-Greedy prefers outer cylinders,
//! on which more sectors pass; Angle-EP-Greedy compares the angles that they take. The scans are
//! described in [`super::algorithm_comparison`].

use headtime_sched::Algorithm;

use super::algorithm_comparison;
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Test};

/// The experiment.
pub(crate) const S5: Experiment = Experiment { spec: &SPEC, steps: algorithm_comparison::Pair::STEPS, run };

static SPEC: Spec = Spec {
    id: "S5",
    title: "BW-EP-Greedy and Angle-EP-Greedy: the last block of each zone",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107), section 4.4, figure \
            6",
    drive: "cheetah36es",
    workload: "4 or 8 KiB at random, 2 reads to 1 write, 2 always outstanding; one read of the whole disk in blocks of \
            32 KB",
    claims: &[Claim {
        id: "S5",
        claim: "Angle-EP-Greedy against BW-EP-Greedy, whole scan",
        paper: "15% less",
        rule: "at least 8% less",
        checks: &[Check { what: "shorter", unit: "%", test: Test::AtLeast(8.0) }],
        quick: true,
        note: "About 1% on the whole drive, and about 4% when a search has its quick pass alone (table). There is \
               little to gain: BW-EP-Greedy brings the last block of the outermost zone after 91% of the time that it \
               takes for all, so the bias towards dense tracks costs it no more than the rest. Why the paper's system \
               leaves so much more to its inner zones cannot be told from the paper. Quick runs scan an eighth of the \
               cylinders on the same stroke.",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let pair = algorithm_comparison::Pair::new(&SPEC, run, Algorithm::BwEpGreedy, Algorithm::AngleEpGreedy)?;
    let mut f = Findings::default();
    f.figure("S5", &[100.0 * (1.0 - pair.new.seconds() / pair.old.seconds())]);
    pair.report(&mut f, "6");
    Ok(f)
}
