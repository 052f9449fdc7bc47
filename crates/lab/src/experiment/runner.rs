//! Runs experiments for several seeds and judges their claims.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::experiment::registry::Selected;
use crate::experiment::{Claim, Findings, Progress, Run, RunError, Spec};

/// Options of a set of experiments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The seeds; a claim holds only if it holds for each.
    pub seeds: Vec<u64>,
    /// Shorten the runs, and leave out the claims that a short run cannot show.
    pub quick: bool,
}

/// One claim, with its results.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimResult {
    /// The claim.
    pub claim: &'static Claim,
    /// For each seed, the figures of the claim's checks.
    pub figures: Vec<Vec<f64>>,
    /// Whether every check passed for every seed.
    pub holds: bool,
    /// A remark on the comparison; may be empty.
    pub(crate) note: String,
}

impl ClaimResult {
    /// The mean over the seeds of one check's figure.
    pub(crate) fn mean(&self, check: usize) -> f64 {
        let sum: f64 = self.figures.iter().map(|f| f[check]).sum();
        sum / self.figures.len() as f64
    }

    /// The least and the greatest figure of one check over the seeds.
    pub fn range(&self, check: usize) -> (f64, f64) {
        self.figures.iter().map(|f| f[check]).fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)))
    }
}

/// One experiment, with its results.
#[derive(Clone, Debug)]
pub struct ExperimentResult {
    /// Its description.
    pub spec: &'static Spec,
    /// Its claims, in their order.
    pub claims: Vec<ClaimResult>,
    /// For each seed, the complete results.
    pub(crate) findings: Vec<Findings>,
    /// Total wall-clock seconds of its runs.
    pub(crate) seconds: f64,
}

/// Total steps of all runs, for a progress bar.
pub fn steps(selected: &[Selected], options: &Options) -> u64 {
    let once: u64 = selected.iter().map(|s| s.experiment.steps).sum();
    once * options.seeds.len() as u64
}

/// Runs every selected experiment for every seed, several in parallel if the machine permits. The
/// results are in the order of the selection, and independent of the parallelism.
///
/// # Errors
/// An experiment failed, or [`Progress::stops`] ended one.
pub fn run(
    selected: &[Selected],
    options: &Options,
    progress: &dyn Progress,
) -> Result<Vec<ExperimentResult>, RunError> {
    run_with(selected, options, progress, &|_| {})
}

/// The same; `so_far` gets the results of all complete experiments whenever one more is complete.
pub fn run_with(
    selected: &[Selected],
    options: &Options,
    progress: &dyn Progress,
    so_far: &(dyn Fn(&[ExperimentResult]) + Sync),
) -> Result<Vec<ExperimentResult>, RunError> {
    let collected = Mutex::new(Collected::default());
    let note = |job: (usize, usize), run: Done| {
        let mut c = collected.lock().unwrap_or_else(PoisonError::into_inner);
        if c.add(job, run, selected, options) {
            so_far(&c.results);
        }
    };
    let all: Vec<(usize, usize)> =
        (0..selected.len()).flat_map(|e| (0..options.seeds.len()).map(move |s| (e, s))).collect();
    // Runs that measure processor time follow after the others, one after another.
    let (alone, together): (Vec<_>, Vec<_>) = all.into_iter().partition(|(e, _)| selected[*e].experiment.spec.alone);
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    work(selected, options, progress, together, workers, &note);
    work(selected, options, progress, alone, 1, &note);
    let Collected { results, places, mut failed, .. } = collected.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, why)) = failed.pop_first() {
        return Err(why);
    }
    // Only an experiment that never ran, because of a stop, is in neither.
    match (0..selected.len()).find(|place| !places.contains(place)) {
        Some(place) => Err(stopped(selected[place].experiment.spec)),
        None => Ok(results),
    }
}

/// The payload that unwinds an experiment which is stopped.
struct Stopped;

/// Passes progress on, and ends the experiment that reports it when the runs are to end:
/// experiments report each step, from any depth of calls.
struct Stopping<'a>(&'a dyn Progress);

impl Progress for Stopping<'_> {
    fn advance(&self, steps: u64) {
        self.0.advance(steps);
        if self.0.stops() {
            // No panic: nothing is wrong, and no hook is to print a message.
            resume_unwind(Box::new(Stopped));
        }
    }
}

fn stopped(spec: &Spec) -> RunError {
    RunError { id: spec.id, reason: "stopped".into() }
}

/// Runs an experiment once.
fn run_one(selected: &Selected, run: &Run) -> Result<Findings, RunError> {
    let experiment = selected.experiment;
    let progress = Stopping(run.progress);
    let run = Run { progress: &progress, ..*run };
    // What an unwound experiment leaves behind is not used again.
    match catch_unwind(AssertUnwindSafe(|| (experiment.run)(&run))) {
        Ok(findings) => findings,
        Err(payload) if payload.is::<Stopped>() => Err(stopped(experiment.spec)),
        Err(panic) => resume_unwind(panic),
    }
}

