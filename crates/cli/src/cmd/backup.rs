//! `headtime backup`: an image of an export or of the disk.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use headtime_serve::apps::backup::{self, Backup as Plan, Moment, Report, Step};
use headtime_serve::apps::error::AppError;

use super::scrub::{cost, list};
use crate::background::{self, Rate, Unit, Watcher};
use crate::control_socket::ControlSocket;
use crate::failure::Failure;
use crate::figures;
use crate::screen::{self, Bar};
use crate::words::bytes;

/// Make an image of an export or of the disk in rotational gaps and idle time
///
/// The image is a point-in-time image of the moment at which the backup begins, regardless of later
/// writes: like a volume manager's snapshot it holds what a power cut at that moment would have
/// left. Unlike a snapshot, it keeps nothing on disk: when the server or this program ends first,
/// the image is lost and must be begun anew (--retry does so automatically). An image of a
/// read-only export continues after any restart, and so does one with --live, which has each block
/// as it was when it was read. The image is a sparse file, verified against checksums of the data
/// received. Exit status 1: the image is lost or wrong, or some sectors could not be read.
#[derive(Debug, Args)]
pub struct Backup {
    /// Path of the image; it is named IMAGE.part until it has been verified
    #[arg(value_name = "IMAGE", value_parser = figures::output())]
    image: PathBuf,
    #[command(flatten)]
    server: ControlSocket,
    /// Only this export [default: the whole disk]
    #[arg(long, value_name = "NAME")]
    export: Option<String>,
    #[command(flatten)]
    rate: Rate,
    /// Copy each block as it is when it is read: continues after a restart, but the image of a
    /// mounted file system is not consistent
    #[arg(long)]
    live: bool,
    /// Begin anew when a point-in-time image is lost, at most this many times
    #[arg(long, value_name = "TIMES", default_value = "0", num_args = 0..=1, default_missing_value = "3",
        value_parser = figures::times)]
    retry: u32,
    #[command(flatten)]
    unit: Unit,
    /// Replace an existing image
    #[arg(long)]
    overwrite: bool,
    /// Begin anew, regardless of an unfinished backup
    #[arg(long)]
    restart: bool,
    /// Read the disk a second time, and report how much now differs from the image
    #[arg(long)]
    verify_disk: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Backup) -> Result<(), Failure> {
    let mut plan = Plan {
        job: args.rate.job(args.server.path()?, "backup")?,
        export: args.export.clone(),
        image: args.image.clone(),
        live: args.live,
        unit: args.unit.unit,
        overwrite: args.overwrite,
        restart: args.restart,
        verify_disk: args.verify_disk,
    };
    let mut left = args.retry;
    let (began, floor) = (Instant::now(), plan.job.floor);
    args.rate.yield_processor();
    let made = background::run(async |stop| {
        loop {
            let mut show = Show::default();
            let made = backup::run(&plan, &mut |step| show.see(step), stop.clone()).await;
            drop(show);
            match made {
                Err(e @ (AppError::Lost(_) | AppError::Client(_))) if left > 0 && !*stop.borrow() => {
                    left -= 1;
                    // The server may be restarting.
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    plan.restart = true;
                    // The deadline is that of the command, and not of each attempt.
                    plan.job.floor = floor.of_step(began.elapsed(), 1, 1);
                    let until = plan.job.floor.within.map(|time| format!(", {} s before the deadline", time.as_secs()));
                    screen::note(&format!("{e}; beginning anew{}", until.unwrap_or_default()));
                }
                made => return made,
            }
        }
    })?;
    if matches!(made, Err(AppError::Full(_))) && backup::journal(&plan.image).exists() {
        screen::note("what was read is kept but for the last seconds; the same command goes on with it");
    }
    let report = match made.map_err(background::failure)? {
        Some(report) => report,
        None => {
            let goes_on = args.live || backup::journal(&plan.image).exists();
            let how = if goes_on {
                "the same command goes on with it"
            } else {
                "an image of one point in time cannot be gone on with"
            };
            screen::note(&format!("stopped; {how}"));
            return Err(Failure::Stopped);
        }
    };
    if args.json {
        screen::print_json(&report)?;
    } else {
        screen::print(&summary(&report))?;
    }
    if report.is_good() { Ok(()) } else { Err(Failure::Check) }
}

/// A progress bar for each step.
#[derive(Default)]
struct Show {
    reading: Option<Watcher>,
    verifying: Option<Bar>,
    comparing: Option<Watcher>,
}

impl Show {
    fn see(&mut self, step: Step) {
        match step {
            Step::Cached(export) => screen::note(&format!(
                "export {export:?} has a write cache: what its clients have not flushed may not be in the image"
            )),
            Step::Begins(moment, done) => {
                let what = match moment {
                    Moment::PointInTime => "an image of this moment",
                    Moment::ReadOnly => "an image of a read-only export",
                    Moment::Live => "a live image: each block as it is when it is read",
                };
                let again = if done > 0 { format!("; goes on after {}", bytes(done)) } else { String::new() };
                screen::note(&format!("{what}{again}"));
            }
            Step::Reading(s) => self.reading.get_or_insert_with(|| Watcher::new("backup", s.total)).see(s),
            Step::Verifying(read, total) => {
                self.reading = None;
                self.verifying.get_or_insert_with(|| Bar::with_message(total, "verify")).reach(read);
            }
            Step::Comparing(s) => {
                self.verifying = None;
                self.comparing.get_or_insert_with(|| Watcher::new("compare with the disk", s.total)).see(s);
            }
        }
    }
}

fn summary(r: &Report) -> String {
    let rate = r.bytes as f64 / 1e6 / r.seconds.max(1e-3);
    let mut text = format!(
        "{}, {}: {} in {:.0} s, {rate:.2} MB/s\nimage: {}\n",
        r.disk,
        r.what,
        bytes(r.bytes),
        r.seconds,
        r.image.display()
    );
    text += match r.moment {
        Moment::PointInTime => "of one point in time: when the backup began\n",
        Moment::ReadOnly => "of a read-only export\n",
        Moment::Live => "live: each block as it was when it was read, which is no point in time\n",
    };
    text += &cost(r.promoted_bytes, r.bytes);
    text += &list("unreadable, zeros in the image", &r.unreadable);
    text += &list("NOT AS RECEIVED", &r.wrong);
    match r.wrong.is_empty() {
        true => text += "verified: the image holds what was received\n",
        false => text += "NOT VERIFIED: the file does not hold what was received\n",
    }
    if let Some(differ) = r.differ_from_disk_bytes {
        text += &format!("the disk, read again, differs in {}\n", bytes(differ));
    }
    text
}
