//! `headtime search`: finds a pattern on the disk, or passes every block to a program.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use clap::Args;
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::job::{End, Status};
use headtime_serve::apps::search::{self, Matcher, Plan, Report, Target};

use super::scrub::coverage;
use crate::background::{self, Rate, Unit, Watcher};
use crate::control_socket::ControlSocket;
use crate::failure::Failure;
use crate::{figures, screen};

/// Find a pattern anywhere on the disk in rotational gaps and idle time, or pass every block to a
/// program
///
/// Prints the byte offset of each match as it is found: blocks come in no particular order. Exit
/// status 1: sectors are unreadable, and were not searched. A search that was stopped begins anew.
#[derive(Debug, Args)]
pub struct Search {
    #[command(flatten)]
    server: ControlSocket,
    /// Text, at most 4096 bytes
    #[arg(value_name = "PATTERN", required_unless_present = "program", conflicts_with = "program")]
    pattern: Option<String>,
    /// PATTERN is in hexadecimal, two digits a byte
    #[arg(long)]
    hex: bool,
    /// Pass every block to this shell command instead. Its standard input has, for each block, a
    /// line with byte offset and length, and then the data
    #[arg(long, value_name = "COMMAND")]
    program: Option<String>,
    /// Only this export; byte offsets are in it [default: the whole disk]
    #[arg(long, value_name = "NAME")]
    export: Option<String>,
    #[command(flatten)]
    rate: Rate,
    #[command(flatten)]
    unit: Unit,
    /// Print one JSON object on stdout
    #[arg(long, conflicts_with = "program")]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Search) -> Result<(), Failure> {
    let plan =
        Plan { job: args.rate.job(args.server.path()?, "search")?, export: args.export.clone(), unit: args.unit.unit };
    args.rate.yield_processor();
    let (report, end) = match (&args.pattern, &args.program) {
        (Some(pattern), _) => find(args, &plan, pattern)?,
        (None, Some(command)) => pass(&plan, command)?,
        (None, None) => return Err(Failure::Input("expected a pattern or --program, found neither".into())),
    };
    if args.json {
        screen::print_json(&report)?;
    } else {
        screen::note(&summary(&report, args.program.is_none()));
    }
    match end {
        End::Stopped => Err(Failure::Stopped),
        End::Complete if report.read.unreadable.is_empty() => Ok(()),
        End::Complete => Err(Failure::Check),
    }
}

/// Searches for a pattern, and prints where it is.
fn find(args: &Search, plan: &Plan, pattern: &str) -> Result<(Report, End), Failure> {
    let pattern = if args.hex { figures::hex(pattern).map_err(Failure::Input)? } else { pattern.as_bytes().to_vec() };
    let matcher = Box::new(Matcher::new(&pattern).map_err(background::failure)?);
    let mut unprinted = None;
    let mut found = |offset: u64| {
        if args.json {
            return Ok(());
        }
        screen::print(&format!("{offset}\n")).map_err(|why| {
            unprinted = Some(why);
            AppError::Program(io::ErrorKind::BrokenPipe.into())
        })
    };
    let done = search(plan, Target::Pattern(matcher, &mut found));
    match unprinted {
        Some(why) => Err(why),
        None => done,
    }
}

/// Passes all blocks to a program, and waits for its end.
fn pass(plan: &Plan, command: &str) -> Result<(Report, End), Failure> {
    let failed = |e: io::Error| Failure::Input(format!("--program: {e}"));
    let mut program: Child = Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).spawn().map_err(failed)?;
    let mut input = io::BufWriter::new(program.stdin.take().expect("its input is a pipe"));
    let done = search(plan, Target::Program(&mut input));
    let whole = input.flush();
    drop(input);
    let status = program.wait().map_err(failed)?;
    match (status.success(), done, whole) {
        (true, Ok(done), Ok(())) => Ok(done),
        (true, Err(why), _) => Err(why),
        (true, _, Err(why)) => Err(failed(why)),
        (false, ..) => Err(Failure::Input(format!("--program: expected the status 0 of '{command}', found {status}"))),
    }
}

fn search(plan: &Plan, target: Target<'_>) -> Result<(Report, End), Failure> {
    let done = background::run(async |stop| {
        let mut watcher: Option<Watcher> = None;
        let mut see = |s: &Status| watcher.get_or_insert_with(|| Watcher::new("search", s.total)).see(s);
        search::run(plan, target, &mut see, stop).await
    })?;
    done.map_err(background::failure)
}

fn summary(r: &Report, by_pattern: bool) -> String {
    let matches = if by_pattern { format!("; matches: {}", r.matches) } else { String::new() };
    coverage(&r.read, &matches, "unreadable, not searched").trim_end().into()
}
