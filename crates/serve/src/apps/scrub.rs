//! `headtime scrub`: every block is read, what cannot be read is reported, and nothing is ever
//! written to the disk.
//!
//! With a catalogue it also compares checksums with those of an earlier scrub. A disk that is in
//! use changes, and a reader cannot tell a write from rot: so differences are only counted, and the
//! catalogue follows them, unless the user says that nothing may have changed (an archive, a
//! read-only export). Only then is a difference a finding, and the catalogue keeps the old
//! checksum, so that it is found again until somebody mends it.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use headtime_sched::tasks::Range;
use serde::Serialize;
use tokio::sync::watch;

use super::error::{AppError, plain_or_none};
use super::image::remove;
use super::job::{End, Job, Sink, Status};
use super::link::{answer, covered, disk, export, look};
use super::progress::{Notes, Progress, may_begin_anew};
use super::ranges::Ranges;
use super::runner;
use super::sums::{Known, Sums, sum};
use super::units::{Units, usual_unit};
use crate::control::v1::InfoReply;
use crate::private;

/// Changed units that are remembered one by one; all of them are counted.
const MOST_CHANGED: usize = 1 << 16;

/// What was counted, as the journal calls it.
pub mod counts {
    /// Units whose checksum is the one in the catalogue.
    pub const SAME: &str = "same_units";
    /// Units with another checksum.
    pub const CHANGED: &str = "changed_units";
    /// Units that the catalogue did not have.
    pub const NEW: &str = "new_units";
    /// Units of which the catalogue's own entry was damaged.
    pub const CATALOGUE_DAMAGED: &str = "catalogue_damaged_units";
}

/// A catalogue, and whether it must be right.
#[derive(Debug)]
pub struct Catalogue {
    /// The checksums.
    pub sums: Sums,
    /// A difference is a finding, and the old checksum is kept.
    pub expect_unchanged: bool,
}

/// What a scrub does with what it reads.
#[derive(Debug, Default)]
pub struct Scrub {
    /// What it compares with.
    pub catalogue: Option<Catalogue>,
}

impl Sink for Scrub {
    fn unit(&mut self, index: u64, range: Range, data: &[u8], notes: &mut Notes) -> Result<(), AppError> {
        // Reading it was all that mattered.
        let Some(Catalogue { sums, expect_unchanged }) = &self.catalogue else { return Ok(()) };
        let found = sum(data);
        let what = match sums.get(index)? {
            Known::Sum(s) if s == found => counts::SAME,
            Known::Sum(_) => {
                if notes.changed.len() < MOST_CHANGED {
                    notes.changed.push((range.lbn, range.count));
                }
                counts::CHANGED
            }
            Known::Nothing => counts::NEW,
            Known::Damaged => counts::CATALOGUE_DAMAGED,
        };
        *notes.counts.entry(what.into()).or_default() += 1;
        if what != counts::SAME && !(*expect_unchanged && what == counts::CHANGED) {
            sums.set(index, found)?;
        }
        Ok(())
    }

    fn damaged(&mut self, _: u64, _: Range, _: &[u8], _: &[Range]) -> Result<(), AppError> {
        // What the catalogue knows of it stays: the data may come back from a copy.
        Ok(())
    }

    fn save(&mut self) -> Result<(), AppError> {
        match &self.catalogue {
            Some(c) => Ok(c.sums.sync()?),
            None => Ok(()),
        }
    }
}

/// Where something was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// First sector of the disk.
    pub lbn: u64,
    /// Sectors.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
    /// The export that it lies in, if one.
    pub export: Option<String>,
    /// Byte within the export, or else within the disk.
    pub offset: u64,
}

/// Where ranges lie, cut where exports begin and end. Where exports overlap, the first one counts.
pub fn places(info: &InfoReply, ranges: &Ranges) -> Vec<Place> {
    let sector = u64::from(info.sector_bytes);
    let mut all = Vec::new();
    for r in ranges.iter() {
        let mut lbn = r.lbn;
        while lbn < r.end() {
            let holding = info.exports.iter().find(|e| e.first <= lbn && lbn - e.first < e.sectors);
            let ends = info.exports.iter().flat_map(|e| [e.first, e.first + e.sectors]);
            let end = ends.filter(|&end| end > lbn).fold(r.end(), u64::min);
            let from = holding.map_or(0, |e| e.first);
            all.push(Place {
                lbn,
                count: end - lbn,
                bytes: (end - lbn) * sector,
                export: holding.map(|e| e.name.clone()),
                offset: (lbn - from) * sector,
            });
            lbn = end;
        }
    }
    all
}

/// What a scrub found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The disk.
    pub disk: String,
    /// What of it.
    pub what: String,
    /// Whether it was read to its end.
    pub complete: bool,
    /// Bytes read, or found unreadable.
    pub bytes: u64,
    /// Seconds that it took, in all its runs.
    pub seconds: f64,
    /// Bytes that were read as foreground work: what the floor cost.
    pub promoted_bytes: u64,
    /// What could not be read.
    pub unreadable: Vec<Place>,
    /// Bytes of it.
    pub unreadable_bytes: u64,
    /// What differs from the catalogue.
    pub catalogue: Option<Compared>,
}

/// A comparison with a catalogue.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Whether differences are findings.
    pub expect_unchanged: bool,
    /// Units as before.
    pub same_units: u64,
    /// Units that differ.
    pub changed_units: u64,
    /// Units that were not known.
    pub new_units: u64,
    /// Units for which the catalogue itself was damaged.
    pub catalogue_damaged_units: u64,
    /// Where they differ.
    pub changed: Vec<Place>,
}

