//! What the tasks of a session deliver: units that arrived, failed or were read sector by sector.

use headtime_sched::TaskRange;
use tokio::time::Instant;

use super::super::error::AppError;
use super::super::link::Link;
use super::super::narrow::Heard;
use super::{Role, Runner, Tasks};
use crate::control::v1;
use crate::control::v1::session_event::Event;

impl Runner<'_> {
    /// Handles an event of the session.
    pub(super) fn handle_event(&mut self, event: Event, tasks: &mut Tasks, link: &mut Link) -> Result<(), AppError> {
        self.heard = true;
        match event {
            Event::Delivered(d) => {
                let sector = self.progress.sector_bytes();
                let range = TaskRange { lbn: d.lbn, count: d.data.len() as u64 / sector };
                let role = tasks.roles.get(&d.task).copied();
                if let Some(Role::Pushed(left)) = role {
                    let came = d.data.len() as u64;
                    tasks.roles.insert(d.task, Role::Pushed(left.saturating_sub(came)));
                    self.progress.notes.promoted_bytes += came;
                    self.debt.promoted(came);
                }
                let mut later = 0;
                match role {
                    Some(Role::Narrow) => self.narrowed(tasks, range, Some(&d.data))?,
                    Some(Role::Main | Role::Pushed(_)) => later = self.delivered(tasks, range, &d.data)?,
                    None => {}
                }
                link.acknowledge(self.held.acknowledged(range.count - later));
            }
            Event::Failed(f) => {
                if f.fault() == v1::Fault::Gone {
                    return Err(AppError::Gone);
                }
                let range = TaskRange { lbn: f.lbn, count: f.count };
                match tasks.roles.get_mut(&f.task) {
                    Some(Role::Narrow) => self.narrowed(tasks, range, None)?,
                    Some(Role::Pushed(left)) => {
                        *left = left.saturating_sub(f.count * self.progress.sector_bytes());
                        self.failed(tasks, link, range)?;
                    }
                    Some(Role::Main) => self.failed(tasks, link, range)?,
                    None => {}
                }
            }
            Event::Done(t) => match tasks.roles.remove(&t.task) {
                // Everything has been delivered or has failed; the remaining units are in the
                // narrow tasks. If any is missing nevertheless, it is registered again.
                Some(Role::Main) if tasks.narrow.is_empty() && !self.has_all() => {
                    self.register_main(tasks, link);
                }
                _ => {}
            },
            Event::Refused(r) => match r.task.and_then(|t| tasks.roles.get(&t).copied()) {
                Some(Role::Main) => return Err(AppError::Refused(r.why)),
                // The task ended before it could be promoted, or the server's limit is reached: the
                // main task covers it as well.
                Some(Role::Pushed(_)) => _ = r.task.and_then(|t| tasks.roles.remove(&t)),
                Some(Role::Narrow) => self.give_up_narrow(tasks)?,
                None => {}
            },
            Event::Broken(p) => {
                return Err(AppError::Lost(format!(
                    "sectors {} to {} were overwritten before they could be read",
                    p.lbn,
                    p.lbn + p.count
                )));
            }
            Event::Suspended(suspended) => {
                // The time until now belongs to the previous state.
                self.work(Instant::now(), tasks.suspended);
                tasks.suspended = suspended;
            }
            Event::Gone(_) => return Err(AppError::Gone),
            Event::Opened(_)
            | Event::Registered(_)
            | Event::Wanted(_)
            | Event::Written(_)
            | Event::Superseded(_)
            | Event::NotTaken(_)
            | Event::Answered(_)
            | Event::Moving(_)
            | Event::Settled(_)
            | Event::End(_) => {}
        }
        Ok(())
    }

    /// Takes delivered units; returns the number of sectors that are to be acknowledged later.
    fn delivered(&mut self, tasks: &mut Tasks, range: TaskRange, data: &[u8]) -> Result<u64, AppError> {
        let (mut lbn, sector) = (range.lbn, self.progress.sector_bytes());
        let mut later = 0;
        while lbn < range.end() {
            let unit = self.progress.units().holding(lbn).map(|i| (i, self.progress.units().range(i)));
            let Some((index, r)) = unit.filter(|(_, r)| r.lbn == lbn && r.end() <= range.end()) else {
                return Err(AppError::Refused(format!("sector {lbn} came, which is no unit of the task")));
            };
            let from = ((lbn - range.lbn) * sector) as usize;
            let data = &data[from..from + (r.count * sector) as usize];
            if !self.has(index) {
                tasks.narrow.forget(index);
                self.sink.unit(index, r, data, &mut self.progress.notes)?;
                later += self.taken(index, r, r.count);
            }
            lbn = r.end();
        }
        Ok(later)
    }

    pub(super) fn done(&mut self, index: u64, range: TaskRange) {
        self.progress.mark(index);
        let bytes = range.count * self.progress.sector_bytes();
        self.rates.add(bytes);
        self.debt.delivered(bytes);
    }

    /// Handles units that could not be read: their sectors are then read individually to find the
    /// bad ones.
    fn failed(&mut self, tasks: &mut Tasks, link: &mut Link, range: TaskRange) -> Result<(), AppError> {
        let (mut lbn, sector) = (range.lbn, self.progress.sector_bytes());
        let mut single = Vec::new();
        while let Some(index) = self.progress.units().holding(lbn).filter(|_| lbn < range.end()) {
            let r = self.progress.units().range(index);
            lbn = r.end();
            if self.has(index) || tasks.narrow.has(index) {
                continue;
            }
            // A point-in-time block cannot be read again, since it may have been overwritten.
            if r.count > 1 && !self.job.point_in_time && tasks.narrow.begin(index, r, sector) {
                single.push(r);
            } else {
                self.give_up(index, vec![0; (r.count * sector) as usize], vec![r])?;
            }
        }
        if !single.is_empty() {
            self.register(tasks, link, Role::Narrow, &single, 1);
        }
        Ok(())
    }

    /// Takes delivered or failed sectors of units that are read sector by sector.
    fn narrowed(&mut self, tasks: &mut Tasks, range: TaskRange, data: Option<&[u8]>) -> Result<(), AppError> {
        let sector = self.progress.sector_bytes() as usize;
        for (at, lbn) in (range.lbn..range.end()).enumerate() {
            let Some(index) = self.progress.units().holding(lbn) else { continue };
            let data = data.map(|d| &d[at * sector..(at + 1) * sector]);
            let Some(Heard { range, data, bad }) = tasks.narrow.record(index, lbn, data) else { continue };
            if bad.is_empty() {
                // All sectors were readable this time.
                self.sink.unit(index, range, &data, &mut self.progress.notes)?;
                self.taken_uncounted(index, range);
            } else {
                self.give_up(index, data, bad)?;
            }
        }
        Ok(())
    }

    /// Reports a unit with unreadable sectors.
    fn give_up(&mut self, index: u64, data: Vec<u8>, bad: Vec<TaskRange>) -> Result<(), AppError> {
        let range = self.progress.units().range(index);
        bad.iter().for_each(|&b| self.progress.unreadable(b));
        self.sink.damaged(index, range, &data, &bad)?;
        self.taken_uncounted(index, range);
        Ok(())
    }

    /// Reports the units of a rejected narrow task as unreadable.
    fn give_up_narrow(&mut self, tasks: &mut Tasks) -> Result<(), AppError> {
        for (index, unit) in tasks.narrow.drain() {
            self.give_up(index, unit.data, vec![unit.range])?;
        }
        Ok(())
    }
}
