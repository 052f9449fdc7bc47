//! X10: a write cache in the host's memory in place of the drive's own, so that gaps can be filled
//! and writes are acknowledged at once.
//!
//! A drive that caches writes itself moves its arm at times of its own choice, so no gap on it can
//! be filled (S13). With that cache off, a write waits for the media. Not from a paper.

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Time};
use headtime_plot::{Axis, BarChart, BarSeries, Chart};
use headtime_sched::{Algorithm, FillConfig, Order, write_cache};
use headtime_sim::background::{Background, Jobs, Nothing, scan_unit};
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Scheduling, Setup, Simulation, written_through};
use headtime_sim::stats::Stats;
use headtime_sim::stats::histogram::Histogram;
use headtime_sim::workload::{GroupSpec, Population, oltp, open};

use crate::common::scan_run::free_mb_s;
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const X10: Experiment = Experiment { spec: &SPEC, steps: 2 * WAYS.len() as u64, run };

const DRIVE: &str = "nearline-20tb";
/// Memory of the cache, bytes.
const MEMORY: u64 = 64 << 20;
/// Window of the order in the claim, percent.
const WINDOW: u32 = 100;
/// Requests per second of the light load.
const LIGHT_RATE_PER_S: f64 = 40.0;

const RATE: Check =
    Check { what: "requests a second, oltp, of those with the drive's cache on", unit: "%", test: NO_LESS };
const NO_LESS: Test = Test::AtLeast(100.0);
const NO_MORE: Test = Test::AtMost(100.0);
const ENOUGH_BANDWIDTH: Test = Test::AtLeast(50.0);

static SPEC: Spec = Spec {
    id: "X10",
    title: "A write cache in the host's memory instead of the drive's",
    source: "headtime's own; the drive: S13",
    drive: DRIVE,
    workload: "oltp and open:40 (two reads to one write, 8 KiB on average, all over the disk); one read of the whole \
               disk in the background",
    claims: &[Claim {
        id: "X10",
        claim: "a 20 TB drive with headtime's write cache, against the same drive with its own cache on",
        paper: "-",
        rule: "requests a second at least 100%, mean response at most 100%, free bandwidth at least 50 MB/s, under \
               oltp and under open:40",
        checks: &[
            RATE,
            Check { what: "mean response, oltp, of that with the drive's cache on", unit: "%", test: NO_MORE },
            Check { what: "free bandwidth, oltp", unit: "MB/s", test: ENOUGH_BANDWIDTH },
            Check { what: "requests a second, open:40, of those with the drive's cache on", ..RATE },
            Check { what: "mean response, open:40, of that with the drive's cache on", unit: "%", test: NO_MORE },
            Check { what: "free bandwidth, open:40", unit: "MB/s", test: ENOUGH_BANDWIDTH },
        ],
        quick: true,
        note: "64 MiB; the order is SPTF-SW100%. What is compared with is the better of the bare drive that orders 32 \
               commands itself and of sptf-ahead, both without background work. Free bandwidth is the scan's alone: \
               what is destaged in gaps does not count. The rate is rounded to a tenth of a percent, for open:40 ends \
               with a request more or less under way. A write is answered from memory: what was not flushed is lost \
               with the power, as with the drive's own cache. Under oltp reads alone wait longer than with the drive's \
               cache, for this order prefers long gaps (table). With sptf-ahead, or plain SPTF, gaps under oltp are \
               too short for 50 MB/s, with or without the cache (table).",
    }],
    length: Length::Minutes,
    alone: false,
};

/// A configuration of a run.
struct Way {
    name: &'static str,
    order: Option<Order>,
    fills: bool,
    /// Whether the drive's cache is on.
    own: bool,
    memory: Option<u64>,
}

const fn way(name: &'static str, order: Option<Order>, fills: bool, own: bool, memory: Option<u64>) -> Way {
    Way { name, order, fills, own, memory }
}

const AHEAD_ORDER: Option<Order> = Some(Order::SptfAhead);
const WIDE_ORDER: Option<Order> = Some(Order::SptfSw(WINDOW));
/// The references of the claim, and its subject.
const REFERENCE_WAYS: [usize; 2] = [0, 1];
const CLAIMED_WAY: usize = 7;
const WAYS: [Way; 9] = [
    way("drive's cache on, its own order, no scan", None, false, true, None),
    way("drive's cache on, sptf-ahead, no scan", AHEAD_ORDER, false, true, None),
    way("drive's cache on, sptf-ahead", AHEAD_ORDER, true, true, None),
    way("no cache, sptf-ahead", AHEAD_ORDER, true, false, None),
    way("no cache, sptf-sw:100", WIDE_ORDER, true, false, None),
    way("headtime's cache, sptf-ahead, no scan", AHEAD_ORDER, false, false, Some(MEMORY)),
    way("headtime's cache, sptf-ahead", AHEAD_ORDER, true, false, Some(MEMORY)),
    way("headtime's cache, sptf-sw:100", WIDE_ORDER, true, false, Some(MEMORY)),
    way("headtime's cache of 4 MiB, sptf-sw:100", WIDE_ORDER, true, false, Some(4 << 20)),
];

