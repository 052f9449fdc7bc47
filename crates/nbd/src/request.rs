//! What a client asks for once it has an export, and what it can be answered.

use bytes::Bytes;
use std::fmt;

/// A request that may be served: its range lies in the export, is aligned, and what it asks for is
/// offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its name until it is answered: ours, and never used twice on a connection.
    pub token: u64,
    /// What is asked for.
    pub op: Op,
    /// First byte. Zero for a flush.
    pub offset: u64,
    /// Bytes. Zero for a flush.
    pub length: u64,
    /// It must be on the medium before it is answered. Only ever set where something is written.
    pub fua: bool,
    /// The zeroes must have their place on the medium. Only ever set for [`Op::WriteZeroes`].
    pub no_hole: bool,
    /// What to write, in one piece; else empty.
    pub data: Bytes,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The bytes of a range. Answered with [`Answer::Data`].
    Read,
    /// Bytes into a range.
    Write,
    /// Every write that was answered onto the medium.
    Flush,
    /// The range is no longer needed.
    Trim,
    /// The range shall read as zeroes.
    WriteZeroes,
}

/// What a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done. Not for a read.
    Done,
    /// Exactly the bytes that a read asked for.
    Data(Bytes),
    /// It failed.
    Failed(Errno),
    /// It failed, and there is more to say than the error does: a client with structured replies is
    /// told the sentence, any other the error alone.
    FailedSaying(Errno, &'static str),
    /// It failed at this offset of the export. Where the offset is none of the request's, or
    /// replies are simple, the client is told of the failure alone.
    FailedAt(Errno, u64),
}

/// The errors that the protocol knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// Not permitted.
    Perm,
    /// The medium failed.
    Io,
    /// Out of memory.
    NoMem,
    /// The request makes no sense.
    Inval,
    /// Out of space.
    NoSpc,
    /// Too large.
    Overflow,
    /// Not supported.
    NotSup,
    /// The server is going away.
    Shutdown,
}

impl Errno {
    /// Its number on the wire.
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
