//! Scans of a whole disk under `oltp`, measured once and shared by experiments.
//!
//! Figures 9 and 10 of Lumb 2002 are a few dozen scans, and several claims use the same ones. Each
//! scan is run on first use and kept; a single experiment runs only its own.

use std::sync::{Arc, Mutex, PoisonError};

use headtime_disk::profile::{self, Profile};
use headtime_disk::{DriveNoise, Dur, Model, Time};
use headtime_sched::{Algorithm, Conservatism, Order, Placement, TaskRange};
use headtime_sim::background::{Job, Jobs};
use headtime_sim::stats::Stats;
use headtime_sim::workload::{Arrivals, GroupSpec, PatternSpec, SizeSpec, Think, oltp};

use super::characterised_drive::{self, By, Subject};
use super::scan_bound::{Bound, GapBound, SHARES};
use super::scan_run::{self, DriveBehaviour, ScanRun};
use crate::experiment::{Run, RunError, Spec, failed};
use headtime_sim::scaled_drives::narrowed;

/// The parameters of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scan {
    /// A built-in drive.
    pub drive: &'static str,
    /// Reduction of its cylinders ([`narrowed`]); 1: unchanged.
    pub narrowed: u32,
    /// Whether its write-back cache, if any, is switched off.
    pub write_through: bool,
    /// Unit of the scan, sectors.
    pub unit: u32,
    /// The order.
    pub order: Order,
    /// The foreground.
    pub load: Load,
    /// The drive's noise.
    pub noise: DriveNoise,
    /// The scheduler has only the profile found by this kind of characterisation, and the spindle
    /// has an error ([`characterised`]); `None`: the scheduler has the profile.
    pub characterised: Option<By>,
    /// What fills gaps; `None`: nothing, and the run has the longest duration of the window.
    pub fill: Option<Fill>,
    /// How the drive behaves towards the scheduler; `None`: by the placement.
    pub towards: Option<DriveBehaviour>,
    /// The measured part of the scan.
    pub window: Window,
    /// The background applications.
    pub readers: Readers,
    /// Whether the lower bound of the duration is computed ([`GapBound`]).
    pub bounded: bool,
}

/// The background applications, all with equal priority and from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// One, for the whole disk.
    One,
    /// Two, for the whole disk each.
    Two,
    /// Four, for a quarter of the LBNs each.
    Quarters,
}

impl Readers {
    /// Total sectors that they want of a drive of `capacity` sectors.
    fn wanted(self, capacity: u64) -> u64 {
        match self {
            Readers::One | Readers::Quarters => capacity,
            Readers::Two => 2 * capacity,
        }
    }

    /// Their jobs on a drive of `capacity` sectors, in units of `unit` sectors.
    fn jobs(self, capacity: u64, unit: u32) -> Jobs {
        let whole = || Job::scan(capacity, unit);
        let quarter = |n: u64| {
            let edge = |n: u64| capacity / 4 * n / u64::from(unit) * u64::from(unit);
            let (lbn, end) = (edge(n), if n == 3 { capacity } else { edge(n + 1) });
            let mut job = whole();
            job.tasks[0].ranges = vec![TaskRange { lbn, count: end - lbn }];
            job
        };
        Jobs::new(match self {
            Readers::One => vec![whole()],
            Readers::Two => vec![whole(), whole()],
            Readers::Quarters => (0..4).map(quarter).collect(),
        })
    }
}

/// The foreground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Ten tasks with a think time of 30 ms.
    Oltp,
    /// The same requests, ten of them always outstanding: the paper's "multiprogramming level of
    /// ten", which it states together with the think time (section 5.1).
    TenActive,
    /// As `oltp`, each request of 4 KB: the "4KB average request size" of the paper's figure 7.
    Small,
}

impl Load {
    fn group(self) -> GroupSpec {
        match self {
            Load::Oltp => oltp(),
            Load::Small => {
                let pattern = PatternSpec { size: SizeSpec::Fixed { bytes: 4096 }, ..oltp().pattern };
                GroupSpec { pattern, ..oltp() }
            }
            Load::TenActive => GroupSpec { arrivals: Arrivals::Closed { tasks: 10, think: Think::None }, ..oltp() },
        }
    }
}

/// The measured part of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// The first seconds of virtual time, in which little of the disk has been read.
    First(u64),
    /// All of it, up to a limit in virtual seconds.
    Whole(u64),
}

/// Parameters of gap filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Inside the drive or outside.
    pub placement: Placement,
    /// The safety margin.
    pub conservatism: Conservatism,
}

impl Fill {
    /// Outside the drive, with a fixed margin added to every seek.
    pub(crate) fn host(algorithm: Algorithm, us: u64) -> Fill {
        Fill { algorithm, placement: Placement::Host, conservatism: Conservatism::Fixed(Dur::from_us(us)) }
    }

