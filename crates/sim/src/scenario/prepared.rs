//! A scenario made ready to run: drive, scheduler, workload and background work.

use std::fmt;

use headtime_disk::profile::{Bounds, Profile};
use headtime_sched::{Choose, Order, Placement, Policy};

use super::{DEFAULT_DISK, Scenario};
use crate::background::Background;
use crate::observe::Observer;
use crate::promises::{Drive, PromiseError, Promised, Stated};
use crate::result::{About, SimResult};
use crate::run::{Limits, WallClock};
use crate::simulate::{DEPTH, Scheduling, Setup, SimError, Simulation};
use crate::stats::Stats;
use crate::workload::{Workload, WorkloadError};

/// Duration of a workload without end if the scenario has no limit, virtual seconds.
const SECONDS: f64 = 60.0;

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// A setting is wrong, or a trace cannot be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The drive gives no such guarantees.
    #[error(transparent)]
    Promise(#[from] PromiseError),
    /// Bounds are stated, but nothing depends on them.
    #[error("--assume: expected admit das beside it, found a run without promises")]
    NothingPromised,
    /// An order of the caller's is to run a scenario with more than an order.
    #[error(
        "order: a function has no admission policy, background work, write cache and streams beside it, and does not \
         leave the order to the drive; found a scenario with one of these"
    )]
    OwnOrder,
    /// The run failed.
    #[error(transparent)]
    Run(#[from] SimError),
    /// The drive cannot be built, or takes other depths.
    #[error("{message}")]
    Drive {
        /// What is wrong, with file and line if it is from a file.
        message: String,
    },
}

/// A scenario on a drive, ready to run once.
pub struct Prepared {
    seed: u64,
    profile: Profile,
    simulation: Simulation,
    workload: Box<dyn Workload>,
    background: Box<dyn Background>,
    limits: Limits,
    promised: Option<Promised>,
    /// Nothing but an order decides what is dispatched.
    orders_alone: bool,
}

/// What a run left.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The figures of `simulate --json`.
    pub result: SimResult,
    /// The statistics that they are computed from.
    pub stats: Stats,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("disk", &self.profile.name).field("seed", &self.seed).finish_non_exhaustive()
    }
}

impl Prepared {
    /// Prepares a scenario on the drive of `profile`, which the scenario's disk names. `assumed`
    /// are bounds of figures that the profile does not have, for guarantees.
    ///
    /// # Errors
    /// As [`PrepareError`] says; those of a scenario's file have its line.
    pub fn new(scenario: &Scenario, mut profile: Profile, assumed: Option<&Bounds>) -> Result<Prepared, PrepareError> {
        scenario.check()?;
        let seed = scenario.seed.unwrap_or(1);
        let (scheduling, admit) = (scenario.scheduling()?, scenario.policy()?);
        let promised = promised(scenario, &mut profile, assumed)?;
        let guarantees = promised.as_ref().map(|p| p.config.clone());
        let mut setup =
            Setup { scheduling, admit, guarantees, depth: scenario.depth, ..Setup::new(&profile, Order::Fcfs, seed) };
        if let Some(fill) = scenario.fill(seed)? {
            setup = setup.filled(fill);
        } else {
            // Gap filling inside the drive is compared with the same drive without filling.
            setup.drive.inside |= scenario.placement()? != Placement::Host;
        }
        setup.drive.noise = scenario.noise()?;
        setup.write_cache = scenario.write_cache()?;
        let orders_alone = matches!(scheduling, Scheduling::Host(_))
            && setup.admit == Policy::None
            && setup.guarantees.is_none()
            && setup.fill.is_none()
            && setup.write_cache.is_none()
            && scenario.streams()?.is_empty();
        let simulation = Simulation::new(&setup).map_err(|e| {
            let key = if matches!(e, SimError::Model { .. }) { "disk" } else { "depth" };
            PrepareError::Drive { message: scenario.fault_at(key, e) }
        })?;
        let workload = scenario.workload(simulation.target(), seed)?;
        let background = scenario.background(simulation.target())?;
        let mut limits = scenario.limits()?;
        if workload.endless() && limits == Limits::default() {
            limits = Scenario { seconds: Some(SECONDS), ..Scenario::default() }.limits()?;
        }
        Ok(Prepared { seed, profile, simulation, workload, background, limits, promised, orders_alone })
    }

    /// Returns the drive's profile, with service times that were measured for guarantees.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the simulation.
    pub fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    /// Returns when the run ends.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the guarantees to streams; `None` without guarantees.
    pub fn promised(&self) -> Option<&Promised> {
        self.promised.as_ref()
    }

    /// Runs the scenario. `clock` counts nanoseconds of wall-clock time, for the cost of decisions.
    ///
    /// # Errors
    /// The workload or the drive fails.
    pub fn run<O: Observer>(mut self, clock: Option<WallClock>, observer: &mut O) -> Result<Outcome, SimError> {
        let began = clock.map(|now| now());
        let stats =
            self.simulation.run_with(&mut *self.workload, &mut *self.background, self.limits, clock, observer)?;
        let wall_seconds = clock.zip(began).map(|(now, began)| (now() - began) as f64 / 1e9);
        Ok(self.outcome(stats, wall_seconds))
    }

    /// Runs the scenario with an order of the caller's in place of its scheduler.
    ///
    /// # Errors
    /// As [`Prepared::run`]; or the scenario has what such an order does without: an admission
    /// policy, background work, a write cache, the drive's own order.
    pub fn run_choosing<C: Choose, O: Observer>(
        mut self,
        choose: C,
        observer: &mut O,
    ) -> Result<Outcome, PrepareError> {
        if !self.orders_alone {
            return Err(PrepareError::OwnOrder);
        }
        let stats = self.simulation.run_choosing(choose, &mut *self.workload, self.limits, observer)?;
        Ok(self.outcome(stats, None))
    }

    fn outcome(&self, stats: Stats, wall_seconds: Option<f64>) -> Outcome {
        let about = About {
            disk: self.profile.name.clone(),
            seed: self.seed,
            sector_bytes: self.profile.sector_bytes,
            wall_seconds,
            depth: self.simulation.depth(),
            model_bytes: self.simulation.model_bytes(),
            media_bytes_per_second: self.simulation.media_bytes_per_second(),
        };
        let mut result = SimResult::new(&about, &stats);
        let measures = self.workload.measures();
        result.foreground.measures = measures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Outcome { result, stats }
    }
}

/// Sets up the guarantees of streams, if the policy gives any.
fn promised(
    scenario: &Scenario,
    profile: &mut Profile,
    assumed: Option<&Bounds>,
) -> Result<Option<Promised>, PrepareError> {
    let Some(exhausted) = scenario.guarantees()? else {
        return if assumed.is_some() { Err(PrepareError::NothingPromised) } else { Ok(None) };
    };
    let streams = scenario.streams()?;
    let sizes: Vec<u64> = streams.iter().map(|s| s.pattern.size.longest_bytes()).collect();
    let outstanding = scenario.depth.unwrap_or(DEPTH).min(profile.electronics.queue.depth);
    let mandatory = streams.iter().find(|s| s.quality.is_mandatory()).map(|s| format!("the stream {}", s.name));
    let name = scenario.disk.as_deref().unwrap_or(DEFAULT_DISK);
    let drive = Drive::simulated(name, outstanding, Stated::on_command_line(assumed));
    Ok(Some(drive.setup(profile, &sizes, exhausted, mandatory.as_deref())?))
}
