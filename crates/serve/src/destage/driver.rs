//! The connection between the cache's state machine and a server, in another process or in this
//! one: one session at a time, which is reopened when it is lost.

use std::time::Duration;

use headtime_sched::write_cache::{QUIET, TICK};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, channel};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tonic::{Status, Streaming};

use super::Counts;
use super::machine::{Machine, from_client_event, to_client_call, to_request};
use crate::apps::link::disk;
use crate::control::client::{ClientError, Session, connect, in_time, info};
use crate::control::service::Service;
use crate::control::session;
use crate::control::socket::Socket;
use crate::control::v1::session_call::Call;
use crate::control::v1::session_event::Event;
use crate::control::v1::{self, Export, InfoReply, SessionCall, SessionEvent};
use crate::device::Fault;
use crate::engine::messages::EngineMessage;
use crate::note::{About, Note};

/// The interval between two ticks of the machine.
const BATCH: Duration = Duration::from_nanos(TICK.0);
/// The interval at which failed writes are retried.
const RETRY: Duration = Duration::from_secs(2);
/// Delays between attempts to reach the server: the first, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
/// How long an unreachable server is waited for at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// How much longer a reachable one may take without any progress.
const LAST_UP: Duration = Duration::from_secs(55);
/// Calls and events queued between a cache of this server and its session.
const CALLS: usize = 64;
const EVENTS: usize = 64;
/// The session's share of background work: the default of background applications.
const PRIORITY: u32 = 100;
/// Messages taken in one batch.
const MAX_A_ROUND: usize = 64;

/// The export that is written to.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// The control interface's socket.
    pub control: Socket,
    /// The export's name.
    pub export: String,
    /// The session's share of background work.
    pub priority: u32,
}

/// Why an export cannot be destaged to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The server cannot be queried.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server has no such export.
    #[error("the server has no export \"{0}\"")]
    NoExport(String),
    /// The export is read-only.
    #[error("export \"{0}\" is read-only")]
    ReadOnly(String),
    /// The export has a write cache in the server.
    #[error("export \"{0}\" has a write cache of the server's: another one in front of it would gain nothing")]
    Cached(String),
    /// The export is reorganised: only its own clients may write there.
    #[error("export \"{0}\" is reorganised, and only its own clients may write there: it cannot have a write cache")]
    Reorganised(String),
    /// The server does no background work.
    #[error(
        "the server does no background work: its scheduler.fill is \"none\", or its disk's write cache is on, or it is \
         no rotating disk"
    )]
    NoFill,
    /// The engine of this server has ended.
    #[error("the scheduler has ended")]
    Ended,
    /// The export has changed; the server was restarted.
    #[error(
        "export \"{export}\" is another than before; what is cached was meant for that on {before}, this is on {found}"
    )]
    Changed {
        /// The export's name.
        export: String,
        /// Its previous disk and sectors.
        before: String,
        /// Its current disk and sectors.
        found: String,
    },
}

/// What is left at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Acknowledged bytes that are not on the disk.
    pub bytes: u64,
    /// Those of them that the disk failed to write.
    pub failed: u64,
    /// Whether the disk was flushed after the last write; otherwise some data may only be in the
    /// disk's cache.
    pub flushed: bool,
    /// The counters.
    pub counts: Counts,
}

type Link = (Sender<SessionCall>, Events);

/// The events of a session.
#[derive(Debug)]
enum Events {
    /// A session with another process.
    Far(Box<Streaming<SessionEvent>>),
    /// A session within this process.
    Near(Receiver<Result<SessionEvent, Status>>),
}

impl Events {
    async fn message(&mut self) -> Result<Option<SessionEvent>, Status> {
        match self {
            Events::Far(events) => events.message().await,
            Events::Near(events) => events.recv().await.transpose(),
        }
    }
}

/// The location of sessions.
#[derive(Clone, Debug)]
pub enum Place {
    /// In another process, whose export must stay as it was at first.
    Served {
        /// The server and the export.
        upstream: Upstream,
        /// The export, and the server's disk, as they were at first.
        as_before: Box<(Export, InfoReply)>,
    },
    /// In this process.
    Inside(Box<Service>),
}

