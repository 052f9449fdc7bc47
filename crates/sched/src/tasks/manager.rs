//! The task manager: sessions, tasks, and the calls of applications (Thereska 2003 sections 2.1 and
//! 4.2).
//!
//! It is told what applications want and which commands completed, and is asked what is wanted
//! where ([`Wants`](super::Wants)) and which [`Event`]s there are. It decides nothing about when.
//!
//! # What becomes of a unit
//!
//! Every unit of a task ends exactly once: `Delivered`, `Written`, `Superseded` or `Failed`, or it
//! goes without a word when its task is aborted or its session closed. Until then it is wanted. The
//! rules:
//!
//! * A read that completes, whoever asked for it, delivers every whole unit inside it to every read
//!   task that wants it. It delivers nothing to a suspended session, to one whose window is used
//!   up, or while events are not fetched: their units stay wanted, and are read again. A write
//!   delivers nothing to anyone: that sectors were written says nothing about whether they can be
//!   read.
//! * A unit is written by the command it was asked for, and by no other. Any other write to a
//!   sector of it supersedes it, all of it: writing the rest of it later would put old data over
//!   new. For the foreground that happens when its request is submitted
//!   ([`TaskManager::foreground_write`]); among write tasks when the later one is registered. So no
//!   two write tasks want one sector, and an old one never comes after a new one.
//! * A unit whose write is in flight is not superseded: it ends as `Written` when that write
//!   succeeds, and the newer write goes to the disk after it. If it does not succeed, the unit is
//!   superseded then.
//! * A bad sector fails the units that hold it. The command's other units stay wanted.
//! * After an abort nothing is heard of the task: events that were not fetched yet are taken back,
//!   and a write in flight ends in silence.

use std::collections::VecDeque;

use headtime_disk::command::Kind;
use headtime_disk::time::{Dur, Time};

use super::index::Index;
use super::marks::Marks;
use super::memory::Memory;
use super::sessions::{self, Sessions};
use super::slab::Slab;
use super::table::{Extent, Task, slot};
use super::{Event, Limits, Range, SessionId, TaskError, TaskId};
use crate::list::NONE;

/// How long a unit is left alone after "not now", unless told otherwise.
pub const BACKOFF: Dur = Dur::from_ms(20);

/// A session wants less of a stretch than it did. The scheduling layer follows what is wanted where
/// by these and by what it registers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The session.
    pub session: SessionId,
    /// Read or write.
    pub kind: Kind,
    /// Where.
    pub range: Range,
}

/// What one session is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its name.
    pub id: SessionId,
    /// Its priority.
    pub priority: u32,
    /// Whether it is suspended.
    pub suspended: bool,
    /// Tasks that have not ended.
    pub tasks: u32,
    /// Sectors wanted read.
    pub left_read_sectors: u64,
    /// Sectors wanted written.
    pub left_write_sectors: u64,
    /// Sectors delivered and written so far.
    pub delivered_sectors: u64,
    /// Sectors delivered and not taken yet.
    pub untaken_sectors: u64,
}

/// What one task is at.
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
    /// Sectors it began with.
    pub total_sectors: u64,
    /// Whether it has been promoted.
    pub promoted: bool,
}

/// Sessions, tasks, and what is still wanted.
#[derive(Clone, Debug)]
pub struct TaskManager {
    pub(super) limits: Limits,
    pub(super) capacity: u64,
    pub(super) backoff: Dur,
    pub(super) now: Time,
    pub(super) sessions: Sessions,
    pub(super) tasks: Slab<Task>,
    pub(super) extents: Slab<Extent>,
    pub(super) index: Index,
    pub(super) marks: Marks,
    /// Bytes of bits that are allocated, and that they may come to.
    pub(super) bits: usize,
    pub(super) bits_at_most: usize,
    /// Bytes that the scheduling layer takes at most, of the same limit.
    pub(super) beside: usize,
    /// Tasks registered so far.
    pub(super) serial: u64,
    pub(super) events: VecDeque<Event>,
    pub(super) changes: Vec<Change>,
    /// First and last promoted task.
    pub(super) promoted: (u32, u32),
    /// Where the promoted task that was served last goes on: task, range, unit.
    pub(super) cursor: Option<(TaskId, u32, u64)>,
    /// Ranges that a stretch touches; kept so that nothing is allocated for each command.
    pub(super) hits: Vec<u32>,
}

