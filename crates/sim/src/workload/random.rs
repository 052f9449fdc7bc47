//! `random-4k`, `random-40k`, `local-4k`: the workloads of the head-time predictions (Lumb 2002,
//! figure 7).

use super::closed::closed;
use super::generator::{PatternSpec, PlaceSpec};
use super::population::GroupSpec;

/// Default number of outstanding requests: two, so that the drive always has the next one queued.
pub(super) const OUTSTANDING: u32 = 2;

/// Cylinders of `local-4k` (Lumb 2002 section 6.2).
const LOCAL_CYLINDERS: u32 = 50;

/// Returns random reads of 4 KiB with `outstanding` outstanding.
pub fn random_4k(outstanding: u32) -> GroupSpec {
    GroupSpec { name: "random-4k".to_owned(), ..closed(outstanding) }
}

/// Returns random reads of 40 KiB with `outstanding` outstanding.
pub fn random_40k(outstanding: u32) -> GroupSpec {
    GroupSpec { name: "random-40k".to_owned(), pattern: PatternSpec::random_reads(40 * 1024), ..closed(outstanding) }
}

/// Returns random reads of 4 KiB within 50 neighbouring cylinders, with `outstanding` outstanding.
/// Needs the disk's geometry.
pub fn local_4k(outstanding: u32) -> GroupSpec {
    GroupSpec {
        name: "local-4k".to_owned(),
        pattern: PatternSpec {
            place: PlaceSpec::Window { cylinders: LOCAL_CYLINDERS },
            ..PatternSpec::random_reads(4096)
        },
        ..closed(outstanding)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Population, Target, Workload};
    use super::*;

    #[test]
    fn reads_of_40_kib_are_80_sectors() {
        let target = Target { capacity: 1_000_000, sector_bytes: 512, geometry: None };
        let mut p = Population::of(&random_40k(2), &target, 1).unwrap();
        assert_eq!(p.take().unwrap().count, 80);
        assert!(Population::of(&local_4k(2), &target, 1).err().unwrap().to_string().contains("geometry"));
    }
}