impl Report {
    /// What was found so far.
    pub fn new(info: &InfoReply, progress: &Progress, scrub: &Scrub) -> Report {
        let notes = &progress.notes;
        let count = |what: &str| notes.counts.get(what).copied().unwrap_or(0);
        let changed: Ranges = notes.changed.iter().map(|&(lbn, count)| Range { lbn, count }).collect();
        let unreadable = progress.unreadable_ranges();
        Report {
            disk: info.disk.clone(),
            what: progress.identity().what.clone(),
            complete: progress.is_complete(),
            bytes: progress.bytes().0,
            seconds: notes.milliseconds as f64 / 1e3,
            promoted_bytes: notes.promoted_bytes,
            unreadable: places(info, unreadable),
            unreadable_bytes: unreadable.sectors() * progress.sector_bytes(),
            catalogue: scrub.catalogue.as_ref().map(|c| Compared {
                expect_unchanged: c.expect_unchanged,
                same_units: count(counts::SAME),
                changed_units: count(counts::CHANGED),
                new_units: count(counts::NEW),
                catalogue_damaged_units: count(counts::CATALOGUE_DAMAGED),
                changed: places(info, &changed),
            }),
        }
    }

    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        let silent = self.catalogue.as_ref().is_some_and(|c| c.expect_unchanged && c.changed_units > 0);
        self.unreadable.is_empty() && !silent
    }
}

/// Where a scrub's progress is kept.
#[derive(Clone, Debug)]
pub enum Journal {
    /// In this file.
    At(PathBuf),
    /// In this folder, in a file that two disks or exports do not share. The folder is made if it
    /// is not there.
    In(PathBuf),
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How it is read. Its journal and export are decided here.
    pub job: Job,
    /// The export; `None`: the whole disk.
    pub export: Option<String>,
    /// Sectors a unit; `None`: as is usual.
    pub unit: Option<u32>,
    /// What it compares with.
    pub catalogue: Option<PathBuf>,
    /// A difference is a finding.
    pub expect_unchanged: bool,
    /// Where its progress is kept.
    pub journal: Journal,
    /// What an earlier run left is discarded.
    pub restart: bool,
}

/// What a scrub is doing, for whoever watches.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// An earlier run is gone on with: bytes done, of so many, as this journal says.
    GoesOn(u64, u64, &'a Path),
    /// Reading the disk.
    Reading(&'a Status),
}

/// Scrubs. What was found, how it ended, and the journal, which is there if it was stopped.
pub async fn run(
    plan: &Plan,
    watch: &mut (dyn FnMut(Step<'_>) + Send),
    stop: watch::Receiver<bool>,
) -> Result<(Report, End, PathBuf), AppError> {
    let (_, info) = answer(&plan.job.control, &stop, look(&plan.job.control)).await?;
    let (what, range) = covered(&info, plan.export.as_deref())?;
    let unit = plan.unit.unwrap_or_else(|| usual_unit(range.count, info.sector_bytes));
    let units = Units::new(vec![range], unit, info.sectors, info.sector_bytes)?;
    // What is compared with what is part of what is done: the rest of a scrub without a catalogue
    // is no rest of one with it.
    let plain = Progress::new("scrub", &disk(&info), info.sectors, info.sector_bytes, &what, units.clone());
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
    let what = match &plan.catalogue {
        Some(path) if plan.expect_unchanged => format!("{what}, unchanged since {}", absolute(path).display()),
        Some(path) => format!("{what}, against {}", absolute(path).display()),
        None => what,
    };
    let mut progress = Progress::new("scrub", &disk(&info), info.sectors, info.sector_bytes, &what, units);
    let journal = match &plan.journal {
        Journal::At(path) => path.clone(),
        Journal::In(folder) => journal_in(folder, &info, plan.export.as_deref())?,
    };
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
        // What it found has been told; the next scrub begins anew.
        remove(&journal)?;
    }
    Ok((report, end, journal))
}

/// Keeps other scrubs away from a journal as long as the result lives. (Not the journal's own file:
/// that is replaced whenever it is written.)
fn lock(journal: &Path) -> Result<File, AppError> {
    plain_or_none(journal)?;
    let mut path = journal.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let file = private::open(&path, true).map_err(|e| AppError::file(&path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(AppError::JournalInUse(journal.into())),
        Err(TryLockError::Error(e)) => Err(AppError::file(&path, e)),
    }
}

fn journal_in(folder: &Path, info: &InfoReply, export: Option<&str>) -> Result<PathBuf, AppError> {
    std::fs::create_dir_all(folder).map_err(|e| AppError::file(folder, e))?;
    let plain = |text: &str| text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
    let of = export.map_or(String::new(), |e| format!("-export-{}", plain(e)));
    Ok(folder.join(format!("scrub-{}-{}{of}.journal", plain(&disk(info)), info.sectors)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::v1::Export;

    #[test]
    fn a_place_is_told_as_the_export_sees_it() {
        let export =
            |name: &str, first, sectors| Export { name: name.into(), first, sectors, weight: 1, ..Export::default() };
        let info = InfoReply {
            sector_bytes: 512,
            sectors: 100,
            exports: vec![export("a", 10, 10), export("b", 20, 30)],
            ..InfoReply::default()
        };
        let found: Ranges = [Range { lbn: 8, count: 14 }, Range { lbn: 90, count: 1 }].into_iter().collect();
        let told: Vec<_> = places(&info, &found)
            .into_iter()
            .map(|p| (p.lbn, p.count, p.export.unwrap_or_default(), p.offset))
            .collect();
        let at = |lbn, count, name: &str, offset| (lbn, count, name.to_string(), offset);
        assert_eq!(told, [at(8, 2, "", 4096), at(10, 10, "a", 0), at(20, 2, "b", 0), at(90, 1, "", 46080)]);
    }
}