impl TaskManager {
    /// Nobody wants anything of a disk of so many sectors.
    pub fn new(limits: Limits, capacity_sectors: u64) -> TaskManager {
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

    /// Sets how long a unit is left alone after "not now".
    pub fn set_backoff(&mut self, backoff: Dur) {
        self.backoff = backoff;
    }

    /// Tells what time it is: units that were refused are offered again when their time has come.
    /// Calls that are given the time do the same.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.marks.expire(self.now);
    }

    /// When the next refused unit may be offered again.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.marks.refusals.front().map(|r| r.until)
    }

    /// Opens a session.
    ///
    /// # Errors
    /// A priority out of range, too many sessions, no memory for one more.
    pub fn open(&mut self, priority: u32) -> Result<SessionId, TaskError> {
        check_priority(priority)?;
        let limit = self.limits.sessions.min(sessions::MOST);
        if self.sessions.len() >= limit {
            return Err(TaskError::Full { what: "sessions", limit });
        }
        self.check_bytes(self.sessions.bytes_for_one() as u64)?;
        self.sessions.open(priority).ok_or(TaskError::Full { what: "sessions", limit: u32::MAX as usize })
    }

    /// Closes a session and aborts its tasks. Nothing is heard of it any more; no changes are told
    /// of what it wanted.
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

    /// Gives a session another priority.
    ///
    /// # Errors
    /// It is not open, or the priority is out of range.
    pub fn set_priority(&mut self, session: SessionId, priority: u32) -> Result<(), TaskError> {
        check_priority(priority)?;
        let at = self.sessions.need(session)?;
        self.sessions.change(at, |s| s.priority = priority);
        Ok(())
    }

    /// Wants nothing for a session until it is resumed. What it was asked data for is not written;
    /// what is in flight for it ends as it would have.
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

    /// Wants for a session again what it still lacks.
    ///
    /// # Errors
    /// It is not open.
    pub fn resume(&mut self, session: SessionId) -> Result<(), TaskError> {
        let at = self.sessions.need(session)?;
        self.sessions.change(at, |s| s.suspended = false);
        Ok(())
    }

    /// Bounds the sectors that may be delivered to a session and not yet be
    /// [taken](TaskManager::taken): when so many wait, it wants nothing read. The last unit before
    /// that may go beyond the bound, so that a window smaller than a unit is no end of everything.
    /// A new session has no bound.
    ///
    /// # Errors
    /// It is not open.
    pub fn set_window(&mut self, session: SessionId, sectors: u64) -> Result<(), TaskError> {
        let at = self.sessions.need(session)?;
        self.sessions.change(at, |s| s.window = sectors);
        Ok(())
    }

    /// The application has taken so many sectors of what was delivered to a session. More than were
    /// delivered are as good as all.
    ///
    /// # Errors
    /// It is not open.
    pub fn taken(&mut self, session: SessionId, sectors: u64) -> Result<(), TaskError> {
        let at = self.sessions.need(session)?;
        self.sessions.change(at, |s| s.untaken = s.untaken.saturating_sub(sectors));
        Ok(())
    }

    /// Ends a task. Its events that were not fetched are taken back.
    ///
    /// # Errors
    /// It does not exist, or has ended.
    pub fn abort(&mut self, task: TaskId) -> Result<(), TaskError> {
        let at = self.need(task)?;
        let session = self.tasks[at].session;
        if !self.events.is_empty() {
            let mut untaken = 0;
            self.events.retain(|e| {
                if let (Event::Delivered { range, .. }, true) = (e, e.task() == task) {
                    untaken += range.count;
                }
                e.task() != task
            });
            // The application will never see these blocks, so it will never take them.
            self.sessions.change(session, |s| s.untaken = s.untaken.saturating_sub(untaken));
        }
        self.drop_task(at, true);
        Ok(())
    }

    /// The open sessions, in the order in which they were opened.
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
        })
    }

    /// What a task is at.
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

    /// The tasks of a session that have not ended, in the order in which they were registered.
    ///
    /// # Errors
    /// It is not open.
    pub fn tasks(&self, session: SessionId) -> Result<impl Iterator<Item = TaskId> + '_, TaskError> {
        let first = self.sessions.get(self.sessions.need(session)?).first_task;
        let some = |at: u32| (at != NONE).then_some(at);
        let all = std::iter::successors(some(first), move |&at| some(self.tasks[at].after));
        Ok(all.map(|at| self.tasks[at].id))
    }

    /// One of the sessions that want something now, each as likely as its priority says. All values
    /// of `random` are to be equally likely.
    pub fn draw(&self, random: u64) -> Option<SessionId> {
        self.sessions.draw(random)
    }

    /// Tells of each session that may be given something now and could not when this was last
    /// called, or the other way round: suspended, its window used up, or nothing left.
    pub fn take_turned(&mut self, told: impl FnMut(SessionId, bool)) {
        self.sessions.take_turned(told);
    }

    /// Whether a session wants nothing at all, now or later.
    pub fn wants_nothing(&self, session: SessionId) -> bool {
        self.sessions.find(session).is_none_or(|at| self.sessions.get(at).left == [0; 2])
    }

    /// Whether a session may be given something that it wants now.
    pub fn may_be_given(&self, session: SessionId) -> bool {
        self.sessions.find(session).is_some_and(|at| self.sessions.has_tickets(at))
    }

    /// The events that wait from the one with this number on, counted from the oldest that waits.
    pub fn events_from(&self, first: usize) -> impl Iterator<Item = &Event> + '_ {
        self.events.range(first.min(self.events.len())..)
    }

    /// Events that wait.
    pub fn events_waiting(&self) -> usize {
        self.events.len()
    }

    /// The next event, in the order in which they came to be.
    pub fn next_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        // A burst is over: it need not be paid for until the end.
        if self.events.is_empty() && self.events.capacity() > 1_024 {
            self.events = VecDeque::new();
        }
        event
    }

    /// Whether events may be added. While they may not, nothing is to be picked up for anyone, and
    /// reads that complete deliver nothing. What has happened and cannot be put off (written,
    /// superseded, done) is queued all the same, so the queue is to be fetched after every telling.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.events.len() < self.limits.events
    }

    /// Whether anything has become less wanted since the last [`TaskManager::take_changes`].
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// What became less wanted since the last time. To be fetched after every telling; a task's
    /// abort tells of each of its ranges.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// What it takes.
    pub fn memory(&self) -> Memory {
        Memory {
            sessions: self.sessions.bytes(),
            tasks: self.tasks.bytes(),
            ranges: self.extents.bytes(),
            bits: self.bits,
            bits_at_most: self.bits_at_most,
            index: self.index.bytes(),
            queues: self.events.capacity() * size_of::<Event>()
                + self.changes.capacity() * size_of::<Change>()
                + self.hits.capacity() * size_of::<u32>()
                + self.marks.bytes(),
        }
    }

    /// Sets the bytes that the scheduling layer takes at most, which leave less of the limit for
    /// tasks; returns what they were.
    pub fn set_beside(&mut self, bytes: usize) -> usize {
        std::mem::replace(&mut self.beside, bytes)
    }

    /// Refuses what does not fit into the limit beside all that is there, the bits at their
    /// largest.
    pub(super) fn check_bytes(&self, more: u64) -> Result<(), TaskError> {
        let limit = self.limits.bytes;
        if self.memory().held() as u64 + self.beside as u64 + more > limit as u64 {
            return Err(TaskError::Full { what: "bytes", limit });
        }
        Ok(())
    }

    /// Where a task is.
    pub(super) fn need(&self, task: TaskId) -> Result<u32, TaskError> {
        let at = slot(task);
        self.tasks.get(at).filter(|t| t.id == task).map(|_| at).ok_or(TaskError::NoTask(task))
    }
}

fn check_priority(priority: u32) -> Result<(), TaskError> {
    if (1..=1_000_000).contains(&priority) { Ok(()) } else { Err(TaskError::Priority(priority)) }
}
