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
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
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
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_SAID: u64 = 64 << 10;

/// Calls of one connection, sessions excepted, that are being answered: from the start of the call
/// until the connection has taken its answer.
pub const MAX_ANSWERED: usize = 2;
/// The time that a further call waits, and a call on a connection whose client does not read.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// A connection's calls and the state of its output.
#[derive(Clone, Debug)]
pub(crate) struct Calls(Arc<State>);

#[derive(Debug)]
struct State {
    /// Calls in progress, and since when there has been that number.
    in_progress: Mutex<(usize, Instant)>,
    answered: Arc<Semaphore>,
    /// Whether output waits until the client reads.
    is_blocked: watch::Sender<bool>,
}

/// A call, in progress until this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay(Calls);

impl Default for Calls {
    fn default() -> Calls {
        let in_progress = Mutex::new((0, Instant::now()));
        let (answered, is_blocked) = (Arc::new(Semaphore::new(MAX_ANSWERED)), watch::Sender::new(false));
        Calls(Arc::new(State { in_progress, answered, is_blocked }))
    }
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, (usize, Instant)> {
        self.0.in_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a call's answer may be made: until few are unread and the client reads. This
    /// bounds the memory for answers, which the HTTP/2 library stores until they are sent. `None`:
    /// not within [`MAX_WAIT`].
    pub(crate) async fn may_answer(&self) -> Option<OwnedSemaphorePermit> {
        let (answered, mut is_blocked) = (Arc::clone(&self.0.answered), self.0.is_blocked.subscribe());
        timeout(MAX_WAIT, async move {
            let place = answered.acquire_owned().await.ok()?;
            is_blocked.wait_for(|is| !is).await.ok()?;
            Some(place)
        })
        .await
        .ok()?
    }

    fn set_blocked(&self, is: bool) {
        self.0.is_blocked.send_if_modified(|was| std::mem::replace(was, is) != is);
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

impl Held {
    /// Returns whether the connection must make room. Reads and writes ask, since a connection
    /// whose output is blocked does not read.
    fn must_end(&mut self, cx: &mut Context<'_>) -> bool {
        // It may not be polled again after it was ready.
        self.gone = self.gone || Pin::new(&mut self.must_go).poll(cx).is_ready();
        self.gone
    }
}

impl AsyncRead for Held {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.must_end(cx) {
            // End of input, as if the client had closed the connection.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Held {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.must_end(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.calls.set_blocked(written.is_pending());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.must_end(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
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
                            let _ = timeout(REFUSAL_TIMEOUT, turn_away(stream)).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes until the output is blocked.
    async fn fill(held: &mut Held) {
        while timeout(Duration::from_millis(50), held.write_all(&[0; 4096])).await.is_ok() {}
    }

    #[tokio::test]
    async fn a_connection_whose_client_does_not_read_makes_room_too() {
        let mut all = Connections::default();
        let (stream, _silent) = UnixStream::pair().unwrap();
        let mut first = all.add(stream).unwrap();
        fill(&mut first).await;
        // It waits to write, and reads nothing: as the HTTP/2 library with an answer to a PING.
        let waits = tokio::spawn(async move {
            let ended = first.write_all(&[0; 4096]).await;
            // The library flushes, shuts down and reads after that.
            assert!(first.write_all(&[0]).await.is_err() && first.flush().await.is_err());
            assert_eq!(first.read(&mut [0]).await.unwrap(), 0);
            ended
        });
        tokio::task::yield_now().await;
        let more: Vec<_> = (0..MAX_CONNECTIONS)
            .map(|_| {
                let (stream, client) = UnixStream::pair().unwrap();
                (all.add(stream).unwrap(), client)
            })
            .collect();
        let ended = timeout(Duration::from_secs(5), waits).await.expect("it ends at once").unwrap();
        assert_eq!(ended.expect_err("closed").kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(all.0.len(), more.len());
    }

    #[tokio::test]
    async fn answers_wait_for_those_before_them_and_for_a_client_that_does_not_read() {
        let mut all = Connections::default();
        let (stream, mut client) = UnixStream::pair().unwrap();
        let mut held = all.add(stream).unwrap();
        let calls = held.connect_info();
        let mut places = Vec::new();
        for _ in 0..MAX_ANSWERED {
            places.push(calls.may_answer().await.expect("a place"));
        }
        let soon = |calls: &Calls| {
            let calls = calls.clone();
            timeout(Duration::from_millis(50), async move { calls.may_answer().await })
        };
        assert!(soon(&calls).await.is_err(), "it waits");
        places.pop();
        assert!(soon(&calls).await.is_ok_and(|place| place.is_some()));
        fill(&mut held).await;
        assert!(soon(&calls).await.is_err(), "the client does not read");
        let reads = tokio::spawn(async move { tokio::io::copy(&mut client, &mut tokio::io::sink()).await });
        held.write_all(&[0]).await.unwrap();
        assert!(soon(&calls).await.is_ok_and(|place| place.is_some()));
        drop(held);
        reads.await.unwrap().unwrap();
        // Another connection's answers do not wait.
        assert!(Calls::default().may_answer().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_a_limited_time() {
        let calls = Calls::default();
        let _places = (calls.may_answer().await.unwrap(), calls.may_answer().await.unwrap());
        let begun = Instant::now();
        assert!(calls.may_answer().await.is_none());
        assert_eq!(begun.elapsed(), MAX_WAIT);
    }
}
