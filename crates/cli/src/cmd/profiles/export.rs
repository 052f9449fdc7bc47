//! `headtime profiles export`: the figures of a drive that other schedulers are configured with.

use clap::{Args, ValueEnum};
use headtime_disk::profile::Profile;
use headtime_sim::scenario::{Prepared, Scenario};
use serde::Serialize;
use toml::{Table, Value};

use crate::failure::Failure;
use crate::screen::{self, Bar};
use crate::{drive, figures};

/// Measure a drive by simulation, and print the figures that another scheduler is configured with
///
/// Each figure is that of a fio job on the virtual drive with its own queue, without a scheduler of
/// the host: what the tool that usually measures it does (docs/using-it.md). A sequential rate is
/// the mean over the whole disk; at its outer edge it is higher.
#[derive(Debug, Args)]
pub struct Export {
    /// A built-in drive, or a profile file (TOML or DiskSim .parv)
    #[arg(value_name = "NAME|FILE")]
    name: String,
    /// Whose figures: ceph (mClock's capacity of an OSD), iocost (the kernel's linear cost model, a
    /// line for io.cost.model), seastar (io-properties.yaml)
    #[arg(long = "for", value_name = "WHOSE", required = true)]
    whose: Option<Whose>,
    /// Seed of the requests and of the drive's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = figures::seed, allow_negative_numbers = true)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Whose {
    Ceph,
    Iocost,
    Seastar,
}

/// A job on the drive.
#[derive(Clone, Copy)]
struct Job {
    write: bool,
    random: bool,
    bytes: u64,
    outstanding: u32,
}

/// What a job got: requests and bytes, in all or per second.
#[derive(Clone, Copy, Serialize)]
struct Got {
    iops: f64,
    bytes: f64,
}

const BLOCK: u64 = 4 << 10;
/// A large direct request of a program, as the kernel passes it on: in pieces of this size, this
/// many at a time.
const PIECE: u64 = 1 << 20;
const PIECES: u32 = 4;
/// Requests under way of iocost_coef_gen.py, and of iotune on a rotational disk about as many.
const IOCOST_DEPTH: u32 = 64;
/// Concurrency of an OSD's shards on a rotational disk: osd_op_num_shards_hdd times
/// osd_op_num_threads_per_shard_hdd. The defaults are 1 and 5; until pull request 58509 of 2024
/// they were 5 and 1, which is as much (Ceph's mClock Config Reference, "OSD Shard Configuration
/// For HDD Based Clusters With mClock", commit 07382775).
const OSD_THREADS: u32 = 5;

impl Job {
    const fn new(write: bool, random: bool, bytes: u64, outstanding: u32) -> Job {
        Job { write, random, bytes, outstanding }
    }

    /// Simulates it: random ones for a minute, sequential ones at many places for a second each.
    /// Sequential writes to a drive's own cache are counted from the second second on, when the
    /// cache is full.
    fn run(self, profile: &Profile, seed: u64) -> Result<Got, Failure> {
        const PLACES: u64 = 64;
        let (runs, seconds) = if self.random { (1, 60) } else { (PLACES, 1) };
        let fills_cache = self.write && !self.random && profile.electronics.cache.write_back;
        let mut sum = Got { iops: 0.0, bytes: 0.0 };
        for run in 0..runs {
            let seed = seed.wrapping_add(run) >> 1;
            let mut got = self.total(profile, seed, seconds + u32::from(fills_cache))?;
            if fills_cache {
                // The same requests in the first second.
                let filling = self.total(profile, seed, 1)?;
                got = Got { iops: got.iops - filling.iops, bytes: got.bytes - filling.bytes };
            }
            sum.iops += got.iops / (runs as f64 * f64::from(seconds));
            sum.bytes += got.bytes / (runs as f64 * f64::from(seconds));
        }
        Ok(sum)
    }

    /// Requests and bytes in all of these seconds.
    fn total(self, profile: &Profile, seed: u64, seconds: u32) -> Result<Got, Failure> {
        let task = Table::from_iter([
            ("name".to_owned(), Value::from("job")),
            ("tasks".to_owned(), Value::from(i64::from(self.outstanding))),
            ("reads".to_owned(), Value::from(if self.write { 0.0 } else { 1.0 })),
            ("size".to_owned(), Value::from(self.bytes as i64)),
            ("place".to_owned(), Value::from(if self.random { "uniform" } else { "shared-sequential" })),
        ]);
        let settings = Table::from_iter([
            ("order".to_owned(), Value::from("drive")),
            ("seconds".to_owned(), Value::from(f64::from(seconds))),
            ("seed".to_owned(), Value::from(seed as i64)),
            ("task".to_owned(), Value::Array(vec![Value::Table(task)])),
        ]);
        let scenario = Scenario::from_table(settings, std::path::Path::new(""), "the job").map_err(Failure::input)?;
        let prepared = Prepared::new(&scenario, profile.clone(), None).map_err(Failure::input)?;
        let result = prepared.run(None, &mut ()).map_err(Failure::input)?.result;
        let by = f64::from(seconds);
        Ok(Got { iops: result.foreground.per_second * by, bytes: result.foreground.mb_s * 1e6 * by })
    }
}

