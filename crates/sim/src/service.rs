//! Measurement of service times on a virtual drive: the distribution X of Reuther and Pohlack 2003,
//! section 3.1.2.
//!
//! Times are measured by the same code as in [`headtime_sched::internals::at_drive::AtDrive`]. With
//! SATF the result depends on the number of requests to choose from, which the paper does not
//! state; [`WAITING`] documents the value used here.

use headtime_disk::profile::{Profile, Run, ServiceLoad, ServiceTimes};
use headtime_disk::{Command, Completion, Dur, Model, ModelError, Time};
use headtime_sched::Order;
use headtime_sched::internals::at_drive::AtDrive;
use headtime_sched::streams::{Distribution, WorstCase, WorstError};

mod family;

pub use family::{families, family};

use crate::observe::Observer;
use crate::run::Limits;
use crate::simulate::{DEPTH, Setup, SimError, Simulation};
pub use crate::workload::das::MEASURED_WAITING as WAITING;
use crate::workload::variates::Share;
use crate::workload::{GroupSpec, PatternSpec, Population, WorkloadError, closed};

/// Default number of commands to measure: the longest thousandth has a hundred.
pub const REQUESTS: u64 = 100_000;
/// Default bytes of a command (sections 4.1 and 4.4).
pub const BYTES: u64 = 64 << 10;
/// Commands before the measurement, as a multiple of the number waiting: at first no request has
/// been passed over.
const SETTLE: u64 = 20;

/// A load for the measurement: one size, uniformly random over the whole drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Bytes per request.
    pub bytes: u64,
    /// Share of reads, in parts per million; the rest are writes.
    pub reads_ppm: u32,
    /// Requests always in the system, including those at the drive.
    pub waiting: u32,
    /// Scheduling policy.
    pub order: Order,
    /// Maximum number of commands at the drive.
    pub outstanding: u32,
    /// Commands to measure.
    pub requests: u64,
    /// Seed of the load and of the drive's noise.
    pub seed: u64,
}

impl Load {
    /// Creates a load of reads of `bytes`, ordered by SATF outside the drive, with two commands at
    /// the drive.
    pub fn reads(bytes: u64, seed: u64) -> Load {
        Load {
            bytes,
            reads_ppm: 1_000_000,
            waiting: WAITING,
            order: Order::Sptf,
            outstanding: DEPTH,
            requests: REQUESTS,
            seed,
        }
    }
}

/// Describes the load: the requests and their location.
fn words(load: &Load) -> String {
    let kind = match load.reads_ppm {
        1_000_000 => "reads",
        0 => "writes",
        _ => "reads and writes",
    };
    let size = match load.bytes {
        b if b.is_multiple_of(1024) => format!("{} KiB", b / 1024),
        b => format!("{b} bytes"),
    };
    format!("{kind} of {size}, each somewhere on the whole drive")
}

/// Result of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The distribution, as stored in profiles.
    pub times: ServiceTimes,
    /// The worst case, which no command exceeded.
    pub worst: WorstCase,
    /// From the first counted command to the last.
    pub span: Dur,
    /// The mean of the times themselves, not of their bins.
    pub mean: Dur,
    /// The longest time.
    pub longest: Dur,
}

impl Measured {
    /// Returns the drive's throughput in bytes per second, for sectors of `sector_bytes`.
    pub fn bytes_per_second(&self, sector_bytes: u32) -> f64 {
        let bytes = f64::from(self.times.sectors) * f64::from(sector_bytes) * self.times.samples as f64;
        bytes / self.span.as_secs_f64()
    }
}

/// Why the measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The profile cannot be compiled.
    #[error("disk {name}: {source}")]
    Model {
        /// The profile's name.
        name: String,
        /// Why.
        source: ModelError,
    },
    /// The profile has no worst case.
    #[error("disk {name}: {source}")]
    Worst {
        /// The profile's name.
        name: String,
        /// Why there is no worst case.
        source: WorstError,
    },
    /// A drive that is not kept busy would show its idle time, not its service time.
    #[error("requests that wait: expected at least the {outstanding} commands at the drive, found {waiting}")]
    Waiting {
        /// The number requested.
        waiting: u32,
        /// Maximum number of commands at the drive.
        outstanding: u32,
    },
    /// A share above 100%.
    #[error("share of reads: expected at most 1,000,000 parts per million, found {found}")]
    Reads {
        /// The number requested.
        found: u32,
    },
    /// No requests, or more than a histogram can count.
    #[error("requests to measure: expected 1 to {}, found {found}", u32::MAX)]
    Requests {
        /// The number requested.
        found: u64,
    },
    /// A command exceeded the worst case.
    #[error("a command of {sectors} sectors: expected at most the worst case of {worst}, found {found}")]
    Beyond {
        /// Its sectors.
        sectors: u32,
        /// The worst case.
        worst: Dur,
        /// Its service time.
        found: Dur,
    },
    /// The load is invalid.
    #[error(transparent)]
    Load(#[from] WorkloadError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] SimError),
}