impl Place {
    /// Returns the name of the connection for messages.
    fn what(&self) -> &'static str {
        match self {
            Place::Served { .. } => "the server",
            Place::Inside(_) => "the session with the scheduler",
        }
    }

    async fn open(&self) -> Result<Link, UpstreamError> {
        match self {
            Place::Served { upstream, as_before } => upstream.open(as_before).await,
            Place::Inside(service) => {
                let (asked, _) = oneshot::channel();
                service.engine.call(EngineMessage::Snapshot(asked)).await.map_err(|_| UpstreamError::Ended)?;
                let (calls, heard) = channel(CALLS);
                let (out, events) = channel(EVENTS);
                let name = service.cache.map_or("", |c| &service.exports.specs[c.export as usize].name);
                let name = format!("write cache {name}");
                // The channel has room for the first call.
                let _ = calls
                    .try_send(SessionCall { call: Some(Call::Open(v1::Open { name, priority: PRIORITY, window: 1 })) });
                tokio::spawn(session::run(Service::clone(service), heard, out));
                Ok((calls, Events::Near(events)))
            }
        }
    }

    /// Retries until there is a session, none is possible any more, or the driver has ended.
    async fn find(self, links: Sender<Result<Link, UpstreamError>>, note: Note, first: Duration) {
        let (mut pause, mut said) = (PAUSES[0], String::new());
        sleep(first).await;
        loop {
            match self.open().await {
                found @ (Ok(_) | Err(UpstreamError::Ended)) => {
                    // An error means that the driver has ended.
                    let _ = links.send(found).await;
                    return;
                }
                Err(e) => {
                    let why = e.to_string();
                    if why != said {
                        let kept = "everything is kept, and tried again";
                        note(About::Warning, format!("the server cannot be reached: {why}; {kept}"));
                        said = why;
                    }
                }
            }
            tokio::select! {
                biased;
                () = links.closed() => return,
                () = sleep(pause) => pause = (2 * pause).min(PAUSES[1]),
            }
        }
    }
}

impl Upstream {
    /// Returns the export, if it can be destaged to and the server answers in time.
    pub async fn look(&self) -> Result<(Export, InfoReply), UpstreamError> {
        let asking = async {
            let mut control = connect(&self.control).await?;
            info(&mut control).await
        };
        let info: InfoReply = in_time(&self.control, asking).await?;
        let found = info.exports.iter().find(|e| e.name == self.export).cloned();
        let export = found.ok_or_else(|| UpstreamError::NoExport(self.export.clone()))?;
        match (export.read_only, info.fills) {
            (true, _) => Err(UpstreamError::ReadOnly(self.export.clone())),
            _ if export.write_cache => Err(UpstreamError::Cached(self.export.clone())),
            _ if export.moved_units.is_some() => Err(UpstreamError::Reorganised(self.export.clone())),
            (_, false) => Err(UpstreamError::NoFill),
            _ => Ok((export, info)),
        }
    }

    async fn open(&self, as_before: &(Export, InfoReply)) -> Result<Link, UpstreamError> {
        let (export, info) = self.look().await?;
        // Cached data belongs to one disk. Writing it would damage another of the same size or
        // model.
        let before = (as_before.0.first, as_before.0.sectors, as_before.1.sector_bytes, as_before.1.sectors);
        if (export.first, export.sectors, info.sector_bytes, info.sectors) != before
            || disk(&info) != disk(&as_before.1)
        {
            let (before, found) = (place(&as_before.0, &as_before.1), place(&export, &info));
            return Err(UpstreamError::Changed { export: self.export.clone(), before, found });
        }
        let mut control = connect(&self.control).await?;
        let name = format!("destage {}", self.export);
        // Nothing is read in the background, so the smallest window suffices.
        let session = Session::open(&mut control, &info, &name, self.priority, 1).await?;
        let (calls, events) = session.split();
        Ok((calls, Events::Far(Box::new(events))))
    }
}

