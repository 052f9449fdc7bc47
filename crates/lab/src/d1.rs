//! D1: the longest that a request can take.
//!
//! Reuther and Pohlack (2003), equation 5 and table 1: with the parameters that the paper measured on its two drives, and with
//! what our profiles of those drives say.

use headtime_disk::model::Model;
use headtime_disk::profile;
use headtime_disk::time::Dur;
use headtime_sched::admit::das::worst::WorstCase;

use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Run, RunError, Spec, Table, Test};

/// The experiment.
pub struct D1;

const fn apart(what: &'static str) -> Check {
    Check { what, unit: "ms", test: Test::AtMost(0.01) }
}

static SPEC: Spec = Spec {
    id: "D1",
    title: "Worst-case time of a request",
    source: "Reuther and Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset (2003), \
             equation 5, table 1",
    drive: "ultrastar36z15, barracuda36es2",
    workload: "none: requests of 64 KiB, reckoned with",
    claims: &[Claim {
        id: "D1",
        claim: "worst case w from table 1's parameters",
        paper: "29.69, 31.11 ms",
        rule: "to 0.01 ms",
        checks: &[
            apart("Ultrastar 36Z15, distance from the paper's"),
            apart("Barracuda 36ES2, distance from the paper's"),
        ],
        quick: true,
        note: "From the profiles of the same drives w is 30.94 and 32.56 ms: the table has both, term by term. There a write settles after \
               the longest seek, and the limits of what is chance in a profile (seeks, completions, the overlap of bus and media) are in \
               the sum, which the paper's parameters have in them as they were measured; and a read-ahead that has to stop for a command adds a change of tracks.",
    }],
    alone: false,
};

/// A drive of table 1: what the paper measured, and the w that it gives.
struct Measured {
    /// Its profile.
    drive: &'static str,
    /// Table 1's parameters.
    terms: WorstCase,
    /// Table 1's w, ms.
    worst_ms: f64,
}

/// Sectors of 64 KiB: table 1's m.
const SECTORS: u32 = 128;

/// Table 1.
fn table_1() -> [Measured; 2] {
    let us = Dur::from_us;
    let ultrastar = WorstCase {
        seek: us(7_180),
        turns: 5,
        turn: us(4_020),
        sectors: SECTORS,
        sector: us(10),
        overhead: us(70),
        skews: 1,
        skew: us(1_060),
        stop: Dur::ZERO,
        detours: Dur::ZERO,
        away: Dur::ZERO,
    };
    let barracuda =
        WorstCase { seek: us(11_360), turns: 2, turn: us(8_370), overhead: us(500), skew: us(1_230), ..ultrastar };
    [
        Measured { drive: "ultrastar36z15", terms: ultrastar, worst_ms: 29.69 },
        Measured { drive: "barracuda36es2", terms: barracuda, worst_ms: 31.11 },
    ]
}

impl Experiment for D1 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn steps(&self) -> u64 {
        1
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let mut f = Findings::default();
        let mut rows = Vec::new();
        let mut apart = Vec::new();
        for Measured { drive, terms, worst_ms } in table_1() {
            apart.push((terms.total().as_ms_f64() - worst_ms).abs());
            rows.push(row(drive, "table 1's parameters", &terms));
            rows.push(row(drive, "profile", &of_profile(drive)?));
        }
        f.figure("D1", &apart);
        f.tables.push(Table {
            name: "terms",
            columns: &[
                "drive",
                "from",
                "w_ms",
                "seek_ms",
                "turns",
                "turn_ms",
                "sectors",
                "sector_ms",
                "overhead_ms",
                "skews",
                "skew_ms",
                "stop_ms",
                "detours_ms",
                "recalibration_ms",
            ],
            rows,
        });
        run.progress.advance(1);
        Ok(f)
    }
}

fn of_profile(drive: &str) -> Result<WorstCase, RunError> {
    let fail = |reason: String| RunError { id: SPEC.id, reason };
    let profile = profile::builtin(drive).map_err(|e| fail(e.to_string()))?;
    let model = Model::new(&profile).map_err(|e| fail(e.to_string()))?;
    WorstCase::of(&profile, &model, SECTORS).map_err(|e| fail(e.to_string()))
}

fn row(drive: &str, from: &str, w: &WorstCase) -> Vec<Cell> {
    let ms = |d: Dur| Cell::from(d.as_ms_f64());
    vec![
        drive.into(),
        from.into(),
        ms(w.total()),
        ms(w.seek),
        f64::from(w.turns).into(),
        ms(w.turn),
        f64::from(w.sectors).into(),
        ms(w.sector),
        ms(w.overhead),
        f64::from(w.skews).into(),
        ms(w.skew),
        ms(w.stop),
        ms(w.detours),
        ms(w.away),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profiles_worst_cases_are_those_that_the_note_says() {
        for (m, ms) in table_1().into_iter().zip([30.94, 32.56]) {
            let worst = of_profile(m.drive).unwrap();
            assert!((worst.total().as_ms_f64() - ms).abs() < 0.005, "{}: {worst}", m.drive);
            assert!(SPEC.claims[0].note.contains(&ms.to_string()));
            // Nothing of the paper's sum is missing from ours.
            assert!(worst.total() >= m.terms.total() && worst.turns >= m.terms.turns);
        }
    }
}
