//! How the protocol looks on the wire: its numbers, and the headers that have a fixed shape.
//!
//! Everything is big-endian. The numbers are the protocol's own; the names follow its names closely
//! enough to be looked up there.

use bytes::Buf;

/// First eight bytes of the greeting.
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
/// Begins the second part of the greeting, and every option that a client sends.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Begins every answer to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Begins a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Begins a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Begins a chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// The server answers options that it refuses, instead of hanging up.
pub const FIXED_NEWSTYLE: u16 = 1 << 0;
/// The answer to `EXPORT_NAME` may go without its padding.
pub const NO_ZEROES: u16 = 1 << 1;
/// The padding that ends the answer to `EXPORT_NAME`.
pub const EXPORT_NAME_PADDING: usize = 124;

/// What a client may ask for while it haggles.
pub mod option {
    /// Open this export; there is no way to refuse but to hang up.
    pub const EXPORT_NAME: u32 = 1;
    /// The client leaves.
    pub const ABORT: u32 = 2;
    /// Which exports are there?
    pub const LIST: u32 = 3;
    /// Go on under TLS.
    pub const STARTTLS: u32 = 5;
    /// Tell about an export.
    pub const INFO: u32 = 6;
    /// Tell about an export and open it.
    pub const GO: u32 = 7;
    /// Replies to requests shall be structured.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Which kinds of block status are there?
    pub const LIST_META_CONTEXT: u32 = 9;
    /// These kinds of block status shall be told.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Kinds of answers to options.
pub mod reply {
    /// Done, and the last answer to this option.
    pub const ACK: u32 = 1;
    /// One export of the list.
    pub const SERVER: u32 = 2;
    /// One piece of information about an export.
    pub const INFO: u32 = 3;
    /// The bit that makes an answer an error.
    pub const ERROR: u32 = 1 << 31;
    /// This server does not know the option.
    pub const UNSUP: u32 = ERROR | 1;
    /// What is asked for makes sense, and is not to be had now.
    pub const POLICY: u32 = ERROR | 2;
    /// What came with the option makes no sense.
    pub const INVALID: u32 = ERROR | 3;
    /// TLS first.
    pub const TLS_REQD: u32 = ERROR | 5;
    /// There is no such export.
    pub const UNKNOWN: u32 = ERROR | 6;
    /// The server is going away.
    pub const SHUTDOWN: u32 = ERROR | 7;
    /// The option is longer than this server reads.
    pub const TOO_BIG: u32 = ERROR | 9;
}

/// Kinds of information about an export.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// The name it goes by.
    pub const NAME: u16 = 1;
    /// What it is, for people.
    pub const DESCRIPTION: u16 = 2;
    /// Its block sizes.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags: what an export can do.
pub mod can {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// Writing is refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// `FLUSH` is answered.
    pub const FLUSH: u16 = 1 << 2;
    /// Requests may ask to be on the medium before they are answered.
    pub const FUA: u16 = 1 << 3;
    /// It turns, and seeks cost.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// `TRIM` is answered.
    pub const TRIM: u16 = 1 << 5;
    /// `WRITE_ZEROES` is answered.
    pub const WRITE_ZEROES: u16 = 1 << 6;
    /// Reads may ask to be answered in one piece.
    pub const DF: u16 = 1 << 7;
    /// What one connection flushed, all of them have flushed.
    pub const MULTI_CONN: u16 = 1 << 8;
    /// `WRITE_ZEROES` may ask to be fast or to fail.
    pub const FAST_ZERO: u16 = 1 << 11;
}

/// What a client may ask for once an export is open. Not all that the protocol has: those that are
/// missing here (CACHE, BLOCK_STATUS) are never offered, and refused as unknown ones are.
pub mod command {
    /// Read a range.
    pub const READ: u16 = 0;
    /// Write a range; the data follows.
    pub const WRITE: u16 = 1;
    /// The client leaves.
    pub const DISC: u16 = 2;
    /// Everything answered so far onto the medium.
    pub const FLUSH: u16 = 3;
    /// A range is no longer needed.
    pub const TRIM: u16 = 4;
    /// A range shall read as zeroes.
    pub const WRITE_ZEROES: u16 = 6;
}

/// Flags of a request.
pub mod flag {
    /// On the medium before it is answered.
    pub const FUA: u16 = 1 << 0;
    /// Zeroes must have their place on the medium.
    pub const NO_HOLE: u16 = 1 << 1;
    /// The answer in one piece.
    pub const DF: u16 = 1 << 2;
    /// Fail unless it is faster than writing.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunks of structured replies.
pub mod chunk {
    /// Flag: the last chunk of its reply.
    pub const DONE: u16 = 1 << 0;
    /// Nothing but the end of the reply.
    pub const NONE: u16 = 0;
    /// An offset and the data there.
    pub const OFFSET_DATA: u16 = 1;
    /// An error, and a sentence about it.
    pub const ERROR: u16 = (1 << 15) | 1;
    /// The same, and where.
    pub const ERROR_OFFSET: u16 = (1 << 15) | 2;
}

/// The header of an option: its magic number is checked by who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHeader {
    /// Should be [`OPTION_MAGIC`].
    pub magic: u64,
    /// Which option.
    pub option: u32,
    /// Bytes that follow.
    pub length: u32,
}

impl OptionHeader {
    /// Bytes on the wire.
    pub const BYTES: usize = 16;

