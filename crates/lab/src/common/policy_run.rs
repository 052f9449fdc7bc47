//! Runs of the benchmark suite of Valente 2014 under one ADMIT policy: the basis of experiments B1
//! to B15.

use headtime_disk::profile::{self, FirmwareOrder, QueueSpec};
use headtime_disk::{Dur, Kind, Time};
use headtime_sched::{BfqRules, FillConfig, Order, Policy, Share};
use headtime_sim::background::{Background, Job, Jobs, Nothing};
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::stats::confidence::half_width;
use headtime_sim::workload::suite::files::{FILES, FileActor, Load};
use headtime_sim::workload::suite::startup::{Program, Starts};
use headtime_sim::workload::suite::{Account, Actor, Disk, Suite};

use crate::experiment::{Cell, Run, RunError, Spec, Table};

/// The first drive of the report's table 1.
pub(crate) const DRIVE_1: &str = "maxtor-6l080l0";
/// The second, the one with NCQ.
pub(crate) const DRIVE_2: &str = "maxtor-7l250s0";
/// The third.
pub(crate) const DRIVE_3: &str = "maxtor-stm332061";

/// Queue depth with NCQ.
const NCQ: u32 = 31;

/// Unit of the scan, sectors.
const SCAN_UNIT_SECTORS: u32 = 128;

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct PolicyRun {
    /// A built-in drive's name.
    pub drive: &'static str,
    /// The ADMIT policy.
    pub policy: Policy,
    /// Whether the drive reorders its queue.
    pub ncq: bool,
    /// Duration in virtual seconds.
    pub seconds: u64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Shares that differ from the default.
    pub shares: Vec<(u32, Share)>,
    /// Repeated scans of the whole disk in gaps and idle time.
    pub fill: Option<FillConfig>,
}

impl PolicyRun {
    /// Returns a run without NCQ and with equal shares.
    pub(crate) fn new(drive: &'static str, policy: Policy, seconds: u64, seed: u64) -> PolicyRun {
        PolicyRun { drive, policy, ncq: false, seconds, seed, shares: Vec::new(), fill: None }
    }

    /// Runs the actors that `actors` creates for the disk.
    pub(crate) fn run(
        &self,
        spec: &Spec,
        actors: impl FnOnce(&Disk) -> Vec<Box<dyn Actor>>,
    ) -> Result<(Suite, Stats), RunError> {
        self.watched(spec, actors, &mut ())
    }

