//! `headtime scrub`: every block is read, and what cannot be read is reported.

use std::path::PathBuf;

use clap::Args;
use headtime_serve::apps::job::End;
use headtime_serve::apps::scrub::{self, Journal, Place, Plan, Report, Step};

use crate::background::{self, Rate, Unit, Watcher};
use crate::control_socket::ControlSocket;
use crate::failure::Failure;
use crate::words::{bytes, percent};
use crate::{figures, screen};

/// Read every block for free, and report what cannot be read
///
/// Nothing is ever written to the disk. It goes on where it was after Ctrl-C, and after a restart
/// of the server: progress is kept in a journal until the end. With a catalogue of checksums it
/// also says what differs from the last time; a disk that is written differs for good reasons, so
/// differences are findings only with --expect-unchanged (archives, read-only exports). Exit status
/// 1: something is unreadable, or changed that should not have.
#[derive(Debug, Args)]
pub struct Scrub {
    #[command(flatten)]
    server: ControlSocket,
    /// Only this export; otherwise the whole disk
    #[arg(long, value_name = "NAME")]
    export: Option<String>,
    #[command(flatten)]
    rate: Rate,
    /// Compare checksums with this file, and keep them there; it is made when it is not there
    #[arg(long, value_name = "FILE", value_parser = figures::output())]
    catalogue: Option<PathBuf>,
    /// Whatever differs from the catalogue is silent change; the catalogue keeps the old checksum
    /// of it
    #[arg(long, requires = "catalogue")]
    expect_unchanged: bool,
    #[command(flatten)]
    unit: Unit,
    /// Where progress is kept [default: a file of the disk's and the export's names in
    /// ~/.local/state/headtime]
    #[arg(long, value_name = "FILE", value_parser = figures::output())]
    journal: Option<PathBuf>,
    /// Begin anew, whatever the journal says
    #[arg(long)]
    restart: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Scrubs.
pub fn run(args: &Scrub) -> Result<(), Failure> {
    let plan = Plan {
        job: args.rate.job(args.server.path()?, "scrub"),
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
    let said = if args.json { screen::print_json(&report) } else { screen::print(&told(&report)) };
    match end {
        // Its terminal may be what asked it to stop, and be gone.
        End::Stopped => {
            screen::note(&format!("stopped; the same command goes on with it ({})", journal.display()));
            Err(Failure::Stopped)
        }
        End::Complete if said.is_err() => said,
        End::Complete if report.is_clean() => Ok(()),
        End::Complete => Err(Failure::Check),
    }
}

/// Where journals are kept that nobody chose a place for.
fn state_folder() -> PathBuf {
    // One that is empty is none, and not the current directory.
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")));
    state.unwrap_or_else(|| PathBuf::from("/var/lib")).join("headtime")
}

/// A place for people.
pub fn place(p: &Place) -> String {
    let last = p.lbn + p.count - 1;
    let sectors = if p.count == 1 { format!("sector {}", p.lbn) } else { format!("sectors {} to {last}", p.lbn) };
    let within = match &p.export {
        Some(name) => format!("export {name:?} at byte {}", p.offset),
        None => format!("byte {} of the disk", p.offset),
    };
    format!("{sectors} ({}), {within}", bytes(p.bytes))
}

/// Lines of a list at most; --json has all of them.
const MOST_LINES: usize = 40;

/// A list for people.
pub fn list(title: &str, all: &[Place]) -> String {
    let mut text: String = all.iter().take(MOST_LINES).map(|p| format!("{title}: {}\n", place(p))).collect();
    if all.len() > MOST_LINES {
        text += &format!("{title}: {} more places (--json lists them)\n", all.len() - MOST_LINES);
    }
    text
}

/// What a floor cost, for people; empty when it cost nothing.
pub fn cost(promoted: u64, of: u64) -> String {
    match promoted {
        0 => String::new(),
        p => format!("read as foreground work to keep up: {} ({:.1}%)\n", bytes(p), percent(p, of)),
    }
}

fn told(r: &Report) -> String {
    let rate = r.bytes as f64 / 1e6 / r.seconds.max(1e-3);
    let mut text = format!("{}, {}: {} in {:.0} s, {rate:.2} MB/s", r.disk, r.what, bytes(r.bytes), r.seconds);
    text += if r.complete { "\n" } else { ", not to its end\n" };
    text += &cost(r.promoted_bytes, r.bytes);
    text += &list("unreadable", &r.unreadable);
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
    if r.unreadable.is_empty() && r.complete {
        text += "every block could be read\n";
    }
    text
}
