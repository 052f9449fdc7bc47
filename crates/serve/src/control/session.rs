//! One freeblock session of a client: forwards its calls to the engine and the engine's events to
//! the client.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;

use bytes::Bytes;
use headtime_disk::command::Kind;
use headtime_sched::{SessionId, TaskError, TaskId, TaskRange, TaskSpec};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use super::calls::Calls;
use super::service::{Service, call, ended};
use super::v1::session_call::Call as Says;
use super::v1::session_event::Event as Hears;
use super::v1::{self, SessionCall, SessionEvent};
use crate::engine::background::MOST_EVENTS;
use crate::engine::paced;
use crate::engine::telling::{Answer, Ask, Call, Change, Telling};
use crate::engine::told::Told;
use crate::net::budget::{ClientId, Share};
use crate::net::connection::UNREAD;
use crate::net::exports::MOST_BYTES;
use crate::plain::plain;

/// The status of a session whose client does not read its events.
const OVERRUN: &str = "the client does not fetch its events; the session was closed";

/// The status of a session whose client does not read its answers.
const UNFETCHED: &str = "the client has fetched nothing of its answers for 30 s; the session was closed";

/// The status of a session that another client closed ([`Change::Close`] over the interface).
const CLOSED: &str = "the session was closed by an operator";

/// Events queued for the client's connection before no more are fetched from the engine's bounded
/// queue.
const MOST_UNSAID: usize = 16;
/// Unread answers, and queued events, before no more calls are read.
pub const MOST_ANSWERS: usize = 4096;

/// Bytes of write data in one buffer. When part of a buffer is written, the rest is copied.
const PIECE: u64 = 256 << 10;

/// Bytes of requested data that the client has not read before no more calls are read.
const MOST_OWED: u64 = 64 << 20;

/// The identifier of a write cache's session without background work.
const NO_SESSION: SessionId = SessionId(u32::MAX);

/// A pending share of the budget.
type Room = Pin<Box<dyn Future<Output = Share> + Send + Sync>>;

/// The channel to the client.
type Out = Sender<Result<SessionEvent, Status>>;

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
    /// A request that waits for its share of the budget; no call is read until it has it.
    waiting: Option<(v1::Foreground, Kind, Room)>,
    /// Requests whose answers the client has not read, and the bytes requested by them.
    owed: (usize, u64),
    /// Without background work: keeps the event channel open, so that it is not taken for the end.
    _events: Option<Sender<Told>>,
}

async fn open<C: Calls>(service: &Service, calls: &mut C) -> Result<(Session, Receiver<Told>), Status> {
    let first = calls.message().await?.and_then(|c| c.call);
    let Some(Says::Open(v1::Open { name, priority, window })) = first else {
        return Err(Status::invalid_argument("the first call of a session: expected open, found another"));
    };
    if window == 0 {
        return Err(Status::invalid_argument("window: expected 1 sector or more, found 0"));
    }
    let (events, told) = channel(MOST_EVENTS);
    let sender = events.clone();
    let opened = call(&service.engine, |reply| Call::Open { priority, window, events, reply }).await.map_err(ended)?;
    let mut held = None;
    let id = match opened {
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
        waiting: None,
        owed: (0, 0),
        _events: held,
    };
    Ok((session, told))
}

impl Session {
    async fn close(self) {
        self.service.names.lock().unwrap_or_else(|e| e.into_inner()).remove(&self.id.0);
        self.service.cached.closed(self.id);
        let what = Change::Close(self.id);
        // An operator may have closed it already, or the engine may have ended.
        let _ = call(&self.service.engine, |reply| Call::Change { what, reply }).await;
    }

