//! The setups of Reuther and Pohlack (2003) by names: `das-table2` and `das-mixed`.
//!
//! Random reads of 64 KiB in periods of 500 ms. How many best-effort requests waited beside them
//! the paper says of the second: a constant load of 100 (section 4.2). For the first it is taken to
//! be as many as when X was measured ([`service::WAITING`]). N is another number.

use headtime_disk::time::Dur;
use headtime_sched::admit::das::stream::Quality;

use super::generator::PatternSpec;
use super::population::GroupSpec;
use super::streams::{BEST_EFFORT, StreamSpec};
use super::{WorkloadError, closed, population};
use crate::service;

/// Names, as typed.
pub const NAMES: [&str; 2] = ["das-table2[:N]", "das-mixed[:N]"];
/// Best-effort requests that always wait in section 4.2.
pub const WAITING: u32 = 100;
/// The period (section 4.2).
pub const PERIOD: Dur = Dur::from_ms(500);
/// Bytes of a request (section 4.1).
pub const BYTES: u64 = 64 << 10;

/// Requests in a period and quality in parts per million of the five streams of table 2.
pub const TABLE_2: [(u32, u32); 5] = [(5, 990_000), (20, 950_000), (10, 900_000), (5, 850_000), (10, 600_000)];
/// The same of the two streams of section 4.2. What the optional one asked for is not said there;
/// where an optional stream is to stand for all (section 4.4.2) it is 95%.
pub const MIXED: [(u32, u32); 2] = [(5, 1_000_000), (45, 950_000)];

/// Streams with a load of best effort beside them.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The streams.
    pub streams: Vec<StreamSpec>,
    /// What waits beside them, always.
    pub best_effort: GroupSpec,
}

/// Random reads of 64 KiB, so many always waiting.
pub fn best_effort(waiting: u32) -> GroupSpec {
    GroupSpec { name: BEST_EFFORT.into(), pattern: PatternSpec::random_reads(BYTES), ..closed(waiting) }
}

/// Streams of random reads of 64 KiB in periods of 500 ms, numbered from 1: requests in a period,
/// and quality in parts per million.
///
/// # Errors
/// A quality that is none.
pub fn streams(all: &[(u32, u32)]) -> Result<Vec<StreamSpec>, WorkloadError> {
    let one = |(i, &(requests, ppm)): (usize, &(u32, u32))| {
        Ok(StreamSpec::new(format!("stream {}", i + 1), requests, PERIOD, Quality::from_ppm(ppm)?))
    };
    all.iter().enumerate().map(one).collect()
}

/// Whether a name is meant as one of these, right or wrong.
pub fn is_das(name: &str) -> bool {
    name.starts_with("das-")
}

/// A setup by its name.
///
/// # Errors
/// A name that nothing has, an N outside of its limits.
pub fn by_name(name: &str) -> Result<Setup, WorkloadError> {
    let (word, n) = name.split_once(':').map_or((name, None), |(w, n)| (w, Some(n)));
    let (all, usual): (&[(u32, u32)], u32) = match word {
        "das-table2" => (&TABLE_2, service::WAITING),
        "das-mixed" => (&MIXED, WAITING),
        _ => return Err(super::unknown("workload", name, &super::NAMES)),
    };
    let most = population::MOST_TASKS;
    let within = |n: &str| n.parse().ok().filter(|n| (1..=most).contains(n));
    let waiting = match n {
        None => usual,
        Some(n) => within(n)
            .ok_or_else(|| WorkloadError::range(format!("N of workload {word}:N"), format!("\"{n}\""), 1, most))?,
    };
    Ok(Setup { streams: streams(all)?, best_effort: best_effort(waiting) })
}

#[cfg(test)]
mod tests {
    use super::super::Arrivals;
    use super::*;

    #[test]
    fn table_2_is_the_papers() {
        let setup = by_name("das-table2").unwrap();
        // Its third column: bandwidth in KiB a second.
        let kib: Vec<u64> = setup.streams.iter().map(|s| u64::from(s.requests) * (BYTES >> 10) * 2).collect();
        assert_eq!(kib, [640, 2560, 1280, 640, 1280]);
        let quality: Vec<u32> = setup.streams.iter().map(|s| s.quality.ppm() / 10_000).collect();
        assert_eq!(quality, [99, 95, 90, 85, 60]);
        assert!(matches!(setup.best_effort.arrivals, Arrivals::Closed { tasks: 8, .. }));
        let mixed = by_name("das-mixed").unwrap().best_effort.arrivals;
        assert!(matches!(mixed, Arrivals::Closed { tasks: 100, .. }));
    }

    #[test]
    fn n_is_how_many_wait_and_others_are_refused() {
        let setup = by_name("das-mixed:7").unwrap();
        assert!(matches!(setup.best_effort.arrivals, Arrivals::Closed { tasks: 7, .. }));
        assert!(setup.streams[0].quality.is_mandatory() && !setup.streams[1].quality.is_mandatory());
        let e = by_name("das-mixed:0").unwrap_err().to_string();
        assert_eq!(e, "N of workload das-mixed:N: expected 1 to 100000, found \"0\"");
        let e = by_name("das-table3").unwrap_err().to_string();
        assert!(e.contains("das-table2[:N]") && e.contains("closed:N"), "{e}");
    }
}
