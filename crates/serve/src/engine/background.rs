//! Freeblock sessions of clients: forwards their calls to the core, and the core's events with
//! their data to the clients.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use headtime_disk::Time;
use headtime_sched::{Core, SessionId, TaskError, TaskEvent, TaskId, TaskRange, TaskSpec};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use super::completed::CompletedCommand;
use super::image::{Image, MAX_IMAGES};
use super::messages::{Reply, SessionCall};
use super::paced::{MAX_IMMEDIATE_RANGES, Work, too_many};
use super::session_event::SessionEvent;
use super::staged::{OfAll, Staged};
use crate::device::Fault;

/// Bytes of write data that a session may have here before it is written.
pub const MAX_STAGED: u64 = 64 << 20;

/// The largest window of a session, bytes; a larger one is reduced.
pub const MAX_WINDOW: u64 = 64 << 20;

/// The sum of the windows of all sessions, bytes.
pub const MAX_WINDOWS: u64 = 1 << 30;

/// Events queued for a session's client. Beyond that the client does not read, and its session is
/// closed.
pub const MAX_EVENTS: usize = 1 << 16;

/// Bytes that a point-in-time task may deliver beyond its session's window, for writes that cannot
/// wait.
pub const MAX_BEYOND: u64 = 64 << 20;

#[derive(Debug)]
struct Session {
    events: Sender<SessionEvent>,
    staged: Staged,
    /// Its window in sectors.
    window: u64,
    /// Its tasks that have not ended, with the number of their ranges. A client's calls reach only
    /// these tasks.
    tasks: BTreeMap<TaskId, usize>,
    /// Sectors of point-in-time tasks that were delivered beyond the window and are not
    /// acknowledged.
    beyond: u64,
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Background {
    sector_bytes: u32,
    sessions: BTreeMap<SessionId, Session>,
    /// Data granted to the core and not yet at the device, by first sector. A later grant for the
    /// same sector replaces an earlier one, and a command is issued only for data granted just
    /// before or kept since. So the data here is always what a command must carry.
    granted: BTreeMap<u64, Granted>,
    images: Vec<Image>,
    /// The unwritten write data of all sessions.
    staged: OfAll,
    /// Calls that take long, in order of arrival.
    paced: VecDeque<Work>,
    /// The device is gone.
    gone: bool,
}

/// Data of one range. It is held here from the grant on, so that no action of a client can remove
/// it.
#[derive(Debug)]
struct Granted {
    end: u64,
    pieces: Vec<Bytes>,
}

impl Background {
    /// Creates the state without sessions.
    pub(crate) fn new(sector_bytes: u32) -> Background {
        Background {
            sector_bytes,
            sessions: BTreeMap::new(),
            granted: BTreeMap::new(),
            images: Vec::new(),
            staged: OfAll::default(),
            paced: VecDeque::new(),
            gone: false,
        }
    }

