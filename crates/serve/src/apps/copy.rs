//! `headtime copy`: a disk or an export, copied to that of another server while both serve. It is
//! read in gaps and idle time of the one disk and written in those of the other.
//!
//! As with a backup ([`super::backup`]) there are three moments that a copy can represent. One of a
//! point in time ends with either session. One of a read-only export, or a live one, continues:
//! its journal has the units that are durable at the destination, which is flushed before they are
//! recorded.
//!
//! The destination is written wherever there is a gap for any of the blocks on their way
//! ([`WINDOW`] at most): these come in the order of the source's head.

mod verify;
mod writer;

use std::fs::File;
use std::path::PathBuf;

use headtime_sched::TaskRange;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::Instant;

use super::backup::Moment;
use super::coverage::{Place, places};
use super::error::AppError;
use super::image::{beside, remove};
use super::job::{End, Job, Sink, Stage, Status};
use super::journal::{Journal, lock};
use super::link::{answer, covered, disk, export, in_place, look};
use super::progress::{Notes, Progress, may_begin_anew};
use super::runner;
use super::sums::{self, Sums, sum};
use super::units::{Units, usual_unit};
use crate::control::socket::Socket;
use crate::control::v1::InfoReply;
use crate::engine::background::MAX_WINDOW;
use verify::compare;
use writer::{Block, Writer};

/// Data on its way from one disk to the other, bytes: what a server keeps for a session.
const WINDOW: u64 = MAX_WINDOW;

/// The parameters of a copy.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The job at the source. Its journal, export and point in time are set here. Its deadline
    /// holds for copying and verifying together.
    pub job: Job,
    /// The source's export; `None`: the whole disk.
    pub export: Option<String>,
    /// The destination's server.
    pub to: Socket,
    /// The destination's export; `None`: the whole disk.
    pub to_export: Option<String>,
    /// Whether each block is read as it is at that time.
    pub live: bool,
    /// Sectors of the source per unit; `None` for the default.
    pub unit: Option<u32>,
    /// Whether data at the destination is replaced.
    pub overwrite: bool,
    /// The location of the journal, and of the checksums.
    pub journal: Journal,
    /// Whether the journal of an earlier run is discarded.
    pub restart: bool,
    /// Whether the destination is read and compared at the end.
    pub verify: bool,
}

/// The result of a copy.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The source's disk, and its export or the whole disk.
    pub disk: String,
    /// See `disk`.
    pub what: String,
    /// The destination's disk, and its export or the whole disk.
    pub to_disk: String,
    /// See `to_disk`.
    pub to_what: String,
    /// The moment that the copy represents.
    pub moment: Moment,
    /// Its size in bytes.
    pub bytes: u64,
    /// Duration of copying in seconds, over all runs.
    pub seconds: f64,
    /// Of these, seconds in which the source was not read, since the destination had not written
    /// what was read before.
    pub destination_seconds: f64,
    /// Bytes that were read as foreground work to keep the floor.
    pub promoted_bytes: u64,
    /// Bytes that were written as foreground work at the destination.
    pub destination_promoted_bytes: u64,
    /// Unreadable ranges of the source, which are zeros in the copy.
    pub unreadable: Vec<Place>,
    /// Bytes not written because another client wrote there in the meantime.
    pub superseded_bytes: u64,
    /// Bytes of the destination that differ from what was read; `None`: not verified.
    pub wrong_bytes: Option<u64>,
}

impl Report {
    /// Returns whether the copy is complete and, as far as it was verified, correct.
    pub fn is_good(&self) -> bool {
        let lost = self.superseded_bytes + self.wrong_bytes.unwrap_or(0);
        self.unreadable.is_empty() && lost == 0
    }
}

