//! D8: the cost of guarantees to a stream of any size.
//!
//! Reuther and Pohlack (2003), section 4.4.2, figure 10: one stream, mandatory or optional (95%),
//! from none of the drive's time to all that admission gives, with a constant best-effort load; all
//! random, or all sequential, with one command at the drive and with two. In the sequential case
//! the stream is one sequence of requests over the drive and best effort another, each from its own
//! start. [`crate::common::stream_run`] states the number of pending best-effort requests.
//!
//! In the sequential case the arm has to move from one sequence to the other and back in each
//! period, because a period's requests arrive at its start and are due at its end. So the table
//! shows how often the arm changes between them in a period and the length of those seeks.
//!
//! Neither sequence stays in one zone, so the total also depends on their zones. The time during
//! which wanted sectors pass under the head (`media_percent`) does not.

use headtime_disk::profile::Profile;
use headtime_disk::{Command, Dur, Kind, Model, Time};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::streams::{Disk, Kinds, Quality};
use headtime_sim::observe::Observer;
use headtime_sim::stats::Stats;
use headtime_sim::workload::das::{BYTES, PERIOD};
use headtime_sim::workload::{Ask, PlaceSpec, StreamSpec, Target, Workload, WorkloadError};

use crate::common::guarantee_check::GuaranteeCheck;
use crate::common::stream_run::{
    BestEffort, DRIVES, StreamRun, WAITING, best_effort_sectors, drive, kbyte_s, known, mbyte_s, most,
};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D8: Experiment = Experiment { spec: &SPEC, steps: 2 * (1 + 2 * 4 * (SIZES + 1)), run };

const fn kept(what: &'static str) -> Check {
    Check { what, unit: "% of best effort alone", test: Test::AtLeast(97.0) }
}

static SPEC: Spec = Spec {
    id: "D8",
    title: "Bandwidth beside a stream of any size",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a \
             Dynamic Active Subset (2003), section 4.4.2, figure 10",
    drive: "ultrastar36z15 and barracuda36es2",
    workload: "reads of 64 KiB, at random or in sequence: one stream with periods of \
               500 ms, and 8 best-effort requests that always wait; one and two commands at the drive",
    claims: &[Claim {
        id: "D8",
        claim: "total bandwidth with a mandatory or optional stream of any size, random and sequential",
        paper: "no penalty",
        rule: "not below 97% of best effort alone, random or in order, at depth 1 and 2; the stream has what it was \
               promised",
        checks: &[
            kept("depth 1, mandatory, random: smallest total"),
            kept("depth 1, optional, random: smallest total"),
            kept("depth 1, mandatory, sequential: smallest total"),
            kept("depth 1, optional, sequential: smallest total"),
            kept("depth 2, mandatory, random: smallest total"),
            kept("depth 2, optional, random: smallest total"),
            kept("depth 2, mandatory, sequential: smallest total"),
            kept("depth 2, optional, sequential: smallest total"),
            crate::common::guarantee_check::CHECKS[0],
            crate::common::guarantee_check::CHECKS[1],
        ],
        quick: true,
        note: "At random only the largest mandatory stream costs anything. What is more than best effort alone is \
               not the scheduler's: with the requests of the stream it has more to choose from than the 8 that wait \
               otherwise; the paper sees that as a slight increase. In sequence the arm goes to the stream's row \
               and back once in each period, which takes two seeks and two rotational delays: beside any stream but \
               the largest 97% are left on the Ultrastar (96.9% in one of the short runs) and 95% on the Barracuda. \
               With the rows half a disk apart two seeks alone take 16.1 ms of 500 on the Barracuda, so that it \
               cannot have more than 96.8% as long as each period is served for itself. The largest stream leaves \
               less than one worst case free in a period, so that at its end nothing may be begun: on the Barracuda \
               the drive is idle for 32 to 34 ms of each 500.",
    }],
    length: Length::Minutes,
    alone: false,
};

/// Number of measured stream sizes, without zero.
const SIZES: u64 = 6;
/// Quality of the optional stream (section 4.4.2).
const OPTIONAL_QUALITY_PPM: u32 = 950_000;

/// One of the paper's figures: 10(a) to 10(f) are some of these for one drive each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Figure {
    quality: Quality,
    sequential: bool,
    /// Most commands at the drive.
    depth: u32,
}

