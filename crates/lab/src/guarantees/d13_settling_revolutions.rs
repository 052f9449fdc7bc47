//! D13: the number of revolutions until the head has settled, found by provocation.
//!
//! Reuther and Pohlack (2003), section 4.1, "Parameter n": requests to the innermost and the
//! outermost region of the disk in turn, 100,000 and more, and n computed from equation 5. It is
//! found on drives whose figures are drawn by seed and unknown to the search, and compared with
//! them ([`super::late_settling`]); and on the paper's two drives. The procedure is
//! [`headtime_probe::settling`].

use headtime_disk::profile::{self, Profile};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_probe::settling::Settling;

use super::late_settling::{REQUESTS, SearchLoad, Truth, found, implied_again_ppm};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D13: Experiment = Experiment { spec: &SPEC, steps: 4 + DRAWN_DRIVES, run };

static SPEC: Spec = Spec {
    id: "D13",
    title: "Turns until the head has settled, provoked",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
            (2003), section 4.1, table 1",
    drive: "ultrastar36z15 and barracuda36es2; and 24 drives like them with settling and seeks drawn by seed",
    workload: "reads of one sector in the first and the last two hundredth of the disk in turn, two at the drive",
    claims: &[
        Claim {
            id: "D13a",
            claim: "n of drives whose settling is not known to the search, from response times alone",
            paper: "-",
            rule: "never more than the drive's own; more than the profile's for 1 drive or more",
            checks: &[
                Check { what: "drives of 24 with a smaller n than was found", unit: "cases", test: Test::Never },
                Check {
                    what: "drives of 24 whose n was found above that of the profile",
                    unit: "drives",
                    test: Test::AtLeast(1.0),
                },
            ],
            quick: true,
            note: "100,000 requests for each drive. A drive needs 0 to 7 extra turns, fails to settle in 10 to \
                   100,000 of a million moves, after a failure again in 0 to 90%, and its seeks differ by up to four \
                   times what the profile says.",
        },
        Claim {
            id: "D13b",
            claim: "what that n is, Barracuda 36ES2",
            paper: "2",
            rule: "2; less where the head always settles",
            checks: &[
                Check { what: "n", unit: "turns", test: Test::Between(2.0, 2.0) },
                Check {
                    what: "n of the same drive where no head fails to settle",
                    unit: "turns",
                    test: Test::Below(2.0),
                },
            ],
            quick: false,
            note: "1,000,000 requests. That the drive needs no more than one turn more is the profile's, from the \
                   paper's n: what is shown is that the search finds it.",
        },
        Claim {
            id: "D13c",
            claim: "what that n is, Ultrastar 36Z15",
            paper: "5",
            rule: "5; less where failures are independent",
            checks: &[
                Check { what: "n", unit: "turns", test: Test::Between(5.0, 5.0) },
                Check {
                    what: "n of the same drive where failures are independent",
                    unit: "turns",
                    test: Test::Below(5.0),
                },
            ],
            quick: false,
            note: "1,000,000 requests, to a drive whose failures come together. Independent failures at the \
                   profile's 10 in a million give four in succession once in 10^20 moves, and the paper's drive met \
                   that in about 100,000 requests. How its failures come together is not published. Assumed is the \
                   least that makes the paper's observation as likely as not: after a failure the next has a chance \
                   of 88.5%. That there are no more than four is the profile's, from the paper's n.",
        },
        Claim {
            id: "D13d",
            claim: "with which confidence n is known: n or more, and what share of moves waits longer, at 99%",
            paper: "-",
            rule: "wrong for at most 2 drives of 24 (chance); for at least 3 when made for one turn less",
            checks: &[
                Check {
                    what: "drives of 24 that wait longer than that more often than stated",
                    unit: "drives",
                    test: Test::AtMost(WRONG_BY_CHANCE),
                },
                Check {
                    what: "drives of 24 of which the same statement is wrong when it is made for one turn less than \
                           was found",
                    unit: "drives",
                    test: Test::AtLeast(1.0 + WRONG_BY_CHANCE),
                },
            ],
            quick: true,
            note: "None in N requests: at most 4.6 / N of them with a confidence of 99%. That is 46 in a million for \
                   100,000 requests, so an n from the paper's search is a lower bound, and commands beyond w have to \
                   be counted for as long as a drive runs.",
        },
    ],
    length: Length::Seconds,
    alone: false,
};

/// Drives with settling drawn by seed, half of each kind.
const DRAWN_DRIVES: u64 = 24;
/// A statement with a confidence of 99% is wrong for two of 24 drives or fewer with a probability
/// of 99.8%, for one or fewer with 97.6%.
const WRONG_BY_CHANCE: f64 = 2.0;

/// The result on one drive.
struct Measured {
    name: String,
    /// n of the scheduler's profile.
    believed: u32,
    truth: Truth,
    found: Settling,
}

