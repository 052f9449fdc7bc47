//! `headtime admit`: whether a drive can give guarantees to streams, and with which numbers.

mod answer;

use std::path::PathBuf;

use clap::Args;
use headtime_disk::model::Model;
use headtime_disk::profile::{self, Profile};
use headtime_sched::admit::das::admission::{self, Disk};
use headtime_sched::admit::das::known::KnownError;
use headtime_sched::admit::das::stream::Stream;
use headtime_sim::service;
use headtime_sim::simulate::DEPTH;
use headtime_sim::streams::{self, Asked};

use super::profiles::measure;
use crate::drive;
use crate::failure::Failure;
use crate::screen;
use answer::Answer;

/// Ask whether a drive can give guarantees to a set of streams
#[derive(Debug, Args)]
pub struct Admit {
    /// A built-in drive, or a profile file with service times (`headtime profiles measure`)
    #[arg(long, value_name = "NAME|FILE")]
    disk: String,
    /// A TOML file of streams (docs/guarantees.md); those of --stream come behind them
    #[arg(long, value_name = "FILE")]
    streams: Option<PathBuf>,
    /// A stream: requests=5,period=500ms,quality=99%,size=64k and perhaps name=X; may be given again. A quality of 100% is mandatory
    #[arg(long, value_name = "S")]
    stream: Vec<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Admit) -> Result<(), Failure> {
    let mut profile = drive::find(&args.disk)?;
    let mut asked = match &args.streams {
        Some(path) => streams::load(path).map_err(Failure::input)?,
        None => Vec::new(),
    };
    for line in &args.stream {
        asked.push(streams::parse(line, "--stream", asked.len() + 1).map_err(Failure::input)?);
    }
    let streams = asked.iter().map(|a| a.stream(profile.sector_bytes));
    let streams = streams.collect::<Result<Vec<_>, _>>().map_err(Failure::input)?;
    let measured = complete(&mut profile, &asked, &streams, profile::builtin_names().any(|n| n == args.disk))?;
    let model = Model::new(&profile).map_err(|e| Failure::input(format!("{}: {e}", args.disk)))?;
    let outstanding = DEPTH.min(profile.electronics.queue.depth);
    let disk = Disk::of(&profile, &model, outstanding).map_err(|e| match e {
        KnownError::NoTimes { .. } => {
            Failure::input(format!("{e}; `headtime profiles measure {}` measures them on its virtual drive", args.disk))
        }
        other => Failure::input(other),
    })?;
    let said = admission::admit(&disk, &streams);
    let yes = said.is_ok();
    let answer = Answer::new(&profile, &model, &disk, &asked, &streams, said, &measured).map_err(Failure::input)?;
    if args.json {
        screen::print_json(&answer)?;
    } else {
        screen::print(&answer.to_text())?;
    }
    if yes { Ok(()) } else { Err(Failure::Check) }
}

/// Measures what a built-in drive's profile lacks for these streams, and says so. Gives the sizes in sectors that were measured. A file's
/// profile may be that of a real drive, of which no simulation says how long its requests take.
fn complete(profile: &mut Profile, asked: &[Asked], streams: &[Stream], built_in: bool) -> Result<Vec<u32>, Failure> {
    let known = profile.service_times.last().map_or(0, |x| x.sectors);
    let mut bytes: Vec<u64> =
        asked.iter().zip(streams).filter(|(_, s)| s.sectors > known).map(|(a, _)| a.bytes).collect();
    if streams.is_empty() && known == 0 {
        bytes.push(service::BYTES);
    }
    bytes.sort_unstable();
    bytes.dedup();
    if !built_in {
        return Ok(Vec::new());
    }
    let mut measured = Vec::new();
    for bytes in bytes {
        let m = measure::one(profile, bytes, service::WAITING, service::REQUESTS, 1)?;
        let name = &profile.name;
        screen::note(&format!(
            "the profile of {name} has no service times for requests of {bytes} bytes: measured on its virtual drive"
        ));
        measured.push(m.times.sectors);
        profile.service_times.push(m.times);
    }
    Ok(measured)
}
