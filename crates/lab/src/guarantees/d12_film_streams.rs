//! D12: films in three streams each. Losses occur in the least important frames.
//!
//! Reuther and Pohlack (2003), section 3.1 and figure 1: the I frames of a film are a mandatory
//! stream, its P and B frames optional ones. Three frames of twelve blocks each, as in the example
//! `mpeg` of `headtime-serve`, which does the same in real time and with clients.

use headtime_disk::Dur;
use headtime_plot::{Axis, BarChart, BarSeries, Chart};
use headtime_sched::streams::{Disk, Quality, Stream, admit};
use headtime_sim::stats::Stats;
use headtime_sim::workload::StreamSpec;
use headtime_sim::workload::das::BYTES;

use crate::common::guarantee_check::{self, GuaranteeCheck};
use crate::common::stream_run::{DRIVES, StreamRun, WAITING, drive, known, mbyte_s};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D12: Experiment = Experiment { spec: &SPEC, steps: DRIVES.len() as u64, run };

static SPEC: Spec = Spec {
    id: "D12",
    title: "Films split into streams by the kind of their frames",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
            (2003), section 3.1, figure 1",
    drive: "ultrastar36z15 and barracuda36es2",
    workload: "as many films as can be had, each of three streams of random 64 KiB reads in periods of 480 ms (I: 4 \
            requests, all of them; P: 6, 95%; B: 8, 60%), and 8 best-effort requests that always wait",
    claims: &[Claim {
        id: "D12",
        claim: "MPEG: I, P and B streams split, B loses first",
        paper: "figure 1",
        rule: "I loses nothing; at most 1% of the streams have less than the quality that they asked for, beyond \
               chance",
        checks: &[
            Check { what: "requests of I frames lost", unit: "requests", test: Test::Never },
            Check { what: "drives on which P loses a larger part than B", unit: "cases", test: Test::Never },
            Check {
                what: "drives on which B loses nothing, and so nothing is shown",
                unit: "cases",
                test: Test::Never,
            },
            guarantee_check::CHECKS[0],
            guarantee_check::CHECKS[1],
        ],
        quick: true,
        note: "Streams that have used up their reservations are left out, as in the paper's figure 2, and what was not \
               begun in its period is given up.",
    }],
    length: Length::Seconds,
    alone: false,
};

/// A kind of frames: name, requests per film and period, and quality in parts per million.
const KINDS: [(&str, u32, u32); 3] = [("I", 4, 1_000_000), ("P", 6, 950_000), ("B", 8, 600_000)];
/// Twelve frames at 25 per second.
const PERIOD: Dur = Dur::from_ms(480);
/// Most films to try.
const MOST_FILMS: usize = 50;

fn run(run: &Run) -> Result<Findings, RunError> {
    let (mut rows, mut lost, mut wrong, mut had) = (Vec::new(), Vec::new(), 0, GuaranteeCheck::none());
    for name in DRIVES {
        let profile = drive(&SPEC, name)?;
        let disk = known(&SPEC, &profile)?;
        let films = films(&disk)?;
        let all = (0..films).flat_map(|film| KINDS.map(|kind| (film, kind)));
        let streams = all.map(|(film, (kind, requests, ppm))| {
            Ok(StreamSpec::new(format!("film {} {kind}", film + 1), requests, PERIOD, quality(ppm)?))
        });
        let streams = streams.collect::<Result<Vec<_>, RunError>>()?;
        let length = Dur::from_secs(run.length(600, 60));
        let bench = StreamRun { length, seed: run.seed, ..StreamRun::new(&profile, &disk, streams, WAITING) };
        let stats = bench.run(&SPEC, &mut ())?;
        run.progress.advance(1);
        had.count(&stats);
        let of = |kind: usize| Part::of(&stats, kind);
        let parts = [of(0), of(1), of(2)];
        wrong += usize::from(parts[1].percent() > parts[2].percent());
        for (part, (kind, requests, ppm)) in parts.iter().zip(KINDS) {
            let figures = [
                films as f64,
                f64::from(requests),
                f64::from(ppm) / 1e4,
                part.asked as f64,
                part.lost as f64,
                part.percent(),
                mbyte_s(&stats),
            ];
            rows.push([name, kind].map(Cell::from).into_iter().chain(figures.map(Cell::from)).collect());
        }
        lost.push(parts);
    }
    let mut f = Findings::default();
    let of_i = lost.iter().map(|parts| parts[0].lost).sum::<u64>() as f64;
    let nothing = lost.iter().filter(|parts| parts[2].lost == 0).count() as f64;
    let [below, missed] = had.figures();
    f.figure("D12", &[of_i, wrong as f64, nothing, below, missed]);
    f.notes.push(("D12", had.words()));
    f.tables.push(Table { name: "lost", columns: COLUMNS, rows });
    f.charts.push(chart(&lost));
    Ok(f)
}

/// Requests of one kind of frames.
struct Part {
    asked: u64,
    lost: u64,
}

impl Part {
    /// Sums over the films of a run; streams are ordered by film, then by kind.
    fn of(stats: &Stats, kind: usize) -> Part {
        let streams = || stats.streams.iter().skip(kind).step_by(KINDS.len());
        let asked = streams().map(|s| s.periods() * u64::from(s.stream.requests)).sum();
        Part { asked, lost: streams().map(|s| s.missed()).sum() }
    }

    fn percent(&self) -> f64 {
        100.0 * self.lost as f64 / self.asked.max(1) as f64
    }
}

fn quality(ppm: u32) -> Result<Quality, RunError> {
    Quality::from_ppm(ppm).map_err(|e| failed(&SPEC, e))
}

/// Returns the number of films that can be admitted.
fn films(disk: &Disk) -> Result<usize, RunError> {
    let mut streams = Vec::new();
    for films in 0..MOST_FILMS {
        for (_, requests, ppm) in KINDS {
            let sectors = (BYTES / 512) as u32;
            let stream = Stream::new(requests, PERIOD, quality(ppm)?, sectors);
            streams.push(stream.map_err(|e| failed(&SPEC, e))?);
        }
        if admit(disk, &streams).is_err() {
            return if films > 0 { Ok(films) } else { Err(failed(&SPEC, "not one film can be had")) };
        }
    }
    Ok(MOST_FILMS)
}

const COLUMNS: &[&str] = &[
    "drive",
    "kind",
    "films",
    "requests_of_a_film",
    "asked_percent",
    "requests",
    "lost",
    "lost_percent",
    "total_mbyte_s",
];

fn chart(lost: &[[Part; 3]]) -> Chart {
    Chart::Bars(BarChart {
        title: "What is lost of films, by the kind of frames".into(),
        subtitle: "The part of the requests that is not done in its period.".into(),
        axis: Axis::from_zero("% of requests lost"),
        categories: KINDS.iter().map(|k| k.0.into()).collect(),
        series: DRIVES
            .iter()
            .zip(lost)
            .map(|(name, parts)| BarSeries { name: (*name).into(), values: parts.iter().map(Part::percent).collect() })
            .collect(),
        stacked: false,
        marks: Vec::new(),
        mark_name: String::new(),
    })
}
