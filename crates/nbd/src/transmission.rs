//! Checking of incoming requests, and their admission when there is room.

use crate::closed::{Closed, Violation};
use crate::export::Export;
use crate::input::{Header, Payload, skip};
use crate::limits::Limits;
use crate::output::Output;
use crate::pending::{Pending, carried};
use crate::refusal::{Refusal, check};
use crate::request::{Op, Request};
use crate::step::Step;
use crate::wire::{self, RequestHeader, command, flag};
use bytes::Bytes;

/// Bytes by which a write may exceed its export's maximum and still be skipped and refused. A
/// longer write closes the connection.
pub const PAYLOAD_SKIPPED: u32 = 64 << 20;

/// The server's side of the transmission.
pub(crate) struct Terms<'a> {
    /// The open export.
    pub export: &'a Export,
    /// The client's limits.
    pub limits: &'a Limits,
    /// The server is shutting down.
    pub shutting_down: bool,
}

/// Parser of the request stream.
#[derive(Debug)]
pub(crate) struct Transmission {
    structured: bool,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Header(Header<{ RequestHeader::BYTES }>),
    /// A complete header, whose request waits for room.
    Admit(RequestHeader),
    /// Data of an admitted write.
    Payload {
        header: RequestHeader,
        data: Payload,
    },
    /// Data of a refused write.
    Skip {
        cookie: u64,
        left: u32,
        refusal: Refusal,
    },
}

impl Transmission {
    /// Begins with the first request.
    pub(crate) fn begin(structured: bool) -> Transmission {
        Transmission { structured, stage: Stage::Header(Header::new()) }
    }

    /// Returns the memory of a partial message.
    pub(crate) fn held(&self) -> usize {
        match &self.stage {
            Stage::Payload { data, .. } => data.held(),
            Stage::Header(_) | Stage::Admit(_) | Stage::Skip { .. } => 0,
        }
    }

    /// Whether a write is admitted and its data incomplete.
    pub(crate) fn is_half_sent(&self) -> bool {
        matches!(self.stage, Stage::Payload { .. })
    }

    /// Starts the shutdown: incomplete requests are dropped.
    pub(crate) fn shut_down(&mut self) {
        if let Stage::Payload { header, data } = &self.stage {
            self.stage = Stage::Skip { cookie: header.cookie, left: data.missing(), refusal: Refusal::ShuttingDown };
        }
    }

    /// Processes the next piece of input.
    pub(crate) fn step(&mut self, rest: &mut &[u8], terms: &Terms, pending: &mut Pending, output: &mut Output) -> Step {
        match &mut self.stage {
            Stage::Header(header) => {
                let Some(bytes) = header.take(rest) else { return Step::NeedsInput };
                let header = RequestHeader::read(bytes);
                self.header(header, terms.export)
            }
            Stage::Admit(header) => {
                let header = *header;
                self.admit(header, terms, pending, output)
            }
            Stage::Payload { header, data } => {
                if !data.take(rest) {
                    return Step::NeedsInput;
                }
                let header = *header;
                let data = std::mem::replace(data, Payload::new(0)).into_bytes();
                self.stage = Stage::Header(Header::new());
                request(&header, Op::Write, data, pending)
            }
            Stage::Skip { cookie, left, refusal } => {
                if !skip(left, rest) {
                    return Step::NeedsInput;
                }
                pending.refuse(*cookie, *refusal, output);
                self.stage = Stage::Header(Header::new());
                Step::Again
            }
        }
    }

    fn header(&mut self, header: RequestHeader, export: &Export) -> Step {
        if header.magic != wire::REQUEST_MAGIC {
            return Step::Close(Closed::Protocol(Violation::RequestMagic { found: header.magic }));
        }
        // Needs neither a reply nor room, so a client can always disconnect.
        if header.command == command::DISC {
            return Step::Close(Closed::ByClient);
        }
        let (length, limit) = (header.payload(), u64::from(export.blocks.maximum) + u64::from(PAYLOAD_SKIPPED));
        if u64::from(length) > limit {
            return Step::Close(Closed::Protocol(Violation::PayloadTooLong { length, limit }));
        }
        self.stage = Stage::Admit(header);
        Step::Again
    }

    fn admit(&mut self, header: RequestHeader, terms: &Terms, pending: &mut Pending, output: &mut Output) -> Step {
        if !output.has_room() {
            return Step::NeedsRoom;
        }
        let checked = match terms.shutting_down {
            true => Err(Refusal::ShuttingDown),
            false => check(&header, terms.export, self.structured),
        };
        match checked {
            Err(refusal) => {
                self.stage = Stage::Skip { cookie: header.cookie, left: header.payload(), refusal };
                Step::Again
            }
            Ok(op) if !has_room(carried(op, header.length), terms.limits, pending, output) => Step::NeedsRoom,
            Ok(Op::Write) => {
                self.stage = Stage::Payload { header, data: Payload::new(header.length) };
                Step::Payload { length: header.length }
            }
            Ok(op) => {
                self.stage = Stage::Header(Header::new());
                request(&header, op, Bytes::new(), pending)
            }
        }
    }
}

/// Whether there is room for a request that carries the given number of bytes.
///
/// Data of reads that waits to be sent counts as in flight: the client has to take it.
fn has_room(carries: u64, limits: &Limits, pending: &Pending, output: &Output) -> bool {
    if pending.len() >= limits.requests.max(1) as usize {
        return false;
    }
    let before = pending.bytes() + output.data();
    carries == 0 || before + carries <= limits.bytes || (pending.is_empty() && output.data() == 0)
}

/// Passes a request on.
fn request(header: &RequestHeader, op: Op, data: Bytes, pending: &mut Pending) -> Step {
    let writes = matches!(op, Op::Write | Op::Trim | Op::WriteZeroes);
    Step::Request(Request {
        token: pending.add(header, op),
        op,
        offset: header.offset,
        length: header.length.into(),
        fua: writes && header.flags & flag::FUA != 0,
        no_hole: header.flags & flag::NO_HOLE != 0,
        data,
    })
}
