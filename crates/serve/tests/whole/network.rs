//! In-memory connections that deliver data in pieces and late, and that break or fall silent on
//! request.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::time::{Sleep, sleep};
use tonic::transport::server::Connected;

/// Bytes buffered between both ends.
const BUFFER_BYTES: usize = 64 << 10;
/// The largest piece in bytes, and the largest of the small ones.
const MAX_PIECE_BYTES: usize = 16 << 10;
const SMALL_PIECE_BYTES: usize = 64;
/// One in this number of pieces is late, by at most this number of milliseconds (microseconds of
/// the platter).
const LATE_EVERY: u64 = 64;
const MAX_LATE_MS: u64 = 200;

/// The state of a connection, which tests can change.
#[derive(Clone, Debug, Default)]
pub struct Fate(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    state: State,
    /// The tasks that wait at each end to read, and to write.
    waiting: [[Option<Waker>; 2]; 2],
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Open,
    /// It breaks after this number of further bytes, even within a message.
    Ends(usize),
    Cut,
    /// Nothing is delivered, and neither end sees an error.
    Silent,
}

impl Fate {
    /// Breaks the connection.
    pub fn cut(&self) {
        let mut inner = self.0.lock().unwrap();
        inner.state = State::Cut;
        inner.waiting.as_flattened_mut().iter_mut().filter_map(Option::take).for_each(Waker::wake);
    }

    /// Breaks the connection after this number of further bytes.
    pub fn cut_after(&self, bytes: usize) {
        self.change(State::Ends(bytes));
    }

    /// Silences the connection: nothing is delivered, and neither end sees an error.
    pub fn silence(&self) {
        self.change(State::Silent);
    }

    /// Changes the state, unless the connection has broken.
    fn change(&self, state: State) {
        let mut inner = self.0.lock().unwrap();
        if !matches!(inner.state, State::Cut) {
            inner.state = state;
        }
    }

    /// Returns whether it has broken.
    pub fn is_cut(&self) -> bool {
        matches!(self.0.lock().unwrap().state, State::Cut)
    }

    /// Returns how many of `wanted` bytes may be transferred at an end, or an error; pending while
    /// it is silent. A cut wakes the waiting tasks.
    fn lets(&self, end: usize, how: usize, wanted: usize, cx: &Context<'_>) -> Poll<io::Result<usize>> {
        let mut inner = self.0.lock().unwrap();
        let waiting = &mut inner.waiting[end][how];
        if !waiting.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            *waiting = Some(cx.waker().clone());
        }
        match inner.state {
            State::Open => Poll::Ready(Ok(wanted)),
            // A read returns only data that was sent.
            State::Ends(left) => Poll::Ready(Ok(if how == WRITE { wanted.min(left) } else { wanted })),
            State::Cut => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            State::Silent => Poll::Pending,
        }
    }

    /// Counts sent bytes.
    fn sent(&self, bytes: usize) {
        let mut inner = self.0.lock().unwrap();
        if let State::Ends(left) = &mut inner.state {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                drop(inner);
                self.cut();
            }
        }
    }
}

const READ: usize = 0;
const WRITE: usize = 1;

/// One end of a connection.
pub struct Wire {
    stream: DuplexStream,
    fate: Fate,
    end: usize,
    rng: Xoshiro256PlusPlus,
    /// The delays of reads and of writes.
    late: [Option<Pin<Box<Sleep>>>; 2],
}

/// Creates a connection with pieces only at the server's end: the client's end, the server's, and
/// the state.
pub fn connection(rng: Xoshiro256PlusPlus) -> (DuplexStream, Wire, Fate) {
    let (client, stream) = duplex(BUFFER_BYTES);
    let fate = Fate::default();
    (client, Wire::new(stream, &fate, 0, rng), fate)
}

/// Creates a connection with pieces at both ends.
pub fn connection_in_pieces(mut rng: Xoshiro256PlusPlus) -> (Wire, Wire, Fate) {
    let other = Xoshiro256PlusPlus::seed_from_u64(rng.next_u64());
    let (client, server, fate) = connection(rng);
    (Wire::new(client, &fate, 1, other), server, fate)
}

impl Connected for Wire {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl Wire {
    fn new(stream: DuplexStream, fate: &Fate, end: usize, rng: Xoshiro256PlusPlus) -> Wire {
        Wire { stream, fate: fate.clone(), end, rng, late: [None, None] }
    }

    /// Returns how many bytes are transferred at once, when it is time.
    fn goes(&mut self, how: usize, wanted: usize, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let wanted = ready!(self.fate.lets(self.end, how, wanted, cx))?;
        if let Some(late) = &mut self.late[how] {
            ready!(late.as_mut().poll(cx));
            self.late[how] = None;
        } else if self.rng.next_u64().is_multiple_of(LATE_EVERY) {
            let mut late = Box::pin(sleep(Duration::from_millis(1 + self.rng.next_u64() % MAX_LATE_MS)));
            let waits = late.as_mut().poll(cx);
            self.late[how] = Some(late);
            ready!(waits);
        }
        let few = self.rng.next_u64().is_multiple_of(4);
        let most = wanted.clamp(1, if few { SMALL_PIECE_BYTES } else { MAX_PIECE_BYTES });
        let piece = if few { 1 + self.rng.next_u64() as usize % most } else { most };
        Poll::Ready(Ok(piece.min(wanted)))
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let most = ready!(self.goes(READ, buf.remaining(), cx))?;
        let mut piece = ReadBuf::new(buf.initialize_unfilled_to(most));
        let done = Pin::new(&mut self.stream).poll_read(cx, &mut piece);
        let bytes = piece.filled().len();
        buf.advance(bytes);
        done
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let most = ready!(self.goes(WRITE, data.len(), cx))?;
        let done = Pin::new(&mut self.stream).poll_write(cx, &data[..most]);
        if let Poll::Ready(Ok(bytes)) = done {
            self.fate.sent(bytes);
        }
        done
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
