//! `headtime search`: passes every block of the disk to a matcher or to a program, for free, and
//! reports where the pattern is: data mining, for which freeblock scheduling was first proposed
//! (Thereska 2003 section 2.1).

mod matcher;

use std::io::Write;

use headtime_sched::TaskRange;
use serde::Serialize;
use tokio::sync::watch;

use super::error::AppError;
use super::job::{End, Job, Sink, Status};
use super::link::{answer, covered, disk, export, look};
use super::progress::{Notes, Progress};
use super::runner;
use super::scrub::{Place, places};
use super::units::{Units, usual_unit};
use crate::control::v1::InfoReply;
pub use matcher::{MAX_PATTERN, Matcher};

/// Occurrences that a report lists; all of them are counted.
pub const MAX_LISTED: usize = 1 << 16;

/// What the blocks are passed to.
pub enum Target<'a> {
    /// A matcher; `found` is called with the byte at which each occurrence begins, counted from the
    /// beginning of the export, or else of the disk.
    Pattern(Box<Matcher>, &'a mut (dyn FnMut(u64) -> Result<(), AppError> + Send)),
    /// The input of a program: of each block a line with its first byte (counted as above) and its
    /// number of bytes, both decimal, and then these bytes.
    Program(&'a mut (dyn Write + Send)),
}

/// The parameters of a search.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The job. Its export is set here.
    pub job: Job,
    /// The export; `None`: the whole disk.
    pub export: Option<String>,
    /// Sectors per unit; `None` for the default.
    pub unit: Option<u32>,
}

/// The result of a search.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The disk.
    pub disk: String,
    /// The export or the whole disk.
    pub what: String,
    /// Whether all of it was searched.
    pub complete: bool,
    /// Bytes searched, or found unreadable.
    pub bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Bytes that were promoted to foreground work to keep the floor.
    pub promoted_bytes: u64,
    /// Number of occurrences; 0 with a program.
    pub occurrences: u64,
    /// The bytes at which they begin, ascending; the first [`MAX_LISTED`] that were found.
    pub at: Vec<u64>,
    /// Unreadable ranges, which were not searched.
    pub unreadable: Vec<Place>,
    /// Their size in bytes.
    pub unreadable_bytes: u64,
}

/// The processing of a search's data.
struct Search<'a> {
    target: Target<'a>,
    sector_bytes: u64,
    /// The first byte of the export.
    first: u64,
    occurrences: u64,
    at: Vec<u64>,
}

impl Search<'_> {
    /// Passes a block on, of which the sectors `bad` are zeros because they are unreadable.
    fn pass(&mut self, range: TaskRange, data: &[u8], bad: &[TaskRange]) -> Result<(), AppError> {
        let (sector, first) = (self.sector_bytes, self.first);
        let at = range.lbn * sector - first;
        match &mut self.target {
            Target::Program(input) => {
                let whole = input.write_all(format!("{at} {}\n", data.len()).as_bytes());
                whole.and_then(|()| input.write_all(data)).map_err(AppError::Program)
            }
            Target::Pattern(matcher, found) => {
                let (occurrences, listed) = (&mut self.occurrences, &mut self.at);
                let mut note = |byte| {
                    *occurrences += 1;
                    if listed.len() < MAX_LISTED {
                        listed.push(byte);
                    }
                    found(byte)
                };
                // What lies between unreadable sectors is searched by itself.
                let mut from = at;
                let ends = bad.iter().map(|b| (b.lbn * sector - first, b.end() * sector - first));
                for (bad, next) in ends.chain([(at + data.len() as u64, 0)]) {
                    if from < bad {
                        matcher.block(from, &data[(from - at) as usize..(bad - at) as usize], &mut note)?;
                    }
                    from = next;
                }
                Ok(())
            }
        }
    }
}

impl Sink for Search<'_> {
    fn unit(&mut self, _: u64, range: TaskRange, data: &[u8], _: &mut Notes) -> Result<(), AppError> {
        self.pass(range, data, &[])
    }

    fn damaged(&mut self, _: u64, range: TaskRange, data: &[u8], bad: &[TaskRange]) -> Result<(), AppError> {
        self.pass(range, data, bad)
    }
}

/// Runs a search; returns the report and its end. It has no journal: it begins anew if it was
/// stopped, but continues through restarts of the server.
///
/// # Errors
/// Those of every background application, of the target, and a unit shorter than the longest
/// pattern.
pub async fn run(
    plan: &Plan,
    target: Target<'_>,
    watch: &mut (dyn FnMut(&Status) + Send),
    stop: watch::Receiver<bool>,
) -> Result<(Report, End), AppError> {
    let (_, info) = answer(&plan.job.control, &stop, look(&plan.job.control)).await?;
    let (what, range) = covered(&info, plan.export.as_deref())?;
    let unit = plan.unit.unwrap_or_else(|| usual_unit(range.count, info.sector_bytes));
    let units = Units::new(vec![range], unit, info.sectors, info.sector_bytes)?;
    let least = (MAX_PATTERN as u64).div_ceil(u64::from(info.sector_bytes));
    if u64::from(unit) < least {
        return Err(AppError::SearchUnit { least, found: unit });
    }
    let mut progress = Progress::new("search", &disk(&info), info.sectors, info.sector_bytes, &what, units);
    let first = if plan.export.is_some() { range.lbn * u64::from(info.sector_bytes) } else { 0 };
    let mut sink = Search { target, sector_bytes: u64::from(info.sector_bytes), first, occurrences: 0, at: Vec::new() };
    let mut job = plan.job.clone();
    job.export = plan.export.as_deref().map(|name| export(&info, name).cloned()).transpose()?;
    let end = runner::run(&job, &mut progress, &mut sink, watch, stop).await?;
    Ok((report(&info, &progress, sink), end))
}

fn report(info: &InfoReply, progress: &Progress, mut sink: Search<'_>) -> Report {
    let unreadable = progress.unreadable_ranges();
    sink.at.sort_unstable();
    Report {
        disk: info.disk.clone(),
        what: progress.identity().what.clone(),
        complete: progress.is_complete(),
        bytes: progress.bytes().0,
        seconds: progress.notes.milliseconds as f64 / 1e3,
        promoted_bytes: progress.notes.promoted_bytes,
        occurrences: sink.occurrences,
        at: sink.at,
        unreadable: places(info, unreadable),
        unreadable_bytes: unreadable.sectors() * progress.sector_bytes(),
    }
}
