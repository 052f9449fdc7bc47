//! One run with background work and an endless foreground.

use headtime_disk::profile::{self, BusSpec, Overheads, Profile};
use headtime_disk::{DriveNoise, Dur, Time};
use headtime_sched::{Algorithm, Conservatism, FillConfig, Order, Placement};
use headtime_sim::background::Jobs;
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::{GroupSpec, Population};

use crate::experiment::{RunError, Spec, failed};

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct ScanRun {
    /// The drive.
    pub profile: Profile,
    /// The scheduler's profile; `None`: the true one.
    pub belief: Option<Profile>,
    /// The order.
    pub order: Order,
    /// What fills gaps; `None`: nothing.
    pub fill: Option<FillConfig>,
    /// The foreground.
    pub load: GroupSpec,
    /// Limits of the run.
    pub limits: Limits,
    /// Seed of load, noise and lottery.
    pub seed: u64,
    /// The drive's noise, where nothing else determines it.
    pub noise: DriveNoise,
    /// How the drive behaves towards the scheduler; `None`: by the placement of FILL.
    pub towards: Option<DriveBehaviour>,
}

/// The behaviour of a drive towards a scheduler, whatever placement FILL's rules assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DriveBehaviour {
    /// Its noise.
    pub noise: DriveNoise,
    /// It has none of a drive's autonomous behaviour towards a host.
    pub inside: bool,
    /// Its electronics and its bus take no time, and neither does the scheduler: nothing is left of
    /// what a host has to allow for.
    pub at_once: bool,
}

impl ScanRun {
    /// A built-in drive under a load, without filling.
    pub(crate) fn new(spec: &Spec, drive: &str, order: Order, load: GroupSpec, seed: u64) -> Result<ScanRun, RunError> {
        let profile = profile::builtin(drive).map_err(|e| failed(spec, e))?;
        let noise = DriveNoise::Profile;
        Ok(ScanRun {
            profile,
            belief: None,
            order,
            fill: None,
            load,
            limits: Limits::default(),
            seed,
            noise,
            towards: None,
        })
    }

    /// The same with gaps filled.
    pub(crate) fn with(mut self, algorithm: Algorithm, placement: Placement, conservatism: Conservatism) -> ScanRun {
        self.fill = Some(FillConfig { placement, conservatism, seed: self.seed, ..FillConfig::new(algorithm) });
        self
    }

    /// The same for the given number of virtual seconds.
    pub(crate) fn seconds(mut self, seconds: u64) -> ScanRun {
        self.limits.until = Some(Time::ZERO + Dur::from_secs(seconds));
        self
    }

    /// The same until the background is complete, or for the given number of virtual seconds.
    pub(crate) fn until_scanned(mut self, most_seconds: u64) -> ScanRun {
        self.limits.until_scanned = true;
        self.seconds(most_seconds)
    }

    /// Capacity of the drive in sectors.
    pub(crate) fn capacity(&self, spec: &Spec) -> Result<u64, RunError> {
        Ok(self.simulation(spec)?.target().capacity)
    }

    /// The simulation of this run.
    pub(crate) fn simulation(&self, spec: &Spec) -> Result<Simulation, RunError> {
        let mut profile = self.profile.clone();
        let mut fill = self.fill.clone();
        if self.towards.is_some_and(|towards| towards.at_once) {
            (profile.electronics.overheads, profile.electronics.bus) = (Overheads::default(), BusSpec::default());
            fill = fill.map(|fill| FillConfig { search_time: Dur::ZERO, ..fill });
        }
        let mut setup = Setup { belief: self.belief.as_ref(), ..Setup::new(&profile, self.order, self.seed) };
        setup.drive.noise = self.noise;
        if let Some(fill) = fill {
            setup = setup.filled(fill);
        }
        if let Some(towards) = self.towards {
            setup.drive.noise = towards.noise;
            setup.drive.inside = towards.inside;
        }
        Simulation::new(&setup).map_err(|e| failed(spec, e))
    }

    /// Runs it with one scan of the whole disk in the background, in units of `unit` sectors.
    pub(crate) fn scan<O: Observer>(&self, spec: &Spec, unit: u32, watch: &mut O) -> Result<(Stats, Jobs), RunError> {
        let jobs = Jobs::scan(self.capacity(spec)?, unit);
        self.run(spec, jobs, watch)
    }

    /// Runs it with these background jobs and an observer.
    pub(crate) fn run<O: Observer>(
        &self,
        spec: &Spec,
        mut jobs: Jobs,
        watch: &mut O,
    ) -> Result<(Stats, Jobs), RunError> {
        let simulation = self.simulation(spec)?;
        let mut load = Population::of(&self.load, simulation.target(), self.seed).map_err(|e| failed(spec, e))?;
        let stats = match self.fill {
            Some(_) => simulation.run_with(&mut load, &mut jobs, self.limits, None, watch),
            None => simulation.run(&mut load, self.limits, None, watch),
        };
        Ok((stats.map_err(|e| failed(spec, e))?, jobs))
    }
}

/// 99th percentile of the foreground's responses, ms; NaN if there was no request.
pub(crate) fn p99_ms(stats: &Stats) -> f64 {
    stats.responses().quantile(990).map_or(f64::NAN, Dur::as_ms_f64)
}

/// Free megabytes (10^6) per second of the background: without blocks that foreground requests read
/// anyway or that were sent as foreground requests.
pub(crate) fn free_mb_s(stats: &Stats, sector_bytes: u32) -> f64 {
    let paid = stats.freeblock.as_ref().map_or(0, |r| r.by_foreground);
    mb_s(stats, stats.background.sectors.saturating_sub(paid), sector_bytes)
}

/// Megabytes (10^6) per second of background progress, from any source.
pub(crate) fn progress_mb_s(stats: &Stats, sector_bytes: u32) -> f64 {
    mb_s(stats, stats.background.sectors, sector_bytes)
}

fn mb_s(stats: &Stats, sectors: u64, sector_bytes: u32) -> f64 {
    let seconds = stats.ended_at.as_secs_f64();
    if seconds > 0.0 { sectors as f64 * f64::from(sector_bytes) / 1e6 / seconds } else { 0.0 }
}
