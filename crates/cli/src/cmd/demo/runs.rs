//! The demo's runs: the same programs on the same drive, without a scan and with a scan done in
//! several ways; first with the drive's own queue, then with headtime.

use headtime_disk::profile::Profile;
use headtime_disk::{Dur, Time};
use headtime_sched::{Algorithm, FillConfig, Order, TaskEvent};
use headtime_sim::background::{Jobs, PROMOTED_PART, scan_unit};
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Scheduling, Setup, Simulation};
use headtime_sim::stats::histogram::Histogram;
use headtime_sim::stats::{Done, Stats};
use headtime_sim::workload::{Beside, Pace, Population, READER, ReaderSpec, oltp};

use super::window::Window;
use crate::failure::Failure;
use crate::screen::Bar;

/// Request order under headtime.
const ORDER: Order = Order::SptfJoint;
/// Duration of the runs without a scan.
const UNSCANNED_RUN_TIME: Dur = Dur::from_secs(3600);
/// Time limit of a scan.
const MAX_SCAN_TIME: Dur = Dur::from_secs(12 * 3600);

/// Progress-bar steps, in proportion to each run's duration.
const STEPS: [u64; 5] = [30, 150, 50, 60, 710];

/// One run.
pub struct Row {
    /// Name of the run.
    pub name: String,
    /// Response times of the programs' requests.
    pub responses: Histogram,
    /// Duration of the run.
    pub ended_at: Time,
    /// The scan; `None` for a run without one.
    pub scan: Option<Scan>,
    /// The head's work, for the picture.
    pub window: Window,
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scan {
    /// Bytes read.
    pub bytes: u64,
    /// Bytes to be read.
    pub of: u64,
    /// When the scan was complete.
    pub done_at: Option<Time>,
}

/// The runs that are compared.
pub struct Rows {
    /// The drive with its own queue, programs only.
    pub bare: Row,
    /// The same with an idle-class reader.
    pub idle: Row,
    /// The same with a rate-limited reader, at the rate that headtime reaches.
    pub limited: Row,
    /// headtime, programs only.
    pub alone: Row,
    /// headtime, with a scan in rotational gaps.
    pub free: Row,
}

impl Rows {
    /// The runs in table order; the first is the reference.
    pub fn in_order(&self) -> [&Row; 5] {
        [&self.bare, &self.idle, &self.limited, &self.alone, &self.free]
    }
}

impl Row {
    /// Rate of the programs' requests, per second.
    pub fn per_second(&self) -> f64 {
        self.responses.samples() as f64 / self.ended_at.as_secs_f64()
    }

    /// Rate of the scan, MB/s; 0 without one.
    pub fn scan_mb_s(&self) -> f64 {
        let until = |s: &Scan| s.done_at.unwrap_or(self.ended_at).as_secs_f64();
        self.scan.map_or(0.0, |s| s.bytes as f64 / 1e6 / until(&s))
    }

    /// Duration of the scan, in seconds, extrapolated if it is incomplete; infinite if nothing was
    /// read.
    pub fn scan_seconds(&self) -> Option<f64> {
        let s = self.scan?;
        Some(s.done_at.map_or_else(|| s.of as f64 / 1e6 / self.scan_mb_s(), Time::as_secs_f64))
    }
}

/// Executes all runs, two at a time.
pub fn all(profile: &Profile, seed: u64) -> Result<Rows, Failure> {
    let bar = Bar::new(STEPS.iter().sum(), "a disk is read three times");
    let lab = Bench { profile, seed, bar: &bar };
    let politely = || -> Result<[Row; 3], Failure> {
        let bare = lab.alone("bare drive", Scheduling::Drive, STEPS[0])?;
        let idle = lab.reader("idle class".into(), Pace::BFQ, STEPS[1])?;
        Ok([bare, idle, lab.alone("headtime, no scan", Scheduling::Host(ORDER), STEPS[3])?])
    };
    // The limited reader gets the rate of gap filling, so it runs after it.
    let freely = || -> Result<[Row; 2], Failure> {
        let free = lab.free()?;
        let bytes_per_second = (free.scan_mb_s() * 1e6).round().max(1.0) as u64;
        let name = format!("limited, {:.1} MB/s", free.scan_mb_s());
        Ok([lab.reader(name, Pace::Rate { bytes_per_second }, STEPS[2])?, free])
    };
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(politely);
        let second = freely();
        (first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), second)
    });
    let ([bare, idle, alone], [limited, free]) = (first?, second?);
    Ok(Rows { bare, idle, limited, alone, free })
}

struct Bench<'a> {
    profile: &'a Profile,
    seed: u64,
    bar: &'a Bar,
}

