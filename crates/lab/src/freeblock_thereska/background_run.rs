//! One run of any load with any background work, on a drive that may differ from the scheduler's
//! model: the basis of the experiments on idle time, caches and sessions.

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Fault, Time};
use headtime_sched::{Algorithm, FillConfig, Order};
use headtime_sim::background::{Background, Nothing};
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::{GroupSpec, Population, Target, Workload};

use crate::experiment::{RunError, Spec, failed};

/// The drive of Thereska 2003.
pub(crate) const DRIVE: &str = "cheetah36es";
/// Its blksize: 32 KiB, in sectors.
pub(crate) const UNIT: u32 = 64;

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct BackgroundRun {
    /// The drive.
    pub profile: Profile,
    /// The scheduler's profile; `None`: the true one.
    pub belief: Option<Profile>,
    /// FILL's configuration; `None`: no background work.
    pub fill: Option<FillConfig>,
    /// Limits of the run.
    pub limits: Limits,
    /// Seed of load, noise and lottery.
    pub seed: u64,
    /// Faults of the drive, with their times.
    pub faults: Vec<Fault>,
}

impl BackgroundRun {
    /// The drive of Thereska 2003 with its default algorithm and adaptive conservatism.
    pub(crate) fn new(spec: &Spec, seed: u64) -> Result<BackgroundRun, RunError> {
        let profile = profile::builtin(DRIVE).map_err(|e| failed(spec, e))?;
        let fill = Some(FillConfig { seed, ..FillConfig::new(Algorithm::AngleEpFrag) });
        Ok(BackgroundRun { profile, belief: None, fill, limits: Limits::default(), seed, faults: Vec::new() })
    }

    /// The same without background work.
    pub(crate) fn alone(&self) -> BackgroundRun {
        BackgroundRun { fill: None, ..self.clone() }
    }

    /// The same for the given number of virtual seconds.
    pub(crate) fn seconds(mut self, seconds: u64) -> BackgroundRun {
        self.limits.until = Some(Time::ZERO + Dur::from_secs(seconds));
        self
    }

    fn simulation(&self, spec: &Spec) -> Result<Simulation, RunError> {
        let mut setup = Setup { belief: self.belief.as_ref(), ..Setup::new(&self.profile, Order::Sptf, self.seed) };
        setup.drive.faults.clone_from(&self.faults);
        if let Some(fill) = &self.fill {
            setup = setup.filled(fill.clone());
        }
        Simulation::new(&setup).map_err(|e| failed(spec, e))
    }

    /// The disk as loads need to know it.
    pub(crate) fn target(&self, spec: &Spec) -> Result<Target, RunError> {
        Ok(self.simulation(spec)?.target().clone())
    }

    /// Runs it with a load of one group.
    pub(crate) fn run<O: Observer>(
        &self,
        spec: &Spec,
        load: &GroupSpec,
        background: &mut dyn Background,
        watch: &mut O,
    ) -> Result<Stats, RunError> {
        let target = self.target(spec)?;
        let mut load = Population::of(load, &target, self.seed).map_err(|e| failed(spec, e))?;
        self.run_load(spec, &mut load, background, watch)
    }

    /// Runs it with any load.
    pub(crate) fn run_load<O: Observer>(
        &self,
        spec: &Spec,
        load: &mut dyn Workload,
        background: &mut dyn Background,
        watch: &mut O,
    ) -> Result<Stats, RunError> {
        let mut nothing = Nothing;
        let background = if self.fill.is_some() { background } else { &mut nothing };
        self.simulation(spec)?.run_with(load, background, self.limits, None, watch).map_err(|e| failed(spec, e))
    }
}
