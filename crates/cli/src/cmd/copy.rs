//! `headtime copy`: a disk or an export, copied to that of another server.

use std::path::PathBuf;

use clap::Args;
use headtime_serve::apps::backup::Moment;
use headtime_serve::apps::copy::{self, Outcome, Plan, Report, Step};
use headtime_serve::apps::journal::Journal;

use super::scrub::{cost, list, state_folder};
use crate::background::{self, Rate, Unit, Watcher};
use crate::control_socket::ControlSocket;
use crate::failure::Failure;
use crate::words::bytes;
use crate::{figures, screen};

/// Copy a disk or an export to that of another server while both serve
///
/// The source is read, and the destination written, in rotational gaps and idle time. The copy is
/// the source at the moment at which this begins, regardless of later writes: what a power cut at
/// that moment would have left. It is lost when a server or this program ends first. A copy of a
/// read-only export continues after any restart, and so does one with --live, which has each block
/// as it was when it was read. Nothing else may use the destination meanwhile. If the destination
/// fails to write, the command ends, and the same command continues once it can. Exit status 1: the
/// copy is lost or wrong, or some sectors could not be read.
#[derive(Debug, Args)]
pub struct Copy {
    /// Control socket of the destination's server
    #[arg(value_name = "TO")]
    to: PathBuf,
    #[command(flatten)]
    server: ControlSocket,
    /// Only this export of the source [default: the whole disk]
    #[arg(long, value_name = "NAME")]
    export: Option<String>,
    /// To this export of the destination [default: the whole disk]
    #[arg(long, value_name = "NAME")]
    to_export: Option<String>,
    #[command(flatten)]
    rate: Rate,
    /// Copy each block as it is when it is read: continues after a restart, but the copy of a
    /// mounted file system is not consistent
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    unit: Unit,
    /// Replace data at the destination
    #[arg(long)]
    overwrite: bool,
    /// Path of the progress journal [default: a file named after the disk and the export in
    /// ~/.local/state/headtime]
    #[arg(long, value_name = "FILE", value_parser = figures::output())]
    journal: Option<PathBuf>,
    /// Begin anew, regardless of the journal
    #[arg(long)]
    restart: bool,
    /// Read the destination at the end, and compare it with what was read
    #[arg(long)]
    verify: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Copy) -> Result<(), Failure> {
    let plan = Plan {
        job: args.rate.job(args.server.path()?, "copy")?,
        export: args.export.clone(),
        to: args.to.clone().into(),
        to_export: args.to_export.clone(),
        live: args.live,
        unit: args.unit.unit,
        overwrite: args.overwrite,
        journal: args.journal.clone().map_or_else(|| Journal::In(state_folder()), Journal::At),
        restart: args.restart,
        verify: args.verify,
    };
    args.rate.yield_processor();
    let done = background::run(async |stop| {
        let (mut copying, mut verifying): (Option<Watcher>, Option<Watcher>) = (None, None);
        let mut see = |step: Step<'_>| match step {
            Step::Cached(export) => screen::note(&format!(
                "export {export:?} has a write cache: what its clients have not flushed may not be in the copy"
            )),
            Step::Begins(moment, done) => {
                let again = if done > 0 { format!("; goes on after {}", bytes(done)) } else { String::new() };
                screen::note(&format!("{}{again}", of(moment)));
            }
            Step::Copying(s) => copying.get_or_insert_with(|| Watcher::new("copy", s.total)).see(s),
            Step::Verifying(s) => {
                copying = None;
                verifying.get_or_insert_with(|| Watcher::new("verify", s.total)).see(s);
            }
        };
        copy::run(&plan, &mut see, stop).await
    })?;
    let (report, is_verified) = match done.map_err(background::failure)? {
        Outcome::Complete(report) => (report, true),
        Outcome::Unverified(report) => (report, false),
        Outcome::Stopped(journal) => {
            screen::note(&match journal {
                Some(path) => format!("stopped; the same command goes on with it ({})", path.display()),
                None => "stopped; a copy of one point in time cannot be gone on with".into(),
            });
            return Err(Failure::Stopped);
        }
    };
    if args.json {
        screen::print_json(&report)?;
    } else {
        screen::print(&summary(&report))?;
    }
    if !is_verified {
        screen::note("stopped; the copy is complete, but was not verified to its end");
        return Err(Failure::Stopped);
    }
    if report.is_good() { Ok(()) } else { Err(Failure::Check) }
}

/// Describes what a copy is of.
fn of(moment: Moment) -> &'static str {
    match moment {
        Moment::PointInTime => "a copy of this moment",
        Moment::ReadOnly => "a copy of a read-only export",
        Moment::Live => "a live copy: each block as it is when it is read",
    }
}

fn summary(r: &Report) -> String {
    let rate = r.bytes as f64 / 1e6 / r.seconds.max(1e-3);
    let mut text = format!(
        "{}, {}, to {}, {}: {} in {:.0} s, {rate:.2} MB/s\n",
        r.disk,
        r.what,
        r.to_disk,
        r.to_what,
        bytes(r.bytes),
        r.seconds
    );
    text += &cost(r.promoted_bytes, r.bytes);
    if r.destination_promoted_bytes > 0 {
        text += &format!("written as foreground work at the destination: {}\n", bytes(r.destination_promoted_bytes));
    }
    if r.destination_seconds >= 1.0 {
        text += &format!("waited for the destination: {:.0} s\n", r.destination_seconds);
    }
    text += &list("unreadable, zeros in the copy", &r.unreadable);
    let lost = [
        ("overwritten by another client", r.superseded_bytes),
        ("DIFFERENT from what was read", r.wrong_bytes.unwrap_or(0)),
    ];
    for (what, lost) in lost.into_iter().filter(|(_, lost)| *lost > 0) {
        text += &format!("{what}: {}\n", bytes(lost));
    }
    if r.is_good() && r.wrong_bytes.is_some() {
        text += "the destination is what was read\n";
    }
    text
}
