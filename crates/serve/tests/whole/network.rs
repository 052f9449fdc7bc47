//! Connections in memory that come in pieces, and end or fall silent when they are told to.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

/// Bytes that lie between both ends.
const BETWEEN: usize = 64 << 10;

/// What becomes of a connection.
#[derive(Clone, Debug, Default)]
pub struct Fate(Arc<AtomicU8>);

const CUT: u8 = 1;
const SILENT: u8 = 2;

impl Fate {
    /// It breaks.
    pub fn cut(&self) {
        self.0.store(CUT, Ordering::Relaxed);
    }

    /// Nothing comes any more, and no end sees an error.
    pub fn silence(&self) {
        self.0.store(SILENT, Ordering::Relaxed);
    }
}

/// The server's end.
pub struct Wire {
    stream: DuplexStream,
    fate: Fate,
    rng: Xoshiro256PlusPlus,
}

/// A connection: the client's end, the server's, and what becomes of it.
pub fn connection(rng: Xoshiro256PlusPlus) -> (DuplexStream, Wire, Fate) {
    let (client, stream) = duplex(BETWEEN);
    let fate = Fate::default();
    (client, Wire { stream, fate: fate.clone(), rng }, fate)
}

impl Wire {
    /// How much goes at once; `None`: nothing, ever again.
    fn goes(&mut self, wanted: usize) -> io::Result<Option<usize>> {
        match self.fate.0.load(Ordering::Relaxed) {
            CUT => Err(io::ErrorKind::ConnectionReset.into()),
            SILENT => Ok(None),
            _ if self.rng.next_u64().is_multiple_of(4) => {
                Ok(Some(1 + self.rng.next_u64() as usize % wanted.clamp(1, 64)))
            }
            _ => Ok(Some(wanted)),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
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
