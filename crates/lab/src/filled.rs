//! One run with background work beside a foreground that never ends.

use headtime_disk::profile::{self, Profile};
use headtime_disk::time::{Dur, Time};
use headtime_sched::core::Order;
use headtime_sched::fill::Algorithm;
use headtime_sched::fill::placement::Placement;
use headtime_sched::fill::subsystem::{Conservatism, FillConfig};
use headtime_sim::background::Jobs;
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::{GroupSpec, Population};

use crate::experiment::{RunError, Spec};

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Filled {
    /// The drive.
    pub profile: Profile,
    /// What the scheduler believes it to be; `None`: the truth.
    pub belief: Option<Profile>,
    /// Who goes next.
    pub order: Order,
    /// What fills gaps; `None`: nothing does.
    pub fill: Option<FillConfig>,
    /// The foreground.
    pub load: GroupSpec,
    /// Until when.
    pub limits: Limits,
    /// Seed of load, noise and lottery.
    pub seed: u64,
    /// What the drive is like towards the scheduler; `None`: as the placement of FILL says.
    pub towards: Option<Towards>,
}

/// What a drive is like towards a scheduler, wherever FILL's rules believe it to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Towards {
    /// Everything comes as predicted.
    pub noiseless: bool,
    /// It has none of the habits that a drive has towards a host.
    pub inside: bool,
}

impl Filled {
    /// A built-in drive under a load, gaps not filled.
    pub(crate) fn new(spec: &Spec, drive: &str, order: Order, load: GroupSpec, seed: u64) -> Result<Filled, RunError> {
        let profile = profile::builtin(drive).map_err(|e| failed(spec, e))?;
        Ok(Filled { profile, belief: None, order, fill: None, load, limits: Limits::default(), seed, towards: None })
    }

    /// The same with gaps filled.
    pub(crate) fn with(mut self, algorithm: Algorithm, placement: Placement, conservatism: Conservatism) -> Filled {
        self.fill = Some(FillConfig { placement, conservatism, seed: self.seed, ..FillConfig::new(algorithm) });
        self
    }

    /// The same for so many virtual seconds.
    pub(crate) fn seconds(mut self, seconds: u64) -> Filled {
        self.limits.until = Some(Time::ZERO + Dur::from_secs(seconds));
        self
    }

    /// The same until the background has all it wants, or for so many virtual seconds.
    pub(crate) fn until_scanned(mut self, most_seconds: u64) -> Filled {
        self.limits.until_scanned = true;
        self.seconds(most_seconds)
    }

    /// Sectors of the drive.
    pub(crate) fn capacity(&self, spec: &Spec) -> Result<u64, RunError> {
        Ok(self.simulation(spec)?.target().capacity)
    }

    /// What would be run.
    pub(crate) fn simulation(&self, spec: &Spec) -> Result<Simulation, RunError> {
        let mut setup = Setup { belief: self.belief.as_ref(), ..Setup::new(&self.profile, self.order, self.seed) };
        if let Some(fill) = &self.fill {
            setup = setup.filled(fill.clone());
        }
        if let Some(towards) = self.towards {
            setup.drive.noiseless = towards.noiseless;
            setup.drive.inside = towards.inside;
        }
        Simulation::new(&setup).map_err(|e| failed(spec, e))
    }

    /// Runs it with one scan of the whole disk in units of so many sectors in the background.
    pub(crate) fn scan<O: Observer>(&self, spec: &Spec, unit: u32, watch: &mut O) -> Result<(Stats, Jobs), RunError> {
        let jobs = Jobs::scan(self.capacity(spec)?, unit);
        self.run(spec, jobs, watch)
    }

    /// Runs it with these jobs in the background, watched.
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

/// An experiment that could not be done.
pub(crate) fn failed(spec: &Spec, reason: impl std::fmt::Display) -> RunError {
    RunError { id: spec.id, reason: reason.to_string() }
}

/// Megabytes (10^6) per second that the background got for free: without what came with requests of
/// the foreground that read wanted blocks, or was sent as one of them.
pub(crate) fn free_mb_s(stats: &Stats, sector_bytes: u32) -> f64 {
    let paid = stats.freeblock.as_ref().map_or(0, |r| r.by_foreground);
    mb_s(stats, stats.background.sectors.saturating_sub(paid), sector_bytes)
}

/// Megabytes (10^6) per second by which the background came nearer to its end, however it got them.
pub(crate) fn progress_mb_s(stats: &Stats, sector_bytes: u32) -> f64 {
    mb_s(stats, stats.background.sectors, sector_bytes)
}

fn mb_s(stats: &Stats, sectors: u64, sector_bytes: u32) -> f64 {
    let seconds = stats.ended_at.as_secs_f64();
    if seconds > 0.0 { sectors as f64 * f64::from(sector_bytes) / 1e6 / seconds } else { 0.0 }
}
