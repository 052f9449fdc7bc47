//! B10: progress of a developer's tools on a loaded disk.
//!
//! Valente (2014), sections 6 and 7.5, figures 8 and 9.

use headtime_disk::{Dur, Time};
use headtime_sim::workload::suite::Actor;
use headtime_sim::workload::suite::code::{Tool, Work};

use super::beside::{self, Measured};
use super::paper::{FIGURE_8, FIGURE_9};
use crate::common::policy_run::{DRIVE_3, PolicyRun, STATISTICS, by_load, compared};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B10: Experiment = Experiment { spec: &SPEC, steps: 36, run };

static SPEC: Spec = Spec {
    id: "B10",
    title: "Compiling, checking out and merging on a loaded disk",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.5, figures 8 \
             and 9",
    drive: DRIVE_3,
    workload: "one tool beside each of the four loads, a minute each",
    claims: &[Claim {
        id: "B10",
        claim: "compile progress; checkout and merge progress, BFQ+ against CFQ; and against BFQ",
        paper: "same; better; at least the same",
        rule: "within 10%; better (0%); at least BFQ's (0%)",
        checks: &[
            Check { what: "compile, 10r-seq or 10r-rand, whichever differs more", unit: "%", test: Test::AtMost(10.0) },
            Check { what: "checkout, 10r-seq or 10r-rand, whichever gains less", unit: "%", test: Test::AtLeast(0.0) },
            Check { what: "merge, 10r-seq or 10r-rand, whichever gains less", unit: "%", test: Test::AtLeast(0.0) },
            Check { what: "over BFQ, the tool and load that gain least", unit: "%", test: Test::AtLeast(0.0) },
        ],
        quick: true,
        note: "compile progresses faster than under CFQ, by 16% beside ten readers in order (63 files against 54); the \
               rule asks for within 10%, either way. Over BFQ everything gains but compile beside ten readers in \
               order, which has 62.8 files against 63 in the mean of ten runs.",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    let mut over_bfq = f64::INFINITY;
    for (name, tool) in TOOLS {
        let what = format!(", {name}");
        let (more, steps) = by_load(run, &compared(), &what, |policy, load, seed| {
            let steps = |seconds| {
                let mut who = 0;
                let (suite, _) = PolicyRun::new(DRIVE_3, policy.clone(), seconds, seed).run(&SPEC, |disk| {
                    let mut actors: Vec<Box<dyn Actor>> = load.actors(disk, seed);
                    who = actors.len();
                    actors.push(Box::new(Work::new(disk, tool, Time::ZERO + Dur::from_secs(10), seed)));
                    actors
                })?;
                Ok::<u64, RunError>(suite.account(who).steps)
            };
            // Without the time in which the tool is raised, as all new applications are.
            Ok((steps(SECONDS)? - steps(RAISED_S)?) as f64)
        })?;
        rows.extend(more);
        let gain = |load: usize, over: usize| 100.0 * (steps[0][load] / steps[over][load] - 1.0);
        // The report has no writers here.
        let gains = [gain(0, 2), gain(1, 2)];
        over_bfq = over_bfq.min(gain(0, 1)).min(gain(1, 1));
        figures.push(match name {
            "compile" => gains.into_iter().map(f64::abs).fold(0.0, f64::max),
            _ => gains.into_iter().fold(f64::INFINITY, f64::min),
        });
    }
    figures.push(over_bfq);
    f.figure("B10", &figures);
    f.charts.push(beside::chart(&FIGURE_8, "Mean of the runs.", &progress(&rows, false)));
    let about = "The report has percent of the task. Mean of the runs.";
    f.charts.push(beside::chart(&FIGURE_9, about, &progress(&rows, true)));
    f.tables.push(Table { name: "steps", columns: STATISTICS, rows });
    Ok(f)
}

/// Steps of the compilation by load and policy, or, with `named`, of the other tools by tool and
/// load, and policy.
fn progress(rows: &[Vec<Cell>], named: bool) -> Vec<Measured> {
    let of = |m: Measured| {
        let (policy, tool) = m.row.split_once(", ")?;
        let group = if named { format!("{tool}, {}", m.group) } else { m.group };
        (named || tool == "compile").then(|| Measured::new(&group, policy, m.value))
    };
    beside::means(rows).into_iter().filter_map(of).collect()
}

const TOOLS: [(&str, Tool); 3] = [("compile", Tool::COMPILE), ("checkout", Tool::CHECKOUT), ("merge", Tool::MERGE)];
/// Seconds of a run, ten of them before the tool begins.
const SECONDS: u64 = 70;
/// Seconds until weight raising has ended.
const RAISED_S: u64 = 20;

#[cfg(test)]
mod tests {
    use super::super::beside::tests::bars;
    use super::*;

    #[test]
    fn each_tool_is_in_its_chart() {
        let row = |load: &str, policy: &str, mean: f64| {
            [Cell::from(load), Cell::from(policy), Cell::from(0.0), Cell::from(mean), Cell::from(99.0)].to_vec()
        };
        let rows = [
            row("10r-seq", "bfq+, compile", 1.0),
            row("5r5w-seq", "bfq+, compile", 2.0),
            row("10r-seq", "cfq, checkout", 3.0),
            row("10r-rand", "bfq, merge", 4.0),
        ];
        let of = |figure, named| -> Vec<(String, String, f64)> {
            let got = bars(&beside::chart(figure, "", &progress(&rows, named)));
            got.into_iter().map(|b| (b.0, b.1, b.2)).collect()
        };
        assert_eq!(of(&FIGURE_8, false), [("10r-seq".into(), "bfq+".into(), 1.0)], "the report has no writers here");
        let want = [("checkout, 10r-seq", "cfq", 3.0), ("merge, 10r-rand", "bfq", 4.0)];
        assert_eq!(of(&FIGURE_9, true), want.map(|(group, row, v)| (group.into(), row.into(), v)));
    }
}
