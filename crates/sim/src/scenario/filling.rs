//! FILL by name: the settings `fill`, `placement`, `background` and `conservatism_us` of scenarios
//! and the command line.

use headtime_sched::{Algorithm, Conservatism, FillConfig, NameError, Placement, joined};

use crate::background::{Background, Job, Jobs, Nothing, PROMOTED_PART, scan_unit};
use crate::workload::{Target, WorkloadError, unknown};

/// Names of FILL: none, and those of [`Algorithm`].
pub const FILLS: [&str; Algorithm::NAMES.len() + 1] = joined(&["none"], &Algorithm::NAMES);
/// Background work: none, a single read of the whole disk, the same repeated; KIB is the unit of
/// the wanted blocks.
pub const BACKGROUNDS: [&str; 5] = ["none", "scan", "scan:KIB", "rescan", "rescan:KIB"];
/// Largest unit in KiB. A block that no gap can hold is occasionally read like a foreground
/// request, and larger units would delay others noticeably.
const MOST_UNIT_KIB: u32 = 1_024;

/// Returns an algorithm by name; `None` for `none`.
pub fn algorithm(name: &str) -> Result<Option<Algorithm>, NameError> {
    match name {
        "none" => Ok(None),
        _ => name.parse().map(Some).map_err(|e: NameError| e.among(&FILLS)),
    }
}

/// Returns FILL from its settings; `None` for `none`. By default, the conservatism follows from the
/// placement.
pub fn fill(
    name: &str,
    placement: Placement,
    conservatism: Option<Conservatism>,
    seed: u64,
) -> Result<Option<FillConfig>, NameError> {
    let conservatism = conservatism.unwrap_or_else(|| Conservatism::at(placement));
    Ok(algorithm(name)?.map(|algorithm| FillConfig { placement, conservatism, seed, ..FillConfig::new(algorithm) }))
}

/// Checks the name of background work; returns its unit in KiB, if given.
fn parse(name: &str) -> Result<(&str, Option<u32>), WorkloadError> {
    let (word, unit) = name.split_once(':').map_or((name, None), |(w, u)| (w, Some(u)));
    match (word, unit) {
        ("none" | "scan" | "rescan", None) => Ok((word, None)),
        ("scan" | "rescan", Some(u)) => match u.parse::<u32>() {
            Ok(kib) if (1..=MOST_UNIT_KIB).contains(&kib) => Ok((word, Some(kib))),
            _ => Err(WorkloadError::range("KIB of background scan:KIB", format!("\"{u}\""), 1, MOST_UNIT_KIB)),
        },
        _ => Err(unknown("background", name, &BACKGROUNDS)),
    }
}

/// Checks the name of background work.
pub fn check_background(name: &str) -> Result<(), WorkloadError> {
    parse(name).map(|_| ())
}

/// Creates background work by name, for a disk.
pub fn background(name: &str, target: &Target) -> Result<Box<dyn Background>, WorkloadError> {
    let (word, unit) = parse(name)?;
    let unit = match unit {
        Some(kib) => (kib * 1024 / target.sector_bytes).max(1),
        None => scan_unit(target.capacity, target.sector_bytes),
    };
    let job = Job { again: word == "rescan", ..Job::scan(target.capacity, unit) };
    Ok(match word {
        "none" => Box::new(Nothing),
        _ => Box::new(Jobs::new(vec![job]).promoting_last(target.capacity / PROMOTED_PART)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known_and_others_are_refused_with_the_list() {
        for name in FILLS {
            assert_eq!(algorithm(name).unwrap().is_none(), name == "none");
        }
        for name in BACKGROUNDS {
            check_background(&name.replace("KIB", "64")).unwrap();
        }
        let e = algorithm("greedy").unwrap_err().to_string();
        assert!(e.contains("greedy") && e.contains("angle-ep-frag"), "{e}");
        assert!(check_background("scan:0").is_err() && check_background("scan:x").is_err());
    }
}
