//! FILL by name: the settings `fill`, `placement`, `background` and `conservatism_us` of scenarios
//! and the command line.

use headtime_disk::time::Dur;
use headtime_sched::{Algorithm, Conservatism, FillConfig, Placement};

use crate::background::{Background, Job, Jobs, Nothing, PROMOTED, scan_unit};
use crate::workload::{Target, WorkloadError, unknown};

/// Names of FILL.
pub const FILLS: [&str; 6] = ["none", "bw-greedy", "bw-ep-greedy", "angle-ep-greedy", "angle-ep-frag", "headtime"];
/// Placements of FILL: outside the drive, inside it, and inside it without separate commands on a
/// foreground request's track.
pub const PLACEMENTS: [&str; 3] = ["host", "firmware", "firmware-no-track"];
/// Background work: none, a single read of the whole disk, the same repeated; KIB is the unit of
/// the wanted blocks.
pub const BACKGROUNDS: [&str; 5] = ["none", "scan", "scan:KIB", "rescan", "rescan:KIB"];
/// Largest conservatism in us.
const MOST_CONSERVATISM_US: u64 = 100_000;
/// Largest unit in KiB. A block that no gap can hold is occasionally read like a foreground
/// request, and larger units would delay others noticeably.
const MOST_UNIT_KIB: u32 = 1_024;

/// Returns an algorithm by name; `None` for `none`.
pub fn algorithm(name: &str) -> Result<Option<Algorithm>, WorkloadError> {
    Ok(Some(match name {
        "none" => return Ok(None),
        "bw-greedy" => Algorithm::BwGreedy,
        "bw-ep-greedy" => Algorithm::BwEpGreedy,
        "angle-ep-greedy" => Algorithm::AngleEpGreedy,
        "angle-ep-frag" => Algorithm::AngleEpFrag,
        "headtime" => Algorithm::Headtime,
        _ => return Err(unknown("fill", name, &FILLS)),
    }))
}

/// Returns a placement by name.
pub fn placement(name: &str) -> Result<Placement, WorkloadError> {
    Ok(match name {
        "host" => Placement::Host,
        "firmware" => Placement::Firmware,
        "firmware-no-track" => Placement::FirmwareNoTrack,
        _ => return Err(unknown("placement", name, &PLACEMENTS)),
    })
}

/// Parses conservatism: a number of microseconds, or `adaptive`.
pub fn conservatism(text: &str) -> Result<Conservatism, WorkloadError> {
    if text == "adaptive" {
        return Ok(Conservatism::Adaptive);
    }
    match text.parse::<u64>() {
        Ok(us) if us <= MOST_CONSERVATISM_US => Ok(Conservatism::Fixed(Dur::from_us(us))),
        _ => Err(WorkloadError::range(
            "conservatism_us",
            format!("\"{text}\""),
            "0",
            format!("{MOST_CONSERVATISM_US}, or \"adaptive\""),
        )),
    }
}

/// Returns the default conservatism: none where the truth is known, adaptive outside the drive.
pub fn default_conservatism(placement: Placement) -> Conservatism {
    match placement {
        Placement::Host => Conservatism::Adaptive,
        Placement::Firmware | Placement::FirmwareNoTrack => Conservatism::Fixed(Dur::ZERO),
    }
}

/// Returns FILL from its settings; `None` for `none`.
pub fn fill(
    name: &str,
    place: Option<&str>,
    margin: Option<&str>,
    seed: u64,
) -> Result<Option<FillConfig>, WorkloadError> {
    let placement = placement(place.unwrap_or("host"))?;
    let conservatism = margin.map_or_else(|| Ok(default_conservatism(placement)), conservatism)?;
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
        _ => Box::new(Jobs::new(vec![job]).promoting_last(target.capacity / PROMOTED)),
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
        for name in PLACEMENTS {
            placement(name).unwrap();
        }
        for name in BACKGROUNDS {
            check_background(&name.replace("KIB", "64")).unwrap();
        }
        let e = algorithm("greedy").unwrap_err().to_string();
        assert!(e.contains("greedy") && e.contains("angle-ep-frag"), "{e}");
        assert!(check_background("scan:0").is_err() && check_background("scan:x").is_err());
    }

    #[test]
    fn conservatism_is_a_number_or_adaptive() {
        assert_eq!(conservatism("300").unwrap(), Conservatism::Fixed(Dur::from_us(300)));
        assert_eq!(conservatism("adaptive").unwrap(), Conservatism::Adaptive);
        assert!(conservatism("-1").is_err() && conservatism("0.3").is_err() && conservatism("200000").is_err());
    }
}
