//! F7: what filling gaps costs the foreground, and what conservatism costs the background.
//!
//! Lumb, Schindler and Ganger (FAST 2002), section 5.3 and figure 9.

use crate::experiment::{Check, Claim, Experiment, Findings, Run, RunError, Spec, Test};
use crate::figure9::{self, Lines};
use crate::scans::{Errors, Scan};

/// The experiment.
pub struct F7;

static SPEC: Spec = Spec {
    id: "F7",
    title: "Foreground loss and free bandwidth over conservatism",
    source: "Lumb, Schindler, Ganger, Freeblock Scheduling Outside of Disk Firmware (FAST 2002), section 5.3, figure 9",
    drive: "atlas10k",
    workload: "oltp under SSTF, SPTF-SW60% and SPTF; one read of the whole disk in the background in units of 4 KiB; the first ten \
               minutes of it",
    claims: &[
        Claim {
            id: "F7a",
            claim: "foreground loss at 0.3 ms conservatism",
            paper: "under 2%",
            rule: "under 2%, all three orders",
            checks: &[Check { what: "largest loss of the three orders", unit: "%", test: Test::Below(2.0) }],
            quick: true,
            note: GAIN,
        },
        Claim {
            id: "F7b",
            claim: "foreground loss at 0.4 ms conservatism",
            paper: "under 0.6%",
            rule: "under 0.6%",
            checks: &[Check { what: "largest loss of the three orders", unit: "%", test: Test::Below(0.6) }],
            quick: true,
            note: GAIN,
        },
        Claim {
            id: "F7c",
            claim: "free bandwidth given up at 0.3 and 0.4 ms",
            paper: "3% and 10%",
            rule: "at most 5% and 12%",
            checks: &[
                Check { what: "most given up of the three orders, 0.3 ms", unit: "%", test: Test::AtMost(5.0) },
                Check { what: "most given up of the three orders, 0.4 ms", unit: "%", test: Test::AtMost(12.0) },
            ],
            quick: true,
            note: "Given up of what the same line of the figure has at no conservatism. PENDING",
        },
    ],
    alone: false,
};

/// Why the foreground does not lose.
const GAIN: &str = "A loss below zero is a gain: with a command of its own in the gap, the request behind the one that waits for its \
                    gap is chosen that much later, and the order has more requests to choose from. The drive's moves come within some 20 us of its \
                    table (sd), so that nothing is late from 0.1 ms on; the paper's came a turn late in 1.8% of its requests and needed 0.3 \
                    to 0.4 ms.";

impl Experiment for F7 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn steps(&self) -> u64 {
        figure9::STEPS + figure9::LINE_STEPS
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let lines = figure9::lines(&SPEC, run)?;
        let mut f = Findings::default();
        f.figure("F7a", &[largest(&lines, |l| l.at(300).loss(&l.without))]);
        f.figure("F7b", &[largest(&lines, |l| l.at(400).loss(&l.without))]);
        f.figure("F7c", &[largest(&lines, |l| l.given_up(300)), largest(&lines, |l| l.given_up(400))]);
        f.tables.push(figure9::table("figure_9", &lines));
        f.charts.extend(figure9::charts(&lines));
        if run.quick {
            run.progress.advance(figure9::LINE_STEPS);
            return Ok(f);
        }
        let (name, order) = figure9::ORDERS[1];
        let scan = Scan { errors: Errors::AsMeasured, ..figure9::point(run, order) };
        let errs = figure9::line(&SPEC, run, name, scan, figure9::sweep(run))?;
        f.tables.push(figure9::table("a_drive_that_errs_as_the_papers", &[errs]));
        Ok(f)
    }
}

fn largest(lines: &[Lines], value: impl Fn(&Lines) -> f64) -> f64 {
    lines.iter().map(value).fold(f64::NEG_INFINITY, f64::max)
}
