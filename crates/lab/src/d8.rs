//! D8: what it costs to keep promises to a stream of any size.
//!
//! Reuther and Pohlack (2003), section 4.4.2, figure 10: one stream, mandatory or optional (95%), from none of the drive's time to all that
//! admission lets it have, beside a constant best-effort load; all at random, or all in sequence. In sequence the stream is one row of
//! requests over the drive and best effort another, each from a place of its own. [`crate::das`] says how many best-effort requests wait.

use headtime_disk::command::Kind;
use headtime_disk::profile::Profile;
use headtime_disk::time::{Dur, Time};
use headtime_sched::admit::das::admission::Disk;
use headtime_sched::admit::das::stream::Quality;
use headtime_sim::stats::Stats;
use headtime_sim::workload::das::{BYTES, PERIOD};
use headtime_sim::workload::{Ask, PlaceSpec, StreamSpec, Target, Workload, WorkloadError};

use crate::das::{Bench, Beside, DRIVES, WAITING, best_effort_sectors, drive, kbyte_s, known, mbyte_s, most};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Run, RunError, Spec, Table, Test};
use crate::filled::failed;
use crate::svg::{Axis, Chart, Series, Style, XyChart};

/// The experiment.
pub struct D8;

const fn loss(what: &'static str) -> Check {
    Check { what, unit: "%", test: Test::AtMost(3.0) }
}

static SPEC: Spec = Spec {
    id: "D8",
    title: "Bandwidth beside a stream of any size",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset (2003), section 4.4.2, figure 10",
    drive: "ultrastar36z15 and barracuda36es2",
    workload: "reads of 64 KiB, at random or in sequence: one stream with periods of 500 ms, and 8 best-effort requests that always wait",
    claims: &[Claim {
        id: "D8",
        claim: "total bandwidth with a mandatory or optional stream of any size, random and sequential",
        paper: "no penalty",
        rule: "within 3% of best effort alone",
        checks: &[
            loss("mandatory, random: largest loss"),
            loss("optional, random: largest loss"),
            loss("mandatory, sequential: largest loss"),
            loss("optional, sequential: largest loss"),
            loss("mandatory, random: largest gain"),
            loss("optional, random: largest gain"),
            loss("mandatory, sequential: largest gain"),
            loss("optional, sequential: largest gain"),
        ],
        quick: true,
        note: "At random there is no loss at any size. What is more than best effort alone is not the scheduler's: with the requests of the \
               stream it has more to choose from than the 8 that wait otherwise, and the paper sees that, too, as a slight increase. In \
               sequence there is a loss on the slower drive: once in each period the arm goes from the one row of requests to the other \
               and back, which is two moves and two half turns in 500 ms, 2% of it on the Ultrastar and 5% on the Barracuda, whatever \
               the size of the stream.",
    }],
    alone: false,
};

/// Sizes of a stream that are measured, none aside.
const SIZES: u64 = 6;
/// What an optional stream asks for (section 4.4.2).
const OPTIONAL: u32 = 950_000;

/// One of the paper's figures: 10(a) to 10(f) are some of these for one drive each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Figure {
    quality: Quality,
    sequential: bool,
}

impl Experiment for D8 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn steps(&self) -> u64 {
        2 * (1 + 4 * (SIZES + 1))
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let optional = Quality::from_ppm(OPTIONAL).map_err(|e| failed(&SPEC, e))?;
        let mut figures = [0.0f64; 8];
        let mut rows = Vec::new();
        let mut f = Findings::default();
        for name in DRIVES {
            let profile = drive(&SPEC, name)?;
            let disk = known(&SPEC, &profile)?;
            run.progress.advance(1);
            let mut series = Vec::new();
            for (i, (sequential, quality)) in
                [(false, Quality::MANDATORY), (false, optional), (true, Quality::MANDATORY), (true, optional)]
                    .into_iter()
                    .enumerate()
            {
                let kind = Figure { quality, sequential };
                let points = curve(run, &profile, &disk, kind)?;
                let alone = points[0].total;
                for p in &points {
                    let change = 100.0 * (p.total / alone - 1.0);
                    figures[i] = figures[i].max(-change);
                    figures[i + 4] = figures[i + 4].max(change);
                    let columns = [f64::from(p.requests), p.stream, p.best_effort, p.total, change, p.quality, p.alone];
                    let kind = [name, kind.words()].map(Cell::from);
                    rows.push(kind.into_iter().chain(columns.map(Cell::from)).collect());
                }
                series.push(Series {
                    name: kind.words().into(),
                    style: Style::Marked,
                    points: points.iter().map(|p| (p.stream, p.total)).collect(),
                });
            }
            f.charts.push(Chart::Xy(XyChart {
                title: format!("Total bandwidth beside a stream, {name}"),
                subtitle: "What stream and best effort get together, by what the stream gets. A level line is a promise that costs nothing."
                    .into(),
                x: Axis::from_zero("MByte/s of the stream"),
                y: Axis::from_zero("MByte/s in all"),
                series,
            }));
        }
        f.figure("D8", &figures);
        f.tables.push(Table { name: "bandwidth", columns: COLUMNS, rows });
        Ok(f)
    }
}

