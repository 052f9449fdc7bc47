//! P2: where tracks begin, and their sectors.
//!
//! headtime's own claim. [`super::profile_comparison`] characterises the drives and judges them.

use headtime_disk::compare::{BOUNDARIES, OTHER_SECTORS};

use super::profile_comparison::{Judged, ProfileComparison, STEPS, difference, named, spec};
use crate::common::characterised_drive::{By, CharacterisedDrive, Found};
use crate::experiment::{Cell, Check, Claim, Experiment, Spec, Test};

/// The experiment.
pub(crate) const P2: Experiment = Experiment { spec: &SPEC, steps: STEPS, run: |run| COMPARISON.run(run) };

static SPEC: Spec = spec(
    "P2",
    "A profile found from outside: tracks and zones",
    &[Claim {
        id: "P2",
        claim: "zones and sectors per track, per surface",
        paper: "-",
        rule: "exact",
        checks: &[
            Check { what: "tracks that begin elsewhere, all drives", unit: "tracks", test: Test::Never },
            Check { what: "tracks with other sectors, all drives", unit: "tracks", test: Test::Never },
        ],
        quick: true,
        note: "Every track is compared, in the order of its sectors: with each of them right, zones of each \
                   surface follow. Subject surface a track is on is P4. Sectors of a track are what goes round in a \
                   turn, spare ones and slipped ones included.",
    }],
);

pub(super) static COMPARISON: ProfileComparison = ProfileComparison {
    spec: &SPEC,
    by: By::Reads,
    judge: boundaries,
    table: ("tracks", &["drive", "tracks", "begin_elsewhere", "other_sectors", "where"]),
};

fn boundaries(_: &CharacterisedDrive, found: &Found) -> Judged {
    let (elsewhere, other) = (difference(found, BOUNDARIES), difference(found, OTHER_SECTORS));
    let said = named(found, BOUNDARIES).map_or((String::new(), String::new()), |r| (r.a.clone(), r.place.clone()));
    let rows = vec![vec![Cell::Text(said.0), elsewhere.into(), other.into(), Cell::Text(said.1.clone())]];
    Judged { figures: vec![elsewhere, other], rows, note: said.1 }
}
