//! F1: the share of rotational latency in head time, the source of free bandwidth.
//!
//! Lumb, Schindler and Ganger, "Freeblock Scheduling Outside of Disk Firmware" (FAST 2002), section
//! 2.1. The paper gives the cases and the shares, not the number of pending requests; here it is
//! 20, the deepest queue of its figure 8.

use headtime_disk::DriveNoise;
use headtime_plot::{Axis, BarChart, BarSeries, Chart};
use headtime_sched::Order;
use headtime_sim::workload::variates::Share;
use headtime_sim::workload::{GroupSpec, PatternSpec, PlaceSpec};

use crate::common::load_run::{self, Choice, Setup};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const F1: Experiment = Experiment { spec: &SPEC, steps: CASES as u64, run };

const SHARE: &str = "rotational latency's share of head time";

static SPEC: Spec = Spec {
    id: "F1",
    title: "Rotational latency's share of head time",
    source: "Lumb, Schindler, Ganger, Freeblock Scheduling Outside of Disk Firmware (FAST 2002), section 2.1",
    drive: "atlas10k",
    workload: "random reads: 4 KiB; 256 KiB; 4 KiB with 70% in the cylinder group of the request before; \
               4 KiB with 20 waiting under C-LOOK, SSTF and SPTF",
    claims: &[
        Claim {
            id: "F1a",
            claim: "rotational latency's share of head time, small random requests",
            paper: "33%",
            rule: "29 to 37%",
            checks: &[share(29.0, 37.0)],
            quick: true,
            note: "",
        },
        Claim {
            id: "F1b",
            claim: "the same, 256 KB requests",
            paper: "15%",
            rule: "11 to 19%",
            checks: &[share(11.0, 19.0)],
            quick: true,
            note: LATENCY_NOTE,
        },
        Claim {
            id: "F1c",
            claim: "the same, 70% of requests in the most recent cylinder group",
            paper: "60%",
            rule: "50 to 68%",
            checks: &[share(50.0, 68.0)],
            quick: true,
            note: LATENCY_NOTE,
        },
        Claim {
            id: "F1d",
            claim: "the same, seek-reducing order (C-LOOK, SSTF), many waiting",
            paper: "50%",
            rule: "42 to 58%",
            checks: &[
                Check { what: "share under SSTF", unit: "%", test: Test::Between(42.0, 58.0) },
                Check { what: "share under C-LOOK", unit: "%", test: Test::Between(42.0, 58.0) },
            ],
            quick: true,
            note: MANY_WAIT,
        },
        Claim {
            id: "F1e",
            claim: "the same, SPTF, many waiting",
            paper: "20%",
            rule: "14 to 26%",
            checks: &[share(14.0, 26.0)],
            quick: true,
            note: MANY_WAIT,
        },
    ],
    length: Length::Seconds,
    alone: false,
};

/// How the figure depends on the definition of rotational latency.
const LATENCY_NOTE: &str = "Head time is seek, rotation and transfer, and only sectors that were asked for count as \
        transfer (the paper's section 2.1). This drive reads on arrival: a head that lands inside a request begins at \
        once and must come round for the front. That turn is counted as rotation. Counted as transfer, the share would \
        be less by the column `turned_percent` of the table, and this claim would not hold; on a drive that does not \
        read on arrival there is no such turn.";
/// How the figures depend on the number of pending requests.
const MANY_WAIT: &str = "The paper does not say how many are many; 20 wait here, the deepest queue of its figure 8. \
        The more wait, the more an order gets its way: with 10 waiting SPTF is left with some 26% rotation, with 100 \
        the share under SSTF is some 59%.";

const fn share(low: f64, high: f64) -> Check {
    Check { what: SHARE, unit: "%", test: Test::Between(low, high) }
}

/// Pending requests in the case of many.
const MANY_PENDING: u32 = 20;
/// Cylinders per cylinder group, the default of the file system of that time (16).
const GROUP: u32 = 16;

/// Number of cases.
const CASES: usize = 6;

struct Case {
    name: &'static str,
    load: GroupSpec,
    order: Order,
    paper: f64,
}

fn cases() -> [Case; CASES] {
    let small = load_run::random_reads(4096, 2);
    let many = load_run::random_reads(4096, MANY_PENDING);
    let near = GroupSpec {
        pattern: PatternSpec {
            place: PlaceSpec::RecentGroup { share: const { Share::new(7, 10).unwrap() }, cylinders: GROUP },
            ..small.pattern.clone()
        },
        ..small.clone()
    };
    [
        Case { name: "4 KiB, as they come", load: small, order: Order::Fcfs, paper: 33.0 },
        Case {
            name: "256 KiB, as they come",
            load: load_run::random_reads(256 * 1024, 2),
            order: Order::Fcfs,
            paper: 15.0,
        },
        Case { name: "4 KiB, 70% near the last", load: near, order: Order::Fcfs, paper: 60.0 },
        Case { name: "20 waiting, C-LOOK", load: many.clone(), order: Order::Clook, paper: 50.0 },
        Case { name: "20 waiting, SSTF", load: many.clone(), order: Order::Sstf, paper: 50.0 },
        Case { name: "20 waiting, SPTF", load: many, order: Order::Sptf, paper: 20.0 },
    ]
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut rows = Vec::new();
    let mut shares = Vec::new();
    let mut parts: [Vec<f64>; 3] = Default::default();
    let cases = cases();
    for case in &cases {
        let setup = Setup {
            drive: "atlas10k",
            load: case.load.clone(),
            seed: run.seed,
            requests: run.length(30_000, 6_000),
            choice: Choice::Outside(case.order),
            noise: DriveNoise::Profile,
        };
        let m = load_run::measure(&SPEC, &setup)?;
        let percent = m.head.percent();
        shares.push(percent[1]);
        for (part, v) in parts.iter_mut().zip(percent) {
            part.push(v);
        }
        let mut row: Vec<Cell> = vec![case.name.into()];
        row.extend(percent.map(Cell::from));
        let turned = m.head.turned.as_secs_f64() / m.head.given().as_secs_f64();
        row.push((100.0 * turned).into());
        row.extend([case.paper, m.per_second()].map(Cell::from));
        rows.push(row);
        run.progress.advance(1);
    }
    let mut f = Findings::default();
    f.figure("F1a", &[shares[0]]);
    f.figure("F1b", &[shares[1]]);
    f.figure("F1c", &[shares[2]]);
    f.figure("F1d", &[shares[4], shares[3]]);
    f.figure("F1e", &[shares[5]]);
    f.tables.push(Table {
        name: "head_time",
        columns: &[
            "case",
            "seek_percent",
            "rotate_percent",
            "transfer_percent",
            "turned_percent",
            "paper_rotate_percent",
            "requests_per_second",
        ],
        rows,
    });
    let series = ["seek", "rotate", "transfer"]
        .into_iter()
        .zip(parts)
        .map(|(name, values)| BarSeries { name: name.into(), values })
        .collect();
    f.charts.push(Chart::Bars(BarChart {
        title: "Where the head time goes".into(),
        subtitle: "Share of head time by kind of load on the Atlas 10K. The paper gives the share of rotation: 33, \
                15, 60, 50, 50 and 20%, from the top."
            .into(),
        axis: Axis::range("share of head time, %", 0.0, 100.0),
        categories: cases.iter().map(|c| c.name.to_string()).collect(),
        series,
        stacked: true,
        marks: Vec::new(),
        mark_name: String::new(),
    }));
    Ok(f)
}
