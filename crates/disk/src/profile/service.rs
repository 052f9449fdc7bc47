//! Measured service-time distributions of a drive's commands, by request size, share of reads and
//! number of requests to choose from.
//!
//! Reuther and Pohlack 2003 (section 3.1.2) measure this once for each drive, under a load like the
//! expected one, and admit streams by it. A distribution is meaningless without its load, so the
//! load is stored with it, in words and in figures. The service time of a command is the time for
//! which the drive was busy with it: from the previous completion, or from the dispatch if that is
//! later, to its own completion.

use super::fault::ProfileError;
use super::places::Places;
use crate::time::Dur;

/// Maximum number of the last bin.
pub(super) const MOST_BINS: u32 = 1 << 20;
/// A run ends at this number of consecutive empty bins, which are not written.
const MAX_EMPTY_BINS: u32 = 3;
/// A share of 100%, in parts per million.
pub(super) const ALL_PPM: u32 = 1_000_000;

/// Service-time distribution of commands of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceTimes {
    /// Sectors per command.
    pub sectors: u32,
    /// The drive's load during the measurement.
    pub load: ServiceLoad,
    /// Commands measured.
    pub samples: u64,
    /// Bin width. Bin n holds times longer than n - 1 and at most n bin widths.
    pub bin: Dur,
    /// Counts per bin, by ascending bins.
    pub runs: Vec<Run>,
}

/// A load under which service times were measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLoad {
    /// Description: the requests and their location.
    pub words: String,
    /// Share of reads, in parts per million; the rest were writes.
    pub reads_ppm: u32,
    /// Requests always in the system, including those at the drive.
    pub waiting: u32,
    /// Requests from which each measured command was chosen, without those at the drive.
    pub candidates: u32,
    /// Scheduling policy: the name of an ORDER.
    pub order: String,
    /// Maximum number of commands at the drive.
    pub outstanding: u32,
}

impl ServiceLoad {
    /// Returns the number of candidates when `waiting` requests are always in the system.
    pub fn all_of(waiting: u32, outstanding: u32) -> u32 {
        waiting.saturating_sub(outstanding).saturating_add(1)
    }

    /// Whether all waiting requests were candidates at all times.
    pub fn is_steady(&self) -> bool {
        self.candidates == ServiceLoad::all_of(self.waiting, self.outstanding)
    }
}

/// A run of neighbouring bins of a histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of the first bin.
    pub first: u32,
    /// Counts of this bin and the following ones.
    pub counts: Vec<u32>,
}

impl Run {
    /// Returns the number of the last bin.
    fn last(&self) -> u64 {
        (u64::from(self.first) + self.counts.len() as u64).saturating_sub(1)
    }

    /// Converts the counts of all bins from bin 0 on to runs, without stretches of empty bins.
    pub fn of(counts: &[u32]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (bin, &count) in (0u32..).zip(counts).filter(|c| *c.1 > 0) {
            match runs.last_mut() {
                Some(run) if u64::from(bin) <= run.last() + u64::from(MAX_EMPTY_BINS) => {
                    run.counts.resize((bin - run.first) as usize, 0);
                    run.counts.push(count);
                }
                _ => runs.push(Run { first: bin, counts: vec![count] }),
            }
        }
        runs
    }
}

impl ServiceTimes {
    /// Returns the distribution in bins `factor` times as wide. Bin n goes into wide bin ceil(n /
    /// `factor`), because times are rounded up to the end of their bin.
    #[must_use]
    pub fn merged(&self, factor: u32) -> ServiceTimes {
        let mut counts: Vec<u32> = Vec::new();
        for (bin, n) in self.counts() {
            let wide = bin.div_ceil(factor) as usize;
            counts.resize(counts.len().max(wide + 1), 0);
            counts[wide] += n;
        }
        ServiceTimes { bin: Dur(self.bin.0 * u64::from(factor)), runs: Run::of(&counts), ..self.clone() }
    }

    /// Iterates over the non-empty bins, ascending, as number and count.
    pub fn counts(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        self.runs.iter().flat_map(|run| (run.first..).zip(run.counts.iter().copied())).filter(|c| c.1 > 0)
    }
}

pub(super) fn place(i: usize, key: &str) -> String {
    format!("service_times[{i}].{key}")
}