/// What has run so far.
#[derive(Default)]
struct Collected {
    /// Runs of experiments that are not complete, by experiment and seed.
    runs: BTreeMap<(usize, usize), Done>,
    /// Complete experiments, in the order of the selection: their places in it, and results.
    places: Vec<usize>,
    results: Vec<ExperimentResult>,
    /// Why experiments failed.
    failed: BTreeMap<usize, RunError>,
}

impl Collected {
    /// Adds a run; returns whether its experiment is complete now.
    fn add(&mut self, job: (usize, usize), run: Done, selected: &[Selected], options: &Options) -> bool {
        let (experiment, seeds) = (job.0, options.seeds.len());
        self.runs.insert(job, run);
        if !(0..seeds).all(|seed| self.runs.contains_key(&(experiment, seed))) {
            return false;
        }
        let runs: Vec<Done> = (0..seeds).filter_map(|seed| self.runs.remove(&(experiment, seed))).collect();
        let seconds = runs.iter().map(|run| run.seconds).sum();
        let findings = runs.into_iter().map(|run| run.findings).collect::<Result<_, _>>();
        match findings.and_then(|findings| judge(&selected[experiment], options, findings, seconds)) {
            Ok(result) => {
                let at = self.places.partition_point(|place| *place < experiment);
                self.places.insert(at, experiment);
                self.results.insert(at, result);
                true
            }
            Err(why) => {
                self.failed.insert(experiment, why);
                false
            }
        }
    }
}

struct Done {
    findings: Result<Findings, RunError>,
    seconds: f64,
}

fn work(
    selected: &[Selected],
    options: &Options,
    progress: &dyn Progress,
    jobs: Vec<(usize, usize)>,
    workers: usize,
    note: &(dyn Fn((usize, usize), Done) + Sync),
) {
    let workers = workers.min(jobs.len());
    let jobs = Mutex::new(VecDeque::from(jobs));
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(job) = next().filter(|_| !progress.stops()) {
                    let began = Instant::now();
                    let run = Run { seed: options.seeds[job.1], quick: options.quick, progress };
                    let findings = run_one(&selected[job.0], &run);
                    let seconds = began.elapsed().as_secs_f64();
                    note(job, Done { findings, seconds });
                }
            });
        }
    });
}

