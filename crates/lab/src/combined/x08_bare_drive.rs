//! X8: headtime in front of a disk costs nothing.
//!
//! Not from a paper. The papers compare a scheduler with and without background work; here both are
//! compared with the bare drive: its own command queue, filled as far as the clients fill it. The
//! drive selects its next command when its head becomes free, so a scheduler outside that selects
//! earlier (at the previous completion) has fewer requests to select from.

use headtime_disk::Dur;
use headtime_plot::{Axis, Chart, XyChart};
use headtime_sim::workload::variates::Share;
use headtime_sim::workload::{Arrivals, GroupSpec, HostTime, PatternSpec, PlaceSpec, SizeSpec, closed, oltp};

use super::bare_drive::{COLUMNS, Comparison, Point, Ratios};
use super::hard_loads;
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const X8: Experiment = Experiment { spec: &SPEC, steps: STEPS, run };

static SPEC: Spec = Spec {
    id: "X8",
    title: "The foreground against the bare drive",
    source: "headtime's own; the host time as in Lumb, Schindler, Ganger, Freeblock Scheduling Outside of Disk \
            Firmware (FAST 2002), section 3",
    drive: "atlas10k, barracuda36es2, hitachi-7k1000c, nearline-20tb",
    workload: "random 4 KiB and 64 KiB reads, oltp, sequential reads of 128 KiB and 1 MiB, sequential and random \
            writes, a mix; 1, 2, 3, 4, 6, 8, 16, 32 outstanding; host time 0, 20 us, 0.3 ms, 1 ms",
    claims: &[
        Claim {
            id: "X8a",
            claim: "throughput and p99 with headtime and no background work, as a share of the bare drive with its own \
                    queue at full depth",
            paper: "-",
            rule: "every cell at least 99% of the requests and at most 103% of the p99; geometric mean at least 101%",
            checks: &[
                Check { what: "requests a second, the worst cell", unit: "%", test: Test::AtLeast(99.0) },
                Check { what: "p99, the worst cell", unit: "%", test: Test::AtMost(103.0) },
                Check { what: "requests a second, geometric mean", unit: "%", test: Test::AtLeast(101.0) },
            ],
            quick: true,
            note: OFF,
        },
        Claim {
            id: "X8b",
            claim: "the same with a scan running",
            paper: "-",
            rule: "every cell at least 98.5% of the requests, p99 at most 105%",
            checks: &[
                Check { what: "requests a second with a scan, the worst cell", unit: "%", test: Test::AtLeast(98.5) },
                Check { what: "p99 with a scan, the worst cell", unit: "%", test: Test::AtMost(105.0) },
            ],
            quick: true,
            note: "Of the bare drive without a scan.",
        },
        Claim {
            id: "X8c",
            claim: "the same for several streams, reads backwards, a log beside clients, deep queues",
            paper: "-",
            rule: "every cell at least 99% of the requests, with a scan 98.5%",
            checks: &[
                Check { what: "requests a second, the worst cell", unit: "%", test: Test::AtLeast(99.0) },
                Check { what: "requests a second with a scan, the worst cell", unit: "%", test: Test::AtLeast(98.5) },
            ],
            quick: true,
            note: "Loads that independent readers found; not in the claims of the project. It fails where the drive's \
                   own queue serves what is near or continues a stream and lets the others wait, up to two seconds: a \
                   stream beside 30 random readers, four readers with one request outstanding each, a log beside \
                   clients. headtime serves the others sooner (columns p99_percent), at the price of requests a \
                   second. Streams begin anywhere: with some seeds the drive's queue lets one reach another, and from \
                   then on both read the same sectors, at twice the rate.",
        },
    ],
    length: Length::Minutes,
    alone: false,
};

/// The columns without the mechanism.
const OFF: &str = "Columns early_requests_percent and early_p99_percent: the same with early commitment \
                   (Commitment::Early) and SPTF. That is the loss X8 is about; there the claim must fail.";

