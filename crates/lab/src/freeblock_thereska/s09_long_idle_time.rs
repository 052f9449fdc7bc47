//! S9: the foreground cost of long idle work.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.6: a request that arrives while long idle time is
//! used may have to wait for the command at the drive, and then pay for the arm's other position.
//! "In practice, we observe minimal impact on foreground requests (less than 0.5%), given a
//! reasonable idle detection threshold": 20 ms.
//!
//! The impact depends on the number of such requests. The paper says of idle time that "most idle
//! periods are just a few milliseconds in length, but the bulk of idle time comes in very long
//! (multiple second) durations": requests in bursts, of which only the first can meet idle work.
//! That is one family of loads here. The other has the even inter-arrival times with which the
//! paper explores idle time: there, on a lightly used disk, nearly every request meets it.

use headtime_disk::{Dur, Model, Time};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::{IdleConfig, IdleThresholds};
use headtime_sim::background::{Job, Jobs, Nothing};
use headtime_sim::stats::Stats;
use headtime_sim::workload::variates::Variates;
use headtime_sim::workload::{
    Ask, GroupSpec, Population, Target, Workload, WorkloadError, freeblock_micro, freeblock_micro_open,
};

use super::background_run::{BackgroundRun, UNIT};
use crate::common::scan_run::{free_mb_s, p99_ms};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const S9: Experiment = Experiment { spec: &SPEC, steps: 2 * UTILISATIONS_PERCENT.len() as u64, run };

static SPEC: Spec = Spec {
    id: "S9",
    title: "What long idle work costs the foreground",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107, 2003), section 4.6",
    drive: "cheetah36es",
    workload: "reads and writes 2:1 of 4 to 8 KB, in bursts with seconds between them and with even gaps; each block \
            of the disk is wanted again as soon as it has been read, and idle time is used after 20 ms",
    claims: &[Claim {
        id: "S9",
        claim: "long idle work, 20 ms threshold",
        paper: "under 0.5%",
        rule: "in bursts under 0.5%; with even gaps the mean delay is at most half a head switch and one command's \
               overhead (1 times these)",
        checks: &[
            Check { what: "longer responses, the worst load in bursts", unit: "%", test: Test::Below(0.5) },
            Check {
                what: "longer responses, the worst load with even gaps, over half a head switch and an overhead",
                unit: "times",
                test: Test::AtMost(1.0),
            },
        ],
        quick: false,
        note: "In bursts responses are 0.24 to 0.31% longer. Half of that is that a read with background sectors at \
               its front completes later at the host (S7); only one request in 25 arrives during a command of idle \
               work. With even gaps they are at most 1.2% longer, 0.1 ms, on a disk that is used 10 to 30%. Of that, \
               on a disk used 10%, 0.02 ms comes of gaps that are filled. Nearly every request there arrives while the \
               drive reads ahead for idle work. A head switch that has begun is not broken off: 0.75 ms in each 7.1 \
               ms, 0.04 ms on average. It is the drive's own, behind the last command, and not to send commands whose \
               read-ahead would reach a track's end late in an idle period could save no more than that: it is not \
               done. The rule allows three and a half times the delay. The rest is mostly that of the two requests in \
               five that arrive while a command for data in the drive's buffer is on the bus (0.6 ms each), above all \
               if a separate background command is put before the request. The paper does not say which loads its \
               figure is of. The claim is left out of quick runs, which would be too short to tell 0.5% from chance.",
    }],
    length: Length::Minutes,
    alone: false,
};

/// Utilisations in percent.
const UTILISATIONS_PERCENT: [u64; 5] = [10, 20, 30, 50, 70];
/// Mean number of requests per burst.
const BURST: u64 = 200;
/// Mean think time within a burst.
const MEAN_THINK_TIME: Dur = Dur::from_ms(4);
/// Approximate service time.
const SERVICE: Dur = Dur::from_us(8_600);

/// An idle time that never occurs.
const UNREACHABLE_IDLE_TIME: Dur = Dur::from_secs(1_000_000);

/// One load, with and without background work.
struct Point {
    name: String,
    alone_ms: f64,
    /// With gaps filled, but no work in long idle time.
    gaps_ms: f64,
    beside_ms: f64,
    /// 99th percentiles, alone and beside.
    p99_ms: [f64; 2],
    free_mb_s: f64,
    requests: u64,
}

impl Point {
    /// Increase of response times relative to the run alone, percent.
    fn loss(&self) -> f64 {
        100.0 * (self.beside_ms - self.alone_ms) / self.alone_ms
    }

    /// The part of that which gap filling alone causes.
    fn loss_by_gaps(&self) -> f64 {
        100.0 * (self.gaps_ms - self.alone_ms) / self.alone_ms
    }
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let (mut bursts, mut even) = (vec![], vec![]);
    for utilised in UTILISATIONS_PERCENT {
        bursts.push(measure(run, &format!("bursts, {utilised}%"), utilised, |target, seed| {
            Ok(Box::new(Bursts::new(target, seed, utilised)?))
        })?);
        run.progress.advance(1);
        let gap = Dur(SERVICE.0 * 100 / utilised);
        let load: GroupSpec = freeblock_micro_open(gap);
        even.push(measure(run, &format!("even gaps, {utilised}%"), utilised, |target, seed| {
            Ok(Box::new(Population::of(&load, target, seed)?))
        })?);
        run.progress.advance(1);
    }
    let worst = |points: &[Point]| points.iter().map(Point::loss).fold(f64::MIN, f64::max);
    let mut f = Findings::default();
    let delay_us = even.iter().map(|p| 1e3 * (p.beside_ms - p.alone_ms)).fold(f64::MIN, f64::max);
    f.figure("S9", &[worst(&bursts), delay_us / unavoidable_us(run)?]);
    f.tables.push(table(bursts.iter().chain(&even)));
    f.charts.push(chart(&[("bursts", &bursts), ("even gaps", &even)]));
    Ok(f)
}

