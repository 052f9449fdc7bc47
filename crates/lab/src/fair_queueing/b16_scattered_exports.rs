//! B16: scattered exports of equal weight, compared with the drive's own queue.
//!
//! Not from a paper. Valente (2014) idles for each application in turn (section 3.4); the reference
//! here is a system without a scheduler.

use headtime_disk::{Dur, Time, profile};
use headtime_sched::{BfqRules, Order, Policy};
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Scheduling, Setup, Simulation};
use headtime_sim::stats::Done;
use headtime_sim::workload::{GroupSpec, PatternSpec, PlaceSpec, Population, closed};

use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const B16: Experiment = Experiment { spec: &SPEC, steps: (DRIVES.len() * EXPORTS.len() * 2) as u64, run };

static SPEC: Spec = Spec {
    id: "B16",
    title: "Scattered exports of equal weight, against the drive's own queue",
    source: "headtime's own; Valente, New version of BFQ, benchmark suite and experimental results (2014), section 3.4",
    drive: "atlas10k, hitachi-7k1000c, toshiba-x300-5tb, nearline-20tb",
    workload: "4, 6, 8 and 10 exports, each with one read of 4 KiB at a time and 20 us of host time: anywhere on the \
            drive, or each in a part of its own; BFQ+ over sptf-ahead",
    claims: &[Claim {
        id: "B16",
        claim: "four to ten seeky exports of equal weight, none of them with a raised weight, get the throughput and \
                p99 that the drive's own queue gives them",
        paper: "-",
        rule: "requests a second at least 99% of the drive's own queue, p99 no higher (at most 100%), of all and of \
               the export that waits longest; with turns under 99%",
        checks: &[
            Check {
                what: "requests a second, least of all cells",
                unit: "% of the drive's",
                test: Test::AtLeast(99.0),
            },
            Check { what: "p99, largest of all cells", unit: "% of the drive's", test: Test::AtMost(100.0) },
            Check {
                what: "p99 of the export that waits longest, largest of all cells",
                unit: "% of the drive's",
                test: Test::AtMost(100.0),
            },
            Check {
                what: "the same exports anywhere on the drive, each having turns: requests a second, largest of all \
                       cells",
                unit: "% of the drive's",
                test: Test::Below(99.0),
            },
        ],
        quick: true,
        note: "Measurement begins after weight raising has ended. Where each export has a part of the drive of its \
               own, the drive's queue serves those in the middle up to three times as often as those at the edges; \
               under BFQ+ they have equal shares (column least_share). Turns serve such exports with short seeks, and \
               each request waits for the turns of all others (column turns_p99_ms).",
    }],
    length: Length::Minutes,
    alone: false,
};

const DRIVES: [&str; 4] = ["atlas10k", "hitachi-7k1000c", "toshiba-x300-5tb", "nearline-20tb"];
const EXPORTS: [u32; 4] = [4, 6, 8, 10];
/// Time until weight raising has ended.
const LEAD_TIME: Dur = Dur::from_secs(10);

/// The scheduler of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The drive, at full depth.
    Drive,
    /// BFQ+ and sptf-ahead.
    Bfq,
    /// The same without serving exports together.
    Turns,
}

/// A measured configuration.
#[derive(Clone, Copy, Debug)]
struct Case {
    drive: &'static str,
    exports: u32,
    /// Whether each export is a part of the drive.
    parts: bool,
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let (mut rate, mut p99, mut longest, mut turns) = (f64::INFINITY, 0.0_f64, 0.0_f64, 0.0_f64);
    let mut rows = Vec::new();
    for drive in DRIVES {
        for exports in EXPORTS {
            for parts in [false, true] {
                run.progress.advance(1);
                if run.quick && (![4, 10].contains(&exports) || drive == DRIVES[2]) {
                    continue;
                }
                let case = Case { drive, exports, parts };
                let of = |by| case.measure(run, by);
                let (theirs, ours, turned) = (of(By::Drive)?, of(By::Bfq)?, of(By::Turns)?);
                let percent = |a: f64, b: f64| 100.0 * a / b;
                rate = rate.min(percent(ours.per_second, theirs.per_second));
                p99 = p99.max(percent(ours.p99, theirs.p99));
                longest = longest.max(percent(ours.longest, theirs.longest));
                if !parts {
                    turns = turns.max(percent(turned.per_second, theirs.per_second));
                }
                let place = if parts { "parts" } else { "anywhere" };
                let mut row = vec![Cell::from(drive), Cell::from(f64::from(exports)), Cell::from(place)];
                for s in [&theirs, &ours, &turned] {
                    row.extend([s.per_second, s.p99, s.longest, s.least_share].map(Cell::from));
                }
                rows.push(row);
            }
        }
    }
    let mut f = Findings::default();
    f.figure("B16", &[rate, p99, longest, turns]);
    f.tables.push(Table { name: "cells", columns: COLUMNS, rows });
    Ok(f)
}

