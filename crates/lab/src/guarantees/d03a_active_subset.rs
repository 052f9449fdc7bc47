//! D3a: the number of requests in the active subset, over time.
//!
//! Reuther and Pohlack (2003), section 4.2, figure 5: one mandatory stream, an optional one and a
//! constant load of best effort, with the number of eligible requests of each class at each
//! decision. The paper does not state the optional stream's parameters ([`MIXED`] has ours). X is
//! measured with as many pending requests as best effort has here: under the expected load (section
//! 3.1.2).
//!
//! The figure shows two effects: the number of requests falls as those of the streams complete, and
//! at some points best effort is excluded. So the fall is examined in the decisions that include
//! best effort.

use headtime_disk::{Dur, Time};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::streams::SubsetSizes;
use headtime_sim::observe::Observer;
use headtime_sim::stats::streams::StreamAccount;
use headtime_sim::workload::das::{self, BYTES, MIXED, PERIOD};

use crate::common::guarantee_check::margin;
use crate::common::stream_run::{DRIVES, StreamRun, drive, known, measured};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D3A: Experiment = Experiment { spec: &SPEC, steps: 2, run };

static SPEC: Spec = Spec {
    id: "D3a",
    title: "The active subset over time",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
            (2003), section 4.2, figure 5",
    drive: DRIVES[0],
    workload: "random reads of 64 KiB: a mandatory stream of 5 and an optional one of 45 requests in each 500 ms, and \
            100 best-effort requests that always wait",
    claims: &[Claim {
        id: "D3a",
        claim: "size of the active subset over time (5 mandatory, 45 optional, 100 best effort)",
        paper: "falls through each period, rarely real-time only",
        rule: "same shape: with best effort among them, the mean falls from each fifth of the period to the next; \
               streams alone in at most 12% of the decisions, and more often in the second half of the period; the \
               optional stream within 0.5 points of what was asked or above, the mandatory one with all requests in \
               time",
        checks: &[
            Check {
                what: "fifths of the period in which the mean size with best effort is not below that of the fifth \
                       before",
                unit: "cases",
                test: Test::Never,
            },
            Check { what: "decisions for streams alone", unit: "% of all", test: Test::AtMost(12.0) },
            Check {
                what: "halves of which the first has more decisions for streams alone than the second",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "quality achieved by the optional stream less that asked for",
                unit: "points",
                test: Test::AtLeast(-0.5),
            },
            Check { what: "requests of the mandatory stream not in time", unit: "requests", test: Test::Never },
        ],
        quick: true,
        note: "The mean falls through the period as the paper's does. Decisions for streams alone are most \
               in the middle of the period, not towards its end. What is rare it says in another place, section \
               4.4.2: 5 and 12% of the decisions, beside one mandatory stream; here it is half as much more (17.8 to \
               18.3%). Our w is longer than the paper's by what it leaves out (a write that settles, a read-ahead that \
               has to stop), and before reservations the overrun of the last request of a stream is kept free, too. \
               What is reserved is what the stream needs where it has only its own requests to choose from, fewer \
               and fewer of them: a third more than with one X of the hundred that wait here, with which streams \
               alone had 12% of the decisions and the optional stream 89% of its requests in time, of 95 that it \
               asked for.",
    }],
    length: Length::Seconds,
    alone: false,
};

/// Number of parts of a period.
const PARTS: usize = 5;
/// Periods in the chart.
const CHART_PERIODS: u64 = 4;

