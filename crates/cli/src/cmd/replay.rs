//! `headtime replay`: a recorded trace on a real device, in real time.

mod driver;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use headtime_sim::scenario::Scenario;
use headtime_sim::stats::histogram::Histogram;
use headtime_sim::workload::Target;
use serde::Serialize;

use crate::cmd::load::places::Places;
use crate::failure::Failure;
use crate::screen::{self, Bar, columns};
use crate::{figures, interrupt};
use driver::{Done, Limits};

/// Replay a recorded trace on a block device or a file, in real time
///
/// Each request is sent at its time, or, closed, after the completion that it waited for. How late
/// requests were sent is part of the result: a replay that does not keep the time of its trace is
/// another load. I/O is direct if the file system supports it.
#[derive(Debug, Args)]
pub struct Replay {
    /// The trace; it may be compressed with gzip or zstd
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// The device or file
    #[arg(value_name = "DEVICE")]
    device: PathBuf,
    /// The trace's format (docs/traces.md)
    #[arg(long, value_name = "T", required = true)]
    trace_format: Option<String>,
    /// Only the trace's requests to this device
    #[arg(long = "device", value_name = "N", value_parser = headtime_sim::scenario::flags::device)]
    #[arg(allow_negative_numbers = true)]
    only: Option<u32>,
    /// open (at the recorded times), closed (each after the completion before, with the recorded
    /// pause), auto (open if the trace has times, else closed)
    #[arg(long, value_name = "HOW")]
    replay: Option<String>,
    /// Where requests go that lie beyond the device: refuse (counted), wrap, spread:SIZE
    #[arg(long, value_name = "HOW")]
    beyond: Option<String>,
    /// The most requests under way; further ones wait, and are late
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = depth, allow_negative_numbers = true)]
    depth: usize,
    /// Stop after this many seconds
    #[arg(long, value_name = "S", value_parser = figures::seconds, allow_negative_numbers = true)]
    seconds: Option<f64>,
    /// Stop after this many requests
    #[arg(long, value_name = "N", value_parser = headtime_sim::scenario::flags::requests)]
    #[arg(allow_negative_numbers = true)]
    requests: Option<u64>,
    /// Allow the data to be destroyed: the trace's writes are written, as zeros. Without it, they
    /// are left out and counted
    #[arg(long)]
    overwrite: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Each has a thread.
const MOST_DEPTH: usize = 4096;
/// The sectors of traces.
const SECTOR: u64 = 512;

fn depth(text: &str) -> Result<usize, String> {
    let within = text.parse().ok().filter(|n| (1..=MOST_DEPTH).contains(n));
    within.ok_or_else(|| format!("expected a whole number from 1 to {MOST_DEPTH}"))
}

/// What was replayed.
#[derive(Debug, Serialize)]
struct Report {
    seconds: f64,
    requests: u64,
    errors: u64,
    /// Requests beyond the device, and writes that were left out.
    refused: u64,
    left_out: u64,
    per_second: f64,
    mb_s: f64,
    /// From the time at which a request was due.
    response_ms: Times,
    /// From the time at which it was sent.
    service_ms: Times,
    /// How much later than due requests were sent.
    late_ms: Times,
}

#[derive(Debug, Serialize)]
struct Times {
    mean: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

impl Times {
    fn of(h: &Histogram) -> Times {
        let ms = |d: Option<headtime_disk::Dur>| d.map(|d| d.as_ms_f64());
        Times {
            mean: ms(h.mean()),
            p50: ms(h.quantile(500)),
            p95: ms(h.quantile(950)),
            p99: ms(h.quantile(990)),
            max: ms(h.max()),
        }
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let ms = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| format!("{v:.3}"));
        let figures = [self.mean, self.p50, self.p95, self.p99, self.max];
        std::iter::once(name.to_owned()).chain(figures.map(ms)).collect()
    }
}

/// Runs the command.
pub fn run(args: &Replay) -> Result<(), Failure> {
    let scenario = Scenario {
        trace: Some(args.trace.clone()),
        trace_format: args.trace_format.clone(),
        device: args.only,
        replay: args.replay.clone(),
        beyond: args.beyond.clone(),
        ..Scenario::default()
    };
    scenario.check().map_err(Failure::input)?;
    let places = Places::open(std::slice::from_ref(&args.device), 1, args.overwrite).map_err(Failure::Input)?;
    let target = Target { capacity: places.bytes() / SECTOR, sector_bytes: SECTOR as u32, geometry: None };
    let mut workload = scenario.workload(&target, 1).map_err(Failure::input)?;
    let limits = Limits {
        depth: args.depth,
        seconds: args.seconds.map(Duration::from_secs_f64),
        requests: args.requests.unwrap_or(u64::MAX),
        writes: args.overwrite,
    };
    let stop = interrupt::flag();
    let bar = Bar::new(args.requests.unwrap_or(0), "replay");
    let done = driver::run(&mut *workload, places.of(0), &limits, &stop, &mut |n| bar.reach(n));
    drop(bar);
    let done = done.map_err(Failure::input)?;
    let refused = workload.refusals().map_or(0, |r| r.count);
    report(args, &done, refused)?;
    if let Some(why) = &done.first_error {
        screen::note(&format!("{} requests failed, the first with: {why}", done.errors));
        return Err(Failure::Check);
    }
    if stop.load(Ordering::Relaxed) { Err(Failure::Stopped) } else { Ok(()) }
}

fn report(args: &Replay, done: &Done, refused: u64) -> Result<(), Failure> {
    let seconds = done.seconds.max(f64::MIN_POSITIVE);
    let round = |v: f64| (v * 1e3).round() / 1e3;
    let r = Report {
        seconds: round(done.seconds),
        requests: done.requests,
        errors: done.errors,
        refused,
        left_out: done.left_out,
        per_second: round(done.requests as f64 / seconds),
        mb_s: round(done.bytes as f64 / 1e6 / seconds),
        response_ms: Times::of(&done.response),
        service_ms: Times::of(&done.service),
        late_ms: Times::of(&done.late),
    };
    if args.json {
        return screen::print_json(&r);
    }
    let head = ["ms", "mean", "p50", "p95", "p99", "max"].map(String::from).to_vec();
    let rows = vec![
        head,
        r.response_ms.cells("response, from due"),
        r.service_ms.cells("service, from sent"),
        r.late_ms.cells("sent late"),
    ];
    let mut text = format!(
        "{} requests in {:.1} s: {:.1} a second, {:.2} MB/s\n\n{}",
        r.requests,
        r.seconds,
        r.per_second,
        r.mb_s,
        columns(&rows, &[1, 2, 3, 4, 5])
    );
    if r.left_out > 0 {
        text += &format!("{} writes were left out (--overwrite writes them)\n", r.left_out);
    }
    if r.refused > 0 {
        text += &format!("{} requests lie beyond the device and were refused (--beyond places them)\n", r.refused);
    }
    screen::print(&text)
}