/// Checks the list as a whole; `capacity` is the drive's, in sectors.
pub(super) fn check(list: &[ServiceTimes], capacity: u64, places: &Places) -> Result<(), ProfileError> {
    for (i, x) in list.iter().enumerate() {
        let at = |key: &str| places.key(&place(i, key));
        let before = i.checked_sub(1).and_then(|b| list.get(b));
        let after = before.map_or(1, |b| b.sectors);
        if x.sectors < after || u64::from(x.sectors) > capacity {
            let range = format!("between {after} (sizes ascend) and the drive's {capacity}");
            return Err(ProfileError::range(at("sectors"), "sectors", x.sectors, range));
        }
        if let Some(b) = before.filter(|b| b.sectors == x.sectors) {
            let share = |ppm: u32| f64::from(ppm) / f64::from(ALL_PPM);
            let (found, last) = (x.load.reads_ppm, b.load.reads_ppm);
            if found > last {
                let range = format!("at most {} (of one size they descend)", share(last));
                return Err(ProfileError::range(at("reads"), "reads", share(found), range));
            }
            let order = |of: &ServiceTimes| (of.load.candidates, of.load.waiting);
            if found == last && order(x) <= order(b) {
                let (candidates, waiting) = order(b);
                let range = format!(
                    "more than {candidates}, or that with more than {waiting} waiting (of one size and share of reads \
                     they ascend)"
                );
                return Err(ProfileError::range(at("candidates"), "candidates", x.load.candidates, range));
            }
        }
        if x.load.candidates > x.load.waiting {
            let range = format!("at most what waited ({})", x.load.waiting);
            return Err(ProfileError::range(at("candidates"), "candidates", x.load.candidates, range));
        }
        if x.bin == Dur::ZERO {
            return Err(ProfileError::range(at("bin_us"), "bin_us", 0, "more than 0"));
        }
        if let Some(first) = before.map(|_| list[0].bin).filter(|bin| *bin != x.bin) {
            return Err(ProfileError::range(at("bin_us"), "bin_us", x.bin, format!("that of the first size, {first}")));
        }
        if x.load.reads_ppm > ALL_PPM {
            let found = format!("{} parts per million", x.load.reads_ppm);
            return Err(ProfileError::range(at("reads"), "reads", found, "between 0 and 1"));
        }
        for (key, text) in [("workload", &x.load.words), ("order", &x.load.order)] {
            if text.trim().is_empty() {
                return Err(ProfileError::expected(at(key), format!("{key} in words"), "an empty text"));
            }
        }
        let (waiting, outstanding) = (x.load.waiting, x.load.outstanding);
        if outstanding == 0 || waiting < outstanding {
            let range = format!("at least 1 and at most what waited ({waiting})");
            return Err(ProfileError::range(at("outstanding"), "outstanding", outstanding, range));
        }
        histogram(x, places, &place(i, "histogram"))?;
    }
    Ok(())
}

fn histogram(x: &ServiceTimes, places: &Places, path: &str) -> Result<(), ProfileError> {
    let at = places.key(path);
    let mut next = 1u64;
    for run in &x.runs {
        if run.counts.is_empty() {
            return Err(ProfileError::expected(at, "a list of a first bin and of counts", "no counts"));
        }
        if u64::from(run.first) < next || run.last() > u64::from(MOST_BINS) {
            let found = format!("{} to {}", run.first, run.last());
            let range = format!("from {next} on (bins ascend) and up to {MOST_BINS}");
            return Err(ProfileError::range(at, "a run of bins", found, range));
        }
        next = run.last() + 1;
    }
    let sum: u64 = x.counts().map(|c| u64::from(c.1)).sum();
    if sum != x.samples || sum == 0 {
        let text = format!("{} samples are stated, but the histogram holds {sum}", x.samples);
        return Err(ProfileError::impossible(at, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wider_bins_hold_the_times_that_end_in_them() {
        let load = ServiceLoad {
            words: "made up".into(),
            reads_ppm: 0,
            waiting: 1,
            candidates: 1,
            order: "fcfs".into(),
            outstanding: 1,
        };
        let runs = vec![Run { first: 3, counts: vec![1, 2, 4, 8] }, Run { first: 20, counts: vec![16] }];
        let narrow = ServiceTimes { sectors: 8, load, samples: 31, bin: Dur(10), runs };
        let wide = narrow.merged(2);
        assert_eq!((wide.bin, wide.counts().collect::<Vec<_>>()), (Dur(20), vec![(2, 3), (3, 12), (10, 16)]));
        assert_eq!(narrow.merged(1), narrow);
    }

    #[test]
    fn empty_stretches_end_a_run_and_short_gaps_do_not() {
        let run = |first, counts: &[u32]| Run { first, counts: counts.to_vec() };
        assert_eq!(Run::of(&[]), []);
        assert_eq!(Run::of(&[0, 0, 0]), []);
        assert_eq!(Run::of(&[0, 2, 0, 0, 1]), [run(1, &[2, 0, 0, 1])]);
        assert_eq!(Run::of(&[0, 2, 0, 0, 0, 1, 0]), [run(1, &[2]), run(5, &[1])]);
    }
}
