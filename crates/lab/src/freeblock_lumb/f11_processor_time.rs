//! F11: the processor time of scheduling.
//!
//! Lumb, Schindler and Ganger (FAST 2002), section 5.4: on a 550 MHz processor the foreground
//! scheduler added 0.3% of it, filling gaps 9%. Here every call of the scheduling core is timed:
//! arrivals, completions, decisions, searches, wake-ups. The drive, the workload and the event loop
//! around them are excluded.

use std::cell::Cell;
use std::time::{Duration, Instant};

use headtime_disk::{Drive, DriveConfig, Dur, Model, Outcome, Time, profile};
use headtime_plot::{Axis, BarChart, BarSeries, Chart};
use headtime_sched::{Action, Algorithm, Config, Core, FillConfig, Order, Refused, Request, Scheduler};
use headtime_sim::background::{Background, Jobs, Nothing};
use headtime_sim::run::{Limits, run_with};
use headtime_sim::simulate::{CAPACITY, DEPTH};
use headtime_sim::workload::{Population, Target, oltp};

use crate::experiment::{
    Cell as Value, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed,
};

/// The experiment.
pub(crate) const F11: Experiment = Experiment { spec: &SPEC, steps: CASES.len() as u64, run };

static SPEC: Spec = Spec {
    id: "F11",
    title: "Processor time of scheduling",
    source: "Lumb, Schindler, Ganger, Freeblock Scheduling Outside of Disk Firmware (FAST 2002), section 5.4",
    drive: "atlas10k",
    workload: "oltp under SPTF; alone, and with one read of the whole disk in the background in units of 4 KiB",
    claims: &[Claim {
        id: "F11",
        claim: "processor time: foreground scheduler alone, with fill",
        paper: "+0.3%, +9% of a 550 MHz CPU",
        rule: "Angle-EP-Frag under 10 us, headtime under 10 us, the foreground alone under 1 us; ratios to BW-Greedy \
               in the table",
        checks: &[
            Check { what: "foreground scheduler and Angle-EP-Frag", unit: "us a request", test: Test::Below(10.0) },
            Check {
                what: "foreground scheduler and headtime's planner",
                unit: "us a request",
                test: Test::Below(10.0),
            },
            Check { what: "foreground scheduler alone", unit: "us a request", test: Test::Below(1.0) },
        ],
        quick: true,
        note: "This machine's processor, not the paper's; the paper gives shares of a processor and not how many \
               requests a second it served, so shares cannot be compared. A mean over all requests, each with all that \
               was searched and put before it. A call during which the system gave the processor to something else \
               does not say what scheduling takes: calls of a millisecond and more are left out, and the table says \
               how many there were and how long they took. On two cores of a shared virtual machine (November 2026) a \
               request takes 29 us with Angle-EP-Frag, 14 with headtime's planner and 1.9 alone; on a machine where it \
               takes 0.56 us alone, 21 and 8 were measured. It is twelve calls of the core and, with the planner, one \
               and a half searches of 8 us. Angle-EP-Frag spends its whole budget on nearly every search, since any \
               track further on might be one that a single command clears, which it puts before everything else; the \
               others know a bound, and stop.",
    }],
    length: Length::Minutes,
    alone: true,
};

/// Virtual seconds of a run.
const SECONDS: (u64, u64) = (300, 30);
/// A longer call was interrupted: the longest search is two orders of magnitude shorter.
const MAX_CALL_TIME: Duration = Duration::from_millis(1);

const CASES: [(&str, Option<Algorithm>); 4] = [
    ("nothing", None),
    ("bw-greedy", Some(Algorithm::BwGreedy)),
    ("angle-ep-frag", Some(Algorithm::AngleEpFrag)),
    ("headtime", Some(Algorithm::Headtime)),
];

fn run(run: &Run) -> Result<Findings, RunError> {
    let reading = reading_a_clock();
    let mut rows = Vec::new();
    let mut us: Vec<f64> = Vec::new();
    for (name, fill) in CASES {
        let spent = measure(run, fill)?;
        let requests = spent.requests as f64;
        let all = spent.took.saturating_sub(reading.saturating_mul(spent.calls)).as_secs_f64() * 1e6 / requests;
        us.push(all);
        rows.push(vec![
            Value::from(name),
            all.into(),
            (f64::from(spent.calls) / requests).into(),
            (spent.longest.as_secs_f64() * 1e6).into(),
            f64::from(spent.interrupted).into(),
            (spent.lost.as_secs_f64() * 1e3).into(),
            requests.into(),
            (spent.searches as f64 / requests).into(),
            // BW-Greedy is the first that fills.
            us.get(1).map_or(Value::from(""), |greedy| Value::from(all / greedy)),
            // The share of this processor at the rate of the run.
            (all * requests / spent.seconds / 1e4).into(),
        ]);
        run.progress.advance(1);
    }
    let mut f = Findings::default();
    f.figure("F11", &[us[2], us[3], us[0]]);
    f.charts.push(chart(&us));
    f.tables.push(Table {
        name: "processor",
        columns: &[
            "fill",
            "us_per_request",
            "calls_per_request",
            "longest_call_us",
            "interrupted_calls",
            "interrupted_ms",
            "requests",
            "searches_per_request",
            "over_bw_greedy",
            "processor_percent",
        ],
        rows,
    });
    Ok(f)
}