    /// Carries out a call. The answer is dropped if the client has gone.
    pub(crate) fn call(&mut self, call: SessionCall, core: &mut Core, now: Time) {
        match call {
            SessionCall::Open { priority, window, events, reply } => {
                let window = window.min(MAX_WINDOW / u64::from(self.sector_bytes));
                let opened = self.room_for(window).and_then(|()| core.open(priority, now));
                let opened = opened.and_then(|s| core.set_window(s, window, now).map(|()| s));
                if let Ok(session) = opened {
                    let staged = Staged::new(self.sector_bytes, MAX_STAGED, &self.staged);
                    self.sessions
                        .insert(session, Session { events, staged, window, tasks: BTreeMap::new(), beyond: 0 });
                }
                let session = opened.as_ref().ok().copied().filter(|_| self.gone);
                let _ = reply.send(opened);
                if let Some(session) = session {
                    self.notify(session, SessionEvent::DeviceGone, core, now);
                }
            }
            SessionCall::Register { session, spec, point_in_time, reply }
                if spec.ranges.len() > MAX_IMMEDIATE_RANGES =>
            {
                match too_many(spec.ranges.len()) {
                    Some(why) => _ = reply.send(Err(why)),
                    None => self.paced.push_back(Work::Register { session, spec, point_in_time, reply }),
                }
            }
            SessionCall::Register { session, spec, point_in_time, reply } => {
                _ = reply.send(self.register(session, &spec, point_in_time, core, now));
            }
            SessionCall::Close { session, reply } => self.close(session, Some(reply), core, now),
            SessionCall::Suspend { session, reply } => _ = reply.send(self.suspend(session, core, now)),
            SessionCall::Resume { session, reply } => _ = reply.send(self.resume(session, core, now)),
            SessionCall::SetPriority { session, priority, reply } => {
                _ = reply.send(core.set_priority(session, priority, now));
            }
            SessionCall::SetRate { session, rate, reply } => _ = reply.send(core.set_rate(session, rate, now)),
            SessionCall::Abort { session, task, reply } if self.ranges(session, task) > MAX_IMMEDIATE_RANGES => {
                self.paced.push_back(Work::Abort { session, task, reply });
            }
            SessionCall::Abort { session, task, reply } => _ = reply.send(self.abort(session, task, core, now)),
            SessionCall::Promote { session, task, reply } => {
                let own = self.own(session, task);
                _ = reply.send(own.and_then(|()| core.promote(task, now)));
            }
            SessionCall::Taken { session, sectors } => {
                let Some(s) = self.sessions.get_mut(&session) else { return };
                let beyond = sectors.min(s.beyond);
                s.beyond -= beyond;
                let sectors = sectors - beyond;
                // A session that has just been closed acknowledges nothing.
                let _ = core.taken(session, sectors, now);
            }
            SessionCall::Data { session, task, range, data } => {
                let Some(s) = self.sessions.get_mut(&session) else { return };
                if !s.tasks.contains_key(&task) || !s.staged.put(task, range, data) {
                    self.notify(session, SessionEvent::NotTaken { task, range }, core, now);
                }
            }
        }
    }

    /// Checks whether another window of this number of sectors fits the limit.
    fn room_for(&self, window: u64) -> Result<(), TaskError> {
        let given: u64 = self.sessions.values().map(|s| s.window).sum();
        if (given + window) * u64::from(self.sector_bytes) > MAX_WINDOWS {
            return Err(TaskError::Full { what: "bytes of windows", limit: MAX_WINDOWS as usize });
        }
        Ok(())
    }

    fn register(
        &mut self,
        session: SessionId,
        spec: &TaskSpec,
        point_in_time: bool,
        core: &mut Core,
        now: Time,
    ) -> Result<TaskId, TaskError> {
        if point_in_time && self.images.len() == MAX_IMAGES {
            return Err(TaskError::Full { what: "point-in-time tasks", limit: MAX_IMAGES });
        }
        let task = core.register(session, spec, now)?;
        if point_in_time {
            self.images.push(Image::new(session, task, &spec.ranges, spec.min_pickup));
        }
        if let Some(s) = self.sessions.get_mut(&session) {
            s.tasks.insert(task, spec.ranges.len());
        }
        Ok(task)
    }

    /// Returns the range that must be read before these sectors may be written.
    pub(crate) fn to_preserve(&self, range: &TaskRange) -> Option<TaskRange> {
        let all = self.images.iter().filter_map(|i| i.pending(range));
        all.reduce(|a, b| {
            let lbn = a.lbn.min(b.lbn);
            TaskRange { lbn, count: a.end().max(b.end()) - lbn }
        })
    }

    /// Delivers preserved sectors to the point-in-time tasks that still need them, regardless of
    /// their windows, since the sectors are about to be overwritten.
    pub(crate) fn preserved(&mut self, range: &TaskRange, completed: &CompletedCommand, core: &mut Core, now: Time) {
        for at in (0..self.images.len()).rev() {
            // If its client has gone, sending an event removes all images of the session.
            let Some(image) = self.images.get_mut(at) else { continue };
            let (session, task) = (image.session, image.task);
            for range in image.take(range) {
                let room = MAX_BEYOND / u64::from(self.sector_bytes);
                let Some(s) = self.sessions.get_mut(&session) else { break };
                if let Some(fault) = completed.fault {
                    let failed = TaskEvent::Failed { session, task, range };
                    self.notify(session, SessionEvent::Task(failed, Err(fault)), core, now);
                } else if s.beyond + range.count > room {
                    // The client does not read fast enough. The foreground does not wait for it:
                    // the image is lost.
                    self.notify(session, SessionEvent::Lost { task, range }, core, now);
                    let _ = core.abort(task, now);
                    self.ended(session, task);
                    break;
                } else {
                    s.beyond += range.count;
                    self.deliver(session, task, range, completed, core, now);
                }
            }
        }
    }

