//! Figures at and beyond a drive's limits are refused with their line, or accepted without a panic.

// The crate has no files; its tests read some.
#![allow(clippy::disallowed_methods)]

use headtime_disk::profile::{self, Loaded};

/// Returns the stored profile of the Atlas 10K with one text replaced, and that text's line.
fn atlas(from: &str, to: &str) -> (Result<Loaded, profile::ProfileError>, usize) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/atlas10k.toml");
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let at = text.find(from).unwrap_or_else(|| panic!("{from} is in the file"));
    let line = text[..at].matches('\n').count() + 1;
    (profile::read("p.toml", &text.replacen(from, to, 1)), line)
}

/// Returns the message of a profile that must be refused.
fn refused(from: &str, to: &str) -> String {
    let (loaded, line) = atlas(from, to);
    let e = loaded.expect_err(to).to_string();
    assert!(e.starts_with(&format!("p.toml:{line}: ")), "{e}");
    e
}

#[test]
fn a_speed_that_drifts_beyond_the_limits_is_refused() {
    for rpm in ["60", "60000"] {
        let e = refused("rpm = 10025", &format!("rpm = {rpm}"));
        assert!(e.contains("with the speed's error and drift; it must be between 60 and 60000"), "{e}");
    }
    for rpm in ["60.001", "59999.9"] {
        assert!(atlas("rpm = 10025", &format!("rpm = {rpm}")).0.is_ok(), "{rpm}");
    }
}

const LAST_SEEKS: &str = "[10000, 10.464], [10021, 10.828],";

#[test]
fn a_seek_table_that_leads_beyond_a_second_is_refused_at_its_last_line() {
    let (loaded, line) = atlas(LAST_SEEKS, "[10000, 10.464], [10001, 960]");
    let e = loaded.expect_err("the end of the table is too steep").to_string();
    let text =
        "the last two points of the seek table lead to 38941.44 ms over 10041 cylinders; it must be at most 1000 ms";
    assert_eq!(e, format!("p.toml:{line}: {text}"));
}

#[test]
fn a_seek_table_that_leads_to_nothing_is_refused_at_its_last_line() {
    let (loaded, line) = atlas(LAST_SEEKS, "[10000, 10.464], [10010, 8.5]");
    let e = loaded.expect_err("the end of the table falls").to_string();
    let text = "the last two points of the seek table lead to 2.4116 ms over 10041 cylinders, less than half of the \
            8.5 ms over 10010: give a time at the longest distance";
    assert_eq!(e, format!("p.toml:{line}: {text}"));
    assert!(atlas(LAST_SEEKS, "[10000, 10.464], [10010, 9.5]").0.is_ok());
}
