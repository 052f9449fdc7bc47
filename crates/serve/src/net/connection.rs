//! One NBD client: a task that moves bytes between its socket and the protocol state machine, and
//! requests between the state machine and the engine.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use headtime_nbd::{Closed, Connection, Event, Limits, Request, Tls};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::Stream;
use super::budget::{Budget, ClientId, Share};
use super::exports::Exports;
use crate::engine::inbox::Outbox;
use crate::engine::messages::{Answer, EngineMessage};

mod requests;

/// Bytes per read from a socket.
const READ: usize = 256 << 10;
/// Chunks per write to a socket.
const CHUNKS: usize = 16;
/// Output bytes queued for the socket. The rest stays in the state machine, which counts it towards
/// the client's limit; otherwise a client that reads nothing would hold [`CHUNKS`] of the longest
/// answers in addition.
const MAX_OUTPUT_BYTES: usize = 256 << 10;
/// A client that has unread answers and reads nothing for this time is disconnected, since other
/// clients may need the memory.
pub const UNREAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The time for a client without a place to read the refusal and disconnect.
const NO_PLACE: Duration = Duration::from_secs(1);

/// State shared by all connections.
#[derive(Clone)]
pub struct Shared {
    /// The exports.
    pub exports: Exports,
    /// The handle to the engine.
    pub engine: Outbox<EngineMessage>,
    /// The handles to the write caches, by export number.
    pub caches: Arc<BTreeMap<u32, Outbox<EngineMessage>>>,
    /// The budget shared by all clients.
    pub budget: Budget,
    /// The limits of one client.
    pub limits: Limits,
    /// The time limit for negotiation.
    pub handshake: Duration,
    /// TLS, and whether clients of this listener must use it.
    pub tls: Option<(TlsAcceptor, bool)>,
}

/// Why the server ended a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// Negotiation timed out.
    #[error("no negotiation within {} s", .0.as_secs())]
    Slow(Duration),
    /// The client sent nothing, and disconnected or had to make room for another.
    #[error("it said nothing")]
    Silent,
    /// Too many clients were negotiating at a time.
    #[error("more clients negotiate than the server lets")]
    Crowded,
    /// The client stopped in the middle of a request.
    #[error("it has sent nothing more of a request for {} s", UNREAD_TIMEOUT.as_secs())]
    Unsent,
    /// The client does not read its answers.
    #[error("it has fetched nothing of its answers for {} s", UNREAD_TIMEOUT.as_secs())]
    Unread,
    /// The server has its maximum number of clients.
    #[error("the server has as many clients as it takes")]
    Full,
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The client violated the protocol.
    #[error("{0}")]
    Protocol(String),
}

/// A wait for the budget. It keeps its place in the queue as long as it exists.
type Room = Pin<Box<dyn Future<Output = Share> + Send>>;

/// What waits for a share of the budget.
enum Waits {
    /// A request.
    Request(Request),
    /// A write's data, which is not read until it has the share.
    Payload,
}

struct Client<'a> {
    shared: &'a Shared,
    protocol: Connection,
    export: Option<u32>,
    answers: UnboundedReceiver<(u64, Answer)>,
    reply: UnboundedSender<(u64, Answer)>,
    /// The client that its shares of the budget count for.
    id: ClientId,
    /// What waits for the budget, and the wait itself.
    waiting: Option<(Waits, Room)>,
    /// The share of a write whose data is being received.
    payload: Option<Share>,
    places: Arc<Semaphore>,
    /// Its place among the clients; during negotiation it is held only while input is processed.
    place: Option<OwnedSemaphorePermit>,
    /// It waits for a place, since all are taken.
    wants_place: bool,
    /// The wait for a place timed out: its request for an export is rejected.
    full: bool,
    /// Whether it has sent anything.
    spoke: bool,
    /// Closed when it must make room; set during negotiation.
    must_go: Option<oneshot::Receiver<()>>,
    /// When it last read output, or had read all of it.
    fetched: Instant,
    /// Written data may not have been flushed.
    flushing: bool,
    /// When it last sent data, or its input was resumed.
    heard: Instant,
    /// Whether input was read in the last round.
    wanted_input: bool,
    input: BytesMut,
    output: VecDeque<Bytes>,
    start_tls: bool,
    /// The server is shutting down.
    ending: bool,
    /// The client has sent a disconnect request.
    left: bool,
    fault: Option<String>,
}