    /// The same with an observer.
    pub(crate) fn watched(
        &self,
        spec: &Spec,
        actors: impl FnOnce(&Disk) -> Vec<Box<dyn Actor>>,
        observer: &mut impl Observer,
    ) -> Result<(Suite, Stats), RunError> {
        let failed = |reason: String| RunError { id: spec.id, reason };
        let mut profile = profile::builtin(self.drive).map_err(|e| failed(e.to_string()))?;
        let mut depth = None;
        if self.ncq {
            profile.electronics.queue = QueueSpec { depth: NCQ, order: FirmwareOrder::Sptf, ..QueueSpec::default() };
            depth = Some(NCQ);
        } else {
            profile.electronics.queue = QueueSpec::default();
        }
        // C-LOOK within an application, as in the report (section 3); NOOP keeps the order of
        // arrival.
        let order = if self.policy == Policy::None { Order::Fcfs } else { Order::Clook };
        let setup = Setup {
            admit: self.policy.clone(),
            depth,
            shares: self.shares.clone(),
            ..Setup::new(&profile, order, self.seed)
        };
        let setup = match &self.fill {
            Some(fill) => setup.filled(fill.clone()),
            None => setup,
        };
        let simulation = Simulation::new(&setup).map_err(|e| failed(e.to_string()))?;
        let target = simulation.target();
        let disk = Disk { capacity: target.capacity, sector_bytes: u64::from(target.sector_bytes) };
        let mut suite = Suite::new(target, actors(&disk));
        let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(self.seconds)), ..Limits::default() };
        let mut scan: Box<dyn Background> = match &self.fill {
            Some(_) => Box::new(Jobs::new(vec![Job { again: true, ..Job::scan(disk.capacity, SCAN_UNIT_SECTORS) }])),
            None => Box::new(Nothing),
        };
        let ran = simulation.run_with(&mut suite, &mut *scan, limits, None, observer);
        let stats = ran.map_err(|e| failed(e.to_string()))?;
        Ok((suite, stats))
    }

    /// Runs the load alone.
    pub(crate) fn load(&self, spec: &Spec, load: Load) -> Result<Suite, RunError> {
        Ok(self.run(spec, |disk| load.actors(disk, self.seed))?.0)
    }

    /// Starts of a program under the load, or on an idle disk: their durations, and the total bytes
    /// per second in the same time. The first start comes after ten seconds of load, when weight
    /// raising of the load has ended; each further one a second after the last.
    pub(crate) fn starts(
        &self,
        spec: &Spec,
        load: Option<Load>,
        program: Program,
        most: usize,
    ) -> Result<Started, RunError> {
        let mut who = 0;
        let (suite, stats) = self.run(spec, |disk| {
            let mut actors = load.map_or_else(Vec::new, |l| l.actors(disk, self.seed));
            who = actors.len();
            let first = Time::ZERO + Dur::from_secs(LEAD_S);
            actors.push(Box::new(Starts::new(disk, program, first, Dur::from_secs(1), most, self.seed)));
            actors
        })?;
        let Account { starts, unfinished, .. } = suite.account(who);
        let took: u64 = starts.iter().map(|d| d.0 + 1_000_000_000).sum();
        let to = (LEAD_S + took / 1_000_000_000).min(stats.ended_at.0 / 1_000_000_000) as usize;
        let rate = suite.rate(LEAD_S as usize, to.max(LEAD_S as usize + 1));
        Ok(Started { starts: starts.into_iter().chain(unfinished).map(|d| d.as_secs_f64()).collect(), rate })
    }
}

/// Seconds of load before the first start.
const LEAD_S: u64 = 10;

/// Results of program starts.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    /// Duration of each start, seconds. One that the end of the run cut off counts from its
    /// beginning to that end.
    pub starts: Vec<f64>,
    /// Total bytes per second during the starts.
    pub rate: f64,
}

impl Started {
    /// The mean duration; infinite without a start.
    pub(crate) fn mean(&self) -> f64 {
        match self.starts.len() {
            0 => f64::INFINITY,
            n => self.starts.iter().sum::<f64>() / n as f64,
        }
    }
}

/// The policies that the report compares, in its order.
pub(crate) fn compared() -> [Policy; 3] {
    [named("bfq+"), named("bfq"), named("cfq")]
}

/// A policy by its name.
pub(crate) fn named(name: &str) -> Policy {
    Policy::named(name).unwrap_or_else(|| panic!("{name} is a policy"))
}

/// Repeated runs with different seeds (the report: ten).
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    /// One value per run.
    pub values: Vec<f64>,
}

impl Runs {
    /// Ten runs, or three in a shortened one.
    pub(crate) fn of(run: &Run, mut one: impl FnMut(u64) -> Result<f64, RunError>) -> Result<Runs, RunError> {
        let seeds = (0..run.length(10, 3)).map(|i| run.seed * 100 + i);
        let values = seeds.map(&mut one).collect::<Result<_, _>>()?;
        run.progress.advance(1);
        Ok(Runs { values })
    }

    /// The mean.
    pub(crate) fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len().max(1) as f64
    }

    /// Minimum, mean, maximum, standard deviation, and half the width of the 95% interval of the
    /// mean: the statistics of the report's section 7.1.
    pub(crate) fn statistics(&self) -> [f64; 5] {
        let (n, mean) = (self.values.len() as f64, self.mean());
        let of = |f: fn(f64, f64) -> f64, from| self.values.iter().copied().fold(from, f);
        let squares: f64 = self.values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let deviation = if n > 1.0 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        [of(f64::min, f64::INFINITY), mean, of(f64::max, f64::NEG_INFINITY), deviation, half_width(&self.values)]
    }

    /// The same as the end of a table's row; the columns are [`STATISTICS`].
    pub(crate) fn row(&self, names: &[&str]) -> Vec<Cell> {
        names.iter().map(|n| Cell::from(*n)).chain(self.statistics().map(Cell::from)).collect()
    }
}