impl Measured {
    /// Returns whether more moves than the search's bound wait longer than `turns` revolutions.
    fn contradicts(&self, turns: u32) -> bool {
        self.truth.later_ppm(turns) > self.found.later_ppm()
    }
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let drives = ["ultrastar36z15", "barracuda36es2"];
    let beliefs = drives.map(|d| profile::builtin(d).map_err(|e| failed(&SPEC, e)));
    let beliefs = beliefs.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut papers = Vec::new();
    let without: [fn(&Profile) -> Truth; 2] = [Truth::independent, Truth::settled];
    for ((belief, claim), without) in beliefs.iter().zip(["D13c", "D13b"]).zip(without) {
        let requests = run.length(10 * REQUESTS, REQUESTS);
        let m = measure(run, belief, belief.name.clone(), as_the_paper_met_it(belief), requests)?;
        let less = measure(run, belief, belief.name.clone(), without(belief), requests)?;
        f.figure(claim, &[&m, &less].map(|m| f64::from(m.found.turns())));
        papers.push(m);
    }
    let mut drawn = Vec::new();
    for number in 0..DRAWN_DRIVES {
        let belief = &beliefs[(number % 2) as usize];
        let truth = Truth::drawn(belief, run.seed, number);
        drawn.push(measure(run, belief, format!("{} {number}", belief.name), truth, REQUESTS)?);
    }
    let count = |is: &dyn Fn(&Measured) -> bool| drawn.iter().filter(|m| is(m)).count() as f64;
    let exact = count(&|m| m.found.turns() == m.truth.turns());
    f.figure("D13a", &[count(&|m| m.found.turns() > m.truth.turns()), count(&|m| m.found.turns() > m.believed)]);
    f.figure(
        "D13d",
        &[count(&|m| m.contradicts(m.found.turns())), count(&|m| m.contradicts(m.found.turns().saturating_sub(1)))],
    );
    f.notes.push(("D13a", format!("Seed {}: n is found exactly for {exact} drives.", run.seed)));
    f.tables.push(Table { name: "drives", columns: COLUMNS, rows: papers.iter().chain(&drawn).map(row).collect() });
    let rows = papers.iter().chain(&drawn).flat_map(counted).collect();
    f.tables.push(Table { name: "turns", columns: &["drive", "n_of_profile", "turns", "requests"], rows });
    f.charts.push(Chart::Xy(XyChart {
        title: "Requests from one edge of the disk to the other, by the turns they waited at most".into(),
        subtitle: "The head comes to a random angle, so all wait up to one turn; more wait only those whose head \
                did not settle."
            .into(),
        x: Axis::range("turns", 0.0, 6.0),
        y: Axis::log("share of requests, %"),
        series: papers.iter().map(line).collect(),
    }));
    Ok(f)
}

/// A profile's drive with failures that occur together as often as on the paper's drive.
fn as_the_paper_met_it(profile: &Profile) -> Truth {
    let noise = &profile.noise;
    Truth::together(profile, implied_again_ppm(REQUESTS, noise.settle_retry_ppm, noise.settle_retry_turns))
}

fn measure(run: &Run, belief: &Profile, name: String, truth: Truth, requests: u64) -> Result<Measured, RunError> {
    let found = found(&SPEC, belief, &truth, (SearchLoad::Sectors, requests), run.seed)?;
    run.progress.advance(1);
    Ok(Measured { name, believed: 1 + belief.noise.settle_retry_turns, truth, found })
}

const COLUMNS: &[&str] = &[
    "drive",
    "n_of_profile",
    "n_true",
    "n_found",
    "requests",
    "longer_at_most_ppm",
    "longer_true_ppm",
    "fails_ppm",
    "fails_again_ppm",
    "seeks_differ_us",
];

fn row(m: &Measured) -> Vec<Cell> {
    let noise = &m.truth.profile.noise;
    let figures = [
        f64::from(m.believed),
        f64::from(m.truth.turns()),
        f64::from(m.found.turns()),
        m.found.requests() as f64,
        m.found.later_ppm(),
        m.truth.later_ppm(m.found.turns()),
        f64::from(noise.settle_retry_ppm),
        noise.settle_retry_again_ppm.map_or(f64::NAN, f64::from),
        1e3 * noise.seek_max.as_ms_f64(),
    ];
    std::iter::once(Cell::from(&*m.name)).chain(figures.map(Cell::from)).collect()
}

fn counted(m: &Measured) -> Vec<Vec<Cell>> {
    let counts = m.found.counts().iter().enumerate();
    let row = |(turns, n): (usize, &u64)| {
        vec![Cell::from(&*m.name), f64::from(m.believed).into(), (turns as f64).into(), (*n as f64).into()]
    };
    counts.map(row).collect()
}

fn line(m: &Measured) -> Series {
    let all = m.found.requests() as f64;
    let points = m.found.counts().iter().enumerate().map(|(turns, n)| (turns as f64, 100.0 * *n as f64 / all));
    Series { name: m.name.clone(), style: Style::Marked, points: points.collect() }
}
