//! Between the machine and a server, another program or this one: one session, and another when it
//! is lost.

use std::time::Duration;

use headtime_sched::write_cache::policy::{QUIET, TICK};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, channel};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tonic::{Status, Streaming};

use super::Counts;
use super::machine::{Machine, asked, heard, said};
use crate::apps::link::disk;
use crate::control::client::{ClientError, Session, connect, in_time, info};
use crate::control::service::Service;
use crate::control::session;
use crate::control::socket::Socket;
use crate::control::v1::session_call::Call;
use crate::control::v1::session_event::Event;
use crate::control::v1::{self, Export, InfoReply, SessionCall, SessionEvent};
use crate::device::Fault;
use crate::engine::telling::Telling;
use crate::note::{About, Note};

/// Time between two ticks of the machine.
const BATCH: Duration = Duration::from_nanos(TICK.0);
/// How often what could not be written is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// Pauses between attempts to reach the server.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
/// At the end, how long a server that is not there is waited for.
const LAST: Duration = Duration::from_secs(5);
/// And then, how long one that is there may take without anything being written.
const LAST_UP: Duration = Duration::from_secs(55);
/// Calls and events that wait between a cache of this program and its session.
const CALLS: usize = 64;
const EVENTS: usize = 64;
/// Its session's part of what is free: what background applications have when they do not say
/// otherwise.
const PRIORITY: u32 = 100;
/// Tellings taken in one go.
const MOST_A_ROUND: usize = 64;

/// What is written to, and how.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// The control interface's socket.
    pub control: Socket,
    /// The export's name.
    pub export: String,
    /// The session's part of what is free.
    pub priority: u32,
}

/// Why an export cannot be destaged to.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The server cannot be asked.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// It has no such export.
    #[error("the server has no export \"{0}\"")]
    NoExport(String),
    /// Nothing can be written to it.
    #[error("export \"{0}\" is read-only")]
    ReadOnly(String),
    /// It has a write cache of the server's.
    #[error("export \"{0}\" has a write cache of the server's: another one in front of it would gain nothing")]
    Cached(String),
    /// Nothing is written for free there.
    #[error(
        "the server does no background work: its scheduler.fill is \"none\", or its disk's write cache is on, or it is \
         no rotating disk"
    )]
    NoFill,
    /// The engine of this program has ended.
    #[error("the scheduler has ended")]
    Ended,
    /// After a new start of the server it is something else.
    #[error(
        "export \"{export}\" is another than before; what is cached was meant for that on {before}, this is on {found}"
    )]
    Changed {
        /// The export's name.
        export: String,
        /// The disk and the sectors that it was on.
        before: String,
        /// Those that it is on.
        found: String,
    },
}

/// What is left at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Bytes that clients were told are written, and that are not on the disk.
    pub bytes: u64,
    /// Those of them that the disk did not take.
    pub failed: u64,
    /// Whether the disk was flushed after the last of them: without that, a cache of the disk's may
    /// have them.
    pub flushed: bool,
    /// What was done.
    pub counts: Counts,
}

type Link = (Sender<SessionCall>, Events);

/// What a session says.
#[derive(Debug)]
enum Events {
    /// Another program's.
    Far(Box<Streaming<SessionEvent>>),
    /// This program's.
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

/// Where sessions are.
#[derive(Clone, Debug)]
pub enum Place {
    /// In another program, whose export is as it was when it was looked at first.
    Served {
        /// Where.
        upstream: Upstream,
        /// The export, and the server's disk.
        as_before: Box<(Export, InfoReply)>,
    },
    /// In this one.
    Inside(Box<Service>),
}

impl Place {
    /// What may be lost and come back.
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
                service.engine.call(Telling::Snapshot(asked)).await.map_err(|_| UpstreamError::Ended)?;
                let (calls, heard) = channel(CALLS);
                let (out, events) = channel(EVENTS);
                let name = service.cache.map_or("", |c| &service.exports.specs[c.export as usize].name);
                let name = format!("write cache {name}");
                // There is room for the first.
                let _ = calls
                    .try_send(SessionCall { call: Some(Call::Open(v1::Open { name, priority: PRIORITY, window: 1 })) });
                tokio::spawn(session::run(Service::clone(service), heard, out));
                Ok((calls, Events::Near(events)))
            }
        }
    }

    /// Tries until there is a session, there can be none any more, or the driver has ended.
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
    /// The export, if it can be destaged to, and if the server says so in time.
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
            (_, false) => Err(UpstreamError::NoFill),
            _ => Ok((export, info)),
        }
    }

    async fn open(&self, as_before: &(Export, InfoReply)) -> Result<Link, UpstreamError> {
        let (export, info) = self.look().await?;
        // What is cached belongs to one disk. Another of the same size, or of the same model, would
        // be damaged by it.
        let before = (as_before.0.first, as_before.0.sectors, as_before.1.sector_bytes, as_before.1.sectors);
        if (export.first, export.sectors, info.sector_bytes, info.sectors) != before
            || disk(&info) != disk(&as_before.1)
        {
            let (before, found) = (place(&as_before.0, &as_before.1), place(&export, &info));
            return Err(UpstreamError::Changed { export: self.export.clone(), before, found });
        }
        let mut control = connect(&self.control).await?;
        let name = format!("destage {}", self.export);
        // Nothing is read in the background, so nothing is ever on its way.
        let session = Session::open(&mut control, &info, &name, self.priority, 1).await?;
        let (calls, events) = session.split();
        Ok((calls, Events::Far(Box::new(events))))
    }
}