/// The current step of a copy, for display.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// This export has a write cache in the server, whose dirty data is not on the disk.
    Cached(&'a str),
    /// The copy starts or continues, with this number of bytes done.
    Begins(Moment, u64),
    /// Copying.
    Copying(&'a Status),
    /// Reading the destination.
    Verifying(&'a Status),
}

/// How a copy ended without an error.
#[derive(Debug)]
pub enum Outcome {
    /// It is complete.
    Complete(Box<Report>),
    /// It is complete, but was stopped while it was verified. Unless it is of one point in time,
    /// the same command verifies it anew.
    Unverified(Box<Report>),
    /// It was stopped; the journal that the same command continues from, if any.
    Stopped(Option<PathBuf>),
}

/// Names of the counters in the journal, beside those of the runner.
mod counts {
    pub(super) const SUPERSEDED: &str = "superseded_bytes";
    pub(super) const PROMOTED_THERE: &str = "destination_promoted_bytes";
}

/// Passes what is read to the writer.
struct Pass<'a> {
    blocks: UnboundedSender<Block>,
    stages: UnboundedReceiver<(u64, Stage)>,
    sums: Option<&'a Sums>,
}

impl Sink for Pass<'_> {
    fn unit(&mut self, index: u64, _: TaskRange, data: &[u8], _: &mut Notes) -> Result<(), AppError> {
        if let Some(sums) = self.sums {
            sums.set(index, sum(data))?;
        }
        // A writer that has ended also ends the run.
        let _ = self.blocks.send(Block { index, data: data.to_vec().into() });
        Ok(())
    }

    fn damaged(&mut self, index: u64, range: TaskRange, data: &[u8], _: &[TaskRange]) -> Result<(), AppError> {
        self.unit(index, range, data, &mut Notes::default())
    }

    fn save(&mut self) -> Result<(), AppError> {
        self.sums.map_or(Ok(()), |sums| Ok(sums.sync()?))
    }

    fn stages(&mut self) -> Option<&mut UnboundedReceiver<(u64, Stage)>> {
        Some(&mut self.stages)
    }

    fn window(&self) -> u64 {
        WINDOW
    }
}

/// The source or the destination.
struct Side {
    info: InfoReply,
    what: String,
    range: TaskRange,
}

impl Side {
    async fn look(at: &Socket, name: Option<&str>, stop: &watch::Receiver<bool>) -> Result<Side, AppError> {
        let (_, info) = answer(at, stop, look(at.clone())).await?;
        let (what, range) = covered(&info, name)?;
        in_place(&info, &range)?;
        Ok(Side { info, what, range })
    }

    fn sector_bytes(&self) -> u64 {
        u64::from(self.info.sector_bytes)
    }

    fn bytes(&self) -> u64 {
        self.range.count * self.sector_bytes()
    }

    /// Returns the units of its first `bytes` bytes.
    fn units(&self, bytes: u64, unit_bytes: u64) -> Result<Units, AppError> {
        let sector = self.sector_bytes();
        if !bytes.is_multiple_of(sector) || !unit_bytes.is_multiple_of(sector) {
            return Err(AppError::CopySectors { sector, bytes, unit: unit_bytes });
        }
        let range = TaskRange { lbn: self.range.lbn, count: bytes / sector };
        let unit = u32::try_from(unit_bytes / sector).unwrap_or(u32::MAX);
        Ok(Units::new(vec![range], unit, self.info.sectors, self.info.sector_bytes)?)
    }

