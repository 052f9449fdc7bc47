//! The client's side of the control interface, as the background applications use it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Status, Streaming};

use super::socket::Socket;
use super::v1::control_client::ControlClient;
use super::v1::session_call::Call;
use super::v1::session_event::Event;
use super::v1::{InfoReply, InfoRequest, Open, Opened, SessionCall, SessionEvent};
use super::{CONNECTION_WINDOW, MOST_MESSAGE, STREAM_WINDOW};
use crate::plain::plain;

/// What a call that was refused is answered.
pub type ClientStatus = Status;
/// What kind of refusal it is.
pub use tonic::Code;

/// Why a client did not get what it asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("{}: {why}", path.display())]
    Connect {
        /// Where.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Something listens there, and does not answer.
    #[error("{}: no answer within {} s", path.display(), ANSWERS.as_secs())]
    Silent {
        /// Where.
        path: PathBuf,
    },
    /// The server refused, or the connection broke.
    #[error("{}", said(.0))]
    Status(Box<Status>),
    /// A disk that there cannot be.
    #[error("the server says what cannot be: expected {expected}, found {found}")]
    Absurd {
        /// What there can be.
        expected: &'static str,
        /// What it said.
        found: u64,
    },
    /// Between two questions another server took the socket.
    #[error("the disk is another than the server said: expected {expected}, found {found}")]
    OtherDisk {
        /// Which disk it said.
        expected: String,
        /// Which one the session is on.
        found: String,
    },
    /// The server ends, or has ended the session.
    #[error("the server ended the session")]
    Ended,
}

impl From<Status> for ClientError {
    fn from(s: Status) -> ClientError {
        ClientError::Status(Box::new(s))
    }
}

impl ClientError {
    /// Whether it may go better when the server is there again.
    pub fn is_temporary(&self) -> bool {
        match self {
            ClientError::Connect { .. }
            | ClientError::Silent { .. }
            | ClientError::OtherDisk { .. }
            | ClientError::Ended => true,
            ClientError::Absurd { .. } => false,
            // A connection that breaks in the middle of a stream shows as any of these.
            ClientError::Status(s) => {
                use tonic::Code::{Cancelled, Internal, Unavailable, Unknown};
                matches!(s.code(), Unavailable | Unknown | Internal | Cancelled)
            }
        }
    }
}

/// How long a server may take to answer.
const ANSWERS: Duration = Duration::from_secs(10);

/// What the server at `path` answers, which it must do in time: one that was stopped takes
/// connections, and says nothing.
pub async fn in_time<T, E>(path: &Path, asking: impl Future<Output = Result<T, E>>) -> Result<T, E>
where
    E: From<ClientError>,
{
    let silent = |_| Err(ClientError::Silent { path: path.into() }.into());
    tokio::time::timeout(ANSWERS, asking).await.unwrap_or_else(silent)
}

/// A connection to a server.
pub type Control = ControlClient<Channel>;

/// Connects to a server.
pub async fn connect(at: impl Into<Socket>) -> Result<Control, ClientError> {
    let at: Socket = at.into();
    let path = at.to_path_buf();
    // The address means nothing: every connection goes to the socket.
    let endpoint = Endpoint::from_static("http://headtime.invalid")
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let connector = tower::service_fn(move |_: Uri| {
        let at = at.clone();
        async move { Ok::<_, io::Error>(TokioIo::new(at.connect().await?)) }
    });
    let channel = endpoint.connect_with_connector(connector).await;
    let channel = channel.map_err(|e| ClientError::Connect { path, why: root(&e) })?;
    Ok(ControlClient::new(channel).max_decoding_message_size(MOST_MESSAGE).max_encoding_message_size(MOST_MESSAGE))
}

/// What a refusal says; of a connection that broke, why.
fn said(status: &Status) -> String {
    std::error::Error::source(status).map_or_else(|| status.message().into(), root)
}

/// The cause at the bottom: the layers above it only say that something failed.
fn root(e: &dyn std::error::Error) -> String {
    e.source().map_or_else(|| e.to_string(), root)
}

/// What is served.
pub async fn info(control: &mut Control) -> Result<InfoReply, ClientError> {
    checked(control.info(InfoRequest {}).await?.into_inner())
}

