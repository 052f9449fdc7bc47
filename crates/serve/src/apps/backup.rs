//! `headtime backup`: an image of an export or of the disk.
//!
//! Three kinds of image are told apart, in the journal and in what the user is told:
//!
//! * of *one point in time*: the disk as it was when the backup began. The server reads each block
//!   before the foreground overwrites it, and keeps nothing on any disk for that, so it lasts only
//!   as long as its session: when that ends (a restart of either side), the image is lost and has
//!   to be begun anew. Like a snapshot of a volume manager it is what the disk would hold after a
//!   power cut at that moment: file systems recover from it with their journals.
//! * of a *read-only* export: nothing changes, so it is of one point in time however often it is
//!   interrupted.
//! * *live*: each block as it was when it was read. It survives restarts. It is for what does not
//!   change meanwhile (an unmounted file system), or as raw material for rescue; a mounted file
//!   system's live image is not consistent.
//!
//! The image grows under the name `IMAGE.part` and gets its own only when it has been verified.

use std::path::{Path, PathBuf};

use headtime_sched::tasks::Range;
use serde::Serialize;
use tokio::sync::watch;

use super::error::{AppError, plain_or_none};
use super::image::{Image, beside, name_fits, remove, take_name};
use super::job::{End, Job, Sink, Status};
use super::link::{answer, covered, disk, export, look};
use super::progress::{Notes, Progress};
use super::ranges::Ranges;
use super::runner;
use super::scrub::{Place, places};
use super::sums::{Known, Sums, SumsError, sum};
use super::units::{Units, usual_unit};
use crate::private;

/// Which moment an image is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// The moment at which the backup began.
    PointInTime,
    /// Nothing could be written.
    ReadOnly,
    /// Each block's own.
    Live,
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Backup {
    /// How it is read. Its journal and point in time are decided here.
    pub job: Job,
    /// The export; `None`: the whole disk.
    pub export: Option<String>,
    /// Where the image goes.
    pub image: PathBuf,
    /// Each block as it is when it is read.
    pub live: bool,
    /// Sectors a unit; `None`: as is usual.
    pub unit: Option<u32>,
    /// An image that is there is replaced.
    pub overwrite: bool,
    /// What an earlier run left is discarded.
    pub restart: bool,
    /// The disk is read a second time and compared with the image.
    pub verify_disk: bool,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The disk.
    pub disk: String,
    /// What of it.
    pub what: String,
    /// The image's file.
    pub image: PathBuf,
    /// Which moment it is of.
    pub moment: Moment,
    /// Its bytes.
    pub bytes: u64,
    /// Seconds of reading, in all its runs.
    pub seconds: f64,
    /// Bytes that were read as foreground work: what the floor cost.
    pub promoted_bytes: u64,
    /// What could not be read; it is zeros in the image.
    pub unreadable: Vec<Place>,
    /// What the image's file does not hold as it came.
    pub wrong: Vec<Place>,
    /// Bytes that the disk, read a second time, has otherwise; `None`: it was not asked for.
    pub differ_from_disk_bytes: Option<u64>,
}

impl Report {
    /// Whether the image is all that it should be. A disk that differs from it by now is no fault
    /// of it, unless nothing could be written.
    pub fn is_good(&self) -> bool {
        let changed = self.moment == Moment::ReadOnly && self.differ_from_disk_bytes.is_some_and(|b| b > 0);
        self.unreadable.is_empty() && self.wrong.is_empty() && !changed
    }
}

/// What a backup is doing, for whoever watches.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// This export of what is read has a write cache in the server: what is dirty there is not on
    /// the disk.
    Cached(&'a str),
    /// It begins, or goes on, with so many bytes done.
    Begins(Moment, u64),
    /// Reading the disk.
    Reading(&'a Status),
    /// Reading the image: bytes so far.
    Verifying(u64, u64),
    /// Reading the disk again.
    Comparing(&'a Status),
}

struct Into<'a> {
    image: &'a Image,
    sums: &'a Sums,
    /// Where each unit goes.
    units: Units,
    sector: u64,
}

impl Sink for Into<'_> {
    fn unit(&mut self, index: u64, range: Range, data: &[u8], _: &mut Notes) -> Result<(), AppError> {
        self.image.put(self.units.offset(range.lbn) * self.sector, data)?;
        Ok(self.sums.set(index, sum(data))?)
    }

    fn damaged(&mut self, index: u64, range: Range, data: &[u8], _: &[Range]) -> Result<(), AppError> {
        self.image.put(self.units.offset(range.lbn) * self.sector, data)?;
        Ok(self.sums.clear(index)?)
    }

    fn save(&mut self) -> Result<(), AppError> {
        self.image.sync()?;
        Ok(self.sums.sync()?)
    }
}

struct Compare<'a> {
    sums: &'a Sums,
    sector: u64,
    differ: u64,
}

impl Sink for Compare<'_> {
    fn unit(&mut self, index: u64, range: Range, data: &[u8], _: &mut Notes) -> Result<(), AppError> {
        if matches!(self.sums.get(index)?, Known::Sum(s) if s != sum(data)) {
            self.differ += range.count * self.sector;
        }
        Ok(())
    }

    fn damaged(&mut self, _: u64, _: Range, _: &[u8], _: &[Range]) -> Result<(), AppError> {
        Ok(())
    }
}

/// The journal of an unfinished image.
pub fn journal(image: &Path) -> PathBuf {
    beside(image, ".journal")
}