/// Runs the command.
pub fn run(args: &Export, json: bool) -> Result<(), Failure> {
    let profile = drive::find(&args.name)?;
    let whose = args.whose.expect("required");
    let jobs: &[Job] = match whose {
        Whose::Ceph => &[Job::new(true, true, BLOCK, OSD_THREADS), Job::new(false, false, PIECE, PIECES)],
        Whose::Iocost => &[
            Job::new(false, false, PIECE, PIECES),
            Job::new(false, false, BLOCK, IOCOST_DEPTH),
            Job::new(false, true, BLOCK, IOCOST_DEPTH),
            Job::new(true, false, PIECE, PIECES),
            Job::new(true, false, BLOCK, IOCOST_DEPTH),
            Job::new(true, true, BLOCK, IOCOST_DEPTH),
        ],
        Whose::Seastar => &[
            Job::new(false, true, BLOCK, IOCOST_DEPTH),
            Job::new(false, false, PIECE, PIECES),
            Job::new(true, true, BLOCK, IOCOST_DEPTH),
            Job::new(true, false, PIECE, PIECES),
        ],
    };
    let bar = Bar::new(jobs.len() as u64, "jobs");
    let mut got = Vec::new();
    for job in jobs {
        got.push(job.run(&profile, args.seed)?);
        bar.advance(1);
    }
    drop(bar);
    if json {
        return screen::print_json(&named(whose, &got));
    }
    screen::print(&text(whose, &profile, &got))
}

/// The figures with the names that the other scheduler has for them.
fn named(whose: Whose, got: &[Got]) -> serde_json::Value {
    let whole = |figure: f64| figure.round() as u64;
    match whose {
        Whose::Ceph => serde_json::json!({
            "osd_mclock_max_capacity_iops_hdd": (got[0].iops * 10.0).round() / 10.0,
            "osd_mclock_max_sequential_bandwidth_hdd": whole(got[1].bytes),
        }),
        Whose::Iocost => serde_json::json!({
            "rbps": whole(got[0].bytes), "rseqiops": whole(got[1].iops), "rrandiops": whole(got[2].iops),
            "wbps": whole(got[3].bytes), "wseqiops": whole(got[4].iops), "wrandiops": whole(got[5].iops),
        }),
        Whose::Seastar => serde_json::json!({
            "read_iops": whole(got[0].iops), "read_bandwidth": whole(got[1].bytes),
            "write_iops": whole(got[2].iops), "write_bandwidth": whole(got[3].bytes),
        }),
    }
}

fn text(whose: Whose, profile: &Profile, got: &[Got]) -> String {
    let figures = named(whose, got);
    let of = |key: &str| figures[key].to_string();
    let about = format!("# {}, by simulation of its profile\n", profile.title);
    let cached = match profile.electronics.cache.write_back {
        true => "# The drive's write cache is on: what it takes in is written later\n",
        false => "# The drive's write cache is off\n",
    };
    about
        + cached
        + &match whose {
            Whose::Ceph => format!(
                "ceph config set osd.N osd_mclock_max_capacity_iops_hdd {}\n\
                 ceph config set osd.N osd_mclock_max_sequential_bandwidth_hdd {}\n",
                of("osd_mclock_max_capacity_iops_hdd"),
                of("osd_mclock_max_sequential_bandwidth_hdd"),
            ),
            Whose::Iocost => {
                let keys = ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"];
                let pairs: Vec<String> = keys.iter().map(|key| format!("{key}={}", of(key))).collect();
                format!("MAJOR:MINOR ctrl=user model=linear {}\n", pairs.join(" "))
            }
            Whose::Seastar => {
                let keys = ["read_iops", "read_bandwidth", "write_iops", "write_bandwidth"];
                let lines: Vec<String> = keys.iter().map(|key| format!("    {key}: {}\n", of(key))).collect();
                format!("disks:\n  - mountpoint: /PATH\n{}", lines.concat())
            }
        }
}
