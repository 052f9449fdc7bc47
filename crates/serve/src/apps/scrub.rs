//! `headtime scrub`: reads every block and reports unreadable ones; it never writes to the disk.
//!
//! With a catalogue it also compares checksums with those of an earlier scrub. A disk in use
//! changes, and a reader cannot distinguish a write from corruption. So differences are only
//! counted and the catalogue is updated, unless the user states that nothing may have changed (an
//! archive, a read-only export). Only then is a difference a finding, and the catalogue keeps the
//! old checksum, so that it is reported until it is repaired.

use std::path::{Path, PathBuf};

use headtime_sched::TaskRange;
use serde::Serialize;
use tokio::sync::watch;

use super::coverage::{Coverage, Place, places};
use super::error::{AppError, plain_or_none};
use super::image::remove;
use super::job::{End, Job, Sink, Status};
use super::journal::{Journal, lock};
use super::link::{answer, covered, disk, export, look};
use super::progress::{Notes, Progress, may_begin_anew};
use super::ranges::Ranges;
use super::runner;
use super::sums::{Known, Sums, sum};
use super::units::{Units, usual_unit};
use crate::control::v1::InfoReply;

/// Changed units that are listed individually; all of them are counted.
const MAX_CHANGED: usize = 1 << 16;

/// Names of the counters in the journal.
pub mod counts {
    /// Units with the checksum in the catalogue.
    pub const SAME_UNITS: &str = "same_units";
    /// Units with another checksum.
    pub const CHANGED_UNITS: &str = "changed_units";
    /// Units that were not in the catalogue.
    pub const NEW_UNITS: &str = "new_units";
    /// Units whose catalogue entry was damaged.
    pub const CATALOGUE_DAMAGED: &str = "catalogue_damaged_units";
}

/// A catalogue, and whether it is authoritative.
#[derive(Debug)]
pub struct Catalogue {
    /// The checksums.
    pub sums: Sums,
    /// Whether a difference is a finding and the old checksum is kept.
    pub expect_unchanged: bool,
}

/// The processing of a scrub's data.
#[derive(Debug, Default)]
pub struct Scrub {
    /// The catalogue to compare with.
    pub catalogue: Option<Catalogue>,
}

impl Sink for Scrub {
    fn unit(&mut self, index: u64, range: TaskRange, data: &[u8], notes: &mut Notes) -> Result<(), AppError> {
        // Without a catalogue, being readable is all that is checked.
        let Some(Catalogue { sums, expect_unchanged }) = &self.catalogue else { return Ok(()) };
        let found = sum(data);
        let what = match sums.get(index)? {
            Known::Sum(s) if s == found => counts::SAME_UNITS,
            Known::Sum(_) => {
                if notes.changed.len() < MAX_CHANGED {
                    notes.changed.push((range.lbn, range.count));
                }
                counts::CHANGED_UNITS
            }
            Known::Nothing => counts::NEW_UNITS,
            Known::Damaged => counts::CATALOGUE_DAMAGED,
        };
        *notes.counts.entry(what.into()).or_default() += 1;
        if what != counts::SAME_UNITS && !(*expect_unchanged && what == counts::CHANGED_UNITS) {
            sums.set(index, found)?;
        }
        Ok(())
    }

    fn damaged(&mut self, _: u64, _: TaskRange, _: &[u8], _: &[TaskRange]) -> Result<(), AppError> {
        // The catalogue entry stays: the data may be restored from a copy.
        Ok(())
    }

    fn save(&mut self) -> Result<(), AppError> {
        match &self.catalogue {
            Some(c) => Ok(c.sums.sync()?),
            None => Ok(()),
        }
    }
}

/// The findings of a scrub.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was read.
    #[serde(flatten)]
    pub read: Coverage,
    /// The comparison with the catalogue.
    pub catalogue: Option<Compared>,
}

/// A comparison with a catalogue.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Whether differences are findings.
    pub expect_unchanged: bool,
    /// Units without a difference.
    pub same_units: u64,
    /// Units that differ.
    pub changed_units: u64,
    /// Units that were not in the catalogue.
    pub new_units: u64,
    /// Units whose catalogue entry was damaged.
    pub catalogue_damaged_units: u64,
    /// Ranges that differ.
    pub changed: Vec<Place>,
}