const DRIVES: [&str; 4] = ["atlas10k", "barracuda36es2", "hitachi-7k1000c", "nearline-20tb"];
const OUTSTANDING: [u32; 8] = [1, 2, 3, 4, 6, 8, 16, 32];
const HOST_US: [u64; 4] = [0, 20, 300, 1_000];
/// Parameters of the shortened run.
const QUICK_PARAMETERS: (&[u32], &[u64]) = (&[1, 4, 16], &[300]);

/// Cells of a full run.
const STEPS: u64 = (DRIVES.len() * (LOADS.len() * OUTSTANDING.len() * HOST_US.len() + hard_loads::COUNT)) as u64;

/// Requests of one run. With this number the p99 of two runs differs by 1.4% (one standard
/// deviation) for response times with an exponential tail; with fewer the check would be random.
const REQUESTS: u64 = 60_000;

/// The load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Reads4K,
    Reads64K,
    Oltp,
    InOrder128K,
    InOrder1M,
    WritesInOrder,
    Writes4K,
    Mixed,
}

const LOADS: [Load; 8] = [
    Load::Reads4K,
    Load::Reads64K,
    Load::Oltp,
    Load::InOrder128K,
    Load::InOrder1M,
    Load::WritesInOrder,
    Load::Writes4K,
    Load::Mixed,
];

impl Load {
    fn name(self) -> &'static str {
        match self {
            Load::Reads4K => "random 4 KiB reads",
            Load::Reads64K => "random 64 KiB reads",
            Load::Oltp => "oltp",
            Load::InOrder128K => "sequential 128 KiB reads",
            Load::InOrder1M => "sequential 1 MiB reads",
            Load::WritesInOrder => "sequential 128 KiB writes",
            Load::Writes4K => "random 4 KiB writes",
            Load::Mixed => "random 4 KiB, half of them writes",
        }
    }

    fn point(self, drive: &'static str, outstanding: u32, host_us: u64) -> Point {
        let host = HostTime::Fixed(Dur::from_us(host_us));
        let groups = vec![self.group(outstanding, host)];
        Point { drive, load: self.name().into(), outstanding, host_us, groups, requests: REQUESTS }
    }

    /// `outstanding` requests always outstanding, apart from the host's time; for `oltp` the number
    /// of programs, with think times.
    fn group(self, outstanding: u32, host: HostTime) -> GroupSpec {
        let small = PatternSpec::random_reads(4096);
        let in_order = |kib: u64| PatternSpec {
            size: SizeSpec::Fixed { bytes: kib << 10 },
            place: PlaceSpec::SharedSequential,
            ..small.clone()
        };
        let pattern = match self {
            Load::Oltp => {
                let Arrivals::Closed { think, .. } = oltp().arrivals else { unreachable!("oltp is closed") };
                return GroupSpec { arrivals: Arrivals::Closed { tasks: outstanding, think }, host, ..oltp() };
            }
            Load::Reads4K => small,
            Load::Reads64K => PatternSpec::random_reads(64 << 10),
            Load::InOrder128K => in_order(128),
            Load::InOrder1M => in_order(1024),
            Load::WritesInOrder => PatternSpec { reads: Share::NONE, ..in_order(128) },
            Load::Writes4K => PatternSpec { reads: Share::NONE, ..small },
            Load::Mixed => PatternSpec { reads: const { Share::new(1, 2).unwrap() }, ..small },
        };
        GroupSpec { pattern, host, ..closed(outstanding) }
    }
}

