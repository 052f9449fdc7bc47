//! One run of a load on a built-in drive: the basis of every experiment.

use headtime_disk::profile::{self, QueueSpec};
use headtime_sched::Order;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{self, Scheduling, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::{GroupSpec, PatternSpec, Population, closed};

use crate::experiment::{RunError, Spec};

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// A built-in drive's name.
    pub drive: &'static str,
    /// The load.
    pub load: GroupSpec,
    /// Seed of load and noise.
    pub seed: u64,
    /// Requests to finish.
    pub requests: u64,
    /// The scheduler.
    pub choice: Choice,
}

/// Which side selects the next request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    /// The scheduler, with two commands at the drive.
    Outside(Order),
    /// The scheduler, with one command at the drive: the next is dispatched when the host has
    /// noticed the completion.
    OneByOne(Order),
    /// The drive, with this queue, filled with as many requests as fit.
    Drive(QueueSpec),
}

/// Random reads of `bytes` over the whole drive, with `tasks` always outstanding.
pub(crate) fn random_reads(bytes: u64, tasks: u32) -> GroupSpec {
    GroupSpec { pattern: PatternSpec::random_reads(bytes), ..closed(tasks) }
}

/// Runs one setup.
pub(crate) fn measure(spec: &Spec, setup: &Setup) -> Result<Stats, RunError> {
    run(setup).map_err(|reason| RunError { id: spec.id, reason })
}

fn run(setup: &Setup) -> Result<Stats, String> {
    let mut profile = profile::builtin(setup.drive).map_err(text)?;
    let scheduling = match setup.choice {
        Choice::Outside(order) | Choice::OneByOne(order) => Scheduling::Host(order),
        Choice::Drive(queue) => {
            profile.electronics.queue = queue;
            Scheduling::Drive
        }
    };
    // Load and noise have separate generators, so one seed serves both.
    let depth = matches!(setup.choice, Choice::OneByOne(_)).then_some(1);
    let how = simulate::Setup { scheduling, depth, ..simulate::Setup::new(&profile, Order::Fcfs, setup.seed) };
    let simulation = Simulation::new(&how).map_err(text)?;
    let mut load = Population::of(&setup.load, simulation.target(), setup.seed).map_err(text)?;
    let limits = Limits { requests: Some(setup.requests), ..Limits::default() };
    simulation.run(&mut load, limits, None, &mut ()).map_err(text)
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}
