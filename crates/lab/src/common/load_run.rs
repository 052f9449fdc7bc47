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
    /// As `Outside`, without correction of the predictions by completions: the mechanism that
    /// claims on predictions rest on, switched off.
    #[cfg(test)]
    WithoutResync(Order),
    /// The drive, with this queue, filled with as many requests as fit.
    Drive(QueueSpec),
}

impl Choice {
    /// Returns whether completions correct the scheduler's predictions.
    fn resyncs(self) -> bool {
        match self {
            #[cfg(test)]
            Choice::WithoutResync(_) => false,
            _ => true,
        }
    }
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
        #[cfg(test)]
        Choice::WithoutResync(order) => Scheduling::Host(order),
        Choice::Drive(queue) => {
            profile.electronics.queue = queue;
            Scheduling::Drive
        }
    };
    // Load and noise have separate generators, so one seed serves both.
    let depth = matches!(setup.choice, Choice::OneByOne(_)).then_some(1);
    let resyncs = setup.choice.resyncs();
    let how = simulate::Setup { scheduling, depth, resyncs, ..simulate::Setup::new(&profile, Order::Fcfs, setup.seed) };
    let simulation = Simulation::new(&how).map_err(text)?;
    let mut load = Population::of(&setup.load, simulation.target(), setup.seed).map_err(text)?;
    let limits = Limits { requests: Some(setup.requests), ..Limits::default() };
    simulation.run(&mut load, limits, None, &mut ()).map_err(text)
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::FirmwareOrder;
    use headtime_sim::workload::{local_4k, random_4k, random_40k};

    use super::*;

    fn stats(load: GroupSpec, requests: u64, choice: Choice) -> Stats {
        run(&Setup { drive: "atlas10k", load, seed: 1, requests, choice }).unwrap()
    }

    /// F2a, F3 and F4 with and without resync.
    #[test]
    fn no_claim_on_predicted_head_times_holds_without_resync() {
        let [with, without] = [Choice::Outside, Choice::WithoutResync].map(|choice| {
            let of = |load| stats(load, 10_000, choice(Order::Fcfs)).prediction;
            let (everywhere, long, near) = (of(random_4k(2)), of(random_40k(2)), of(local_4k(2)));
            let share = |part: u64, of: u64| 100.0 * part as f64 / of as f64;
            let [f2a, near] = [everywhere, near].map(|p| share(p.within_50us, p.samples));
            [f2a, share(long.within_150us, long.samples), (f2a - near).abs()]
        });
        println!("F2a, F3, F4: {with:.1?}; without resync {without:.1?}");
        let holds = |[f2a, f3, f4]: [f64; 3]| [f2a >= 97.5, f3 >= 75.0, f4 <= 1.0];
        assert_eq!((holds(with), holds(without)), ([true; 3], [false; 3]), "{with:?} {without:?}");
    }

    /// F6a: the external SPTF within 2% of the drive's own.
    #[test]
    fn sptf_outside_is_not_the_drives_own_without_resync() {
        let of = |choice| stats(closed(10), 10_000, choice).per_second();
        let drive = of(Choice::Drive(QueueSpec { depth: 10, order: FirmwareOrder::Sptf, ..QueueSpec::default() }));
        let [with, without] =
            [Choice::Outside, Choice::WithoutResync].map(|c| 100.0 * (1.0 - of(c(Order::Sptf)) / drive));
        println!("F6a: {with:.2}% below the drive's own, without resync {without:.2}%");
        assert!(with.abs() <= 2.0 && without > 2.0, "{with:.2}% below the drive's own, without resync {without:.2}%");
    }
}
