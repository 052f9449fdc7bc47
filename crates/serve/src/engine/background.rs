//! Freeblock sessions of clients: their calls go to the core, what comes of them goes back with its
//! data.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use headtime_disk::time::Time;
use headtime_sched::core::Core;
use headtime_sched::tasks::{Event, Range, SessionId, TaskError, TaskId, TaskSpec};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use super::Landed;
use super::image::{Image, MOST_IMAGES};
use super::paced::{FEW, Work, too_many};
use super::staged::{OfAll, Staged};
use super::telling::{Call, Change, Reply};
use super::told::Told;
use crate::device::Fault;

/// Bytes of write data that a session may have here before it is written.
pub const MOST_STAGED: u64 = 64 << 20;

/// Bytes on their way to a session's client at most, whatever window it asks for.
pub const MOST_WINDOW: u64 = 64 << 20;

/// The windows of all sessions, bytes.
pub const MOST_WINDOWS: u64 = 1 << 30;

/// Events that may wait for a session's client; who lets more than that come is not listening, and
/// its session is closed.
pub const MOST_EVENTS: usize = 1 << 16;

/// Bytes that a point-in-time task may bring beyond its session's window, for writes that could not
/// wait.
pub const MOST_BEYOND: u64 = 64 << 20;

#[derive(Debug)]
struct Session {
    events: Sender<Told>,
    staged: Staged,
    /// Its window, sectors.
    window: u64,
    /// Tasks that it registered and that have not ended, with the number of their ranges. A
    /// client's calls reach only its own tasks.
    tasks: BTreeMap<TaskId, usize>,
    /// Sectors of point-in-time tasks that were sent beyond the window and are not taken yet.
    beyond: u64,
}

/// All sessions.
#[derive(Debug)]
pub struct Background {
    sector_bytes: u32,
    sessions: BTreeMap<SessionId, Session>,
    /// Data that the core was promised and that is not at the device yet, by first sector. What is
    /// promised for the same sector later takes its place, and nothing is sent that was not
    /// promised just before or waited since: so what lies here is always what a command is to
    /// carry.
    granted: BTreeMap<u64, Granted>,
    images: Vec<Image>,
    /// What all sessions have in write data that is not written yet.
    staged: OfAll,
    /// Calls that take long, in the order in which they came.
    paced: VecDeque<Work>,
    /// The device is gone.
    gone: bool,
}

