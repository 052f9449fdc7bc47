//! `headtime reorganise`: moves what is hot together, or back.

use clap::Args;
use headtime_serve::apps::job::Status;
use headtime_serve::apps::reorganise::{self, Plan, Report};

use crate::background::{self, Priority, Watcher};
use crate::control_socket::ControlSocket;
use crate::failure::Failure;
use crate::words::{bytes, percent};
use crate::{figures, screen};

/// Move the parts of an export that are accessed most often next to each other, in rotational gaps
/// and idle time
///
/// They go into a reserve, a range of the disk that the server's configuration names
/// (export.reorganise). Clients notice nothing but shorter seeks. The server counts accesses while
/// it runs: let the usual load run first. Can be stopped at any time, and run again as the load
/// changes. Exit status 1: some parts stay where they were, because clients overwrote them at each
/// attempt, or the disk could not read or write them.
#[derive(Debug, Args)]
pub struct Reorganise {
    #[command(flatten)]
    server: ControlSocket,
    /// The export
    #[arg(value_name = "EXPORT")]
    export: String,
    /// Move everything back to where it was
    #[arg(long)]
    undo: bool,
    /// Move nothing; say what would be
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    priority: Priority,
    /// Highest rate in MB/s, reads and writes together
    #[arg(long, value_name = "MB/S", value_parser = figures::mb_s, allow_negative_numbers = true)]
    at_most: Option<f64>,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Reorganise) -> Result<(), Failure> {
    let plan = Plan {
        control: args.server.path()?.into(),
        export: args.export.clone(),
        priority: args.priority.priority,
        max_mb_s: args.at_most,
        undo: args.undo,
        dry_run: args.dry_run,
    };
    let done = background::run(async |stop| {
        let mut watcher: Option<Watcher> = None;
        let mut see = |s: &Status| watcher.get_or_insert_with(|| Watcher::new("reorganise", s.total)).see(s);
        reorganise::run(&plan, &mut see, stop).await
    })?;
    let report = done.map_err(background::failure)?;
    if args.json {
        screen::print_json(&report)?;
    } else {
        screen::note(&summary(&report, args.dry_run));
    }
    match (report.complete || args.dry_run, report.left) {
        (false, _) => Err(Failure::Stopped),
        (true, left) if left > 0 && !args.dry_run => Err(Failure::Check),
        (true, _) => Ok(()),
    }
}

fn summary(r: &Report, dry_run: bool) -> String {
    let share = match r.accesses {
        0 => "no access was counted yet".into(),
        all => format!("{:.1}% of the accesses counted are to them", percent(r.accesses_in_reserve, all)),
    };
    let work = match (dry_run, r.planned) {
        (_, 0) => "nothing to move".into(),
        (true, planned) => format!("{planned} units of {} would be moved", bytes(r.unit_bytes)),
        (false, planned) => format!("moved {} of {planned} units of {}", r.moved, bytes(r.unit_bytes)),
    };
    format!("{work}; {} of {} slots of the reserve are in use; {share}", r.in_reserve, r.slots)
}
