//! S17: a file system's hot files are gathered in free bandwidth while it serves.
//!
//! Layout reorganisation is one of the three applications for which the freeblock framework was
//! built (Thereska et al., CMU-PDL-03-107, section 1). The paper has no figures of it; the rule is
//! ours.

use headtime_disk::Dur;
use headtime_sched::{Algorithm, FillConfig};

use super::background_run::BackgroundRun;
use crate::common::hot_files::{Accesses, Export, HotFiles, Reserve};
use crate::common::reorganiser::{Chosen, Reorganiser};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const S17: Experiment = Experiment { spec: &SPEC, steps: 3 * CASES.len() as u64, run };

static SPEC: Spec = Spec {
    id: "S17",
    title: "Layout reorganisation in free bandwidth",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107, 2003), section 1",
    drive: "cheetah36es",
    workload: "two programs read whole files of 4 to 252 KiB, 64 KiB at a time, and every fifth time overwrite 8 KiB \
               of one; 20,000 files over the whole disk, the n-th with a frequency of 1/n; think times of 15 ms",
    claims: &[Claim {
        id: "S17",
        claim: "hot files gathered while the file system serves",
        paper: "an application of the framework, without figures",
        rule: "mean response at least 15% better afterwards, loss of response and of requests a second under 1% \
               meanwhile, no read of a place that has not what was written last",
        checks: &[
            Check { what: "shorter mean response afterwards", unit: "%", test: Test::AtLeast(15.0) },
            Check { what: "longer mean response meanwhile", unit: "%", test: Test::Below(1.0) },
            Check { what: "fewer requests a second meanwhile", unit: "%", test: Test::Below(1.0) },
            Check { what: "reads of a place without the data", unit: "cases", test: Test::Never },
        ],
        quick: false,
        note: "The reserve is a hundredth of the disk, in its middle. The load runs for 20 minutes, and units of 128 \
               KiB that were accessed at least four times are moved; then it runs again, with the same accesses. What \
               clients overwrite while it is copied is copied again by foreground requests, and both copies of the map \
               are written so, after each batch; writes to its units wait for that. The table has the same load \
               without think times and with other accesses of the same distribution in each phase, too: 21 to 34% \
               shorter. With a reserve at the edge, the outermost hundredth, most of the gain is lost (12 to 22%), and \
               p99 is 3 to 17% longer meanwhile, since the arm travels between it and the files that were not moved. \
               The load has no host that holds files in its memory. Behind one that holds 64 MiB of those read last, \
               which are the hottest, it is 12 to 15%, and behind 256 MiB, more than the reserve has, 5 to 8%.",
    }],
    length: Length::Minutes,
    alone: false,
};

/// A load and a place of the reserve.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    think: Dur,
    reserve: Reserve,
    /// The host's memory for files, MiB.
    memory_mib: u64,
    /// Whether each phase has accesses of its own, of the same distribution.
    others: bool,
}

const CLAIM: Case =
    Case { name: "claim", think: Dur::from_ms(15), reserve: Reserve::Middle, memory_mib: 0, others: false };
const CASES: [Case; 6] = [
    CLAIM,
    Case { name: "no think time", think: Dur::ZERO, ..CLAIM },
    Case { name: "reserve at the edge", reserve: Reserve::Edge, ..CLAIM },
    Case { name: "other accesses in each phase", others: true, ..CLAIM },
    Case { name: "64 MiB of files in memory", memory_mib: 64, ..CLAIM },
    Case { name: "256 MiB of files in memory", memory_mib: 256, ..CLAIM },
];
/// Programs.
const TASKS: usize = 2;
/// Seconds before and after.
const SECONDS: u64 = 1_200;

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let mut rows = Vec::new();
    for case in CASES {
        let m = measure(run, case, Chosen::Hot)?;
        if case.name == CLAIM.name {
            let figures = [m.shorter(), m.longer_meanwhile(), m.fewer_meanwhile(), m.lost as f64];
            f.figure("S17", &figures);
        }
        let [before, meanwhile, after] = [m.before, m.meanwhile, m.after];
        let figures = [
            before.mean_ms,
            meanwhile.mean_ms,
            after.mean_ms,
            m.shorter(),
            before.p99_ms,
            meanwhile.p99_ms,
            after.p99_ms,
            before.per_second,
            meanwhile.per_second,
            after.per_second,
            meanwhile.seconds,
            m.moved as f64,
            m.in_vain as f64,
            m.recopied as f64,
            100.0 * m.share,
            m.lost as f64,
        ];
        rows.push([Cell::from(case.name)].into_iter().chain(figures.map(Cell::from)).collect());
    }
    let columns = &[
        "case",
        "before_ms",
        "meanwhile_ms",
        "after_ms",
        "shorter_percent",
        "before_p99_ms",
        "meanwhile_p99_ms",
        "after_p99_ms",
        "before_per_s",
        "meanwhile_per_s",
        "after_per_s",
        "meanwhile_s",
        "units_moved",
        "moves_in_vain",
        "units_copied_again",
        "accesses_in_reserve_percent",
        "reads_without_the_data",
    ];
    f.tables.push(Table { name: "phases", columns, rows });
    Ok(f)
}

