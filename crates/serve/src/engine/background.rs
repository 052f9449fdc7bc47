//! Freeblock sessions of clients: their calls go to the core, what comes of them goes back with its data.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use headtime_disk::time::Time;
use headtime_sched::core::Core;
use headtime_sched::tasks::{Event, Range, SessionId, TaskError, TaskId};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use super::Landed;
use super::staged::Staged;
use super::telling::{Call, Change};
use crate::device::Fault;

/// Bytes of write data that a session may have here before it is written.
pub const MOST_STAGED: u64 = 64 << 20;

/// Events that may wait for a session's client; who lets more than that come is not listening, and its session is closed.
pub const MOST_EVENTS: usize = 1 << 16;

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
    /// Nothing of the task is wanted any more.
    Done {
        /// The task.
        task: TaskId,
    },
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
            Told::End => None,
        }
    }
}

#[derive(Debug)]
struct Session {
    events: Sender<Told>,
    staged: Staged,
    /// Tasks that it registered and that have not ended. A client's calls reach its own tasks only.
    tasks: Vec<TaskId>,
}

/// All sessions.
#[derive(Debug)]
pub struct Background {
    sector_bytes: u32,
    sessions: BTreeMap<SessionId, Session>,
    /// Data that the core was promised in this round of polling, by first sector.
    granted: BTreeMap<u64, Granted>,
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
        Background { sector_bytes, sessions: BTreeMap::new(), granted: BTreeMap::new() }
    }

    /// A client calls. Answers of calls whose client has gone are dropped.
    pub fn call(&mut self, call: Call, core: &mut Core, now: Time) {
        match call {
            Call::Open { priority, window, events, reply } => {
                let opened = core.open(priority, now).and_then(|s| core.set_window(s, window, now).map(|()| s));
                if let Ok(session) = opened {
                    let staged = Staged::new(self.sector_bytes, MOST_STAGED);
                    self.sessions.insert(session, Session { events, staged, tasks: Vec::new() });
                }
                let _ = reply.send(opened);
            }
            Call::Register { session, spec, reply, .. } => {
                let registered = core.register(session, &spec, now);
                if let (Ok(task), Some(s)) = (registered, self.sessions.get_mut(&session)) {
                    s.tasks.push(task);
                }
                let _ = reply.send(registered);
            }
            Call::Change { what, reply } => _ = reply.send(self.change(what, core, now)),
            Call::Taken { session, sectors } => {
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

    fn change(&mut self, what: Change, core: &mut Core, now: Time) -> Result<(), TaskError> {
        match what {
            Change::Close(session) => {
                self.sessions.remove(&session).ok_or(TaskError::NoSession(session))?;
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
            Change::Suspend(session) => core.suspend(session, now),
            Change::Resume(session) => core.resume(session, now),
            Change::Priority(session, priority) => core.set_priority(session, priority, now),
        }
    }

    /// Whether a task is a session's own.
    fn own(&self, session: SessionId, task: TaskId) -> Result<(), TaskError> {
        let s = self.sessions.get(&session).ok_or(TaskError::NoSession(session))?;
        if s.tasks.contains(&task) { Ok(()) } else { Err(TaskError::NoTask(task)) }
    }

    fn ended(&mut self, session: SessionId, task: TaskId) {
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
            Event::Delivered { task, range, .. } => {
                let landed = landed.expect("what is delivered has just been read");
                // A copy: what the client has not taken must not keep the whole command's memory.
                let data = Bytes::copy_from_slice(&landed.sectors(range.lbn, range.count, self.sector_bytes));
                Told::Delivered { task, range, data }
            }
            Event::GetBuffer { task, range, .. } => {
                let data = s.staged.get(task, range);
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

    /// The core has nothing more to say for now: what it has not used of the promised data it will ask for again.
    pub fn drained(&mut self) {
        self.granted.clear();
    }

    /// Tells every client that the server ends.
    pub fn end(&mut self) {
        for s in self.sessions.values() {
            let _ = s.events.try_send(Told::End);
        }
    }
}
