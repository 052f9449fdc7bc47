//! `headtime backup`: an image of an export or of the disk.
//!
//! There are three kinds of image, distinguished in the journal and in messages to the user:
//!
//! * *point in time*: the disk as it was when the backup started. The server reads each block
//!   before the foreground overwrites it and stores nothing on any disk for that, so the image
//!   lasts only as long as its session: if that ends (a restart of either side), the image is lost
//!   and must be started again. Like a snapshot of a volume manager it is what the disk would hold
//!   after a power failure at that moment: file systems recover from it with their journals.
//! * *read-only*: the export does not change, so the image is of one point in time however often it
//!   is interrupted.
//! * *live*: each block as it was when it was read. It survives restarts. It is for data that does
//!   not change in the meantime (an unmounted file system), or for rescue; the live image of a
//!   mounted file system is not consistent.
//!
//! The image is written as `IMAGE.part` and renamed once it has been verified.

use std::path::{Path, PathBuf};

use headtime_sched::TaskRange;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

use super::coverage::{Place, places};
use super::error::{AppError, plain_or_none};
use super::image::{Image, beside, name_fits, remove, take_name};
use super::job::{End, Job, Sink, Status};
use super::link::{answer, covered, disk, export, in_place, look};
use super::progress::{Notes, Progress};
use super::ranges::Ranges;
use super::runner;
use super::sums::{self, Known, Sums, SumsError, sum};
use super::units::{Units, usual_unit};
use crate::control::v1::InfoReply;
use crate::private;

/// The moment that an image represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// The moment at which the backup started.
    PointInTime,
    /// The export is read-only.
    ReadOnly,
    /// Each block's own moment.
    Live,
}

impl Moment {
    /// Returns the moment that an image of this export, or of the whole disk, represents.
    pub(super) fn of(info: &InfoReply, name: Option<&str>, live: bool) -> Result<Moment, AppError> {
        let read_only = name.map(|name| export(info, name)).transpose()?.is_some_and(|e| e.read_only);
        Ok(match (read_only, live) {
            (true, _) => Moment::ReadOnly,
            (false, true) => Moment::Live,
            (false, false) => Moment::PointInTime,
        })
    }
}

/// The parameters of a backup.
#[derive(Clone, Debug)]
pub struct Backup {
    /// The job. Its journal and point in time are set here. Its deadline holds for both reads of
    /// the disk together.
    pub job: Job,
    /// The export; `None`: the whole disk.
    pub export: Option<String>,
    /// The image's file.
    pub image: PathBuf,
    /// Whether each block is read as it is at that time.
    pub live: bool,
    /// Sectors per unit; `None` for the default.
    pub unit: Option<u32>,
    /// Whether an existing image is replaced.
    pub overwrite: bool,
    /// Whether the leftovers of an earlier run are discarded.
    pub restart: bool,
    /// Whether the disk is read a second time and compared with the image.
    pub verify_disk: bool,
}

/// The result of a backup.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The disk.
    pub disk: String,
    /// The export or the whole disk.
    pub what: String,
    /// The image's file.
    pub image: PathBuf,
    /// The moment that it represents.
    pub moment: Moment,
    /// Its size in bytes.
    pub bytes: u64,
    /// Duration of reading in seconds, over all runs.
    pub seconds: f64,
    /// Bytes that were promoted to foreground work to keep the floor.
    pub promoted_bytes: u64,
    /// Unreadable ranges, which are zeros in the image.
    pub unreadable: Vec<Place>,
    /// Ranges of the image's file that differ from the data delivered.
    pub wrong: Vec<Place>,
    /// Bytes that differ on the second read of the disk; `None` without that read.
    pub differ_from_disk_bytes: Option<u64>,
}

impl Report {
    /// Returns whether the image is complete and correct. A later difference on the disk is an
    /// error only for a read-only export.
    pub fn is_good(&self) -> bool {
        let changed = self.moment == Moment::ReadOnly && self.differ_from_disk_bytes.is_some_and(|b| b > 0);
        self.unreadable.is_empty() && self.wrong.is_empty() && !changed
    }
}

