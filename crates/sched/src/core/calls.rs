//! The freeblock calls of background applications (Thereska 2003 section 2.1), and what a driver
//! asks about the commands that carry their data.
//!
//! They are inputs like any other: none waits for the disk, each must be followed by polling, and
//! their results are reported as [`crate::request::Action::Background`].

use headtime_disk::{Model, Time};

use super::Core;
use crate::dispatch::Purpose;
use crate::fill::report::FillReport;
use crate::fill::subsystem::Freeblock;
use crate::tasks::{SessionId, TaskError, TaskId, TaskRange, TaskSpec};
use crate::throttle::Rate;

impl Core {
    fn background(&mut self, now: Time) -> Result<&mut Freeblock, TaskError> {
        Ok(self.background_and_model(now)?.0)
    }

    fn background_and_model(&mut self, now: Time) -> Result<(&mut Freeblock, &Model), TaskError> {
        self.advance_to(now);
        self.poll_drained = false;
        Ok((self.fill.as_deref_mut().ok_or(TaskError::NoFill)?, &self.model))
    }

    /// Opens a session. A higher priority (1 to 1,000,000) gives it a larger share of the free
    /// bandwidth.
    pub fn open(&mut self, priority: u32, now: Time) -> Result<SessionId, TaskError> {
        self.background(now)?.tasks.open(priority)
    }

    /// Closes a session and aborts its tasks. No event of it follows.
    pub fn close(&mut self, session: SessionId, now: Time) -> Result<(), TaskError> {
        let (fill, model) = self.background_and_model(now)?;
        fill.close(model, session, now)
    }

    /// Changes a session's priority.
    pub fn set_priority(&mut self, session: SessionId, priority: u32, now: Time) -> Result<(), TaskError> {
        self.background(now)?.tasks.set_priority(session, priority)
    }

    /// Registers a task, read or write, in a session.
    pub fn register(&mut self, session: SessionId, spec: &TaskSpec, now: Time) -> Result<TaskId, TaskError> {
        let (fill, model) = self.background_and_model(now)?;
        fill.register(model, session, spec, now)
    }

    /// Ends a task. No event of it follows.
    pub fn abort(&mut self, task: TaskId, now: Time) -> Result<(), TaskError> {
        let (fill, model) = self.background_and_model(now)?;
        fill.abort(model, task, now)
    }

    /// Promotes the rest of a task to foreground work: it no longer waits for gaps.
    pub fn promote(&mut self, task: TaskId, now: Time) -> Result<(), TaskError> {
        self.background(now)?.tasks.promote(task)
    }

    /// Suspends a session: nothing is read or written for it; its tasks are kept.
    pub fn suspend(&mut self, session: SessionId, now: Time) -> Result<(), TaskError> {
        self.background(now)?.suspend(session, true)
    }

    /// Ends a suspension.
    pub fn resume(&mut self, session: SessionId, now: Time) -> Result<(), TaskError> {
        self.background(now)?.suspend(session, false)
    }

    /// Answers a [`crate::tasks::TaskEvent::GetBuffer`]: the data is ready, or "not now". Returns
    /// false if the buffer is no longer needed.
    pub fn buffer(&mut self, task: TaskId, range: TaskRange, ready: bool, now: Time) -> Result<bool, TaskError> {
        Ok(self.background(now)?.tasks.answer(task, range, ready))
    }

    /// Limits the sectors delivered to a session before they are acknowledged with [`Core::taken`]:
    /// without acknowledgements nothing more is delivered.
    pub fn set_window(&mut self, session: SessionId, sectors: u64, now: Time) -> Result<(), TaskError> {
        self.background(now)?.set_window(session, sectors)
    }

    /// Limits the rate of a session in bytes per second, delivered and written; `None`: no limit,
    /// which is the default (Thereska 2003 section 2.1, "kernel-enforced rate control"). In any
    /// interval of length t it gets at most rate * (t + 3 s) and one command.
    /// Promoted tasks count, but do not wait.
    pub fn set_rate(&mut self, session: SessionId, bytes: Option<Rate>, now: Time) -> Result<(), TaskError> {
        let (fill, model) = self.background_and_model(now)?;
        fill.set_rate(model, session, bytes, now)
    }

    /// Acknowledges this number of delivered sectors.
    pub fn taken(&mut self, session: SessionId, sectors: u64, now: Time) -> Result<(), TaskError> {
        self.background(now)?.taken(session, sectors)
    }

    /// Returns the counters and memory use of the freeblock subsystem; `None` without FILL.
    pub fn freeblock(&self) -> Option<FillReport> {
        self.fill.as_deref().map(Freeblock::report)
    }

    /// Returns whether data for some of these sectors that was promised
    /// ([`crate::tasks::TaskEvent::GetBuffer`]) is still to be written by a waiting piece of a
    /// promoted task or straggler, possibly for long. Data promised for a gap or idle time is
    /// written, or dropped, before [`Core::poll`] returns `None`.
    pub fn awaits_turn(&self, range: TaskRange) -> bool {
        self.fill.as_ref().is_some_and(|f| f.awaits_turn(&range))
    }

    /// Returns the number of free sectors at the front of a command in flight; all of them if it is
    /// background work alone.
    pub fn free_sectors(&self, command: u64) -> u32 {
        let sent = self.dispatch.at_drive().iter().find(|s| s.command.id == command);
        match sent.map(|s| s.purpose) {
            Some(Purpose::Merged(_, _, front)) => front,
            Some(Purpose::Free(_)) => sent.map_or(0, |s| s.command.count),
            Some(Purpose::Request(_)) | None => 0,
        }
    }

    /// Returns the driver's identifier of the foreground request in a command in flight, behind its
    /// free front ([`Core::free_sectors`]); `None` if all of the command is background work, or if
    /// it is not in flight.
    pub fn request_of(&self, command: u64) -> Option<u64> {
        let sent = self.dispatch.at_drive().iter().find(|s| s.command.id == command)?;
        match sent.purpose {
            Purpose::Request(slot) | Purpose::Merged(slot, ..) => {
                (!self.is_piece(slot)).then(|| self.pool.get(slot).request.id)
            }
            Purpose::Free(_) => None,
        }
    }

    /// Returns whether the part of a command in flight behind its free front is background work,
    /// too: a piece of a promoted task, or a straggler. Its data then belongs to an application
    /// that answered [`crate::tasks::TaskEvent::GetBuffer`].
    pub fn is_promoted(&self, command: u64) -> bool {
        let sent = self.dispatch.at_drive().iter().find(|s| s.command.id == command);
        match sent.map(|s| s.purpose) {
            Some(Purpose::Request(slot) | Purpose::Merged(slot, ..)) => self.is_piece(slot),
            Some(Purpose::Free(_)) | None => false,
        }
    }
}