struct Measured {
    rate: f64,
    mean_ms: f64,
    p99_ms: f64,
    reads: (f64, f64),
    writes: (f64, f64),
    free_mb_s: f64,
    /// Megabytes: written in gaps and idle time, in the foreground, and not written at the end.
    destaged: [f64; 3],
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let profile = profile::builtin(DRIVE).map_err(|e| failed(&SPEC, e))?;
    let light = open(LIGHT_RATE_PER_S).map_err(|e| failed(&SPEC, e))?;
    let (mut f, mut figures, mut rows, mut bars) = (Findings::default(), Vec::new(), Vec::new(), Vec::new());
    for (name, load) in [("oltp", oltp()), ("open:40", light)] {
        let all = WAYS.iter().map(|way| measure(run, &profile, way, &load)).collect::<Result<Vec<_>, _>>()?;
        let shipped = || REFERENCE_WAYS.iter().map(|&i| &all[i]);
        let rate = shipped().map(|m| m.rate).fold(0.0, f64::max);
        let mean_ms = shipped().map(|m| m.mean_ms).fold(f64::INFINITY, f64::min);
        let ours = &all[CLAIMED_WAY];
        let tenth = |percent: f64| (10.0 * percent).round() / 10.0;
        figures.extend([tenth(100.0 * ours.rate / rate), 100.0 * ours.mean_ms / mean_ms, ours.free_mb_s]);
        rows.extend(WAYS.iter().zip(&all).map(|(way, m)| row(name, way, m)));
        bars.push(BarSeries { name: name.into(), values: all.iter().map(|m| m.free_mb_s).collect() });
    }
    f.figure("X10", &figures);
    f.tables.push(Table {
        name: "caches",
        columns: &[
            "load",
            "cache",
            "requests_per_second",
            "mean_ms",
            "p99_ms",
            "read_mean_ms",
            "read_p99_ms",
            "write_mean_ms",
            "write_p99_ms",
            "free_mb_s",
            "destaged_free_mb",
            "destaged_foreground_mb",
            "dirty_at_the_end_mb",
        ],
        rows,
    });
    f.charts.push(Chart::Bars(BarChart {
        title: "What a scan gets for free, by who caches writes, 20 TB drive".into(),
        subtitle: "Nothing where the drive does: its arm moves unseen.".into(),
        axis: Axis::from_zero("free MB/s"),
        categories: WAYS.iter().map(|w| w.name.into()).collect(),
        series: bars,
        stacked: false,
        marks: Vec::new(),
        mark_name: String::new(),
    }));
    Ok(f)
}

fn measure(run: &Run, profile: &Profile, way: &Way, load: &GroupSpec) -> Result<Measured, RunError> {
    let fail = |e: &dyn std::fmt::Display| failed(&SPEC, e);
    let profile = if way.own { profile.clone() } else { written_through(profile) };
    let scheduling = way.order.map_or(Scheduling::Drive, Scheduling::Host);
    let memory = way.memory.map(|memory| write_cache::Limits { memory });
    let mut setup = Setup { scheduling, write_cache: memory, ..Setup::new(&profile, Order::Sptf, run.seed) };
    if way.fills {
        setup = setup.filled(FillConfig { seed: run.seed, ..FillConfig::new(Algorithm::Headtime) });
    }
    let simulation = Simulation::new(&setup).map_err(|e| fail(&e))?;
    let target = simulation.target();
    let mut load = Population::of(load, target, run.seed).map_err(|e| fail(&e))?;
    let mut scan = Jobs::scan(target.capacity, scan_unit(target.capacity, target.sector_bytes));
    let background: &mut dyn Background = if way.fills { &mut scan } else { &mut Nothing };
    let until = Time::ZERO + Dur::from_secs(run.length(600, 120));
    let limits = Limits { until: Some(until), ..Limits::default() };
    let stats =
        simulation.run_with(&mut load, background, limits, None, &mut run.stop_within()).map_err(|e| fail(&e))?;
    run.progress.advance(1);
    Ok(measured(&stats, profile.sector_bytes))
}

fn measured(stats: &Stats, sector_bytes: u32) -> Measured {
    let both = |h: &Histogram| {
        let ms = |d: Option<Dur>| d.map_or(0.0, |d| d.as_ms_f64());
        (ms(h.mean()), ms(h.quantile(990)))
    };
    let (mean_ms, p99_ms) = both(&stats.responses());
    let c = stats.write_cache.map(|(_, counts)| counts).unwrap_or_default();
    Measured {
        rate: stats.per_second(),
        mean_ms,
        p99_ms,
        reads: both(&stats.reads),
        writes: both(&stats.writes),
        free_mb_s: free_mb_s(stats, sector_bytes),
        destaged: [c.free, c.through, c.dirty].map(|bytes| bytes as f64 / 1e6),
    }
}

fn row(load: &str, way: &Way, m: &Measured) -> Vec<Cell> {
    let ((r_mean, r_p99), (w_mean, w_p99)) = (m.reads, m.writes);
    let [free, through, dirty] = m.destaged;
    let figures = [m.rate, m.mean_ms, m.p99_ms, r_mean, r_p99, w_mean, w_p99, m.free_mb_s, free, through, dirty];
    [load, way.name].map(Cell::from).into_iter().chain(figures.map(Cell::from)).collect()
}
