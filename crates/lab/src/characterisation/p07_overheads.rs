//! P7: overheads, head switch, settling, cache and habits.
//!
//! headtime's own claim. [`super::profile_comparison`] characterises the drives and judges them.

use headtime_disk::compare::Row;

use super::profile_comparison::{Judged, ProfileComparison, STEPS, compared, spec, worst};
use crate::common::characterised_drive::{By, CharacterisedDrive, Found};
use crate::experiment::{Check, Claim, Experiment, Spec, Test};

/// The experiment.
pub(crate) const P7: Experiment = Experiment { spec: &SPEC, steps: STEPS, run: |run| COMPARISON.run(run) };

static SPEC: Spec = spec(
    "P7",
    "A profile found from outside: overheads and habits",
    &[Claim {
        id: "P7",
        claim: "overheads, head switch, n, cache segments, depth-2 habit",
        paper: "-",
        rule: "30 us; exact where countable",
        checks: &[
            Check { what: "furthest off of all times and drives", unit: "us", test: Test::AtMost(30.0) },
            Check { what: "habits and counts told wrongly", unit: "cases", test: Test::Never },
        ],
        quick: true,
        note: "The probe may write, too, to a tenth of the drive; where writes are answered from a cache they are \
                   left out. n, the turns that a head may need to settle, is looked for by 300,000 requests from edge \
                   to edge, which takes hours of the drive's time (--thorough): virtual drives fail to settle ten \
                   times in a million, so that one in twenty such runs meets no failure at all. Writes to the cache of \
                   drives that answer none from it are not compared: no host ever sees them.",
    }],
);

pub(super) static COMPARISON: ProfileComparison = ProfileComparison {
    spec: &SPEC,
    by: By::Hours,
    judge: electronics,
    table: ("overheads", &["drive", "group", "what", "truth", "found", "off", "unit", "holds", "place"]),
};

fn electronics(_: &CharacterisedDrive, found: &Found) -> Judged {
    let of_p7 = |r: &&Row| {
        let named = ["head switch", "extra turns to settle at most (n)", "a write's seek beyond a read's"]
            .contains(&r.what.as_str());
        r.allowed.is_some() && (r.group == "electronics" || named)
    };
    let rows: Vec<&Row> = found.compared.rows.iter().filter(of_p7).collect();
    let (times, counts): (Vec<&&Row>, Vec<&&Row>) = rows.iter().partition(|r| r.unit == "us");
    let off = times.iter().map(|r| r.difference.unwrap_or(f64::NAN).abs());
    let wrong = counts.iter().filter(|r| !r.holds).count();
    let broken: Vec<&str> = rows.iter().filter(|r| !r.holds).map(|r| r.what.as_str()).collect();
    Judged {
        figures: vec![worst(off), wrong as f64],
        rows: rows.iter().map(|r| compared(r)).collect(),
        note: broken.join(", "),
    }
}
