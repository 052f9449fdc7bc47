//! B14: the benefit of each heuristic.
//!
//! Valente (2014), section 7, where it attributes results to heuristics.

use headtime_disk::{Dur, Kind, Time};
use headtime_sched::{BfqRules, Policy};
use headtime_sim::workload::suite::files::{FILE, FILES, FileActor, Load};
use headtime_sim::workload::suite::rereader::Rereader;
use headtime_sim::workload::suite::startup::Program;
use headtime_sim::workload::suite::{Actor, Disk, Piece};

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
        rule: "the benchmark it is named for gets worse, the 95% intervals apart",
        checks: &[
            Check {
                what: "H-low-latency off: konsole beside 10r-seq does not take longer",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "H-peak-rate off: ten readers in order, beside cache hits, are not less equal in sectors",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "H-throughput off: throughput is not less when ten readers have just become greedy",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "H-fairness off: bash, not raised, beside 10r-seq does not take longer",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "H-write-throt off: bash beside 5r5w-seq does not take longer",
                unit: "cases",
                test: Test::Never,
            },
        ],
        quick: false,
        note: "Not in short runs: the interval of three runs is wide.",
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
                Ok::<Runs, RunError>(runs)
            };
            let (on, off) = (of(&on, "on")?, of(&off, "off")?);
            Ok::<Difference, RunError>(Difference::new(&on, &off))
        };
    let starts = |load: Load, program: Program| {
        move |bench: &PolicyRun| Ok::<f64, RunError>(bench.starts(&SPEC, Some(load), program, 10)?.mean())
    };
    let low_latency = compare("H-low-latency", plus(), fair(), &starts(Load::Readers10Seq, Program::KONSOLE))?;
    let off = BfqRules { peak_rate: false, ..fair() };
    let peak_rate = compare("H-peak-rate", fair(), off, &inequality_beside_hits)?;
    let off = BfqRules { throughput: false, ..fair() };
    let throughput = compare("H-throughput", fair(), off, &time_when_they_become_greedy)?;
    let off = BfqRules { fairness: false, ..fair() };
    let fairness = compare("H-fairness", fair(), off, &starts(Load::Readers10Seq, Program::BASH))?;
    let off = BfqRules { write_charge: 1, ..plus() };
    let writes = compare("H-write-throt", plus(), off, &starts(Load::Mixed5Seq, Program::BASH))?;
    let mut f = Findings::default();
    let all = [low_latency, peak_rate, throughput, fairness, writes];
    f.figure("B14", &all.map(|d| f64::from(!d.is_worse)));
    let row = all.map(|d| Cell::from(d.percent)).to_vec();
    let columns = &["low_latency", "peak_rate", "throughput", "fairness", "write_throttling"];
    f.tables.push(Table { name: "worse_by_percent", columns, rows: vec![row] });
    f.tables.push(Table { name: "on_and_off", columns: STATISTICS, rows });
    Ok(f)
}

/// A benchmark with a heuristic off, against the same with it on.
#[derive(Clone, Copy, Debug)]
struct Difference {
    /// Of the means; more is worse.
    percent: f64,
    /// It is worse, and the 95% intervals of the means do not overlap.
    is_worse: bool,
}

impl Difference {
    fn new(on: &Runs, off: &Runs) -> Difference {
        let [(on, most), (off, least)] = [(on, 1.0), (off, -1.0)].map(|(runs, side)| {
            let [_, mean, _, _, half] = runs.statistics();
            (mean, mean + side * half)
        });
        Difference { percent: 100.0 * (off / on - 1.0), is_worse: least > most }
    }
}

