//! F7: the foreground cost of filling gaps, and the background cost of conservatism.
//!
//! Lumb, Schindler and Ganger (FAST 2002), section 5.3 and figure 9.

use headtime_disk::DriveNoise;

use crate::common::figure9::{self, Lines};
use crate::common::scans::Scan;
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Test};

/// The experiment.
pub(crate) const F7: Experiment =
    Experiment { spec: &SPEC, steps: figure9::STEPS + figure9::LINE_STEPS + 2 * WAITING_STEPS, run };

static SPEC: Spec = Spec {
    id: "F7",
    title: "Foreground loss and free bandwidth over conservatism",
    source: "Lumb, Schindler, Ganger, Freeblock Scheduling Outside of Disk Firmware (FAST 2002), section 5.3, figure 9",
    drive: "atlas10k",
    workload: "oltp under SSTF, SPTF-SW60% and SPTF; one read of the whole disk in the background in units of 4 KiB, \
            to its end",
    claims: &[
        Claim {
            id: "F7a",
            claim: "foreground loss at 0.3 ms conservatism",
            paper: "under 2%",
            rule: "under 2% with ten always waiting, all three orders; p99 at most 2% higher",
            checks: &[
                Check { what: "largest loss of the three orders, drive that errs", unit: "%", test: Test::Below(2.0) },
                Check { what: "p99 above that without filling, drive that errs", unit: "%", test: Test::AtMost(2.0) },
                Check { what: "largest loss of the three orders", unit: "%", test: Test::Below(2.0) },
                Check { what: "p99 above that without filling", unit: "%", test: Test::AtMost(2.0) },
            ],
            quick: true,
            note: LOSS,
        },
        Claim {
            id: "F7b",
            claim: "foreground loss at 0.4 ms conservatism",
            paper: "under 0.6%",
            rule: "under 0.6% with ten always waiting, all three orders; p99 at most 2% higher",
            checks: &[
                Check { what: "largest loss of the three orders, drive that errs", unit: "%", test: Test::Below(0.6) },
                Check { what: "p99 above that without filling, drive that errs", unit: "%", test: Test::AtMost(2.0) },
                Check { what: "largest loss of the three orders", unit: "%", test: Test::Below(0.6) },
                Check { what: "p99 above that without filling", unit: "%", test: Test::AtMost(2.0) },
            ],
            quick: true,
            note: LOSS,
        },
        Claim {
            id: "F7c",
            claim: "free bandwidth given up at 0.3 and 0.4 ms",
            paper: "3% and 10%",
            rule: "at most 8% and 15% against the best point, SPTF-SW60%, drive that errs",
            checks: &[
                Check {
                    what: "given up against the best point, 0.3 ms, drive that errs",
                    unit: "%",
                    test: Test::AtMost(8.0),
                },
                Check {
                    what: "given up against the best point, 0.4 ms, drive that errs",
                    unit: "%",
                    test: Test::AtMost(15.0),
                },
            ],
            quick: true,
            note: GIVEN_UP,
        },
    ],
    length: Length::Minutes,
    alone: false,
};

/// What the foreground loses.
const LOSS: &str = "With ten always waiting nothing arrives late, so late choice hides no loss. A drive that is as its \
        profile has it loses 0.1% at 0.3 ms and 0.4 ms, and p99 is at most 0.9% higher: its moves come within some 20 \
        us of its table (sd). What fails is the drive that errs as a measured one did: 1.9 to 2.3% and p99 2.4 to 3.7% \
        higher at 0.3 ms, 0.8 to 1.0% and p99 0.8 to 1.3% higher at 0.4 ms. Its errors have a longer tail than \
        constant margins of this size; what is late is counted in the table. Learned margins, headtime's default, lose \
        0.8% on such a drive beside oltp, where late choice helps (docs/freeblock.md, \"Conservatism\").";

/// Why it is judged on a drive that errs.
const GIVEN_UP: &str = "Over whole scans; blocks which foreground requests read anyway do not count. The drive's seeks \
        differ from the scheduler's table so that as many requests come a turn late and early as in the paper's figure \
        7. Where plans fail, a turn that is missed takes time from the background, too, and conservatism gives back \
        much of what it takes: on this drive at none and 0.1 ms filling stops by itself. So the best point is 0.2 ms, \
        at which the foreground loses 4 to 5%. On a drive without such errors (table figure_9) the direct effect shows \
        undiminished, as in \"the steady decline of the simulation line\" of the paper.";

fn run(run: &Run) -> Result<Findings, RunError> {
    let lines = figure9::lines(&SPEC, run)?;
    let mut f = Findings::default();
    // With ten always outstanding no arrival makes up for a gap's cost.
    let waiting = |noise| figure9::ten_active(&SPEC, run, noise, &WAITING_US);
    let (errs, clean) = (waiting(DriveNoise::Measured)?, waiting(DriveNoise::Profile)?);
    for (claim, us) in [("F7a", 300), ("F7b", 400)] {
        let loss = |lines: &[Lines]| largest(lines, |l| l.at(us).loss(&l.without));
        let p99 = |lines: &[Lines]| largest(lines, |l| l.at(us).p99_rise(&l.without));
        f.figure(claim, &[loss(&errs), p99(&errs), loss(&clean), p99(&clean)]);
    }
    f.tables.push(figure9::table("ten_always_waiting_drive_that_errs", &errs));
    f.tables.push(figure9::table("ten_always_waiting", &clean));
    f.tables.push(figure9::table("figure_9", &lines));
    f.charts.extend(figure9::charts(&lines));
    let (name, order) = figure9::ORDERS[1];
    let scan = Scan { noise: DriveNoise::Measured, ..figure9::point(run, order) };
    let errs = figure9::line(&SPEC, run, name, scan, &figure9::US)?;
    f.figure("F7c", &[300, 400].map(|us| errs.given_up(us)));
    f.tables.push(figure9::table("a_drive_that_errs_as_the_papers", &[errs]));
    Ok(f)
}

/// Conservatisms with ten always outstanding, us.
const WAITING_US: [u64; 2] = [300, 400];
const WAITING_STEPS: u64 = 3 * (1 + WAITING_US.len() as u64);

fn largest(lines: &[Lines], value: impl Fn(&Lines) -> f64) -> f64 {
    lines.iter().map(value).fold(f64::NEG_INFINITY, f64::max)
}
