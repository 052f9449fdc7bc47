//! B3: random readers get no less under BFQ+ than under CFQ.
//!
//! Valente (2014), section 7.2.1.

use headtime_disk::Kind;
use headtime_sched::{BfqRules, Policy};
use headtime_sim::workload::suite::files::{FILES, FileActor, Load};
use headtime_sim::workload::suite::{Actor, Disk};

use super::beside;
use super::paper::FIGURE_3_RANDOM;
use crate::common::policy_run::{DRIVE_3, PUBLISHED_NAME, PolicyRun, Runs, STATISTICS, named};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B3: Experiment = Experiment { spec: &SPEC, steps: 5, run };

static SPEC: Spec = Spec {
    id: "B3",
    title: "Ten readers at random places",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.2.1",
    drive: DRIVE_3,
    workload: "ten greedy readers at random places, two minutes",
    claims: &[Claim {
        id: "B3",
        claim: "throughput of ten readers at random places, BFQ+ against CFQ",
        paper: "comparable",
        rule: "within 10%",
        checks: &[Check { what: "10r-rand, BFQ+ more or less than CFQ", unit: "%", test: Test::AtMost(10.0) }],
        quick: true,
        note: "With the rules that the report measured. CFQ serves one request of each reader in turn, in files that \
               lie 10 GB apart; BFQ+ serves one file for 125 ms, and the arm stays within it. With all ten readers in \
               one file (the table's last rows) there is no such difference. The row without a remark is headtime's \
               BFQ+, which serves such readers together, from all of their requests.",
    }],
    length: Length::Seconds,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let seconds = run.length(120, 40) as usize;
    let of = |policy: &Policy, actors: fn(&Disk, u64) -> Vec<Box<dyn Actor>>| {
        Runs::of(run, |seed| {
            let bench = PolicyRun::new(DRIVE_3, policy.clone(), seconds as u64, seed);
            let (suite, _) = bench.run(&SPEC, |disk| actors(disk, seed))?;
            Ok(suite.rate(20, seconds) / 1e6)
        })
    };
    let own_files = |disk: &Disk, seed| Load::Readers10Rand.actors(disk, seed);
    let measured = Policy::Bfq(BfqRules::published());
    let (published, cfq) = (of(&measured, own_files)?, of(&named("cfq"), own_files)?);
    let together = of(&named("bfq+"), own_files)?;
    let in_one_file = [of(&measured, one_file)?, of(&named("cfq"), one_file)?];
    let mut f = Findings::default();
    f.figure("B3", &[100.0 * (published.mean() / cfq.mean() - 1.0).abs()]);
    let rows = vec![
        published.row(&["10r-rand", PUBLISHED_NAME]),
        together.row(&["10r-rand", "bfq+"]),
        cfq.row(&["10r-rand", "cfq"]),
        in_one_file[0].row(&["10r-rand, one file", PUBLISHED_NAME]),
        in_one_file[1].row(&["10r-rand, one file", "cfq"]),
    ];
    let about = "Steady state, mean of the runs.";
    f.charts.push(beside::chart(&FIGURE_3_RANDOM, about, &beside::means(&rows)));
    f.tables.push(Table { name: "throughput", columns: STATISTICS, rows });
    Ok(f)
}

/// Ten random readers that all read the first file.
fn one_file(disk: &Disk, seed: u64) -> Vec<Box<dyn Actor>> {
    let reader = |i| FileActor::new(disk, Kind::Read, true, (0, FILES), seed * 10 + i);
    (0..10).map(|i| Box::new(reader(i)) as Box<dyn Actor>).collect()
}
