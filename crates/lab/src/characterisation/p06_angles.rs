//! P6: the angles of sectors.
//!
//! headtime's own claim. [`super::profile_comparison`] characterises the drives and judges them.

use super::profile_comparison::{Judged, ProfileComparison, STEPS, spec};
use super::profile_error::is_track_right;
use crate::common::characterised_drive::{By, CharacterisedDrive, Found};
use crate::experiment::{Check, Claim, Experiment, Spec, Test};

/// The experiment.
pub(crate) const P6: Experiment = Experiment { spec: &SPEC, steps: STEPS, run: |run| COMPARISON.run(run) };

static SPEC: Spec = spec(
    "P6",
    "A profile found from outside: where sectors lie",
    &[Claim {
        id: "P6",
        claim: "angle of 1,000 random sectors",
        paper: "-",
        rule: "10 us",
        checks: &[Check { what: "furthest off of all drives", unit: "us", test: Test::AtMost(10.0) }],
        quick: true,
        note: "Taken out is what all have in common: where a turn begins is nothing that a host sees.",
    }],
);

pub(super) static COMPARISON: ProfileComparison = ProfileComparison {
    spec: &SPEC,
    by: By::Reads,
    judge: angles,
    table: ("angles", &["drive", "largest_off_us", "where"]),
};

fn angles(_: &CharacterisedDrive, found: &Found) -> Judged {
    let row = found.compared.rows.iter().find(|r| r.group == "angles");
    let off = row.and_then(|r| r.difference).unwrap_or(f64::NAN);
    let place = row.map_or("", |r| r.place.as_str());
    // The place begins with the sector.
    let sector = place.split([' ', ';']).nth(1).and_then(|n| n.parse().ok());
    let note = match sector.filter(|_| off > 10.0).map(|lbn| is_track_right(found, lbn)) {
        Some(true) => "the sector furthest off is on a track that was found whole",
        Some(false) => {
            "the sector furthest off is on a track that was found longer or shorter, or begins elsewhere (P2)"
        }
        None => "",
    };
    Judged { figures: vec![off], rows: vec![vec![off.into(), place.into()]], note: note.into() }
}
