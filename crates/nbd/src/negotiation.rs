//! Negotiation, from the greeting to an open export.
//!
//! **Block sizes** are always reported, whether or not a client asks, and no client is rejected for
//! not asking. The protocol would allow rejecting it (`BLOCK_SIZE_REQD`) when the minimum is above
//! one byte, to avoid unaligned requests. Here unaligned requests are refused individually, so
//! admitting such a client does no harm. The clients that do not ask are those that cannot handle a
//! rejection: the kernel's client, which aligns to 512 bytes by itself and to the block size set
//! when it is attached, and clients that only know `EXPORT_NAME`. qemu and libnbd ask, and observe
//! the answer.
//!
//! **TLS**: everything negotiated before is discarded, and bytes between the option and TLS close
//! the connection, so that no plain-text data can be injected into the protected session.

use crate::closed::{Closed, Violation};
use crate::export::Export;
use crate::input::{Header, Payload, skip};
use crate::limits::{Limits, Tls};
use crate::options::{AboutExport, Malformed, meta_context, nothing};
use crate::output::{Output, put_text};
use crate::step::Step;
use crate::wire::{self, OptionHeader, info, option, reply};
use bytes::{BufMut, BytesMut};

/// The server's side of the negotiation.
pub(crate) struct Terms<'a> {
    /// The exports.
    pub exports: &'a [Export],
    /// The use of TLS.
    pub tls: Tls,
    /// The client's limits.
    pub limits: &'a Limits,
    /// The server is shutting down.
    pub shutting_down: bool,
    /// The server accepts no more clients.
    pub full: bool,
}

/// A negotiation in progress.
#[derive(Debug)]
pub(crate) struct Negotiation {
    stage: Stage,
    fixed_newstyle: bool,
    no_zeroes: bool,
    structured: bool,
    /// TLS is established.
    secured: bool,
    /// Options received.
    options: u32,
}

#[derive(Debug)]
enum Stage {
    ClientFlags(Header<4>),
    Header(Header<{ OptionHeader::BYTES }>),
    Data {
        option: u32,
        data: Payload,
    },
    /// Data of an option that is too long.
    Skip {
        option: u32,
        left: u32,
    },
    /// A list in progress: the exports from `next` on remain.
    Listing {
        next: usize,
    },
}

impl Negotiation {
    /// Writes the greeting.
    pub(crate) fn begin(output: &mut Output) -> Negotiation {
        output.write(|b| {
            b.put_u64(wire::GREETING);
            b.put_u64(wire::OPTION_MAGIC);
            b.put_u16(wire::FIXED_NEWSTYLE | wire::NO_ZEROES);
        });
        Negotiation {
            stage: Stage::ClientFlags(Header::new()),
            fixed_newstyle: false,
            no_zeroes: false,
            structured: false,
            secured: false,
            options: 0,
        }
    }

    /// Notes that TLS is established: what was negotiated without it may be forged.
    pub(crate) fn secured(&mut self) {
        self.secured = true;
        self.structured = false;
    }

    /// Returns the memory of a partial message.
    pub(crate) fn held(&self) -> usize {
        match &self.stage {
            Stage::Data { data, .. } => data.held(),
            Stage::ClientFlags(_) | Stage::Header(_) | Stage::Skip { .. } | Stage::Listing { .. } => 0,
        }
    }

    /// Processes the next piece of input.
    pub(crate) fn step(&mut self, rest: &mut &[u8], terms: &Terms, output: &mut Output) -> Step {
        match &mut self.stage {
            Stage::ClientFlags(header) => {
                let Some(&bytes) = header.take(rest) else { return Step::NeedsInput };
                self.client_flags(u32::from_be_bytes(bytes))
            }
            Stage::Header(header) => {
                let Some(bytes) = header.take(rest) else { return Step::NeedsInput };
                let header = OptionHeader::read(bytes);
                self.header(header, terms.limits)
            }
            Stage::Data { option, data } => {
                if !data.take(rest) {
                    return Step::NeedsInput;
                }
                if !output.has_room() {
                    return Step::NeedsRoom;
                }
                let option = *option;
                let data = std::mem::replace(data, Payload::new(0));
                self.stage = Stage::Header(Header::new());
                self.option(option, data.bytes(), terms, output)
            }
            Stage::Skip { option, left } => {
                if !skip(left, rest) {
                    return Step::NeedsInput;
                }
                if !output.has_room() {
                    return Step::NeedsRoom;
                }
                let option = *option;
                self.stage = Stage::Header(Header::new());
                let limit = terms.limits.option_bytes;
                refuse(output, option, reply::TOO_BIG, &format!("option: expected at most {limit} bytes"));
                Step::Again
            }
            Stage::Listing { next } => {
                // One at a time as there is room: all names together can be megabytes.
                if !output.has_room() {
                    return Step::NeedsRoom;
                }
                match terms.exports.get(*next) {
                    Some(export) => {
                        list(export, output);
                        *next += 1;
                    }
                    None => {
                        acknowledge(output, option::LIST);
                        self.stage = Stage::Header(Header::new());
                    }
                }
                Step::Again
            }
        }
    }

