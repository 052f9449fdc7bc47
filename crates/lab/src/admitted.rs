//! Runs of the benchmark suite (seed 003) under one of the policies of ADMIT: what experiments B1 to B15 are made of.

use headtime_disk::profile::{self, FirmwareOrder, QueueSpec};
use headtime_disk::time::{Dur, Time};
use headtime_sched::admit::{Policy, Share};
use headtime_sched::core::Order;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::suite::files::Load;
use headtime_sim::workload::suite::startup::{Program, Starts};
use headtime_sim::workload::suite::{Actor, Disk, Suite};

use crate::experiment::{RunError, Spec};

/// The first drive of the report's table 1.
pub(crate) const DRIVE_1: &str = "maxtor-6l080l0";
/// The second, the one with NCQ.
pub(crate) const DRIVE_2: &str = "maxtor-7l250s0";
/// The third.
pub(crate) const DRIVE_3: &str = "maxtor-stm332061";

/// Commands that NCQ takes.
const NCQ: u32 = 31;

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    /// A built-in drive's name.
    pub drive: &'static str,
    /// Who may go.
    pub policy: Policy,
    /// The drive orders commands itself.
    pub ncq: bool,
    /// Seconds of virtual time.
    pub seconds: u64,
    /// Seed of everything.
    pub seed: u64,
    /// Shares that are not the usual ones.
    pub shares: Vec<(u32, Share)>,
}

impl Bench {
    /// A run without NCQ, and with equal shares.
    pub(crate) fn new(drive: &'static str, policy: Policy, seconds: u64, seed: u64) -> Bench {
        Bench { drive, policy, ncq: false, seconds, seed, shares: Vec::new() }
    }

    /// Runs the actors that `actors` makes for the disk.
    pub(crate) fn run(
        &self,
        spec: &Spec,
        actors: impl FnOnce(&Disk) -> Vec<Box<dyn Actor>>,
    ) -> Result<(Suite, Stats), RunError> {
        let failed = |reason: String| RunError { id: spec.id, reason };
        let mut profile = profile::builtin(self.drive).map_err(|e| failed(e.to_string()))?;
        let mut depth = None;
        if self.ncq {
            profile.electronics.queue = QueueSpec { depth: NCQ, order: FirmwareOrder::Sptf };
            depth = Some(NCQ);
        }
        // Within an application C-LOOK, as in the report (section 3).
        let setup = Setup {
            admit: self.policy.clone(),
            depth,
            shares: self.shares.clone(),
            ..Setup::new(&profile, Order::Clook, self.seed)
        };
        let simulation = Simulation::new(&setup).map_err(|e| failed(e.to_string()))?;
        let target = simulation.target();
        let disk = Disk { capacity: target.capacity, sector_bytes: u64::from(target.sector_bytes) };
        let mut suite = Suite::new(target, actors(&disk));
        let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(self.seconds)), ..Limits::default() };
        let stats = simulation.run(&mut suite, limits, None, &mut ()).map_err(|e| failed(e.to_string()))?;
        Ok((suite, stats))
    }

    /// The load alone.
    pub(crate) fn load(&self, spec: &Spec, load: Load) -> Result<Suite, RunError> {
        Ok(self.run(spec, |disk| load.actors(disk, self.seed))?.0)
    }

    /// Starts of a program beside the load, or on an idle disk: how long each took, and bytes a second of all meanwhile. The
    /// first begins when the load has run for ten seconds and nothing of it is raised any more, each further one a second after the last.
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
            let first = Time::ZERO + Dur::from_secs(BEFORE);
            actors.push(Box::new(Starts::new(disk, program, first, Dur::from_secs(1), most, self.seed)));
            actors
        })?;
        let starts = suite.account(who).starts;
        let took: u64 = starts.iter().map(|d| d.0 + 1_000_000_000).sum();
        let to = (BEFORE + took / 1_000_000_000).min(stats.ended_at.0 / 1_000_000_000) as usize;
        let rate = suite.rate(BEFORE as usize, to.max(BEFORE as usize + 1));
        Ok(Started { starts: starts.iter().map(|d| d.as_secs_f64()).collect(), rate })
    }
}

/// Seconds of load before the first start.
const BEFORE: u64 = 10;

/// What came of starting a program.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    /// Seconds of each start that came to its end.
    pub starts: Vec<f64>,
    /// Bytes a second of everybody meanwhile.
    pub rate: f64,
}

impl Started {
    /// The mean of the starts; infinite when none came to its end.
    pub(crate) fn mean(&self) -> f64 {
        match self.starts.len() {
            0 => f64::INFINITY,
            n => self.starts.iter().sum::<f64>() / n as f64,
        }
    }
}

#[cfg(test)]
mod explore {
    use super::*;
    use headtime_sim::workload::suite::files::Load;

    const SPEC: Spec = Spec { id: "B", title: "", source: "", drive: "", workload: "", claims: &[], alone: false };

    #[test]
    #[ignore]
    fn explore() {
        for drive in [DRIVE_3] {
            for load in Load::ALL {
                for name in ["none", "cfq", "bfq", "bfq+"] {
                    let policy = Policy::named(name).unwrap();
                    let t = std::time::Instant::now();
                    let s = Bench::new(drive, policy.clone(), 60, 1).load(&SPEC, load).unwrap();
                    let short: Vec<String> = (0..6).map(|i| format!("{:.0}", s.second(i) as f64 / 1e6)).collect();
                    let each: Vec<u64> = (0..10).map(|i| s.seconds(i).iter().sum::<u64>() / 1_000_000).collect();
                    println!(
                        "{drive} {} {name}: {:.1} MB/s; first {} each {each:?} ({:?})",
                        load.name(),
                        s.rate(20, 60) / 1e6,
                        short.join(" "),
                        t.elapsed()
                    );
                }
            }
        }
    }

    #[test]
    #[ignore]
    fn starts() {
        for (what, program) in [("bash", Program::BASH), ("konsole", Program::KONSOLE)] {
            let idle = Bench::new(DRIVE_3, Policy::None, 60, 1).starts(&SPEC, None, program, 5).unwrap();
            println!("{what} idle {:.2}", idle.mean());
            for load in Load::ALL {
                for name in ["cfq", "bfq", "bfq+"] {
                    let policy = Policy::named(name).unwrap();
                    let s = Bench::new(DRIVE_3, policy, 200, 1).starts(&SPEC, Some(load), program, 5).unwrap();
                    println!("{what} {} {name}: {:.2} {:?} {:.1} MB/s", load.name(), s.mean(), s.starts, s.rate / 1e6);
                }
            }
        }
    }
}
