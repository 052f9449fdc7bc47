//! P9: the time that a characterisation takes.
//!
//! headtime's own claim. [`super::profile_comparison`] characterises the drives and judges them.

use super::profile_comparison::{Judged, ProfileComparison, SERPENTINE, STEPS, spec};
use crate::common::characterised_drive::By;
use crate::experiment::{Cell, Check, Claim, Experiment, Length, Spec, Test};

/// The experiment.
pub(crate) const P9: Experiment = Experiment { spec: &SPEC, steps: STEPS, run: |run| COMPARISON.run(run) };

static SPEC: Spec = Spec {
    length: Length::Minutes,
    ..spec(
        "P9",
        "A profile found from outside: time",
        &[Claim {
            id: "P9",
            claim: "time it takes in the drive's own time, what a scheduler needs, 1 TB serpentine drive",
            paper: "-",
            rule: "under 30 minutes",
            checks: &[Check { what: "hitachi-7k1000c", unit: "minutes", test: Test::Below(30.0) }],
            quick: false,
            note: "All that the probe finds by reading, 2,000 reads of verification included.",
        }],
    )
};

pub(super) static COMPARISON: ProfileComparison = ProfileComparison {
    spec: &SPEC,
    by: By::Reads,
    judge: |known, found| Judged {
        figures: if known.drive == SERPENTINE { vec![known.minutes] } else { vec![0.0] },
        rows: vec![vec![known.minutes.into(), Cell::Text(found.said.clone())]],
        note: String::new(),
    },
    table: ("time", &["drive", "minutes", "foretold_by_the_probe"]),
};