    /// Returns why the engine no longer has the session.
    async fn closed(&self) -> Status {
        // A client that closes a session removes its name at about the same time.
        for _ in 0..10 {
            if !self.service.names.lock().unwrap_or_else(|e| e.into_inner()).contains_key(&self.id.0) {
                return Status::aborted(CLOSED);
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        Status::resource_exhausted(OVERRUN)
    }

    async fn serve<C: Calls>(&mut self, mut calls: C, mut events: Receiver<Told>, out: &Out) -> Result<(), Status> {
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
        let mut unsaid = VecDeque::from([(Hears::Opened(opened), None::<u64>)]);
        let mut fetched = Instant::now();
        loop {
            let room = unsaid.len() < MOST_UNSAID;
            let room_inside = self.service.cache.is_none_or(|c| self.asked.len() < c.most);
            let owes_little = self.owed.0 < MOST_ANSWERS && self.owed.1 < MOST_OWED;
            let listens = room_inside && unsaid.len() < MOST_ANSWERS && owes_little && self.waiting.is_none();
            // Memory for unread answers is limited in time, since other clients may need it.
            let unread = self.owed.1 > 0 && self.service.cache.is_none() && !unsaid.is_empty();
            // A fixed order keeps simulations deterministic. Results of calls precede further
            // calls; the disk's throughput bounds them.
            let hears = tokio::select! {
                biased;
                place = out.reserve(), if !unsaid.is_empty() => {
                    // The client has disconnected: nothing is left to do.
                    let Ok(place) = place else { return Ok(()) };
                    let (hears, owed) = unsaid.pop_front().expect("looked at above");
                    if let Some(bytes) = owed {
                        self.owed = (self.owed.0 - 1, self.owed.1 - bytes);
                    }
                    place.send(event(hears));
                    fetched = Instant::now();
                    None
                }
                told = events.recv(), if room => match told {
                    Some(Told::End) => {
                        for (hears, _) in unsaid.into_iter().chain([(Hears::End(v1::Empty {}), None)]) {
                            let _ = out.send(event(hears)).await;
                        }
                        return Ok(());
                    }
                    Some(told) => self.told(told).await?.map(|h| (h, None)),
                    None => return Err(self.closed().await),
                },
                Some((number, answer)) = self.answers.recv(), if room => {
                    let (token, bytes) = self.asked.remove(&number).expect("what is answered was asked");
                    Some((answered(token, answer), Some(bytes)))
                }
                share = async { self.waiting.as_mut().expect("one waits").2.as_mut().await },
                    if self.waiting.is_some() =>
                {
                    if let Some((f, kind, _)) = self.waiting.take() {
                        self.submit(f, kind, Some(share))?;
                    }
                    None
                }
                () = sleep_until(fetched + UNREAD), if unread => return Err(Status::resource_exhausted(UNFETCHED)),
                () = out.closed() => return Ok(()),
                said = calls.message(), if listens => match said {
                    Ok(Some(SessionCall { call: Some(says) })) => self.says(says).await?.map(|h| (h, None)),
                    Ok(Some(SessionCall { call: None })) => Some((refused(None, "expected a call, found none"), None)),
                    Ok(None) | Err(_) => return Ok(()),
                },
            };
            if unsaid.is_empty() {
                fetched = Instant::now();
            }
            unsaid.extend(hears);
        }
    }

    /// Carries out a call; returns its immediate answer, if any.
    async fn says(&mut self, says: Says) -> Result<Option<Hears>, Status> {
        let (task, done) = match says {
            Says::Open(_) => return Ok(Some(refused(None, "the session is open already"))),
            Says::Register(r) => return self.register(r).await.map(Some),
            Says::Abort(t) => {
                let done = self.change(t.task, Change::Abort).await?;
                if done.is_ok()
                    && let Some(id) = self.tasks.remove(&t.task)
                {
                    self.names.remove(&id);
                }
                (Some(t.task), done)
            }
            Says::Promote(t) => (Some(t.task), self.change(t.task, Change::Promote).await?),
            Says::Suspend(_) => (None, self.tell(Change::Suspend(self.id)).await?),
            Says::Resume(_) => (None, self.tell(Change::Resume(self.id)).await?),
            Says::Priority(p) => (None, self.tell(Change::Priority(self.id, p)).await?),
            Says::Taken(sectors) => {
                self.taken(sectors).await?;
                return Ok(None);
            }
            Says::Data(d) => return self.data(d).await,
            Says::Foreground(f) => return self.foreground(f).await,
        };
        Ok(done.err().map(|why| refused(task, &why)))
    }

    async fn register(&mut self, r: v1::Register) -> Result<Hears, Status> {
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
            && let Some(why) = self.forbids(&ranges)
        {
            return Ok(refused(task, &why));
        }
        let spec = TaskSpec { kind, ranges, blksize: r.blksize, min_pickup: r.min_pickup };
        let (session, point_in_time) = (self.id, r.point_in_time);
        let registered =
            call(&self.service.engine, |reply| Call::Register { session, spec, point_in_time, reply }).await;
        Ok(match registered.map_err(ended)? {
            Ok(id) => {
                self.tasks.insert(r.task, id);
                self.names.insert(id, r.task);
                Hears::Registered(v1::TaskRef { task: r.task })
            }
            Err(why) => refused(task, &why.to_string()),
        })
    }

    /// Returns why this session must not write these ranges.
    fn forbids(&self, ranges: &[TaskRange]) -> Option<String> {
        let client = self.service.cache.is_none();
        client.then(|| self.service.cached.forbids(&self.service.exports, ranges)).flatten()
    }

    async fn change(&self, task: u64, what: fn(SessionId, TaskId) -> Change) -> Result<Result<(), String>, Status> {
        match self.tasks.get(&task) {
            Some(&id) => self.tell(what(self.id, id)).await,
            None => Ok(Err("no such task, or it has ended".into())),
        }
    }

    async fn tell(&self, what: Change) -> Result<Result<(), String>, Status> {
        let done = call(&self.service.engine, |reply| Call::Change { what, reply }).await.map_err(ended)?;
        Ok(done.map_err(|e| e.to_string()))
    }

    async fn taken(&self, sectors: u64) -> Result<(), Status> {
        self.service.engine.call(Telling::Call(Call::Taken { session: self.id, sectors })).await.map_err(ended)
    }

    async fn data(&self, d: v1::Data) -> Result<Option<Hears>, Status> {
        let sector = u64::from(self.service.exports.sector_bytes);
        let (count, rest) = (d.data.len() as u64 / sector, d.data.len() as u64 % sector);
        let Some(&task) = self.tasks.get(&d.task).filter(|_| rest == 0 && count > 0) else {
            return Ok(Some(Hears::NotTaken(v1::Piece { task: d.task, lbn: d.lbn, count })));
        };
        // Each piece has its own memory, so that only the unwritten rest of a piece is kept.
        let most = (PIECE / sector).max(1);
        for (n, piece) in d.data.chunks((most * sector) as usize).enumerate() {
            let range = TaskRange { lbn: d.lbn.saturating_add(n as u64 * most), count: piece.len() as u64 / sector };
            let data = Bytes::copy_from_slice(piece);
            let told = Telling::Call(Call::Data { session: self.id, task, range, data });
            self.service.engine.call(told).await.map_err(ended)?;
        }
        Ok(None)
    }

    async fn foreground(&mut self, f: v1::Foreground) -> Result<Option<Hears>, Status> {
        let sector = u64::from(self.service.exports.sector_bytes);
        let (bytes, end) = (u64::from(f.count) * sector, f.lbn.checked_add(u64::from(f.count)));
        let fits = f.count > 0 && bytes <= u64::from(MOST_BYTES) && end.is_some_and(|e| e <= self.service.sectors);
        let (kind, right) = match v1::Kind::try_from(f.kind) {
            Ok(v1::Kind::Read) => (Kind::Read, fits && f.data.is_empty()),
            Ok(v1::Kind::Write) => (Kind::Write, fits && f.data.len() as u64 == bytes),
            Ok(v1::Kind::Flush) => (Kind::Flush, f.data.is_empty()),
            Err(_) => (Kind::Flush, false),
        };
        let past = kind == Kind::Write && right;
        let past = past.then(|| self.forbids(&[TaskRange { lbn: f.lbn, count: u64::from(f.count) }])).flatten();
        let wrong = "a request: expected sectors of the disk and a write's data, found something else";
        if let Some(why_not) = past.or((!right).then(|| wrong.into())) {
            let fault = v1::Fault::Invalid.into();
            return Ok(Some(Hears::Answered(v1::Answered { token: f.token, data: Bytes::new(), why_not, fault })));
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
        let ask = Ask {
            kind,
            lbn,
            count,
            fua: f.fua,
            owner: self.service.owner(),
            data: f.data,
            reply: Some((self.reply.clone(), self.next)),
            share,
            preserves: false,
        };
        self.service.engine.tell(Telling::Submit(ask)).map_err(ended)
    }

    /// Converts an event of the engine for the client.
    async fn told(&mut self, told: Told) -> Result<Option<Hears>, Status> {
        match told {
            Told::Suspended(suspended) => return Ok(Some(Hears::Suspended(suspended))),
            Told::Gone => return Ok(Some(Hears::Gone(v1::Empty {}))),
            _ => {}
        }
        let piece = |task, range: TaskRange| v1::Piece { task, lbn: range.lbn, count: range.count };
        let name = told.task().and_then(|t| self.names.get(&t).copied());
        let Some(task) = name else {
            // The task was aborted in the meantime: its late data counts as taken.
            if let Told::Delivered { range, .. } = told {
                self.taken(range.count).await?;
            }
            return Ok(None);
        };
        Ok(Some(match told {
            Told::Delivered { range, data, .. } => Hears::Delivered(v1::Data { task, lbn: range.lbn, data }),
            Told::Wanted { range, .. } => Hears::Wanted(piece(task, range)),
            Told::Written { range, .. } => Hears::Written(piece(task, range)),
            Told::Superseded { range, .. } => Hears::Superseded(piece(task, range)),
            Told::Failed { range, fault, .. } => {
                let (why, fault) = (fault.to_string(), v1::Fault::from(fault).into());
                Hears::Failed(v1::Failed { task, lbn: range.lbn, count: range.count, why, fault })
            }
            Told::NotTaken { range, .. } => Hears::NotTaken(piece(task, range)),
            Told::Done { task: id } => {
                self.names.remove(&id);
                self.tasks.remove(&task);
                Hears::Done(v1::TaskRef { task })
            }
            Told::Broken { task: id, range } => {
                self.names.remove(&id);
                self.tasks.remove(&task);
                Hears::Broken(piece(task, range))
            }
            Told::Suspended(suspended) => Hears::Suspended(suspended),
            Told::Gone => Hears::Gone(v1::Empty {}),
            Told::End => Hears::End(v1::Empty {}),
        }))
    }
}

fn event(e: Hears) -> Result<SessionEvent, Status> {
    Ok(SessionEvent { event: Some(e) })
}

fn refused(task: Option<u64>, why: &str) -> Hears {
    Hears::Refused(v1::Refused { task, why: why.into() })
}

fn answered(token: u64, answer: Answer) -> Hears {
    Hears::Answered(match answer {
        Ok(data) => v1::Answered { token, data, why_not: String::new(), fault: v1::Fault::None.into() },
        Err(fault) => {
            let (why_not, fault) = (fault.to_string(), v1::Fault::from(fault).into());
            v1::Answered { token, data: Bytes::new(), why_not, fault }
        }
    })
}
