//! `headtime profiles compare`: built-in drives, and copies with one changed figure.

use crate::common::{Scratch, headtime};

/// Returns a built-in profile as TOML, with one text replaced.
fn edited(there: &Scratch, name: &str, from: &str, to: &str) -> String {
    let text = headtime(&["profiles", "show", name]).ok();
    assert!(text.contains(from), "{name} has no {from}");
    there.file("edited.toml", &text.replacen(from, to, 1))
}

/// Returns the broken rules of B, and checks the exit status.
fn broken(a: &str, b: &str, more: &[&str]) -> Vec<String> {
    let ran = headtime(&[&["profiles", "compare", a, b, "--json"], more].concat());
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}", ran.err));
    let rows = json["rows"].as_array().unwrap();
    let broken: Vec<String> =
        rows.iter().filter(|r| r["holds"] == false).map(|r| r["what"].as_str().unwrap().into()).collect();
    assert_eq!(json["agree"], broken.is_empty());
    assert_eq!(ran.status, Some(if broken.is_empty() { 0 } else { 1 }), "{}", ran.err);
    broken
}

#[test]
fn a_profile_agrees_with_itself_and_with_its_own_text() {
    let there = Scratch::new("compare-same");
    for name in ["atlas10k", "cheetah9lp", "ultrastar36z15"] {
        let text = headtime(&["profiles", "show", name]).ok();
        let copy = there.file("copy.toml", &text);
        assert_eq!(broken(name, &copy, &[]), Vec::<String>::new(), "{name}");
    }
    let said = headtime(&["profiles", "compare", "atlas10k", "atlas10k"]).ok();
    assert!(said.contains("They agree") && said.contains("surfaces 0 to 5: zones"), "{said}");
    assert!(!said.contains("Where:"), "{said}");
}

#[test]
fn a_serpentine_drive_is_walked_track_by_track() {
    assert_eq!(broken("hitachi-7k1000c", "hitachi-7k1000c", &[]), Vec::<String>::new());
}

#[test]
fn one_changed_figure_is_the_one_reported() {
    let there = Scratch::new("compare-edited");
    let edit = |from: &str, to: &str| broken("atlas10k", &edited(&there, "atlas10k", from, to), &[]);
    assert_eq!(edit("segments = 10", "segments = 11"), ["cache segments"]);
    assert_eq!(edit("head_switch_ms = 0.176", "head_switch_ms = 0.216"), ["head switch"]);
    assert_eq!(edit("head_switch_ms = 0.176", "head_switch_ms = 0.196"), Vec::<String>::new());
    assert_eq!(edit("settle_retry_turns = 1", "settle_retry_turns = 2"), ["extra turns to settle at most (n)"]);
    assert_eq!(edit("rpm = 10025", "rpm = 10025.3"), ["period"]);
    assert_eq!(edit("[300, 2.93]", "[300, 2.97]").len(), 2);
    let skew = edit("track_skew = \"7/36\"", "track_skew = \"6/36\"");
    assert!(skew.contains(&"track skew".into()) && !skew.contains(&"sectors per track".into()), "{skew:?}");
    let layout = edit("layout = \"A\"", "layout = \"F\"");
    assert!(layout.contains(&"layout".into()) && layout.contains(&"tracks on another surface".into()), "{layout:?}");
}

#[test]
fn differences_are_reported_with_their_places() {
    let there = Scratch::new("compare-text");
    let b = edited(&there, "atlas10k", "[300, 2.93]", "[300, 2.97]");
    let ran = headtime(&["profiles", "compare", "atlas10k", &b]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(1), ""));
    assert!(ran.out.contains("over 300 cylinders: 2.930 and 2.970 ms"), "{}", ran.out);
    assert!(ran.out.contains("They do not agree: 2 of "), "{}", ran.out);
}

#[test]
fn rules_of_writes_can_be_left_out() {
    let there = Scratch::new("compare-writes");
    let b = edited(&there, "atlas10k", "write_settle_ms = 0.487", "write_settle_ms = 0.2");
    assert_eq!(broken("atlas10k", &b, &[]), ["a write's seek beyond a read's"]);
    assert_eq!(broken("atlas10k", &b, &["--reads-only"]), Vec::<String>::new());
}

#[test]
fn files_that_are_no_profiles_are_refused() {
    let there = Scratch::new("compare-bad");
    let bad = there.file("bad.toml", "name = \"x\"\nspeed = [");
    assert!(headtime(&["profiles", "compare", "atlas10k", &bad]).refused().contains("bad.toml:2"));
    assert!(headtime(&["profiles", "compare", "nothing", "atlas10k"]).refused().contains("cheetah9lp"));
    let ran = headtime(&["profiles", "compare", "atlas10k"]);
    assert!(ran.status == Some(2) && ran.err.contains("<B>"), "{}", ran.err);
}