    /// Outside the drive, with an adaptive margin.
    pub(crate) fn adaptive(algorithm: Algorithm) -> Fill {
        Fill { algorithm, placement: Placement::Host, conservatism: Conservatism::Adaptive }
    }
}

/// Results of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scanned {
    /// Foreground requests per second.
    pub per_second: f64,
    /// Foreground megabytes (10^6) per second.
    pub foreground_mb_s: f64,
    /// Mean foreground response, ms.
    pub response_ms: f64,
    /// Its 99th percentile, ms.
    pub p99_ms: f64,
    /// Free megabytes (10^6) per second.
    pub free_mb_s: f64,
    /// Megabytes (10^6) per second of the scan's progress, including blocks of foreground requests.
    pub progress_mb_s: f64,
    /// Share of the disk that was read.
    pub share: f64,
    /// Seconds until 50, 90, 99, 99.9 and 100% of the wanted sectors were read.
    pub marks: [f64; 5],
    /// Share of foreground requests that came a revolution later than predicted.
    pub extra_turns: f64,
    /// Share that came a revolution earlier.
    pub early_turns: f64,
    /// Megabytes (10^6) per second that pass under a head that stays on its track, the mean over
    /// all tracks.
    pub media_mb_s: f64,
    /// The earliest possible times with the gaps of this run.
    pub bound: Bound,
}

impl Scanned {
    /// Duration of the whole scan in seconds; NaN if it did not end.
    pub(crate) fn seconds(&self) -> f64 {
        self.marks[4]
    }

    /// Increase of p99 relative to the run without FILL, %.
    pub(crate) fn p99_rise(&self, without: &Scanned) -> f64 {
        100.0 * (self.p99_ms / without.p99_ms - 1.0)
    }

    /// Loss of the foreground relative to the run without FILL, %; negative for a gain.
    pub(crate) fn loss(&self, without: &Scanned) -> f64 {
        100.0 * (1.0 - self.per_second / without.per_second)
    }
}

impl Scan {
    /// A scan of an unmodified drive, under `oltp`, without FILL.
    pub(crate) fn new(drive: &'static str, unit: u32, order: Order, window: Window) -> Scan {
        let (load, noise) = (Load::Oltp, DriveNoise::Profile);
        let (fill, towards) = (None, None);
        let (narrowed, write_through, characterised) = (1, false, None);
        let (readers, bounded) = (Readers::One, false);
        Scan {
            drive,
            narrowed,
            write_through,
            unit,
            order,
            load,
            noise,
            characterised,
            fill,
            towards,
            window,
            readers,
            bounded,
        }
    }

    /// The drive of the run.
    pub(crate) fn profile(&self, spec: &Spec) -> Result<Profile, RunError> {
        let mut full = profile::builtin(self.drive).map_err(|e| failed(spec, e))?;
        full.electronics.cache.write_back &= !self.write_through;
        match self.narrowed {
            0 | 1 => Ok(full),
            by => narrowed(&full, by).map_err(|e| failed(spec, e)),
        }
    }

    /// The same with FILL.
    pub(crate) fn with(self, fill: Fill) -> Scan {
        Scan { fill: Some(fill), ..self }
    }

    /// Returns the results, run on first use.
    pub(crate) fn measure(&self, spec: &Spec, run: &Run) -> Result<Scanned, RunError> {
        let kept = kept(*self, run.seed);
        // A concurrent caller waits for the running scan.
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let scanned = match *kept {
            Some(scanned) => scanned,
            None => *kept.insert(self.measure_now(spec, run)?),
        };
        run.progress.advance(1);
        Ok(scanned)
    }

    fn measure_now(&self, spec: &Spec, run: &Run) -> Result<Scanned, RunError> {
        let seed = run.seed;
        let mut filled = ScanRun::new(spec, self.drive, self.order, self.load.group(), seed)?;
        filled.profile = self.profile(spec)?;
        filled.noise = self.noise;
        if let Some(by) = self.characterised {
            let which = Subject { drive: self.drive, narrowed: self.narrowed, by };
            let known = characterised_drive::of(spec, seed, which)?;
            let found = known.found.as_ref().map_err(|why| failed(spec, why))?;
            filled.belief = Some(found.profile.clone());
            filled.profile = known.truth.clone();
        }
        filled.towards = self.towards;
        let filled = match self.fill {
            None => filled,
            Some(f) => filled.with(f.algorithm, f.placement, f.conservatism),
        };
        let filled = match self.window {
            Window::First(seconds) => filled.seconds(seconds),
            Window::Whole(most) => filled.until_scanned(most),
        };
        let media_mb_s = filled.simulation(spec)?.media_bytes_per_second() / 1e6;
        let model = Model::new(&filled.profile).map_err(|e| failed(spec, e))?;
        let mut watch = (self.bounded.then(|| GapBound::new(model)), run.stop_within());
        let capacity = filled.capacity(spec)?;
        let (stats, jobs) = filled.run(spec, self.readers.jobs(capacity, self.unit), &mut watch)?;
        let scanned = scanned(&stats, &jobs, self.readers.wanted(capacity), filled.profile.sector_bytes, media_mb_s);
        Ok(Scanned { bound: watch.0.map_or_else(Bound::default, |b| *b.bound()), ..scanned })
    }
}

