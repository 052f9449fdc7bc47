//! B5: starting a small program on a loaded disk.
//!
//! Valente (2014), section 7.3.1, figure 5.

use headtime_sched::BfqRules;
use headtime_sim::workload::suite::startup::Program;

use super::beside;
use super::paper::{FIGURE_5A, FIGURE_5B};
use crate::common::policy_run::{DRIVE_3, NOT_RAISED_NAME, PUBLISHED_NAME, Startups, startups};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Test};

/// The experiment.
pub(crate) const B5: Experiment = Experiment { spec: &SPEC, steps: 21, run };

static SPEC: Spec = Spec {
    id: "B5",
    title: "Starting bash on a loaded disk",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.3.1, figure 5",
    drive: DRIVE_3,
    workload: "bash started ten times with a pause of a second, beside each of the four loads",
    claims: &[
        Claim {
            id: "B5a",
            claim: "start-up of bash, BFQ+ against CFQ and BFQ",
            paper: "up to 8 times lower",
            rule: "at least 5 times lower on the worst load",
            checks: &[
                Check { what: "CFQ over BFQ+, largest of the loads", unit: "times", test: Test::AtLeast(5.0) },
                Check { what: "BFQ over BFQ+, largest of the loads", unit: "times", test: Test::AtLeast(5.0) },
            ],
            quick: true,
            note: "",
        },
        Claim {
            id: "B5b",
            claim: "start-up of bash, BFQ+ against an idle disk",
            paper: "close",
            rule: "at most 1.5 times",
            checks: &[Check { what: "BFQ+ over idle, largest of the loads", unit: "times", test: Test::AtMost(1.5) }],
            quick: true,
            note: "BFQ+ here has rules of later kernels that the report does not have (docs/admission.md); the tables' \
                   rows \"as the report measured it\" are without them.",
        },
        Claim {
            id: "B5c",
            claim: "start-up of bash with low_latency off",
            paper: "under 0.55 s",
            rule: "under 0.55 s",
            checks: &[Check { what: "largest of the loads", unit: "s", test: Test::Below(0.55) }],
            quick: true,
            note: "0.35 s with readers and writers in order, 0.58 s with readers in order, 0.69 and 0.78 s with \
                   those at random places. Not raised, bash waits for others' turns, and those at random places have \
                   their whole slice: their budgets are charged by time.",
        },
        Claim {
            id: "B5d",
            claim: "start-up of bash, BFQ+ as the report measured it, against an idle disk",
            paper: "close",
            rule: "at most 1.5 times",
            checks: &[Check { what: "over idle, largest of the loads", unit: "times", test: Test::AtMost(1.5) }],
            quick: true,
            note: "Without headtime's own rules and those of later kernels. Fails beside five readers and five writers \
                   in order only (0.24 s; 0.16 to 0.20 s beside the others, 0.14 s on an idle disk).",
        },
    ],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut s = startups(run, &SPEC, Program::BASH)?;
    let published = s.variant(run, &SPEC, Program::BASH, (PUBLISHED_NAME, BfqRules::published()))?;
    let fair = BfqRules { low_latency: None, ..BfqRules::plus() };
    let off = s.variant(run, &SPEC, Program::BASH, (NOT_RAISED_NAME, fair))?;
    let mut f = Findings::default();
    f.figure("B5a", &[s.largest(Startups::CFQ), s.largest(Startups::BFQ)]);
    f.figure("B5b", &[s.against_idle()]);
    f.figure("B5d", &[s.variant_against_idle(&published)]);
    f.figure("B5c", &[off.iter().copied().fold(0.0, f64::max)]);
    let about = "Mean of the starts of all runs.";
    f.charts.push(beside::chart(&FIGURE_5A, about, &beside::means(&s.rows)));
    f.charts.push(beside::chart(&FIGURE_5B, "", &beside::by_policy(&s.names(), &s.rates)));
    f.tables.extend(s.tables());
    Ok(f)
}
