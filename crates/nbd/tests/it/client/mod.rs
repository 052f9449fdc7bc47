//! A model of an NBD client: encodes what clients send and parses what servers reply.
//!
//! It shares only the interface types with the crate; the protocol's constants are defined here a
//! second time, so that an error on either side is detected.

#![allow(dead_code, reason = "each test binary uses its own part of it")]

pub mod session;

use std::collections::VecDeque;

pub const FIXED: u32 = 1;
pub const NO_ZEROES: u32 = 2;

pub const EXPORT_NAME: u32 = 1;
pub const ABORT: u32 = 2;
pub const LIST: u32 = 3;
pub const STARTTLS: u32 = 5;
pub const INFO: u32 = 6;
pub const GO: u32 = 7;
pub const STRUCTURED: u32 = 8;
pub const LIST_META: u32 = 9;
pub const SET_META: u32 = 10;

pub const ACK: u32 = 1;
pub const SERVER: u32 = 2;
pub const TELL: u32 = 3;
pub const UNSUP: u32 = 0x8000_0001;
pub const INVALID: u32 = 0x8000_0003;
pub const TLS_REQD: u32 = 0x8000_0005;
pub const UNKNOWN: u32 = 0x8000_0006;
pub const SHUTDOWN: u32 = 0x8000_0007;
pub const TOO_BIG: u32 = 0x8000_0009;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISC: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const CACHE: u16 = 5;
pub const ZEROES: u16 = 6;
pub const STATUS: u16 = 7;

pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;
pub const DF: u16 = 4;
pub const FAST_ZERO: u16 = 16;

pub const EPERM: u32 = 1;
pub const EIO: u32 = 5;
pub const EINVAL: u32 = 22;
pub const ENOSPC: u32 = 28;
pub const ENOTSUP: u32 = 95;
pub const ESHUTDOWN: u32 = 108;

/// The client flags.
pub fn flags(flags: u32) -> Vec<u8> {
    flags.to_be_bytes().to_vec()
}

/// An option with its data.
pub fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// A string as encoded in options.
pub fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

/// Data of `INFO` and `GO`.
pub fn about(name: &str, kinds: &[u16]) -> Vec<u8> {
    let mut bytes = text(name);
    bytes.extend((kinds.len() as u16).to_be_bytes());
    bytes.extend(kinds.iter().flat_map(|k| k.to_be_bytes()));
    bytes
}

/// Data of `LIST_META` and `SET_META`.
pub fn contexts(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut bytes = text(name);
    bytes.extend((queries.len() as u32).to_be_bytes());
    bytes.extend(queries.iter().flat_map(|q| text(q)));
    bytes
}