    /// Reads it.
    pub fn read(bytes: &[u8; Self::BYTES]) -> OptionHeader {
        let mut b = &bytes[..];
        OptionHeader { magic: b.get_u64(), option: b.get_u32(), length: b.get_u32() }
    }
}

/// The header of a request: its magic number is checked by who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Should be [`REQUEST_MAGIC`].
    pub magic: u32,
    /// Of [`flag`].
    pub flags: u16,
    /// Of [`command`].
    pub command: u16,
    /// The client's name for the request, repeated in the reply.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

impl RequestHeader {
    /// Bytes on the wire.
    pub const BYTES: usize = 28;

    /// Reads it.
    pub fn read(bytes: &[u8; Self::BYTES]) -> RequestHeader {
        let mut b = &bytes[..];
        RequestHeader {
            magic: b.get_u32(),
            flags: b.get_u16(),
            command: b.get_u16(),
            cookie: b.get_u64(),
            offset: b.get_u64(),
            length: b.get_u32(),
        }
    }

    /// Bytes of data that follow it, whether or not the request is granted.
    pub fn payload(&self) -> u32 {
        if self.command == command::WRITE { self.length } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_header_is_read_field_by_field() {
        let mut bytes = [0; OptionHeader::BYTES];
        bytes[..8].copy_from_slice(b"IHAVEOPT");
        bytes[8..].copy_from_slice(&[0, 0, 0, 7, 1, 2, 3, 4]);
        let expected = OptionHeader { magic: OPTION_MAGIC, option: option::GO, length: 0x0102_0304 };
        assert_eq!(OptionHeader::read(&bytes), expected);
    }

    #[test]
    fn a_request_header_is_read_field_by_field() {
        let bytes = [0x25, 0x60, 0x95, 0x13, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 2, 0];
        let expected = RequestHeader {
            magic: REQUEST_MAGIC,
            flags: flag::FUA,
            command: command::WRITE_ZEROES,
            cookie: 0x0102_0304_0506_0708,
            offset: 4096,
            length: 512,
        };
        assert_eq!(RequestHeader::read(&bytes), expected);
        assert_eq!(expected.payload(), 0);
        assert_eq!(RequestHeader { command: command::WRITE, ..expected }.payload(), 512);
    }

    #[test]
    fn the_greeting_is_the_text_that_one_sees_in_a_dump() {
        assert_eq!(&GREETING.to_be_bytes(), b"NBDMAGIC");
        assert_eq!(&OPTION_MAGIC.to_be_bytes(), b"IHAVEOPT");
    }
}