/// Data of one stretch. It is held here from the promise on, so that nothing that a client does can
/// take it away.
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
            staged: OfAll::default(),
            paced: VecDeque::new(),
            gone: false,
        }
    }

    /// A client calls. Answers of calls whose client has gone are dropped.
    pub fn call(&mut self, call: Call, core: &mut Core, now: Time) {
        match call {
            Call::Open { priority, window, events, reply } => {
                let window = window.min(MOST_WINDOW / u64::from(self.sector_bytes));
                let opened = self.room_for(window).and_then(|()| core.open(priority, now));
                let opened = opened.and_then(|s| core.set_window(s, window, now).map(|()| s));
                if let Ok(session) = opened {
                    let staged = Staged::new(self.sector_bytes, MOST_STAGED, &self.staged);
                    self.sessions
                        .insert(session, Session { events, staged, window, tasks: BTreeMap::new(), beyond: 0 });
                }
                let session = opened.as_ref().ok().copied().filter(|_| self.gone);
                let _ = reply.send(opened);
                if let Some(session) = session {
                    self.tell(session, Told::Gone, core, now);
                }
            }
            Call::Register { session, spec, point_in_time, reply } if spec.ranges.len() > FEW => {
                match too_many(spec.ranges.len()) {
                    Some(why) => _ = reply.send(Err(why)),
                    None => self.paced.push_back(Work::Register { session, spec, point_in_time, reply }),
                }
            }
            Call::Register { session, spec, point_in_time, reply } => {
                _ = reply.send(self.register(session, &spec, point_in_time, core, now));
            }
            Call::Change { what: Change::Close(session), reply } => self.close(session, Some(reply), core, now),
            Call::Change { what: Change::Abort(session, task), reply } if self.ranges(session, task) > FEW => {
                self.paced.push_back(Work::Abort { session, task, reply });
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
                if !s.tasks.contains_key(&task) || !s.staged.put(task, range, data) {
                    self.tell(session, Told::NotTaken { task, range }, core, now);
                }
            }
        }
    }

    /// Whether one more window of so many sectors may be given.
    fn room_for(&self, window: u64) -> Result<(), TaskError> {
        let given: u64 = self.sessions.values().map(|s| s.window).sum();
        if (given + window) * u64::from(self.sector_bytes) > MOST_WINDOWS {
            return Err(TaskError::Full { what: "bytes of windows", limit: MOST_WINDOWS as usize });
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
        if point_in_time && self.images.len() == MOST_IMAGES {
            return Err(TaskError::Full { what: "point-in-time tasks", limit: MOST_IMAGES });
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

    /// What must be read before these sectors may be written.
    pub fn to_preserve(&self, range: &Range) -> Option<Range> {
        let all = self.images.iter().filter_map(|i| i.pending(range));
        all.reduce(|a, b| {
            let lbn = a.lbn.min(b.lbn);
            Range { lbn, count: a.end().max(b.end()) - lbn }
        })
    }

    /// These sectors were read to be preserved. What point-in-time tasks have not got of them by
    /// now goes to them whatever their windows say: it is about to be overwritten.
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
                    // The client does not take what comes. The foreground does not wait for it: the
                    // image is lost.
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
                self.close(session, None, core, now);
                Ok(())
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

    /// Closes a session: at once, or its tasks one by one where there is much of them.
    fn close(&mut self, session: SessionId, reply: Option<Reply<()>>, core: &mut Core, now: Time) {
        let closed = match self.sessions.remove(&session) {
            None => Err(TaskError::NoSession(session)),
            Some(s) => {
                self.images.retain(|i| i.session != session);
                if s.tasks.values().sum::<usize>() > FEW {
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

    /// Whether there are calls that take long.
    pub fn is_paced(&self) -> bool {
        !self.paced.is_empty()
    }

    /// Goes on with them for a piece.
    pub fn goes_on(&mut self, core: &mut Core, now: Time) {
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
                let _ = reply.send(self.change(Change::Abort(session, task), core, now));
            }
            Some(Work::Close { session, mut tasks, reply }) => match tasks.pop() {
                Some(task) => {
                    // It may have ended meanwhile.
                    let _ = core.abort(task, now);
                    // Behind the others: it may take long.
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

    /// Ranges of a session's task; none if it is not its own.
    fn ranges(&self, session: SessionId, task: TaskId) -> usize {
        self.sessions.get(&session).and_then(|s| s.tasks.get(&task)).copied().unwrap_or(0)
    }

    /// Whether a task is a session's own.
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

    /// Data that waits to be fetched is bounded by the session's window, everything else by the
    /// number of events.
    fn tell(&mut self, session: SessionId, told: Told, core: &mut Core, now: Time) {
        let Some(s) = self.sessions.get(&session) else { return };
        match s.events.try_send(told) {
            Ok(()) => {}
            // Either way nobody listens any more. A client that has gone closes its session itself,
            // too; once is enough.
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => self.close(session, None, core, now),
        }
    }

    /// Appends the data of write tasks for so many sectors from `lbn`. Panics when it is not all
    /// here: the core was told that it is, and to write anything else would destroy what is on the
    /// disk.
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

    /// The core has nothing more to say for now: what it has not used of the promised data it will
    /// ask for again, but for pieces of promoted tasks that wait for their turn among the
    /// foreground's requests.
    pub fn drained(&mut self, core: Option<&mut Core>) {
        if !self.granted.is_empty() {
            let Some(core) = core else { return self.granted.clear() };
            self.granted.retain(|&lbn, g| core.awaits_turn(Range { lbn, count: g.end - lbn }));
        }
    }

    /// The device is gone: nothing will come of any task any more, and its client must not wait for
    /// it.
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
