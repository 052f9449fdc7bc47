//! The freeblock calls, told to both layers: the task manager decides, the regions and idle time
//! follow.

use headtime_disk::model::Model;
use headtime_disk::time::Time;

use super::reach::Gone;
use super::subsystem::Freeblock;
use crate::tasks::{Range, SessionId, TaskError, TaskId, TaskSpec};

/// The regions of a range that is aborted or superseded are looked through at once when it is no
/// longer than this, 128 MiB of 512-byte sectors; of a longer one so much with each command that
/// completes. Until that is over a search looks in vain here and there, and nothing else.
const AT_ONCE: u64 = 1 << 18;
/// Longer ranges that may wait for that; then the oldest is looked through at once.
const MOST_LATER: usize = 1_024;

impl Freeblock {
    /// Registers a task.
    ///
    /// # Errors
    /// As the task manager says; and when the regions would take more than the limit.
    pub fn register(
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
        let task = self.tasks.register(session, spec).inspect_err(|_| {
            self.tasks.set_beside(before);
        })?;
        self.regions.has_units(spec.min_pickup, &spec.ranges);
        for range in &spec.ranges {
            self.regions.add(session, &model.geometry, *range);
            self.planner.wanted(*range);
            if let Some(idling) = &mut self.idling {
                idling.registered(model, &self.regions, *range);
            }
        }
        // One that was suspended before it had a task is not among those whose blocks anyone may
        // have.
        self.regions.suspend(session, !self.tasks.may_be_given(session));
        if let Err(at) = self.brought_for.binary_search_by_key(&session, |b| b.0) {
            self.brought_for.insert(at, (session, now));
        }
        // A later write supersedes earlier ones.
        self.follow(model, Gone::Otherwise, now);
        Ok(task)
    }

    /// Ends a task.
    pub fn abort(&mut self, model: &Model, task: TaskId, now: Time) -> Result<(), TaskError> {
        self.tasks.abort(task)?;
        self.follow(model, Gone::Otherwise, now);
        Ok(())
    }

    /// Closes a session.
    pub fn close(&mut self, model: &Model, session: SessionId, now: Time) -> Result<(), TaskError> {
        let tasks: Vec<TaskId> = self.tasks.tasks(session)?.collect();
        self.regions.drop_session(session);
        // Task by task, so that idle time hears of what nobody wants any more.
        for task in tasks {
            self.tasks.abort(task)?;
        }
        self.follow(model, Gone::Otherwise, now);
        self.tasks.close(session)?;
        self.brought_for.retain(|b| b.0 != session);
        Ok(())
    }

    /// Suspends a session, or ends that.
    pub fn suspend(&mut self, session: SessionId, suspended: bool) -> Result<(), TaskError> {
        match suspended {
            true => self.tasks.suspend(session)?,
            false => self.tasks.resume(session)?,
        }
        self.sessions_turned();
        Ok(())
    }

    /// Bounds what may be delivered to a session before it is taken.
    pub fn set_window(&mut self, session: SessionId, sectors: u64) -> Result<(), TaskError> {
        self.tasks.set_window(session, sectors)?;
        self.sessions_turned();
        Ok(())
    }

    /// A session's application has taken so many sectors.
    pub fn taken(&mut self, session: SessionId, sectors: u64) -> Result<(), TaskError> {
        self.tasks.taken(session, sectors)?;
        self.sessions_turned();
        Ok(())
    }

    /// Sessions that may be given nothing now, suspended or with their window used up, do not count
    /// where anyone's blocks are looked for: the search would find only what must not be delivered.
    pub(super) fn sessions_turned(&mut self) {
        let regions = &mut self.regions;
        self.tasks.take_turned(|session, may| regions.suspend(session, !may));
    }

    /// The scheduling layer follows what has become of wants.
    pub(super) fn follow(&mut self, model: &Model, how: Gone, now: Time) {
        if how != Gone::Otherwise {
            self.recheck_later(model, AT_ONCE);
        }
        for change in self.tasks.take_changes() {
            self.planner.gone(change.range);
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
                if self.later.len() > MOST_LATER {
                    self.recheck_later(model, u64::MAX);
                }
            }
            if let Some(idling) = &mut self.idling {
                idling.gone(model, &self.regions, change.range, how);
            }
        }
        self.sessions_turned();
    }

    /// Goes on with the longest-waiting range of which the regions are yet to be looked through.
    fn recheck_later(&mut self, model: &Model, most_sectors: u64) {
        let Some((session, range)) = self.later.pop_front() else {
            return;
        };
        let now = Range { count: range.count.min(most_sectors), ..range };
        self.regions.recheck(session, &model.geometry, &self.tasks, now);
        if now.count < range.count {
            self.later.push_front((session, Range { lbn: now.end(), count: range.count - now.count }));
        }
    }
}
