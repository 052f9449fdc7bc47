//! `headtime profiles measure`: measures service times of a virtual drive into its profile.

use std::path::PathBuf;

use clap::Args;
use headtime_disk::Model;
use headtime_disk::profile::{self, Profile};
use headtime_host::whole_file;
use headtime_sched::streams::{Disk, Distribution};
use headtime_sim::service::{self, Load, Measured};
use headtime_sim::simulate::DEPTH;
use serde::Serialize;

use crate::failure::Failure;
use crate::screen::{self, Bar};
use crate::{drive, figures};

/// Measure a drive's service times by simulation, and write its profile with them
#[derive(Debug, Args)]
pub struct Measure {
    /// A built-in drive, or a profile file (TOML or DiskSim .parv)
    #[arg(value_name = "NAME|FILE")]
    name: String,
    /// Sizes of requests, in bytes or with suffix k or m, separated by commas; each size has its
    /// own distribution
    #[arg(long, value_name = "S", value_delimiter = ',', default_value = "64k", value_parser = figures::bytes)]
    sizes: Vec<u64>,
    /// Number of pending random requests of one size, or of the largest batch: SPTF chooses, with
    /// two commands at the drive (one, if the drive takes no more). Reads, writes and both are
    /// measured, chosen from any number of candidates up to this
    #[arg(long, value_name = "N", default_value_t = service::WAITING, value_parser = figures::waiting)]
    #[arg(allow_negative_numbers = true)]
    waiting: u32,
    /// Requests to measure under constant backlog, for each size and kind; batches come in addition
    #[arg(long, value_name = "N", default_value_t = service::REQUESTS, value_parser = figures::measured)]
    #[arg(allow_negative_numbers = true)]
    requests: u64,
    /// Seed of the requests and of the drive's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = figures::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Path of the profile to write; its previous service times are replaced
    #[arg(short, long, value_name = "FILE", required = true, value_parser = figures::output())]
    output: Option<PathBuf>,
}

/// The `--json` output for each size, share of reads and number of candidates.
#[derive(Serialize)]
struct Row {
    sectors: u32,
    reads: f64,
    candidates: u32,
    samples: u64,
    mean_ms: f64,
    p999_ms: f64,
    longest_ms: f64,
    worst_ms: f64,
    mb_s: f64,
}

/// Runs the command.
pub fn run(args: &Measure, json: bool) -> Result<(), Failure> {
    let mut profile = drive::find(&args.name)?;
    let mut sizes = args.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let bar = Bar::new(sizes.len() as u64, "sizes");
    let mut all: Vec<Measured> = Vec::new();
    for &bytes in &sizes {
        all.extend(one(&profile, bytes, args.waiting, args.requests, args.seed)?);
        bar.advance(1);
    }
    drop(bar);
    profile.service_times = all.iter().map(|m| m.times.clone()).collect();
    let said: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let (said, Measure { waiting, requests, seed, .. }) = (said.join(","), args);
    let command =
        format!("headtime profiles measure --sizes {said} --waiting {waiting} --requests {requests} --seed {seed}");
    profile.sources.insert("service_times".into(), format!("the virtual drive of this profile: {command}"));
    let rows = rows(&profile, &all)?;
    if let Some(path) = &args.output {
        whole_file::write_whole(path, profile::write(&profile).as_bytes())?;
    }
    if json {
        return screen::print_json(&rows);
    }
    screen::print(&text(&rows))
}

/// Measures requests of one size, of all kinds, on the virtual drive of `profile`.
fn one(profile: &Profile, bytes: u64, waiting: u32, requests: u64, seed: u64) -> Result<Vec<Measured>, Failure> {
    let outstanding = outstanding(profile);
    let load = Load { waiting, requests, outstanding, ..Load::reads(bytes, seed) };
    service::families(profile, &load).map_err(Failure::input)
}

/// Commands at the drive during the measurement, and when guarantees are based on it.
fn outstanding(profile: &Profile) -> u32 {
    DEPTH.min(profile.electronics.queue.depth)
}

fn rows(profile: &Profile, all: &[Measured]) -> Result<Vec<Row>, Failure> {
    let model = Model::new(profile).map_err(Failure::input)?;
    // The values as admission will read them back from the profile.
    let disk = Disk::of(profile, &model, outstanding(profile)).map_err(Failure::input)?;
    let row = |m: &Measured| {
        let x = &m.times;
        let worst = disk.service(x.sectors)?.worst;
        let times = Distribution::from_counts(x.counts(), x.bin, worst).ok()?;
        Some(Row {
            sectors: x.sectors,
            reads: f64::from(x.load.reads_ppm) / 1e6,
            candidates: x.load.candidates,
            samples: x.samples,
            mean_ms: times.mean().as_ms_f64(),
            p999_ms: times.quantile(999_000).as_ms_f64(),
            longest_ms: m.longest.as_ms_f64(),
            worst_ms: worst.as_ms_f64(),
            mb_s: m.bytes_per_second(profile.sector_bytes) / 1e6,
        })
    };
    Ok(all.iter().filter_map(row).collect())
}

fn text(rows: &[Row]) -> String {
    let head =
        ["sectors", "reads", "chosen from", "samples", "mean ms", "99.9% within", "longest", "worst case", "MB/s"];
    let mut table = vec![head.map(String::from).to_vec()];
    for r in rows {
        let ms = |v: f64| format!("{v:.2}");
        let times = [r.mean_ms, r.p999_ms, r.longest_ms, r.worst_ms, r.mb_s].map(ms);
        let reads = format!("{:.0}%", 100.0 * r.reads);
        let first = [r.sectors.to_string(), reads, r.candidates.to_string(), r.samples.to_string()];
        table.push(first.into_iter().chain(times).collect());
    }
    screen::columns(&table, &[0, 1, 2, 3, 4, 5, 6, 7, 8])
}