    /// Checks that all of it may be written by a session.
    fn may_be_written(&self) -> Result<(), AppError> {
        let no = |why| Err(AppError::Destination { what: self.what.clone(), why });
        if !self.info.fills {
            return Err(AppError::NoFill);
        }
        for e in &self.info.exports {
            if !self.range.overlaps(&TaskRange { lbn: e.first, count: e.sectors }) {
                continue;
            }
            match (e.read_only, e.write_cache) {
                (true, _) => return no("it is read-only"),
                (_, true) => return no("it has a write cache in the server, behind which nothing else may write"),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Checks that the destination has room, and is not a part of the source.
fn check(from: &Side, to: &Side) -> Result<(), AppError> {
    to.may_be_written()?;
    if to.bytes() < from.bytes() {
        return Err(AppError::DestinationSize { what: to.what.clone(), expected: from.bytes(), found: to.bytes() });
    }
    if disk(&from.info) == disk(&to.info) && !from.info.disk_id.is_empty() && from.range.overlaps(&to.range) {
        return Err(AppError::Destination { what: to.what.clone(), why: "it overlaps the source on the same disk" });
    }
    Ok(())
}

/// Copies. The destination must be larger than the source or of the same size; what it has beyond
/// that stays as it is.
///
/// # Errors
/// Beside those of a backup: the destination is not to be written, is too small, is a part of the
/// source, or has data at its beginning or end that is not to be replaced; or it fails to write.
/// The journal then has what is durable there, and the copy continues from it.
pub async fn run(
    plan: &Plan,
    watch: &mut (dyn FnMut(Step) + Send),
    stop: watch::Receiver<bool>,
) -> Result<Outcome, AppError> {
    let begun = Instant::now();
    let from = Side::look(&plan.job.control, plan.export.as_deref(), &stop).await?;
    let to = Side::look(&plan.to, plan.to_export.as_deref(), &stop).await?;
    check(&from, &to)?;
    let moment = Moment::of(&from.info, plan.export.as_deref(), plan.live)?;
    for e in from.info.exports.iter().filter(|e| e.write_cache) {
        if from.range.overlaps(&TaskRange { lbn: e.first, count: e.sectors }) {
            watch(Step::Cached(&e.name));
        }
    }
    let (mut copy, way) = Copying::prepare(plan, from, to, moment, &stop).await?;
    match copy.transfer(plan, begun, way, watch, &stop).await? {
        End::Stopped => Ok(Outcome::Stopped(copy.continues().then_some(copy.journal))),
        End::Complete => copy.verify_and_report(plan, begun, watch, stop).await,
    }
}

/// A copy that is ready to begin, or to continue.
struct Copying {
    from: Side,
    to: Side,
    /// The units as sectors of the destination.
    to_units: Units,
    moment: Moment,
    progress: Progress,
    journal: PathBuf,
    sums_path: PathBuf,
    /// The checksums of what was read; `None`: it is not verified.
    sums: Option<Sums>,
    /// The lock of the journal.
    _held: File,
}

/// The way of data to the destination, and of its stages back.
struct Way {
    writer: Writer,
    blocks: UnboundedSender<Block>,
    stages: UnboundedReceiver<(u64, Stage)>,
}

impl Copying {
    /// Opens the destination and the journal, and checks that the copy may begin or continue.
    async fn prepare(
        plan: &Plan,
        from: Side,
        to: Side,
        moment: Moment,
        stop: &watch::Receiver<bool>,
    ) -> Result<(Copying, Way), AppError> {
        let unit = plan.unit.unwrap_or_else(|| usual_unit(from.range.count, from.info.sector_bytes));
        let unit_bytes = u64::from(unit) * from.sector_bytes();
        let (units, to_units) = (from.units(from.bytes(), unit_bytes)?, to.units(from.bytes(), unit_bytes)?);
        let there = format!("{} of {} from sector {}", to.what, disk(&to.info), to.range.lbn);
        // What continues must be the same throughout.
        let live = if moment == Moment::Live { ", live" } else { "" };
        let verify = if plan.verify { ", to be verified" } else { "" };
        let what = format!("{}, to {there}{live}{verify}", from.what);
        let i = &from.info;
        let mut progress = Progress::new("copy", &disk(i), i.sectors, i.sector_bytes, &what, units.clone());
        let journal = plan.journal.path(&format!("copy-{:016x}", sum(there.as_bytes())), i, plan.export.as_deref())?;
        let held = lock(&journal)?;
        let continues = moment != Moment::PointInTime;
        may_begin_anew(&journal)?;
        if !plan.restart && !continues && journal.exists() {
            let why = "an unfinished copy is here that is not of one point in time (--live goes on with a live one)";
            return Err(AppError::Leftover { path: journal, why: why.into() });
        }
        let again = continues && !plan.restart && progress.resume(&journal)?;
        let (told, stages) = unbounded_channel();
        let (blocks, coming) = unbounded_channel();
        let mut writer = Writer::open(plan, &to, to_units.clone(), !continues, coming, told, stop).await?;
        if !again && !plan.overwrite {
            writer.expect_no_data(stop).await?;
        }
        // Nothing of an earlier run is removed before it is certain that this one can begin.
        let sums_path = beside(&journal, ".sums");
        if !again {
            remove(&journal)?;
            remove(&sums_path)?;
        }
        if again && plan.verify && !sums::exist(&sums_path) {
            let why = "expected the checksums of the unfinished copy, found no file".into();
            return Err(AppError::Leftover { path: sums_path, why });
        }
        let sums = match plan.verify {
            true => Some(Sums::open(&sums_path, progress.identity(), units.len())?.0),
            false => None,
        };
        if continues {
            // From here on there may be data at the destination, which is this copy's own.
            progress.save(&journal)?;
        }
        let copy = Copying { from, to, to_units, moment, progress, journal, sums_path, sums, _held: held };
        Ok((copy, Way { writer, blocks, stages }))
    }

    /// Returns whether the copy continues after it was stopped.
    fn continues(&self) -> bool {
        self.moment != Moment::PointInTime
    }

    /// Copies what is left, and records how far the copy has come.
    async fn transfer(
        &mut self,
        plan: &Plan,
        begun: Instant,
        way: Way,
        watch: &mut (dyn FnMut(Step) + Send),
        stop: &watch::Receiver<bool>,
    ) -> Result<End, AppError> {
        let continues = self.continues();
        let (done, all) = self.progress.bytes();
        // What is copied is read again to verify it, which takes about as long.
        let still = all - done + if plan.verify { all } else { 0 };
        let job = Job {
            floor: plan.job.floor.of_step(begun.elapsed(), all - done, still),
            journal: continues.then(|| self.journal.clone()),
            point_in_time: !continues,
            export: plan.export.as_deref().map(|name| export(&self.from.info, name).cloned()).transpose()?,
            ..plan.job.clone()
        };
        watch(Step::Begins(self.moment, done));
        let Way { mut writer, blocks, stages } = way;
        let mut pass = Pass { blocks, stages, sums: self.sums.as_ref() };
        let end = {
            let mut see = |s: &Status| watch(Step::Copying(s));
            let reading = runner::run(&job, &mut self.progress, &mut pass, &mut see, stop.clone());
            tokio::select! {
                biased;
                why = writer.run() => Err(why),
                end = reading => end,
            }
        };
        drop(writer);
        let kept = match (&end, continues) {
            (Ok(End::Complete), _) => Ok(()),
            (_, true) => pass.save().and_then(|()| Ok(self.progress.save(&self.journal)?)),
            (_, false) => remove(&self.sums_path),
        };
        let end = end.map_err(|e| match e {
            // What is lost with the session is named as such.
            AppError::Client(e) if !continues => AppError::Lost(format!("the destination: {e}")),
            // The runner waits for a source that is away.
            AppError::Client(e) => AppError::DestinationLost(e.to_string()),
            e => e,
        })?;
        // Why the copy ended matters more than that its journal is of an earlier moment.
        kept.map(|()| end)
    }

    /// Compares the destination with what was read, if that is asked for, and reports.
    async fn verify_and_report(
        self,
        plan: &Plan,
        begun: Instant,
        watch: &mut (dyn FnMut(Step) + Send),
        stop: watch::Receiver<bool>,
    ) -> Result<Outcome, AppError> {
        let continues = self.continues();
        let Copying { from, to, to_units, moment, progress, journal, sums_path, sums, _held } = self;
        let (_, all) = progress.bytes();
        let wrong = match &sums {
            None => None,
            Some(sums) => {
                let floor = plan.job.floor.of_step(begun.elapsed(), all, all);
                compare(plan, floor, &to, to_units, sums, watch, stop).await?
            }
        };
        let unverified = plan.verify && wrong.is_none();
        if !(unverified && continues) {
            remove(&journal)?;
            remove(&sums_path)?;
        }
        let count = |name| progress.notes.counts.get(name).copied().unwrap_or(0);
        let report = Box::new(Report {
            disk: from.info.disk.clone(),
            what: from.what.clone(),
            to_disk: to.info.disk.clone(),
            to_what: to.what.clone(),
            moment,
            bytes: from.bytes(),
            seconds: progress.notes.milliseconds as f64 / 1e3,
            destination_seconds: count(runner::WAITED) as f64 / 1e3,
            promoted_bytes: progress.notes.promoted_bytes,
            destination_promoted_bytes: count(counts::PROMOTED_THERE),
            unreadable: places(&from.info, progress.unreadable_ranges()),
            superseded_bytes: count(counts::SUPERSEDED),
            wrong_bytes: wrong,
        });
        Ok(if unverified { Outcome::Unverified(report) } else { Outcome::Complete(report) })
    }
}