const COLUMNS: &[&str] = &[
    "drive",
    "exports",
    "place",
    "drive_per_second",
    "drive_p99_ms",
    "drive_p99_longest_ms",
    "drive_least_share",
    "ours_per_second",
    "ours_p99_ms",
    "ours_p99_longest_ms",
    "ours_least_share",
    "turns_per_second",
    "turns_p99_ms",
    "turns_p99_longest_ms",
    "turns_least_share",
];

/// Results of a run.
#[derive(Clone, Debug)]
struct Served {
    per_second: f64,
    p99: f64,
    /// The largest p99 of any export.
    longest: f64,
    /// Requests of the export with the fewest, relative to its share.
    least_share: f64,
}

/// Response times of each export, ns.
struct Watch(Vec<Vec<u64>>);

impl Observer for Watch {
    fn finished(&mut self, done: &Done) {
        if done.due >= Time::ZERO + LEAD_TIME {
            self.0[done.owner as usize].push(done.response().0);
        }
    }
}

/// The 99th percentile, ms; not a number when there are none.
fn p99(mut all: Vec<u64>) -> f64 {
    all.sort_unstable();
    all.get(all.len() * 99 / 100).map_or(f64::NAN, |&ns| ns as f64 / 1e6)
}

impl Case {
    fn measure(&self, run: &Run, by: By) -> Result<Served, RunError> {
        let profile = profile::builtin(self.drive).map_err(|e| failed(&SPEC, e))?;
        let admit = match by {
            By::Drive => Policy::None,
            By::Bfq => Policy::Bfq(BfqRules::plus()),
            By::Turns => Policy::Bfq(BfqRules { together: false, ..BfqRules::plus() }),
        };
        let scheduling = if by == By::Drive { Scheduling::Drive } else { Scheduling::Host(Order::SptfAhead) };
        let setup = Setup { scheduling, admit, ..Setup::new(&profile, Order::SptfAhead, run.seed) };
        let simulation = Simulation::new(&setup).map_err(|e| failed(&SPEC, e))?;
        let groups: Vec<GroupSpec> = (0..self.exports).map(|i| self.export(i)).collect();
        let mut load = Population::new(&groups, simulation.target(), run.seed).map_err(|e| failed(&SPEC, e))?;
        let length = Dur::from_secs(run.length(1_000, 400));
        let limits = Limits { until: Some(Time::ZERO + LEAD_TIME + length), ..Limits::default() };
        let mut watch = Watch(vec![Vec::new(); self.exports as usize]);
        simulation.run(&mut load, limits, None, &mut watch).map_err(|e| failed(&SPEC, e))?;
        let all: Vec<u64> = watch.0.iter().flatten().copied().collect();
        let requests = all.len() as f64;
        let fewest = watch.0.iter().map(Vec::len).min().unwrap_or(0);
        Ok(Served {
            per_second: requests / length.as_secs_f64(),
            p99: p99(all),
            longest: watch.0.into_iter().map(p99).fold(f64::NAN, f64::max),
            least_share: fewest as f64 * f64::from(self.exports) / requests,
        })
    }

    fn export(&self, i: u32) -> GroupSpec {
        let share = |i: u32| f64::from(i) / f64::from(self.exports);
        let place = match self.parts {
            false => PlaceSpec::Uniform,
            true => PlaceSpec::Part { from: share(i), to: share(i + 1) },
        };
        let pattern = PatternSpec { place, ..PatternSpec::random_reads(4096) };
        GroupSpec { name: format!("export {i}"), pattern, ..closed(1) }
    }
}
