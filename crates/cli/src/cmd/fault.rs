//! `headtime fault`: what happens to a running `headtime disk`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use headtime_serve::faults::calls::{Answer, Call, Status};
use headtime_serve::faults::control;
use headtime_serve::faults::table::{FaultTable, Size};

use crate::failure::Failure;
use crate::figures;
use crate::screen::{self, columns};
use crate::words::plain;

/// Add, list and clear faults of a running virtual drive
///
/// The drive is a `headtime disk` with --control. docs/test-disk.md describes each kind of fault,
/// and what programs observe.
#[derive(Debug, Args)]
pub struct Fault {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Add a fault, at once or later
    Add(Box<Add>),
    /// List the faults, and the state of the drive
    List(List),
    /// Remove a fault, or all: their sectors can be read, a failed drive works, and the power is on
    Clear(Clear),
}

#[derive(Debug, Args)]
struct Drive {
    /// The control socket of the drive
    #[arg(long, value_name = "PATH")]
    control: PathBuf,
}

#[derive(Debug, Args)]
struct Add {
    /// unreadable, slow, hang, failure, worn, power-off, power-on or write-cache
    #[arg(value_name = "KIND")]
    kind: String,
    /// unreadable, slow: first byte of the range, such as 4096 or 1GiB
    #[arg(long, value_name = "SIZE")]
    start: Option<String>,
    /// unreadable, slow: length of the range [default: one sector]
    #[arg(long, value_name = "SIZE")]
    size: Option<String>,
    /// slow, worn: additional revolutions of an access to slow sectors [default: 8]
    #[arg(long, value_name = "N")]
    revolutions: Option<u32>,
    /// hang, power-off: how long it lasts, such as 30s [power-off: until power-on]
    #[arg(long = "for", value_name = "TIME")]
    lasts: Option<String>,
    /// power-off: what is lost of the data that was not flushed, some or all [default: some]
    #[arg(long, value_name = "WHAT")]
    lost: Option<String>,
    /// write-cache: true or false
    #[arg(long, value_name = "BOOL")]
    on: Option<bool>,
    /// worn: share of unreadable sectors, such as 1e-6
    #[arg(long, value_name = "SHARE")]
    unreadable: Option<f64>,
    /// worn: share of slow sectors
    #[arg(long, value_name = "SHARE")]
    slow: Option<f64>,
    /// worn: seed of the places [default: 1]
    #[arg(long, value_name = "N", value_parser = figures::seed)]
    seed: Option<u64>,
    /// Begin after this time, such as 500ms or 10s
    #[arg(long, value_name = "TIME", conflicts_with = "after_commands")]
    after: Option<String>,
    /// Begin after this number of commands
    #[arg(long, value_name = "N")]
    after_commands: Option<u64>,
    #[command(flatten)]
    drive: Drive,
}

#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    drive: Drive,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Clear {
    /// Number of the fault, as listed [default: all]
    #[arg(value_name = "NUMBER")]
    number: Option<u32>,
    #[command(flatten)]
    drive: Drive,
}

/// Runs the command.
pub fn run(args: &Fault) -> Result<(), Failure> {
    match &args.what {
        What::Add(a) => match called(&a.drive, Call::Add(Box::new(a.table())))? {
            Answer::Added(number) => screen::print(&format!("{number}\n")),
            other => Err(unexpected(&other)),
        },
        What::Clear(a) => match called(&a.drive, Call::Clear(a.number))? {
            Answer::Cleared(faults) => screen::print(&format!("{faults} cleared\n")),
            other => Err(unexpected(&other)),
        },
        What::List(a) => match called(&a.drive, Call::List)? {
            Answer::Status(status) if a.json => screen::print_json(&status),
            Answer::Status(status) => screen::print(&listed(&status)),
            other => Err(unexpected(&other)),
        },
    }
}

impl Add {
    fn table(&self) -> FaultTable {
        let size = |text: &String| text.parse().map_or_else(|_| Size::Text(text.clone()), Size::Bytes);
        FaultTable {
            kind: self.kind.clone(),
            start: self.start.as_ref().map(size),
            size: self.size.as_ref().map(size),
            revolutions: self.revolutions,
            lasts: self.lasts.clone(),
            lost: self.lost.clone(),
            on: self.on,
            unreadable: self.unreadable,
            slow: self.slow,
            seed: self.seed,
            after: self.after.clone(),
            after_commands: self.after_commands,
        }
    }
}

/// Calls the drive; a refusal is bad input.
fn called(drive: &Drive, call: Call) -> Result<Answer, Failure> {
    let path = &drive.control;
    match control::call(path, &call) {
        Ok(Answer::Refused(why)) => Err(Failure::Input(plain(&why))),
        Ok(answer) => Ok(answer),
        Err(e) => Err(Failure::Input(format!("{}: expected the control socket of a drive: {e}", path.display()))),
    }
}

fn unexpected(answer: &Answer) -> Failure {
    Failure::Input(format!("expected another answer, found {answer:?}"))
}

fn listed(s: &Status) -> String {
    let on = |is_on| if is_on { "on" } else { "off" };
    let mut text = format!(
        "power {}, write cache {}, {} sectors not flushed; {} commands in {:.1} s\n",
        on(s.power),
        on(s.write_cache),
        s.volatile_sectors,
        s.commands,
        s.seconds
    );
    if let Some(problem) = &s.problem {
        text += &format!("{}\n", plain(problem));
    }
    let row = |f: &headtime_serve::faults::plan::Listed| {
        let left = f.unreadable_sectors.map_or(String::new(), |n| format!("{n} sectors unreadable"));
        let words = [&f.kind, &f.state, &f.when, &f.figures, &left].map(|word| plain(word));
        [vec![f.number.to_string()], words.to_vec()].concat()
    };
    let rows: Vec<Vec<String>> = s.faults.iter().map(row).collect();
    text + &columns(&rows, &[0])
}
