//! Connections in memory that come in pieces, and end or fall silent when they are told to.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tonic::transport::server::Connected;

/// Bytes that lie between both ends.
const BETWEEN: usize = 64 << 10;

/// What becomes of a connection.
#[derive(Clone, Debug, Default)]
pub struct Fate(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: AtomicU8,
    /// Who waits to read from it, and to write to it.
    waiting: Mutex<[Option<Waker>; 2]>,
}

const CUT: u8 = 1;
const SILENT: u8 = 2;

impl Fate {
    /// It breaks.
    pub fn cut(&self) {
        self.0.state.store(CUT, Ordering::Relaxed);
        self.0.waiting.lock().unwrap().iter_mut().filter_map(Option::take).for_each(Waker::wake);
    }

    /// Nothing comes any more, and no end sees an error.
    pub fn silence(&self) {
        self.0.state.store(SILENT, Ordering::Relaxed);
    }

    /// Whether it has broken.
    pub fn is_cut(&self) -> bool {
        self.0.state.load(Ordering::Relaxed) == CUT
    }
}

/// The server's end.
pub struct Wire {
    stream: DuplexStream,
    fate: Fate,
    /// It comes in pieces, as chance has it.
    rng: Option<Xoshiro256PlusPlus>,
}

/// A connection: the client's end, the server's, and what becomes of it.
pub fn connection(rng: Option<Xoshiro256PlusPlus>) -> (DuplexStream, Wire, Fate) {
    let (client, stream) = duplex(BETWEEN);
    let fate = Fate::default();
    (client, Wire { stream, fate: fate.clone(), rng }, fate)
}

impl Connected for Wire {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl Wire {
    /// A cut wakes the tasks that wait.
    fn waits(&self, how: usize, cx: &Context<'_>) {
        let waiting = &mut self.fate.0.waiting.lock().unwrap()[how];
        if !waiting.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            *waiting = Some(cx.waker().clone());
        }
    }

    /// How much goes at once; `None`: nothing, ever again.
    fn goes(&mut self, wanted: usize) -> io::Result<Option<usize>> {
        match self.fate.0.state.load(Ordering::Relaxed) {
            CUT => return Err(io::ErrorKind::ConnectionReset.into()),
            SILENT => return Ok(None),
            _ => {}
        }
        let piece = self.rng.as_mut().and_then(|rng| {
            let few = rng.next_u64().is_multiple_of(4);
            few.then(|| 1 + rng.next_u64() as usize % wanted.clamp(1, 64))
        });
        Ok(Some(piece.unwrap_or(wanted)))
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.waits(0, cx);
        let Some(most) = self.goes(buf.remaining())? else { return Poll::Pending };
        let mut piece = vec![0; most.min(buf.remaining()).min(BETWEEN)];
        let mut read = ReadBuf::new(&mut piece);
        let done = Pin::new(&mut self.stream).poll_read(cx, &mut read);
        if let Poll::Ready(Ok(())) = done {
            buf.put_slice(read.filled());
        }
        done
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.waits(1, cx);
        let Some(most) = self.goes(data.len())? else { return Poll::Pending };
        Pin::new(&mut self.stream).poll_write(cx, &data[..most.min(data.len())])
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
