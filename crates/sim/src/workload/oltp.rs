//! `oltp`: the foreground of Lumb 2001 and 2002 (section 6.1).

use headtime_disk::{Dur, Time};

use super::HostTime;
use super::generator::{PatternSpec, PlaceSpec};
use super::population::{Arrivals, GroupSpec, Think};
use super::size::SizeSpec;
use super::variates::Share;

/// Ten tasks with 30 ms of think time; two reads to one write; sizes in steps of 4 KiB,
/// geometrically distributed (the exponential distribution in steps) with a mean of 8 KiB; uniform
/// over the disk, aligned to 4 KiB.
pub fn oltp() -> GroupSpec {
    GroupSpec {
        name: "oltp".to_owned(),
        arrivals: Arrivals::Closed { tasks: 10, think: Think::Fixed(Dur::from_ms(30)) },
        pattern: mix(),
        start: Time::ZERO,
        host: HostTime::default(),
    }
}

/// Returns the request pattern of `oltp`.
pub(super) fn mix() -> PatternSpec {
    PatternSpec {
        reads: const { Share::new(2, 3).unwrap() },
        size: SizeSpec::Exponential { mean_bytes: 8192, step_bytes: 4096 },
        place: PlaceSpec::Uniform,
        align_bytes: 4096,
        fua: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Population, Target, Workload};
    use super::*;

    #[test]
    fn two_of_three_are_reads_of_8_kib_on_average() {
        let target = Target { capacity: 17_938_986, sector_bytes: 512, geometry: None };
        let mut p = Population::of(&oltp(), &target, 1).unwrap();
        assert_eq!(p.tasks(), 10);
        let (mut reads, mut sectors) = (0u32, 0u64);
        let n = 60_000;
        for _ in 0..n {
            let a = p.take().unwrap();
            reads += u32::from(a.kind.is_read());
            sectors += u64::from(a.count);
            p.finished(a.owner, a.due);
        }
        assert!((f64::from(reads) / f64::from(n) - 2.0 / 3.0).abs() < 0.01);
        assert!((sectors as f64 / f64::from(n) - 16.0).abs() < 0.3);
    }
}