/// Judges the results by the rules.
fn judge(
    selected: &Selected,
    options: &Options,
    findings: Vec<Findings>,
    seconds: f64,
) -> Result<ExperimentResult, RunError> {
    let spec = selected.experiment.spec;
    let mut claims = Vec::new();
    for claim in selected.claims(options.quick) {
        let mut figures = Vec::with_capacity(findings.len());
        let mut note = claim.note.to_string();
        for f in &findings {
            let found = f.figures.iter().find(|(id, _)| *id == claim.id);
            match found {
                Some((_, values)) if values.len() == claim.checks.len() => {
                    figures.push(values.clone());
                }
                other => {
                    let reason = format!(
                        "claim {} has {} checks, and the run gave {} figures for it",
                        claim.id,
                        claim.checks.len(),
                        other.map_or(0, |(_, v)| v.len())
                    );
                    return Err(RunError { id: spec.id, reason });
                }
            }
            for (_, said) in f.notes.iter().filter(|(id, _)| *id == claim.id) {
                if !note.contains(said.as_str()) {
                    if !note.is_empty() {
                        note.push(' ');
                    }
                    note.push_str(said);
                }
            }
        }
        let holds = figures.iter().all(|f| f.iter().zip(claim.checks).all(|(v, c)| c.test.passes(*v)));
        claims.push(ClaimResult { claim, figures, holds, note });
    }
    Ok(ExperimentResult { spec, claims, findings, seconds })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use headtime_sched::Order;

    use super::*;
    use crate::common::scans::{Scan, Window};
    use crate::experiment::{Cell, Check, Experiment, Length, Table, Test, Unwatched};

    /// An experiment whose results are determined by its seed.
    pub(crate) static FAKE: Experiment = Experiment { spec: &SPEC, steps: 1, run: invent };

    static SPEC: Spec = Spec {
        id: "T1",
        title: "A made-up experiment",
        source: "nowhere",
        drive: "none",
        workload: "none",
        claims: &[
            Claim {
                id: "T1a",
                claim: "the seed is small",
                paper: "2",
                rule: "at most 3",
                checks: &[Check { what: "seed", unit: "", test: Test::AtMost(3.0) }],
                quick: true,
                note: "",
            },
            Claim {
                id: "T1b",
                claim: "the seed is <very> small, and \"odd\"",
                paper: "1",
                rule: "at most 2",
                checks: &[
                    Check { what: "seed", unit: "ms", test: Test::AtMost(2.0) },
                    Check { what: "nothing", unit: "", test: Test::Never },
                ],
                quick: false,
                note: "Made up.",
            },
        ],
        length: Length::Seconds,
        alone: true,
    };

    fn invent(run: &Run) -> Result<Findings, RunError> {
        if run.seed == 13 {
            return Err(RunError { id: "T1", reason: "unlucky".into() });
        }
        let v = run.seed as f64;
        let mut f = Findings::default();
        f.figure("T1a", &[v]);
        f.figure("T1b", &[v, 0.0]);
        f.tables.push(Table {
            name: "seeds",
            columns: &["what", "value"],
            rows: vec![vec![Cell::from("a, \"b\""), Cell::from(v)]],
        });
        run.progress.advance(1);
        Ok(f)
    }

    pub(crate) fn run_fake(seeds: &[u64], quick: bool) -> Result<Vec<ExperimentResult>, RunError> {
        let selected = [Selected::whole(&FAKE)];
        let options = Options { seeds: seeds.to_vec(), quick };
        run(&selected, &options, &Unwatched)
    }

    #[test]
    fn a_claim_holds_only_if_it_holds_for_each_seed() {
        let r = run_fake(&[1, 2, 3], false).unwrap();
        assert_eq!(r.len(), 1);
        let [a, b] = &r[0].claims[..] else { panic!("{r:?}") };
        assert!(a.holds);
        assert!(!b.holds, "seed 3 breaks it");
        assert_eq!((a.mean(0), a.range(0)), (2.0, (1.0, 3.0)));
    }

    #[test]
    fn complete_experiments_are_told_before_the_others_end() {
        let selected = [Selected::whole(&FAKE), Selected::whole(&FAKE)];
        let options = Options { seeds: vec![1, 2], quick: false };
        let told = Mutex::new(Vec::new());
        let so_far = |results: &[ExperimentResult]| told.lock().unwrap().push(results.len());
        run_with(&selected, &options, &Unwatched, &so_far).unwrap();
        assert_eq!(told.into_inner().unwrap(), [1, 2]);
        // One that fails is not among them.
        let told = Mutex::new(Vec::new());
        let so_far = |results: &[ExperimentResult]| told.lock().unwrap().push(results.len());
        run_with(&selected, &Options { seeds: vec![13], quick: false }, &Unwatched, &so_far).unwrap_err();
        assert_eq!(told.into_inner().unwrap(), [0; 0]);
    }

    /// A watcher that stops the runs at a step.
    struct Until(AtomicU64, u64);

    impl Progress for Until {
        fn advance(&self, steps: u64) {
            self.0.fetch_add(steps, Ordering::Relaxed);
        }

        fn stops(&self) -> bool {
            self.0.load(Ordering::Relaxed) >= self.1
        }
    }

    /// An experiment of very many steps.
    static ENDLESS: Experiment = Experiment { spec: &SPEC, steps: 1_000_000, run: count };

    fn count(run: &Run) -> Result<Findings, RunError> {
        (0..ENDLESS.steps).for_each(|_| run.progress.advance(1));
        invent(run)
    }

    #[test]
    fn a_stop_ends_experiments_within_and_begins_no_more() {
        let selected = [Selected::whole(&ENDLESS), Selected::whole(&FAKE)];
        let options = Options { seeds: vec![1, 2], quick: false };
        let watcher = Until(AtomicU64::new(0), 100);
        let e = run(&selected, &options, &watcher).unwrap_err();
        assert_eq!(e.to_string(), "T1: stopped");
        assert_eq!(watcher.0.into_inner(), 100, "one experiment at a time, for these measure processor time");
        // Before the first one, and never.
        assert!(run(&selected[1..], &options, &Until(AtomicU64::new(0), 0)).is_err());
        assert!(run(&selected[1..], &options, &Until(AtomicU64::new(0), 3)).is_ok());
    }

    /// A watcher that stops the runs after a number of calls.
    struct Calls(AtomicU64, u64);

    impl Progress for Calls {
        fn advance(&self, _steps: u64) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn stops(&self) -> bool {
            self.0.load(Ordering::Relaxed) >= self.1
        }
    }

    /// An experiment whose one step is a simulation of four virtual years.
    static LONG: Experiment = Experiment { spec: &SPEC, steps: 1, run: scan };

    fn scan(run: &Run) -> Result<Findings, RunError> {
        Scan::new("atlas10k", 8, Order::Sptf, Window::First(4 * 31_557_600)).measure(&SPEC, run)?;
        invent(run)
    }

    #[test]
    fn a_stop_ends_an_experiment_within_a_simulation() {
        let options = Options { seeds: vec![1], quick: false };
        let watcher = Calls(AtomicU64::new(0), 3);
        let e = run(&[Selected::whole(&LONG)], &options, &watcher).unwrap_err();
        assert_eq!((e.to_string().as_str(), watcher.0.into_inner()), ("T1: stopped", 3));
    }

    #[test]
    fn a_short_run_leaves_out_what_it_cannot_show() {
        let r = run_fake(&[1], true).unwrap();
        assert_eq!(r[0].claims.len(), 1);
        assert_eq!(r[0].claims[0].claim.id, "T1a");
    }

    #[test]
    fn a_run_that_fails_fails_the_whole_with_its_name() {
        let e = run_fake(&[1, 13], false).unwrap_err();
        assert_eq!(e.to_string(), "T1: unlucky");
    }
}
