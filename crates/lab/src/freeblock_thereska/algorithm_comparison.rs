//! Whole scans of the Cheetah 36ES under the microbenchmark of Thereska 2003, one for each
//! algorithm, shared by the experiments that compare them (S4 to S7): each scan is run once per
//! seed, on first use.
//!
//! # The setup
//!
//! * As in the paper's system: outside the drive, SPTF, two requests always outstanding, one read
//!   of the whole disk in blocks of 32 KB. No use of idle time: there is none.
//! * Conservatism is adaptive, as the paper's "fudge factor" is ("This factor adaptively changes",
//!   section 4.8).
//! * No part of the scan is promoted. Blocks that no gap can hold are fetched when nothing has been
//!   delivered for two seconds: a few at the end of each scan.
//!
//! # The budget of a search
//!
//! The search of the paper's machine in one gap is bounded by its processor time: 2 to 8% of a 1
//! GHz processor, 60% of it for translating blocks to positions and back (section 4.3). At about
//! 120 gaps a second 8% are 670 us a gap, 400 us of it translations. A translation through generic
//! code, with a linear search of zones, is taken as 1 us (1,000 cycles), and a track as four of
//! them: the first and the last sector that passes, and both ends of the wanted part. That is 100
//! tracks a gap at 8%, and 25 at 2%. A search here costs one for each cell it enters (of two
//! tracks), one for a track, one for a query there: 2.5 a track. So [`AT_8_PERCENT`] and
//! [`AT_2_PERCENT`]: by coincidence, the default of a search for quick pass and refinement
//! together, and for its quick pass alone. These figures were fixed before the first scan was run.

mod scan_report;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Model, Time};
use headtime_sched::{Algorithm, Conservatism, FillConfig, Order, Placement};
use headtime_sim::stats::Stats;
use headtime_sim::workload::{MICRO_OUTSTANDING, Population, freeblock_micro};

use super::zone_scan::{Cut, ZoneScan, zone_bounds};
use crate::common::scan_run::{self, ScanRun};
use crate::experiment::{Findings, Run, RunError, Spec, failed};
use headtime_sim::scaled_drives;

/// The drive.
pub(crate) const DRIVE: &str = "cheetah36es";

/// The unit, sectors of 32 KB.
pub(crate) const UNIT: u32 = 64;

/// The cost limit of a search in tracks and queries: quick pass, refinement. Equivalent to 8% of
/// the processor of the paper's machine, and the default of the papers' algorithms.
pub(crate) const AT_8_PERCENT: (u32, u32) = (64, 192);
/// The same with 2%.
pub(crate) const AT_2_PERCENT: (u32, u32) = (64, 0);

/// Reduction of the cylinders in a shortened run, on the same stroke: gaps are unchanged, and there
/// is less to scan.
pub(crate) const CYLINDER_REDUCTION: u64 = 8;

/// Time limit of a scan: no claim holds for a longer one.
pub(crate) const MOST_SECONDS: u64 = 40_000;

/// The parameters of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// What fills gaps.
    pub algorithm: Algorithm,
    /// The cost limit of a search.
    pub budget: (u32, u32),
    /// Seed of load and noise.
    pub seed: u64,
    /// Reduction of the drive's cylinders, on the same stroke.
    pub fewer: u32,
}

impl Key {
    /// The key of a run: an eighth of the cylinders in a shortened one.
    pub(crate) fn new(run: &Run, algorithm: Algorithm, budget: (u32, u32)) -> Key {
        Key { algorithm, budget, seed: run.seed, fewer: run.length(1, CYLINDER_REDUCTION) as u32 }
    }
}

/// A whole scan.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Counters of the run.
    pub stats: Stats,
    /// Results of the scan.
    pub scan: ZoneScan,
    /// Foreground requests per second with gaps filled, and without in a run of equal length.
    pub per_second: (f64, f64),
    /// The same for the 99th percentile of their response times, ms.
    pub p99_ms: (f64, f64),
}

impl Scan {
    /// Seconds until the last block; infinite if the scan did not end.
    pub(crate) fn seconds(&self) -> f64 {
        self.stats.background.done_at.map_or(f64::INFINITY, Time::as_secs_f64)
    }

    /// Seconds until the last block of each zone, outermost first.
    pub(crate) fn zones(&self) -> Vec<f64> {
        self.scan.zones_done_at().iter().map(|t| t.map_or(f64::INFINITY, Time::as_secs_f64)).collect()
    }

    /// The foreground's loss, percent.
    pub(crate) fn loss(&self) -> f64 {
        100.0 * (1.0 - self.per_second.0 / self.per_second.1)
    }

    /// Increase of the foreground's p99, percent.
    pub(crate) fn p99_rise(&self) -> f64 {
        100.0 * (self.p99_ms.0 / self.p99_ms.1 - 1.0)
    }
}