/// Columns of a table with two names and the statistics of runs.
pub(crate) const STATISTICS: &[&str] = &["load", "policy", "min", "mean", "max", "deviation", "half_of_95"];

/// Rows for a table, and means by policy and by load.
pub(crate) type RowsByLoad = (Vec<Vec<Cell>>, Vec<Vec<f64>>);

/// Runs under each policy and load: rows for a table ([`STATISTICS`]), with `what` next to the
/// policy, and the means, by policy and by load.
pub(crate) fn by_load(
    run: &Run,
    policies: &[Policy],
    what: &str,
    one: impl Fn(&Policy, Load, u64) -> Result<f64, RunError>,
) -> Result<RowsByLoad, RunError> {
    let (mut rows, mut means) = (Vec::new(), Vec::new());
    for policy in policies {
        let mut of_policy = Vec::new();
        for load in Load::ALL {
            let runs = Runs::of(run, |seed| one(policy, load, seed))?;
            rows.push(runs.row(&[load.name(), &format!("{}{what}", policy.name())]));
            of_policy.push(runs.mean());
        }
        means.push(of_policy);
    }
    Ok((rows, means))
}

/// Rate of the first ten files, each read alone, in MB/s: the media rate of the zones that the
/// loads read.
pub(crate) fn alone(run: &Run, spec: &Spec) -> Result<Runs, RunError> {
    Runs::of(run, |seed| {
        let mut sum = 0.0;
        for i in 0..10 {
            let reader = |disk: &_| -> Vec<Box<dyn Actor>> {
                vec![Box::new(FileActor::new(disk, Kind::Read, false, (i, FILES), seed))]
            };
            sum += PolicyRun::new(DRIVE_3, Policy::None, 6, seed).run(spec, reader)?.0.rate(1, 6) / 1e6;
        }
        Ok(sum / 10.0)
    })
}

/// Start-up times under each policy, in the order of [`compared`], and each load, in the order of
/// [`Load::ALL`].
#[derive(Clone, Debug)]
pub(crate) struct Startups {
    /// Seconds on an idle disk.
    pub idle: f64,
    /// Mean seconds.
    pub seconds: Vec<Vec<f64>>,
    /// Total MB/s during the starts, also of the variants ([`Startups::variant`]).
    pub rates: Vec<Vec<f64>>,
    /// Rows with the columns [`STATISTICS`], seconds.
    pub rows: Vec<Vec<Cell>>,
    variants: Vec<&'static str>,
}

/// BFQ+ as the report measured it, without the rules of later kernels (docs/admission.md), in
/// tables.
pub(crate) const PUBLISHED_NAME: &str = "bfq+, as the report measured it";
/// BFQ+ without H-low-latency, in tables.
pub(crate) const NOT_RAISED_NAME: &str = "bfq+, low_latency off";
/// Starts in a run.
const STARTS: u64 = 10;
/// Time limit of a run in seconds, whatever the number of starts: under some policies one start
/// takes minutes.
const MAX_RUN_S: u64 = 600;

/// Starts of a program, ten in each of ten runs, under every load and policy.
pub(crate) fn startups(run: &Run, spec: &Spec, program: Program) -> Result<Startups, RunError> {
    let most = run.length(STARTS, 4) as usize;
    let idle = Runs::of(run, |seed| {
        Ok(PolicyRun::new(DRIVE_3, Policy::None, MAX_RUN_S, seed).starts(spec, None, program, most)?.mean())
    })?;
    let rows = vec![idle.row(&["idle", "none"])];
    let mut s = Startups { idle: idle.mean(), seconds: vec![], rates: vec![], rows, variants: vec![] };
    for policy in compared() {
        let of = LoadedStarts::starts(run, spec, program, &policy, policy.name())?;
        s.seconds.push(of.seconds);
        s.rates.push(of.rates);
        s.rows.extend(of.rows);
    }
    Ok(s)
}

