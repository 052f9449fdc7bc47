//! Connections to the control interface: at most [`MAX_CONNECTIONS`] at a time, so that file
//! descriptors remain for other clients. A new connection replaces the one that has been idle for
//! the longest.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::channel;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use crate::net::listener::{Pace, SHORT_OF};
use crate::note::{About, Note};

/// Connections at a time. If each of them has a call in progress, a further connection is refused
/// with a message.
pub const MAX_CONNECTIONS: usize = 64;
/// Calls in progress on one connection, sessions included. Further calls wait in the client.
pub const MAX_STREAMS: u32 = 64;

/// Connections that are being refused at a time; the time each may take to read the refusal, and
/// the bytes it may send until then. Beyond that a connection is closed without a message.
pub(crate) const MAX_LEAVING: usize = 16;
const LEAVES: Duration = Duration::from_secs(1);
const MAX_SAID: u64 = 64 << 10;

/// The calls of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Calls(Arc<Mutex<(usize, Instant)>>);

/// A call, in progress until this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay(Calls);

impl Default for Calls {
    fn default() -> Calls {
        Calls(Arc::new(Mutex::new((0, Instant::now()))))
    }
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, (usize, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a call.
    pub(crate) fn begin(&self) -> UnderWay {
        self.lock().0 += 1;
        UnderWay(self.clone())
    }

    /// Returns since when the connection has been idle, or `None` while calls are in progress.
    fn idle_since(&self) -> Option<Instant> {
        let (calls, since) = *self.lock();
        (calls == 0).then_some(since)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut calls = self.0.lock();
        *calls = (calls.0 - 1, Instant::now());
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Held {
    stream: UnixStream,
    calls: Calls,
    /// Closed by the server when the connection must make room.
    must_go: oneshot::Receiver<()>,
    gone: bool,
}

impl Connected for Held {
    type ConnectInfo = Calls;

    fn connect_info(&self) -> Calls {
        self.calls.clone()
    }
}

impl AsyncRead for Held {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.gone || Pin::new(&mut self.must_go).poll(cx).is_ready() {
            // End of input, as if the client had closed the connection.
            self.gone = true;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Held {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The open connections.
#[derive(Debug, Default)]
struct Connections(Vec<(Calls, oneshot::Sender<()>)>);

impl Connections {
    /// Adds a connection, if there is room or an idle connection can be closed.
    fn add(&mut self, stream: UnixStream) -> Result<Held, UnixStream> {
        self.0.retain(|(_, goes_on)| !goes_on.is_closed());
        if self.0.len() >= MAX_CONNECTIONS {
            let idle = self.0.iter().enumerate().filter_map(|(at, (calls, _))| Some((calls.idle_since()?, at)));
            let Some((_, at)) = idle.min() else { return Err(stream) };
            // Dropping the sender closes the connection.
            self.0.remove(at);
        }
        let (goes_on, must_go) = oneshot::channel();
        let calls = Calls::default();
        self.0.push((calls.clone(), goes_on));
        Ok(Held { stream, calls, must_go, gone: false })
    }
}

/// The refusal in HTTP/2: the server's empty SETTINGS frame and a GOAWAY frame with the reason (RFC
/// 9113, sections 6.5 and 6.8; ENHANCE_YOUR_CALM).
fn no_room() -> Vec<u8> {
    let why = format!("all {MAX_CONNECTIONS} connections of the control interface are in use");
    let frame = |kind: u8, content: &[u8]| {
        let length = (content.len() as u32).to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, 0], content].concat()
    };
    let end = [&[0; 4][..], &0xb_u32.to_be_bytes(), why.as_bytes()].concat();
    [frame(4, &[]), frame(7, &end)].concat()
}

/// Refuses a client and waits until it has read the refusal: closing a connection while the client
/// still sends resets it, and the client would not receive the reason.
async fn turn_away(mut stream: UnixStream) -> io::Result<()> {
    stream.write_all(&no_room()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(MAX_SAID), &mut tokio::io::sink()).await.map(drop)
}

/// Accepts clients until the returned stream is dropped. Must be called within a tokio runtime.
pub(crate) fn incoming(listener: UnixListener, note: Note) -> ReceiverStream<io::Result<Held>> {
    let (out, connections) = channel(1);
    tokio::spawn(async move {
        let (mut all, mut pace) = (Connections::default(), Pace::default());
        let leaving = Arc::new(Semaphore::new(MAX_LEAVING));
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = out.closed() => return,
            };
            pace.next().await;
            match accepted.map(|(stream, _)| all.add(stream)) {
                Ok(Ok(held)) => _ = out.send(Ok(held)).await,
                Ok(Err(stream)) => {
                    if let Ok(place) = Arc::clone(&leaving).try_acquire_owned() {
                        tokio::spawn(async move {
                            let _ = timeout(LEAVES, turn_away(stream)).await;
                            drop(place);
                        });
                    }
                    let most = MAX_CONNECTIONS;
                    note(About::Client, format!("a control client was turned away: {most} are connected already"));
                }
                Err(why) => {
                    note(About::Client, format!("a control client could not be accepted: {why}"));
                    tokio::time::sleep(SHORT_OF).await;
                }
            }
        }
    });
    ReceiverStream::new(connections)
}
