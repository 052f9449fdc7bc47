//! `headtime search`: passes every block of the disk to a matcher or to a program, for free, and
//! reports where the pattern is: data mining, for which freeblock scheduling was first proposed
//! (Thereska 2003 section 2.1).

mod matcher;

use std::io::Write;

use headtime_sched::TaskRange;
use serde::Serialize;
use tokio::sync::watch;

use super::coverage::Coverage;
use super::error::AppError;
use super::job::{End, Job, Sink, Status};
use super::link::{answer, covered, disk, export, in_place, look};
use super::progress::{Notes, Progress};
use super::runner;
use super::units::{Units, usual_unit};
pub use matcher::{MAX_PATTERN, Matcher};

/// Matches that a report lists; all of them are counted.
pub const MAX_LISTED: usize = 1 << 16;

/// What the blocks are passed to.
pub enum Target<'a> {
    /// A matcher, and what is called with the byte offset of each match, in the export or else on
    /// the disk.
    Pattern(Box<Matcher>, &'a mut (dyn FnMut(u64) -> Result<(), AppError> + Send)),
    /// The input of a program: for each block a line with its byte offset and length in decimal,
    /// and then its data.
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
    /// What was read. Unreadable ranges were not searched.
    #[serde(flatten)]
    pub read: Coverage,
    /// Number of matches; 0 with a program.
    pub matches: u64,
    /// Their byte offsets, ascending; of the first [`MAX_LISTED`] that were found.
    pub offsets: Vec<u64>,
}

/// The processing of a search's data.
struct Search<'a> {
    target: Target<'a>,
    sector_bytes: u64,
    /// Where byte offsets are counted from: the first byte of the export, or of the disk.
    first: u64,
    matches: u64,
    offsets: Vec<u64>,
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
                let (matches, listed) = (&mut self.matches, &mut self.offsets);
                let mut note = |offset| {
                    *matches += 1;
                    if listed.len() < MAX_LISTED {
                        listed.push(offset);
                    }
                    found(offset)
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

/// Checks that a unit is no shorter than the pattern.
fn check_unit(matcher: &Matcher, unit: u32, sector_bytes: u32) -> Result<(), AppError> {
    let least = (matcher.pattern_bytes() as u64).div_ceil(u64::from(sector_bytes));
    match u64::from(unit) < least {
        true => Err(AppError::SearchUnit { least, found: unit }),
        false => Ok(()),
    }
}

/// Runs a search; returns the report and its end. It has no journal: it begins anew if it was
/// stopped, but continues through restarts of the server.
///
/// # Errors
/// Those of every background application, of the target, and a unit shorter than the pattern.
pub async fn run(
    plan: &Plan,
    target: Target<'_>,
    watch: &mut (dyn FnMut(&Status) + Send),
    stop: watch::Receiver<bool>,
) -> Result<(Report, End), AppError> {
    let (_, info) = answer(&plan.job.control, &stop, look(&plan.job.control)).await?;
    let (what, range) = covered(&info, plan.export.as_deref())?;
    in_place(&info, &range)?;
    let unit = plan.unit.unwrap_or_else(|| usual_unit(range.count, info.sector_bytes));
    let units = Units::new(vec![range], unit, info.sectors, info.sector_bytes)?;
    if let Target::Pattern(matcher, _) = &target {
        check_unit(matcher, unit, info.sector_bytes)?;
    }
    let mut progress = Progress::new("search", &disk(&info), info.sectors, info.sector_bytes, &what, units);
    let first = if plan.export.is_some() { range.lbn * u64::from(info.sector_bytes) } else { 0 };
    let mut sink =
        Search { target, sector_bytes: u64::from(info.sector_bytes), first, matches: 0, offsets: Vec::new() };
    let mut job = plan.job.clone();
    job.export = plan.export.as_deref().map(|name| export(&info, name).cloned()).transpose()?;
    let end = runner::run(&job, &mut progress, &mut sink, watch, stop).await?;
    sink.offsets.sort_unstable();
    Ok((Report { read: Coverage::new(&info, &progress), matches: sink.matches, offsets: sink.offsets }, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_no_shorter_than_the_pattern_that_is_sought() {
        let check = |pattern: usize, unit, sector| check_unit(&Matcher::new(&vec![7; pattern]).unwrap(), unit, sector);
        assert!(check(16, 1, 512).is_ok() && check(512, 1, 512).is_ok() && check(MAX_PATTERN, 8, 512).is_ok());
        assert!(check(MAX_PATTERN, 1, 4_096).is_ok());
        let short = check(513, 1, 512);
        assert!(matches!(short, Err(AppError::SearchUnit { least: 2, found: 1 })), "{short:?}");
    }
}
