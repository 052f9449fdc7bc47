//! The task manager: sessions, tasks, and the calls of applications (Thereska 2003 sections 2.1 and
//! 4.2).
//!
//! Its input is what applications want and which commands completed; its output is what is wanted
//! where ([`Wants`](super::Wants)) and the [`TaskEvent`]s. It makes no scheduling decisions.
//!
//! # The end of a unit
//!
//! Every unit of a task ends exactly once: `Delivered`, `Written`, `Superseded` or `Failed`, or
//! without an event when its task is aborted or its session closed. Until then it is wanted. The
//! rules:
//!
//! * A read that completes, from any source, delivers every whole unit inside it to every read task
//!   that wants it. It delivers nothing to a suspended session, to one whose window is exhausted,
//!   to one that waits for its rate unless a promoted task of it wants them, or while the event
//!   queue is full: those units stay wanted, and are read again. A write delivers nothing: that
//!   sectors were written does not show that they can be read.
//! * A unit is written only by the command for which its data was requested. Any other write to one
//!   of its sectors supersedes the whole unit: writing the rest later would put old data over new.
//!   For the foreground that happens when its request is submitted
//!   ([`TaskManager::foreground_write`]); among write tasks when the later one is registered. So no
//!   two write tasks want the same sector, and an old write never follows a new one.
//! * A unit whose write is in flight is not superseded: it ends as `Written` when that write
//!   succeeds, and the newer write goes to the disk after it. If the write fails, the unit is
//!   superseded then.
//! * A bad sector fails the units that contain it. The command's other units stay wanted.
//! * After an abort there are no further events of the task: events not yet fetched are removed,
//!   and a write in flight ends without one.

use std::collections::VecDeque;

use headtime_disk::{Dur, Kind, Time};

use super::index::Index;
use super::marks::Marks;
use super::memory::TaskMemory;
use super::sessions::{self, Sessions};
use super::slab::Slab;
use super::table::{Extent, Task, slot};
use super::{SessionId, TaskError, TaskEvent, TaskId, TaskLimits, TaskRange};
use crate::list::NONE;
use crate::throttle::Rate;

/// Default time for which a unit is not offered after "not now".
pub(crate) const BACKOFF: Dur = Dur::from_ms(20);

/// A session wants less of a range than before. The scheduling layer updates its index by these and
/// by the tasks that it registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The session.
    pub session: SessionId,
    /// Read or write.
    pub kind: Kind,
    /// The sectors.
    pub range: TaskRange,
}

/// State of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its ID.
    pub id: SessionId,
    /// Its priority.
    pub priority: u32,
    /// Whether it is suspended.
    pub suspended: bool,
    /// Tasks that have not ended.
    pub tasks: u32,
    /// Sectors to be read.
    pub left_read_sectors: u64,
    /// Sectors to be written.
    pub left_write_sectors: u64,
    /// Sectors delivered or written so far.
    pub delivered_sectors: u64,
    /// Sectors delivered and not taken yet.
    pub untaken_sectors: u64,
    /// The limit of its rate, bytes per second; `None`: none.
    pub rate: Option<Rate>,
}

/// State of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// Its session.
    pub session: SessionId,
    /// Read or write.
    pub kind: Kind,
    /// Sectors of a block.
    pub blksize: u32,
    /// Sectors of a unit.
    pub min_pickup: u32,
    /// Sectors still wanted.
    pub left_sectors: u64,
    /// Sectors at registration.
    pub total_sectors: u64,
    /// Whether it has been promoted.
    pub promoted: bool,
}

/// Sessions, tasks, and what is still wanted.
#[derive(Clone, Debug)]
pub struct TaskManager {
    pub(super) limits: TaskLimits,
    pub(super) capacity: u64,
    pub(super) backoff: Dur,
    pub(super) now: Time,
    pub(super) sessions: Sessions,
    pub(super) tasks: Slab<Task>,
    pub(super) extents: Slab<Extent>,
    pub(super) index: Index,
    pub(super) marks: Marks,
    /// Bytes of bits: allocated, and their upper bound.
    pub(super) bits: usize,
    pub(super) bits_at_most: usize,
    /// Upper bound of the scheduling layer's bytes, which count against the same limit.
    pub(super) beside: usize,
    /// Tasks registered so far.
    pub(super) serial: u64,
    pub(super) events: VecDeque<TaskEvent>,
    pub(super) changes: Vec<Change>,
    /// First and last promoted task.
    pub(super) promoted: (u32, u32),
    /// Where the promoted task served last continues: task, range, unit.
    pub(super) cursor: Option<(TaskId, u32, u64)>,
    /// Buffer for the ranges that a command touches, which avoids an allocation per command.
    pub(super) hits: Vec<u32>,
}

