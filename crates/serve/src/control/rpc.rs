//! The server side of the control interface: its calls, and its listener.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use headtime_sched::{SessionId, TaskRange};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;
use tonic::{Request, Response, Status, Streaming};

use super::arriving::Bounded;
use super::incoming::{MAX_STREAMS, incoming};
use super::layouts::MoveError;
use super::service::Service;
use super::v1::control_server::{Control, ControlServer};
use super::v1::{
    self, ChangeReply, ChangeRequest, CloseStreamReply, CloseStreamRequest, Export, InfoReply, InfoRequest,
    LayoutReply, LayoutRequest, SessionEvent, Snapshot, StatisticsRequest, StreamReply, StreamRequest, change_request,
};
use super::{CONNECTION_WINDOW, MAX_MESSAGE, STREAM_WINDOW, session, streams};
use crate::engine::messages::SessionCall;
use crate::net::address::Listening;
use crate::note::Note;

/// The shortest interval of periodic statistics.
const MIN_INTERVAL: Duration = Duration::from_millis(50);
/// Messages that may be queued for a client's connection.
const MESSAGES: usize = 4;

type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Control for Service {
    async fn info(&self, _: Request<InfoRequest>) -> Result<Response<InfoReply>, Status> {
        let exports = self.exports.specs.iter().zip(self.exports.settings()).enumerate();
        let exports = exports.map(|(at, (s, settings))| Export {
            name: s.name.clone(),
            first: s.first,
            sectors: s.sectors,
            read_only: s.read_only,
            weight: settings.share.weight,
            write_cache: self.cached.has(at as u32),
            moved_units: self.layouts.moved(at as u32),
            reserve_within: self.layouts.reserve_within(at as u32),
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

    async fn session(
        &self,
        request: Request<Streaming<v1::SessionCall>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
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
        let every = (!every.is_zero()).then(|| every.max(MIN_INTERVAL));
        let (out, events) = channel(1);
        tokio::spawn(send_statistics(self.clone(), every, out));
        Ok(Response::new(Box::pin(ReceiverStream::new(events))))
    }

    async fn change(&self, request: Request<ChangeRequest>) -> Result<Response<ChangeReply>, Status> {
        let ChangeRequest { session, change } = request.into_inner();
        let session = SessionId(session);
        let Some(change) = change else { return Err(Status::invalid_argument("expected a change, found none")) };
        if self.cached.owns(session) {
            let why = "is that of a write cache: it lasts as long as the server";
            return Err(Status::failed_precondition(format!("session {} {why}", session.0)));
        }
        if let change_request::Change::Close(_) = change {
            // The session's end learns from the missing name that a client closed it. The engine
            // closes the session before it answers this call, which may take a while.
            self.names.lock().unwrap_or_else(|e| e.into_inner()).remove(&session.0);
        }
        let rate = match change {
            change_request::Change::MaxMbS(mb) => session::rate(mb).map_err(Status::invalid_argument)?,
            _ => None,
        };
        let call = |reply| match change {
            change_request::Change::Suspended(true) => SessionCall::Suspend { session, reply },
            change_request::Change::Suspended(false) => SessionCall::Resume { session, reply },
            change_request::Change::Priority(priority) => SessionCall::SetPriority { session, priority, reply },
            change_request::Change::MaxMbS(_) => SessionCall::SetRate { session, rate, reply },
            change_request::Change::Close(_) => SessionCall::Close { session, reply },
        };
        let done = self.engine.session_call(call).await?;
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

    async fn layout(&self, request: Request<LayoutRequest>) -> Result<Response<LayoutReply>, Status> {
        let name = request.into_inner().export;
        let unknown = || Status::not_found(format!("no export {name:?}"));
        let export = self.exports.number(&name).ok_or_else(unknown)?;
        let none = || Status::failed_precondition(format!("export {name:?}: {}", MoveError::NotReorganised));
        let view = self.layouts.view(export, &self.engine).await?.ok_or_else(none)?;
        let range = |r: TaskRange| Some(v1::Range { lbn: r.lbn, count: r.count });
        Ok(Response::new(LayoutReply {
            unit_sectors: view.map.unit_sectors(),
            part: range(view.map.part()),
            slots: range(view.map.reserve()),
            moved: view.map.moved().map(|(unit, slot)| v1::UnitMove { unit, slot: Some(slot) }).collect(),
            hot: view.hot.iter().map(|h| v1::HotUnit { unit: h.unit, count: h.count, next: h.next }).collect(),
            accesses: view.accesses,
            gap: view.map.gap().and_then(range),
        }))
    }
}

/// Sends the counters once, or periodically until the client has gone or the engine has ended.
async fn send_statistics(service: Service, every: Option<Duration>, out: Sender<Result<Snapshot, Status>>) {
    loop {
        let Ok(snapshot) = service.snapshot().await else { return };
        if out.send(Ok(snapshot)).await.is_err() {
            return;
        }
        match every {
            Some(every) => tokio::time::sleep(every).await,
            None => return,
        }
    }
}

/// Serves clients until `end` completes.
pub(crate) async fn serve(
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
        ControlServer::new(service).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE);
    let mut builder = tonic::transport::Server::builder()
        .layer(Bounded::default())
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let serving = builder.add_service(server).serve_with_incoming_shutdown(connections, end);
    serving.await.map_err(|e| e.to_string())
}