/// A phase.
#[derive(Clone, Copy, Debug)]
struct Phase {
    mean_ms: f64,
    p99_ms: f64,
    per_second: f64,
    seconds: f64,
}

/// All phases.
#[derive(Clone, Copy, Debug)]
struct Measured {
    before: Phase,
    meanwhile: Phase,
    after: Phase,
    lost: u64,
    moved: u64,
    in_vain: u64,
    recopied: u64,
    /// Part of the accesses that was to units in the reserve at the end.
    share: f64,
}

impl Measured {
    fn shorter(&self) -> f64 {
        100.0 * (1.0 - self.after.mean_ms / self.before.mean_ms)
    }

    fn longer_meanwhile(&self) -> f64 {
        100.0 * (self.meanwhile.mean_ms / self.before.mean_ms - 1.0)
    }

    fn fewer_meanwhile(&self) -> f64 {
        100.0 * (1.0 - self.meanwhile.per_second / self.before.per_second)
    }
}

fn measure(run: &Run, case: Case, chosen: Chosen) -> Result<Measured, RunError> {
    let mut with = BackgroundRun::new(&SPEC, run.seed)?;
    with.fill = Some(FillConfig { seed: run.seed, ..FillConfig::new(Algorithm::Headtime) });
    with.limits.until_scanned = true;
    let alone = with.alone().seconds(run.length(SECONDS, SECONDS / 4));
    let export = Export::new(with.target(&SPEC)?.capacity, case.reserve);
    let phase = |setup: &BackgroundRun, nth: u64| -> Result<Phase, RunError> {
        let seed = run.seed + if case.others { 1_000 * nth } else { 0 };
        let memory = case.memory_mib * 2_048;
        let accesses = Accesses { think: case.think, memory, files_seed: run.seed, seed };
        let mut load = HotFiles::new(&export, TASKS, accesses);
        let mut mover = Reorganiser::new(&export, chosen);
        let stats = setup.run_load(&SPEC, &mut load, &mut mover, &mut ())?;
        run.progress.advance(1);
        let (responses, seconds) = (load.responses(), stats.ended_at.as_secs_f64());
        let ms = |d: Option<Dur>| d.map_or(0.0, Dur::as_ms_f64);
        let per_second = responses.samples() as f64 / seconds;
        Ok(Phase { mean_ms: ms(responses.mean()), p99_ms: ms(responses.quantile(990)), per_second, seconds })
    };
    let (before, meanwhile, after) = (phase(&alone, 0)?, phase(&with, 1)?, phase(&alone, 2)?);
    let e = export.borrow();
    let share = e.in_reserve().1;
    let (lost, moved, in_vain, recopied) = (e.lost, e.moved, e.in_vain, e.recopied);
    Ok(Measured { before, meanwhile, after, lost, moved, in_vain, recopied, share })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Unwatched;

    /// Whatever is moved, and how often clients overwrite it meanwhile.
    #[test]
    fn no_read_finds_a_place_without_its_data_and_units_that_are_not_hot_change_nothing() {
        let run = Run { seed: 1, quick: true, progress: &Unwatched };
        let [hot, any] = [Chosen::Hot, Chosen::Any].map(|chosen| measure(&run, CLAIM, chosen).unwrap());
        println!("hot {hot:?}\nany {any:?}");
        assert!(hot.moved > 0 && hot.recopied > 0 && any.moved > hot.moved / 2, "{} {}", hot.moved, any.moved);
        assert_eq!((hot.lost, any.lost), (0, 0));
        assert!(any.shorter().abs() < 1.0, "{}", any.shorter());
    }
}
