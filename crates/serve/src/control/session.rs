//! One freeblock session of a client: forwards its calls to the engine and the engine's events to
//! the client.
//!
//! * `moving`: moves of units of reorganised exports

mod moving;

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;

use bytes::Bytes;
use headtime_disk::{Dur, Kind};
use headtime_sched::{Rate, SessionId, TaskError, TaskId, TaskRange, TaskSpec};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use super::calls::Calls;
use super::events::{self, refused};
use super::service::Service;
use super::v1;
use super::v1::session_call::Call as ClientCall;
use super::v1::session_event::Event as ClientEvent;
use crate::engine::background::MAX_EVENTS;
use crate::engine::messages::{Answer, EngineMessage, Reply, SessionCall, Submission};
use crate::engine::paced;
use crate::engine::session_event::SessionEvent;
use crate::net::budget::{ClientId, Share};
use crate::net::connection::UNREAD_TIMEOUT;
use crate::net::exports::MAX_BYTES;
use crate::plain::plain;
use moving::Moving;

/// The status of a session whose client does not read its events.
const OVERRUN_STATUS: &str = "the client does not fetch its events; the session was closed";

/// The status of a session whose client does not read its answers.
const UNFETCHED_STATUS: &str = "the client has fetched nothing of its answers for 30 s; the session was closed";

/// The status of a session that another client closed over the interface.
const CLOSED_STATUS: &str = "the session was closed by an operator";

/// The highest limit of a session's rate, MB/s.
const MAX_MB_S: f64 = 1e6;

/// Returns the limit of a rate of this many MB/s; zero: no limit. The error says what was expected
/// and found.
pub(super) fn rate(mb: f64) -> Result<Option<Rate>, String> {
    match mb {
        0.0 => Ok(None),
        // A lower rate is rounded up to the least.
        mb if mb > 0.0 && mb <= MAX_MB_S => Ok(Rate::per_second((mb * 1e6).max(0.001))),
        _ => Err(format!("a limit of {mb} MB/s: expected at most {MAX_MB_S}, or 0 for none")),
    }
}

/// Events queued for the client's connection before no more are fetched from the engine's bounded
/// queue.
const MAX_UNSENT: usize = 16;
/// Unread answers, and queued events, before no more calls are read.
pub const MAX_ANSWERS: usize = 4096;

/// Bytes of write data in one buffer. When part of a buffer is written, the rest is copied.
const PIECE: u64 = 256 << 10;

/// Bytes of requested data that the client has not read before no more calls are read.
const MAX_OWED: u64 = 64 << 20;

/// The identifier of a write cache's session without background work.
const NO_SESSION: SessionId = SessionId(u32::MAX);

/// A pending share of the budget.
type Room = Pin<Box<dyn Future<Output = Share> + Send + Sync>>;

/// The channel to the client.
type Out = Sender<Result<v1::SessionEvent, Status>>;

/// Serves one session until either side ends it.
pub async fn run<C: Calls>(service: Service, mut calls: C, out: Out) {
    let service = Service { engine: service.engine.of_one_client(), ..service };
    let end = match open(&service, &mut calls).await {
        Ok((mut session, events)) => {
            let end = session.serve(calls, events, &out).await;
            session.close().await;
            end
        }
        Err(status) => Err(status),
    };
    if let Err(status) = end {
        let _ = out.send(Err(status)).await;
    }
}

struct Session {
    service: Service,
    /// The client that its shares of the budget count for.
    client: ClientId,
    id: SessionId,
    tasks: BTreeMap<u64, TaskId>,
    names: BTreeMap<TaskId, u64>,
    reply: UnboundedSender<(u64, Answer)>,
    answers: UnboundedReceiver<(u64, Answer)>,
    /// Unanswered foreground requests: the client's token and the bytes requested.
    asked: BTreeMap<u64, (u64, u64)>,
    /// The number of the last request.
    next: u64,
    moving: Moving,
    /// A request that waits for its share of the budget; no call is read until it has it.
    waiting: Option<(v1::Foreground, Kind, Room)>,
    /// Requests whose answers the client has not read, and the bytes requested by them.
    owed: (usize, u64),
    /// Without background work: keeps the event channel open, so that it is not taken for the end.
    _events: Option<Sender<SessionEvent>>,
}