/// Serves a client until it disconnects, fails, or `end` becomes true and its requests in flight
/// are answered. It holds one of `places` from when it opens its export; during negotiation it is
/// disconnected when `must_go` is closed.
pub async fn serve(
    stream: Box<dyn Stream>,
    shared: &Shared,
    places: Arc<Semaphore>,
    must_go: oneshot::Receiver<()>,
    end: watch::Receiver<bool>,
) -> Result<(), Ended> {
    let tls = match &shared.tls {
        None => Tls::Off,
        Some((_, false)) => Tls::Offered,
        Some((_, true)) => Tls::Required,
    };
    let (reply, answers) = unbounded_channel();
    let mut client = Client {
        shared,
        protocol: Connection::new(shared.exports.offered(), tls, shared.limits),
        export: None,
        answers,
        reply,
        id: shared.budget.client(),
        waiting: None,
        payload: None,
        places,
        place: None,
        wants_place: false,
        full: false,
        flushing: false,
        heard: Instant::now(),
        wanted_input: true,
        spoke: false,
        must_go: Some(must_go),
        fetched: Instant::now(),
        input: BytesMut::with_capacity(READ),
        output: VecDeque::new(),
        start_tls: false,
        ending: false,
        left: false,
        fault: None,
    };
    let negotiated = Instant::now() + shared.handshake;
    let Some(stream) = client.run(stream, end.clone(), negotiated).await? else { return client.result() };
    // The client has asked for TLS, and the server has agreed.
    let (acceptor, _) = shared.tls.as_ref().expect("only offered where there is some");
    let accepted = tokio::select! {
        accepted = tokio::time::timeout_at(negotiated, acceptor.accept(stream)) => accepted,
        () = made_room(&mut client.must_go) => return Err(Ended::Crowded),
    };
    let stream = accepted.map_err(|_| Ended::Slow(shared.handshake))??;
    client.start_tls = false;
    // Plaintext received before the handshake must not be processed as protected input.
    client.input.clear();
    client.protocol.tls_established();
    client.run(Box::new(stream), end, negotiated).await?;
    client.result()
}

