//! Freeblock sessions of clients: their calls go to the core, what comes of them goes back with its data.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use headtime_disk::time::Time;
use headtime_sched::core::Core;
use headtime_sched::tasks::{Event, Range, SessionId, TaskError, TaskId, TaskSpec};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use super::Landed;
use super::image::{Image, MOST_IMAGES};
use super::staged::Staged;
use super::telling::{Call, Change};
use crate::device::Fault;

/// Bytes of write data that a session may have here before it is written.
pub const MOST_STAGED: u64 = 64 << 20;

/// Bytes on their way to a session's client at most, whatever window it asks for.
pub const MOST_WINDOW: u64 = 64 << 20;

/// Events that may wait for a session's client; who lets more than that come is not listening, and its session is closed.
pub const MOST_EVENTS: usize = 1 << 16;

/// Bytes that a point-in-time task may bring beyond its session's window, for writes that could not wait.
pub const MOST_BEYOND: u64 = 64 << 20;

/// What a session's client hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// These sectors of a read task, with their data.
    Delivered {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
        /// Their bytes.
        data: Bytes,
    },
    /// A gap for these sectors of a write task was found, and their data was not here: it is wanted soon.
    Wanted {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
    },
    /// They are on the disk.
    Written {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
    },
    /// They will not be written: newer data was or will be.
    Superseded {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
    },
    /// They could not be read or written.
    Failed {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
        /// Why.
        fault: Fault,
    },
    /// Data that was sent could not be kept: there is too much of it here already, or it is not as long as it says.
    NotTaken {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
    },
    /// Of a point-in-time task: these sectors were overwritten before they could be delivered. It was aborted.
    Broken {
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
    },
    /// The session was suspended, or goes on.
    Suspended(bool),
    /// Nothing of the task is wanted any more.
    Done {
        /// The task.
        task: TaskId,
    },
    /// The device is gone: nothing will come of any task.
    Gone,
    /// The server ends; no event follows.
    End,
}

impl Told {
    /// Which task it is about.
    pub fn task(&self) -> Option<TaskId> {
        match *self {
            Told::Delivered { task, .. }
            | Told::Wanted { task, .. }
            | Told::Written { task, .. }
            | Told::Superseded { task, .. }
            | Told::Failed { task, .. }
            | Told::NotTaken { task, .. }
            | Told::Broken { task, .. }
            | Told::Done { task } => Some(task),
            Told::Suspended(_) | Told::Gone | Told::End => None,
        }
    }
}

#[derive(Debug)]
struct Session {
    events: Sender<Told>,
    staged: Staged,
    /// Tasks that it registered and that have not ended. A client's calls reach its own tasks only.
    tasks: Vec<TaskId>,
    /// Sectors of point-in-time tasks that were sent beyond the window and are not taken yet.
    beyond: u64,
}

/// All sessions.
#[derive(Debug)]
pub struct Background {
    sector_bytes: u32,
    sessions: BTreeMap<SessionId, Session>,
    /// Data that the core was promised and that is not at the device yet, by first sector. What is promised for the same sector
    /// later takes its place, and nothing is sent that was not promised just before or waited since: so what lies here is
    /// always what a command is to carry.
    granted: BTreeMap<u64, Granted>,
    images: Vec<Image>,
    /// The device is gone.
    gone: bool,
}

/// Data of one stretch. It is held here from the promise on, so that nothing that a client does can take it away.
#[derive(Debug)]
struct Granted {
    end: u64,
    pieces: Vec<Bytes>,
}

impl Background {
    /// No session.
    pub fn new(sector_bytes: u32) -> Background {
        Background {
            sector_bytes,
            sessions: BTreeMap::new(),
            granted: BTreeMap::new(),
            images: Vec::new(),
            gone: false,
        }
    }

    /// A client calls. Answers of calls whose client has gone are dropped.
    pub fn call(&mut self, call: Call, core: &mut Core, now: Time) {
        match call {
            Call::Open { priority, window, events, reply } => {
                let window = window.min(MOST_WINDOW / u64::from(self.sector_bytes));
                let opened = core.open(priority, now).and_then(|s| core.set_window(s, window, now).map(|()| s));
                if let Ok(session) = opened {
                    let staged = Staged::new(self.sector_bytes, MOST_STAGED);
                    self.sessions.insert(session, Session { events, staged, tasks: Vec::new(), beyond: 0 });
                }
                let session = opened.as_ref().ok().copied().filter(|_| self.gone);
                let _ = reply.send(opened);
                if let Some(session) = session {
                    self.tell(session, Told::Gone, core, now);
                }
            }
            Call::Register { session, spec, point_in_time, reply } => {
                _ = reply.send(self.register(session, &spec, point_in_time, core, now));
            }
            Call::Change { what, reply } => _ = reply.send(self.change(what, core, now)),
            Call::Taken { session, sectors } => {
                let Some(s) = self.sessions.get_mut(&session) else { return };
                let beyond = sectors.min(s.beyond);
                s.beyond -= beyond;
                let sectors = sectors - beyond;
                // A session that has just been closed takes nothing more.
                let _ = core.taken(session, sectors, now);
            }
            Call::Data { session, task, range, data } => {
                let Some(s) = self.sessions.get_mut(&session) else { return };
                if !s.tasks.contains(&task) || !s.staged.put(task, range, data) {
                    self.tell(session, Told::NotTaken { task, range }, core, now);
                }
            }
        }
    }

