//! The freeblock calls, applied to both layers: first to the task manager, then to the regions and
//! idle work.

use headtime_disk::{Model, Time};

use super::reach::Gone;
use super::subsystem::Freeblock;
use crate::tasks::{SessionId, TaskError, TaskId, TaskRange, TaskSpec};
use crate::throttle::Rate;

/// The regions of an aborted or superseded range are rechecked at once up to this length, 128 MiB
/// of 512-byte sectors; of a longer one, this many sectors with each command that completes. Until
/// then a few searches find nothing in these regions; there is no other effect.
const AT_ONCE: u64 = 1 << 18;
/// Longer ranges that may be queued for this; beyond it the oldest is rechecked at once.
const MAX_LATER: usize = 1_024;

impl Freeblock {
    /// Registers a task.
    ///
    /// # Errors
    /// Those of the task manager, and [`TaskError::Full`] when the regions would exceed their
    /// memory limit.
    pub(crate) fn register(
        &mut self,
        model: &Model,
        session: SessionId,
        spec: &TaskSpec,
        now: Time,
    ) -> Result<TaskId, TaskError> {
        let limit = self.limits.region_bytes;
        let regions = self.regions.bytes_at_most(session, &model.geometry, &spec.ranges);
        if regions > limit {
            return Err(TaskError::Full { what: "bytes of regions", limit });
        }
        let before = self.tasks.set_beside(regions);
        // The time without progress counts from here: until now there was nothing to bring.
        if !self.wants_something() {
            self.brought = now;
        }
        let task = self.tasks.register(session, spec).inspect_err(|_| {
            self.tasks.set_beside(before);
        })?;
        self.regions.has_units(spec.min_pickup, &spec.ranges);
        for range in &spec.ranges {
            self.regions.add(session, &model.geometry, *range);
            self.planner.wanted(&model.geometry, *range);
            if let Some(idling) = &mut self.idling {
                idling.registered(model, &self.regions, *range);
            }
        }
        // A session suspended before it had a task must not be in the union of regions.
        self.regions.suspend(session, !self.tasks.may_be_given(session));
        if let Err(at) = self.brought_for.binary_search_by_key(&session, |b| b.0) {
            self.brought_for.insert(at, (session, now));
        }
        // A later write supersedes earlier ones.
        self.follow(model, Gone::Otherwise, now);
        Ok(task)
    }

    /// Aborts a task.
    pub(crate) fn abort(&mut self, model: &Model, task: TaskId, now: Time) -> Result<(), TaskError> {
        self.tasks.abort(task)?;
        self.follow(model, Gone::Otherwise, now);
        Ok(())
    }

    /// Closes a session.
    pub(crate) fn close(&mut self, model: &Model, session: SessionId, now: Time) -> Result<(), TaskError> {
        let tasks: Vec<TaskId> = self.tasks.tasks(session)?.collect();
        self.regions.drop_session(session);
        // Task by task, so that idle work is notified of sectors that are no longer wanted.
        for task in tasks {
            self.tasks.abort(task)?;
        }
        self.follow(model, Gone::Otherwise, now);
        self.tasks.close(session)?;
        self.brought_for.retain(|b| b.0 != session);
        if self.tasks.sessions().next().is_none() {
            self.planner.release();
        }
        Ok(())
    }

    /// Suspends or resumes a session.
    pub(crate) fn suspend(&mut self, session: SessionId, suspended: bool) -> Result<(), TaskError> {
        match suspended {
            true => self.tasks.suspend(session)?,
            false => self.tasks.resume(session)?,
        }
        self.sessions_turned();
        Ok(())
    }

    /// Sets the window of a session: the sectors that may be delivered before the application takes
    /// them.
    pub(crate) fn set_window(&mut self, session: SessionId, sectors: u64) -> Result<(), TaskError> {
        self.tasks.set_window(session, sectors)?;
        self.sessions_turned();
        Ok(())
    }

    /// Limits the rate of a session, in bytes per second.
    pub(crate) fn set_rate(
        &mut self,
        model: &Model,
        session: SessionId,
        bytes: Option<Rate>,
        now: Time,
    ) -> Result<(), TaskError> {
        self.tasks.set_rate(session, bytes, model.sector_bytes, now)?;
        self.sessions_turned();
        Ok(())
    }

    /// Notes that a session's application has taken this number of sectors.
    pub(crate) fn taken(&mut self, session: SessionId, sectors: u64) -> Result<(), TaskError> {
        self.tasks.taken(session, sectors)?;
        self.sessions_turned();
        Ok(())
    }

    /// Updates which sessions may receive blocks. Sessions that may not, suspended, with an
    /// exhausted window or held back by their rate, are excluded from searches for any session,
    /// which would find only what must not be delivered.
    pub(super) fn sessions_turned(&mut self) {
        let regions = &mut self.regions;
        self.tasks.take_turned(|session, may| regions.suspend(session, !may));
    }

    /// Applies the task manager's changes of wanted ranges to the scheduling layer.
    pub(super) fn follow(&mut self, model: &Model, how: Gone, now: Time) {
        if how != Gone::Otherwise {
            self.recheck_later(model, AT_ONCE);
        }
        for change in self.tasks.take_changes() {
            self.planner.gone(&model.geometry, change.range);
            if how != Gone::Otherwise
                && let Ok(at) = self.brought_for.binary_search_by_key(&change.session, |b| b.0)
            {
                self.brought_for[at].1 = now;
            }
            if self.tasks.wants_nothing(change.session) {
                self.regions.clear_session(change.session);
            } else if change.range.count <= AT_ONCE {
                self.regions.recheck(change.session, &model.geometry, &self.tasks, change.range);
            } else {
                self.later.push_back((change.session, change.range));
                if self.later.len() > MAX_LATER {
                    self.recheck_later(model, u64::MAX);
                }
            }
            if let Some(idling) = &mut self.idling {
                idling.gone(model, &self.regions, change.range, how);
            }
        }
        self.sessions_turned();
    }

    /// Continues with the oldest range whose regions remain to be rechecked.
    fn recheck_later(&mut self, model: &Model, most_sectors: u64) {
        let Some((session, range)) = self.later.pop_front() else {
            return;
        };
        let now = TaskRange { count: range.count.min(most_sectors), ..range };
        self.regions.recheck(session, &model.geometry, &self.tasks, now);
        if now.count < range.count {
            self.later.push_front((session, TaskRange { lbn: now.end(), count: range.count - now.count }));
        }
    }
}
