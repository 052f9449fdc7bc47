//! The server side of the control interface.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use headtime_sched::SessionId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;
use tonic::{Request, Response, Status, Streaming};

use super::arriving::Bounded;
use super::caches::Cached;
use super::counts;
use super::incoming::{MOST_STREAMS, incoming};
use super::session;
use super::streams;
use super::v1::control_server::{Control, ControlServer};
use super::v1::{
    ChangeReply, ChangeRequest, CloseStreamReply, CloseStreamRequest, Export, InfoReply, InfoRequest, SessionCall,
    SessionEvent, Snapshot, StatisticsRequest, StreamReply, StreamRequest, change_request,
};
use super::{CONNECTION_WINDOW, MOST_MESSAGE, STREAM_WINDOW};
use crate::engine::inbox::{NotTold, Outbox};
use crate::engine::telling::{Call, Change, Telling};
use crate::net::address::Listening;
use crate::net::budget::Budget;
use crate::net::exports::Exports;
use crate::note::Note;
use crate::streams::Live;

/// The shortest interval of periodic statistics.
const FASTEST: Duration = Duration::from_millis(50);
/// Messages that may be queued for a client's connection.
const MESSAGES: usize = 4;

/// The served disk and the handle to its engine.
#[derive(Clone, Debug)]
pub struct Service {
    /// The drive's name.
    pub disk: String,
    /// The disk's identifier.
    pub disk_id: String,
    /// Sectors of the disk.
    pub sectors: u64,
    /// The exports.
    pub exports: Exports,
    /// Whether background work is enabled.
    pub fills: bool,
    /// The handle to the engine.
    pub engine: Outbox<Telling>,
    /// The budget shared by all clients.
    pub budget: Budget,
    /// The names that clients gave their sessions.
    pub names: Arc<Mutex<BTreeMap<u32, String>>>,
    /// The streams; `None` if the server has no streams.
    pub streams: Option<Live>,
    /// The exports with a write cache of this server.
    pub cached: Cached,
    /// Set if this service is used by a write cache of this server and not by clients.
    pub cache: Option<ForCache>,
}

/// The differences of a write cache's session from a client's.
#[derive(Clone, Copy, Debug)]
pub struct ForCache {
    /// The export's number. The cache's requests count as the export's.
    pub export: u32,
    /// Foreground requests in flight at a time.
    pub most: usize,
}

impl Service {
    /// Returns the owner number of requests over this interface.
    pub fn owner(&self) -> u32 {
        self.cache.map_or(self.exports.specs.len() as u32, |c| c.export)
    }

    async fn snapshot(&self) -> Result<Snapshot, NotTold> {
        counts::take(&self.engine, &self.exports, &self.names, &self.cached).await
    }

    async fn send_statistics(self, every: Option<Duration>, out: Sender<Result<Snapshot, Status>>) {
        loop {
            let Ok(snapshot) = self.snapshot().await else { return };
            if out.send(Ok(snapshot)).await.is_err() {
                return;
            }
            match every {
                Some(every) => tokio::time::sleep(every).await,
                None => return,
            }
        }
    }
}

/// Converts the failure to reach the engine to a status.
pub fn ended(why: NotTold) -> Status {
    match why {
        NotTold::Full => Status::internal("the engine's queue is full, which is a bug"),
        NotTold::Ended => Status::unavailable("the server ends"),
    }
}

/// Sends the engine a call and waits for its answer.
pub async fn call<T>(
    engine: &Outbox<Telling>,
    call: impl FnOnce(crate::engine::telling::Reply<T>) -> Call,
) -> Result<Result<T, headtime_sched::TaskError>, NotTold> {
    let (reply, answer) = oneshot::channel();
    engine.call(Telling::Call(call(reply))).await?;
    answer.await.map_err(|_| NotTold::Ended)
}

