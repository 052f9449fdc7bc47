//! Connections of clients of the control interface: at most [`MOST_CONNECTIONS`] at a time, so that they do not use up
//! the descriptors that others need.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::channel;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use crate::net::listener::{Pace, SHORT_OF};
use crate::note::{About, Note};

/// Connections at a time. One more is closed at once.
pub const MOST_CONNECTIONS: usize = 64;
/// Calls under way of one connection, sessions included. One more waits in its client.
pub const MOST_STREAMS: u32 = 64;

/// A connection, and its place.
#[derive(Debug)]
pub struct Held {
    stream: UnixStream,
    _place: OwnedSemaphorePermit,
}

impl Connected for Held {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Held {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
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

/// Accepts clients as long as they are wanted. Must be called within a tokio runtime.
pub fn incoming(listener: UnixListener, note: Note) -> ReceiverStream<io::Result<Held>> {
    let (out, connections) = channel(1);
    tokio::spawn(async move {
        let (places, mut pace) = (Arc::new(Semaphore::new(MOST_CONNECTIONS)), Pace::default());
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = out.closed() => return,
            };
            pace.next().await;
            match (accepted, Arc::clone(&places).try_acquire_owned()) {
                (Ok((stream, _)), Ok(place)) => _ = out.send(Ok(Held { stream, _place: place })).await,
                (Ok(_), Err(_)) => {
                    let most = MOST_CONNECTIONS;
                    note(About::Client, format!("a control client was turned away: {most} are connected already"));
                }
                (Err(why), _) => {
                    note(About::Client, format!("a control client could not be accepted: {why}"));
                    tokio::time::sleep(SHORT_OF).await;
                }
            }
        }
    });
    ReceiverStream::new(connections)
}