const COLUMNS: &[&str] = &[
    "drive",
    "stream",
    "requests",
    "stream_mbyte_s",
    "best_effort_mbyte_s",
    "total_mbyte_s",
    "change_percent",
    "quality_percent",
    "streams_alone_percent",
];

impl Figure {
    fn words(self) -> &'static str {
        match (self.quality.is_mandatory(), self.sequential) {
            (true, false) => "mandatory, random",
            (false, false) => "optional, random",
            (true, true) => "mandatory, sequential",
            (false, true) => "optional, sequential",
        }
    }
}

/// One size of a stream. Bandwidths in the paper's MByte a second.
struct Point {
    requests: u32,
    stream: f64,
    best_effort: f64,
    total: f64,
    quality: f64,
    alone: f64,
}

/// From no stream at all to the largest that is admitted.
fn curve(run: &Run, profile: &Profile, disk: &Disk, kind: Figure) -> Result<Vec<Point>, RunError> {
    let (largest, _) = most(disk, kind.quality).ok_or_else(|| failed(&SPEC, "not one request can be had"))?;
    let mut points: Vec<Point> = Vec::new();
    for step in 0..=SIZES {
        run.progress.advance(1);
        let requests = (u64::from(largest) * step).div_ceil(SIZES) as u32;
        if points.last().is_some_and(|p| p.requests == requests) {
            continue;
        }
        let mut streams = Vec::new();
        if requests > 0 {
            let mut stream = StreamSpec::new("stream", requests, PERIOD, kind.quality);
            if kind.sequential {
                stream.pattern.place = PlaceSpec::Sequential;
            }
            streams.push(stream);
        }
        let length = Dur::from_secs(run.length(300, 40));
        let mut bench = Bench { length, seed: run.seed, ..Bench::new(profile, disk, streams, WAITING) };
        if kind.sequential {
            bench.best_effort = Beside::Own(|target, seed| Box::new(Sequence::new(target, seed)));
        }
        let stats = bench.run(&SPEC, &mut ())?;
        points.push(point(requests, &stats));
    }
    Ok(points)
}

fn point(requests: u32, stats: &Stats) -> Point {
    let best_effort = kbyte_s(best_effort_sectors(stats), stats) / 1e3;
    let total = mbyte_s(stats);
    let subset = stats.subset.unwrap_or_default();
    Point {
        requests,
        stream: total - best_effort,
        best_effort,
        total,
        quality: stats.streams.first().and_then(|s| s.quality()).map_or(100.0, |q| 100.0 * q),
        alone: 100.0 * subset.streams_only as f64 / subset.made.max(1) as f64,
    }
}

/// One row of reads over the drive, of which as many always wait as best-effort requests do.
struct Sequence {
    next: u64,
    count: u32,
    capacity: u64,
    outstanding: u32,
    due: Time,
}

impl Sequence {
    /// It begins a quarter of the drive further on with each seed.
    fn new(target: &Target, seed: u64) -> Sequence {
        let count = (BYTES / u64::from(target.sector_bytes)) as u32;
        let from = target.capacity / 4 * (1 + seed % 3);
        Sequence { next: from, count, capacity: target.capacity, outstanding: 0, due: Time::ZERO }
    }
}

impl Workload for Sequence {
    fn next_due(&self) -> Option<Time> {
        (self.outstanding < WAITING).then_some(self.due)
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        if self.next + u64::from(self.count) > self.capacity {
            self.next = 0;
        }
        let lbn = self.next;
        self.next += u64::from(self.count);
        self.outstanding += 1;
        let (due, count) = (self.due, self.count);
        Ok(Ask { due, kind: Kind::Read, lbn, count, fua: false, sync: true, owner: 0, class: 0 })
    }

    fn finished(&mut self, _owner: u32, now: Time) {
        self.outstanding -= 1;
        self.due = now;
    }

    fn endless(&self) -> bool {
        true
    }
}