impl Report {
    /// Creates the report of the progress so far.
    pub fn new(info: &InfoReply, progress: &Progress, scrub: &Scrub) -> Report {
        let notes = &progress.notes;
        let count = |what: &str| notes.counts.get(what).copied().unwrap_or(0);
        let changed: Ranges = notes.changed.iter().map(|&(lbn, count)| TaskRange { lbn, count }).collect();
        Report {
            read: Coverage::new(info, progress),
            catalogue: scrub.catalogue.as_ref().map(|c| Compared {
                expect_unchanged: c.expect_unchanged,
                same_units: count(counts::SAME_UNITS),
                changed_units: count(counts::CHANGED_UNITS),
                new_units: count(counts::NEW_UNITS),
                catalogue_damaged_units: count(counts::CATALOGUE_DAMAGED),
                changed: places(info, &changed),
            }),
        }
    }

    /// Returns whether there are no findings.
    pub fn is_clean(&self) -> bool {
        let silent = self.catalogue.as_ref().is_some_and(|c| c.expect_unchanged && c.changed_units > 0);
        self.read.unreadable.is_empty() && !silent
    }
}

/// The parameters of a scrub.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The job. Its journal and export are set here.
    pub job: Job,
    /// The export; `None`: the whole disk.
    pub export: Option<String>,
    /// Sectors per unit; `None` for the default.
    pub unit: Option<u32>,
    /// The catalogue to compare with.
    pub catalogue: Option<PathBuf>,
    /// Whether a difference is a finding.
    pub expect_unchanged: bool,
    /// The location of the journal.
    pub journal: Journal,
    /// Whether the journal of an earlier run is discarded.
    pub restart: bool,
}

/// The current step of a scrub, for display.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// An earlier run is continued: bytes done, total bytes, and the journal.
    GoesOn(u64, u64, &'a Path),
    /// Reading the disk.
    Reading(&'a Status),
}

/// Runs a scrub; returns the report, its end, and the journal, which remains if it was stopped.
pub async fn run(
    plan: &Plan,
    watch: &mut (dyn FnMut(Step<'_>) + Send),
    stop: watch::Receiver<bool>,
) -> Result<(Report, End, PathBuf), AppError> {
    let (_, info) = answer(&plan.job.control, &stop, look(&plan.job.control)).await?;
    let (what, range) = covered(&info, plan.export.as_deref())?;
    let unit = plan.unit.unwrap_or_else(|| usual_unit(range.count, info.sector_bytes));
    let units = Units::new(vec![range], unit, info.sectors, info.sector_bytes)?;
    // The catalogue is part of the job's identity: the rest of a scrub without a catalogue cannot
    // be continued with one.
    let plain = Progress::new("scrub", &disk(&info), info.sectors, info.sector_bytes, &what, units.clone());
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
    let what = match &plan.catalogue {
        Some(path) if plan.expect_unchanged => format!("{what}, unchanged since {}", absolute(path).display()),
        Some(path) => format!("{what}, against {}", absolute(path).display()),
        None => what,
    };
    let mut progress = Progress::new("scrub", &disk(&info), info.sectors, info.sector_bytes, &what, units);
    let journal = plan.journal.path("scrub", &info, plan.export.as_deref())?;
    let _held = lock(&journal)?;
    if plan.restart {
        may_begin_anew(&journal)?;
    } else if progress.resume(&journal)? {
        let (done, total) = progress.bytes();
        watch(Step::GoesOn(done, total, &journal));
    }
    let mut sink = Scrub::default();
    if let Some(path) = &plan.catalogue {
        plain_or_none(path)?;
        let (sums, _) = Sums::open(path, plain.identity(), plain.units().len())?;
        sink.catalogue = Some(Catalogue { sums, expect_unchanged: plan.expect_unchanged });
    }
    let mut job = plan.job.clone();
    job.journal = Some(journal.clone());
    job.export = plan.export.as_deref().map(|name| export(&info, name).cloned()).transpose()?;
    let end = runner::run(&job, &mut progress, &mut sink, &mut |s| watch(Step::Reading(s)), stop).await?;
    let report = Report::new(&info, &progress, &sink);
    if end == End::Complete {
        // The findings have been returned; the next scrub starts from the beginning.
        remove(&journal)?;
    }
    Ok((report, end, journal))
}