    fn suspend(&mut self, session: SessionId, core: &mut Core, now: Time) -> Result<(), TaskError> {
        core.suspend(session, now)?;
        self.notify(session, SessionEvent::Suspended(true), core, now);
        Ok(())
    }

    fn resume(&mut self, session: SessionId, core: &mut Core, now: Time) -> Result<(), TaskError> {
        core.resume(session, now)?;
        self.notify(session, SessionEvent::Suspended(false), core, now);
        Ok(())
    }

    fn abort(&mut self, session: SessionId, task: TaskId, core: &mut Core, now: Time) -> Result<(), TaskError> {
        self.own(session, task)?;
        core.abort(task, now)?;
        self.ended(session, task);
        Ok(())
    }

    /// Closes a session, at once or task by task if it has many ranges.
    fn close(&mut self, session: SessionId, reply: Option<Reply<()>>, core: &mut Core, now: Time) {
        let closed = match self.sessions.remove(&session) {
            None => Err(TaskError::NoSession(session)),
            Some(s) => {
                self.images.retain(|i| i.session != session);
                if s.tasks.values().sum::<usize>() > MAX_IMMEDIATE_RANGES {
                    core.suspend(session, now).expect("a session that is here is the core's, too");
                    let tasks = s.tasks.into_keys().collect();
                    return self.paced.push_back(Work::Close { session, tasks, reply });
                }
                core.close(session, now)
            }
        };
        if let Some(reply) = reply {
            let _ = reply.send(closed);
        }
    }

    /// Returns whether there are pending calls that take long.
    pub(crate) fn is_paced(&self) -> bool {
        !self.paced.is_empty()
    }

    /// Carries out the next piece of such a call.
    pub(crate) fn continue_long_call(&mut self, core: &mut Core, now: Time) {
        match self.paced.pop_front() {
            None => {}
            Some(Work::Register { session, spec, point_in_time, reply }) => {
                let registered = match self.sessions.contains_key(&session) {
                    true => self.register(session, &spec, point_in_time, core, now),
                    false => Err(TaskError::NoSession(session)),
                };
                let _ = reply.send(registered);
            }
            Some(Work::Abort { session, task, reply }) => {
                let _ = reply.send(self.abort(session, task, core, now));
            }
            Some(Work::Close { session, mut tasks, reply }) => match tasks.pop() {
                Some(task) => {
                    // The task may have ended in the meantime.
                    let _ = core.abort(task, now);
                    // Queued last, since it may take long.
                    self.paced.push_back(Work::Close { session, tasks, reply });
                }
                None => {
                    let closed = core.close(session, now);
                    if let Some(reply) = reply {
                        let _ = reply.send(closed);
                    }
                }
            },
        }
    }

    /// Returns the number of ranges of a session's task; 0 if the task is not its own.
    fn ranges(&self, session: SessionId, task: TaskId) -> usize {
        self.sessions.get(&session).and_then(|s| s.tasks.get(&task)).copied().unwrap_or(0)
    }

    /// Checks that a task is the session's own.
    fn own(&self, session: SessionId, task: TaskId) -> Result<(), TaskError> {
        let s = self.sessions.get(&session).ok_or(TaskError::NoSession(session))?;
        if s.tasks.contains_key(&task) { Ok(()) } else { Err(TaskError::NoTask(task)) }
    }

    fn ended(&mut self, session: SessionId, task: TaskId) {
        self.images.retain(|i| i.task != task);
        if let Some(s) = self.sessions.get_mut(&session) {
            s.tasks.remove(&task);
            s.staged.forget_task(task);
        }
    }

