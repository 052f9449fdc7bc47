//! The second step of a copy: the destination is read, and compared with what was read of the
//! source.

use headtime_sched::TaskRange;
use tokio::sync::watch;

use super::{Plan, Side, Step};
use crate::apps::error::AppError;
use crate::apps::job::{End, Job, Sink};
use crate::apps::link::{disk, export};
use crate::apps::pace::Floor;
use crate::apps::progress::{Notes, Progress};
use crate::apps::runner;
use crate::apps::sums::{Known, Sums, sum};
use crate::apps::units::Units;

/// Compares the destination with the checksums.
struct Compare<'a> {
    sums: &'a Sums,
    sector: u64,
    wrong: u64,
}

impl Sink for Compare<'_> {
    fn unit(&mut self, index: u64, range: TaskRange, data: &[u8], _: &mut Notes) -> Result<(), AppError> {
        if self.sums.get(index)? != Known::Sum(sum(data)) {
            self.wrong += range.count * self.sector;
        }
        Ok(())
    }

    fn damaged(&mut self, _: u64, range: TaskRange, _: &[u8], _: &[TaskRange]) -> Result<(), AppError> {
        self.wrong += range.count * self.sector;
        Ok(())
    }
}

/// Reads the destination and returns how many bytes differ, or `None` if it was stopped.
pub(super) async fn compare(
    plan: &Plan,
    floor: Floor,
    to: &Side,
    units: Units,
    sums: &Sums,
    watch: &mut (dyn FnMut(Step) + Send),
    stop: watch::Receiver<bool>,
) -> Result<Option<u64>, AppError> {
    let i = &to.info;
    let job = Job {
        export: plan.to_export.as_deref().map(|name| export(i, name).cloned()).transpose()?,
        control: plan.to.clone(),
        floor,
        // It begins anew if it was stopped: the journal is that of copying.
        journal: None,
        ..plan.job.clone()
    };
    let mut progress = Progress::new("copy", &disk(i), i.sectors, i.sector_bytes, &to.what, units);
    let mut compare = Compare { sums, sector: to.sector_bytes(), wrong: 0 };
    let end = runner::run(&job, &mut progress, &mut compare, &mut |s| watch(Step::Verifying(s)), stop).await?;
    Ok((end == End::Complete).then_some(compare.wrong))
}