/// Makes an image. `None`: it was stopped before the end.
pub async fn run(
    b: &Backup,
    watch: &mut (dyn FnMut(Step) + Send),
    stop: watch::Receiver<bool>,
) -> Result<Option<Report>, AppError> {
    name_fits(&b.image)?;
    let (_, info) = answer(&b.job.control, &stop, look(&b.job.control)).await?;
    let (what, range) = covered(&info, b.export.as_deref())?;
    for e in info.exports.iter().filter(|e| e.write_cache) {
        if range.overlaps(&Range { lbn: e.first, count: e.sectors }) {
            watch(Step::Cached(&e.name));
        }
    }
    let read_only = match &b.export {
        Some(name) => export(&info, name)?.read_only,
        None => false,
    };
    let moment = match (read_only, b.live) {
        (true, _) => Moment::ReadOnly,
        (false, true) => Moment::Live,
        (false, false) => Moment::PointInTime,
    };
    if !b.overwrite && b.image.exists() {
        return Err(AppError::Exists(b.image.clone()));
    }
    let unit = b.unit.unwrap_or_else(|| usual_unit(range.count, info.sector_bytes));
    let units = Units::new(vec![range], unit, info.sectors, info.sector_bytes)?;
    let what = match moment {
        Moment::Live => format!("{what}, live"),
        Moment::ReadOnly | Moment::PointInTime => what,
    };
    let mut progress = Progress::new("backup", &disk(&info), info.sectors, info.sector_bytes, &what, units.clone());
    let (part, journal, sums_path) = (beside(&b.image, ".part"), self::journal(&b.image), beside(&b.image, ".sums"));
    plain_or_none(&journal)?;
    plain_or_none(&sums_path)?;
    let again = !b.restart && journal.exists();
    if again && moment == Moment::PointInTime {
        let why = "an unfinished image is here that is not of one point in time (--live goes on with a live one)";
        return Err(AppError::Leftover { path: journal, why: why.into() });
    }
    // A finished image that has its name, but whose journal the power failure behind that brought
    // back.
    let finished = again && !part.exists() && b.image.exists();
    let again = again && !finished && progress.resume(&journal)?;
    let bytes = range.count * u64::from(info.sector_bytes);
    if again && !part.exists() {
        let why = "expected the unfinished image that the journal is of, found no file".into();
        return Err(AppError::Leftover { path: part, why });
    }
    let image = match again {
        true => Image::again(&part, bytes)?,
        false => Image::anew(&part, bytes, || {
            remove(&journal)?;
            remove(&sums_path)?;
            // After a power failure no journal is to say what an image holds that was emptied.
            private::sync_name(&journal).map_err(|e| AppError::file(&journal, e))
        })?,
    };
    let opened = Sums::open(&sums_path, progress.identity(), units.len());
    let (sums, there) = opened.map_err(|e| match AppError::from(e) {
        AppError::Sums(SumsError::Damaged { path, what }) => AppError::Leftover { path, why: what.into() },
        e => e,
    })?;
    if again && !there {
        let why = "expected the checksums of the unfinished image, found no file".into();
        return Err(AppError::Leftover { path: sums_path, why });
    }
    let job = Job {
        journal: (moment != Moment::PointInTime).then(|| journal.clone()),
        point_in_time: moment == Moment::PointInTime,
        export: b.export.as_deref().map(|name| export(&info, name).cloned()).transpose()?,
        ..b.job.clone()
    };
    watch(Step::Begins(moment, progress.bytes().0));
    let sector = u64::from(info.sector_bytes);
    let mut into = Into { image: &image, sums: &sums, units: units.clone(), sector };
    let read = runner::run(&job, &mut progress, &mut into, &mut |s| watch(Step::Reading(s)), stop.clone()).await;
    if moment == Moment::PointInTime && !matches!(read, Ok(End::Complete)) {
        // Nothing could ever be made of it.
        remove(&part)?;
        remove(&sums_path)?;
    }
    if read? == End::Stopped {
        return Ok(None);
    }
    let verified = image.verify(&progress, &sums, |read| {
        watch(Step::Verifying(read, bytes));
        *stop.borrow()
    })?;
    let Some(wrong) = verified else { return Ok(None) };
    let mut differ = None;
    if b.verify_disk && wrong.is_empty() {
        let mut compare = Compare { sums: &sums, sector, differ: 0 };
        let mut second = Progress::new("verify", &disk(&info), info.sectors, info.sector_bytes, &what, units);
        let job = Job { journal: None, point_in_time: false, ..b.job.clone() };
        let end = runner::run(&job, &mut second, &mut compare, &mut |s| watch(Step::Comparing(s)), stop).await?;
        if end == End::Stopped {
            return Ok(None);
        }
        differ = Some(compare.differ);
    }
    finish(&b.image, &part, &[&journal, &sums_path], &wrong)?;
    Ok(Some(Report {
        disk: info.disk.clone(),
        what,
        image: if wrong.is_empty() { b.image.clone() } else { part },
        moment,
        bytes,
        seconds: progress.notes.milliseconds as f64 / 1e3,
        promoted_bytes: progress.notes.promoted_bytes,
        unreadable: places(&info, progress.unreadable_ranges()),
        wrong: places(&info, &wrong),
        differ_from_disk_bytes: differ,
    }))
}

/// The image gets its name, if it is right; what was kept for going on with it is needed no more.
fn finish(image: &Path, part: &Path, helpers: &[&Path], wrong: &Ranges) -> Result<(), AppError> {
    if wrong.is_empty() {
        take_name(part, image)?;
    }
    helpers.iter().try_for_each(|h| remove(h))
}