impl Bench<'_> {
    fn setup(&self, scheduling: Scheduling) -> Setup<'_> {
        Setup { scheduling, ..Setup::new(self.profile, ORDER, self.seed) }
    }

    fn programs(&self, simulation: &Simulation) -> Result<Population, Failure> {
        Population::of(&oltp(), simulation.target(), self.seed).map_err(Failure::input)
    }

    fn watch(&self, steps: u64, of: Measure) -> (Window, Watch<'_>) {
        (Window::new(), Watch { bar: self.bar, steps, shown: 0, of, sectors: 0 })
    }

    fn alone(&self, name: &str, scheduling: Scheduling, steps: u64) -> Result<Row, Failure> {
        let simulation = Simulation::new(&self.setup(scheduling)).map_err(Failure::input)?;
        let mut programs = self.programs(&simulation)?;
        let limits = Limits { until: Some(Time::ZERO + UNSCANNED_RUN_TIME), ..Limits::default() };
        let mut watch = self.watch(steps, Measure::Time(UNSCANNED_RUN_TIME));
        let stats = simulation.run(&mut programs, limits, None, &mut watch).map_err(Failure::input)?;
        Ok(row(name.into(), &stats, None, watch))
    }

    fn reader(&self, name: String, pace: Pace, steps: u64) -> Result<Row, Failure> {
        let simulation = Simulation::new(&self.setup(Scheduling::Drive)).map_err(Failure::input)?;
        let spec = ReaderSpec { ends_run: true, ..ReaderSpec::new(pace) };
        let programs = self.programs(&simulation)?;
        let mut both = Beside::new(programs, simulation.target(), spec).map_err(Failure::input)?;
        let limits = Limits { until: Some(Time::ZERO + MAX_SCAN_TIME), ..Limits::default() };
        let mut watch = self.watch(steps, Measure::Sectors(simulation.target().capacity));
        let stats = simulation.run(&mut both, limits, None, &mut watch).map_err(Failure::input)?;
        let scan = Scan { bytes: both.bytes_read(), of: bytes(&simulation), done_at: both.read_at() };
        Ok(row(name, &stats, Some(scan), watch))
    }

    fn free(&self) -> Result<Row, Failure> {
        let fill = FillConfig { seed: self.seed, ..FillConfig::new(Algorithm::Headtime) };
        let simulation = Simulation::new(&self.setup(Scheduling::Host(ORDER)).filled(fill)).map_err(Failure::input)?;
        let mut programs = self.programs(&simulation)?;
        let capacity = simulation.target().capacity;
        let unit = scan_unit(capacity, simulation.target().sector_bytes);
        let mut scan = Jobs::scan(capacity, unit).promoting_last(capacity / PROMOTED_PART);
        let limits = Limits { until: Some(Time::ZERO + MAX_SCAN_TIME), until_scanned: true, ..Limits::default() };
        let mut watch = self.watch(STEPS[4], Measure::Sectors(capacity));
        let stats = simulation.run_with(&mut programs, &mut scan, limits, None, &mut watch).map_err(Failure::input)?;
        let p = &stats.background;
        let sector = u64::from(simulation.target().sector_bytes);
        let scan = Scan { bytes: p.sectors * sector, of: bytes(&simulation), done_at: p.done_at };
        Ok(row("headtime".into(), &stats, Some(scan), watch))
    }
}

fn bytes(simulation: &Simulation) -> u64 {
    simulation.target().capacity * u64::from(simulation.target().sector_bytes)
}

fn row(name: String, stats: &Stats, scan: Option<Scan>, (window, watch): (Window, Watch)) -> Row {
    watch.finish();
    // With a reader the programs are the first class; without one there are no classes.
    let responses = stats.classes.first().map_or_else(|| stats.responses(), |(_, h)| h.clone());
    Row { name, responses, ended_at: stats.ended_at, scan, window }
}

/// What a run's progress is measured by.
enum Measure {
    Time(Dur),
    Sectors(u64),
}

/// Moves the progress bar.
struct Watch<'a> {
    bar: &'a Bar,
    steps: u64,
    shown: u64,
    of: Measure,
    sectors: u64,
}

impl Watch<'_> {
    fn reach(&mut self, part: u64, whole: u64) {
        let at = (u128::from(self.steps) * u128::from(part) / u128::from(whole.max(1))) as u64;
        let at = at.min(self.steps);
        if at > self.shown {
            self.bar.advance(at - self.shown);
            self.shown = at;
        }
    }

    fn read(&mut self, sectors: u64) {
        self.sectors += sectors;
        if let Measure::Sectors(all) = self.of {
            self.reach(self.sectors, all);
        }
    }

    fn finish(mut self) {
        self.reach(1, 1);
    }
}

impl Observer for Watch<'_> {
    fn finished(&mut self, done: &Done) {
        if done.owner == READER {
            self.read(u64::from(done.count));
        } else if let Measure::Time(all) = self.of {
            self.reach(done.done.0, all.0);
        }
    }

    fn background(&mut self, event: &TaskEvent, _: Time) {
        if let TaskEvent::Delivered { range, .. } = event {
            self.read(range.count);
        }
    }
}
