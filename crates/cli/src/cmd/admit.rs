//! `headtime admit`: whether a drive can give guarantees to streams, and with which numbers.

mod answer;

use std::path::PathBuf;

use clap::Args;
use headtime_disk::model::Model;
use headtime_sched::admit::das::admission;
use headtime_sim::simulate::DEPTH;
use headtime_sim::streams;

use crate::drive;
use crate::failure::Failure;
use crate::promises;
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
    let sizes: Vec<u64> = asked.iter().map(|a| a.bytes).collect();
    let promising = promises::Drive::simulated(&args.disk, DEPTH.min(profile.electronics.queue.depth));
    let measured = promising.complete(&mut profile, &sizes)?;
    let model = Model::new(&profile).map_err(|e| Failure::input(format!("{}: {e}", args.disk)))?;
    let disk = promising.known(&profile, &model)?;
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
