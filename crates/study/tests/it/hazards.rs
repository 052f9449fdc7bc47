//! Failure rates from the example's file of daily states.

use std::path::{Path, PathBuf};

use headtime_study::fleet::hazard::{FailureRates, read, select};
use headtime_study::fleet::study::Study;

/// What examples/fleet/synthetic_drive_stats.py drew the failures of the example's file with, per
/// drive and year.
const GENERATED: f64 = 8.0;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fleet")
}

#[test]
fn the_rate_of_the_synthetic_file_is_found_again() {
    let study = Study::load(&examples().join("fleet.toml")).unwrap_or_else(|e| panic!("{e}"));
    let failures = study.failures.expect("the example has some");
    let found = FailureRates::of(&failures).unwrap_or_else(|e| panic!("{e}")).per_year;
    assert!((found.low..=found.high).contains(&GENERATED), "{found:?}");
    assert!(found.low > GENERATED / 3.0 && found.high < 3.0 * GENERATED, "an interval that says something: {found:?}");
    // The other model does not fail, and counts if none is chosen.
    let path = failures.file.expect("from a file");
    let observed = read(&path).unwrap();
    let e = select(&path, &observed, Some("SYNTHETIC-4T")).unwrap_err().to_string();
    assert!(e.contains("of which one failed or more") && e.contains("SYNTHETIC-20T"), "{e}");
    assert!(select(&path, &observed, None).unwrap().annual().value < found.value);
}