/// Describes the sectors and the disk of an export.
fn place(export: &Export, info: &InfoReply) -> String {
    let Export { first, sectors, .. } = export;
    let (disk, end, bytes) = (disk(info), first.saturating_add(*sectors), info.sector_bytes);
    format!("{disk}, sectors {first} to {end} of {}, each of {bytes} bytes", info.sectors)
}

/// Runs a machine against a server until `stop` becomes true and everything is written, or cannot
/// be.
#[derive(Debug)]
pub struct Driver {
    /// The cache's state machine.
    pub machine: Machine,
    /// The source of requests.
    pub ingress: UnboundedReceiver<EngineMessage>,
    /// The destination of counters.
    pub counts: watch::Sender<Counts>,
    /// Without FILL: ticks since the last client request; `None` with FILL.
    quiet: Option<u32>,
}

impl Driver {
    /// Creates a driver from a machine, a source of requests, and a destination of counters.
    pub fn new(machine: Machine, ingress: UnboundedReceiver<EngineMessage>, counts: watch::Sender<Counts>) -> Driver {
        Driver { machine, ingress, counts, quiet: None }
    }

    /// Writes blocks while there are no client requests, since there is no FILL.
    pub fn without_fill(self) -> Driver {
        Driver { quiet: Some(0), ..self }
    }