/// Times of the core's calls.
#[derive(Default)]
struct Spent {
    took: Duration,
    calls: u32,
    longest: Duration,
    interrupted: u32,
    lost: Duration,
    requests: u64,
    searches: u64,
    seconds: f64,
}

fn measure(run: &Run, fill: Option<Algorithm>) -> Result<Spent, RunError> {
    let profile = profile::builtin("atlas10k").map_err(|e| failed(&SPEC, e))?;
    let config = DriveConfig::default().with_seed(run.seed);
    let mut drive = Drive::new(&profile, config).map_err(|e| failed(&SPEC, e))?;
    let model = Model::new(&profile).map_err(|e| failed(&SPEC, e))?;
    let capacity = drive.capacity();
    let target = Target { capacity, sector_bytes: profile.sector_bytes, geometry: None };
    let fill = fill.map(|algorithm| FillConfig { seed: run.seed, ..FillConfig::new(algorithm) });
    let mut background: Box<dyn Background> = match &fill {
        None => Box::new(Nothing),
        Some(_) => Box::new(Jobs::scan(capacity, 8)),
    };
    let core =
        Core::new(Config::new(Order::Sptf).with_outstanding(DEPTH).with_capacity(CAPACITY).with_fill(fill), model);
    let mut timed = Timed { core, spent: Cell::default() };
    let mut load = Population::of(&oltp(), &target, run.seed).map_err(|e| failed(&SPEC, e))?;
    let until = Time::ZERO + Dur::from_secs(run.length(SECONDS.0, SECONDS.1));
    let limits = Limits { until: Some(until), ..Limits::default() };
    let stats = run_with(&mut drive, &mut timed, &mut load, &mut *background, limits, None, &mut ())
        .map_err(|e| failed(&SPEC, e))?;
    let searches = Scheduler::searches(&timed);
    let spent = timed.spent.take();
    Ok(Spent { requests: stats.requests, searches, seconds: stats.ended_at.as_secs_f64(), ..spent })
}

/// The smallest difference between two consecutive clock readings: the measurement's own part of
/// each call's time.
fn reading_a_clock() -> Duration {
    (0..10_000).map(|_| Instant::now().elapsed()).min().unwrap_or_default()
}

/// The core, with a clock reading around each call.
struct Timed {
    core: Core,
    /// In a cell, because one of the calls takes the core by shared reference.
    spent: Cell<Spent>,
}

impl Timed {
    fn count(&self, from: Instant) {
        let took = from.elapsed();
        let mut s = self.spent.take();
        s.calls += 1;
        match took < MAX_CALL_TIME {
            true => {
                s.took += took;
                s.longest = s.longest.max(took);
            }
            false => {
                s.interrupted += 1;
                s.lost += took;
            }
        }
        self.spent.set(s);
    }
}

impl Scheduler for Timed {
    fn submit(&mut self, request: Request, now: Time) -> Result<(), Refused> {
        let from = Instant::now();
        let answer = self.core.submit(request, now);
        self.count(from);
        answer
    }

    fn complete(&mut self, command: u64, outcome: Outcome, now: Time) {
        let from = Instant::now();
        self.core.complete(command, outcome, now);
        self.count(from);
    }

    fn tick(&mut self, now: Time) {
        let from = Instant::now();
        self.core.tick(now);
        self.count(from);
    }

    fn poll(&mut self) -> Option<Action> {
        let from = Instant::now();
        let action = self.core.poll();
        self.count(from);
        action
    }

    fn next_wakeup(&self) -> Option<Time> {
        let from = Instant::now();
        let at = self.core.next_wakeup();
        self.count(from);
        at
    }

    fn free_sectors(&self, command: u64) -> u32 {
        self.core.free_sectors(command)
    }

    fn request_of(&self, command: u64) -> Option<u64> {
        self.core.request_of(command)
    }
    fn requests_behind(&self, command: u64) -> Vec<u64> {
        Scheduler::requests_behind(&self.core, command)
    }

    fn searches(&self) -> u64 {
        self.core.stats().cost.fill_searches
    }

    fn core(&mut self) -> Option<&mut Core> {
        Some(&mut self.core)
    }
}

fn chart(us: &[f64]) -> Chart {
    Chart::Bars(BarChart {
        title: "Processor time of scheduling, Atlas 10K".into(),
        subtitle: "Mean over all requests of oltp: the foreground scheduler alone, and with gaps filled.".into(),
        axis: Axis::from_zero("us a request"),
        categories: CASES.iter().map(|(name, _)| (*name).into()).collect(),
        series: vec![BarSeries { name: "here".into(), values: us.to_vec() }],
        stacked: false,
        marks: Vec::new(),
        mark_name: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Unwatched;

    #[test]
    fn a_core_that_is_timed_decides_as_one_that_is_not() {
        let run = Run { seed: 5, quick: true, progress: &Unwatched };
        let spent = measure(&run, Some(Algorithm::AngleEpFrag)).unwrap();
        let plain = crate::common::scan_run::ScanRun::new(&SPEC, "atlas10k", Order::Sptf, oltp(), 5)
            .unwrap()
            .with(Algorithm::AngleEpFrag, headtime_sched::Placement::Host, headtime_sched::Conservatism::Adaptive)
            .seconds(SECONDS.1);
        let (stats, _) = plain.scan(&SPEC, 8, &mut ()).unwrap();
        assert_eq!((spent.requests, spent.searches), (stats.requests, stats.freeblock.unwrap().searches));
        assert!(u64::from(spent.calls) > 4 * spent.requests, "{} calls", spent.calls);
    }
}
