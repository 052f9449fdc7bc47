//! The microbenchmark of Thereska 2003 (section 4.1), the foreground of most of its measurements.

use headtime_disk::{Dur, Time};

use super::HostTime;
use super::generator::{PatternSpec, PlaceSpec};
use super::population::{Arrivals, Gaps, GroupSpec, Think};
use super::size::SizeSpec;
use super::variates::Share;

/// Requests outstanding in Thereska 2003: "two requests are kept outstanding at a time".
pub const MICRO_OUTSTANDING: u32 = 2;

/// Small reads and writes, two to one, `outstanding` of them at all times: a new one is submitted
/// when one is finished. The paper says 4 to 8 KB; here each is 4 KiB or 8 KiB, with equal
/// probability, aligned to 4 KiB (whole file system blocks), uniform over the disk.
pub fn freeblock_micro(outstanding: u32) -> GroupSpec {
    GroupSpec {
        name: format!("freeblock-micro:{outstanding}"),
        arrivals: Arrivals::Closed { tasks: outstanding, think: Think::None },
        pattern: small(),
        start: Time::ZERO,
        host: HostTime::default(),
    }
}

/// The same requests with open arrivals: the times between them are uniform between 0 and twice
/// `mean_gap`. The paper uses it where the disk is to be idle occasionally.
pub fn freeblock_micro_open(mean_gap: Dur) -> GroupSpec {
    GroupSpec {
        name: format!("freeblock-micro every {} ms", mean_gap.as_ms_f64()),
        arrivals: Arrivals::Open { mean_gap, gaps: Gaps::Uniform },
        pattern: small(),
        start: Time::ZERO,
        host: HostTime::default(),
    }
}

fn small() -> PatternSpec {
    PatternSpec {
        reads: const { Share::new(2, 3).unwrap() },
        size: SizeSpec::Uniform { min_bytes: 4096, max_bytes: 8192, step_bytes: 4096 },
        place: PlaceSpec::Uniform,
        align_bytes: 4096,
        fua: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ask, Population, Target, Workload};
    use super::*;

    fn asks(spec: &GroupSpec, n: usize) -> Vec<Ask> {
        let target = Target { capacity: 35_885_170, sector_bytes: 512, geometry: None };
        let mut p = Population::of(spec, &target, 1).unwrap();
        (0..n)
            .map(|_| {
                let a = p.take().unwrap();
                p.finished(a.owner, a.due);
                a
            })
            .collect()
    }

    #[test]
    fn two_of_three_are_reads_and_half_are_of_4_kib() {
        for spec in [freeblock_micro(MICRO_OUTSTANDING), freeblock_micro_open(Dur::from_ms(20))] {
            let n = 30_000;
            let asks = asks(&spec, n);
            let share = |of: fn(&Ask) -> bool| asks.iter().filter(|a| of(a)).count() as f64 / n as f64;
            assert!((share(|a| a.kind.is_read()) - 2.0 / 3.0).abs() < 0.01);
            assert!((share(|a| a.count == 8) - 0.5).abs() < 0.01);
            assert_eq!(share(|a| (a.count == 8 || a.count == 16) && a.lbn.is_multiple_of(8)), 1.0);
        }
    }
}
