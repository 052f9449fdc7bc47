//! B10: progress of a developer's tools on a loaded disk.
//!
//! Valente (2014), sections 6 and 7.5.

use headtime_disk::{Dur, Time};
use headtime_sim::workload::suite::Actor;
use headtime_sim::workload::suite::code::{Tool, Work};

use crate::common::policy_run::{DRIVE_3, PolicyRun, STATISTICS, by_load, compared};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B10: Experiment = Experiment { spec: &SPEC, steps: 36, run };

static SPEC: Spec = Spec {
    id: "B10",
    title: "Compiling, checking out and merging on a loaded disk",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), sections 6 and 7",
    drive: DRIVE_3,
    workload: "one tool beside each of the four loads, a minute each",
    claims: &[Claim {
        id: "B10",
        claim: "compile progress; checkout and merge progress, BFQ+ against CFQ",
        paper: "same; better",
        rule: "within 10%; better",
        checks: &[
            Check { what: "compile, 10r-seq or 10r-rand, whichever differs more", unit: "%", test: Test::AtMost(10.0) },
            Check { what: "checkout, 10r-seq or 10r-rand, whichever gains less", unit: "%", test: Test::AtLeast(0.0) },
            Check { what: "merge, 10r-seq or 10r-rand, whichever gains less", unit: "%", test: Test::AtLeast(0.0) },
        ],
        quick: true,
        note: "",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
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
        let gain = |load: usize| 100.0 * (steps[0][load] / steps[2][load] - 1.0);
        // The report has no writers here.
        let gains = [gain(0), gain(1)];
        figures.push(match name {
            "compile" => gains.into_iter().map(f64::abs).fold(0.0, f64::max),
            _ => gains.into_iter().fold(f64::INFINITY, f64::min),
        });
    }
    f.figure("B10", &figures);
    f.tables.push(Table { name: "steps", columns: STATISTICS, rows });
    Ok(f)
}

const TOOLS: [(&str, Tool); 3] = [("compile", Tool::COMPILE), ("checkout", Tool::CHECKOUT), ("merge", Tool::MERGE)];
/// Seconds of a run, ten of them before the tool begins.
const SECONDS: u64 = 70;
/// Seconds until weight raising has ended.
const RAISED_S: u64 = 20;