/// Measures the service times of commands of one size on the virtual drive of `profile`.
///
/// # Errors
/// A drive without a worst case (write-back cache), an invalid load, a command that exceeded the
/// worst case.
pub fn measure(profile: &Profile, load: &Load) -> Result<Measured, MeasureError> {
    if load.waiting < load.outstanding {
        return Err(MeasureError::Waiting { waiting: load.waiting, outstanding: load.outstanding });
    }
    if load.requests == 0 || load.requests > u64::from(u32::MAX) {
        return Err(MeasureError::Requests { found: load.requests });
    }
    let reads = Share::new(load.reads_ppm, 1_000_000).ok_or(MeasureError::Reads { found: load.reads_ppm })?;
    let setup = Setup { depth: Some(load.outstanding), ..Setup::new(profile, load.order, load.seed) };
    let simulation = Simulation::new(&setup)?;
    let pattern = PatternSpec { reads, ..PatternSpec::random_reads(load.bytes) };
    let group = GroupSpec { pattern, ..closed(load.waiting) };
    let mut workload = Population::of(&group, simulation.target(), load.seed)?;
    let sectors = (load.bytes / u64::from(profile.sector_bytes)) as u32;
    let worst = worst_of(profile, sectors)?;
    let mut busy = Busy::new(u64::from(load.waiting) * SETTLE, load.requests, worst.total());
    let limits = Limits { requests: Some(busy.skip + load.requests), ..Limits::default() };
    simulation.run(&mut workload, limits, None, &mut busy)?;
    if let Some(found) = busy.beyond {
        return Err(MeasureError::Beyond { sectors, worst: worst.total(), found });
    }
    let of = busy.taken.max(1);
    Ok(Measured {
        times: ServiceTimes {
            sectors,
            load: ServiceLoad {
                words: words(load),
                reads_ppm: load.reads_ppm,
                waiting: load.waiting,
                candidates: load.waiting - load.outstanding + 1,
                order: load.order.to_string(),
                outstanding: load.outstanding,
            },
            samples: busy.taken,
            bin: Distribution::BIN,
            runs: Run::of(&busy.counts),
        },
        worst,
        span: busy.last.since(busy.first),
        mean: Dur(busy.sum.0 / of),
        longest: busy.longest,
    })
}

fn worst_of(profile: &Profile, sectors: u32) -> Result<WorstCase, MeasureError> {
    let name = || profile.name.clone();
    let model = Model::new(profile).map_err(|source| MeasureError::Model { name: name(), source })?;
    WorstCase::of(profile, &model, sectors).map_err(|source| MeasureError::Worst { name: name(), source })
}

/// Counter of the drive's busy time per command.
struct Busy {
    drive: AtDrive<()>,
    worst: Dur,
    /// Commands to skip, skipped so far, and wanted.
    skip: u64,
    skipped: u64,
    wanted: u64,
    taken: u64,
    counts: Vec<u32>,
    sum: Dur,
    longest: Dur,
    beyond: Option<Dur>,
    first: Time,
    last: Time,
}

impl Busy {
    fn new(skip: u64, wanted: u64, worst: Dur) -> Busy {
        Busy {
            drive: AtDrive::default(),
            worst,
            skip,
            skipped: 0,
            wanted,
            taken: 0,
            counts: Vec::new(),
            sum: Dur::ZERO,
            longest: Dur::ZERO,
            beyond: None,
            first: Time::ZERO,
            last: Time::ZERO,
        }
    }
}

impl Observer for Busy {
    fn issued(&mut self, command: &Command, now: Time) {
        self.drive.sent(command.id, (), (self.worst, self.worst), now);
    }

    fn completed(&mut self, command: &Command, _free: u32, completion: &Completion) {
        let took = self.drive.done(command.id, Dur::ZERO, completion.at).took;
        if self.skipped < self.skip {
            self.skipped += 1;
            self.first = completion.at;
            return;
        }
        if self.taken == self.wanted {
            return;
        }
        self.taken += 1;
        self.last = completion.at;
        self.sum += took;
        self.longest = self.longest.max(took);
        if took > self.worst {
            self.beyond = self.beyond.or(Some(took));
            return;
        }
        count(&mut self.counts, took);
    }
}