    fn client_flags(&mut self, found: u32) -> Step {
        let (fixed_newstyle, no_zeroes) = (u32::from(wire::FIXED_NEWSTYLE), u32::from(wire::NO_ZEROES));
        if found & !(fixed_newstyle | no_zeroes) != 0 {
            return violates(Violation::ClientFlags { found });
        }
        self.fixed_newstyle = found & fixed_newstyle != 0;
        self.no_zeroes = found & no_zeroes != 0;
        self.stage = Stage::Header(Header::new());
        Step::Again
    }

    fn header(&mut self, header: OptionHeader, limits: &Limits) -> Step {
        let OptionHeader { magic, option, length } = header;
        if magic != wire::OPTION_MAGIC {
            return violates(Violation::OptionMagic { found: magic });
        }
        if self.options == limits.options {
            return violates(Violation::TooManyOptions { limit: limits.options });
        }
        self.options += 1;
        if !self.fixed_newstyle && option != option::EXPORT_NAME {
            return violates(Violation::NotFixedNewstyle { option });
        }
        let limit = limits.option_bytes;
        if length <= limit {
            self.stage = Stage::Data { option, data: Payload::new(length) };
        } else if option == option::EXPORT_NAME {
            return violates(Violation::NameTooLong { length, limit });
        } else {
            self.stage = Stage::Skip { option, left: length };
        }
        Step::Again
    }

    /// Answers a complete option.
    fn option(&mut self, option: u32, data: &[u8], terms: &Terms, output: &mut Output) -> Step {
        if option == option::ABORT {
            acknowledge(output, option);
            return Step::Close(Closed::ByClient);
        }
        if option == option::EXPORT_NAME {
            return self.export_name(data, terms, output);
        }
        if terms.shutting_down {
            refuse(output, option, reply::SHUTDOWN, "the server is going away");
            return Step::Again;
        }
        if self.needs_tls(terms) && option != option::STARTTLS {
            refuse(output, option, reply::TLS_REQD, "STARTTLS first");
            return Step::Again;
        }
        let answered = match option {
            option::LIST => nothing(data).map(|()| {
                self.stage = Stage::Listing { next: 0 };
                Step::Again
            }),
            option::STARTTLS => nothing(data).map(|()| self.start_tls(terms.tls, output)),
            option::INFO | option::GO => {
                AboutExport::read(data).map(|about| self.about_export(option, &about, terms, output))
            }
            option::STRUCTURED_REPLY => nothing(data).map(|()| {
                self.structured = true;
                acknowledge(output, option);
                Step::Again
            }),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.meta_context(option, data, terms, output),
            _ => {
                refuse(output, option, reply::UNSUP, "no such option here");
                Ok(Step::Again)
            }
        };
        answered.unwrap_or_else(|malformed| {
            refuse(output, option, reply::INVALID, &malformed.to_string());
            Step::Again
        })
    }

    fn needs_tls(&self, terms: &Terms) -> bool {
        terms.tls == Tls::Required && !self.secured
    }

