//! `headtime load`: the benchmark suite on a real device, in real time.

mod driver;
pub(super) mod places;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use headtime_sim::workload::suite::named::Named;
use headtime_sim::workload::{HostTime, Target, Workload};
use serde::Serialize;

use crate::failure::Failure;
use crate::{figures, screen, words};
use places::Places;

/// Run BFQ's benchmark suite on a block device or a file, in real time: readers, writers, and
/// programs that start during the load
///
/// Each reader and each start of a program has its own thread, so that the kernel's schedulers
/// distinguish them as `headtime serve` does by exports; a writer has one thread for each request
/// in flight. I/O is direct if the file system supports it. Workload names are those of `headtime
/// simulate`: 10r-seq, 5r5w-rand+konsole, idle+bash; the part after the plus starts after ten
/// seconds.
#[derive(Debug, Args)]
pub struct Load {
    /// NrMw-seq or NrMw-rand, alone or with +bash, +xterm, +konsole, +video, +compile, +checkout,
    /// +merge; or idle+APP
    #[arg(value_name = "WORKLOAD")]
    workload: String,
    /// The device or file, for all applications; or one for each, writers first, then readers, then
    /// the program: PATH@START holds the disk's part from START on (bytes, or "24 GiB")
    #[arg(value_name = "PATH[@START]", required = true)]
    places: Vec<PathBuf>,
    /// Duration in seconds
    #[arg(long, value_name = "S", default_value = "60", value_parser = figures::seconds, allow_negative_numbers = true)]
    seconds: f64,
    /// Allow the data to be destroyed: writers and tools write
    #[arg(long)]
    overwrite: bool,
    /// Seed of places and think times
    #[arg(long, value_name = "N", default_value = "1", value_parser = figures::seed)]
    seed: u64,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// The printed report.
#[derive(Debug, Serialize)]
struct Report {
    workload: String,
    seconds: f64,
    /// Megabytes (10^6) per second, by class.
    mb_s: BTreeMap<String, f64>,
    /// The same from the tenth second on, when weight raising has ended and the program starts.
    steady_mb_s: BTreeMap<String, f64>,
    measures: BTreeMap<String, f64>,
    errors: u64,
}

/// Runs the load for the given duration.
pub fn run(args: &Load) -> Result<(), Failure> {
    let named = Named::parse(&args.workload).map_err(Failure::input)?;
    if named.writes() && !args.overwrite {
        return Err(Failure::input(format!(
            "{} writes: what is on {} would be destroyed; --overwrite says that it may be",
            args.workload,
            args.places.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
        )));
    }
    if named.has_app() && args.seconds <= driver::RAISED_INTERVAL.as_secs_f64() {
        let most = driver::RAISED_INTERVAL.as_secs();
        return Err(Failure::input(format!(
            "--seconds: expected more than {most}, when the program begins, found {}",
            args.seconds
        )));
    }
    let places = Places::open(&args.places, named.actors(), named.writes()).map_err(Failure::Input)?;
    let target = Target { capacity: places.bytes() / SECTOR, sector_bytes: SECTOR as u32, geometry: None };
    if target.capacity < MIN_DISK_SECTORS {
        return Err(Failure::input(format!(
            "expected {} MB or more, found {} bytes",
            MIN_DISK_SECTORS * SECTOR / 1_000_000,
            places.bytes()
        )));
    }
    // No simulated host time: the machine takes its own.
    let mut suite = named.suite(&target, args.seed).with_host(HostTime::NONE, args.seed);
    let done = driver::run(&mut suite, &places, Duration::from_secs_f64(args.seconds));
    let done = done.map_err(|e| Failure::input(format!("a thread for an application: {e}")))?;
    let classes = suite.classes().to_vec();
    let rate = |from: f64, counted: &[u64]| -> BTreeMap<String, f64> {
        let seconds = (done.seconds - from).max(f64::MIN_POSITIVE);
        classes.iter().zip(counted).map(|(name, b)| (name.clone(), round(*b as f64 / 1e6 / seconds))).collect()
    };
    let late: Vec<u64> = done.bytes.iter().zip(&done.early).map(|(all, early)| all - early).collect();
    let steady = if done.seconds > driver::RAISED_INTERVAL.as_secs_f64() {
        rate(driver::RAISED_INTERVAL.as_secs_f64(), &late)
    } else {
        BTreeMap::new()
    };
    let report = Report {
        workload: args.workload.clone(),
        seconds: round(done.seconds),
        mb_s: rate(0.0, &done.bytes),
        steady_mb_s: steady,
        measures: suite.measures().into_iter().map(|(name, v)| (name.to_owned(), round(v))).collect(),
        errors: done.errors,
    };
    match args.json {
        true => screen::print_json(&report)?,
        false => screen::print(&text(&report))?,
    }
    if let Some(why) = done.first_error {
        screen::note(&format!("{} requests failed, the first with: {why}", done.errors));
        return Err(Failure::Check);
    }
    Ok(())
}

/// The suite's sector size here, bytes: every page and window is a multiple of any disk's sector.
const SECTOR: u64 = 4096;
/// Smallest disk, sectors: the suite spreads its files and trees over it.
const MIN_DISK_SECTORS: u64 = 4096;

fn round(v: f64) -> f64 {
    (v * 1e3).round() / 1e3
}

fn text(r: &Report) -> String {
    let mut rows = vec![["MB/s", "all the time", "from 10 s on"].map(String::from).to_vec()];
    for (name, rate) in &r.mb_s {
        let steady = r.steady_mb_s.get(name).map_or_else(|| "-".into(), |v| format!("{v:.2}"));
        rows.push(vec![name.clone(), format!("{rate:.2}"), steady]);
    }
    let mut out = format!("{}, {} s\n\n{}", r.workload, r.seconds, screen::columns(&rows, &[1, 2]));
    out += &words::measures(&r.measures);
    out
}