async fn open<C: Calls>(service: &Service, calls: &mut C) -> Result<(Session, Receiver<SessionEvent>), Status> {
    let first = calls.message().await?.and_then(|c| c.call);
    let Some(ClientCall::Open(v1::Open { name, priority, window })) = first else {
        return Err(Status::invalid_argument("the first call of a session: expected open, found another"));
    };
    if window == 0 {
        return Err(Status::invalid_argument("window: expected 1 sector or more, found 0"));
    }
    let (events, received) = channel(MAX_EVENTS);
    let sender = events.clone();
    let opened = service.engine.session_call(|reply| SessionCall::Open { priority, window, events, reply }).await;
    let mut held = None;
    let id = match opened? {
        Ok(id) => id,
        // A write cache sends foreground requests without background work, too.
        Err(TaskError::NoFill) if service.cache.is_some() => {
            held = Some(sender);
            NO_SESSION
        }
        Err(e) => return Err(Status::failed_precondition(e.to_string())),
    };
    if service.cache.is_some() {
        service.cached.opened(id);
    }
    let name: String = plain(&name).chars().take(80).collect();
    service.names.lock().unwrap_or_else(|e| e.into_inner()).insert(id.0, name);
    let (reply, answers) = unbounded_channel();
    let session = Session {
        service: service.clone(),
        client: service.budget.client(),
        id,
        tasks: BTreeMap::new(),
        names: BTreeMap::new(),
        reply,
        answers,
        asked: BTreeMap::new(),
        next: 0,
        moving: Moving::default(),
        waiting: None,
        owed: (0, 0),
        _events: held,
    };
    Ok((session, received))
}

impl Session {
    async fn close(self) {
        self.service.names.lock().unwrap_or_else(|e| e.into_inner()).remove(&self.id.0);
        self.service.cached.closed(self.id);
        let session = self.id;
        // An operator may have closed it already, or the engine may have ended.
        let _ = self.service.engine.session_call(|reply| SessionCall::Close { session, reply }).await;
    }