/// Clients divide by what a server says of its disk, and multiply.
fn checked(mut info: InfoReply) -> Result<InfoReply, ClientError> {
    for shown in [&mut info.version, &mut info.disk, &mut info.disk_id] {
        *shown = plain(shown);
    }
    let absurd = |expected, found| Err(ClientError::Absurd { expected, found });
    if !info.sector_bytes.is_power_of_two() || !(512..=1 << 16).contains(&info.sector_bytes) {
        return absurd("sectors of 512 to 65536 bytes, a power of two", info.sector_bytes.into());
    }
    if info.sectors == 0 || info.sectors > u64::MAX / u64::from(info.sector_bytes) {
        return absurd("1 to 2^64 bytes in sectors", info.sectors);
    }
    match info.exports.iter().find(|e| e.first > info.sectors || e.sectors > info.sectors - e.first) {
        Some(e) => absurd("exports that end where the disk does", e.first),
        None => Ok(info),
    }
}

/// An open freeblock session.
#[derive(Debug)]
pub struct Session {
    calls: Sender<SessionCall>,
    events: Streaming<SessionEvent>,
    /// What the server said of it.
    pub opened: Opened,
}

/// Calls that may wait to be sent.
const CALLS: usize = 64;

impl Session {
    /// Opens a session of this name and priority on the disk of `info`; at most `window` delivered
    /// sectors are not yet acknowledged.
    pub async fn open(
        control: &mut Control,
        info: &InfoReply,
        name: &str,
        priority: u32,
        window: u64,
    ) -> Result<Session, ClientError> {
        let (calls, sent) = channel(CALLS);
        let open = Call::Open(Open { name: name.into(), priority, window });
        let _ = calls.send(SessionCall { call: Some(open) }).await;
        let mut events = control.session(ReceiverStream::new(sent)).await?.into_inner();
        match events.message().await?.and_then(|e| e.event) {
            Some(Event::Opened(opened)) if opened.disk_id != info.disk_id => {
                Err(ClientError::OtherDisk { expected: info.disk_id.clone(), found: opened.disk_id })
            }
            Some(Event::Opened(opened)) => Ok(Session { calls, events, opened }),
            _ => Err(ClientError::Ended),
        }
    }

    /// Says something. Waits while the server does not listen; whoever says much must fetch events
    /// meanwhile ([`Session::split`]).
    pub async fn say(&self, call: Call) -> Result<(), ClientError> {
        self.calls.send(SessionCall { call: Some(call) }).await.map_err(|_| ClientError::Ended)
    }

    /// The next event.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            match self.events.message().await? {
                Some(SessionEvent { event: Some(Event::End(_)) }) | None => return Err(ClientError::Ended),
                Some(SessionEvent { event: Some(e) }) => return Ok(e),
                Some(SessionEvent { event: None }) => {}
            }
        }
    }

    /// The way in and the way out apart, for two tasks.
    pub fn split(self) -> (Sender<SessionCall>, Streaming<SessionEvent>) {
        (self.calls, self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::v1;

    #[test]
    fn a_disk_that_there_cannot_be_is_refused() {
        let export = |first, sectors| v1::Export { first, sectors, ..v1::Export::default() };
        let disk =
            |sector_bytes, sectors, exports| InfoReply { sector_bytes, sectors, exports, ..InfoReply::default() };
        assert!(checked(disk(512, 100, vec![export(0, 100), export(100, 0)])).is_ok());
        assert!(checked(disk(1 << 16, 1, vec![])).is_ok());
        let named = InfoReply { disk: "a\u{1b}[2J".into(), ..disk(512, 100, vec![]) };
        assert_eq!(checked(named).unwrap().disk, "a[2J");
        for absurd in [
            disk(0, 100, vec![]),
            disk(520, 100, vec![]),
            disk(1 << 17, 100, vec![]),
            disk(512, 0, vec![]),
            disk(512, 1 << 60, vec![]),
            disk(512, 100, vec![export(101, 0)]),
            disk(512, 100, vec![export(1, u64::MAX)]),
        ] {
            assert!(matches!(checked(absurd), Err(ClientError::Absurd { .. })));
        }
    }
}