    /// Handles an event of a task. `completed` is the command that has just completed, if any.
    pub(crate) fn event(
        &mut self,
        event: &TaskEvent,
        completed: Option<&CompletedCommand>,
        core: &mut Core,
        now: Time,
    ) {
        let Some(s) = self.sessions.get_mut(&event.session()) else {
            // The session was closed: its writes find no data.
            return;
        };
        let mut result = Ok(Bytes::new());
        match *event {
            TaskEvent::Delivered { task, range, session } => {
                let completed = completed.expect("what is delivered has just been read");
                let Some(image) = self.images.iter_mut().find(|i| i.task == task) else {
                    return self.deliver(session, task, range, completed, core, now);
                };
                let mut old = range.count;
                for range in image.take(&range) {
                    old -= range.count;
                    self.deliver(session, task, range, completed, core, now);
                }
                // The rest was preserved before it was overwritten, and the client has it.
                let _ = core.taken(session, old, now);
                return;
            }
            TaskEvent::GetBuffer { task, range, .. } => {
                // Blocks that a point-in-time task still needs are not overwritten before.
                let data =
                    s.staged.get(task, range).filter(|_| self.images.iter().all(|i| i.pending(&range).is_none()));
                core.buffer(task, range, data.is_some(), now).expect("there is FILL where data is asked for");
                if let Some(pieces) = data {
                    self.granted.insert(range.lbn, Granted { end: range.end(), pieces });
                    return;
                }
            }
            TaskEvent::Written { task, range, .. } | TaskEvent::Superseded { task, range, .. } => {
                s.staged.forget(task, range)
            }
            TaskEvent::Failed { task, range, .. } => {
                s.staged.forget(task, range);
                let image = self.images.iter_mut().find(|i| i.task == task);
                if image.is_some_and(|i| i.take(&range).is_empty()) {
                    // It was preserved before; that it cannot be read now does not matter.
                    return;
                }
                result = Err(completed.and_then(|c| c.fault).unwrap_or(Fault::Io));
            }
            TaskEvent::Done { task, session } => self.ended(session, task),
        }
        self.notify(event.session(), SessionEvent::Task(*event, result), core, now);
    }

    /// Sends sectors of a read task, which the command has just read.
    fn deliver(
        &mut self,
        session: SessionId,
        task: TaskId,
        range: TaskRange,
        completed: &CompletedCommand,
        core: &mut Core,
        now: Time,
    ) {
        let data = completed.copy(&range, self.sector_bytes);
        self.notify(session, SessionEvent::Task(TaskEvent::Delivered { session, task, range }, Ok(data)), core, now);
    }

    /// Sends an event. Unread data is bounded by the session's window, other events by their
    /// number.
    fn notify(&mut self, session: SessionId, event: SessionEvent, core: &mut Core, now: Time) {
        let Some(s) = self.sessions.get(&session) else { return };
        match s.events.try_send(event) {
            Ok(()) => {}
            // In both cases the client does not read. A client that has gone also closes its
            // session itself; the second close has no effect.
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => self.close(session, None, core, now),
        }
    }

    /// Appends the data of write tasks for this number of sectors from `lbn`. Panics if some is
    /// missing: it was granted to the core, and writing anything else would destroy data on the
    /// disk.
    pub(crate) fn gather(&self, lbn: u64, sectors: u64, out: &mut BytesMut) {
        let (mut at, end) = (lbn, lbn + sectors);
        while at < end {
            let granted = self.granted.get(&at).filter(|g| g.end <= end);
            let granted =
                granted.unwrap_or_else(|| panic!("sector {at} is to be written, and no task has promised its data"));
            granted.pieces.iter().for_each(|p| out.extend_from_slice(p));
            at = granted.end;
        }
    }

    /// Drops grants that the core has not used, since it will ask again; grants for promoted tasks'
    /// pieces that wait among the foreground requests are kept.
    pub(crate) fn drained(&mut self, core: Option<&mut Core>) {
        if !self.granted.is_empty() {
            let Some(core) = core else { return self.granted.clear() };
            self.granted.retain(|&lbn, g| core.awaits_turn(TaskRange { lbn, count: g.end - lbn }));
        }
    }

    /// Tells all clients that the device is gone and their tasks will not complete.
    pub(crate) fn gone(&mut self, core: &mut Core, now: Time) {
        if !std::mem::replace(&mut self.gone, true) {
            for session in self.sessions.keys().copied().collect::<Vec<_>>() {
                self.notify(session, SessionEvent::DeviceGone, core, now);
            }
        }
    }

    /// Suspends all sessions, since the server is shutting down.
    pub(crate) fn suspend_all(&mut self, core: &mut Core, now: Time) {
        for &session in self.sessions.keys() {
            core.suspend(session, now).expect("a session that is here is the core's, too");
        }
    }

    /// Tells all clients that the server ends.
    pub(crate) fn end(&mut self) {
        for s in self.sessions.values() {
            let _ = s.events.try_send(SessionEvent::ServerEnds);
        }
    }
}
