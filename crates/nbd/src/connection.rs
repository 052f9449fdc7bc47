//! A connection, from the greeting to its end.

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

/// An event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An export is open; requests may follow.
    Opened {
        /// Its index.
        export: usize,
    },
    /// A write is admitted, and its data comes next. [`Connection::receive`] buffers the data until
    /// it is complete, and a request with it follows; a driver short of memory can withhold input
    /// until it has some. A write whose data never completes, because the server shuts down or the
    /// connection ends, is followed by no request.
    Payload {
        /// Length of its data in bytes.
        length: u32,
    },
    /// A request to answer with [`Connection::reply`].
    Request(Request),
    /// Send all output, do the TLS handshake, call [`Connection::tls_established`]. No byte
    /// received before the handshake may be passed to [`Connection::receive`] after it.
    StartTls,
    /// No more input is taken, and no event follows. Requests in flight must still be answered, and
    /// output sent, until [`Connection::is_closed`].
    Closed(Closed),
}

/// The server side of a connection to one client.
///
/// The driver's obligations:
///
/// * After [`Connection::receive`], [`Connection::reply`], [`Connection::output`],
///   [`Connection::tls_established`], [`Connection::end_of_input`] and [`Connection::shut_down`],
///   call [`Connection::poll`] until it returns `None`. This applies not only to `receive`: a
///   request that waits for room is examined again when room is made, which happens when a request
///   is answered or output is taken.
/// * Pass bytes that `receive` did not take again when [`Connection::wants_input`] is true.
/// * Answer each request exactly once, in any order, also after [`Event::Closed`].
///
/// A loop of *poll, output, poll again if output was taken, then wait* meets them.
#[derive(Debug)]
pub struct Connection {
    exports: Arc<[Export]>,
    tls: Tls,
    limits: Limits,
    phase: Phase,
    pending: Pending,
    output: Output,
    events: VecDeque<Event>,
    /// A complete message waits for room.
    waits: bool,
    /// The client's input has ended.
    ended: bool,
    shutting_down: bool,
    full: bool,
}

#[derive(Debug)]
enum Phase {
    Negotiating(Negotiation),
    /// Between STARTTLS and the end of the TLS handshake.
    StartingTls(Negotiation),
    Transmitting {
        export: usize,
        transmission: Transmission,
    },
    Closed,
}

impl Connection {
    /// Creates a connection, with the greeting in its output.
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

    /// Takes input from the client; returns the number of bytes taken. If not all are taken, there
    /// is no room (see [`Connection::wants_input`]), TLS is to start, or the connection is closed.
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        self.advance(&mut rest);
        bytes.len() - rest.len()
    }

    /// Whether [`Connection::receive`] takes input. A driver that does not read from the client
    /// while this is false applies back-pressure, as intended.
    pub fn wants_input(&self) -> bool {
        let takes = matches!(self.phase, Phase::Negotiating(_) | Phase::Transmitting { .. });
        takes && !self.waits && !self.ended
    }

    /// Returns the next event.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Answers a request.
    ///
    /// # Panics
    ///
    /// When no request with this token is in flight, when a read is answered without data or with
    /// data of the wrong length, or when another request is answered with data: errors of the
    /// driver, not of the client.
    pub fn reply(&mut self, token: u64, answer: Answer) {
        self.pending.answer(token, answer, &mut self.output);
        self.look_again();
    }

    /// Returns the next chunk to send. The data of a read is passed through without copying.
    pub fn output(&mut self) -> Option<Bytes> {
        let chunk = self.output.take();
        if chunk.is_some() {
            self.look_again();
        }
        chunk
    }

    /// Whether there is output to send.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether the client has no open export yet. A timeout for negotiation is up to the driver.
    pub fn is_negotiating(&self) -> bool {
        matches!(self.phase, Phase::Negotiating(_) | Phase::StartingTls(_))
    }

    /// Notes that TLS is established, after [`Event::StartTls`].
    ///
    /// # Panics
    ///
    /// Without a preceding [`Event::StartTls`]: an error of the driver.
    pub fn tls_established(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::StartingTls(mut negotiation) => {
                negotiation.secured();
                self.phase = Phase::Negotiating(negotiation);
            }
            // The connection ended during the handshake.
            Phase::Closed => {}
            Phase::Negotiating(_) | Phase::Transmitting { .. } => {
                panic!("tls_established: expected Event::StartTls first")
            }
        }
    }

    /// Returns the number of requests to be answered.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Notes the end of the client's input, possibly within a message. A complete request that
    /// waits for room is still served.
    pub fn end_of_input(&mut self) {
        self.ended = true;
        self.advance(&mut &[][..]);
    }

    /// Starts the shutdown: requests in flight are answered as usual; later requests and options
    /// are refused. The client is expected to disconnect. A driver that does not wait for that can
    /// close once no request is [`Connection::in_flight`] and there is no output.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
        if let Phase::Transmitting { transmission, .. } = &mut self.phase {
            transmission.shut_down();
        }
        self.advance(&mut &[][..]);
    }

    /// Whether a write is admitted and its data incomplete.
    pub fn is_half_sent(&self) -> bool {
        matches!(&self.phase, Phase::Transmitting { transmission, .. } if transmission.is_half_sent())
    }

    /// Sets whether the server accepts no more clients: opening an export is then refused with a
    /// text message. An export that is open stays open.
    pub fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    /// Whether the connection has ended: no events, no requests in flight, no output, no input to
    /// come.
    pub fn is_closed(&self) -> bool {
        let takes_nothing = matches!(self.phase, Phase::Closed);
        takes_nothing && self.events.is_empty() && self.pending.is_empty() && self.output.is_empty()
    }

    /// Returns the memory held for the client in bytes: partial messages, writes in flight, and
    /// output. At most [`Limits::bytes`] (or one request, if that is longer) plus partial messages,
    /// [`Limits::option_bytes`], [`crate::OUTPUT_ROOM`] and one reply.
    pub fn held_bytes(&self) -> u64 {
        let partial = match &self.phase {
            Phase::Negotiating(negotiation) | Phase::StartingTls(negotiation) => negotiation.held(),
            Phase::Transmitting { transmission, .. } => transmission.held(),
            Phase::Closed => 0,
        };
        partial as u64 + self.pending.written() + self.output.held()
    }

    /// Examines a message that waits for room again.
    #[inline]
    fn look_again(&mut self) {
        if self.waits {
            self.advance(&mut &[][..]);
        }
    }

    /// Processes as much of the input as there is room for.
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
