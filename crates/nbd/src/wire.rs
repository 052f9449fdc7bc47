//! Wire format: constants and fixed-size headers.
//!
//! All numbers are big-endian. Values are the protocol's, and the names resemble its names, so that
//! they can be looked up there.

use bytes::Buf;

/// First eight bytes of the greeting.
pub(crate) const GREETING: u64 = 0x4e42_444d_4147_4943;
/// Second part of the greeting, and start of every option.
pub(crate) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Start of every reply to an option.
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Start of a request.
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Start of a simple reply.
pub(crate) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Start of a structured reply's chunk.
pub(crate) const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Flag: the server replies to options that it refuses, rather than disconnecting.
pub(crate) const FIXED_NEWSTYLE: u16 = 1 << 0;
/// Flag: the reply to `EXPORT_NAME` may omit its padding.
pub(crate) const NO_ZEROES: u16 = 1 << 1;
/// Length of the padding that ends the reply to `EXPORT_NAME`.
pub(crate) const EXPORT_NAME_PADDING: usize = 124;

/// Options in negotiation.
pub(crate) mod option {
    /// Opens an export; has no error reply.
    pub(crate) const EXPORT_NAME: u32 = 1;
    /// Disconnects.
    pub(crate) const ABORT: u32 = 2;
    /// Lists the exports.
    pub(crate) const LIST: u32 = 3;
    /// Starts TLS.
    pub(crate) const STARTTLS: u32 = 5;
    /// Requests information about an export.
    pub(crate) const INFO: u32 = 6;
    /// Requests information about an export and opens it.
    pub(crate) const GO: u32 = 7;
    /// Requests structured replies.
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    /// Lists the metadata contexts.
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    /// Selects metadata contexts.
    pub(crate) const SET_META_CONTEXT: u32 = 10;
}

/// Kinds of replies to options.
pub(crate) mod reply {
    /// Success; the last reply to the option.
    pub(crate) const ACK: u32 = 1;
    /// One export of a list.
    pub(crate) const SERVER: u32 = 2;
    /// One item of information about an export.
    pub(crate) const INFO: u32 = 3;
    /// Error bit.
    pub(crate) const ERROR: u32 = 1 << 31;
    /// Unknown option.
    pub(crate) const UNSUP: u32 = ERROR | 1;
    /// Valid, but not available at present.
    pub(crate) const POLICY: u32 = ERROR | 2;
    /// Malformed option data.
    pub(crate) const INVALID: u32 = ERROR | 3;
    /// TLS is required first.
    pub(crate) const TLS_REQD: u32 = ERROR | 5;
    /// Unknown export.
    pub(crate) const UNKNOWN: u32 = ERROR | 6;
    /// The server is shutting down.
    pub(crate) const SHUTDOWN: u32 = ERROR | 7;
    /// The option exceeds the server's limit.
    pub(crate) const TOO_BIG: u32 = ERROR | 9;
}

/// Kinds of information about an export.
pub(crate) mod info {
    /// Size and transmission flags.
    pub(crate) const EXPORT: u16 = 0;
    /// Name.
    pub(crate) const NAME: u16 = 1;
    /// Description.
    pub(crate) const DESCRIPTION: u16 = 2;
    /// Block sizes.
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags: capabilities of an export.
pub(crate) mod can {
    /// Always set.
    pub(crate) const HAS_FLAGS: u16 = 1 << 0;
    /// Writes are refused.
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    /// `FLUSH` is supported.
    pub(crate) const FLUSH: u16 = 1 << 2;
    /// FUA is supported.
    pub(crate) const FUA: u16 = 1 << 3;
    /// Rotational: seeks are expensive.
    pub(crate) const ROTATIONAL: u16 = 1 << 4;
    /// `TRIM` is supported.
    pub(crate) const TRIM: u16 = 1 << 5;
    /// `WRITE_ZEROES` is supported.
    pub(crate) const WRITE_ZEROES: u16 = 1 << 6;
    /// Reads may request a reply in one chunk.
    pub(crate) const DF: u16 = 1 << 7;
    /// A flush on one connection covers all connections.
    pub(crate) const MULTI_CONN: u16 = 1 << 8;
    /// `WRITE_ZEROES` may request failure if it is not fast.
    pub(crate) const FAST_ZERO: u16 = 1 << 11;
}

/// Commands. Those of the protocol that are missing here (CACHE, BLOCK_STATUS) are never offered,
/// and are refused like unknown ones.
pub(crate) mod command {
    /// Reads a range.
    pub(crate) const READ: u16 = 0;
    /// Writes a range; the data follows.
    pub(crate) const WRITE: u16 = 1;
    /// Disconnects.
    pub(crate) const DISC: u16 = 2;
    /// Makes every answered write durable.
    pub(crate) const FLUSH: u16 = 3;
    /// Discards a range.
    pub(crate) const TRIM: u16 = 4;
    /// Makes a range read as zeroes.
    pub(crate) const WRITE_ZEROES: u16 = 6;
}

/// Flags of a request.
pub(crate) mod flag {
    /// The data must be on the medium before the reply.
    pub(crate) const FUA: u16 = 1 << 0;
    /// Zeroes must be allocated on the medium.
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    /// Reply in one chunk.
    pub(crate) const DF: u16 = 1 << 2;
    /// Fail unless faster than writing.
    pub(crate) const FAST_ZERO: u16 = 1 << 4;
}

/// Chunk types and flags of structured replies.
pub(crate) mod chunk {
    /// Flag: last chunk of its reply.
    pub(crate) const DONE: u16 = 1 << 0;
    /// Only the end of the reply.
    pub(crate) const NONE: u16 = 0;
    /// Offset and data.
    pub(crate) const OFFSET_DATA: u16 = 1;
    /// Error with a message.
    pub(crate) const ERROR: u16 = (1 << 15) | 1;
    /// Error with a message and offset.
    pub(crate) const ERROR_OFFSET: u16 = (1 << 15) | 2;
}

/// Header of an option. The caller checks its magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptionHeader {
    /// Should be [`OPTION_MAGIC`].
    pub magic: u64,
    /// The option's number.
    pub option: u32,
    /// Length of the data that follows.
    pub length: u32,
}

impl OptionHeader {
    /// Size on the wire.
    pub(crate) const BYTES: usize = 16;

    /// Decodes it.
    pub(crate) fn read(bytes: &[u8; Self::BYTES]) -> OptionHeader {
        let mut b = &bytes[..];
        OptionHeader { magic: b.get_u64(), option: b.get_u32(), length: b.get_u32() }
    }
}

/// Header of a request. The caller checks its magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestHeader {
    /// Should be [`REQUEST_MAGIC`].
    pub magic: u32,
    /// Flags of [`flag`].
    pub flags: u16,
    /// One of [`command`].
    pub command: u16,
    /// The client's identifier of the request, repeated in the reply.
    pub cookie: u64,
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

impl RequestHeader {
    /// Size on the wire.
    pub(crate) const BYTES: usize = 28;

    /// Decodes it.
    pub(crate) fn read(bytes: &[u8; Self::BYTES]) -> RequestHeader {
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

    /// Returns the number of data bytes that follow, whether or not the request is admitted.
    pub(crate) fn payload(&self) -> u32 {
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
