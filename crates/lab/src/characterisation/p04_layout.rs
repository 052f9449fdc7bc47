//! P4: layout, surfaces and serpentine groups.
//!
//! headtime's own claim. [`super::profile_comparison`] characterises the drives and judges them.

use headtime_disk::compare::Row;

use super::profile_comparison::{Judged, ProfileComparison, STEPS, compared, spec};
use crate::common::characterised_drive::{By, CharacterisedDrive, Found};
use crate::experiment::{Check, Claim, Experiment, Spec, Test};

/// The experiment.
pub(crate) const P4: Experiment = Experiment { spec: &SPEC, steps: STEPS, run: |run| COMPARISON.run(run) };

static SPEC: Spec = spec(
    "P4",
    "A profile found from outside: layout",
    &[Claim {
        id: "P4",
        claim: "layout, surfaces, serpentine group",
        paper: "-",
        rule: "exact",
        checks: &[
            Check { what: "drives with another layout or other surfaces", unit: "drives", test: Test::Never },
            Check { what: "tracks on another surface", unit: "tracks", test: Test::Never },
        ],
        quick: true,
        note: "Which surface a track is on shows by which tracks are reached sooner than a head switch takes. \
                   Where no head switch takes longer than the shortest seek, as on the Atlas 10K (0.18 ms, and 1.2 \
                   ms), the way between two tracks takes as long whether they are on one surface or on two: no host \
                   can tell heads that go back and forth from heads that always begin with the first, and no scheduler \
                   loses by it.",
    }],
);

pub(super) static COMPARISON: ProfileComparison = ProfileComparison {
    spec: &SPEC,
    by: By::Reads,
    judge: layout,
    table: ("compared", &["drive", "group", "what", "truth", "found", "off", "unit", "holds", "place"]),
};

fn layout(_: &CharacterisedDrive, found: &Found) -> Judged {
    let rows: Vec<&Row> = found.compared.rows.iter().filter(|r| r.group == "layout").collect();
    // A missing row is unknown.
    let is_wrong = |what: &str| match rows.iter().find(|r| r.what == what) {
        Some(row) => f64::from(!row.holds),
        None => f64::NAN,
    };
    let elsewhere = rows.iter().find(|r| r.what == "tracks on another surface").and_then(|r| r.difference);
    let wrong = |r: &&&Row| !r.holds && r.what != "tracks on another surface";
    let said = rows.iter().filter(wrong).map(|r| format!("{} {}, found {}", r.what, r.a, r.b));
    Judged {
        figures: vec![(is_wrong("surfaces") + is_wrong("layout")).min(1.0), elsewhere.unwrap_or(f64::NAN)],
        // The complete comparison, which no other table shows.
        rows: found.compared.rows.iter().map(compared).collect(),
        note: said.collect::<Vec<_>>().join("; "),
    }
}
