//! `claims.golden` records which claims hold in the short form, and shows a change of any figure.
//!
//! After an intended change, run this test with `HEADTIME_BLESS=1`; the commit then shows it.

use std::fmt::Write;
use std::path::Path;

use headtime_lab::experiment::Unwatched;
use headtime_lab::registry::{self, Selected};
use headtime_lab::runner::{self, Options};

#[test]
fn what_is_measured_in_time_has_a_figure_for_each_check() {
    // Their figures depend on the machine, so they are not recorded; a run with too few is an
    // error.
    const TIMED: [&str; 3] = ["B15", "D3b", "D16"];
    let timed = registry::all().into_iter().filter(|e| TIMED.contains(&e.spec().id));
    let selected: Vec<Selected> = timed.map(Selected::whole).collect();
    let results = runner::run(&selected, &Options { seeds: vec![1], quick: true }, &Unwatched).unwrap();
    assert_eq!(results.len(), TIMED.len());
    let figures = results.iter().flat_map(|r| r.claims[0].figures.iter().flatten());
    assert!(figures.clone().count() > TIMED.len() && figures.into_iter().all(|f| f.is_finite() && *f > 0.0));
}

#[test]
fn the_claims_that_hold_are_those_written_down() {
    // Experiments that take seconds. The others (F7 on, S, X3, X4, D8, D10, D14, P8, the rest of B)
    // take minutes even in their short form and are run with `headtime reproduce`.
    const SHORT: [&str; 33] = [
        "F1", "F2", "F3", "F4", "F5", "F6", "B1", "B2", "B3", "B4", "B11", "B12", "D1", "D2", "D3a", "D4", "D5", "D6",
        "D7", "D9", "D11", "D12", "D13", "D15", "D17", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "X1",
    ];
    let short = registry::all().into_iter().filter(|e| SHORT.contains(&e.spec().id));
    let selected: Vec<Selected> = short.map(Selected::whole).collect();
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
