//! `claims.golden` records which claims hold in the short form, and shows a change of any figure.
//!
//! After an intended change, run this test with `HEADTIME_BLESS=1`; the commit then shows it.

use std::fmt::Write;
use std::path::Path;

use headtime_lab::registry::{self, Selected};
use headtime_lab::runner::{self, Options};
use headtime_lab::{Length, Unwatched};

/// The experiments whose short form takes seconds, with or without those that measure processor
/// time. The others are run with `headtime reproduce`.
fn of_seconds(alone: bool) -> Vec<Selected> {
    let all = registry::all().into_iter();
    all.filter(|e| e.spec.length == Length::Seconds && e.spec.alone == alone).map(Selected::whole).collect()
}

#[test]
fn what_is_measured_in_time_has_a_figure_for_each_check() {
    // Their figures depend on the machine, so they are not recorded; a run with too few is an
    // error.
    let selected = of_seconds(true);
    assert_eq!(selected.len(), 3);
    let results = runner::run(&selected, &Options { seeds: vec![1], quick: true }, &Unwatched).unwrap();
    assert_eq!(results.len(), selected.len());
    let figures = results.iter().flat_map(|r| r.claims[0].figures.iter().flatten());
    assert!(figures.clone().count() > selected.len() && figures.into_iter().all(|f| f.is_finite() && *f > 0.0));
}

#[test]
fn the_claims_that_hold_are_those_written_down() {
    let selected = of_seconds(false);
    let options = Options { seeds: vec![1, 2, 3], quick: true };
    let results = runner::run(&selected, &options, &Unwatched).unwrap();
    let mut got = String::new();
    for r in &results {
        for c in &r.claims {
            write!(got, "{} {}", c.claim.id, if c.holds { "holds" } else { "fails" }).unwrap();
            for (i, check) in c.claim.checks.iter().enumerate() {
                let (low, high) = c.range(i);
                write!(got, " | {} {low:.3} to {high:.3}", check.what).unwrap();
            }
            got.push('\n');
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/claims.golden");
    if std::env::var_os("HEADTIME_BLESS").is_some() {
        std::fs::write(&path, &got).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        got, written,
        "figures changed; if that is meant, run this test with HEADTIME_BLESS=1 and commit the file"
    );
}