    fn register(
        &mut self,
        session: SessionId,
        spec: &TaskSpec,
        point_in_time: bool,
        core: &mut Core,
        now: Time,
    ) -> Result<TaskId, TaskError> {
        if point_in_time && self.images.len() == MOST_IMAGES {
            return Err(TaskError::Full { what: "point-in-time tasks", limit: MOST_IMAGES });
        }
        let task = core.register(session, spec, now)?;
        if point_in_time {
            self.images.push(Image::new(session, task, &spec.ranges, spec.min_pickup));
        }
        if let Some(s) = self.sessions.get_mut(&session) {
            s.tasks.push(task);
        }
        Ok(task)
    }

    /// What must be read before these sectors may be written.
    pub fn to_preserve(&self, range: &Range) -> Option<Range> {
        let all = self.images.iter().filter_map(|i| i.pending(range));
        all.reduce(|a, b| {
            let lbn = a.lbn.min(b.lbn);
            Range { lbn, count: a.end().max(b.end()) - lbn }
        })
    }

    /// These sectors were read to be preserved. What point-in-time tasks have not got of them by now goes to them whatever
    /// their windows say: it is about to be overwritten.
    pub fn preserved(&mut self, range: &Range, landed: &Landed, core: &mut Core, now: Time) {
        for at in (0..self.images.len()).rev() {
            // Telling a client that has gone takes all images of its session away.
            let Some(image) = self.images.get_mut(at) else { continue };
            let (session, task) = (image.session, image.task);
            for range in image.take(range) {
                let room = MOST_BEYOND / u64::from(self.sector_bytes);
                let Some(s) = self.sessions.get_mut(&session) else { break };
                if let Some(fault) = landed.fault {
                    self.tell(session, Told::Failed { task, range, fault }, core, now);
                } else if s.beyond + range.count > room {
                    // The client does not take what comes. The foreground does not wait for it: the image is lost.
                    self.tell(session, Told::Broken { task, range }, core, now);
                    let _ = core.abort(task, now);
                    self.ended(session, task);
                    break;
                } else {
                    s.beyond += range.count;
                    let data = landed.copy(&range, self.sector_bytes);
                    self.tell(session, Told::Delivered { task, range, data }, core, now);
                }
            }
        }
    }

    fn change(&mut self, what: Change, core: &mut Core, now: Time) -> Result<(), TaskError> {
        match what {
            Change::Close(session) => {
                self.sessions.remove(&session).ok_or(TaskError::NoSession(session))?;
                self.images.retain(|i| i.session != session);
                core.close(session, now)
            }
            Change::Abort(session, task) => {
                self.own(session, task)?;
                core.abort(task, now)?;
                self.ended(session, task);
                Ok(())
            }
            Change::Promote(session, task) => {
                self.own(session, task)?;
                core.promote(task, now)
            }
            Change::Suspend(session) => {
                core.suspend(session, now)?;
                self.tell(session, Told::Suspended(true), core, now);
                Ok(())
            }
            Change::Resume(session) => {
                core.resume(session, now)?;
                self.tell(session, Told::Suspended(false), core, now);
                Ok(())
            }
            Change::Priority(session, priority) => core.set_priority(session, priority, now),
        }
    }

    /// Whether a task is a session's own.
    fn own(&self, session: SessionId, task: TaskId) -> Result<(), TaskError> {
        let s = self.sessions.get(&session).ok_or(TaskError::NoSession(session))?;
        if s.tasks.contains(&task) { Ok(()) } else { Err(TaskError::NoTask(task)) }
    }

    fn ended(&mut self, session: SessionId, task: TaskId) {
        self.images.retain(|i| i.task != task);
        if let Some(s) = self.sessions.get_mut(&session) {
            s.tasks.retain(|&t| t != task);
            s.staged.forget_task(task);
        }
    }