/// The current step of a backup, for display.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// This export has a write cache in the server, whose dirty data is not on the disk.
    Cached(&'a str),
    /// The backup starts or continues, with this number of bytes done.
    Begins(Moment, u64),
    /// Reading the disk.
    Reading(&'a Status),
    /// Reading the image: bytes so far, and in total.
    Verifying(u64, u64),
    /// Reading the disk again.
    Comparing(&'a Status),
}

struct Into<'a> {
    image: &'a Image,
    sums: &'a Sums,
    /// The units, which give each one's offset in the image.
    units: Units,
    sector: u64,
}

impl Sink for Into<'_> {
    fn unit(&mut self, index: u64, range: TaskRange, data: &[u8], _: &mut Notes) -> Result<(), AppError> {
        self.image.put(self.units.offset(range.lbn) * self.sector, data)?;
        Ok(self.sums.set(index, sum(data))?)
    }

    fn damaged(&mut self, index: u64, range: TaskRange, data: &[u8], _: &[TaskRange]) -> Result<(), AppError> {
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
    fn unit(&mut self, index: u64, range: TaskRange, data: &[u8], _: &mut Notes) -> Result<(), AppError> {
        if matches!(self.sums.get(index)?, Known::Sum(s) if s != sum(data)) {
            self.differ += range.count * self.sector;
        }
        Ok(())
    }

    fn damaged(&mut self, _: u64, _: TaskRange, _: &[u8], _: &[TaskRange]) -> Result<(), AppError> {
        Ok(())
    }
}

/// Returns the path of an unfinished image's journal.
pub fn journal(image: &Path) -> PathBuf {
    beside(image, ".journal")
}

/// Makes an image. Returns `None` if it was stopped before the end.
pub async fn run(
    b: &Backup,
    watch: &mut (dyn FnMut(Step) + Send),
    stop: watch::Receiver<bool>,
) -> Result<Option<Report>, AppError> {
    let begun = Instant::now();
    name_fits(&b.image)?;
    let (_, info) = answer(&b.job.control, &stop, look(&b.job.control)).await?;
    let (what, range) = covered(&info, b.export.as_deref())?;
    in_place(&info, &range)?;
    for e in info.exports.iter().filter(|e| e.write_cache) {
        if range.overlaps(&TaskRange { lbn: e.first, count: e.sectors }) {
            watch(Step::Cached(&e.name));
        }
    }
    let moment = Moment::of(&info, b.export.as_deref(), b.live)?;
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
    // The image was finished and renamed, but a power failure restored its journal.
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
            // After a power failure a journal must not describe an image that has been emptied.
            private::sync_name(&journal).map_err(|e| AppError::file(&journal, e))
        })?,
    };
    if again && !sums::exist(&sums_path) {
        let why = "expected the checksums of the unfinished image, found no file".into();
        return Err(AppError::Leftover { path: sums_path, why });
    }
    let opened = Sums::open(&sums_path, progress.identity(), units.len());
    let (sums, _) = opened.map_err(|e| match AppError::from(e) {
        AppError::Sums(SumsError::Damaged { path, what }) => AppError::Leftover { path, why: what.into() },
        e => e,
    })?;
    let (done, all) = progress.bytes();
    let still = all - done + if b.verify_disk { all } else { 0 };
    let job = Job {
        floor: b.job.floor.of_step(begun.elapsed(), all - done, still),
        journal: (moment != Moment::PointInTime).then(|| journal.clone()),
        point_in_time: moment == Moment::PointInTime,
        export: b.export.as_deref().map(|name| export(&info, name).cloned()).transpose()?,
        ..b.job.clone()
    };
    watch(Step::Begins(moment, done));
    let sector = u64::from(info.sector_bytes);
    let mut into = Into { image: &image, sums: &sums, units: units.clone(), sector };
    let read = runner::run(&job, &mut progress, &mut into, &mut |s| watch(Step::Reading(s)), stop.clone()).await;
    if moment == Moment::PointInTime && !matches!(read, Ok(End::Complete)) {
        // An incomplete point-in-time image is useless.
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
        let floor = b.job.floor.of_step(begun.elapsed(), all, all);
        let job = Job { floor, journal: None, point_in_time: false, ..b.job.clone() };
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

/// Renames a correct image and removes the files for continuing it.
fn finish(image: &Path, part: &Path, helpers: &[&Path], wrong: &Ranges) -> Result<(), AppError> {
    if wrong.is_empty() {
        take_name(part, image)?;
    }
    helpers.iter().try_for_each(|h| remove(h))
}
