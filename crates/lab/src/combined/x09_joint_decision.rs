//! X9: ORDER and FILL decide together: a whole scan in less time, with SPTF's foreground rate
//! without FILL.
//!
//! Not from a paper. Lumb, Schindler, Riedel and Ganger (OSDI 2000, section 5.3) let ORDER decide
//! alone, and compare orders.

use headtime_disk::{Time, profile};
use headtime_sched::{Algorithm, Order};
use headtime_sim::background::scan_unit;

use crate::common::figure9::UNIT;
use crate::common::scan_bound::SHARES;
use crate::common::scans::{Fill, Readers, Scan, Scanned, Window};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const X9: Experiment =
    Experiment { spec: &SPEC, steps: (DRIVES.len() * (1 + ORDERS.len() + APPLICATIONS.len())) as u64, run };

static SPEC: Spec = Spec {
    id: "X9",
    title: "ORDER and FILL decide together",
    source: "headtime's own; orders that decide alone: Lumb, Schindler, Riedel, Ganger, Towards Higher Disk Head \
             Utilization (OSDI 2000), section 5.3",
    drive: "atlas10k; nearline-20tb, one cylinder of 400, write-back off",
    workload: "oltp; one read of the whole disk in the background, to its end; without it under SPTF; two reads at a \
               time, and four of a quarter each",
    claims: &[
        Claim {
            id: "X9a",
            claim: "whole scan with sptf-joint, foreground as with SPTF alone: Atlas 10K",
            paper: "-",
            rule: "requests a second and mean no worse, p99 at most 2% higher, time at most 2000 s",
            checks: &[LOSS, MEAN, P99, Check { what: "time of the scan", unit: "s", test: Test::AtMost(2_000.0) }],
            quick: false,
            note: NOTE,
        },
        Claim {
            id: "X9b",
            claim: "the same on a modern drive",
            paper: "-",
            rule: "requests a second and mean no worse, p99 at most 2% higher; time at most 70.5% of that under SPTF \
                   (fixed when that took 2,836 s on the Atlas 10K, for 2,000 s there)",
            checks: &[LOSS, MEAN, P99, Check { what: "time, of that under SPTF", unit: "%", test: Test::AtMost(70.5) }],
            quick: false,
            note: NOTE,
        },
    ],
    length: Length::Minutes,
    alone: false,
};

const LOSS: Check = Check { what: "fewer requests a second than SPTF alone", unit: "%", test: Test::AtMost(0.0) };
const MEAN: Check = Check { what: "mean response above SPTF alone", unit: "%", test: Test::AtMost(0.0) };
const P99: Check = Check { what: "p99 above SPTF alone", unit: "%", test: Test::AtMost(2.0) };

const NOTE: &str = "sptf-ahead is the same without the joint decision. The orders that decide alone are in the table, \
                    all with headtime's planner and adaptive conservatism. The modern drive is the profile's with one \
                    cylinder of 400, for a scan of the real one takes days; its write-back cache is off.";

/// A drive, the reduction of its cylinders, and the claim.
const DRIVES: [(&str, u32, &str); 2] = [("atlas10k", 1, "X9a"), ("nearline-20tb", 400, "X9b")];
/// Time limit of a scan, and duration of a run without one, virtual seconds.
const MOST_SECONDS: u64 = 20_000;
const ALONE_SECONDS: u64 = 3_000;

const ORDERS: [(&str, Order); 4] = [
    ("sptf", Order::Sptf),
    ("sptf-sw:20", Order::SptfSw(20)),
    ("sptf-ahead", Order::SptfAhead),
    ("sptf-joint", Order::SptfJoint),
];

