//! Connections of clients of the control interface: at most [`MOST_CONNECTIONS`] at a time, so that
//! they do not use up the descriptors that others need. One on which no call is under way makes
//! room for the next that comes.

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

/// Connections at a time. One more is told so and closed, where on each of them a call is under
/// way.
pub const MOST_CONNECTIONS: usize = 64;
/// Calls under way of one connection, sessions included. One more waits in its client.
pub const MOST_STREAMS: u32 = 64;

/// Clients that are told at a time that there is no room, how long each may take to hear it, and
/// bytes that it may say until then. Beyond that a connection is closed without a word.
pub const MOST_LEAVING: usize = 16;
const LEAVES: Duration = Duration::from_secs(1);
const MOST_SAID: u64 = 64 << 10;

/// The calls of a connection.
#[derive(Clone, Debug)]
pub struct Calls(Arc<Mutex<(usize, Instant)>>);

/// A call that is under way until this is dropped.
#[derive(Debug)]
pub struct UnderWay(Calls);

impl Default for Calls {
    fn default() -> Calls {
        Calls(Arc::new(Mutex::new((0, Instant::now()))))
    }
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, (usize, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One begins.
    pub fn begin(&self) -> UnderWay {
        self.lock().0 += 1;
        UnderWay(self.clone())
    }

    /// Since when there has been none; `None`: there are some.
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
pub struct Held {
    stream: UnixStream,
    calls: Calls,
    /// Closed when it must make room.
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
            // As if the client had ended it.
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

/// The connections that there are.
#[derive(Debug, Default)]
struct Connections(Vec<(Calls, oneshot::Sender<()>)>);

impl Connections {
    /// One more, if there is room or the one that has been idle for the longest can make room.
    fn add(&mut self, stream: UnixStream) -> Result<Held, UnixStream> {
        self.0.retain(|(_, goes_on)| !goes_on.is_closed());
        if self.0.len() >= MOST_CONNECTIONS {
            let idle = self.0.iter().enumerate().filter_map(|(at, (calls, _))| Some((calls.idle_since()?, at)));
            let Some((_, at)) = idle.min() else { return Err(stream) };
            // It hears of it by this.
            self.0.remove(at);
        }
        let (goes_on, must_go) = oneshot::channel();
        let calls = Calls::default();
        self.0.push((calls.clone(), goes_on));
        Ok(Held { stream, calls, must_go, gone: false })
    }
}

/// What a client that finds no room is told, in HTTP/2: the server's settings, which are none, and
/// the end of the connection with the reason (RFC 9113, sections 6.5 and 6.8; ENHANCE_YOUR_CALM).
fn no_room() -> Vec<u8> {
    let why = format!("all {MOST_CONNECTIONS} connections of the control interface are in use");
    let frame = |kind: u8, content: &[u8]| {
        let length = (content.len() as u32).to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, 0], content].concat()
    };
    let end = [&[0; 4][..], &0xb_u32.to_be_bytes(), why.as_bytes()].concat();
    [frame(4, &[]), frame(7, &end)].concat()
}

/// Tells a client that there is no room, and waits until it has heard so: a connection that is
/// closed while it says something breaks, and then it hears nothing.
async fn turn_away(mut stream: UnixStream) -> io::Result<()> {
    stream.write_all(&no_room()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(MOST_SAID), &mut tokio::io::sink()).await.map(drop)
}

/// Accepts clients as long as they are wanted. Must be called within a tokio runtime.
pub fn incoming(listener: UnixListener, note: Note) -> ReceiverStream<io::Result<Held>> {
    let (out, connections) = channel(1);
    tokio::spawn(async move {
        let (mut all, mut pace) = (Connections::default(), Pace::default());
        let leaving = Arc::new(Semaphore::new(MOST_LEAVING));
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
                    let most = MOST_CONNECTIONS;
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