fn run(run: &Run) -> Result<Findings, RunError> {
    let profile = drive(&SPEC, DRIVES[0])?;
    let samples = (run.length(100_000, 20_000), run.seed);
    let profile = measured(&SPEC, &profile, &[BYTES], das::WAITING, 1, samples)?;
    let disk = known(&SPEC, &profile)?;
    run.progress.advance(1);
    let streams = das::streams(&MIXED).map_err(|e| failed(&SPEC, e))?;
    let length = Dur::from_secs(run.length(600, 60));
    let bench = StreamRun { length, seed: run.seed, ..StreamRun::new(&profile, &disk, streams, das::WAITING) };
    let mut watch = Watch::default();
    let stats = bench.run(&SPEC, &mut watch)?;
    run.progress.advance(1);
    let means = watch.parts.map(|p| p.with_best_effort / (p.decisions - p.alone).max(1) as f64);
    let not_below = means.windows(2).filter(|w| w[1] >= w[0]).count();
    let alone: u64 = watch.parts.iter().map(|p| p.alone).sum();
    let all: u64 = watch.parts.iter().map(|p| p.decisions).sum();
    let mut f = Findings::default();
    let halves = f64::from(u8::from(watch.halves[0] > watch.halves[1]));
    let optional = stats.streams.iter().filter(|s| !s.stream.is_mandatory());
    let margin = optional.filter_map(margin).reduce(f64::min).unwrap_or(f64::NAN);
    let missed: u64 = stats.streams.iter().filter(|s| s.stream.is_mandatory()).map(|s| s.missed()).sum();
    f.figure("D3a", &[not_below as f64, 100.0 * alone as f64 / all.max(1) as f64, halves, margin, missed as f64]);
    let row = |(i, p): (usize, &Part)| {
        let n = p.decisions.max(1) as f64;
        let share = 100.0 * p.alone as f64 / n;
        let sums = p.sum.map(|sum| sum / n);
        [(i + 1) as f64, p.decisions as f64, sums[0], sums[1], sums[2], p.mean(), means[i], share]
            .map(Cell::from)
            .to_vec()
    };
    f.tables.push(Table { name: "fifths", columns: COLUMNS, rows: watch.parts.iter().enumerate().map(row).collect() });
    let quality = |s: &StreamAccount| {
        let percent = |q: Option<f64>| Cell::from(q.map_or(f64::NAN, |q| 100.0 * q));
        vec![Cell::from(&*s.name), Cell::from(f64::from(s.stream.quality.ppm()) / 1e4), percent(s.quality())]
    };
    let columns = &["stream", "quality_asked_percent", "quality_percent"];
    f.tables.push(Table { name: "quality", columns, rows: stats.streams.iter().map(quality).collect() });
    f.charts.push(watch.chart());
    Ok(f)
}

const COLUMNS: &[&str] = &[
    "fifth",
    "decisions",
    "mandatory",
    "optional",
    "best_effort",
    "all_requests",
    "all_requests_with_best_effort",
    "streams_alone_percent",
];

/// Decisions in one part of all periods.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    decisions: u64,
    /// Requests of mandatory streams, of optional ones, and best-effort ones.
    sum: [f64; 3],
    /// Decisions without best effort, and requests of all classes in the others.
    alone: u64,
    with_best_effort: f64,
}

impl Part {
    fn mean(&self) -> f64 {
        self.sum.iter().sum::<f64>() / self.decisions.max(1) as f64
    }
}

#[derive(Debug, Default)]
struct Watch {
    parts: [Part; PARTS],
    /// Decisions without best effort in the halves of the period.
    halves: [u64; 2],
    shown: [Vec<(f64, f64)>; 3],
}

impl Observer for Watch {
    fn decided(&mut self, sizes: SubsetSizes, now: Time) {
        let each = [sizes.mandatory, sizes.optional, sizes.best_effort];
        let within = now.0 % PERIOD.0;
        let alone = u64::from(sizes.best_effort == 0);
        let part = &mut self.parts[(within * PARTS as u64 / PERIOD.0) as usize];
        part.decisions += 1;
        part.alone += alone;
        if alone == 0 {
            part.with_best_effort += f64::from(each.iter().sum::<u32>());
        }
        part.sum.iter_mut().zip(each).for_each(|(sum, n)| *sum += f64::from(n));
        self.halves[(2 * within / PERIOD.0) as usize] += alone;
        // After the first periods all initial requests are gone.
        let (from, to) = (PERIOD.0 * CHART_PERIODS, 2 * PERIOD.0 * CHART_PERIODS);
        if (from..to).contains(&now.0) {
            let ms = (now.0 - from) as f64 / 1e6;
            self.shown.iter_mut().zip(each).for_each(|(points, n)| points.push((ms, f64::from(n))));
        }
    }
}

impl Watch {
    fn chart(self) -> Chart {
        let names = ["mandatory", "optional", "best effort"];
        let series = names.into_iter().zip(self.shown);
        Chart::Xy(XyChart {
            title: "Requests in the active subset, Ultrastar 36Z15".into(),
            subtitle:
                "Four periods of 500 ms. Each decision has a number of requests of each class to choose from; where \
                    best effort falls to nothing, only streams may go."
                    .into(),
            x: Axis::from_zero("ms"),
            y: Axis::from_zero("requests"),
            series: series.map(|(name, points)| Series { name: name.into(), style: Style::Step, points }).collect(),
        })
    }
}
