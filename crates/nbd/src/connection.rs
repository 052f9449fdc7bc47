//! One connection, from the greeting to its end.

use crate::closed::{Closed, Violation};
use crate::export::Export;
use crate::limits::{Limits, Tls};
use crate::negotiation::{self, Negotiation};
use crate::output::Output;
use crate::pending::{Pending, Style};
use crate::request::{Answer, Request};
use crate::step::Step;
use crate::transmission::{self, Transmission};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a connection has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The client has an export; requests may follow.
    Opened {
        /// Its index.
        export: usize,
    },
    /// A write is granted, and its data comes next. What [`Connection::receive`] takes of it is
    /// held until all is there, and a request with it follows: a driver that has no memory to spare
    /// gives no more input until it has. A write that comes no more, because the server goes away
    /// or the connection ends, is followed by no request.
    Payload {
        /// Bytes of its data.
        length: u32,
    },
    /// A request, to be answered with [`Connection::reply`].
    Request(Request),
    /// Send all output, do the TLS handshake, call [`Connection::tls_established`]. Nothing that
    /// was received before the handshake may be given to [`Connection::receive`] after it.
    StartTls,
    /// No more input is taken, and no event follows. Requests in flight are still to be answered,
    /// and output is still to be sent, until [`Connection::is_closed`].
    Closed(Closed),
}

/// One connection to a client.
///
/// The calling contract, which any driver keeps:
///
/// * After [`Connection::receive`], [`Connection::reply`], [`Connection::output`],
///   [`Connection::tls_established`], [`Connection::end_of_input`] and [`Connection::shut_down`],
///   call [`Connection::poll`] until it gives `None`. Not only after `receive`: a request that
///   found no room is looked at again when room is made, and that is when something is answered, or
///   taken to be sent.
/// * Give bytes that `receive` did not take again, when [`Connection::wants_input`] says so.
/// * Answer each request exactly once, in any order, also after [`Event::Closed`].
///
/// A driver that goes round in the order *poll, output, poll again if something was taken, then
/// wait* keeps it.
#[derive(Debug)]
pub struct Connection {
    exports: Arc<[Export]>,
    tls: Tls,
    limits: Limits,
    phase: Phase,
    pending: Pending,
    output: Output,
    events: VecDeque<Event>,
    /// A whole message waits for room.
    waits: bool,
    /// The client sends nothing more.
    ended: bool,
    shutting_down: bool,
    full: bool,
}

#[derive(Debug)]
enum Phase {
    Negotiating(Negotiation),
    /// Between STARTTLS and TLS.
    StartingTls(Negotiation),
    Transmitting {
        export: usize,
        transmission: Transmission,
    },
    Closed,
}

impl Connection {
    /// A new connection, with the greeting in its output.
    pub fn new(exports: Arc<[Export]>, tls: Tls, limits: Limits) -> Connection {
        let mut output = Output::default();
        let phase = Phase::Negotiating(Negotiation::begin(&mut output));
        Connection {
            exports,
            tls,
            limits,
            phase,
            pending: Pending::default(),
            output,
            events: VecDeque::new(),
            waits: false,
            ended: false,
            shutting_down: false,
            full: false,
        }
    }

