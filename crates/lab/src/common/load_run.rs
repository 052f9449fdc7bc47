//! One run of a load on a built-in drive: the basis of every experiment.

use headtime_disk::DriveNoise;
use headtime_disk::profile::{self, QueueSpec};
use headtime_sched::Order;
use headtime_sim::observe::Observer;
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
    /// The drive's noise.
    pub noise: DriveNoise,
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
    watched(spec, setup, &mut ())
}

/// Runs one setup with an observer.
pub(crate) fn watched<O: Observer>(spec: &Spec, setup: &Setup, watch: &mut O) -> Result<Stats, RunError> {
    run(setup, watch).map_err(|reason| RunError { id: spec.id, reason })
}

fn run<O: Observer>(setup: &Setup, watch: &mut O) -> Result<Stats, String> {
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
    let mut how =
        simulate::Setup { scheduling, depth, resyncs, ..simulate::Setup::new(&profile, Order::Fcfs, setup.seed) };
    how.drive.noise = setup.noise;
    let simulation = Simulation::new(&how).map_err(text)?;
    let mut load = Population::of(&setup.load, simulation.target(), setup.seed).map_err(text)?;
    let limits = Limits { requests: Some(setup.requests), ..Limits::default() };
    simulation.run(&mut load, limits, None, watch).map_err(text)
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::FirmwareOrder;
    use headtime_sim::workload::{local_4k, random_4k, random_40k};

    use super::*;

    const BOTH: [DriveNoise; 2] = [DriveNoise::Profile, DriveNoise::Measured];

    fn stats(load: GroupSpec, requests: u64, choice: Choice, noise: DriveNoise) -> Stats {
        run(&Setup { drive: "atlas10k", load, seed: 1, requests, choice, noise }, &mut ()).unwrap()
    }

    /// F2a, F3 and F4 with and without resync, on a drive that errs, too (where F2a's share is not
    /// a rule).
    #[test]
    fn no_claim_on_predicted_head_times_holds_without_resync() {
        for noise in BOTH {
            let [with, without] = [Choice::Outside, Choice::WithoutResync].map(|choice| {
                let of = |load| stats(load, 10_000, choice(Order::Fcfs), noise).prediction;
                let (everywhere, long, near) = (of(random_4k(2)), of(random_40k(2)), of(local_4k(2)));
                let share = |part: u64, of: u64| 100.0 * part as f64 / of as f64;
                let [f2a, near] = [everywhere, near].map(|p| share(p.within_50us, p.samples));
                [f2a, share(long.within_150us, long.samples), (f2a - near).abs()]
            });
            println!("{noise:?}: F2a, F3, F4: {with:.1?}; without resync {without:.1?}");
            let clean = noise == DriveNoise::Profile;
            // Of 10,000 requests with 88% predicted, two such shares differ by 0.9 at two
            // deviations.
            let apart = if clean { 1.0 } else { 1.9 };
            let holds = |[f2a, f3, f4]: [f64; 3]| [!clean || f2a >= 97.5, f3 >= 75.0, f4 <= apart];
            let fails = [!clean, false, false];
            assert_eq!((holds(with), holds(without)), ([true; 3], fails), "{noise:?}: {with:?} {without:?}");
        }
    }

    /// F6a: the external SPTF within 2% of the drive's own.
    #[test]
    fn sptf_outside_is_not_the_drives_own_without_resync() {
        for noise in BOTH {
            let of = |choice| stats(closed(10), 10_000, choice, noise).per_second();
            let drive = of(Choice::Drive(QueueSpec { depth: 10, order: FirmwareOrder::Sptf, ..QueueSpec::default() }));
            let [with, without] =
                [Choice::Outside, Choice::WithoutResync].map(|c| 100.0 * (1.0 - of(c(Order::Sptf)) / drive));
            println!("F6a: {with:.2}% below the drive's own, without resync {without:.2}%");
            assert!(with.abs() <= 2.0 && without > 2.0, "{with:.2}% below the drive's own, without {without:.2}%");
        }
    }
}
