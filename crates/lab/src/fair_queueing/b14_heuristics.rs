//! B14: the benefit of each heuristic.
//!
//! Valente (2014), section 7, where it attributes results to heuristics.

use headtime_disk::{Dur, Time};
use headtime_sched::{BfqRules, Policy};
use headtime_sim::workload::suite::Actor;
use headtime_sim::workload::suite::files::Load;
use headtime_sim::workload::suite::rereader::Rereader;
use headtime_sim::workload::suite::startup::{Program, Starts};

use crate::common::policy_run::{DRIVE_3, PolicyRun, Runs, STATISTICS};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B14: Experiment = Experiment { spec: &SPEC, steps: 10, run };

static SPEC: Spec = Spec {
    id: "B14",
    title: "Each heuristic switched off",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7",
    drive: DRIVE_3,
    workload: "for each heuristic the benchmark that its paper names for it",
    claims: &[Claim {
        id: "B14",
        claim: "each heuristic switched off, one at a time",
        paper: "each pays",
        rule: "the benchmark it is named for gets worse",
        checks: &[
            Check {
                what: "H-low-latency off: not so that konsole beside 10r-seq takes longer",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "H-peak-rate off: not so that bash, not raised, beside 10r-seq and cache hits takes longer",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "H-throughput off: not so that throughput of 10r-seq is less",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "H-fairness off: not so that bash, not raised, beside 10r-seq takes longer",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "H-write-throt off: not so that bash beside 5r5w-seq takes longer",
                unit: "cases",
                test: Test::Never,
            },
        ],
        quick: true,
        note: "",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let plus = BfqRules::plus;
    let fair = || BfqRules { low_latency: None, ..BfqRules::plus() };
    let mut rows = Vec::new();
    let mut compare =
        |name: &str, on: BfqRules, off: BfqRules, measure: &dyn Fn(&PolicyRun) -> Result<f64, RunError>| {
            let mut of = |rules: &BfqRules, which: &str| {
                let runs =
                    Runs::of(run, |seed| measure(&PolicyRun::new(DRIVE_3, Policy::Bfq(rules.clone()), 120, seed)))?;
                rows.push(runs.row(&[name, which]));
                Ok::<f64, RunError>(runs.mean())
            };
            let (on, off) = (of(&on, "on")?, of(&off, "off")?);
            Ok::<f64, RunError>(100.0 * (off / on - 1.0))
        };
    let starts = |load: Load, program: Program| {
        move |bench: &PolicyRun| Ok::<f64, RunError>(bench.starts(&SPEC, Some(load), program, 10)?.mean())
    };
    let low_latency = compare("H-low-latency", plus(), fair(), &starts(Load::Readers10Seq, Program::KONSOLE))?;
    let off = BfqRules { peak_rate: false, ..fair() };
    let peak_rate = compare("H-peak-rate", fair(), off, &beside_hits)?;
    let off = BfqRules { throughput: false, ..plus() };
    let throughput =
        compare("H-throughput", plus(), off, &|bench| Ok(1.0 / bench.load(&SPEC, Load::Readers10Seq)?.rate(0, 120)))?;
    let off = BfqRules { fairness: false, ..fair() };
    let fairness = compare("H-fairness", fair(), off, &starts(Load::Readers10Seq, Program::BASH))?;
    let off = BfqRules { write_charge: 1, ..plus() };
    let writes = compare("H-write-throt", plus(), off, &starts(Load::Mixed5Seq, Program::BASH))?;
    let mut f = Findings::default();
    let percent = [low_latency, peak_rate, throughput, fairness, writes];
    f.figure("B14", &percent.map(|p| f64::from(p <= NO_DIFFERENCE_PERCENT)));
    let row = percent.map(Cell::from).to_vec();
    let columns = &["low_latency", "peak_rate", "throughput", "fairness", "write_throttling"];
    f.tables.push(Table { name: "worse_by_percent", columns, rows: vec![row] });
    f.tables.push(Table { name: "on_and_off", columns: STATISTICS, rows });
    Ok(f)
}

/// Difference in percent that counts as none.
const NO_DIFFERENCE_PERCENT: f64 = 0.1;

/// Start-up time of bash under ten readers and one whose reads are cache hits, seconds.
fn beside_hits(bench: &PolicyRun) -> Result<f64, RunError> {
    let (suite, _) = bench.run(&SPEC, |disk| {
        let mut actors: Vec<Box<dyn Actor>> = Load::Readers10Seq.actors(disk, bench.seed);
        actors.push(Box::new(Rereader::new(disk, 2_000_000)));
        let first = Time::ZERO + Dur::from_secs(60);
        actors.push(Box::new(Starts::new(disk, Program::BASH, first, Dur::from_secs(1), 10, bench.seed)));
        actors
    })?;
    let starts = suite.account(11).starts;
    // Without a completed start the time is infinite.
    Ok(starts.iter().map(|d| d.as_secs_f64()).sum::<f64>() / starts.len() as f64)
        .map(|s| if s.is_nan() { f64::INFINITY } else { s })
}
