//! The basis of P1 to P7 and P9: a drive without a description, characterised from outside and
//! compared with the truth.
//!
//! The claims are headtime's own; methods and results follow Lumb, Schindler and Ganger (FAST
//! 2002), section 4.2, Schindler and Ganger (CMU-CS-99-176) and Reuther and Pohlack (2003),
//! sections 3.1 and 4.1. One characterisation of each drive serves all of them
//! ([`crate::common::characterised_drive`]).

use headtime_disk::compare::Row;

use crate::common::characterised_drive::{self, By, CharacterisedDrive, Found};
use crate::experiment::{Cell, Check, Claim, Findings, Length, Run, RunError, Spec, Table, Test};

/// The drives of a full run; the last is the 1 TB drive with a serpentine.
const DRIVES: [&str; 5] = ["atlas10k", "cheetah36es", "ultrastar36z15", "maxtor-7l250s0", "hitachi-7k1000c"];
/// Number of them in a short run.
const QUICK_DRIVES: usize = 2;
/// Steps of a run.
pub(super) const STEPS: u64 = DRIVES.len() as u64;
/// The drive of the time limit (P9).
pub(super) const SERPENTINE: &str = "hitachi-7k1000c";

const SOURCE: &str = "headtime's own claim; methods: Lumb, Schindler, Ganger (FAST 2002), section 4.2; Schindler, \
        Ganger (CMU-CS-99-176); Reuther, Pohlack (2003), sections 3.1 and 4.1";
const NAMES: &str = "atlas10k, cheetah36es, ultrastar36z15, maxtor-7l250s0, hitachi-7k1000c (quick: the first two)";
const WORKLOAD: &str = "characterisation by reads alone, of a virtual drive with the noise of its profile and a \
        spindle that is 41 ppm slow and wanders by 1 ppm";

/// One claim about characterised drives.
pub(super) struct ProfileComparison {
    pub(super) spec: &'static Spec,
    /// How the drives are characterised.
    pub(super) by: By,
    /// Judges one drive.
    pub(super) judge: fn(&CharacterisedDrive, &Found) -> Judged,
    /// Name and columns of its table; the drive's name is the first column.
    pub(super) table: (&'static str, &'static [&'static str]),
}

/// The judgement on one drive.
pub(super) struct Judged {
    /// One figure per check of the claim.
    pub(super) figures: Vec<f64>,
    /// Rows of the table, without the drive's name.
    pub(super) rows: Vec<Vec<Cell>>,
    /// A remark; may be empty. Without figures, so that it is the same for all seeds.
    pub(super) note: String,
}

/// The description of one claim, whose short form takes seconds.
pub(super) const fn spec(id: &'static str, title: &'static str, claims: &'static [Claim]) -> Spec {
    Spec { id, title, source: SOURCE, drive: NAMES, workload: WORKLOAD, claims, length: Length::Seconds, alone: false }
}

impl ProfileComparison {
    /// Characterises the drives, and judges the claim.
    pub(super) fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let drives = if run.quick { &DRIVES[..QUICK_DRIVES] } else { &DRIVES[..] };
        let known = characterised_drive::all(self.spec, run, drives, self.by)?;
        run.progress.advance((DRIVES.len() - drives.len()) as u64);
        let claim = &self.spec.claims[0];
        let mut f = Findings::default();
        let (mut figures, mut rows): (Vec<Vec<f64>>, _) = (Vec::new(), Vec::new());
        for drive in &known {
            let judged = match &drive.found {
                Ok(found) => (self.judge)(drive, found),
                Err(why) => Judged {
                    figures: vec![f64::NAN; claim.checks.len()],
                    rows: Vec::new(),
                    note: format!("nothing was found: {why}"),
                },
            };
            if !judged.note.is_empty() {
                f.notes.push((claim.id, format!("{}: {}.", drive.drive, judged.note)));
            }
            figures.push(judged.figures);
            rows.extend(judged.rows.into_iter().map(|r| [vec![drive.drive.into()], r].concat()));
        }
        let all: Vec<f64> =
            claim.checks.iter().enumerate().map(|(i, c)| over(c, figures.iter().map(|f| f[i]))).collect();
        f.figure(claim.id, &all);
        f.tables.push(Table { name: self.table.0, columns: self.table.1, rows });
        Ok(f)
    }
}

/// Over all drives: cases are summed, of differences the largest counts.
fn over(check: &Check, of: impl Iterator<Item = f64>) -> f64 {
    match check.test {
        Test::Never => of.sum(),
        _ => worst(of),
    }
}

/// The largest; NaN if one is.
pub(super) fn worst(of: impl Iterator<Item = f64>) -> f64 {
    // The maximum of nothing is unknown.
    of.reduce(|most, v| if most.is_nan() || v.is_nan() { f64::NAN } else { v.max(most) }).unwrap_or(f64::NAN)
}

/// The difference of a row of the comparison; NaN if it is missing.
pub(super) fn difference(found: &Found, what: &str) -> f64 {
    named(found, what).and_then(|r| r.difference).unwrap_or(f64::NAN)
}

/// A row of the comparison.
pub(super) fn named<'f>(found: &'f Found, what: &str) -> Option<&'f Row> {
    found.compared.rows.iter().find(|r| r.what == what)
}