/// Writes some of the chunks and returns the number of bytes; without chunks, flushes.
async fn send(to: &mut (impl AsyncWrite + Unpin), chunks: &[IoSlice<'_>]) -> io::Result<usize> {
    match chunks.is_empty() {
        true => to.flush().await.map(|()| 0),
        false => to.write_vectored(chunks).await,
    }
}

/// Completes when another client needs the room; never once negotiation is complete.
async fn made_room(must_go: &mut Option<oneshot::Receiver<()>>) {
    match must_go {
        Some(must_go) => _ = must_go.await,
        None => std::future::pending().await,
    }
}

/// Waits for the share of what waits for one; never ends when nothing does.
async fn granted(waiting: &mut Option<(Waits, Room)>) -> Share {
    match waiting {
        Some((_, room)) => room.as_mut().await,
        None => std::future::pending().await,
    }
}

impl Client<'_> {
    /// Returns the owner whose part of the budget is used. Without an export there are no requests.
    fn owner(&self) -> u32 {
        self.export.unwrap_or(0)
    }

    fn result(self) -> Result<(), Ended> {
        self.fault.map_or(Ok(()), |why| Err(Ended::Protocol(why)))
    }

    /// Runs until the connection ends (`None`) or continues under TLS (the stream).
    async fn run(
        &mut self,
        stream: Box<dyn Stream>,
        mut end: watch::Receiver<bool>,
        mut negotiated: Instant,
    ) -> Result<Option<Box<dyn Stream>>, Ended> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        loop {
            self.exchange();
            if self.start_tls && self.output.is_empty() {
                writer.flush().await?;
                return Ok(Some(reader.unsplit(writer)));
            }
            let done = self.ending && self.protocol.in_flight() == 0 && !self.protocol.has_output();
            if (done || self.protocol.is_closed()) && self.output.is_empty() {
                // The TLS close tells the client that nothing was cut off.
                let _ = tokio::time::timeout(Duration::from_secs(1), writer.shutdown()).await;
                return Ok(None);
            }
            let wants_input =
                self.protocol.wants_input() && self.waiting.is_none() && !self.start_tls && !self.wants_place;
            if wants_input && !self.wanted_input {
                // The client could not send while one of its requests waited, so the timeout
                // restarts.
                self.heard = Instant::now();
            }
            self.wanted_input = wants_input;
            let (unread, half_sent) = (self.fetched + UNREAD_TIMEOUT, self.heard + UNREAD_TIMEOUT);
            let chunks: Vec<IoSlice<'_>> = self.output.iter().take(CHUNKS).map(|c| IoSlice::new(c)).collect();
            tokio::select! {
                biased;
                Some((token, answer)) = self.answers.recv() => self.answer(token, answer),
                sent = send(&mut writer, &chunks), if !chunks.is_empty() || self.flushing => {
                    let sent = match sent {
                        // A client that has sent a disconnect request need not read any more.
                        Err(_) if self.left => return Ok(None),
                        sent => sent?,
                    };
                    if chunks.is_empty() {
                        self.flushing = false;
                        continue;
                    }
                    if sent == 0 {
                        return Err(io::Error::from(io::ErrorKind::WriteZero).into());
                    }
                    self.sent(sent);
                    self.flushing = self.output.is_empty() && !self.protocol.has_output();
                }
                share = granted(&mut self.waiting) => {
                    match self.waiting.take() {
                        Some((Waits::Request(request), _)) => self.submit(request, share),
                        Some((Waits::Payload, _)) => self.payload = Some(share),
                        None => {}
                    }
                }
                place = Arc::clone(&self.places).acquire_owned(), if self.wants_place => {
                    self.wants_place = false;
                    self.place = place.ok();
                }
                got = reader.read_buf(&mut self.input), if wants_input => {
                    match got? {
                        0 if !self.spoke => return Err(Ended::Silent),
                        0 => self.protocol.end_of_input(),
                        _ => (self.spoke, self.heard) = (true, Instant::now()),
                    }
                }
                () = made_room(&mut self.must_go), if self.protocol.is_negotiating() => {
                    return Err(if self.spoke { Ended::Crowded } else { Ended::Silent });
                }
                () = tokio::time::sleep_until(negotiated), if self.protocol.is_negotiating() => {
                    match (self.full, self.wants_place) {
                        (true, _) => return Err(Ended::Full),
                        (_, false) => return Err(Ended::Slow(self.shared.handshake)),
                        // The client is given the reason with its next option.
                        (_, true) => {
                            (self.full, self.wants_place, negotiated) = (true, false, Instant::now() + NO_PLACE);
                            self.protocol.set_full(true);
                        }
                    }
                }
                () = tokio::time::sleep_until(unread), if !self.output.is_empty() || self.flushing => {
                    return Err(Ended::Unread);
                }
                () = tokio::time::sleep_until(half_sent), if self.protocol.is_half_sent() && wants_input => {
                    return Err(Ended::Unsent);
                }
                changed = end.changed(), if !self.ending => {
                    if changed.is_err() || *end.borrow() {
                        self.ending = true;
                        self.protocol.shut_down();
                    }
                }
            }
        }
    }

    /// Exchanges input, events and output with the state machine until it has no more. A request
    /// that it held back for lack of room is returned once output was taken or another request was
    /// answered.
    fn exchange(&mut self) {
        let had_nothing = self.output.is_empty();
        loop {
            while self.output.len() < CHUNKS
                && self.output.iter().map(Bytes::len).sum::<usize>() < MAX_OUTPUT_BYTES
                && let Some(chunk) = self.protocol.output()
            {
                self.output.push_back(chunk);
            }
            if self.waiting.is_some() || self.wants_place {
                break;
            }
            if let Some(event) = self.protocol.poll() {
                self.event(event);
                continue;
            }
            if self.start_tls || self.input.is_empty() {
                break;
            }
            if self.protocol.is_negotiating() && self.place.is_none() && !self.full {
                // Any input may open an export.
                self.place = Arc::clone(&self.places).try_acquire_owned().ok();
                if self.place.is_none() {
                    self.wants_place = true;
                    break;
                }
            }
            let taken = self.protocol.receive(&self.input);
            if taken == 0 {
                break;
            }
            self.input.advance(taken);
        }
        if self.protocol.is_negotiating() {
            self.place = None;
        } else if self.protocol.is_closed() || self.export.is_none() {
            // It has ended without an export.
            (self.place, self.must_go) = (None, None);
        } else {
            self.must_go = None;
        }
        if had_nothing {
            self.fetched = Instant::now();
        }
        if self.input.is_empty() {
            // The buffer grew with its content; its memory is used again from the start.
            self.input.reserve(READ);
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Opened { export } => self.export = Some(export as u32),
            Event::StartTls => self.start_tls = true,
            Event::Closed(Closed::Protocol(why)) => self.fault = Some(why.to_string()),
            Event::Closed(Closed::ByClient) => self.left = true,
            Event::Closed(Closed::EndOfInput | Closed::ShutDown | Closed::Full) => {}
            Event::Payload { length } => match self.take_share(length.into()) {
                Ok(share) => self.payload = Some(share),
                Err(room) => self.waiting = Some((Waits::Payload, room)),
            },
            // A write has had its share since its data began to arrive.
            Event::Request(request) => match self.payload.take().map_or_else(|| self.take_share(request.length), Ok) {
                Ok(share) => self.submit(request, share),
                Err(room) => self.waiting = Some((Waits::Request(request), room)),
            },
        }
    }

    fn sent(&mut self, mut bytes: usize) {
        self.fetched = Instant::now();
        while let Some(first) = self.output.front_mut() {
            if bytes < first.len() {
                first.advance(bytes);
                return;
            }
            bytes -= first.len();
            self.output.pop_front();
        }
    }
}