impl TaskManager {
    /// Creates a manager without sessions for a disk of this number of sectors.
    pub fn new(limits: TaskLimits, capacity_sectors: u64) -> TaskManager {
        TaskManager {
            limits,
            capacity: capacity_sectors,
            backoff: BACKOFF,
            now: Time::ZERO,
            sessions: Sessions::default(),
            tasks: Slab::default(),
            extents: Slab::default(),
            index: Index::default(),
            marks: Marks::default(),
            bits: 0,
            bits_at_most: 0,
            beside: 0,
            serial: 0,
            events: VecDeque::new(),
            changes: vec![],
            promoted: (NONE, NONE),
            cursor: None,
            hits: vec![],
        }
    }

    /// Sets how long a unit is not offered after "not now".
    pub fn set_backoff(&mut self, backoff: Dur) {
        self.backoff = backoff;
    }

    /// Advances the time: refused units are offered again when due. Calls with a time parameter do
    /// the same.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.marks.expire(self.now);
        self.sessions.advance(self.now);
    }

    /// Returns when the next refused unit may be offered again, or the next session is no longer
    /// held back by its rate.
    pub fn next_wakeup(&self) -> Option<Time> {
        let refused = self.marks.refusals.front().map(|r| r.until);
        [refused, self.sessions.held_back_until()].into_iter().flatten().min()
    }

    /// Opens a session.
    ///
    /// # Errors
    /// Priority out of range, too many sessions, or not enough memory.
    pub fn open(&mut self, priority: u32) -> Result<SessionId, TaskError> {
        check_priority(priority)?;
        let limit = self.limits.sessions.min(sessions::MAX_SESSIONS);
        if self.sessions.len() >= limit {
            return Err(TaskError::Full { what: "sessions", limit });
        }
        self.check_bytes(self.sessions.bytes_for_one() as u64)?;
        self.sessions.open(priority).ok_or(TaskError::Full { what: "sessions", limit: u32::MAX as usize })
    }

    /// Closes a session and aborts its tasks. No further events of it follow, and no changes are
    /// reported for its ranges.
    ///
    /// # Errors
    /// It is not open.
    pub fn close(&mut self, session: SessionId) -> Result<(), TaskError> {
        let at = self.sessions.need(session)?;
        loop {
            match self.sessions.get(at).first_task {
                NONE => break,
                task => self.drop_task(task, false),
            }
        }
        self.events.retain(|e| e.session() != session);
        self.changes.retain(|c| c.session != session);
        self.sessions.close(at);
        if self.sessions.is_empty() {
            assert!(
                self.tasks.is_empty() && self.extents.is_empty() && self.index.is_empty(),
                "tasks without a session"
            );
            assert!(self.bits == 0 && self.bits_at_most == 0, "bits without a task");
            self.events = VecDeque::new();
            self.changes = vec![];
            self.hits = vec![];
            self.cursor = None;
            self.marks.shrink();
        }
        Ok(())
    }

    /// Sets a session's priority.
    ///
    /// # Errors
    /// It is not open, or the priority is out of range.
    pub fn set_priority(&mut self, session: SessionId, priority: u32) -> Result<(), TaskError> {
        check_priority(priority)?;
        let at = self.sessions.need(session)?;
        self.sessions.change(at, |s| s.priority = priority);
        Ok(())
    }

    /// Suspends a session until it is resumed: nothing is wanted for it. Writes whose data was
    /// requested are not sent; those in flight end normally.
    ///
    /// # Errors
    /// It is not open.
    pub fn suspend(&mut self, session: SessionId) -> Result<(), TaskError> {
        let at = self.sessions.need(session)?;
        self.sessions.change(at, |s| s.suspended = true);
        let of = |m: &TaskManager, task: TaskId| m.tasks[slot(task)].session == at;
        let mut asks = std::mem::take(&mut self.marks.asks);
        asks.retain(|w| !w.pieces.iter().any(|p| of(self, p.task)));
        self.marks.asks = asks;
        Ok(())
    }

    /// Resumes a session.
    ///
    /// # Errors
    /// It is not open.
    pub fn resume(&mut self, session: SessionId) -> Result<(), TaskError> {
        let at = self.sessions.need(session)?;
        self.sessions.change(at, |s| s.suspended = false);
        Ok(())
    }

    /// Sets the window of a session: the sectors that may be delivered and not yet
    /// [taken](TaskManager::taken). At this number no further reads are wanted. The last unit may
    /// exceed the window, so that a window smaller than a unit does not stop all progress. A new
    /// session has no bound.
    ///
    /// # Errors
    /// It is not open.
    pub fn set_window(&mut self, session: SessionId, sectors: u64) -> Result<(), TaskError> {
        let at = self.sessions.need(session)?;
        self.sessions.change(at, |s| s.window = sectors);
        Ok(())
    }

    /// Limits the rate of a session to this number of bytes a second, delivered and written; a new
    /// session has no limit. In any interval of length t it gets at most rate * (t + 3 s) and one
    /// command. While it waits nothing is wanted for it. Its promoted tasks are foreground work:
    /// they count, but do not wait. What they receive, its other tasks receive too, and it counts
    /// once.
    ///
    /// # Errors
    /// It is not open, or there is not enough memory.
    pub fn set_rate(
        &mut self,
        session: SessionId,
        bytes: Option<Rate>,
        sector_bytes: u32,
        now: Time,
    ) -> Result<(), TaskError> {
        self.advance(now);
        let at = self.sessions.need(session)?;
        if bytes.is_some() && self.sessions.get(at).rate().is_none() {
            self.check_bytes(Sessions::BYTES_OF_LIMIT as u64)?;
        }
        self.sessions.set_rate(at, bytes, sector_bytes, self.now);
        Ok(())
    }

    /// Notes that the application has taken this number of sectors of those delivered to a session,
    /// at most all.
    ///
    /// # Errors
    /// It is not open.
    pub fn taken(&mut self, session: SessionId, sectors: u64) -> Result<(), TaskError> {
        let at = self.sessions.need(session)?;
        self.sessions.change(at, |s| s.untaken = s.untaken.saturating_sub(sectors));
        Ok(())
    }

    /// Aborts a task. Its events that were not yet fetched are removed.
    ///
    /// # Errors
    /// It does not exist, or has ended.
    pub fn abort(&mut self, task: TaskId) -> Result<(), TaskError> {
        let at = self.need(task)?;
        let session = self.tasks[at].session;
        if !self.events.is_empty() {
            let mut untaken = 0;
            self.events.retain(|e| {
                if let (TaskEvent::Delivered { range, .. }, true) = (e, e.task() == task) {
                    untaken += range.count;
                }
                e.task() != task
            });
            // The application will never receive these blocks, so it cannot take them.
            self.sessions.change(session, |s| s.untaken = s.untaken.saturating_sub(untaken));
        }
        self.drop_task(at, true);
        Ok(())
    }

    /// Returns the open sessions, in the order in which they were opened.
    pub fn sessions(&self) -> impl Iterator<Item = SessionInfo> + '_ {
        self.sessions.iter().map(|s| SessionInfo {
            id: s.id,
            priority: s.priority,
            suspended: s.suspended,
            tasks: s.tasks,
            left_read_sectors: s.left[0],
            left_write_sectors: s.left[1],
            delivered_sectors: s.delivered,
            untaken_sectors: s.untaken,
            rate: s.rate(),
        })
    }

    /// Returns the state of a task.
    ///
    /// # Errors
    /// It does not exist, or has ended.
    pub fn task(&self, task: TaskId) -> Result<TaskInfo, TaskError> {
        let t = &self.tasks[self.need(task)?];
        Ok(TaskInfo {
            session: self.sessions.get(t.session).id,
            kind: t.kind,
            blksize: t.blksize,
            min_pickup: t.unit,
            left_sectors: t.left,
            total_sectors: t.total,
            promoted: t.promoted,
        })
    }

    /// Returns the tasks of a session that have not ended, in the order of registration.
    ///
    /// # Errors
    /// It is not open.
    pub fn tasks(&self, session: SessionId) -> Result<impl Iterator<Item = TaskId> + '_, TaskError> {
        let first = self.sessions.get(self.sessions.need(session)?).first_task;
        let some = |at: u32| (at != NONE).then_some(at);
        let all = std::iter::successors(some(first), move |&at| some(self.tasks[at].after));
        Ok(all.map(|at| self.tasks[at].id))
    }

    /// Draws one of the sessions that want something now, with probabilities according to their
    /// priorities. `random` must be uniformly distributed.
    pub fn draw(&self, random: u64) -> Option<SessionId> {
        self.sessions.draw(random)
    }

    /// Calls `told` with each session that became able to receive something since the last call, or
    /// unable: suspended, its window exhausted, or nothing left.
    pub fn take_turned(&mut self, told: impl FnMut(SessionId, bool)) {
        self.sessions.take_turned(told);
    }

    /// Returns whether a session wants nothing at all, now or later.
    pub fn wants_nothing(&self, session: SessionId) -> bool {
        self.sessions.find(session).is_none_or(|at| self.sessions.get(at).left == [0; 2])
    }

    /// Returns whether a session may receive something that it wants now.
    pub fn may_be_given(&self, session: SessionId) -> bool {
        self.sessions.find(session).is_some_and(|at| self.sessions.has_tickets(at))
    }

    /// Returns the pending events from the one with this index, counted from the oldest.
    pub fn events_from(&self, first: usize) -> impl Iterator<Item = &TaskEvent> + '_ {
        self.events.range(first.min(self.events.len())..)
    }

    /// Returns the number of pending events.
    pub fn events_waiting(&self) -> usize {
        self.events.len()
    }

    /// Returns the next event, in the order of occurrence.
    pub fn next_event(&mut self) -> Option<TaskEvent> {
        let event = self.events.pop_front();
        // Frees the memory of a burst.
        if self.events.is_empty() && self.events.capacity() > 1_024 {
            self.events = VecDeque::new();
        }
        event
    }

    /// Returns whether events may be added. While they may not, nothing may be picked up, and
    /// completed reads deliver nothing. Events that cannot be deferred (written, superseded, done)
    /// are queued all the same, so the queue must be fetched after every notification.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.events.len() < self.limits.events
    }

    /// Returns whether any range has become less wanted since the last
    /// [`TaskManager::take_changes`].
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Returns the ranges that became less wanted since the last call. To be called after every
    /// notification; an abort reports each range of the task.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Returns the memory it occupies.
    pub fn memory(&self) -> TaskMemory {
        TaskMemory {
            sessions: self.sessions.bytes(),
            tasks: self.tasks.bytes(),
            ranges: self.extents.bytes(),
            bits: self.bits,
            bits_at_most: self.bits_at_most,
            index: self.index.bytes(),
            queues: self.events.capacity() * size_of::<TaskEvent>()
                + self.changes.capacity() * size_of::<Change>()
                + self.hits.capacity() * size_of::<u32>()
                + self.marks.bytes(),
        }
    }

    /// Sets the upper bound of the scheduling layer's bytes, which reduces the limit for tasks;
    /// returns the previous bound.
    pub fn set_beside(&mut self, bytes: usize) -> usize {
        std::mem::replace(&mut self.beside, bytes)
    }

    /// Fails if `more` bytes exceed the limit, counting the bits at their upper bound.
    pub(super) fn check_bytes(&self, more: u64) -> Result<(), TaskError> {
        let limit = self.limits.bytes;
        if self.memory().held() as u64 + self.beside as u64 + more > limit as u64 {
            return Err(TaskError::Full { what: "bytes", limit });
        }
        Ok(())
    }

    /// Returns the slot of a task.
    pub(super) fn need(&self, task: TaskId) -> Result<u32, TaskError> {
        let at = slot(task);
        self.tasks.get(at).filter(|t| t.id == task).map(|_| at).ok_or(TaskError::NoTask(task))
    }
}

fn check_priority(priority: u32) -> Result<(), TaskError> {
    if (1..=1_000_000).contains(&priority) { Ok(()) } else { Err(TaskError::Priority(priority)) }
}