/// The drive with its cylinders reduced by `fewer`.
pub(crate) fn profile_of(spec: &Spec, fewer: u32) -> Result<Profile, RunError> {
    let whole = profile::builtin(DRIVE).map_err(|e| failed(spec, e))?;
    Ok(if fewer > 1 { scaled_drives::cylinders(&whole, 1, fewer) } else { whole })
}

/// The drive with the microbenchmark.
pub(crate) fn micro(spec: &Spec, profile: Profile, seed: u64) -> Result<ScanRun, RunError> {
    let load = freeblock_micro(MICRO_OUTSTANDING);
    Ok(ScanRun { profile, ..ScanRun::new(spec, DRIVE, Order::Sptf, load, seed)? })
}

/// The same with gaps filled: outside the drive, adaptive, no use of idle time.
pub(crate) fn filled(run: ScanRun, algorithm: Algorithm, budget: (u32, u32)) -> ScanRun {
    let run = run.with(algorithm, Placement::Host, Conservatism::Adaptive);
    let fill = run.fill.clone().map(|f| FillConfig { idle: None, budget, ..f });
    ScanRun { fill, ..run }
}

/// Runs a scan.
pub(crate) fn run(spec: &Spec, run: &ScanRun, cut: Cut) -> Result<(Stats, ZoneScan), RunError> {
    let model = Model::new(&run.profile).map_err(|e| failed(spec, e))?;
    let mut scan = ZoneScan::new(&zone_bounds(&run.profile.geometry, &model.geometry), cut);
    let simulation = run.simulation(spec)?;
    let mut load = Population::of(&run.load, simulation.target(), run.seed).map_err(|e| failed(spec, e))?;
    let stats = simulation.run_with(&mut load, &mut scan, run.limits, None, &mut ()).map_err(|e| failed(spec, e))?;
    Ok((stats, scan))
}

/// Runs a scan, and the foreground alone for the same time.
fn whole(spec: &Spec, key: Key) -> Result<Scan, RunError> {
    let mut alone = micro(spec, profile_of(spec, key.fewer)?, key.seed)?;
    let with = filled(alone.clone(), key.algorithm, key.budget).until_scanned(MOST_SECONDS);
    let (stats, scan) = run(spec, &with, Cut::whole(UNIT))?;
    alone.limits.until = Some(Time::ZERO + stats.ended_at.since(Time::ZERO).max(Dur::from_secs(1)));
    let without = alone.scan(spec, UNIT, &mut ())?.0;
    let per_second = (stats.per_second(), without.per_second());
    let p99_ms = (scan_run::p99_ms(&stats), scan_run::p99_ms(&without));
    Ok(Scan { stats, scan, per_second, p99_ms })
}

type Once = Arc<OnceLock<Result<Arc<Scan>, String>>>;

/// Finished runs. The same key gives the same scan, whichever experiment runs it.
static SCANS: Mutex<BTreeMap<Key, Once>> = Mutex::new(BTreeMap::new());

/// Returns a whole scan, run on first use.
pub(crate) fn scan(spec: &Spec, key: Key) -> Result<Arc<Scan>, RunError> {
    let once = SCANS.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
    let found = once.get_or_init(|| whole(spec, key).map(Arc::new).map_err(|e| e.reason));
    found.clone().map_err(|e| failed(spec, e))
}

/// The scans of two algorithms that differ in one feature.
pub(crate) struct Pair {
    algorithms: [Algorithm; 2],
    /// Without the feature.
    pub old: Arc<Scan>,
    /// With the feature.
    pub new: Arc<Scan>,
    /// Both with a smaller budget; not in a shortened run.
    small: Vec<(&'static str, [Arc<Scan>; 2])>,
}

impl Pair {
    /// Steps of progress.
    pub(crate) const STEPS: u64 = 3;

    /// Runs them, in [`Pair::STEPS`] steps.
    pub(crate) fn new(spec: &Spec, run: &Run, old: Algorithm, new: Algorithm) -> Result<Pair, RunError> {
        let algorithms = [old, new];
        let get = |n: usize, budget| scan(spec, Key::new(run, algorithms[n], budget));
        let old = get(0, AT_8_PERCENT)?;
        run.progress.advance(1);
        let new = get(1, AT_8_PERCENT)?;
        run.progress.advance(1);
        let mut small = Vec::new();
        if !run.quick {
            small.push(("quick pass only", [get(0, AT_2_PERCENT)?, get(1, AT_2_PERCENT)?]));
        }
        run.progress.advance(1);
        Ok(Pair { algorithms, old, new, small })
    }

    /// Adds tables and pictures.
    pub(crate) fn report(&self, f: &mut Findings, figure: &str) {
        let mut scans: Vec<(String, &Scan)> = Vec::new();
        for (algorithm, scan) in self.algorithms.iter().zip([&self.old, &self.new]) {
            scans.push((algorithm.name().to_owned(), scan));
        }
        for (what, both) in &self.small {
            for (algorithm, scan) in self.algorithms.iter().zip(both) {
                scans.push((format!("{}, {what}", algorithm.name()), scan));
            }
        }
        scan_report::add(f, figure, &scans);
    }
}
