//! `headtime scrub`: every block is read, and what cannot be read is reported.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use clap::Args;
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::job::End;
use headtime_serve::apps::link::{covered, disk, export, look};
use headtime_serve::apps::progress::Progress;
use headtime_serve::apps::runner;
use headtime_serve::apps::scrub::{Catalogue, Place, Report, Scrub as Sink};
use headtime_serve::apps::sums::Sums;
use headtime_serve::apps::units::{Units, usual_unit};
use headtime_serve::control::v1::InfoReply;
use tokio::sync::watch;

use crate::background::{self, Rate, Watcher, bytes, percent};
use crate::control_socket::ControlSocket;
use crate::failure::Failure;
use crate::{figures, screen};

/// Read every block for free, and report what cannot be read
///
/// Nothing is ever written to the disk. It goes on where it was after Ctrl-C, and after a restart of the server: progress is
/// kept in a journal until the end. With a catalogue of checksums it also says what differs from the last time; a disk that is
/// written differs for good reasons, so differences are findings only with --expect-unchanged (archives, read-only exports).
/// Exit status 1: something is unreadable, or changed that should not have.
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
    /// Whatever differs from the catalogue is silent change; the catalogue keeps the old checksum of it
    #[arg(long, requires = "catalogue")]
    expect_unchanged: bool,
    /// Sectors that are read and compared as one [default: 8 KiB, more on disks beyond 512 GiB]
    #[arg(long, value_name = "SECTORS", value_parser = clap::value_parser!(u32).range(1..))]
    unit: Option<u32>,
    /// Where progress is kept [default: a file of the disk's and the export's names in ~/.local/state/headtime]
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
    let control = args.server.path()?;
    let done = background::run(async move |stop| scrub(args, control, stop).await)?;
    let (report, end, journal) = done.map_err(background::failure)?;
    if args.json {
        screen::print_json(&report)?;
    } else {
        screen::print(&told(&report))?;
    }
    match end {
        End::Stopped => {
            screen::note(&format!("stopped; the same command goes on with it ({})", journal.display()));
            Err(Failure::Stopped)
        }
        End::Complete if report.is_clean() => Ok(()),
        End::Complete => Err(Failure::Check),
    }
}

async fn scrub(
    args: &Scrub,
    control: PathBuf,
    stop: watch::Receiver<bool>,
) -> Result<(Report, End, PathBuf), AppError> {
    let (_, info) = look(&control).await?;
    let (what, range) = covered(&info, args.export.as_deref())?;
    let unit = args.unit.unwrap_or_else(|| usual_unit(range.count, info.sector_bytes));
    let units = Units::new(vec![range], unit, info.sectors, info.sector_bytes)?;
    // What is compared with what is part of what is done: the rest of a scrub without a catalogue is no rest of one with it.
    let plain = Progress::new("scrub", &disk(&info), info.sectors, info.sector_bytes, &what, units.clone());
    let what = match &args.catalogue {
        Some(path) if args.expect_unchanged => format!("{what}, unchanged since {}", absolute(path).display()),
        Some(path) => format!("{what}, against {}", absolute(path).display()),
        None => what,
    };
    let mut progress = Progress::new("scrub", &disk(&info), info.sectors, info.sector_bytes, &what, units);
    let journal = match &args.journal {
        Some(path) => path.clone(),
        None => usual_journal(&info, args.export.as_deref())?,
    };
    let _held = lock(&journal)?;
    if !args.restart && progress.resume(&journal)? {
        let (done, total) = progress.bytes();
        screen::note(&format!("goes on at {:.1}% ({})", percent(done, total), journal.display()));
    }
    let mut sink = Sink::default();
    if let Some(path) = &args.catalogue {
        let (sums, _) = Sums::open(path, plain.identity(), plain.units().len())?;
        sink.catalogue = Some(Catalogue { sums, expect_unchanged: args.expect_unchanged });
    }
    let mut job = args.rate.job(control, "scrub");
    job.journal = Some(journal.clone());
    job.export = args.export.as_deref().map(|name| export(&info, name).cloned()).transpose()?;
    let mut watcher = Watcher::new("scrub", progress.bytes().1);
    let end = runner::run(&job, &mut progress, &mut sink, &mut |s| watcher.see(s), stop).await?;
    drop(watcher);
    let report = Report::new(&info, &progress, &sink);
    if end == End::Complete {
        // What it found has been told; the next scrub begins anew.
        std::fs::remove_file(&journal).map_err(|e| AppError::file(&journal, e))?;
    }
    Ok((report, end, journal))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

/// Keeps other scrubs away from a journal as long as the result lives. (Not the journal's own file: that is replaced whenever
/// it is written.)
fn lock(journal: &Path) -> Result<File, AppError> {
    let mut path = journal.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let file = File::options().create(true).append(true).open(&path).map_err(|e| AppError::file(&path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(AppError::JournalInUse(journal.into())),
        Err(TryLockError::Error(e)) => Err(AppError::file(&path, e)),
    }
}

/// A name for the journal that two disks or exports do not share.
fn usual_journal(info: &InfoReply, export: Option<&str>) -> Result<PathBuf, AppError> {
    let home = || std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    let dir = state.unwrap_or_else(|| PathBuf::from("/var/lib")).join("headtime");
    std::fs::create_dir_all(&dir).map_err(|e| AppError::file(&dir, e))?;
    let plain = |text: &str| text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
    let of = export.map_or(String::new(), |e| format!("-export-{}", plain(e)));
    Ok(dir.join(format!("scrub-{}-{}{of}.journal", plain(&disk(info)), info.sectors)))
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
