//! D1: the worst-case service time.
//!
//! Reuther and Pohlack (2003), equation 5 and table 1: with the paper's measured parameters of its
//! two drives, and with those of our profiles. The sum is compared with the longest commands of
//! virtual drives under a load that provokes them ([`super::limit_load`]): drives at the limits of
//! their profiles, and drives whose settling and seeks are drawn by seed, with n found as in D13
//! ([`super::late_settling`]).

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Model};
use headtime_sched::streams::{WorstCase, WorstCaseTable};

use super::late_settling::{REQUESTS, SearchLoad, Truth, believed, by_chance, found};
use super::limit_load::{at_its_limits, busy_times};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D1: Experiment = Experiment { spec: &SPEC, steps: 2 + DRAWN_DRIVES, run };

const fn apart(what: &'static str) -> Check {
    Check { what, unit: "ms", test: Test::AtMost(0.01) }
}

static SPEC: Spec = Spec {
    id: "D1",
    title: "Worst-case time of a request",
    source: "Reuther and Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
            (2003), equation 5, table 1",
    drive: "ultrastar36z15, barracuda36es2; 8 drives like them with settling and seeks drawn by seed",
    workload: "reads and writes of 64 KiB from edge to edge, two at the drive or one after a pause",
    claims: &[
        Claim {
            id: "D1",
            claim: "worst case w from table 1's parameters",
            paper: "29.69, 31.11 ms",
            rule: "to 0.01 ms",
            checks: &[
                apart("Ultrastar 36Z15, distance from the paper's"),
                apart("Barracuda 36ES2, distance from the paper's"),
            ],
            quick: true,
            note: "From the profiles of the same drives w is 30.94 and 32.56 ms: the table has both, term by term. \
                   There a write settles after the longest seek, and the limits of what is chance in a profile \
                   (seeks, completions, the overlap of bus and media) are in the sum, which the paper's parameters \
                   have in them as they were measured; and a read-ahead that has to stop for a command adds a change \
                   of tracks.",
        },
        Claim {
            id: "D1b",
            claim: "w from a profile against the longest command of a drive that is at the profile's limits",
            paper: "-",
            rule: "never shorter; the longest command takes at least 95% of it",
            checks: &[
                Check { what: "commands that took longer than w, both drives", unit: "commands", test: Test::Never },
                Check {
                    what: "the longest command, Ultrastar 36Z15",
                    unit: "% of w",
                    test: Test::AtLeast(MIN_SHARE_PERCENT),
                },
                Check {
                    what: "the longest command, Barracuda 36ES2",
                    unit: "% of w",
                    test: Test::AtLeast(MIN_SHARE_PERCENT),
                },
            ],
            quick: true,
            note: "The head fails to settle as often as it may after every move, and seeks err by as much as they may.",
        },
        Claim {
            id: "D1c",
            claim: "w with n as it was found, on drives whose limits are not known",
            paper: "-",
            rule: "longer commands only as often as what is known of n allows; with n of the profile at least 1 is \
                   longer",
            checks: &[
                Check {
                    what: "drives of 8 on which more commands took longer than chance at 99% explains",
                    unit: "cases",
                    test: Test::Never,
                },
                Check {
                    what: "commands that took longer than w with n of the profile, 8 drives",
                    unit: "commands",
                    test: Test::AtLeast(1.0),
                },
            ],
            quick: true,
            note: "n is found by 100,000 requests of 64 KiB, and 20,000 others are held against w. Single sectors, \
                   as in D13, do not show what is lost at the end of a track when a move takes longer than its skew, \
                   and that is a turn more where moves differ by more than the profile says.",
        },
    ],
    length: Length::Seconds,
    alone: false,
};

/// A drive of table 1: the paper's parameters, and its w.
struct Measured {
    /// Its profile.
    drive: &'static str,
    /// Table 1's parameters.
    terms: WorstCase,
    /// Table 1's w, ms.
    worst_ms: f64,
}

