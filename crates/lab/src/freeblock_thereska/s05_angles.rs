//! S5: angles instead of sectors shorten the whole scan.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.4, figure 6: BW-EP-Greedy prefers outer cylinders,
//! on which more sectors pass; Angle-EP-Greedy compares the angles that they take. The scans are
//! described in [`super::algorithm_comparison`].

use headtime_disk::{Command, Completion, Model};
use headtime_sched::Algorithm;
use headtime_sim::background::{Job, Jobs};
use headtime_sim::observe::Observer;

use super::algorithm_comparison;
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const S5: Experiment = Experiment { spec: &SPEC, steps: algorithm_comparison::Pair::STEPS + 2, run };

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
        claim: "Angle-EP-Greedy against BW-EP-Greedy: bias towards dense tracks, and whole scan",
        paper: "15% less",
        rule: "outer tracks' share of the choices, where both are in reach, falls by at least 8%; whole scan no longer \
               (0%)",
        checks: &[
            Check { what: "outer tracks' share of the choices falls by", unit: "%", test: Test::AtLeast(8.0) },
            Check { what: "whole scan shorter", unit: "%", test: Test::AtLeast(0.0) },
        ],
        quick: true,
        note: "Choices beyond both ends of the arm's move count, with both ends in the middle half of the disk and \
               all of the disk wanted: 73% are outer ones with sectors compared, 31% with angles, which even turns \
               the bias round, since a block of 32 KB takes more of a short track. For the whole scan this is worth \
               1% (about 4% when a search has its quick pass alone; table), where the paper has 15%: BW-EP-Greedy \
               brings the last block of the outermost zone after 91% of the time that it takes for all, so its bias \
               costs it no more than the rest. Why the paper's system leaves so much more to its inner zones cannot \
               be told from the paper. Quick runs scan an eighth of the cylinders on the same stroke.",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let pair = algorithm_comparison::Pair::new(&SPEC, run, Algorithm::BwEpGreedy, Algorithm::AngleEpGreedy)?;
    let mut f = Findings::default();
    let [old, new] = [outer_share(run, Algorithm::BwEpGreedy)?, outer_share(run, Algorithm::AngleEpGreedy)?];
    let falls = 100.0 * (1.0 - new.percent() / old.percent());
    f.figure("S5", &[falls, 100.0 * (1.0 - pair.new.seconds() / pair.old.seconds())]);
    f.tables.push(Table {
        name: "choices",
        columns: &["algorithm", "choices", "outer_percent"],
        rows: [("BW-EP-Greedy", &old), ("Angle-EP-Greedy", &new)]
            .map(|(name, c)| vec![name.into(), ((c.outer + c.inner) as f64).into(), c.percent().into()])
            .to_vec(),
    });
    pair.report(&mut f, "6");
    Ok(f)
}

/// Counts the choices of an algorithm while the whole disk stays wanted, so that tracks on either
/// side are there to choose.
fn outer_share(run: &Run, algorithm: Algorithm) -> Result<Choices, RunError> {
    let profile = algorithm_comparison::profile_of(&SPEC, 1)?;
    let model = Model::new(&profile).map_err(|e| failed(&SPEC, e))?;
    let micro = algorithm_comparison::micro(&SPEC, profile, run.seed)?;
    let how = algorithm_comparison::filled(micro, algorithm, algorithm_comparison::AT_8_PERCENT);
    let how = how.seconds(run.length(600, 200));
    let scan = Job { again: true, ..Job::scan(how.capacity(&SPEC)?, algorithm_comparison::UNIT) };
    let mut choices = Choices { model: Some(model), ..Choices::default() };
    how.run(&SPEC, Jobs::new(vec![scan]), &mut choices)?;
    run.progress.advance(1);
    Ok(choices)
}

/// Background commands in gaps, by the side of the arm's move on which they lie.
#[derive(Default)]
struct Choices {
    model: Option<Model>,
    /// The last foreground request's cylinder, and those of background commands since.
    from: Option<u32>,
    since: Vec<u32>,
    outer: u64,
    inner: u64,
}

impl Choices {
    fn percent(&self) -> f64 {
        100.0 * self.outer as f64 / (self.outer + self.inner) as f64
    }
}

impl Observer for Choices {
    fn completed(&mut self, command: &Command, free: u32, _: &Completion) {
        let Some(model) = &self.model else { return };
        let Some(at) = model.geometry.track_of(command.lbn).map(|t| t.cylinder) else { return };
        if free == command.count {
            self.since.push(at);
            return;
        }
        // Both ends of the move lie in the middle half of the disk, so that there is as much disk
        // on either side. What lies between them is on the way, whatever is compared.
        let most = model.geometry.cylinders();
        let middle = most / 4..3 * most / 4;
        if let Some(from) = self.from.filter(|from| middle.contains(from) && middle.contains(&at)) {
            let (low, high) = (from.min(at), from.max(at));
            self.outer += self.since.iter().filter(|c| **c < low).count() as u64;
            self.inner += self.since.iter().filter(|c| **c > high).count() as u64;
        }
        self.since.clear();
        self.from = Some(at);
    }
}