/// A request without data.
pub fn request(command: u16, flags: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = vec![0x25, 0x60, 0x95, 0x13];
    bytes.extend(flags.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// A write with its data.
pub fn write(flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes = request(WRITE, flags, cookie, offset, data.len() as u32);
    bytes.extend(data);
    bytes
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Greeting { flags: u16 },
    Option { option: u32, kind: u32, data: Vec<u8> },
    Export { size: u64, flags: u16, zeroes: usize },
    Simple { error: u32, cookie: u64, data: Vec<u8> },
    Chunk { flags: u16, kind: u16, cookie: u64, data: Vec<u8> },
}

impl Said {
    /// Returns the error of a reply, or zero.
    pub fn error(&self) -> u32 {
        match self {
            Said::Simple { error, .. } => *error,
            Said::Chunk { kind, data, .. } if kind >> 15 == 1 => u32::from_be_bytes(data[..4].try_into().unwrap()),
            Said::Chunk { .. } => 0,
            other => panic!("no reply to a request: {other:?}"),
        }
    }

    /// Returns the cookie of a reply.
    pub fn cookie(&self) -> u64 {
        match self {
            Said::Simple { cookie, .. } | Said::Chunk { cookie, .. } => *cookie,
            other => panic!("no reply to a request: {other:?}"),
        }
    }
}

/// A strict parser of the server's messages: anything that could confuse a client is an error.
#[derive(Debug)]
pub struct Ear {
    heard: VecDeque<u8>,
    no_zeroes: bool,
    greeted: bool,
    open: bool,
    structured: bool,
}

impl Ear {
    /// Creates a parser for a client with or without `NO_ZEROES`.
    pub fn new(no_zeroes: bool) -> Ear {
        Ear { heard: VecDeque::new(), no_zeroes, greeted: false, open: false, structured: false }
    }

    /// Adds a piece of the stream.
    pub fn hear(&mut self, bytes: &[u8]) {
        self.heard.extend(bytes);
    }

    /// Returns the number of bytes of an incomplete message.
    pub fn rest(&self) -> usize {
        self.heard.len()
    }

    /// Notes that TLS is established, which discards what was negotiated.
    pub fn tls_established(&mut self) {
        self.structured = false;
    }

    /// Returns the next complete message. `data_after` gives the length of the data after a
    /// successful simple reply.
    pub fn next(&mut self, data_after: &mut dyn FnMut(u64) -> usize) -> Result<Option<Said>, String> {
        let heard = self.heard.make_contiguous();
        let mut parts = Parts { bytes: heard, at: 0 };
        let said = if !self.greeted {
            parts.greeting()
        } else if self.open {
            parts.reply(self.structured, data_after)
        } else {
            parts.answer(self.no_zeroes)
        };
        let at = parts.at;
        match said {
            Err(Stop::Short) => Ok(None),
            Err(Stop::Wrong(why)) => Err(why),
            Ok(said) => {
                self.heard.drain(..at);
                self.learn(&said);
                Ok(Some(said))
            }
        }
    }

    fn learn(&mut self, said: &Said) {
        match said {
            Said::Greeting { .. } => self.greeted = true,
            Said::Option { option: STRUCTURED, kind: ACK, .. } => self.structured = true,
            Said::Option { option: GO, kind: ACK, .. } | Said::Export { .. } => self.open = true,
            _ => {}
        }
    }
}

enum Stop {
    Short,
    Wrong(String),
}

struct Parts<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parts<'_> {
    fn take(&mut self, count: usize) -> Result<&[u8], Stop> {
        let part = self.bytes.get(self.at..).and_then(|b| b.get(..count)).ok_or(Stop::Short)?;
        self.at += count;
        Ok(part)
    }

    fn number(&mut self, bytes: usize) -> Result<u64, Stop> {
        Ok(self.take(bytes)?.iter().fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    fn greeting(&mut self) -> Result<Said, Stop> {
        let magic = self.take(16)?;
        if magic != b"NBDMAGICIHAVEOPT" {
            return wrong(format!("greeting {magic:x?}"));
        }
        Ok(Said::Greeting { flags: self.number(2)? as u16 })
    }

    fn answer(&mut self, no_zeroes: bool) -> Result<Said, Stop> {
        let magic = self.number(8)?;
        if magic != 0x0003_e889_0455_65a9 {
            let flags = self.number(2)? as u16;
            let zeroes = if no_zeroes { 0 } else { 124 };
            if self.take(zeroes)?.iter().any(|&b| b != 0) {
                return wrong("padding that is not zero".into());
            }
            return Ok(Said::Export { size: magic, flags, zeroes });
        }
        let (option, kind, length) = (self.number(4)? as u32, self.number(4)? as u32, self.number(4)? as usize);
        let data = self.take(length)?.to_vec();
        if kind >> 31 == 1 && std::str::from_utf8(&data).is_err() {
            return wrong("an error whose sentence is no text".into());
        }
        if kind == ACK && length != 0 {
            return wrong("an acknowledgement with data".into());
        }
        Ok(Said::Option { option, kind, data })
    }

    fn reply(&mut self, structured: bool, data_after: &mut dyn FnMut(u64) -> usize) -> Result<Said, Stop> {
        match (self.number(4)?, structured) {
            (0x6744_6698, false) => {
                let (error, cookie) = (self.number(4)? as u32, self.number(8)?);
                let length = if error == 0 { data_after(cookie) } else { 0 };
                Ok(Said::Simple { error, cookie, data: self.take(length)?.to_vec() })
            }
            (0x668e_33ef, true) => {
                let (flags, kind, cookie) = (self.number(2)? as u16, self.number(2)? as u16, self.number(8)?);
                let length = self.number(4)? as usize;
                let data = self.take(length)?.to_vec();
                let sentence = |place: usize| {
                    let length = usize::from(u16::from_be_bytes([data[4], data[5]]));
                    data.len() == 6 + length + place && std::str::from_utf8(&data[6..6 + length]).is_ok()
                };
                let whole = match kind {
                    0 => data.is_empty(),
                    1 => data.len() > 8,
                    0x8001 => data.len() >= 6 && sentence(0),
                    0x8002 => data.len() >= 14 && sentence(8),
                    _ => false,
                };
                if !whole || flags != 1 {
                    return wrong(format!("chunk of kind {kind:#x}, flags {flags:#x}: {data:x?}"));
                }
                Ok(Said::Chunk { flags, kind, cookie, data })
            }
            (magic, _) => wrong(format!("reply {magic:#x}, structured: {structured}")),
        }
    }
}

fn wrong(why: String) -> Result<Said, Stop> {
    Err(Stop::Wrong(why))
}