    /// Returns why the engine no longer has the session.
    async fn closed(&self) -> Status {
        // A client that closes a session removes its name at about the same time.
        for _ in 0..10 {
            if !self.service.names.lock().unwrap_or_else(|e| e.into_inner()).contains_key(&self.id.0) {
                return Status::aborted(CLOSED_STATUS);
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        Status::resource_exhausted(OVERRUN_STATUS)
    }

    async fn serve<C: Calls>(
        &mut self,
        mut calls: C,
        mut received: Receiver<SessionEvent>,
        out: &Out,
    ) -> Result<(), Status> {
        let exports = &self.service.exports;
        let opened = v1::Opened {
            session: self.id.0,
            sector_bytes: exports.sector_bytes,
            sectors: self.service.sectors,
            disk_id: self.service.disk_id.clone(),
        };
        // Events queued for the client's connection. Its calls are still read: otherwise a client
        // that sends many calls before it reads would deadlock with the server. With each answer
        // comes the number of bytes to subtract from `owed` once it is sent.
        let mut unsent = VecDeque::from([(ClientEvent::Opened(opened), None::<u64>)]);
        let mut fetched = Instant::now();
        loop {
            let room = unsent.len() < MAX_UNSENT;
            let room_inside = self.service.cache.is_none_or(|c| self.asked.len() < c.most);
            let owes_little = self.owed.0 < MAX_ANSWERS && self.owed.1 < MAX_OWED;
            let listens = room_inside && unsent.len() < MAX_ANSWERS && owes_little && self.waiting.is_none();
            // Memory for unread answers is limited in time, since other clients may need it.
            let unread = self.owed.1 > 0 && self.service.cache.is_none() && !unsent.is_empty();
            // A fixed order keeps simulations deterministic. Results of calls precede further
            // calls; the disk's throughput bounds them.
            let event = tokio::select! {
                biased;
                place = out.reserve(), if !unsent.is_empty() => {
                    // The client has disconnected: nothing is left to do.
                    let Ok(place) = place else { return Ok(()) };
                    let (event, owed) = unsent.pop_front().expect("looked at above");
                    if let Some(bytes) = owed {
                        self.owed = (self.owed.0 - 1, self.owed.1 - bytes);
                    }
                    place.send(wrapped(event));
                    fetched = Instant::now();
                    None
                }
                event = received.recv(), if room => match event {
                    Some(end @ SessionEvent::ServerEnds) => {
                        for (event, _) in unsent.into_iter().chain([(events::message(end, None), None)]) {
                            let _ = out.send(wrapped(event)).await;
                        }
                        return Ok(());
                    }
                    Some(event) => self.translate_event(event).await?.map(|e| (e, None)),
                    None => return Err(self.closed().await),
                },
                Some((number, answer)) = self.answers.recv(), if room => {
                    let (token, bytes) = self.asked.remove(&number).expect("what is answered was asked");
                    Some((events::answered(token, answer), Some(bytes)))
                }
                share = async { self.waiting.as_mut().expect("one waits").2.as_mut().await },
                    if self.waiting.is_some() =>
                {
                    if let Some((f, kind, _)) = self.waiting.take() {
                        self.submit(f, kind, Some(share))?;
                    }
                    None
                }
                () = sleep_until(fetched + UNREAD_TIMEOUT), if unread => {
                    return Err(Status::resource_exhausted(UNFETCHED_STATUS));
                }
                () = out.closed() => return Ok(()),
                call = calls.message(), if listens => match call {
                    Ok(Some(v1::SessionCall { call: Some(call) })) => self.handle_call(call).await?.map(|e| (e, None)),
                    Ok(Some(v1::SessionCall { call: None })) => {
                        Some((refused(None, "expected a call, found none"), None))
                    }
                    Ok(None) | Err(_) => return Ok(()),
                },
            };
            if unsent.is_empty() {
                fetched = Instant::now();
            }
            unsent.extend(event);
        }
    }

    /// Carries out a call; returns its immediate answer, if any.
    async fn handle_call(&mut self, call: ClientCall) -> Result<Option<ClientEvent>, Status> {
        let session = self.id;
        let (task, done) = match call {
            ClientCall::Open(_) => return Ok(Some(refused(None, "the session is open already"))),
            ClientCall::Register(r) => return self.register(r).await.map(Some),
            ClientCall::Abort(t) => {
                let done =
                    self.task_call(t.task, |session, task, reply| SessionCall::Abort { session, task, reply }).await?;
                if done.is_ok()
                    && let Some(id) = self.tasks.remove(&t.task)
                {
                    self.names.remove(&id);
                    self.moving.ends_writing(id);
                }
                (Some(t.task), done)
            }
            ClientCall::Promote(t) => {
                let promote = |session, task, reply| SessionCall::Promote { session, task, reply };
                (Some(t.task), self.task_call(t.task, promote).await?)
            }
            ClientCall::Suspend(_) => (None, self.call(|reply| SessionCall::Suspend { session, reply }).await?),
            ClientCall::Resume(_) => (None, self.call(|reply| SessionCall::Resume { session, reply }).await?),
            ClientCall::Priority(priority) => {
                (None, self.call(|reply| SessionCall::SetPriority { session, priority, reply }).await?)
            }
            ClientCall::MaxMbS(mb) => match rate(mb) {
                Ok(rate) => (None, self.call(|reply| SessionCall::SetRate { session, rate, reply }).await?),
                Err(why) => return Ok(Some(refused(None, &why))),
            },
            ClientCall::Taken(sectors) => {
                self.taken(sectors).await?;
                return Ok(None);
            }
            ClientCall::Data(d) => return self.data(d).await,
            ClientCall::Foreground(f) => return self.foreground(f).await,
            ClientCall::Moves(m) => return self.begin_moves(m).await.map(Some),
            ClientCall::Settle(s) => return self.settle(s).await.map(Some),
        };
        Ok(done.err().map(|why| refused(task, &why)))
    }

    async fn register(&mut self, r: v1::Register) -> Result<ClientEvent, Status> {
        let task = Some(r.task);
        if self.tasks.contains_key(&r.task) {
            return Ok(refused(task, "a task of this session has this name already"));
        }
        let kind = match v1::Kind::try_from(r.kind) {
            Ok(v1::Kind::Read) => Kind::Read,
            Ok(v1::Kind::Write) if r.point_in_time => {
                return Ok(refused(task, "only a read can be of one point in time"));
            }
            Ok(v1::Kind::Write) => Kind::Write,
            Ok(v1::Kind::Flush) | Err(_) => return Ok(refused(task, &TaskError::Kind.to_string())),
        };
        // Checked before anything is allocated for them.
        if let Some(why) = paced::too_many(r.ranges.len()) {
            return Ok(refused(task, &why.to_string()));
        }
        let ranges: Vec<TaskRange> = r.ranges.iter().map(|r| TaskRange { lbn: r.lbn, count: r.count }).collect();
        if kind == Kind::Write
            && let Some(why) = self.forbids_task(&ranges)
        {
            return Ok(refused(task, &why));
        }
        let of_one_moment = if r.point_in_time { ranges.clone() } else { Vec::new() };
        let spec = TaskSpec { kind, ranges, blksize: r.blksize, min_pickup: r.min_pickup };
        let (session, point_in_time) = (self.id, r.point_in_time);
        let register = |reply| SessionCall::Register { session, spec, point_in_time, reply };
        let registered = self.service.engine.session_call(register).await?;
        // Units that move after the registration leave what is to be read in its place.
        if let Ok(id) = &registered
            && let Some(why) = self.service.layouts.elsewhere(&self.service.exports, &of_one_moment)
        {
            let _ = self.call(|reply| SessionCall::Abort { session, task: *id, reply }).await?;
            return Ok(refused(task, &why));
        }
        Ok(match registered {
            Ok(id) => {
                self.tasks.insert(r.task, id);
                self.names.insert(id, r.task);
                if kind == Kind::Write {
                    self.moving.begins_writing(id);
                }
                ClientEvent::Registered(v1::TaskRef { task: r.task })
            }
            Err(why) => refused(task, &why.to_string()),
        })
    }

    /// Sends the engine a call about a task, which the client knows by this number.
    async fn task_call(
        &self,
        task: u64,
        call: fn(SessionId, TaskId, Reply<()>) -> SessionCall,
    ) -> Result<Result<(), String>, Status> {
        match self.tasks.get(&task) {
            Some(&id) => self.call(|reply| call(self.id, id, reply)).await,
            None => Ok(Err("no such task, or it has ended".into())),
        }
    }

    /// Sends the engine a call; returns why it was rejected, if it was.
    async fn call(&self, call: impl FnOnce(Reply<()>) -> SessionCall) -> Result<Result<(), String>, Status> {
        let done = self.service.engine.session_call(call).await?;
        Ok(done.map_err(|e| e.to_string()))
    }

    async fn taken(&self, sectors: u64) -> Result<(), Status> {
        let taken = SessionCall::Taken { session: self.id, sectors };
        Ok(self.service.engine.call(EngineMessage::Session(taken)).await?)
    }

    async fn data(&self, d: v1::Data) -> Result<Option<ClientEvent>, Status> {
        let sector = u64::from(self.service.exports.sector_bytes);
        let (count, rest) = (d.data.len() as u64 / sector, d.data.len() as u64 % sector);
        let Some(&task) = self.tasks.get(&d.task).filter(|_| rest == 0 && count > 0) else {
            return Ok(Some(ClientEvent::NotTaken(v1::Piece { task: d.task, lbn: d.lbn, count })));
        };
        // Each piece has its own memory, so that only the unwritten rest of a piece is kept.
        let most = (PIECE / sector).max(1);
        for (n, piece) in d.data.chunks((most * sector) as usize).enumerate() {
            let range = TaskRange { lbn: d.lbn.saturating_add(n as u64 * most), count: piece.len() as u64 / sector };
            let data = Bytes::copy_from_slice(piece);
            let call = SessionCall::Data { session: self.id, task, range, data };
            self.service.engine.call(EngineMessage::Session(call)).await?;
        }
        Ok(None)
    }

    async fn foreground(&mut self, f: v1::Foreground) -> Result<Option<ClientEvent>, Status> {
        let sector = u64::from(self.service.exports.sector_bytes);
        let (bytes, end) = (u64::from(f.count) * sector, f.lbn.checked_add(u64::from(f.count)));
        let fits = f.count > 0 && bytes <= u64::from(MAX_BYTES) && end.is_some_and(|e| e <= self.service.sectors);
        let (kind, right) = match v1::Kind::try_from(f.kind) {
            Ok(v1::Kind::Read) => (Kind::Read, fits && f.data.is_empty()),
            Ok(v1::Kind::Write) => (Kind::Write, fits && f.data.len() as u64 == bytes),
            Ok(v1::Kind::Flush) => (Kind::Flush, f.data.is_empty()),
            Err(_) => (Kind::Flush, false),
        };
        let past = kind == Kind::Write && right;
        let past = past.then(|| self.forbids_request(&TaskRange { lbn: f.lbn, count: u64::from(f.count) })).flatten();
        let wrong = "a request: expected sectors of the disk and a write's data, found something else";
        if let Some(why_not) = past.or((!right).then(|| wrong.into())) {
            let fault = v1::Fault::Invalid.into();
            return Ok(Some(ClientEvent::Answered(v1::Answered {
                token: f.token,
                data: Bytes::new(),
                why_not,
                fault,
            })));
        }
        // A write cache's requests are bounded by its memory and by its waiting clients. These hold
        // shares already, so waiting for another share would deadlock.
        let (owner, client, budget) = (self.service.owner(), self.client, &self.service.budget);
        let share = match self.service.cache {
            Some(_) => None,
            None => match budget.try_share(owner, client, bytes) {
                Some(share) => Some(share),
                None => {
                    let budget = budget.clone();
                    let room = Box::pin(async move { budget.share(owner, client, bytes).await });
                    self.waiting = Some((f, kind, room));
                    return Ok(None);
                }
            },
        };
        self.submit(f, kind, share)?;
        Ok(None)
    }

    /// Sends the engine a request that has its share.
    fn submit(&mut self, f: v1::Foreground, kind: Kind, share: Option<Share>) -> Result<(), Status> {
        let bytes = u64::from(f.count) * u64::from(self.service.exports.sector_bytes);
        let answer = if kind == Kind::Read { bytes } else { 0 };
        self.next += 1;
        self.asked.insert(self.next, (f.token, answer));
        self.owed = (self.owed.0 + 1, self.owed.1 + answer);
        let (lbn, count) = if kind == Kind::Flush { (0, 0) } else { (f.lbn, f.count) };
        let submission = Submission {
            kind,
            lbn,
            count,
            fua: f.fua,
            owner: self.service.owner(),
            data: f.data,
            reply: Some((self.reply.clone(), self.next)),
            share,
            preserves: false,
            limited: Dur::ZERO,
            piece_of: None,
        };
        Ok(self.service.engine.send(EngineMessage::Submit(submission))?)
    }

    /// Converts an event of the engine for the client; `None` if it is not for the client.
    async fn translate_event(&mut self, event: SessionEvent) -> Result<Option<ClientEvent>, Status> {
        let Some(id) = event.task() else { return Ok(Some(events::message(event, None))) };
        let Some(&task) = self.names.get(&id) else {
            // The task was aborted in the meantime: its late data counts as taken.
            let sectors = event.delivered_sectors();
            if sectors > 0 {
                self.taken(sectors).await?;
            }
            return Ok(None);
        };
        if event.ends_task() {
            self.names.remove(&id);
            self.tasks.remove(&task);
            self.moving.ends_writing(id);
        }
        Ok(Some(events::message(event, Some(task))))
    }
}

fn wrapped(event: ClientEvent) -> Result<v1::SessionEvent, Status> {
    Ok(v1::SessionEvent { event: Some(event) })
}