/// Which sectors of which disk an export is.
fn place(export: &Export, info: &InfoReply) -> String {
    let Export { first, sectors, .. } = export;
    let (disk, end, bytes) = (disk(info), first.saturating_add(*sectors), info.sector_bytes);
    format!("{disk}, sectors {first} to {end} of {}, each of {bytes} bytes", info.sectors)
}

/// Runs a machine against a server until `stop` becomes true and everything is written, or cannot
/// be.
#[derive(Debug)]
pub struct Driver {
    /// What it runs.
    pub machine: Machine,
    /// Where requests come from.
    pub ingress: UnboundedReceiver<Telling>,
    /// Where counts go.
    pub counts: watch::Sender<Counts>,
    /// Without FILL, ticks since a client asked for something; `None` with it.
    quiet: Option<u32>,
}

impl Driver {
    /// A machine, where requests come from, and where counts go.
    pub fn new(machine: Machine, ingress: UnboundedReceiver<Telling>, counts: watch::Sender<Counts>) -> Driver {
        Driver { machine, ingress, counts, quiet: None }
    }

    /// The same where there is no FILL: blocks are written while no client asks for anything.
    pub fn without_fill(self) -> Driver {
        Driver { quiet: Some(0), ..self }
    }

    /// Runs it.
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
            // In this order, so that the same happens again in a simulation: what comes seldom
            // first, and clients, who could keep it from all else, last.
            tokio::select! {
                biased;
                changed = stop.changed(), if gives_up.is_none() => {
                    if changed.is_err() || *stop.borrow() {
                        self.machine.drain();
                        gives_up = Some(Instant::now() + LAST);
                    }
                }
                _ = batch.tick() => {
                    self.machine.tick();
                    self.quiet = self.quiet.map(|ticks| ticks + 1);
                    self.counts.send_replace(self.machine.counts());
                    let left = self.machine.left().0;
                    // As long as something is written, it goes on.
                    if std::mem::replace(&mut was_left, left) > left {
                        gives_up = gives_up.map(|_| Instant::now() + LAST);
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
                    Ok(event) => heard(event).into_iter().for_each(|event| self.machine.event(event)),
                    Err(why) => lost = Some(why),
                },
                // That a session has ended may be seen here first, or in its events.
                there_is = room(&calls), if self.machine.has_calls() => if there_is && let Some(calls) = &calls {
                    while self.machine.has_calls() && let Ok(permit) = calls.try_reserve() {
                        permit.send(SessionCall { call: self.machine.next_call().map(said) });
                    }
                } else {
                    lost = Some("the session has ended".into());
                },
                Some(told) = self.ingress.recv() => {
                    self.told(told);
                    for _ in 1..MOST_A_ROUND {
                        let Ok(told) = self.ingress.try_recv() else { break };
                        self.told(told);
                    }
                }
            }
            // Without FILL: a block, and the next one when that is written.
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
                    // Another server may start again; the device of this one does not come back.
                    Place::Inside(_) if gone => self.end(&why, &note),
                    _ => {
                        self.machine.disconnected();
                        let (what, wait) = (place.what(), "requests wait until it is there again");
                        note(About::Warning, format!("{what} is gone ({why}); {wait}"));
                        // One that ends each session at once is not asked without a pause.
                        find(if found_at.elapsed() < PAUSES[1] { PAUSES[1] } else { PAUSES[0] });
                    }
                }
            }
            while let Some((ask, answer)) = self.machine.next_answer() {
                ask.answer(answer);
            }
        }
    }

    /// The disk of this program will not come back.
    fn end(&mut self, why: &str, note: &Note) {
        self.machine.abandon(Fault::Gone);
        note(About::Warning, format!("the disk is gone ({why}); requests fail"));
    }

    /// At the end: whether nothing more can be done.
    fn is_over(&self, up: bool, gives_up: Instant) -> bool {
        let late = Instant::now() >= gives_up;
        match up {
            _ if self.machine.is_idle() => true,
            // What does not work is tried for as long as a server would be waited for; what does is
            // waited for.
            true => late && self.machine.has_failed() || Instant::now() >= gives_up + LAST_UP,
            false => late,
        }
    }

    fn told(&mut self, telling: Telling) {
        self.quiet = self.quiet.map(|_| 0);
        match telling {
            Telling::Submit(ask) => self.machine.ask(asked(ask)),
            // A cache does no background work, and has its own way to end.
            Telling::Call(call) => call.refuse_without_core(),
            Telling::Stream(call) => call.carry_out(None, headtime_disk::time::Time::ZERO),
            Telling::Shares(_) | Telling::Snapshot(_) | Telling::End => {}
        }
    }
}

/// The next event; never when there is no session.
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

/// Whether there is room for a call, when there is or never will be; does not end while there is no
/// session.
async fn room(calls: &Option<Sender<SessionCall>>) -> bool {
    let Some(calls) = calls else { return std::future::pending().await };
    calls.reserve().await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_that_moved_on_its_disk_is_told_from_where_it_was() {
        let info =
            InfoReply { disk: "d".into(), disk_id: "1".into(), sectors: 100, sector_bytes: 512, ..Default::default() };
        let at = |first| place(&Export { first, sectors: 20, ..Default::default() }, &info);
        assert_eq!(at(10), "d [1], sectors 10 to 30 of 100, each of 512 bytes");
        assert_ne!(at(10), at(11));
    }
}