/// Starts under one policy, for each load.
#[derive(Clone, Debug)]
pub(crate) struct LoadedStarts {
    /// Mean seconds.
    pub seconds: Vec<f64>,
    /// Total MB/s during the starts.
    pub rates: Vec<f64>,
    rows: Vec<Vec<Cell>>,
}

impl LoadedStarts {
    /// Ten starts in each of ten runs; tables call the policy `name`.
    pub(crate) fn starts(
        run: &Run,
        spec: &Spec,
        program: Program,
        policy: &Policy,
        name: &str,
    ) -> Result<LoadedStarts, RunError> {
        let most = run.length(STARTS, 4) as usize;
        let mut s = LoadedStarts { seconds: vec![], rates: vec![], rows: vec![] };
        for load in Load::ALL {
            let mut rate = 0.0;
            let runs = Runs::of(run, |seed| {
                let bench = PolicyRun::new(DRIVE_3, policy.clone(), MAX_RUN_S, seed);
                let started = bench.starts(spec, Some(load), program, most)?;
                rate += started.rate / 1e6;
                Ok(started.mean())
            })?;
            s.rows.push(runs.row(&[load.name(), name]));
            s.seconds.push(runs.mean());
            s.rates.push(rate / runs.values.len() as f64);
        }
        Ok(s)
    }
}

impl Startups {
    /// Indices of BFQ+, BFQ and CFQ in [`compared`].
    pub(crate) const PLUS: usize = 0;
    /// See [`Startups::PLUS`].
    pub(crate) const BFQ: usize = 1;
    /// See [`Startups::PLUS`].
    pub(crate) const CFQ: usize = 2;

    /// The largest ratio over all loads of the start-up time under a policy to that under BFQ+.
    pub(crate) fn largest(&self, policy: usize) -> f64 {
        let pairs = self.seconds[policy].iter().zip(&self.seconds[Self::PLUS]);
        pairs.map(|(other, plus)| other / plus).fold(0.0, f64::max)
    }

    /// The largest ratio over all loads of the start-up time under BFQ+ to that on an idle disk.
    pub(crate) fn against_idle(&self) -> f64 {
        self.variant_against_idle(&self.seconds[Self::PLUS])
    }

    /// The largest of the loads' start-up times under a variant ([`Startups::variant`]) to that on
    /// an idle disk.
    pub(crate) fn variant_against_idle(&self, seconds: &[f64]) -> f64 {
        seconds.iter().map(|s| s / self.idle).fold(0.0, f64::max)
    }

    /// Adds a variant of BFQ+ to the tables, and returns its mean seconds for each load.
    pub(crate) fn variant(
        &mut self,
        run: &Run,
        spec: &Spec,
        program: Program,
        (name, rules): (&'static str, BfqRules),
    ) -> Result<Vec<f64>, RunError> {
        let of = LoadedStarts::starts(run, spec, program, &Policy::Bfq(rules), name)?;
        self.rows.extend(of.rows);
        self.rates.push(of.rates);
        self.variants.push(name);
        Ok(of.seconds)
    }

    /// Names of the policies and of the variants, in the order of [`Startups::rates`].
    pub(crate) fn names(&self) -> Vec<&'static str> {
        compared().iter().map(Policy::name).chain(self.variants.iter().copied()).collect()
    }

    /// Its tables.
    pub(crate) fn tables(&self) -> [Table; 2] {
        let rows = self.names().into_iter().zip(&self.rates).map(|(name, rates)| {
            std::iter::once(Cell::from(name)).chain(rates.iter().map(|r| Cell::from(*r))).collect()
        });
        let columns = &["policy", "10r_seq_mb_s", "10r_rand_mb_s", "5r5w_seq_mb_s", "5r5w_rand_mb_s"];
        [
            Table { name: "startup_seconds", columns: STATISTICS, rows: self.rows.clone() },
            Table { name: "throughput", columns, rows: rows.collect() },
        ]
    }
}
