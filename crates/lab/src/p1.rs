//! P1 to P7 and P9: a drive without a description, characterised from outside and compared with the
//! truth.
//!
//! The claims are headtime's own; methods and results follow Lumb, Schindler and Ganger (FAST
//! 2002), section 4.2, Schindler and Ganger (CMU-CS-99-176) and Reuther and Pohlack (2003),
//! sections 3.1 and 4.1. One characterisation of each drive serves all of them
//! ([`crate::characterised`]).

use headtime_disk::compare::{BOUNDARIES, OTHER_SECTORS, Row, SKEWS};

use crate::characterised::{self, By, Characterised, Found};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Run, RunError, Spec, Table, Test};
use crate::extracted::{cylinders, is_track_right, seeks};

/// The drives of a full run; the last is the 1 TB drive with a serpentine.
const DRIVES: [&str; 5] = ["atlas10k", "cheetah36es", "ultrastar36z15", "maxtor-7l250s0", "hitachi-7k1000c"];
/// Number of them in a short run.
const QUICK: usize = 2;
/// The drive of the time limit (P9).
const SERPENTINE: &str = "hitachi-7k1000c";

const SOURCE: &str = "headtime's own claim; methods: Lumb, Schindler, Ganger (FAST 2002), section 4.2; Schindler, \
        Ganger (CMU-CS-99-176); Reuther, Pohlack (2003), sections 3.1 and 4.1";
const NAMES: &str = "atlas10k, cheetah36es, ultrastar36z15, maxtor-7l250s0, hitachi-7k1000c (quick: the first two)";
const WORKLOAD: &str = "characterisation by reads alone, of a virtual drive with the noise of its profile and a \
        spindle that is 41 ppm slow and wanders by 1 ppm";