    /// Something happened to a task. `landed`: the command that has just completed, if one has.
    pub fn event(&mut self, event: &Event, landed: Option<&Landed>, core: &mut Core, now: Time) {
        let Some(s) = self.sessions.get_mut(&event.session()) else {
            // A session that was closed: its writes find no data.
            return;
        };
        let told = match *event {
            Event::Delivered { task, range, session } => {
                let landed = landed.expect("what is delivered has just been read");
                let Some(image) = self.images.iter_mut().find(|i| i.task == task) else {
                    let data = landed.copy(&range, self.sector_bytes);
                    return self.tell(session, Told::Delivered { task, range, data }, core, now);
                };
                let mut old = range.count;
                for range in image.take(&range) {
                    old -= range.count;
                    let data = landed.copy(&range, self.sector_bytes);
                    self.tell(session, Told::Delivered { task, range, data }, core, now);
                }
                // The rest was preserved before it was written, and its client has it.
                let _ = core.taken(session, old, now);
                return;
            }
            Event::GetBuffer { task, range, .. } => {
                // What a point-in-time task has not got yet is not written before it has.
                let data =
                    s.staged.get(task, range).filter(|_| self.images.iter().all(|i| i.pending(&range).is_none()));
                core.buffer(task, range, data.is_some(), now).expect("there is FILL where data is asked for");
                if let Some(pieces) = data {
                    self.granted.insert(range.lbn, Granted { end: range.end(), pieces });
                    return;
                }
                Told::Wanted { task, range }
            }
            Event::Written { task, range, .. } => {
                s.staged.forget(task, range);
                Told::Written { task, range }
            }
            Event::Superseded { task, range, .. } => {
                s.staged.forget(task, range);
                Told::Superseded { task, range }
            }
            Event::Failed { task, range, .. } => {
                s.staged.forget(task, range);
                let image = self.images.iter_mut().find(|i| i.task == task);
                if image.is_some_and(|i| i.take(&range).is_empty()) {
                    // It was preserved before; that it cannot be read now is nobody's loss.
                    return;
                }
                let fault = landed.and_then(|l| l.fault).unwrap_or(Fault::Io);
                Told::Failed { task, range, fault }
            }
            Event::Done { task, session } => {
                self.ended(session, task);
                Told::Done { task }
            }
        };
        self.tell(event.session(), told, core, now);
    }

    /// Data that waits to be fetched is bounded by the session's window, everything else by the number of events.
    fn tell(&mut self, session: SessionId, told: Told, core: &mut Core, now: Time) {
        let Some(s) = self.sessions.get(&session) else { return };
        match s.events.try_send(told) {
            Ok(()) => {}
            // Either way nobody listens any more. A client that has gone closes its session itself, too; once is enough.
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => {
                self.sessions.remove(&session);
                self.images.retain(|i| i.session != session);
                core.close(session, now).expect("a session that is here is the core's, too");
            }
        }
    }

    /// Appends the data of write tasks for so many sectors from `lbn`. Panics when it is not all here: the core was told that
    /// it is, and to write anything else would destroy what is on the disk.
    pub fn gather(&self, lbn: u64, sectors: u64, out: &mut BytesMut) {
        let (mut at, end) = (lbn, lbn + sectors);
        while at < end {
            let granted = self.granted.get(&at).filter(|g| g.end <= end);
            let granted =
                granted.unwrap_or_else(|| panic!("sector {at} is to be written, and nobody promised its data"));
            granted.pieces.iter().for_each(|p| out.extend_from_slice(p));
            at = granted.end;
        }
    }

    /// The core has nothing more to say for now: what it has not used of the promised data it will ask for again, but for
    /// pieces of promoted tasks that wait for their turn among the foreground's requests.
    pub fn drained(&mut self, core: Option<&mut Core>) {
        if !self.granted.is_empty() {
            let Some(core) = core else { return self.granted.clear() };
            self.granted.retain(|&lbn, g| core.awaits_turn(Range { lbn, count: g.end - lbn }));
        }
    }

    /// The device is gone: nothing will come of any task any more, and its client must not wait for it.
    pub fn gone(&mut self, core: &mut Core, now: Time) {
        if !std::mem::replace(&mut self.gone, true) {
            for session in self.sessions.keys().copied().collect::<Vec<_>>() {
                self.tell(session, Told::Gone, core, now);
            }
        }
    }

    /// Nothing more is begun: the server ends.
    pub fn suspend_all(&mut self, core: &mut Core, now: Time) {
        for &session in self.sessions.keys() {
            core.suspend(session, now).expect("a session that is here is the core's, too");
        }
    }

    /// Tells every client that the server ends.
    pub fn end(&mut self) {
        for s in self.sessions.values() {
            let _ = s.events.try_send(Told::End);
        }
    }
}