/// The difference between most and fewest bytes of ten sequential readers whose files are in zones
/// of different rates, relative to their mean, beside one whose reads are cache hits. An estimate
/// that is too high makes budgets that none of them can use up in a slice: then each is served by
/// time, and those at the rim have more.
fn inequality_beside_hits(bench: &PolicyRun) -> Result<f64, RunError> {
    let (suite, _) = bench.run(&SPEC, |disk| {
        let mut actors: Vec<Box<dyn Actor>> = Load::Readers10Seq.actors(disk, bench.seed);
        actors.push(Box::new(Rereader::new(disk, 2_000_000)));
        actors
    })?;
    let bytes = |i| suite.seconds(i).iter().skip(ADAPTS).sum::<u64>() as f64;
    let readers: Vec<f64> = (0..10).map(bytes).collect();
    let of = |f: fn(f64, f64) -> f64, from| readers.iter().copied().fold(from, f);
    Ok((of(f64::max, 0.0) - of(f64::min, f64::INFINITY)) / (readers.iter().sum::<f64>() / 10.0))
}

/// Seconds in which budgets and the estimate adapt.
const ADAPTS: usize = 30;

/// Seconds for a gigabyte when ten readers that had read 64 KiB every 100 ms have become greedy:
/// budgets that are small then must grow (section 4.3).
fn time_when_they_become_greedy(bench: &PolicyRun) -> Result<f64, RunError> {
    let (suite, _) = bench.run(&SPEC, |disk| {
        let reader = |i| Box::new(LaterGreedy::new(disk, i, bench.seed)) as Box<dyn Actor>;
        (0..10).map(reader).collect()
    })?;
    let from = (GREEDY_FROM.0 / 1_000_000_000) as usize;
    Ok(1e9 / suite.rate(from, from + GREEDY_SECONDS))
}

/// When the readers become greedy, and for how long their throughput is measured.
const GREEDY_FROM: Time = Time(10_000_000_000);
const GREEDY_SECONDS: usize = 5;

/// A sequential reader that reads 64 KiB every 100 ms at first, and greedily later.
#[derive(Debug)]
struct LaterGreedy {
    disk: Disk,
    number: u64,
    /// Position in the part of its file that it reads at first.
    at: u64,
    due: Time,
    /// Reads of that part in flight.
    under_way: u32,
    greedy: FileActor,
}

impl LaterGreedy {
    fn new(disk: &Disk, number: u64, seed: u64) -> LaterGreedy {
        let greedy = FileActor::new(disk, Kind::Read, false, (number, FILES), seed);
        LaterGreedy { disk: *disk, number, at: 0, due: Time(number * 10_000_000), under_way: 0, greedy }
    }

    fn is_greedy(&self) -> bool {
        self.due >= GREEDY_FROM
    }
}

impl Actor for LaterGreedy {
    fn next_due(&self) -> Option<Time> {
        match self.is_greedy() {
            true => self.greedy.next_due().map(|at| at.max(GREEDY_FROM)),
            false => Some(self.due),
        }
    }

    fn take(&mut self) -> Piece {
        if self.is_greedy() {
            return self.greedy.take();
        }
        let (first, sectors) = self.disk.file(self.number, FILES, FILE);
        let count = self.disk.sectors(64 << 10);
        // From the middle on, so that the greedy part is not in the drive's cache.
        let lbn = first + sectors / 2 + self.at;
        self.at += count;
        self.due += Dur::from_ms(100);
        self.under_way += 1;
        Piece { kind: Kind::Read, lbn, count: count as u32, sync: true, process: 0 }
    }

    fn finished(&mut self, process: u32, now: Time) {
        match self.under_way {
            0 => self.greedy.finished(process, now),
            _ => self.under_way -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_within_the_scatter_is_none() {
        let runs = |values: [f64; 3]| Runs { values: values.to_vec() };
        let is_worse = |on, off| Difference::new(&runs(on), &runs(off)).is_worse;
        assert!(is_worse([1.0, 1.1, 0.9], [2.0, 2.1, 1.9]));
        assert!(!is_worse([1.0, 1.1, 0.9], [1.1, 1.2, 1.0]), "0.1 more, with half widths of 0.25");
        assert!(!is_worse([2.0, 2.1, 1.9], [1.0, 1.1, 0.9]));
        assert!(!is_worse([1.0; 3], [f64::NAN; 3]));
    }
}
