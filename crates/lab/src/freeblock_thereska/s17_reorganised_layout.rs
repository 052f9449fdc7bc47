//! S17: a file system's hot files are gathered in free bandwidth while it serves.
//!
//! Layout reorganisation is one of the three applications for which the freeblock framework was
//! built (Thereska et al., CMU-PDL-03-107, section 1). The paper has no figures of it; the rule is
//! ours.

use headtime_disk::Dur;
use headtime_sched::{Algorithm, FillConfig};

use super::background_run::BackgroundRun;
use crate::common::hot_files::{Export, HotFiles, Reserve};
use crate::common::reorganiser::{Chosen, Reorganiser};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const S17: Experiment = Experiment { spec: &SPEC, steps: 9, run };

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
               KiB that were accessed at least four times are moved; then it runs again, with the same accesses. \
               What clients overwrite while it is copied is copied again by foreground requests, and both copies of \
               the map are written so, after each batch; writes to its units wait for that. The table has the same \
               load without think times, too, and with a reserve at the edge, the outermost hundredth: most of the \
               gain is lost there, since the arm travels between it and the files that were not moved.",
    }],
    length: Length::Minutes,
    alone: false,
};

/// Programs.
const TASKS: usize = 2;
/// Seconds before and after.
const SECONDS: u64 = 1_200;

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let mut rows = Vec::new();
    let cases = [(15, Reserve::Middle), (0, Reserve::Middle), (15, Reserve::Edge)];
    for (think_ms, reserve) in cases {
        let m = measure(run, Dur::from_ms(think_ms), reserve, Chosen::Hot)?;
        if (think_ms, reserve) == cases[0] {
            let figures = [m.shorter(), m.longer_meanwhile(), m.fewer_meanwhile(), m.lost as f64];
            f.figure("S17", &figures);
        }
        let figures = [
            m.before.mean_ms,
            m.meanwhile.mean_ms,
            m.after.mean_ms,
            m.before.per_second,
            m.meanwhile.per_second,
            m.after.per_second,
            m.meanwhile.seconds,
            m.moved as f64,
            m.in_vain as f64,
            m.recopied as f64,
            100.0 * m.share,
        ];
        let reserve = if reserve == Reserve::Middle { "middle" } else { "edge" };
        let names = [if think_ms > 0 { "15 ms" } else { "none" }, reserve].map(Cell::from);
        rows.push(names.into_iter().chain(figures.map(Cell::from)).collect());
    }
    let columns = &[
        "think_time",
        "reserve",
        "before_ms",
        "meanwhile_ms",
        "after_ms",
        "before_per_s",
        "meanwhile_per_s",
        "after_per_s",
        "meanwhile_s",
        "units_moved",
        "moves_in_vain",
        "units_copied_again",
        "accesses_in_reserve_percent",
    ];
    f.tables.push(Table { name: "phases", columns, rows });
    Ok(f)
}

/// A phase.
#[derive(Clone, Copy, Debug)]
struct Phase {
    mean_ms: f64,
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

fn measure(run: &Run, think: Dur, reserve: Reserve, chosen: Chosen) -> Result<Measured, RunError> {
    let mut with = BackgroundRun::new(&SPEC, run.seed)?;
    with.fill = Some(FillConfig { seed: run.seed, ..FillConfig::new(Algorithm::Headtime) });
    with.limits.until_scanned = true;
    let alone = with.alone().seconds(run.length(SECONDS, SECONDS / 4));
    let export = Export::new(with.target(&SPEC)?.capacity, reserve);
    let phase = |setup: &BackgroundRun, mover: &mut Reorganiser| -> Result<Phase, RunError> {
        // The same accesses in each phase.
        let mut load = HotFiles::new(&export, TASKS, think, run.seed);
        let stats = setup.run_load(&SPEC, &mut load, mover, &mut ())?;
        run.progress.advance(1);
        let seconds = stats.ended_at.as_secs_f64();
        Ok(Phase { mean_ms: load.mean_ms(), per_second: load.requests as f64 / seconds, seconds })
    };
    let before = phase(&alone, &mut Reorganiser::new(&export, chosen))?;
    let meanwhile = phase(&with, &mut Reorganiser::new(&export, chosen))?;
    let after = phase(&alone, &mut Reorganiser::new(&export, chosen))?;
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
        let [hot, any] =
            [Chosen::Hot, Chosen::Any].map(|chosen| measure(&run, Dur::from_ms(15), Reserve::Middle, chosen).unwrap());
        println!("hot {hot:?}\nany {any:?}");
        assert!(hot.moved > 0 && hot.recopied > 0 && any.moved > hot.moved / 2, "{} {}", hot.moved, any.moved);
        assert_eq!((hot.lost, any.lost), (0, 0));
        assert!(any.shorter().abs() < 1.0, "{}", any.shorter());
    }
}