    /// Handles `EXPORT_NAME`, which has no error reply.
    fn export_name(&mut self, name: &[u8], terms: &Terms, output: &mut Output) -> Step {
        if self.needs_tls(terms) {
            return violates(Violation::TlsRequired);
        }
        if terms.shutting_down {
            return Step::Close(Closed::ShutDown);
        }
        let Some(export) = Export::find(terms.exports, name) else {
            return violates(Violation::unknown_export(name));
        };
        if terms.full {
            return Step::Close(Closed::Full);
        }
        let found = &terms.exports[export];
        output.write(|b| {
            b.put_u64(found.size);
            b.put_u16(found.flags(self.structured));
            if !self.no_zeroes {
                b.put_bytes(0, wire::EXPORT_NAME_PADDING);
            }
        });
        Step::Open { export, structured: self.structured }
    }

    fn start_tls(&mut self, tls: Tls, output: &mut Output) -> Step {
        if self.secured {
            refuse(output, option::STARTTLS, reply::INVALID, "TLS is established already");
            return Step::Again;
        }
        match tls {
            Tls::Off => {
                refuse(output, option::STARTTLS, reply::UNSUP, "there is no TLS here");
                Step::Again
            }
            Tls::Offered | Tls::Required => {
                acknowledge(output, option::STARTTLS);
                Step::StartTls
            }
        }
    }

    fn about_export(&self, option: u32, about: &AboutExport, terms: &Terms, output: &mut Output) -> Step {
        let Some(export) = Export::find(terms.exports, about.name.as_bytes()) else {
            refuse(output, option, reply::UNKNOWN, "there is no such export");
            return Step::Again;
        };
        if terms.full && option == option::GO {
            refuse(output, option, reply::POLICY, "the server has as many clients as it takes");
            return Step::Again;
        }
        let found = &terms.exports[export];
        tell(output, option, info::EXPORT, |b| {
            b.put_u64(found.size);
            b.put_u16(found.flags(self.structured));
        });
        if about.wants(info::NAME) {
            tell(output, option, info::NAME, |b| b.put_slice(found.name.as_bytes()));
        }
        if about.wants(info::DESCRIPTION) && !found.description.is_empty() {
            tell(output, option, info::DESCRIPTION, |b| b.put_slice(found.description.as_bytes()));
        }
        tell(output, option, info::BLOCK_SIZE, |b| {
            b.put_u32(found.blocks.minimum);
            b.put_u32(found.blocks.preferred);
            b.put_u32(found.blocks.maximum);
        });
        acknowledge(output, option);
        if option == option::GO { Step::Open { export, structured: self.structured } } else { Step::Again }
    }

    /// There are no contexts, a valid answer: the client continues without them.
    fn meta_context(&self, option: u32, data: &[u8], terms: &Terms, output: &mut Output) -> Result<Step, Malformed> {
        let name = meta_context(data)?;
        if !self.structured {
            refuse(output, option, reply::INVALID, "STRUCTURED_REPLY first");
        } else if Export::find(terms.exports, name.as_bytes()).is_none() {
            refuse(output, option, reply::UNKNOWN, "there is no such export");
        } else {
            acknowledge(output, option);
        }
        Ok(Step::Again)
    }
}

fn violates(violation: Violation) -> Step {
    Step::Close(Closed::Protocol(violation))
}

/// Writes a reply to an option.
fn answer(output: &mut Output, option: u32, kind: u32, content: impl FnOnce(&mut BytesMut)) {
    output.write(|b| {
        b.put_u64(wire::OPTION_REPLY_MAGIC);
        b.put_u32(option);
        b.put_u32(kind);
        let length_at = b.len();
        b.put_u32(0);
        let from = b.len();
        content(b);
        let length = (b.len() - from) as u32;
        b[length_at..from].copy_from_slice(&length.to_be_bytes());
    });
}

fn list(export: &Export, output: &mut Output) {
    answer(output, option::LIST, reply::SERVER, |b| {
        put_text(b, &export.name);
        // The description has no length field: it extends to the end.
        b.put_slice(export.description.as_bytes());
    });
}

fn acknowledge(output: &mut Output, option: u32) {
    answer(output, option, reply::ACK, |_| {});
}

fn refuse(output: &mut Output, option: u32, error: u32, sentence: &str) {
    answer(output, option, error, |b| b.put_slice(sentence.as_bytes()));
}

/// Writes one item of information about an export.
fn tell(output: &mut Output, option: u32, kind: u16, content: impl FnOnce(&mut BytesMut)) {
    answer(output, option, reply::INFO, |b| {
        b.put_u16(kind);
        content(b);
    });
}