/// Counts a time in its bin, at least bin 1.
fn count(counts: &mut Vec<u32>, took: Dur) {
    let bin = took.0.div_ceil(Distribution::BIN.0).max(1) as usize;
    counts.resize(counts.len().max(bin + 1), 0);
    counts[bin] += 1;
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::builtin;

    use super::*;

    fn ultrastar() -> Profile {
        builtin("ultrastar36z15").expect("a built-in drive")
    }

    fn few(waiting: u32) -> Load {
        Load { waiting, requests: 4_000, ..Load::reads(BYTES, 1) }
    }

    #[test]
    fn the_drive_is_busy_with_one_command_or_another_all_the_time() {
        let m = measure(&ultrastar(), &few(8)).expect("measured");
        assert_eq!((m.times.samples, m.times.sectors), (4_000, 128));
        assert_eq!(m.mean, Dur(m.span.0 / 4_000));
        // The histogram is never below the times, and above them by less than one bin each.
        let bins: u64 = m.times.counts().map(|(bin, n)| u64::from(bin) * u64::from(n)).sum();
        let sum = bins * m.times.bin.0;
        assert!(sum >= m.span.0 && sum - m.span.0 < 4_000 * m.times.bin.0, "{sum}, {}", m.span);
        assert_eq!(m.times.counts().last().map(|c| c.0), Some(m.longest.0.div_ceil(m.times.bin.0) as u32));
        let media = 64.0 * 1024.0 / m.mean.as_secs_f64();
        assert!((m.bytes_per_second(512) / media - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_same_seed_measures_the_same_and_the_load_makes_the_difference() {
        let measured = |load: Load| measure(&ultrastar(), &load).expect("measured");
        assert_eq!(measured(few(8)), measured(few(8)));
        assert_ne!(measured(few(8)).times, measured(Load { seed: 2, ..few(8) }).times);
        let mean = |load: Load| measured(load).mean;
        assert!(mean(few(32)) < mean(few(8)) && mean(few(8)) < mean(few(2)));
        // With one command at the drive, the overheads that two would hide become visible.
        assert!(mean(Load { outstanding: 1, ..few(8) }) > mean(few(8)));
        let writes = Load { reads_ppm: 0, ..few(8) };
        assert!(mean(writes) > mean(few(8)), "a write settles");
        let words = |load: Load| measured(load).times.load.words;
        assert_eq!(words(few(2)), "reads of 64 KiB, each somewhere on the whole drive");
        assert_eq!(words(writes), "writes of 64 KiB, each somewhere on the whole drive");
    }

    #[test]
    fn what_cannot_be_measured_is_said() {
        let said = |profile: &Profile, load: &Load| measure(profile, load).expect_err("a fault").to_string();
        let p = ultrastar();
        assert!(said(&p, &few(1)).contains("expected at least the 2 commands at the drive, found 1"));
        assert!(said(&p, &Load { requests: 0, ..few(8) }).contains("expected 1 to 4294967295, found 0"));
        assert!(said(&p, &Load { reads_ppm: 1_000_001, ..few(8) }).contains("at most 1,000,000"));
        assert!(said(&p, &Load { bytes: 1_000, ..few(8) }).contains("whole sectors of 512"));
        assert!(said(&p, &Load { outstanding: 33, ..few(40) }).contains("expected 1 to 32"));
        let mut back = ultrastar();
        back.electronics.cache.write_back = true;
        assert!(said(&back, &few(8)).contains("expected a drive that writes through"));
    }

    #[test]
    fn a_command_beyond_the_worst_case_is_seen() {
        let p = ultrastar();
        let simulation = Simulation::new(&Setup::new(&p, Order::Sptf, 1)).expect("a drive");
        let group = GroupSpec { pattern: PatternSpec::random_reads(BYTES), ..closed(8) };
        let mut workload = Population::of(&group, simulation.target(), 1).expect("a load");
        let mut busy = Busy::new(0, 500, Dur::from_ms(5));
        let limits = Limits { requests: Some(500), ..Limits::default() };
        simulation.run(&mut workload, limits, None, &mut busy).expect("a run");
        assert!(busy.beyond.is_some_and(|found| found > Dur::from_ms(5)));
    }
}
