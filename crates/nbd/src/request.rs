//! Requests and answers.

use bytes::Bytes;
use std::fmt;

/// A valid request: its range lies in the export, is aligned, and its operation is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Identifies it until it is answered; assigned here, and unique within a connection.
    pub token: u64,
    /// The operation.
    pub op: Op,
    /// Offset in bytes. Zero for a flush.
    pub offset: u64,
    /// Length in bytes. Zero for a flush.
    pub length: u64,
    /// FUA: the data must be on the medium before the answer. Only set for requests that write.
    pub fua: bool,
    /// The zeroes must be allocated on the medium. Only set for [`Op::WriteZeroes`].
    pub no_hole: bool,
    /// The data of a write, in one buffer; otherwise empty.
    pub data: Bytes,
}

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads a range. Answered with [`Answer::Data`].
    Read,
    /// Writes a range.
    Write,
    /// Makes every answered write durable.
    Flush,
    /// Discards a range.
    Trim,
    /// Makes a range read as zeroes.
    WriteZeroes,
}

/// Answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Success of anything but a read.
    Done,
    /// Data of a read, of exactly its length.
    Data(Bytes),
    /// Failure.
    Failed(Errno),
    /// Failure with a message, which structured replies carry in addition to the error.
    FailedSaying(Errno, &'static str),
    /// Failure at this offset of the export. With simple replies, or if the offset is outside the
    /// request, the client gets the error alone.
    FailedAt(Errno, u64),
}

/// Errors of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// Not permitted.
    Perm,
    /// I/O error of the medium.
    Io,
    /// Out of memory.
    NoMem,
    /// Invalid request.
    Inval,
    /// Out of space.
    NoSpc,
    /// Too large.
    Overflow,
    /// Not supported.
    NotSup,
    /// The server is shutting down.
    Shutdown,
}

impl Errno {
    /// Returns its number on the wire.
    pub fn number(self) -> u32 {
        match self {
            Errno::Perm => 1,
            Errno::Io => 5,
            Errno::NoMem => 12,
            Errno::Inval => 22,
            Errno::NoSpc => 28,
            Errno::Overflow => 75,
            Errno::NotSup => 95,
            Errno::Shutdown => 108,
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Errno::Perm => "not permitted",
            Errno::Io => "the medium failed",
            Errno::NoMem => "out of memory",
            Errno::Inval => "the request makes no sense",
            Errno::NoSpc => "out of space",
            Errno::Overflow => "too large",
            Errno::NotSup => "not supported",
            Errno::Shutdown => "the server is going away",
        })
    }
}