    /// Runs the driver.
    pub async fn run(mut self, place: Place, mut stop: watch::Receiver<bool>, note: Note) -> Left {
        let (found, mut links) = channel::<Result<Link, UpstreamError>>(1);
        let find = |pause| {
            tokio::spawn(place.clone().find(found.clone(), note.clone(), pause));
        };
        find(Duration::ZERO);
        let (mut calls, mut events): (Option<Sender<SessionCall>>, Option<Events>) = (None, None);
        let (mut batch, mut retry) = (interval(BATCH), interval(RETRY));
        batch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut was_up, mut gives_up, mut was_left) = (false, None::<Instant>, 0);
        let mut found_at = Instant::now();
        loop {
            let mut lost = None;
            // A fixed order keeps simulations deterministic: rare events come first, and client
            // requests, which could starve all others, last.
            tokio::select! {
                biased;
                changed = stop.changed(), if gives_up.is_none() => {
                    if changed.is_err() || *stop.borrow() {
                        self.machine.drain();
                        gives_up = Some(Instant::now() + SHUTDOWN_TIMEOUT);
                    }
                }
                _ = batch.tick() => {
                    self.machine.tick();
                    self.quiet = self.quiet.map(|ticks| ticks + 1);
                    self.counts.send_replace(self.machine.counts());
                    let left = self.machine.left().0;
                    // The deadline is extended while there is progress.
                    if std::mem::replace(&mut was_left, left) > left {
                        gives_up = gives_up.map(|_| Instant::now() + SHUTDOWN_TIMEOUT);
                    }
                    if gives_up.is_some_and(|at| self.is_over(events.is_some(), at)) {
                        let (bytes, failed) = self.machine.left();
                        let (flushed, counts) = (self.machine.is_flushed(), self.machine.counts());
                        return Left { bytes, failed, flushed, counts };
                    }
                }
                _ = retry.tick() => self.machine.retry(),
                Some(link) = links.recv(), if events.is_none() => match link {
                    Ok(link) => {
                    (calls, events) = (Some(link.0), Some(link.1));
                    if std::mem::replace(&mut was_up, true) {
                        note(About::Server, format!("{} is there again", place.what()));
                    }
                    self.machine.connected();
                    found_at = Instant::now();
                    }
                    Err(why) => self.end(&why.to_string(), &note),
                },
                event = hear(&mut events) => match event {
                    Ok(event) => from_client_event(event).into_iter().for_each(|event| self.machine.event(event)),
                    Err(why) => lost = Some(why),
                },
                // The end of a session may be seen here first, or in its events.
                there_is = room(&calls), if self.machine.has_calls() => if there_is && let Some(calls) = &calls {
                    while self.machine.has_calls() && let Ok(permit) = calls.try_reserve() {
                        permit.send(SessionCall { call: self.machine.next_call().map(to_client_call) });
                    }
                } else {
                    lost = Some("the session has ended".into());
                },
                Some(message) = self.ingress.recv() => {
                    self.handle(message);
                    for _ in 1..MAX_A_ROUND {
                        let Ok(message) = self.ingress.try_recv() else { break };
                        self.handle(message);
                    }
                }
            }
            // Without FILL: one block at a time.
            if self.quiet.is_some_and(|ticks| ticks >= QUIET) {
                self.machine.use_idle_time();
            }
            self.machine.notes().into_iter().for_each(|n| note(About::Server, n));
            let gone = self.machine.is_gone();
            if gone && events.is_some() {
                lost = Some("its device is gone".into());
            }
            if let Some(why) = lost.filter(|_| events.is_some()) {
                (calls, events) = (None, None);
                match place {
                    // Another server may restart; the device of this one does not return.
                    Place::Inside(_) if gone => self.end(&why, &note),
                    _ => {
                        self.machine.disconnected();
                        let (what, wait) = (place.what(), "requests wait until it is there again");
                        note(About::Warning, format!("{what} is gone ({why}); {wait}"));
                        // A server that ends each session at once is not retried without a delay.
                        find(if found_at.elapsed() < PAUSES[1] { PAUSES[1] } else { PAUSES[0] });
                    }
                }
            }
            while let Some((ask, answer)) = self.machine.next_answer() {
                ask.answer(answer);
            }
        }
    }

    /// Fails all requests, since this server's disk is gone for good.
    fn end(&mut self, why: &str, note: &Note) {
        self.machine.abandon(Fault::Gone);
        note(About::Warning, format!("the disk is gone ({why}); requests fail"));
    }

    /// At shutdown, returns whether nothing more can be done.
    fn is_over(&self, up: bool, gives_up: Instant) -> bool {
        let late = Instant::now() >= gives_up;
        match up {
            _ if self.machine.is_idle() => true,
            // Failing writes are retried for as long as an unreachable server is waited for; others
            // are waited for longer.
            true => late && self.machine.has_failed() || Instant::now() >= gives_up + LAST_UP,
            false => late,
        }
    }

    fn handle(&mut self, message: EngineMessage) {
        self.quiet = self.quiet.map(|_| 0);
        match message {
            EngineMessage::Submit(submission) => self.machine.ask(to_request(submission)),
            // A cache does no background work, and is shut down separately.
            EngineMessage::Session(call) => call.refuse_without_core(),
            EngineMessage::Stream(call) => call.carry_out(None, headtime_disk::Time::ZERO),
            // Nor is a reorganised export cached.
            EngineMessage::Settings(_) | EngineMessage::Layout(_) | EngineMessage::Snapshot(_) | EngineMessage::End => {
            }
        }
    }
}

/// Returns the next event; never completes without a session.
async fn hear(events: &mut Option<Events>) -> Result<Event, String> {
    let Some(events) = events else { return std::future::pending().await };
    loop {
        match events.message().await {
            Ok(Some(SessionEvent { event: Some(Event::End(_)) })) | Ok(None) => return Err("it ended".into()),
            Ok(Some(SessionEvent { event: Some(event) })) => return Ok(event),
            Ok(Some(SessionEvent { event: None })) => {}
            Err(status) => return Err(status.message().into()),
        }
    }
}

/// Returns whether a call can be sent, once there is room or the session has ended; never completes
/// without a session.
async fn room(calls: &Option<Sender<SessionCall>>) -> bool {
    let Some(calls) = calls else { return std::future::pending().await };
    calls.reserve().await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_that_moved_on_its_disk_is_reported_with_both_places() {
        let info =
            InfoReply { disk: "d".into(), disk_id: "1".into(), sectors: 100, sector_bytes: 512, ..Default::default() };
        let at = |first| place(&Export { first, sectors: 20, ..Default::default() }, &info);
        assert_eq!(at(10), "d [1], sectors 10 to 30 of 100, each of 512 bytes");
        assert_ne!(at(10), at(11));
    }
}