/// One of the drives, and its curves.
struct Tested {
    name: &'static str,
    profile: Profile,
    disk: Disk,
    model: Model,
    series: Vec<Series>,
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let optional = Quality::from_ppm(OPTIONAL_QUALITY_PPM).map_err(|e| failed(&SPEC, e))?;
    let kinds = [(false, Quality::MANDATORY), (false, optional), (true, Quality::MANDATORY), (true, optional)];
    let mut figures = Vec::with_capacity(2 * kinds.len());
    let mut rows = Vec::new();
    let mut f = Findings::default();
    let mut had = GuaranteeCheck::none();
    let mut drives = Vec::new();
    for name in DRIVES {
        let profile = drive(&SPEC, name)?;
        let disk = known(&SPEC, &profile)?;
        let model = Model::new(&profile).map_err(|e| failed(&SPEC, e))?;
        run.progress.advance(1);
        drives.push(Tested { name, profile, disk, model, series: Vec::new() });
    }
    for depth in [1, 2] {
        for (sequential, quality) in kinds {
            let kind = Figure { quality, sequential, depth };
            let mut smallest = 100.0f64;
            for tested in &mut drives {
                let points = curve(run, tested, kind, &mut had)?;
                let alone = points[0].total;
                for p in &points {
                    let kept = 100.0 * p.total / alone;
                    smallest = smallest.min(kept);
                    let figures = [p.stream, p.best_effort, p.total, kept, p.quality, p.alone, p.media];
                    let moves = [p.changes, p.seek].map(|m| if sequential { m } else { f64::NAN });
                    let first = [Cell::from(tested.name), Cell::from(f64::from(depth)), Cell::from(kind.words())];
                    let cells = [f64::from(p.requests)].into_iter().chain(figures).chain(moves).map(Cell::from);
                    rows.push(first.into_iter().chain(cells).collect());
                }
                tested.series.push(Series {
                    name: format!("{}, depth {depth}", kind.words()),
                    style: Style::Marked,
                    points: points.iter().map(|p| (p.stream, p.total)).collect(),
                });
            }
            figures.push(smallest);
        }
    }
    for Tested { name, series, .. } in drives {
        f.charts.push(Chart::Xy(XyChart {
            title: format!("Total bandwidth beside a stream, {name}"),
            subtitle: "What stream and best effort get together, by what the stream gets. A level line is a promise \
                       that costs nothing."
                .into(),
            x: Axis::from_zero("MByte/s of the stream"),
            y: Axis::from_zero("MByte/s in all"),
            series,
        }));
    }
    figures.extend(had.figures());
    f.figure("D8", &figures);
    f.notes.push(("D8", had.words()));
    f.tables.push(Table { name: "bandwidth", columns: COLUMNS, rows });
    Ok(f)
}

const COLUMNS: &[&str] = &[
    "drive",
    "depth",
    "stream",
    "requests",
    "stream_mbyte_s",
    "best_effort_mbyte_s",
    "total_mbyte_s",
    "percent_of_best_effort_alone",
    "quality_percent",
    "streams_alone_percent",
    "media_percent",
    "changes_of_row_a_period",
    "seek_ms_a_change",
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

/// One stream size. Bandwidths in the paper's MByte per second.
struct Point {
    requests: u32,
    stream: f64,
    best_effort: f64,
    total: f64,
    quality: f64,
    alone: f64,
    /// Share of the time during which wanted sectors pass under the head, in percent.
    media: f64,
    /// Number of commands per period that do not begin where the previous one ended.
    changes: f64,
    /// Mean seek of those, milliseconds.
    seek: f64,
}

/// From no stream to the largest admitted one.
fn curve(run: &Run, tested: &Tested, kind: Figure, had: &mut GuaranteeCheck) -> Result<Vec<Point>, RunError> {
    let Tested { profile, disk, model, .. } = tested;
    let (largest, _) =
        most(disk, kind.quality, Kinds::Any).ok_or_else(|| failed(&SPEC, "not one request can be had"))?;
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
        let depth = Some(kind.depth);
        let mut bench = StreamRun { length, depth, seed: run.seed, ..StreamRun::new(profile, disk, streams, WAITING) };
        if kind.sequential {
            bench.best_effort = BestEffort::Own(|target, seed| Box::new(Sequence::new(target, seed)));
        }
        let mut moves = Moves { model, last: None, changes: 0, seeks: Dur::ZERO, media: Dur::ZERO };
        let stats = bench.run(&SPEC, &mut moves)?;
        had.count(&stats);
        points.push(point(requests, &stats, &moves));
    }
    Ok(points)
}

fn point(requests: u32, stats: &Stats, moves: &Moves) -> Point {
    let best_effort = kbyte_s(best_effort_sectors(stats), stats) / 1e3;
    let total = mbyte_s(stats);
    let subset = stats.subset.unwrap_or_default();
    let ran = stats.ended_at.as_secs_f64();
    Point {
        requests,
        stream: total - best_effort,
        best_effort,
        total,
        quality: stats.streams.first().and_then(|s| s.quality()).map_or(100.0, |q| 100.0 * q),
        alone: 100.0 * subset.streams_only as f64 / subset.made.max(1) as f64,
        media: 100.0 * moves.media.as_secs_f64() / ran,
        changes: moves.changes as f64 * PERIOD.as_secs_f64() / ran,
        seek: moves.seeks.as_ms_f64() / moves.changes.max(1) as f64,
    }
}

/// An observer of the distances between the commands of a run.
struct Moves<'a> {
    model: &'a Model,
    /// End of the previous command: one past its last LBN, and its track.
    last: Option<(u64, (u32, u16))>,
    changes: u64,
    seeks: Dur,
    media: Dur,
}

impl Observer for Moves<'_> {
    fn issued(&mut self, command: &Command, _now: Time) {
        let Some(place) = self.model.place(command.lbn, command.count, command.kind) else { return };
        if let Some((_, track)) = self.last.filter(|last| last.0 != command.lbn) {
            self.changes += 1;
            self.seeks += self.model.mechanics.reposition(track, (place.cylinder, place.surface), command.kind);
        }
        self.media += place.media;
        let end = command.lbn + u64::from(command.count);
        self.last = Some((end, (place.end_cylinder, place.end_surface)));
    }
}

/// A sequence of reads over the drive, with as many pending as best-effort requests.
struct Sequence {
    next: u64,
    count: u32,
    capacity: u64,
    outstanding: u32,
    due: Time,
}

impl Sequence {
    /// The start moves by a quarter of the drive with each seed.
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
