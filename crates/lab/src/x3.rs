//! X3: headtime's own planner against the best of the papers' algorithms, on a busy disk, to the end of a scan.
//!
//! No paper has this. Angle-EP-Frag is the default of Thereska, Schindler, Bucy, Salmon, Lumb and Ganger (FAST 2004).

use headtime_disk::profile;
use headtime_sched::core::Order;
use headtime_sched::fill::Algorithm;
use headtime_sim::background::scan_unit;

use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Run, RunError, Spec, Table, Test};
use crate::filled::failed;
use crate::scans::{Fill, Scan, Scanned, Window};
use crate::svg::{Axis, BarChart, BarSeries, Chart};

/// The experiment.
pub struct X3;

const PLANNER_NOTE: &str = "Both with adaptive conservatism; what Angle-EP-Frag takes with the paper's 0.3 ms is in the table. The modern drive \
    is the profile's with one cylinder of twenty, for a whole scan of the real one takes days of a busy drive's time: zones, \
    spares and serpentine groups a twentieth as wide, seeks by share of the stroke, everything along a track and in the \
    electronics as it is. The unit is what a scan of the whole real drive takes when nothing is said, 8 KiB; on the Atlas 10K \
    4 KiB. The modern drive's write-back cache is switched off: with it on, the drive moves its arm when it sees fit, and no planner \
    gets to fill anything (S13).";

static SPEC: Spec = Spec {
    id: "X3",
    title: "headtime's planner against Angle-EP-Frag",
    source: "headtime's own; Angle-EP-Frag: Thereska et al., A Framework for Building Unobtrusive Disk Maintenance Applications (FAST 2004)",
    drive: "atlas10k; hitachi-7k1000c, one cylinder of twenty, write-back off",
    workload: "oltp under SPTF-SW60%; one read of the whole disk in the background, to its end",
    claims: &[
        Claim {
            id: "X3a",
            claim: "headtime's own planner against Angle-EP-Frag, whole scan, busy disk: Atlas 10K",
            paper: "-",
            rule: "at least 20% less time, foreground loss no larger (at most 0 points more)",
            checks: &CHECKS,
            quick: false,
            note: PLANNER_NOTE,
        },
        Claim {
            id: "X3b",
            claim: "the same on a modern drive with a serpentine layout",
            paper: "-",
            rule: "at least 20% less time, foreground loss no larger (at most 0 points more)",
            checks: &CHECKS,
            quick: false,
            note: PLANNER_NOTE,
        },
    ],
    alone: false,
};

const CHECKS: [Check; 2] = [
    Check { what: "less time for a whole scan", unit: "%", test: Test::AtLeast(20.0) },
    Check { what: "foreground loss more than Angle-EP-Frag's", unit: "points", test: Test::AtMost(0.0) },
];

/// A drive, what is left of its cylinders, the claim, and a name for people.
const DRIVES: [(&str, u32, &str, &str); 2] =
    [("atlas10k", 1, "X3a", "Atlas 10K"), ("hitachi-7k1000c", 20, "X3b", "Deskstar 7K1000.C, 1 of 20 cylinders")];
/// Virtual seconds of a scan at most, and of a run without one.
const MOST_SECONDS: u64 = 60_000;
const ALONE_SECONDS: u64 = 3_000;

/// What is compared.
fn cases() -> [(&'static str, Fill); 3] {
    [
        ("headtime, adaptive", Fill::adaptive(Algorithm::Headtime)),
        ("Angle-EP-Frag, adaptive", Fill::adaptive(Algorithm::AngleEpFrag)),
        ("Angle-EP-Frag, 0.3 ms", Fill::host(Algorithm::AngleEpFrag, 300)),
    ]
}

impl Experiment for X3 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn steps(&self) -> u64 {
        (DRIVES.len() * (1 + cases().len())) as u64
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let mut f = Findings::default();
        let mut rows = Vec::new();
        for (drive, narrowed, claim, title) in DRIVES {
            let real = profile::builtin(drive).map_err(|e| failed(&SPEC, e))?;
            let unit = scan_unit(real.geometry.usable_sectors(), real.sector_bytes);
            let scan = Scan {
                narrowed,
                write_through: true,
                ..Scan::new(drive, unit, Order::SptfSw(60), Window::Whole(MOST_SECONDS))
            };
            let without = Scan { window: Window::First(ALONE_SECONDS), ..scan }.measure(&SPEC, run)?;
            let mut scans = Vec::new();
            for (name, fill) in cases() {
                scans.push((name, scan.with(fill).measure(&SPEC, run)?));
            }
            let (ours, theirs) = (&scans[0].1, &scans[1].1);
            let less = 100.0 * (1.0 - ours.seconds() / theirs.seconds());
            f.figure(claim, &[less, ours.loss(&without) - theirs.loss(&without)]);
            rows.extend(scans.iter().map(|(name, s)| row(title, name, s, &without)));
            f.charts.push(chart(title, &scans));
        }
        f.tables.push(Table {
            name: "whole_scans",
            columns: &[
                "drive",
                "algorithm",
                "half_s",
                "to_90_percent_s",
                "to_99_percent_s",
                "to_99.9_percent_s",
                "whole_s",
                "free_mb_s",
                "foreground_loss_percent",
                "response_ms",
                "response_alone_ms",
            ],
            rows,
        });
        Ok(f)
    }
}

fn row(drive: &str, algorithm: &str, s: &Scanned, without: &Scanned) -> Vec<Cell> {
    let mut row = vec![Cell::from(drive), Cell::from(algorithm)];
    row.extend(s.marks.map(Cell::from));
    row.extend([s.free_mb_s, s.loss(without), s.response_ms, without.response_ms].map(Cell::from));
    row
}

fn chart(drive: &str, scans: &[(&'static str, Scanned)]) -> Chart {
    const PARTS: [&str; 5] = ["first half", "to 90%", "to 99%", "to 99.9%", "the rest"];
    let part = |s: &Scanned, i: usize| s.marks[i] - if i == 0 { 0.0 } else { s.marks[i - 1] };
    let series = PARTS
        .iter()
        .enumerate()
        .map(|(i, name)| BarSeries { name: (*name).into(), values: scans.iter().map(|(_, s)| part(s, i)).collect() });
    Chart::Bars(BarChart {
        title: format!("Time of a whole scan, {drive}"),
        subtitle: "Parts of the scan, behind each other. The last blocks are the hardest to reach.".into(),
        axis: Axis::from_zero("seconds"),
        categories: scans.iter().map(|(name, _)| (*name).into()).collect(),
        series: series.collect(),
        stacked: true,
        marks: Vec::new(),
        mark_name: String::new(),
    })
}