    /// Takes what the client sent; how many bytes of it. Where that is not all, there was no room
    /// (see [`Connection::wants_input`]), TLS is to begin, or the connection takes nothing more.
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        self.advance(&mut rest);
        bytes.len() - rest.len()
    }

    /// Whether [`Connection::receive`] would take something. A driver that does not read from the
    /// client while this is false makes the client wait, as it should.
    pub fn wants_input(&self) -> bool {
        let takes = matches!(self.phase, Phase::Negotiating(_) | Phase::Transmitting { .. });
        takes && !self.waits && !self.ended
    }

    /// What there is to tell, in order.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Answers a request.
    ///
    /// # Panics
    ///
    /// When no request with this token is in flight, when a read is answered without data or with
    /// data of another length, or when data is the answer to anything else: mistakes of the driver,
    /// not of the client.
    pub fn reply(&mut self, token: u64, answer: Answer) {
        self.pending.answer(token, answer, &mut self.output);
        self.look_again();
    }

    /// The next chunk to send. Data that was read comes as it was given, not copied.
    pub fn output(&mut self) -> Option<Bytes> {
        let chunk = self.output.take();
        if chunk.is_some() {
            self.look_again();
        }
        chunk
    }

    /// Whether there is something to send.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether the client has no export yet. How long a client may take for that is the driver's to
    /// say.
    pub fn is_negotiating(&self) -> bool {
        matches!(self.phase, Phase::Negotiating(_) | Phase::StartingTls(_))
    }

    /// The stream is under TLS, after [`Event::StartTls`].
    ///
    /// # Panics
    ///
    /// When it was not to begin: a mistake of the driver.
    pub fn tls_established(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::StartingTls(mut negotiation) => {
                negotiation.secured();
                self.phase = Phase::Negotiating(negotiation);
            }
            // It ended while the handshake went on.
            Phase::Closed => {}
            Phase::Negotiating(_) | Phase::Transmitting { .. } => {
                panic!("tls_established: expected Event::StartTls first")
            }
        }
    }

    /// Requests that are to be answered.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// The client stopped sending, be it in the middle of a message. A request that is there as a
    /// whole and waits for room is still served.
    pub fn end_of_input(&mut self) {
        self.ended = true;
        self.advance(&mut &[][..]);
    }

    /// The server goes away: requests in flight are answered as ever; those that come from now on
    /// are refused, and so are options. The client is expected to leave. A driver that does not
    /// want to wait for that can close once nothing is [`Connection::in_flight`] and there is no
    /// output.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
        if let Phase::Transmitting { transmission, .. } = &mut self.phase {
            transmission.shut_down();
        }
        self.advance(&mut &[][..]);
    }

    /// Whether a write has been granted and some of its data, or all, is still to come.
    pub fn is_half_sent(&self) -> bool {
        matches!(&self.phase, Phase::Transmitting { transmission, .. } if transmission.is_half_sent())
    }

    /// Whether the server takes no more clients: one that asks for an export is refused from now
    /// on, with words for people. A client that has its export already keeps it.
    pub fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    /// Whether there is nothing more to tell, to answer, to send or to expect.
    pub fn is_closed(&self) -> bool {
        let takes_nothing = matches!(self.phase, Phase::Closed);
        takes_nothing && self.events.is_empty() && self.pending.is_empty() && self.output.is_empty()
    }

    /// Bytes held on behalf of the client: of messages that are not yet whole, of writes that are
    /// in flight, and of what waits to be sent. At most [`Limits::bytes`] (or one request, where
    /// that is longer) and what is half received, [`Limits::option_bytes`], [`crate::OUTPUT_ROOM`]
    /// and one reply.
    pub fn held_bytes(&self) -> u64 {
        let partial = match &self.phase {
            Phase::Negotiating(negotiation) | Phase::StartingTls(negotiation) => negotiation.held(),
            Phase::Transmitting { transmission, .. } => transmission.held(),
            Phase::Closed => 0,
        };
        partial as u64 + self.pending.written() + self.output.held()
    }

    /// Some room was made, which may be all that a message waits for.
    #[inline]
    fn look_again(&mut self) {
        if self.waits {
            self.advance(&mut &[][..]);
        }
    }

    /// Understands as much of the input as there is room for.
    fn advance(&mut self, rest: &mut &[u8]) {
        loop {
            let step = match &mut self.phase {
                Phase::Negotiating(negotiation) => {
                    let terms = negotiation::Terms {
                        exports: &self.exports,
                        tls: self.tls,
                        limits: &self.limits,
                        shutting_down: self.shutting_down,
                        full: self.full,
                    };
                    negotiation.step(rest, &terms, &mut self.output)
                }
                Phase::StartingTls(_) if rest.is_empty() => Step::NeedsInput,
                Phase::StartingTls(_) => Step::Close(Closed::Protocol(Violation::PlainAfterStartTls)),
                Phase::Transmitting { export, transmission } => {
                    let terms = transmission::Terms {
                        export: &self.exports[*export],
                        limits: &self.limits,
                        shutting_down: self.shutting_down,
                    };
                    transmission.step(rest, &terms, &mut self.pending, &mut self.output)
                }
                Phase::Closed => return,
            };
            self.waits = false;
            match step {
                Step::Again => {}
                Step::NeedsInput if self.ended => self.close(Closed::EndOfInput),
                Step::NeedsInput => return,
                Step::NeedsRoom => {
                    self.waits = true;
                    return;
                }
                Step::StartTls => self.start_tls(),
                Step::Open { export, structured } => {
                    self.pending.set_style(Style { structured });
                    self.phase = Phase::Transmitting { export, transmission: Transmission::begin(structured) };
                    self.events.push_back(Event::Opened { export });
                }
                Step::Payload { length } => self.events.push_back(Event::Payload { length }),
                Step::Request(request) => self.events.push_back(Event::Request(request)),
                Step::Close(closed) => self.close(closed),
            }
        }
    }

    fn start_tls(&mut self) {
        if let Phase::Negotiating(negotiation) = std::mem::replace(&mut self.phase, Phase::Closed) {
            self.phase = Phase::StartingTls(negotiation);
            self.events.push_back(Event::StartTls);
        }
    }

    fn close(&mut self, closed: Closed) {
        self.phase = Phase::Closed;
        self.events.push_back(Event::Closed(closed));
    }
}
