//! S6: clearing whole tracks first leaves fewer fragments, and shortens the whole scan.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.4, figure 7. A fragment is a maximal sequence of
//! consecutive blocks that are all still wanted; they are counted when 90% of the disk has been
//! read. The scans are described in [`super::algorithm_comparison`].

use headtime_sched::Algorithm;

use super::algorithm_comparison;
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Test};

/// The experiment.
pub(crate) const S6: Experiment = Experiment { spec: &SPEC, steps: SEEDS * algorithm_comparison::Pair::STEPS, run };

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
        rule: "at least 5% less time (at most 0.95 times), and fewer fragments left at 90% (below 1 times); six seeds",
        checks: &[
            Check { what: "whole scan, Angle-EP-Frag over Angle-EP-Greedy", unit: "times", test: Test::AtMost(0.95) },
            Check {
                what: "fragments at 90%, Angle-EP-Frag over Angle-EP-Greedy",
                unit: "times",
                test: Test::Below(1.0),
            },
        ],
        quick: true,
        note: "A whole scan takes 2 to 3% less time, and 11% fewer fragments are left at 90%: clearing works, and is \
               worth less than the paper's figure 7 shows. The last tenth takes 15% less time, as fewer fragments let \
               one expect, but the first nine tenths take 3% more: a command that clears its track comes before larger \
               ones. The paper gives no time of a whole scan to compare with. Each run is of two seeds, and the worse \
               of the two counts; three runs are six. Quick runs scan an eighth of the cylinders on the same stroke.",
    }],
    length: Length::Minutes,
    alone: false,
};

/// Seeds of a run.
const SEEDS: u64 = 2;

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let (mut time, mut fragments) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for nth in 0..SEEDS {
        let run = &Run { seed: run.seed * SEEDS + nth, ..*run };
        let pair = algorithm_comparison::Pair::new(&SPEC, run, Algorithm::AngleEpGreedy, Algorithm::AngleEpFrag)?;
        let left = |s: &algorithm_comparison::Scan| s.scan.fragments().map_or(f64::NAN, |f| f.stretches as f64);
        time = time.max(pair.new.seconds() / pair.old.seconds());
        fragments = fragments.max(left(&pair.new) / left(&pair.old));
        if nth == 0 {
            pair.report(&mut f, "7");
        }
    }
    f.figure("S6", &[time, fragments]);
    Ok(f)
}
