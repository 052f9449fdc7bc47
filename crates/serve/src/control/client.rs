//! The client side of the control interface, used by the background applications.

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
use super::{CONNECTION_WINDOW, MAX_MESSAGE, STREAM_WINDOW};
use crate::plain::plain;

/// The status of a rejected call.
pub type ClientStatus = Status;
/// The status code of a rejected call.
pub use tonic::Code;

/// Why a client's call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No server listens at this path.
    #[error("{}: {why}", path.display())]
    Connect {
        /// The path.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// A server accepts connections at this path but does not answer.
    #[error("{}: no answer within {} s", path.display(), ANSWER_TIMEOUT.as_secs())]
    Silent {
        /// The path.
        path: PathBuf,
    },
    /// The server rejected the call, or the connection broke.
    #[error("{}", said(.0))]
    Status(Box<Status>),
    /// The server describes an impossible disk.
    #[error("the server says what cannot be: expected {expected}, found {found}")]
    Absurd {
        /// The valid values.
        expected: &'static str,
        /// The server's value.
        found: u64,
    },
    /// Another server took over the socket between two calls.
    #[error("the disk is another than the server said: expected {expected}, found {found}")]
    OtherDisk {
        /// The disk identifier of the first reply.
        expected: String,
        /// The disk identifier of the session.
        found: String,
    },
    /// The server shut down or closed the session.
    #[error("the server ended the session")]
    Ended,
}

impl From<Status> for ClientError {
    fn from(s: Status) -> ClientError {
        ClientError::Status(Box::new(s))
    }
}

impl ClientError {
    /// Returns whether the call may succeed once the server is available again.
    pub fn is_temporary(&self) -> bool {
        match self {
            ClientError::Connect { .. }
            | ClientError::Silent { .. }
            | ClientError::OtherDisk { .. }
            | ClientError::Ended => true,
            ClientError::Absurd { .. } => false,
            // A connection that breaks during a stream is reported as any of these.
            ClientError::Status(s) => {
                use tonic::Code::{Cancelled, Internal, Unavailable, Unknown};
                matches!(s.code(), Unavailable | Unknown | Internal | Cancelled)
            }
        }
    }
}

/// The time limit for a server's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the answer of the server at `path`, with a time limit: a stopped server process accepts
/// connections but does not answer.
pub async fn in_time<T, E>(path: &Path, asking: impl Future<Output = Result<T, E>>) -> Result<T, E>
where
    E: From<ClientError>,
{
    let silent = |_| Err(ClientError::Silent { path: path.into() }.into());
    tokio::time::timeout(ANSWER_TIMEOUT, asking).await.unwrap_or_else(silent)
}

/// A client's handle to a server.
pub type Control = ControlClient<Channel>;

/// Connects to a server.
pub async fn connect(at: impl Into<Socket>) -> Result<Control, ClientError> {
    let at: Socket = at.into();
    let path = at.to_path_buf();
    // The URI is ignored: every connection goes to the socket.
    let endpoint = Endpoint::from_static("http://headtime.invalid")
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let connector = tower::service_fn(move |_: Uri| {
        let at = at.clone();
        async move { Ok::<_, io::Error>(TokioIo::new(at.connect().await?)) }
    });
    let channel = endpoint.connect_with_connector(connector).await;
    let channel = channel.map_err(|e| ClientError::Connect { path, why: root(&e) })?;
    Ok(ControlClient::new(channel).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE))
}

/// Returns the message of a status; for a broken connection, its cause.
fn said(status: &Status) -> String {
    std::error::Error::source(status).map_or_else(|| status.message().into(), root)
}

/// Returns the root cause; the layers above it only say that something failed.
fn root(e: &dyn std::error::Error) -> String {
    e.source().map_or_else(|| e.to_string(), root)
}

/// Returns what the server serves.
pub async fn info(control: &mut Control) -> Result<InfoReply, ClientError> {
    checked(control.info(InfoRequest {}).await?.into_inner())
}

/// Checks a server's description of its disk, since clients divide and multiply by it.
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
    /// The server's description of the session.
    pub opened: Opened,
}

/// Calls that may be queued for sending.
const CALLS: usize = 64;

impl Session {
    /// Opens a session with this name and priority on the disk of `info`. At most `window`
    /// delivered sectors may be unacknowledged.
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

    /// Sends a call. Waits while the server does not read; a caller that sends many calls must read
    /// events at the same time ([`Session::split`]).
    pub async fn say(&self, call: Call) -> Result<(), ClientError> {
        self.calls.send(SessionCall { call: Some(call) }).await.map_err(|_| ClientError::Ended)
    }

    /// Returns the next event.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            match self.events.message().await? {
                Some(SessionEvent { event: Some(Event::End(_)) }) | None => return Err(ClientError::Ended),
                Some(SessionEvent { event: Some(e) }) => return Ok(e),
                Some(SessionEvent { event: None }) => {}
            }
        }
    }

    /// Splits the session into its calls and its events, for two tasks.
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