/// The cells of claims X8a and X8b in one run.
fn points(quick: bool) -> Vec<Point> {
    let (outstanding, host) = if quick { QUICK_PARAMETERS } else { (&OUTSTANDING[..], &HOST_US[..]) };
    let mut points = vec![];
    for drive in DRIVES {
        for load in LOADS {
            for &n in outstanding {
                points.extend(host.iter().map(|&host_us| load.point(drive, n, host_us)));
            }
        }
    }
    points
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let (points, others) = (points(run.quick), hard_loads::points(&DRIVES));
    let share = (STEPS / (points.len() + others.len()) as u64).max(1);
    let ((a, cells), (c, other_cells)) = (compared(run, &points, share)?, compared(run, &others, share)?);
    let mut f = Findings::default();
    let ([requests, p99], mean) = (a.alone.worst(), a.alone.geometric_mean());
    f.figure("X8a", &[requests, p99, mean]);
    f.figure("X8b", &a.scan.worst());
    f.figure("X8c", &[c.alone.worst()[0], c.scan.worst()[0]]);
    f.notes.push(("X8a", without(&a.early)));
    f.notes.push(("X8c", without(&c.early)));
    f.tables.push(Table { name: "cells", columns: COLUMNS, rows: cells });
    f.tables.push(Table { name: "other_cells", columns: COLUMNS, rows: other_cells });
    f.charts.push(chart(&a));
    Ok(f)
}

/// Measures these cells; their rows have [`COLUMNS`].
fn compared(run: &Run, points: &[Point], share: u64) -> Result<(Comparison, Vec<Vec<Cell>>), RunError> {
    let (mut all, mut rows) = (Comparison::default(), vec![]);
    for point in points {
        rows.push(all.add(point, run.seed).map_err(|e| failed(&SPEC, e))?);
        run.progress.advance(share);
    }
    Ok((all, rows))
}

/// The results of the same checks with the mechanism switched off.
fn without(early: &Ratios) -> String {
    let [requests, p99] = early.worst();
    format!(
        "Committed early, in order sptf: worst cell {requests:.1}% of the requests, p99 {p99:.0}%, geometric mean \
         {:.1}%.",
        early.geometric_mean()
    )
}

fn chart(all: &Comparison) -> Chart {
    let mut chart = XyChart::cdf(
        "Requests a second, of the bare drive's",
        "One step per cell: drive, load, outstanding requests, host time. Left of 100%: slower than the drive with its \
         own queue.",
        Axis::range("% of the bare drive", 80.0, 120.0),
        &[
            ("headtime", &all.alone.requests),
            ("headtime, with a scan", &all.scan.requests),
            ("committed early, SPTF", &all.early.requests),
        ],
    );
    chart.y = Axis::range("share of cells", 0.0, 1.0);
    Chart::Xy(chart)
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile;

    use super::*;
    use crate::combined::bare_drive::Front;

    #[test]
    fn every_drive_load_depth_and_host_time_is_a_cell() {
        assert_eq!(points(false).len(), 4 * 8 * 8 * 4);
        assert_eq!(points(true).len(), 4 * 8 * 3);
        assert_eq!((points(false).len() + hard_loads::points(&DRIVES).len()) as u64, STEPS);
    }

    /// With the mechanism switched off, the cell that the experiment is about shows the loss.
    #[test]
    fn committing_early_costs_what_the_experiment_measures() {
        let point = Load::Reads4K.point("atlas10k", 3, 300);
        let profile = profile::builtin(point.drive).unwrap();
        let of = |front| point.measure(&profile, front, 1).unwrap().per_second;
        let bare = of(Front::Bare);
        assert!(of(Front::Early) < 0.95 * bare && of(Front::Headtime) > 0.99 * bare);
    }

    /// A command in front of a read that the drive is about to complete costs a stream a
    /// revolution.
    #[test]
    fn a_stream_is_not_broken_by_a_scan() {
        let point = Load::InOrder128K.point("nearline-20tb", 1, 300);
        let profile = profile::builtin(point.drive).unwrap();
        let of = |front| point.measure(&profile, front, 2).unwrap().per_second;
        let (bare, scan) = (of(Front::Bare), of(Front::Scan));
        assert!(scan > 0.99 * bare, "{bare} requests a second alone, {scan} beside a scan");
    }
}