type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Control for Service {
    async fn info(&self, _: Request<InfoRequest>) -> Result<Response<InfoReply>, Status> {
        let exports = self.exports.specs.iter().enumerate().map(|(at, s)| Export {
            name: s.name.clone(),
            first: s.first,
            sectors: s.sectors,
            read_only: s.read_only,
            weight: self.exports.weight(at),
            write_cache: self.cached.has(at as u32),
        });
        Ok(Response::new(InfoReply {
            version: env!("CARGO_PKG_VERSION").into(),
            disk: self.disk.clone(),
            sectors: self.sectors,
            sector_bytes: self.exports.sector_bytes,
            exports: exports.collect(),
            fills: self.fills,
            disk_id: self.disk_id.clone(),
        }))
    }

    type SessionStream = Messages<SessionEvent>;

    async fn session(&self, request: Request<Streaming<SessionCall>>) -> Result<Response<Self::SessionStream>, Status> {
        let (out, events) = channel(MESSAGES);
        tokio::spawn(session::run(self.clone(), request.into_inner(), out));
        Ok(Response::new(Box::pin(ReceiverStream::new(events))))
    }

    type StatisticsStream = Messages<Snapshot>;

    async fn statistics(
        &self,
        request: Request<StatisticsRequest>,
    ) -> Result<Response<Self::StatisticsStream>, Status> {
        let every = Duration::from_millis(u64::from(request.into_inner().every_ms));
        let every = (!every.is_zero()).then(|| every.max(FASTEST));
        let (out, events) = channel(1);
        tokio::spawn(self.clone().send_statistics(every, out));
        Ok(Response::new(Box::pin(ReceiverStream::new(events))))
    }

    async fn change(&self, request: Request<ChangeRequest>) -> Result<Response<ChangeReply>, Status> {
        let ChangeRequest { session, change } = request.into_inner();
        let session = SessionId(session);
        let what = match change {
            Some(change_request::Change::Suspended(true)) => Change::Suspend(session),
            Some(change_request::Change::Suspended(false)) => Change::Resume(session),
            Some(change_request::Change::Priority(p)) => Change::Priority(session, p),
            Some(change_request::Change::Close(_)) => Change::Close(session),
            None => return Err(Status::invalid_argument("expected a change, found none")),
        };
        if self.cached.owns(session) {
            let why = "is that of a write cache: it lasts as long as the server";
            return Err(Status::failed_precondition(format!("session {} {why}", session.0)));
        }
        if let Change::Close(session) = what {
            // The session's end learns from the missing name that a client closed it. The engine
            // closes the session before it answers this call, which may take a while.
            self.names.lock().unwrap_or_else(|e| e.into_inner()).remove(&session.0);
        }
        let done = call(&self.engine, |reply| Call::Change { what, reply }).await.map_err(ended)?;
        done.map_err(|e| Status::failed_precondition(e.to_string()))?;
        Ok(Response::new(ChangeReply {}))
    }

    async fn ask_stream(&self, request: Request<StreamRequest>) -> Result<Response<StreamReply>, Status> {
        streams::ask(self.streams.as_ref(), &self.exports, request.into_inner()).await.map(Response::new)
    }

    async fn open_stream(&self, request: Request<StreamRequest>) -> Result<Response<StreamReply>, Status> {
        streams::open(self.streams.as_ref(), &self.exports, request.into_inner()).await.map(Response::new)
    }

    async fn close_stream(&self, request: Request<CloseStreamRequest>) -> Result<Response<CloseStreamReply>, Status> {
        streams::close(self.streams.as_ref(), &self.exports, &request.into_inner().export).await?;
        Ok(Response::new(CloseStreamReply {}))
    }
}

/// Serves clients until `end` completes.
pub async fn serve(
    service: Service,
    listening: Listening,
    note: Note,
    end: impl Future<Output = ()>,
) -> Result<(), String> {
    let Listening::Unix(listener, _file) = listening else {
        return Err("the control interface is for a unix socket".into());
    };
    over(service, incoming(listener, note), end).await
}

/// Serves clients over any kind of connection.
pub async fn over<C>(
    service: Service,
    connections: impl Stream<Item = io::Result<C>>,
    end: impl Future<Output = ()>,
) -> Result<(), String>
where
    C: AsyncRead + AsyncWrite + Connected + Send + Unpin + 'static,
{
    let server =
        ControlServer::new(service).max_decoding_message_size(MOST_MESSAGE).max_encoding_message_size(MOST_MESSAGE);
    let mut builder = tonic::transport::Server::builder()
        .layer(Bounded::default())
        .max_concurrent_streams(MOST_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let serving = builder.add_service(server).serve_with_incoming_shutdown(connections, end);
    serving.await.map_err(|e| e.to_string())
}
