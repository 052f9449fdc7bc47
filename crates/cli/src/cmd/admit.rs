//! `headtime admit`: whether a drive can guarantee a set of streams, and the figures behind the
//! answer.

mod answer;

use std::path::PathBuf;

use clap::Args;
use headtime_disk::profile::Bounds;
use headtime_sched::streams::{Exhausted, Kinds, Stream, Traffic, admit_under, check_figures};
use headtime_sim::promises::{Drive, Grounds, Stated};
use headtime_sim::simulate::DEPTH;
use headtime_sim::streams;

use crate::failure::Failure;
use crate::{drive, promises, screen};
use answer::{Answer, Known, No};

/// Ask whether a drive can give guarantees to a set of streams
#[derive(Debug, Args)]
pub struct Admit {
    /// A built-in drive, or a profile file with service times (`headtime profiles measure`)
    #[arg(long, value_name = "NAME|FILE")]
    disk: String,
    /// A TOML file of streams (docs/guarantees.md); streams given with --stream are added after
    /// them
    #[arg(long, value_name = "FILE")]
    streams: Option<PathBuf>,
    /// A stream: requests=5,period=500ms,quality=99%,size=64k; optional keys kinds=reads,
    /// blocked-by=1, name=X; may be given several times. A quality of 100% is mandatory
    #[arg(long, value_name = "S")]
    stream: Vec<String>,
    /// Bounds of figures that the profile does not have, used to compute w:
    /// n=5,recalibration=0ms,seek-max=100us,write-settle=2ms,write-overhead=100us, or some of
    /// these. A mandatory stream whose w depends on an unknown figure is refused
    #[arg(long, value_name = "BOUNDS", value_parser = Bounds::parse)]
    assume: Option<Bounds>,
    /// No client writes to the drive, neither these streams nor any other. Figures of writes are
    /// then not needed
    #[arg(long)]
    reads_only: bool,
    /// How requests beyond a stream's reservation are treated, for the forecast of best effort:
    /// skip (the default of `headtime simulate`), as-best-effort (as `headtime serve` does),
    /// before-best-effort
    #[arg(long, value_name = "WHAT", default_value = "as-best-effort", value_parser = Exhausted::NAMES)]
    exhausted: String,
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
        let nth = asked.len() + 1;
        asked.push(streams::parse(line, &format!("--stream: stream {nth}"), nth).map_err(Failure::input)?);
    }
    streams::distinct(&asked).map_err(Failure::input)?;
    let streams = asked.iter().map(|a| a.stream(profile.sector_bytes));
    let streams = streams.collect::<Result<Vec<_>, _>>().map_err(Failure::input)?;
    let sizes: Vec<u64> = asked.iter().map(|a| a.bytes).collect();
    let stated = Stated::on_command_line(args.assume.as_ref());
    let promising = Drive::simulated(&args.disk, DEPTH.min(profile.electronics.queue.depth), stated);
    let measured = promising.complete(&mut profile, &sizes).map_err(Failure::input)?;
    promises::note_measured(&profile, &measured);
    let (believed, model) = promising.believed(&profile).map_err(Failure::input)?;
    let disk = promising.known(&believed, &model).map_err(Failure::input)?;
    if args.reads_only
        && let Some(writes) = asked.iter().zip(&streams).find(|(_, s)| s.kinds == Kinds::Writes)
    {
        return Err(Failure::input(format!(
            "--reads-only: expected streams that read, found that {} writes",
            writes.0.name
        )));
    }
    let read_only = |s: Stream| if args.reads_only { s.only(Kinds::Reads) } else { s };
    let streams: Vec<Stream> = streams.into_iter().map(read_only).collect();
    let traffic = if args.reads_only { Traffic::Reads } else { Traffic::Any };
    let grounds = Grounds::of(&believed, traffic, stated);
    let unknown = streams.iter().zip(&asked).find_map(|(stream, asked)| {
        check_figures(grounds.unknown, stream).err().and_then(|_| grounds.refusal(&format!("Stream {}", asked.name)))
    });
    let exhausted = Exhausted::named(&args.exhausted).unwrap_or_default();
    let said = match unknown {
        Some(why) => Err(No::Unknown(why)),
        None => admit_under(&disk, exhausted, &streams).map_err(No::Refused),
    };
    let yes = said.is_ok();
    let known =
        Known { exhausted, profile: &believed, model: &model, disk: &disk, measured: &measured, grounds: &grounds };
    let answer = Answer::new(&known, &asked, &streams, said).map_err(Failure::input)?;
    if args.json {
        screen::print_json(&answer)?;
    } else {
        screen::print(&answer.to_text())?;
    }
    if yes { Ok(()) } else { Err(Failure::Check) }
}
