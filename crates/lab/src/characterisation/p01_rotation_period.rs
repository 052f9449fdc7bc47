//! P1: the rotation period.
//!
//! headtime's own claim. [`super::profile_comparison`] characterises the drives and judges them.

use headtime_disk::compare::Row;

use super::profile_comparison::{Judged, ProfileComparison, STEPS, named, spec};
use crate::common::characterised_drive::{By, CharacterisedDrive, Found};
use crate::experiment::{Cell, Check, Claim, Experiment, Spec, Test};

/// The experiment.
pub(crate) const P1: Experiment = Experiment { spec: &SPEC, steps: STEPS, run: |run| COMPARISON.run(run) };

static SPEC: Spec = spec(
    "P1",
    "A profile found from outside: rotation period",
    &[Claim {
        id: "P1",
        claim: "rotation period",
        paper: "-",
        rule: "10 ppm",
        checks: &[Check { what: "furthest off of the drives", unit: "ppm", test: Test::AtMost(10.0) }],
        quick: true,
        note: "The truth is the profile's period and 41 ppm of it.",
    }],
);

pub(super) static COMPARISON: ProfileComparison = ProfileComparison {
    spec: &SPEC,
    by: By::Reads,
    judge: period,
    table: ("period", &["drive", "what", "truth", "found", "off_ppm", "minutes", "foretold_by_the_probe"]),
};

fn period(known: &CharacterisedDrive, found: &Found) -> Judged {
    let row = named(found, "period");
    let off = row.and_then(|r| r.difference).map_or(f64::NAN, f64::abs);
    let said = |of: fn(&Row) -> &String| row.map_or(String::new(), |r| of(r).clone());
    let cells = vec![
        "period".into(),
        Cell::Text(said(|r| &r.a)),
        Cell::Text(said(|r| &r.b)),
        off.into(),
        known.minutes.into(),
        Cell::Text(found.said.clone()),
    ];
    Judged { figures: vec![off], rows: vec![cells], note: String::new() }
}
