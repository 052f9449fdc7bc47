//! P3: track and cylinder skew.
//!
//! headtime's own claim. [`super::profile_comparison`] characterises the drives and judges them.

use headtime_disk::compare::SKEWS;

use super::profile_comparison::{Judged, ProfileComparison, STEPS, difference, numbers, spec, worst};
use crate::common::characterised_drive::{By, CharacterisedDrive, Found};
use crate::experiment::{Check, Claim, Experiment, Spec, Test};

/// The experiment.
pub(crate) const P3: Experiment = Experiment { spec: &SPEC, steps: STEPS, run: |run| COMPARISON.run(run) };

static SPEC: Spec = spec(
    "P3",
    "A profile found from outside: skews",
    &[Claim {
        id: "P3",
        claim: "track and cylinder skew",
        paper: "-",
        rule: "half a sector: 0.5",
        checks: &[Check { what: "furthest off of all zones", unit: "sectors", test: Test::AtMost(0.5) }],
        quick: true,
        note: "Of each zone, surface and kind of step (to the next track, to the next cylinder or group) the \
                   median of its tracks, for a slipped sector shifts single ones.",
    }],
);

pub(super) static COMPARISON: ProfileComparison = ProfileComparison {
    spec: &SPEC,
    by: By::Reads,
    judge: skews,
    table: ("skews", &["drive", "track_skew_off_sectors", "cylinder_skew_off_sectors", "zone_to_zone_off_sectors"]),
};

fn skews(known: &CharacterisedDrive, found: &Found) -> Judged {
    let off = SKEWS.map(|what| difference(found, what).abs());
    let figure = worst(off[..2].iter().copied());
    let note = match figure <= 0.5 {
        true => String::new(),
        false => {
            let g = &known.truth.geometry;
            let most = g.zones.iter().map(|z| z.spt(0)).max().unwrap_or(1);
            let us = found.models.truth.mechanics.rotation.period().as_ms_f64() * 1e3 / f64::from(most) / 2.0;
            format!("half a sector is {us:.1} us there")
        }
    };
    Judged { figures: vec![figure], rows: vec![numbers(&off)], note }
}