/// Half a head switch and a command's overhead, us: what a request waits for on average when it
/// meets a command that reads on.
fn unavoidable_us(run: &Run) -> Result<f64, RunError> {
    let profile = BackgroundRun::new(&SPEC, run.seed)?.profile;
    let model = Model::new(&profile).map_err(|e| failed(&SPEC, e))?;
    Ok((model.mechanics.head_switch.0 / 2 + model.overheads.per_request.0) as f64 / 1e3)
}

fn measure(
    run: &Run,
    name: &str,
    utilised: u64,
    load: impl Fn(&Target, u64) -> Result<Box<dyn Workload>, WorkloadError>,
) -> Result<Point, RunError> {
    // The same number of requests at every load, about 58,000. Two runs differ by about 3 ms per
    // request, because the platter is at another angle: by chance alone the mean of 8 ms is off by
    // 0.15%, and a tenth as many requests would show nothing.
    let setup = BackgroundRun::new(&SPEC, run.seed)?.seconds(run.length(50_000, 5_000) / utilised);
    let target = setup.target(&SPEC)?;
    let fresh = || load(&target, run.seed).map_err(|e| failed(&SPEC, e));
    let alone = setup.alone().run_load(&SPEC, &mut *fresh()?, &mut Nothing, &mut ())?;
    let jobs = || Jobs::new(vec![Job { again: true, ..Job::scan(target.capacity, UNIT) }]);
    let beside = setup.run_load(&SPEC, &mut *fresh()?, &mut jobs(), &mut ())?;
    let mut never = setup.clone();
    if let Some(fill) = &mut never.fill {
        let thresholds = IdleThresholds { long: UNREACHABLE_IDLE_TIME, ..IdleThresholds::default() };
        // If idle periods are remembered, they decide instead of the long threshold.
        fill.idle = Some(IdleConfig { thresholds, thresholds_only: true, ..IdleConfig::default() });
    }
    let gaps = never.run_load(&SPEC, &mut *fresh()?, &mut jobs(), &mut ())?;
    let mean = |s: &Stats| s.responses().mean().map_or(0.0, |d| d.as_ms_f64());
    Ok(Point {
        name: name.into(),
        alone_ms: mean(&alone),
        gaps_ms: mean(&gaps),
        beside_ms: mean(&beside),
        p99_ms: [&alone, &beside].map(p99_ms),
        free_mb_s: free_mb_s(&beside, setup.profile.sector_bytes),
        requests: beside.requests,
    })
}

/// Requests in bursts: one at a time, with short think times, and a pause of seconds after each
/// burst.
struct Bursts {
    requests: Population,
    rng: Variates,
    /// Mean pause between bursts.
    mean: Dur,
    due: Option<Time>,
}

impl Bursts {
    fn new(target: &Target, seed: u64, utilised: u64) -> Result<Bursts, WorkloadError> {
        // A burst of n requests takes n (service + pause), of which n * service is use.
        let all = SERVICE.0 * 100 / utilised;
        let mean = Dur(BURST * all.saturating_sub(SERVICE.0 + MEAN_THINK_TIME.0));
        let requests = Population::of(&freeblock_micro(1), target, seed)?;
        Ok(Bursts { requests, rng: Variates::new(seed, 9), mean, due: Some(Time::ZERO) })
    }
}

impl Workload for Bursts {
    fn next_due(&self) -> Option<Time> {
        self.due
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let due = self.due.take().expect("a request was taken while none was due");
        Ok(Ask { due, ..self.requests.take()? })
    }

    fn finished(&mut self, owner: u32, now: Time) {
        self.requests.finished(owner, now);
        let long = self.rng.below(BURST) == 0;
        let mean = if long { self.mean } else { MEAN_THINK_TIME };
        self.due = Some(now + Dur(self.rng.exponential(mean.0)));
    }

    fn endless(&self) -> bool {
        true
    }
}

fn table<'a>(points: impl Iterator<Item = &'a Point>) -> Table {
    let row = |p: &Point| {
        let [alone, beside] = p.p99_ms;
        let means = [p.alone_ms, p.gaps_ms, p.beside_ms, p.loss_by_gaps(), p.loss()];
        let figures = means.into_iter().chain([alone, beside, p.free_mb_s, p.requests as f64]);
        std::iter::once(Cell::from(p.name.as_str())).chain(figures.map(Cell::from)).collect()
    };
    Table {
        name: "responses",
        columns: &[
            "load",
            "response_alone_ms",
            "response_without_long_idle_work_ms",
            "response_beside_ms",
            "longer_without_long_idle_work_percent",
            "longer_percent",
            "response_p99_alone_ms",
            "response_p99_beside_ms",
            "free_mb_s",
            "requests",
        ],
        rows: points.map(row).collect(),
    }
}

fn chart(families: &[(&str, &[Point])]) -> Chart {
    let series = |(name, points): &(&str, &[Point])| Series {
        name: (*name).into(),
        style: Style::Marked,
        points: points.iter().zip(UTILISATIONS_PERCENT).map(|(p, u)| (u as f64, p.loss())).collect(),
    };
    Chart::Xy(XyChart {
        title: "Longer responses by idle work, Cheetah 36ES".into(),
        subtitle:
            "Of requests in bursts few meet idle work. With even gaps, on a disk that is little used, nearly all do."
                .into(),
        x: Axis::linear("utilisation, %"),
        y: Axis::linear("longer responses, %"),
        series: families.iter().map(series).collect(),
    })
}
