//! `headtime scrub`: reads every block and reports unreadable ones.

use std::path::PathBuf;

use clap::Args;
use headtime_serve::apps::coverage::{Coverage, Place};
use headtime_serve::apps::job::End;
use headtime_serve::apps::journal::Journal;
use headtime_serve::apps::scrub::{self, Plan, Report, Step};

use crate::background::{self, Rate, Unit, Watcher};
use crate::control_socket::ControlSocket;
use crate::failure::Failure;
use crate::words::{bytes, percent};
use crate::{figures, screen};

/// Read every block in rotational gaps and idle time, and report unreadable ones
///
/// Nothing is ever written to the disk. A scrub continues where it was after Ctrl-C, and after a
/// restart of the server: progress is kept in a journal until the end. With a catalogue of
/// checksums it also reports blocks that differ from the last scrub; ordinary writes cause
/// differences too, so they are findings only with --expect-unchanged (archives, read-only
/// exports). Exit status 1: sectors are unreadable, or changed under --expect-unchanged.
#[derive(Debug, Args)]
pub struct Scrub {
    #[command(flatten)]
    server: ControlSocket,
    /// Only this export [default: the whole disk]
    #[arg(long, value_name = "NAME")]
    export: Option<String>,
    #[command(flatten)]
    rate: Rate,
    /// Compare checksums with this file, and store them in it; created if it does not exist
    #[arg(long, value_name = "FILE", value_parser = figures::output())]
    catalogue: Option<PathBuf>,
    /// Treat every difference from the catalogue as silent corruption; the catalogue keeps the old
    /// checksum
    #[arg(long, requires = "catalogue")]
    expect_unchanged: bool,
    #[command(flatten)]
    unit: Unit,
    /// Path of the progress journal [default: a file named after the disk and the export in
    /// ~/.local/state/headtime]
    #[arg(long, value_name = "FILE", value_parser = figures::output())]
    journal: Option<PathBuf>,
    /// Begin anew, regardless of the journal
    #[arg(long)]
    restart: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Scrub) -> Result<(), Failure> {
    let plan = Plan {
        job: args.rate.job(args.server.path()?, "scrub")?,
        export: args.export.clone(),
        unit: args.unit.unit,
        catalogue: args.catalogue.clone(),
        expect_unchanged: args.expect_unchanged,
        journal: args.journal.clone().map_or_else(|| Journal::In(state_folder()), Journal::At),
        restart: args.restart,
    };
    args.rate.yield_processor();
    let done = background::run(async |stop| {
        let mut watcher: Option<Watcher> = None;
        let mut see = |step: Step<'_>| match step {
            Step::GoesOn(done, total, journal) => {
                screen::note(&format!("goes on at {:.1}% ({})", percent(done, total), journal.display()));
            }
            Step::Reading(s) => watcher.get_or_insert_with(|| Watcher::new("scrub", s.total)).see(s),
        };
        scrub::run(&plan, &mut see, stop).await
    })?;
    let (report, end, journal) = done.map_err(background::failure)?;
    let said = if args.json { screen::print_json(&report) } else { screen::print(&summary(&report)) };
    match end {
        // The terminal that asked for the stop may be closed.
        End::Stopped => {
            screen::note(&format!("stopped; the same command goes on with it ({})", journal.display()));
            Err(Failure::Stopped)
        }
        End::Complete if said.is_err() => said,
        End::Complete if report.is_clean() => Ok(()),
        End::Complete => Err(Failure::Check),
    }
}

/// Returns the default directory of journals.
pub fn state_folder() -> PathBuf {
    // An empty variable counts as unset, not as the current directory.
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")));
    state.unwrap_or_else(|| PathBuf::from("/var/lib")).join("headtime")
}

/// Formats a place as text.
pub fn place(p: &Place) -> String {
    let last = p.lbn + p.count - 1;
    let sectors = if p.count == 1 { format!("sector {}", p.lbn) } else { format!("sectors {} to {last}", p.lbn) };
    let within = match &p.export {
        Some(name) => format!("export {name:?} at byte {}", p.offset),
        None => format!("byte {} of the disk", p.offset),
    };
    format!("{sectors} ({}), {within}", bytes(p.bytes))
}

/// Longest list, lines; --json has all of them.
const MOST_LINES: usize = 40;

/// Formats a list as text.
pub fn list(title: &str, all: &[Place]) -> String {
    let mut text: String = all.iter().take(MOST_LINES).map(|p| format!("{title}: {}\n", place(p))).collect();
    if all.len() > MOST_LINES {
        text += &format!("{title}: {} more places (--json lists them)\n", all.len() - MOST_LINES);
    }
    text
}

/// Formats the foreground cost of a minimum rate; empty if there was none.
pub fn cost(promoted: u64, of: u64) -> String {
    match promoted {
        0 => String::new(),
        p => format!("read as foreground work to keep up: {} ({:.1}%)\n", bytes(p), percent(p, of)),
    }
}

/// Formats what was read as text: with `more` at the end of its first line, and unreadable ranges
/// under this title.
pub fn coverage(c: &Coverage, more: &str, unreadable: &str) -> String {
    let end = if c.complete { "" } else { ", not to its end" };
    let (read, rate) = (bytes(c.bytes), c.mb_s());
    let mut text = format!("{}, {}: {read} in {:.0} s, {rate:.2} MB/s{more}{end}\n", c.disk, c.what, c.seconds);
    text += &cost(c.promoted_bytes, c.bytes);
    text += &list(unreadable, &c.unreadable);
    text
}

fn summary(r: &Report) -> String {
    let mut text = coverage(&r.read, "", "unreadable");
    if let Some(c) = &r.catalogue {
        text += &format!(
            "catalogue: {} units as before, {} {}, {} new\n",
            c.same_units,
            c.changed_units,
            if c.expect_unchanged { "CHANGED SILENTLY" } else { "changed since" },
            c.new_units
        );
        if c.catalogue_damaged_units > 0 {
            text += &format!("catalogue: {} of its own entries were damaged\n", c.catalogue_damaged_units);
        }
        if c.expect_unchanged {
            text += &list("changed", &c.changed);
        }
    }
    if r.read.unreadable.is_empty() && r.read.complete {
        text += "every block could be read\n";
    }
    text
}
