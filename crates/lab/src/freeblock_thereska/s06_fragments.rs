//! S6: clearing whole tracks first leaves fewer fragments, and shortens the whole scan.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.4, figure 7. A fragment is a maximal sequence of
//! consecutive blocks that are all still wanted; they are counted when 90% of the disk has been
//! read. The scans are described in [`super::algorithm_comparison`].

use headtime_sched::Algorithm;

use super::algorithm_comparison;
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Test};

/// The experiment.
pub(crate) const S6: Experiment = Experiment { spec: &SPEC, steps: algorithm_comparison::Pair::STEPS, run };

static SPEC: Spec = Spec {
    id: "S6",
    title: "Angle-EP-Greedy and Angle-EP-Frag: the last block of each zone",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107), section 4.4, figure \
            7",
    drive: "cheetah36es",
    workload: "4 or 8 KiB at random, 2 reads to 1 write, 2 always outstanding; one read of the whole disk in blocks of \
            32 KB",
    claims: &[Claim {
        id: "S6",
        claim: "Angle-EP-Frag against Angle-EP-Greedy, whole scan, and what is left in how many pieces",
        paper: "considerably less",
        rule: "less (below 1 times), and fewer fragments left at 90% (below 1 times)",
        checks: &[
            Check { what: "whole scan, Angle-EP-Frag over Angle-EP-Greedy", unit: "times", test: Test::Below(1.0) },
            Check {
                what: "fragments at 90%, Angle-EP-Frag over Angle-EP-Greedy",
                unit: "times",
                test: Test::Below(1.0),
            },
        ],
        quick: true,
        note: "By 1.5%: less, if not the paper's considerably less. Quick runs scan an eighth of the cylinders on the \
               same stroke.",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let pair = algorithm_comparison::Pair::new(&SPEC, run, Algorithm::AngleEpGreedy, Algorithm::AngleEpFrag)?;
    let fragments = |s: &algorithm_comparison::Scan| s.scan.fragments().map_or(f64::NAN, |f| f.stretches as f64);
    let mut f = Findings::default();
    f.figure("S6", &[pair.new.seconds() / pair.old.seconds(), fragments(&pair.new) / fragments(&pair.old)]);
    pair.report(&mut f, "7");
    Ok(f)
}