/// Numbers as cells.
pub(super) fn numbers(values: &[f64]) -> Vec<Cell> {
    values.iter().map(|v| Cell::from(*v)).collect()
}

/// A row of a comparison as cells.
pub(super) fn compared(r: &Row) -> Vec<Cell> {
    let what = match r.surface {
        Some(s) => format!("{}, surface {s}", r.what),
        None => r.what.clone(),
    };
    let holds = match (r.allowed, r.holds) {
        (None, _) => "-",
        (Some(_), true) => "yes",
        (Some(_), false) => "no",
    };
    let texts = [r.group.to_string(), what, r.a.clone(), r.b.clone()].map(Cell::Text);
    let off = r.difference.map_or(Cell::from("-"), Cell::from);
    texts.into_iter().chain([off, r.unit.into(), holds.into(), Cell::Text(r.place.clone())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::characterisation::{
        p01_rotation_period, p02_tracks, p03_skews, p04_layout, p05_seek_table, p06_angles, p07_overheads, p09_duration,
    };
    use crate::common::characterised_drive::Subject;

    #[test]
    fn the_worst_of_figures_is_none_where_one_is_none() {
        assert_eq!(worst([1.0, 3.0, 2.0].into_iter()), 3.0);
        assert!(worst([1.0, f64::NAN, 2.0].into_iter()).is_nan());
        assert!(worst([f64::NAN, 2.0].into_iter()).is_nan());
        assert!(worst([2.0, f64::NAN].into_iter()).is_nan());
    }

    #[test]
    fn tables_have_as_many_columns_as_their_rows_have_cells() {
        let known =
            characterised_drive::of(p01_rotation_period::COMPARISON.spec, 1, Subject::read("cheetah36es")).unwrap();
        let found = known.found.as_ref().unwrap();
        for claim in [
            &p01_rotation_period::COMPARISON,
            &p02_tracks::COMPARISON,
            &p03_skews::COMPARISON,
            &p04_layout::COMPARISON,
            &p05_seek_table::COMPARISON,
            &p06_angles::COMPARISON,
            &p07_overheads::COMPARISON,
            &p09_duration::COMPARISON,
        ] {
            let judged = (claim.judge)(&known, found);
            assert_eq!(judged.figures.len(), claim.spec.claims[0].checks.len(), "{}", claim.spec.id);
            assert!(!judged.rows.is_empty(), "{}", claim.spec.id);
            // The drive's name is added in front.
            assert!(judged.rows.iter().all(|r| r.len() + 1 == claim.table.1.len()), "{}", claim.spec.id);
        }
    }
}