/// One claim about characterised drives.
pub struct OfDrives {
    spec: &'static Spec,
    /// How the drives are characterised.
    by: By,
    judge: fn(&Characterised, &Found) -> Judged,
    /// Name and columns of its table; the drive's name is the first column.
    table: (&'static str, &'static [&'static str]),
}

/// The judgement on one drive.
struct Judged {
    /// One figure per check of the claim.
    figures: Vec<f64>,
    /// Rows of the table, without the drive's name.
    rows: Vec<Vec<Cell>>,
    /// A remark; may be empty. Without figures, so that it is the same for all seeds.
    note: String,
}

const fn spec(id: &'static str, title: &'static str, claims: &'static [Claim]) -> Spec {
    Spec { id, title, source: SOURCE, drive: NAMES, workload: WORKLOAD, claims, alone: false }
}

/// The rotation period.
pub static P1: OfDrives = OfDrives {
    spec: &spec(
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
    ),
    by: By::Reads,
    judge: period,
    table: ("period", &["drive", "what", "truth", "found", "off_ppm", "minutes", "foretold_by_the_probe"]),
};

fn period(known: &Characterised, found: &Found) -> Judged {
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

/// Tracks.
pub static P2: OfDrives = OfDrives {
    spec: &spec(
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
                   surface follow. Which surface a track is on is P4. Sectors of a track are what goes round in a \
                   turn, spare ones and slipped ones included.",
        }],
    ),
    by: By::Reads,
    judge: boundaries,
    table: ("tracks", &["drive", "tracks", "begin_elsewhere", "other_sectors", "where"]),
};

fn boundaries(_: &Characterised, found: &Found) -> Judged {
    let (elsewhere, other) = (difference(found, BOUNDARIES), difference(found, OTHER_SECTORS));
    let said = named(found, BOUNDARIES).map_or((String::new(), String::new()), |r| (r.a.clone(), r.place.clone()));
    let rows = vec![vec![Cell::Text(said.0), elsewhere.into(), other.into(), Cell::Text(said.1.clone())]];
    Judged { figures: vec![elsewhere, other], rows, note: said.1 }
}

/// Skews.
pub static P3: OfDrives = OfDrives {
    spec: &spec(
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
    ),
    by: By::Reads,
    judge: skews,
    table: ("skews", &["drive", "track_skew_off_sectors", "cylinder_skew_off_sectors", "zone_to_zone_off_sectors"]),
};

fn skews(known: &Characterised, found: &Found) -> Judged {
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

/// Surfaces.
pub static P4: OfDrives = OfDrives {
    spec: &spec(
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
    ),
    by: By::Reads,
    judge: layout,
    table: ("compared", &["drive", "group", "what", "truth", "found", "off", "unit", "holds", "place"]),
};

fn layout(_: &Characterised, found: &Found) -> Judged {
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

/// Seeks.
pub static P5: OfDrives = OfDrives {
    spec: &spec(
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
    ),
    by: By::Reads,
    judge: seek_table,
    table: (
        "seeks",
        &["drive", "distance", "truth_us", "found_us", "off_us", "truth_at_5_percent_us", "truth_at_95_percent_us"],
    ),
};

fn seek_table(known: &Characterised, found: &Found) -> Judged {
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

/// Angles.
pub static P6: OfDrives = OfDrives {
    spec: &spec(
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
    ),
    by: By::Reads,
    judge: angles,
    table: ("angles", &["drive", "largest_off_us", "where"]),
};

fn angles(_: &Characterised, found: &Found) -> Judged {
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

/// Electronics.
pub static P7: OfDrives = OfDrives {
    spec: &spec(
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
    ),
    by: By::Hours,
    judge: electronics,
    table: ("overheads", &["drive", "group", "what", "truth", "found", "off", "unit", "holds", "place"]),
};

fn electronics(_: &Characterised, found: &Found) -> Judged {
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

/// The duration.
pub static P9: OfDrives = OfDrives {
    spec: &spec(
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
    ),
    by: By::Reads,
    judge: |known, found| Judged {
        figures: if known.drive == SERPENTINE { vec![known.minutes] } else { vec![0.0] },
        rows: vec![vec![known.minutes.into(), Cell::Text(found.said.clone())]],
        note: String::new(),
    },
    table: ("time", &["drive", "minutes", "foretold_by_the_probe"]),
};

impl Experiment for OfDrives {
    fn spec(&self) -> &'static Spec {
        self.spec
    }

    fn steps(&self) -> u64 {
        DRIVES.len() as u64
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let drives = if run.quick { &DRIVES[..QUICK] } else { &DRIVES[..] };
        let known = characterised::all(self.spec, run, drives, self.by)?;
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
fn worst(of: impl Iterator<Item = f64>) -> f64 {
    // The maximum of nothing is unknown.
    of.reduce(|most, v| if most.is_nan() || v.is_nan() { f64::NAN } else { v.max(most) }).unwrap_or(f64::NAN)
}

/// The difference of a row of the comparison; NaN if it is missing.
fn difference(found: &Found, what: &str) -> f64 {
    named(found, what).and_then(|r| r.difference).unwrap_or(f64::NAN)
}

fn named<'f>(found: &'f Found, what: &str) -> Option<&'f Row> {
    found.compared.rows.iter().find(|r| r.what == what)
}

fn numbers(values: &[f64]) -> Vec<Cell> {
    values.iter().map(|v| Cell::from(*v)).collect()
}

/// A row of a comparison as cells.
fn compared(r: &Row) -> Vec<Cell> {
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
    use crate::characterised::Which;

    #[test]
    fn the_worst_of_figures_is_none_where_one_is_none() {
        assert_eq!(worst([1.0, 3.0, 2.0].into_iter()), 3.0);
        assert!(worst([1.0, f64::NAN, 2.0].into_iter()).is_nan());
        assert!(worst([f64::NAN, 2.0].into_iter()).is_nan());
        assert!(worst([2.0, f64::NAN].into_iter()).is_nan());
    }

    #[test]
    fn tables_have_as_many_columns_as_their_rows_have_cells() {
        let known = characterised::of(P1.spec, 1, Which::read("cheetah36es")).unwrap();
        let found = known.found.as_ref().unwrap();
        for claim in [&P1, &P2, &P3, &P4, &P5, &P6, &P7, &P9] {
            let judged = (claim.judge)(&known, found);
            assert_eq!(judged.figures.len(), claim.spec.claims[0].checks.len(), "{}", claim.spec.id);
            assert!(!judged.rows.is_empty(), "{}", claim.spec.id);
            // The drive's name is added in front.
            assert!(judged.rows.iter().all(|r| r.len() + 1 == claim.table.1.len()), "{}", claim.spec.id);
        }
    }
}