fn scanned(stats: &Stats, jobs: &Jobs, sectors: u64, sector_bytes: u32, media_mb_s: f64) -> Scanned {
    let at = |permille: u64| {
        let wanted = sectors * permille / 1000;
        let point = jobs.curve().iter().find(|(_, moved)| *moved >= wanted);
        point.map_or(f64::NAN, |(t, _)| t.as_secs_f64())
    };
    let [half, most, nearly, last, _] = SHARES.map(at);
    let done = stats.background.done_at.map_or(f64::NAN, Time::as_secs_f64);
    let p = &stats.prediction;
    Scanned {
        per_second: stats.per_second(),
        foreground_mb_s: stats.mb_per_second(sector_bytes),
        response_ms: stats.responses().mean().map_or(f64::NAN, Dur::as_ms_f64),
        p99_ms: scan_run::p99_ms(stats),
        free_mb_s: scan_run::free_mb_s(stats, sector_bytes),
        progress_mb_s: scan_run::progress_mb_s(stats, sector_bytes),
        share: stats.background.fraction,
        marks: [half, most, nearly, last, done],
        extra_turns: p.extra_turn as f64 / p.samples as f64,
        early_turns: p.early_turn as f64 / p.samples as f64,
        media_mb_s,
        bound: Bound::default(),
    }
}

type Slot = Arc<Mutex<Option<Scanned>>>;

/// The cache entry of a scan.
fn kept(scan: Scan, seed: u64) -> Slot {
    static KEPT: Mutex<Vec<(Scan, u64, Slot)>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, _, slot)) = kept.iter().find(|(s, n, _)| *s == scan && *n == seed) {
        return slot.clone();
    }
    let slot = Slot::default();
    kept.push((scan, seed, slot.clone()));
    slot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Unwatched;
    use crate::experiment::runner::tests::FAKE;

    fn small(fill: Fill, window: Window) -> Scan {
        Scan { narrowed: 200, ..Scan::new("atlas10k", 64, Order::Sstf, window) }.with(fill)
    }

    #[test]
    fn what_a_scan_came_to_is_kept_for_its_seed() {
        let run = |seed| Run { seed, quick: true, progress: &Unwatched };
        let scan = small(Fill::adaptive(Algorithm::AngleEpFrag), Window::Whole(1_000));
        assert_eq!(*kept(scan, 1).lock().unwrap(), None);
        let first = scan.measure(FAKE.spec, &run(1)).unwrap();
        assert_eq!(*kept(scan, 1).lock().unwrap(), Some(first));
        assert_eq!(*kept(scan, 2).lock().unwrap(), None);
        assert_eq!(scan.measure(FAKE.spec, &run(1)).unwrap(), first);
        assert_ne!(scan.measure(FAKE.spec, &run(2)).unwrap(), first);
    }

    #[test]
    fn measured_noise_makes_as_many_requests_late_and_early_as_the_paper_saw() {
        let run = Run { seed: 4, quick: true, progress: &Unwatched };
        let mut late = Vec::new();
        for noise in [DriveNoise::Profile, DriveNoise::Measured] {
            let scan = Scan::new("atlas10k", 8, Order::Fcfs, Window::First(200));
            let alone = Scan { noise, ..scan }.measure(FAKE.spec, &run).unwrap();
            late.push((100.0 * alone.extra_turns, 100.0 * alone.early_turns));
        }
        assert!(late[0].0 < 0.5 && late[0].1 < 0.5, "{late:?}");
        assert!((late[1].0 - 1.8).abs() < 0.4 && (late[1].1 - 0.7).abs() < 0.3, "{late:?}");
    }

    #[test]
    fn a_whole_scan_reads_all_and_notes_when() {
        let run = Run { seed: 3, quick: true, progress: &Unwatched };
        let scan = small(Fill::host(Algorithm::BwGreedy, 100), Window::Whole(1_000));
        let whole = scan.measure(FAKE.spec, &run).unwrap();
        assert_eq!(whole.share, 1.0);
        assert!(whole.marks.windows(2).all(|m| m[0] <= m[1]), "{:?}", whole.marks);
        let part = Scan { window: Window::First(2), ..scan }.measure(FAKE.spec, &run).unwrap();
        assert!(part.share < 0.5 && part.seconds().is_nan(), "{part:?}");
        assert!(part.free_mb_s > whole.free_mb_s, "what is left is harder to reach");
    }
}