/// Required share of w, in percent. If w omits nothing and counts nothing twice, the remainder is
/// what cannot coincide: a read-ahead that has to stop, settling before a write and the largest
/// variation of each term.
const MIN_SHARE_PERCENT: f64 = 95.0;
/// Commands per driven drive.
const COMMANDS_PER_DRIVE: u64 = 20_000;
/// Number of drives with settling drawn by seed.
const DRAWN_DRIVES: u64 = 8;

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

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let mut rows = Vec::new();
    let mut apart = Vec::new();
    let (mut over, mut tight, mut longest) = (0, Vec::new(), Vec::new());
    let mut beliefs = Vec::new();
    for Measured { drive, terms, worst_ms } in table_1() {
        let belief = profile::builtin(drive).map_err(|e| failed(&SPEC, e))?;
        let worst = believed(&SPEC, &belief, SECTORS)?;
        apart.push((terms.total().as_ms_f64() - worst_ms).abs());
        rows.push(row(drive, "table 1's parameters", &terms));
        rows.push(row(drive, "profile", &worst));
        let took =
            busy_times(&SPEC, &at_its_limits(&belief), SECTORS, COMMANDS_PER_DRIVE, moves_on(&belief)?, run.seed)?;
        over += took.over(worst.total());
        tight.push(100.0 * took.longest().as_ms_f64() / worst.total().as_ms_f64());
        let n = f64::from(worst.turns);
        longest.push(compared(drive, [n, n], took.longest(), worst.total(), [took.over(worst.total()); 2]));
        beliefs.push(belief);
        run.progress.advance(1);
    }
    f.figure("D1", &apart);
    f.figure("D1b", &[over as f64, tight[0], tight[1]]);
    let (mut beyond, mut short) = (0, 0);
    for number in 0..DRAWN_DRIVES {
        let d = drawn(run, &beliefs[(number % 2) as usize], number)?;
        beyond += u64::from(d.over > d.by_chance);
        short += d.over_believed;
        longest.push(d.row);
        run.progress.advance(1);
    }
    f.figure("D1c", &[beyond as f64, short as f64]);
    f.tables.push(Table { name: "longest", columns: LONGEST_COLUMNS, rows: longest });
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
    Ok(f)
}

/// Returns how long the drive may move its arm after a completed command.
fn moves_on(profile: &Profile) -> Result<Dur, RunError> {
    let model = Model::new(profile).map_err(|e| failed(&SPEC, e))?;
    Ok(WorstCaseTable::of(profile, &model, SECTORS).map_err(|e| failed(&SPEC, e))?.moves_on())
}

/// A drawn drive and its results.
struct Drawn {
    /// Commands longer than w with the n found, how many chance explains, and the same with the
    /// profile's n.
    over: u64,
    by_chance: u64,
    over_believed: u64,
    row: Vec<Cell>,
}

fn drawn(run: &Run, belief: &Profile, number: u64) -> Result<Drawn, RunError> {
    let truth = Truth::drawn(belief, run.seed, number);
    let settling = found(&SPEC, belief, &truth, (SearchLoad::Requests(SECTORS), REQUESTS), run.seed)?;
    let worst = believed(&SPEC, belief, SECTORS)?;
    let with_n = WorstCase { turns: settling.turns(), ..worst };
    let took = busy_times(&SPEC, &truth.profile, SECTORS, COMMANDS_PER_DRIVE, moves_on(belief)?, run.seed)?;
    let (over, over_believed) = (took.over(with_n.total()), took.over(worst.total()));
    let name = format!("{} {number}", belief.name);
    let turns = [with_n.turns, truth.turns()].map(f64::from);
    let row = compared(&name, turns, took.longest(), with_n.total(), [over, over_believed]);
    let by_chance = by_chance(COMMANDS_PER_DRIVE as f64 * settling.later_ppm() / 1e6);
    Ok(Drawn { over, by_chance, over_believed, row })
}

const LONGEST_COLUMNS: &[&str] = &[
    "drive",
    "n_found",
    "n_true",
    "longest_ms",
    "w_ms",
    "longest_of_w_percent",
    "commands_over_w",
    "commands_over_w_of_the_profile",
];

fn compared(drive: &str, turns: [f64; 2], longest: Dur, w: Dur, over: [u64; 2]) -> Vec<Cell> {
    let (longest, w) = (longest.as_ms_f64(), w.as_ms_f64());
    let figures = [turns[0], turns[1], longest, w, 100.0 * longest / w, over[0] as f64, over[1] as f64];
    std::iter::once(Cell::from(drive)).chain(figures.map(Cell::from)).collect()
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
            let worst = believed(&SPEC, &profile::builtin(m.drive).unwrap(), SECTORS).unwrap();
            assert!((worst.total().as_ms_f64() - ms).abs() < 0.005, "{}: {worst}", m.drive);
            assert!(SPEC.claims[0].note.contains(&ms.to_string()));
            // Our sum has all terms of the paper's.
            assert!(worst.total() >= m.terms.total() && worst.turns >= m.terms.turns);
        }
    }
}
