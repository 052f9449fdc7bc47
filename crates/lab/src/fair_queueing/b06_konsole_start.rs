//! B6: starting a large program on a loaded disk, and its cost to the other applications.
//!
//! Valente (2014), section 7.3.1, figure 6.

use headtime_sched::BfqRules;
use headtime_sim::workload::suite::startup::Program;

use super::beside;
use super::paper::{FIGURE_6A, FIGURE_6B};
use crate::common::policy_run::{DRIVE_3, NOT_RAISED_NAME, PUBLISHED_NAME, Startups, compared, startups};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Test};

/// The experiment.
pub(crate) const B6: Experiment = Experiment { spec: &SPEC, steps: 21, run };

static SPEC: Spec = Spec {
    id: "B6",
    title: "Starting konsole on a loaded disk",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.3.1, figure 6",
    drive: DRIVE_3,
    workload: "konsole started ten times with a pause of a second, beside each of the four loads",
    claims: &[
        Claim {
            id: "B6a",
            claim: "start-up of konsole, BFQ+ against CFQ and BFQ",
            paper: "up to 9 times lower",
            rule: "at least 5 times lower on the worst load",
            checks: &[
                Check { what: "CFQ over BFQ+, largest of the loads", unit: "times", test: Test::AtLeast(5.0) },
                Check { what: "BFQ over BFQ+, largest of the loads", unit: "times", test: Test::AtLeast(5.0) },
            ],
            quick: true,
            note: "BFQ starts konsole in 11 to 13 s beside each of the loads, BFQ+ in 3.3 to 4.3 s. Until its turns of \
                   asynchronous writes were charged a whole budget, as in its code, BFQ took longer beside writers.",
        },
        Claim {
            id: "B6b",
            claim: "start-up of konsole, BFQ+ against an idle disk",
            paper: "close",
            rule: "at most 1.6 times",
            checks: &[Check { what: "BFQ+ over idle, largest of the loads", unit: "times", test: Test::AtMost(1.6) }],
            quick: true,
            note: "",
        },
        Claim {
            id: "B6c",
            claim: "throughput lost meanwhile with 10r-seq, BFQ+ against CFQ and BFQ",
            paper: "20% / 36%",
            rule: "at most 30% / 45%",
            checks: &[
                Check { what: "less than CFQ", unit: "%", test: Test::AtMost(30.0) },
                Check { what: "less than BFQ", unit: "%", test: Test::AtMost(45.0) },
            ],
            quick: true,
            note: "konsole has the disk for most of its start here, which takes 1.3 times as long as on an idle disk, \
                   and is started again a second later: more of the time goes to it than where the start takes longer. \
                   As the report measured it (B6d) it takes longer, and less is lost.",
        },
        Claim {
            id: "B6d",
            claim: "start-up of konsole and throughput lost, BFQ+ as the report measured it",
            paper: "close; 20% / 36%",
            rule: "at most 1.6 times an idle disk; at most 30% / 45%",
            checks: &[
                Check { what: "over idle, largest of the loads", unit: "times", test: Test::AtMost(1.6) },
                Check { what: "less than CFQ", unit: "%", test: Test::AtMost(30.0) },
                Check { what: "less than BFQ", unit: "%", test: Test::AtMost(45.0) },
            ],
            quick: true,
            note: "Without headtime's own rules and those of later kernels. Less is lost than in the report, since the \
                   start takes longer: 1.9 times as long as on an idle disk. After each think time that is longer than \
                   the disk idles it waits for the rest of a reader's slice.",
        },
    ],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut s = startups(run, &SPEC, Program::KONSOLE)?;
    let published = s.variant(run, &SPEC, Program::KONSOLE, (PUBLISHED_NAME, BfqRules::published()))?;
    let fair = BfqRules { low_latency: None, ..BfqRules::plus() };
    s.variant(run, &SPEC, Program::KONSOLE, (NOT_RAISED_NAME, fair))?;
    let mut f = Findings::default();
    f.figure("B6a", &[s.largest(Startups::CFQ), s.largest(Startups::BFQ)]);
    f.figure("B6b", &[s.against_idle()]);
    let less = |of: usize, than: usize| 100.0 * (1.0 - s.rates[of][0] / s.rates[than][0]);
    f.figure("B6c", &[less(Startups::PLUS, Startups::CFQ), less(Startups::PLUS, Startups::BFQ)]);
    // The first variant.
    let measured = compared().len();
    let idle = s.variant_against_idle(&published);
    f.figure("B6d", &[idle, less(measured, Startups::CFQ), less(measured, Startups::BFQ)]);
    let about = "Mean of the starts of all runs.";
    f.charts.push(beside::chart(&FIGURE_6A, about, &beside::means(&s.rows)));
    f.charts.push(beside::chart(&FIGURE_6B, "", &beside::by_policy(&s.names(), &s.rates)));
    f.tables.extend(s.tables());
    Ok(f)
}