/// Several concurrent applications.
const APPLICATIONS: [(&str, Readers); 2] =
    [("two, the whole disk each", Readers::Two), ("four, a quarter each", Readers::Quarters)];

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let (mut rows, mut bounds, mut several) = (Vec::new(), Vec::new(), Vec::new());
    for (drive, narrowed, claim) in DRIVES {
        let real = profile::builtin(drive).map_err(|e| failed(&SPEC, e))?;
        let unit = match claim {
            "X9a" => UNIT,
            _ => scan_unit(real.geometry.usable_sectors(), real.sector_bytes),
        };
        let scan = |order| Scan {
            narrowed,
            write_through: true,
            ..Scan::new(drive, unit, order, Window::Whole(MOST_SECONDS))
        };
        let alone = Scan { window: Window::First(ALONE_SECONDS), ..scan(Order::Sptf) }.measure(&SPEC, run)?;
        let mut scans = Vec::new();
        for (_, order) in ORDERS {
            let scan = Scan { bounded: true, ..scan(order) };
            scans.push(scan.with(Fill::adaptive(Algorithm::Headtime)).measure(&SPEC, run)?);
        }
        let of = |order| ORDERS.iter().position(|o| o.1 == order).map(|at| &scans[at]).expect("it is one of them");
        let (sptf, joint) = (of(Order::Sptf), of(Order::SptfJoint));
        let time = match claim {
            "X9a" => joint.seconds(),
            _ => 100.0 * joint.seconds() / sptf.seconds(),
        };
        f.figure(
            claim,
            &[joint.loss(&alone), more(joint.response_ms, alone.response_ms), joint.p99_rise(&alone), time],
        );
        several.push(course(drive, "one, the whole disk", joint, &alone));
        for (name, readers) in APPLICATIONS {
            let scan = Scan { readers, ..scan(Order::SptfJoint) }.with(Fill::adaptive(Algorithm::Headtime));
            several.push(course(drive, name, &scan.measure(&SPEC, run)?, &alone));
        }
        rows.push(row(drive, "sptf, no scan", &alone, &alone));
        rows.extend(ORDERS.iter().zip(&scans).map(|((name, _), s)| row(drive, name, s, &alone)));
        bounds.extend(ORDERS.iter().zip(&scans).flat_map(|((name, _), s)| stages(drive, name, s)));
    }
    f.tables.push(Table {
        name: "whole_scans",
        columns: &[
            "drive",
            "order",
            "half_s",
            "to_90_percent_s",
            "to_99_percent_s",
            "to_99.9_percent_s",
            "whole_s",
            "free_mb_s",
            "requests_per_second",
            "response_ms",
            "response_p99_ms",
            "foreground_loss_percent",
        ],
        rows,
    });
    f.tables.push(Table {
        name: "several_readers",
        columns: &[
            "drive",
            "readers",
            "half_s",
            "to_90_percent_s",
            "to_99_percent_s",
            "to_99.9_percent_s",
            "whole_s",
            "requests_per_second",
            "response_ms",
            "response_p99_ms",
            "foreground_loss_percent",
        ],
        rows: several,
    });
    f.tables.push(Table {
        name: "bounds",
        columns: &["drive", "order", "percent_read", "after_s", "bound_s", "bound_percent"],
        rows: bounds,
    });
    Ok(f)
}

/// The relative excess of `this` over `that`, %.
fn more(this: f64, that: f64) -> f64 {
    100.0 * (this / that - 1.0)
}

/// The times at which each share of the disk was read, and their lower bounds
/// ([`crate::common::scan_bound`]).
fn stages(drive: &str, order: &str, s: &Scanned) -> Vec<Vec<Cell>> {
    let stage = |i: usize| {
        let bound = s.bound[i].map_or(f64::NAN, Time::as_secs_f64);
        let figures = [SHARES[i] as f64 / 10.0, s.marks[i], bound, 100.0 * bound / s.marks[i]];
        [drive, order].map(Cell::from).into_iter().chain(figures.map(Cell::from)).collect()
    };
    (0..SHARES.len()).map(stage).collect()
}

/// Progress of several readers. The free bandwidth is left out, because it counts sectors wanted by
/// two readers twice.
fn course(drive: &str, readers: &str, s: &Scanned, alone: &Scanned) -> Vec<Cell> {
    let mut row = vec![Cell::from(drive), Cell::from(readers)];
    row.extend(s.marks.map(Cell::from));
    row.extend([s.per_second, s.response_ms, s.p99_ms, s.loss(alone)].map(Cell::from));
    row
}

fn row(drive: &str, order: &str, s: &Scanned, alone: &Scanned) -> Vec<Cell> {
    let mut row = vec![Cell::from(drive), Cell::from(order)];
    row.extend(s.marks.map(Cell::from));
    row.extend([s.free_mb_s, s.per_second, s.response_ms, s.p99_ms, s.loss(alone)].map(Cell::from));
    row
}
