//! P5: the seek table.
//!
//! headtime's own claim. [`super::profile_comparison`] characterises the drives and judges them.

use super::profile_comparison::{Judged, ProfileComparison, STEPS, numbers, spec, worst};
use super::profile_error::{cylinders, seeks};
use crate::common::characterised_drive::{By, CharacterisedDrive, Found};
use crate::experiment::{Check, Claim, Experiment, Spec, Test};

/// The experiment.
pub(crate) const P5: Experiment = Experiment { spec: &SPEC, steps: STEPS, run: |run| COMPARISON.run(run) };

static SPEC: Spec = spec(
    "P5",
    "A profile found from outside: seek table",
    &[Claim {
        id: "P5",
        claim: "seek table",
        paper: "-",
        rule: "30 us at every distance measured",
        checks: &[Check { what: "furthest off of all distances and drives", unit: "us", test: Test::AtMost(30.0) }],
        quick: true,
        note: "Each distance is held against what the arm truly takes between the two tracks that the probe has so \
                   far apart on one surface, the median over 401 places: where zones end in cylinders without data, \
                   the probe has some fewer than the drive. The table shows the range of nine tenths of the places.",
    }],
);

pub(super) static COMPARISON: ProfileComparison = ProfileComparison {
    spec: &SPEC,
    by: By::Reads,
    judge: seek_table,
    table: (
        "seeks",
        &["drive", "distance", "truth_us", "found_us", "off_us", "truth_at_5_percent_us", "truth_at_95_percent_us"],
    ),
};

fn seek_table(known: &CharacterisedDrive, found: &Found) -> Judged {
    let all = seeks(found);
    // A distance without two true tracks is invalid.
    let is_whole = !all.is_empty() && all.len() == found.profile.mechanics.seek.len();
    let most = if is_whole { worst(all.iter().map(|s| s.off().abs())) } else { f64::NAN };
    let rows = all
        .iter()
        .map(|s| numbers(&[f64::from(s.distance), s.truth, s.found, s.off(), s.middle.0, s.middle.1]))
        .collect();
    let off: Vec<_> = all.iter().filter(|s| s.off().abs() > 30.0).collect();
    let apart = off.iter().filter(|s| s.middle.1 - s.middle.0 > 30.0).count();
    let mut note = format!("distances are {}", cylinders(&known.truth, found));
    if apart > 0 {
        note += "; at some of those that are off, places differ among themselves by more than that";
    }
    if apart < off.len() {
        note += "; at others they do not";
    }
    Judged { figures: vec![most], rows, note }
}
