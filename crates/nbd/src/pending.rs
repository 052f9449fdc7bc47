//! Requests in flight and their replies.

use crate::output::Output;
use crate::refusal::Refusal;
use crate::request::{Answer, Errno, Op};
use crate::wire::{self, RequestHeader, chunk};
use bytes::{BufMut, BytesMut};
use std::collections::BTreeMap;

/// Form of replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// Chunks with error messages; otherwise simple replies with an error number only.
    pub structured: bool,
}

/// State of a request in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    cookie: u64,
    op: Op,
    offset: u64,
    length: u32,
}

/// Requests in flight.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    requests: BTreeMap<u64, InFlight>,
    style: Style,
    next_token: u64,
    /// Bytes of the reads and writes among them.
    bytes: u64,
    /// Bytes of the writes alone, whose data is in memory.
    written: u64,
}

impl Pending {
    /// Sets the form of the replies that follow.
    pub(crate) fn set_style(&mut self, style: Style) {
        self.style = style;
    }

    /// Adds a request; returns its token.
    pub(crate) fn add(&mut self, header: &RequestHeader, op: Op) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        let &RequestHeader { cookie, offset, length, .. } = header;
        self.requests.insert(token, InFlight { cookie, op, offset, length });
        self.bytes += carried(op, length);
        self.written += if op == Op::Write { length.into() } else { 0 };
        token
    }

    /// Returns the number of requests.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns the bytes of the reads and writes among them.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes of the writes among them.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Answers a request.
    ///
    /// # Panics
    ///
    /// When there is no such request, or the answer does not match it.
    pub(crate) fn answer(&mut self, token: u64, answer: Answer, output: &mut Output) {
        let request = self.requests.remove(&token);
        let request = request.unwrap_or_else(|| panic!("reply: expected a request in flight, found token {token}"));
        let InFlight { cookie, op, offset, length } = request;
        self.bytes -= carried(op, length);
        self.written -= if op == Op::Write { length.into() } else { 0 };
        match answer {
            Answer::Done => {
                assert_ne!(op, Op::Read, "reply: expected the data of the read, found none");
                self.done(cookie, output);
            }
            Answer::Data(data) => {
                assert_eq!(op, Op::Read, "reply: expected an answer without data, found some");
                assert_eq!(data.len() as u64, length.into(), "reply: the data is not as long as was asked for");
                output.write(|b| match self.style.structured {
                    true => {
                        put_chunk(b, chunk::OFFSET_DATA, cookie, 8 + length);
                        b.put_u64(offset);
                    }
                    false => put_simple(b, cookie, 0),
                });
                output.pass(data);
            }
            Answer::Failed(errno) => self.failed(cookie, errno, None, &errno.to_string(), output),
            Answer::FailedSaying(errno, sentence) => self.failed(cookie, errno, None, sentence, output),
            Answer::FailedAt(errno, at) => {
                let inside = at.checked_sub(offset).is_some_and(|from| from < length.into());
                self.failed(cookie, errno, inside.then_some(at), &errno.to_string(), output);
            }
        }
    }

    /// Refuses a request before it is in flight.
    pub(crate) fn refuse(&self, cookie: u64, refusal: Refusal, output: &mut Output) {
        self.failed(cookie, refusal.errno(), None, &refusal.to_string(), output);
    }

    fn done(&self, cookie: u64, output: &mut Output) {
        output.write(|b| match self.style.structured {
            true => put_chunk(b, chunk::NONE, cookie, 0),
            false => put_simple(b, cookie, 0),
        });
    }

    fn failed(&self, cookie: u64, errno: Errno, at: Option<u64>, sentence: &str, output: &mut Output) {
        output.write(|b| {
            if !self.style.structured {
                return put_simple(b, cookie, errno.number());
            }
            let (kind, place) = if at.is_some() { (chunk::ERROR_OFFSET, 8) } else { (chunk::ERROR, 0) };
            put_chunk(b, kind, cookie, 4 + 2 + sentence.len() as u32 + place);
            b.put_u32(errno.number());
            b.put_u16(sentence.len() as u16);
            b.put_slice(sentence.as_bytes());
            if let Some(at) = at {
                b.put_u64(at);
            }
        });
    }
}

/// Returns the bytes of data that a request of this kind and length carries in either direction.
pub(crate) fn carried(op: Op, length: u32) -> u64 {
    match op {
        Op::Read | Op::Write => length.into(),
        Op::Flush | Op::Trim | Op::WriteZeroes => 0,
    }
}

fn put_simple(b: &mut BytesMut, cookie: u64, error: u32) {
    b.put_u32(wire::SIMPLE_REPLY_MAGIC);
    b.put_u32(error);
    b.put_u64(cookie);
}

/// Writes a chunk's header. Each reply is one chunk, which is also its last.
fn put_chunk(b: &mut BytesMut, kind: u16, cookie: u64, length: u32) {
    b.put_u32(wire::CHUNK_MAGIC);
    b.put_u16(chunk::DONE);
    b.put_u16(kind);
    b.put_u64(cookie);
    b.put_u32(length);
}
