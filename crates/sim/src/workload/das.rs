//! The setups of Reuther and Pohlack (2003) by name: `das-table2` and `das-mixed`.
//!
//! Random reads of 64 KiB in periods of 500 ms. The paper gives the number of best-effort requests
//! beside the streams for the second: a constant load of 100 (section 4.2). For the first it is
//! assumed to equal the number waiting when X was measured ([`MEASURED_WAITING`]). N overrides it.

use headtime_disk::Dur;
use headtime_sched::streams::Quality;

use super::generator::PatternSpec;
use super::population::GroupSpec;
use super::streams::{BEST_EFFORT, StreamSpec};
use super::{WorkloadError, closed, population};

/// Names as typed.
pub const NAMES: [&str; 2] = ["das-table2[:N]", "das-mixed[:N]"];
/// Number of requests in the system, including those at the drive, when service times are measured
/// ([`crate::service`]), and beside the streams of table 2.
///
/// The paper measured "a random workload of 64 KByte read requests" (section 4.1, figure 4) and
/// does not state how many waited. But its figure 9 was derived from these times, and gives 14.6
/// and 8.1 MByte/s as 96% and 94% of the throughput of a best-effort load: a command in 4.2 and in
/// 7.4 ms. On the profiles of the two drives of its table 1, eight waiting requests take 4.45 and
/// 7.66 ms, sixteen 3.9 and 6.5, and a hundred, its best-effort load of section 4.2, 3.1 and 4.5.
/// Eight fits both drives. Whether its scheduler had eight to choose from, or more and chose less
/// well, cannot be determined. A smaller number is conservative: times are longer, so that less is
/// admitted, and only a few of a period's requests still wait at its end.
pub const MEASURED_WAITING: u32 = 8;
/// Constant number of best-effort requests in section 4.2.
pub const WAITING: u32 = 100;
/// The period (section 4.2).
pub const PERIOD: Dur = Dur::from_ms(500);
/// Bytes per request (section 4.1).
pub const BYTES: u64 = 64 << 10;

/// Requests per period, and quality in parts per million, of the five streams of table 2.
pub const TABLE_2: [(u32, u32); 5] = [(5, 990_000), (20, 950_000), (10, 900_000), (5, 850_000), (10, 600_000)];
/// The same of the two streams of section 4.2. The quality of the optional one is not stated there;
/// where a single optional stream represents all (section 4.4.2) it is 95%.
pub const MIXED: [(u32, u32); 2] = [(5, 1_000_000), (45, 950_000)];

/// Streams with a best-effort load.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The streams.
    pub streams: Vec<StreamSpec>,
    /// The constant best-effort load.
    pub best_effort: GroupSpec,
}

/// Returns random reads of 64 KiB, with `waiting` always outstanding.
pub fn best_effort(waiting: u32) -> GroupSpec {
    GroupSpec { name: BEST_EFFORT.into(), pattern: PatternSpec::random_reads(BYTES), ..closed(waiting) }
}

/// Returns streams of random reads of 64 KiB in periods of 500 ms, numbered from 1, from their
/// requests per period and quality in parts per million.
///
/// # Errors
/// An invalid quality.
pub fn streams(all: &[(u32, u32)]) -> Result<Vec<StreamSpec>, WorkloadError> {
    let one = |(i, &(requests, ppm)): (usize, &(u32, u32))| {
        Ok(StreamSpec::new(format!("stream {}", i + 1), requests, PERIOD, Quality::from_ppm(ppm)?))
    };
    all.iter().enumerate().map(one).collect()
}

/// Whether a name has the prefix of these setups, valid or not.
pub fn is_das(name: &str) -> bool {
    name.starts_with("das-")
}

/// Returns a setup by its name.
///
/// # Errors
/// An unknown name, or N out of range.
pub fn by_name(name: &str) -> Result<Setup, WorkloadError> {
    let (word, n) = name.split_once(':').map_or((name, None), |(w, n)| (w, Some(n)));
    let (all, usual): (&[(u32, u32)], u32) = match word {
        "das-table2" => (&TABLE_2, MEASURED_WAITING),
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
        // Its third column: bandwidth in KiB per second.
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
