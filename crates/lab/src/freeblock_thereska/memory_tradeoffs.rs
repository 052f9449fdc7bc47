//! Scans over a fixed time by pick-up size and by regions per cylinder (Thereska 2003 figure 4),
//! shared by S2 and S3.
//!
//! # Definition of efficiency
//!
//! Free bandwidth over the first 1,200 s (in a shortened run 60 s on a sixteenth of the cylinders,
//! nearly as much of the disk), with the disk always busy: long enough that most of the disk is
//! read and searches have to skip empty parts, which is where regions can help. Everything else is
//! as for whole scans ([`super::algorithm_comparison`]): Angle-EP-Frag, the paper's default, with
//! the default search budget.
//!
//! # Definition of memory
//!
//! Both layers, everything registered, with bits at their maximum.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use headtime_disk::{Kind, Time};
use headtime_sched::{Algorithm, FillConfig, TaskRange, TaskSpec};
use headtime_sim::background::{Job, Jobs};
use headtime_sim::stats::Stats;
use headtime_sim::workload::freeblock_micro;

use super::algorithm_comparison::{self, AT_8_PERCENT, CYLINDER_REDUCTION, UNIT};
use super::zone_scan::Cut;
use crate::common::scan_run::free_mb_s;
use crate::experiment::{Run, RunError, Spec, failed};

/// Regions per cylinder.
pub(crate) const REGIONS: [u32; 4] = [1, 4, 8, 16];
/// Number of tasks into which the disk is divided.
pub(crate) const MANY_TASKS: u64 = 100_000;

/// The varied parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Choice {
    /// Regions per cylinder.
    pub regions: u32,
    /// Whether the disk is divided into [`MANY_TASKS`] tasks, instead of one.
    pub many: bool,
    /// Pick-up size, sectors.
    pub min_pickup: u32,
}

impl Choice {
    /// One task, or [`MANY_TASKS`], with `regions` regions per cylinder, in units of 32 KB.
    pub(crate) fn regions(regions: u32, many: bool) -> Choice {
        Choice { regions, many, min_pickup: UNIT }
    }
}

/// Results of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// Free bandwidth, MB/s.
    pub mb_s: f64,
    /// Memory, bytes.
    pub bytes: f64,
    /// Share of the disk that was read, percent.
    pub percent: f64,
    /// Cost of a search: cells entered, tracks examined and queries of the task layer.
    pub cost: f64,
}

type Once = Arc<OnceLock<Result<Outcome, String>>>;

/// Finished runs, by choice, seed and length.
static DONE: Mutex<BTreeMap<(Choice, u64, bool), Once>> = Mutex::new(BTreeMap::new());

/// Returns a run's results, run on first use.
pub(crate) fn outcome(spec: &Spec, run: &Run, choice: Choice) -> Result<Outcome, RunError> {
    let key = (choice, run.seed, run.quick);
    let once = DONE.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
    let found = once.get_or_init(|| measure(spec, run, choice).map_err(|e| e.reason));
    run.progress.advance(1);
    found.clone().map_err(|e| failed(spec, e))
}

fn measure(spec: &Spec, run: &Run, choice: Choice) -> Result<Outcome, RunError> {
    let fewer = run.length(1, 2 * CYLINDER_REDUCTION);
    let profile = algorithm_comparison::profile_of(spec, fewer as u32)?;
    let mut how = algorithm_comparison::micro(spec, profile, run.seed)?;
    how = algorithm_comparison::filled(how, Algorithm::AngleEpFrag, AT_8_PERCENT).seconds(run.length(1_200, 60));
    how.fill = how.fill.map(|f| FillConfig { regions: choice.regions, ..f });
    let cut = Cut {
        // Tasks as long as on the whole drive.
        tasks: if choice.many { MANY_TASKS / fewer } else { 1 },
        blksize: UNIT.min(choice.min_pickup),
        min_pickup: choice.min_pickup,
    };
    let (stats, scan) = algorithm_comparison::run(spec, &how, cut)?;
    // A complete scan has no more work: the rate is that until its end.
    let until = stats.background.done_at.unwrap_or(stats.ended_at).since(Time::ZERO).as_secs_f64();
    let all = stats.ended_at.as_secs_f64();
    let mb_s = free_mb_s(&stats, how.profile.sector_bytes) * if until > 0.0 { all / until } else { 1.0 };
    let cost = search_cost(&stats);
    Ok(Outcome { mb_s, bytes: scan.bytes() as f64, percent: 100.0 * stats.background.fraction, cost })
}

fn search_cost(stats: &Stats) -> f64 {
    stats.freeblock.as_ref().map_or(0.0, |r| r.search_cost as f64 / r.searches.max(1) as f64)
}

/// Requests that wait with scattered tasks: under SPTF the gaps are then short.
const WAITING: u32 = 32;
/// Number of scattered tasks, and sectors of each: a thousandth of the disk is wanted.
const SCATTERED: (u64, u32) = (10_000, 8);

/// Returns free bandwidth in MB/s and the cost of a search where single blocks of 4 KiB are wanted,
/// anywhere on the disk, each again once it was read, and where gaps are short. Most cells then
/// have something in one region only, and most regions do not pass in time.
pub(crate) fn scattered(spec: &Spec, run: &Run, regions: u32) -> Result<(f64, f64), RunError> {
    let fewer = run.length(1, 2 * CYLINDER_REDUCTION);
    let profile = algorithm_comparison::profile_of(spec, fewer as u32)?;
    let mut how = algorithm_comparison::micro(spec, profile, run.seed)?;
    how.load = freeblock_micro(WAITING);
    how = algorithm_comparison::filled(how, Algorithm::AngleEpFrag, AT_8_PERCENT).seconds(run.length(300, 30));
    how.fill = how.fill.map(|f| FillConfig { regions, ..f });
    let (tasks, sectors) = (SCATTERED.0 / fewer, SCATTERED.1);
    let capacity = how.capacity(spec)?;
    let slots = capacity / tasks / u64::from(sectors);
    let task = |n: u64| {
        // Somewhere in its part of the disk.
        let lbn = (n * slots + n * 0x9e37_79b1 % slots) * u64::from(sectors);
        let ranges = vec![TaskRange { lbn, count: u64::from(sectors) }];
        TaskSpec { kind: Kind::Read, ranges, blksize: sectors, min_pickup: sectors }
    };
    let tasks = (0..tasks).map(task).collect();
    let jobs = Jobs::new(vec![Job { tasks, again: true, ..Job::scan(capacity, sectors) }]);
    let (stats, _) = how.run(spec, jobs, &mut ())?;
    run.progress.advance(1);
    Ok((free_mb_s(&stats, how.profile.sector_bytes), search_cost(&stats)))
}
