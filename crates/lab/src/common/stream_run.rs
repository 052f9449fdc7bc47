//! Runs of streams with best effort (Reuther 2003): the basis of experiments D3a and D8 to D10.
//!
//! Section 4.4 of the paper does not state the number of pending best-effort requests. It is taken
//! to be that of the measurement of the profiles' X ([`service::WAITING`] gives the reason),
//! because X is to be measured under the expected load (section 3.1.2). If the paper states another
//! number, the 100 of section 4.2, X is measured with that.
//!
//! The paper's KByte are 1,024 bytes (ten requests of 64 of them in 500 ms are 1,280 KByte/s in its
//! table 2) and its MByte 1,000 KByte (the table's 16,265.28 KByte/s are 16.3 MByte/s in the text).
//! Both are adopted here.

use headtime_disk::profile::{self, Profile, ServiceTimes};
use headtime_disk::{Dur, Model, Time};
use headtime_sched::Order;
use headtime_sched::streams::{
    Admitted, Disk, Distribution, Exhausted, GuaranteeConfig as Promises, Kinds, Ledger, Quality, Service, Stream,
    WorstCase,
};
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::service::{self, Load};
use headtime_sim::simulate::{DEPTH, Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::das::{self, BYTES};
use headtime_sim::workload::{GroupSpec, Population, StreamSpec, Streams, Target, Workload, WorkloadError};

use crate::experiment::{RunError, Spec, failed};

/// The drives of the paper.
pub(crate) const DRIVES: [&str; 2] = ["ultrastar36z15", "barracuda36es2"];
/// Best-effort requests always outstanding, including those at the drive.
pub(crate) const WAITING: u32 = service::WAITING;

/// The load next to the streams.
#[derive(Clone, Debug)]
pub(crate) enum BestEffort {
    /// Tasks.
    Tasks(GroupSpec),
    /// An experiment's own load, for a disk and a seed.
    Own(fn(&Target, u64) -> Box<dyn Workload>),
}

impl BestEffort {
    fn workload(&self, target: &Target, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        Ok(match self {
            BestEffort::Tasks(group) => Box::new(Population::of(group, target, seed)?),
            BestEffort::Own(new) => new(target, seed),
        })
    }
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct StreamRun {
    /// The scheduler's profile of the drive.
    pub profile: Profile,
    /// The true profile, if it differs.
    pub truth: Option<Profile>,
    /// The figures behind guarantees; `None`: no guarantees, ORDER chooses among all.
    pub known: Option<Disk>,
    /// The streams.
    pub streams: Vec<StreamSpec>,
    /// The load next to the streams.
    pub best_effort: BestEffort,
    /// Most commands at the drive; `None`: two (section 3.3).
    pub depth: Option<u32>,
    /// How requests of streams with exhausted reservations are treated; figure 2 skips them.
    pub exhausted: Exhausted,
    /// Streams get more than their reservation if their requests take longer than X predicts.
    pub compensates: bool,
    /// Virtual time of the run.
    pub length: Dur,
    /// Seed of everything.
    pub seed: u64,
}

impl StreamRun {
    /// Streams with the given number of random reads of 64 KiB constantly outstanding next to them.
    pub(crate) fn new(profile: &Profile, known: &Disk, streams: Vec<StreamSpec>, waiting: u32) -> StreamRun {
        StreamRun {
            profile: profile.clone(),
            truth: None,
            known: Some(known.clone()),
            streams,
            best_effort: BestEffort::Tasks(das::best_effort(waiting)),
            depth: None,
            exhausted: Exhausted::Skip,
            compensates: true,
            length: Dur::from_secs(60),
            seed: 1,
        }
    }

    /// Runs it, with SATF within the active subset and two commands at the drive (section 3.3).
    pub(crate) fn run(&self, spec: &Spec, observer: &mut impl Observer) -> Result<Stats, RunError> {
        let model = Model::new(&self.profile).map_err(|e| failed(spec, e))?;
        let guarantees = match &self.known {
            None => None,
            Some(disk) => {
                let promises = Promises::of(disk.clone(), &self.profile, &model, self.exhausted);
                let promises = promises.map_err(|e| failed(spec, e))?;
                Some(Promises { compensates: self.compensates, ..promises })
            }
        };
        let profile = self.truth.as_ref().unwrap_or(&self.profile);
        let setup = Setup {
            belief: self.truth.is_some().then_some(&self.profile),
            guarantees,
            depth: self.depth,
            ..Setup::new(profile, Order::Sptf, self.seed)
        };
        let simulation = Simulation::new(&setup).map_err(|e| failed(spec, e))?;
        let target = simulation.target();
        let beside = self.best_effort.workload(target, self.seed).map_err(|e| failed(spec, e))?;
        let mut all = match self.streams.is_empty() {
            true => beside,
            false => {
                let all = Streams::new(&self.streams, Some(beside), target, self.seed);
                Box::new(all.map_err(|e| failed(spec, e))?)
            }
        };
        let limits = Limits { until: Some(Time::ZERO + self.length), ..Limits::default() };
        let stats = simulation.run(&mut *all, limits, None, observer);
        stats.map_err(|e| failed(spec, e))
    }
}

/// A built-in drive.
pub(crate) fn drive(spec: &Spec, name: &str) -> Result<Profile, RunError> {
    profile::builtin(name).map_err(|e| failed(spec, e))
}

/// The paper's MByte per second of everything moved in a run.
pub(crate) fn mbyte_s(stats: &Stats) -> f64 {
    kbyte_s(stats.sectors, stats) / 1e3
}

/// The paper's KByte per second of a number of sectors of 512 bytes in a run.
pub(crate) fn kbyte_s(sectors: u64, stats: &Stats) -> f64 {
    sectors as f64 / 2.0 / stats.ended_at.as_secs_f64()
}

/// Sectors of best effort in a run.
pub(crate) fn best_effort_sectors(stats: &Stats) -> u64 {
    stats.sectors - stats.streams.iter().map(|s| s.sectors).sum::<u64>()
}

/// The most requests of 64 KiB per 500 ms of one stream of these kinds at this quality, and the
/// result of admission; `None`: none.
pub(crate) fn most(disk: &Disk, quality: Quality, kinds: Kinds) -> Option<(u32, Admitted)> {
    let sectors = (BYTES / 512) as u32;
    let had = |requests: u32| {
        let stream = Stream::new(requests, das::PERIOD, quality, sectors).ok()?.only(kinds);
        // Without the search for the nearest alternative, which takes most of the time of a
        // rejection.
        let mut ledger = Ledger::new(disk.clone());
        ledger.extend(&[stream]).ok().map(|()| ledger.admitted())
    };
    // That upper bound is 197 MB/s, more than these drives' sequential rate.
    let (mut good, mut bad) = (0, 1_500);
    let mut found = None;
    while bad - good > 1 {
        let mid = good + (bad - good) / 2;
        match had(mid) {
            Some(admitted) => (good, found) = (mid, Some((mid, admitted))),
            None => bad = mid,
        }
    }
    found
}

/// The drive's times by its profile.
pub(crate) fn known(spec: &Spec, profile: &Profile) -> Result<Disk, RunError> {
    let model = Model::new(profile).map_err(|e| failed(spec, e))?;
    Disk::of(profile, &model, DEPTH).map_err(|e| failed(spec, e))
}

/// The drive's times as in the paper: one X for all requests of a size, from a load of reads with
/// `waiting` always outstanding.
pub(crate) fn one_x(spec: &Spec, profile: &Profile, waiting: u32) -> Result<Disk, RunError> {
    let model = Model::new(profile).map_err(|e| failed(spec, e))?;
    let reads = |x: &&ServiceTimes| (x.load.reads_ppm, x.load.waiting) == (1_000_000, waiting) && x.load.is_steady();
    let service = |x: &ServiceTimes| {
        let worst = WorstCase::of(profile, &model, x.sectors).map_err(|e| failed(spec, e))?.total();
        let times = Distribution::from_counts(x.counts(), x.bin, worst).map_err(|e| failed(spec, e))?;
        Ok(Service::new(x.sectors, worst, times))
    };
    let services = profile.service_times.iter().filter(reads).map(service).collect::<Result<Vec<_>, _>>()?;
    Disk::new(services, DEPTH).map_err(|e| failed(spec, e))
}

/// The drive with X of reads of each of `sizes` bytes, ascending, measured under a separate load:
/// `waiting` outstanding, and `merged` bins of a family merged into one.
pub(crate) fn measured(
    spec: &Spec,
    profile: &Profile,
    sizes: &[u64],
    waiting: u32,
    merged: u32,
    (requests, seed): (u64, u64),
) -> Result<Profile, RunError> {
    let mut all = Vec::with_capacity(sizes.len());
    for &bytes in sizes {
        let load = Load { waiting, requests, ..Load::reads(bytes, seed) };
        let times = service::families(profile, &load).map_err(|e| failed(spec, e))?.into_iter().map(|m| m.times);
        all.extend(times.map(|t| t.merged(merged)));
    }
    Ok(Profile { service_times: all, ..profile.clone() })
}
