//! How long commands do take, measured on a virtual drive: the distribution X of Reuther and
//! Pohlack 2003, section 3.1.2.
//!
//! Time is counted as [`headtime_sched::admit::das::at_drive`] counts it, by the very same code.
//! With SATF everything hangs on how many requests it may choose from, and that the paper does not
//! say; [`WAITING`] says what is taken here, and why.

use headtime_disk::command::{Command, Completion};
use headtime_disk::model::{Model, ModelError};
use headtime_disk::profile::{Profile, Run, ServiceLoad, ServiceTimes};
use headtime_disk::time::{Dur, Time};
use headtime_sched::admit::das::at_drive::AtDrive;
use headtime_sched::admit::das::distribution::Distribution;
use headtime_sched::admit::das::worst::{WorstCase, WorstError};
use headtime_sched::core::Order;

mod family;

pub use family::{families, family};

use crate::observe::Observer;
use crate::run::Limits;
use crate::simulate::{DEPTH, Setup, SimError, Simulation};
use crate::workload::scenario::order_name;
use crate::workload::variates::Share;
use crate::workload::{GroupSpec, PatternSpec, Population, WorkloadError, closed};

/// Requests that wait when nothing is said, those at the drive included.
///
/// The paper measured "a random workload of 64 KByte read requests" (section 4.1, figure 4) and
/// does not say how many waited. But its figure 9 was made from these times, and says that 14.6 and
/// 8.1 MByte/s are 96% and 94% of what a best-effort load gets: a command in 4.2 and in 7.4 ms. On
/// the two drives of its table 1, as their profiles have them, eight waiting take 4.45 and 7.66 ms,
/// sixteen 3.9 and 6.5, and a hundred, its best-effort load of section 4.2, 3.1 and 4.5. So eight
/// it is, for either drive. Whether its scheduler had eight to choose from, or more and chose less
/// well, cannot be told. Fewer are the careful side: times are longer then, so that less is
/// promised, and of the requests of a period only a few still wait at its end.
pub const WAITING: u32 = 8;
/// Commands that are measured when nothing is said: of the longest thousandth there are a hundred.
pub const REQUESTS: u64 = 100_000;
/// Bytes of a command when nothing is said (sections 4.1 and 4.4).
pub const BYTES: u64 = 64 << 10;
/// So many times as many commands as wait go by before any is counted: at first nobody waits who
/// has been passed over.
const SETTLE: u64 = 20;

/// A load to measure under: one size, at random over the whole drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Bytes of each request.
    pub bytes: u64,
    /// Share of reads, in parts per million; the others are writes.
    pub reads_ppm: u32,
    /// Requests that are always in the system, those at the drive included.
    pub waiting: u32,
    /// Who chooses the next.
    pub order: Order,
    /// Commands at the drive at most.
    pub outstanding: u32,
    /// Commands to measure.
    pub requests: u64,
    /// Seed of the load and of the drive's noise.
    pub seed: u64,
}

impl Load {
    /// Reads of so many bytes, chosen by SATF outside of a drive that is given two at a time.
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

/// What is asked for and where, in words.
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

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The distribution, as profiles keep it.
    pub times: ServiceTimes,
    /// The worst case that no command went beyond.
    pub worst: WorstCase,
    /// From the first command that was counted to the last.
    pub span: Dur,
    /// The mean, of the times themselves and not of their bins.
    pub mean: Dur,
    /// The longest.
    pub longest: Dur,
}

impl Measured {
    /// Bytes a second that the drive moved, for a sector of `sector_bytes`.
    pub fn bytes_per_second(&self, sector_bytes: u32) -> f64 {
        let bytes = f64::from(self.times.sectors) * f64::from(sector_bytes) * self.times.samples as f64;
        bytes / self.span.as_secs_f64()
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The profile gives no drive.
    #[error("disk {name}: {source}")]
    Model {
        /// The profile's name.
        name: String,
        /// Why.
        source: ModelError,
    },
    /// Nothing could be built on it.
    #[error("disk {name}: {source}")]
    Worst {
        /// The profile's name.
        name: String,
        /// Why there is no worst case.
        source: WorstError,
    },
    /// A drive that is not kept busy shows what it waits for, not what it takes.
    #[error("requests that wait: expected at least the {outstanding} commands at the drive, found {waiting}")]
    Waiting {
        /// Asked for.
        waiting: u32,
        /// Commands at the drive at most.
        outstanding: u32,
    },
    /// More reads than everything.
    #[error("share of reads: expected at most 1,000,000 parts per million, found {found}")]
    Reads {
        /// Asked for.
        found: u32,
    },
    /// Nothing to measure, or more than a histogram counts.
    #[error("requests to measure: expected 1 to {}, found {found}", u32::MAX)]
    Requests {
        /// Asked for.
        found: u64,
    },
    /// The worst case is none.
    #[error("a command of {sectors} sectors: expected at most the worst case of {worst}, found {found}")]
    Beyond {
        /// Its sectors.
        sectors: u32,
        /// The worst case.
        worst: Dur,
        /// How long it took.
        found: Dur,
    },
    /// No such load.
    #[error(transparent)]
    Load(#[from] WorkloadError),
    /// No such run.
    #[error(transparent)]
    Run(#[from] SimError),
}

/// Measures the service times of commands of one size on the virtual drive of `profile`.
///
/// # Errors
/// A drive without a worst case (write-back cache), a load that there is not, a command that took
/// longer than the worst case.
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
                order: order_name(load.order),
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

/// Counts how long the drive is busy with each command.
struct Busy {
    drive: AtDrive<()>,
    worst: Dur,
    /// Commands that are not counted yet, and those still to be.
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

/// Counts a time at the end of its bin; nothing takes no time.
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
        // What the histogram says is no less than the times, by less than a bin each.
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
        // What two commands at the drive hide of the overheads shows with one.
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
