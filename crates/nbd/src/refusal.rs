//! Checks of requests, and the reasons for refusing them.

use crate::export::Export;
use crate::request::{Errno, Op};
use crate::wire::{RequestHeader, command, flag};
use thiserror::Error;

/// Why a request is refused. Structured replies carry the message to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    /// The server is shutting down.
    #[error("the server is going away")]
    ShuttingDown,
    /// The command is unknown or not offered.
    #[error("command: expected one that is offered, found {found}")]
    Command {
        /// Its number.
        found: u16,
    },
    /// Flags that are not valid for the command.
    #[error("command flags: expected none but {known:#x}, found {found:#x}")]
    Flags {
        /// The flags received.
        found: u16,
        /// The command's flags.
        known: u16,
    },
    /// A write to a read-only export.
    #[error("the export is read-only")]
    ReadOnly,
    /// A flush with a range.
    #[error("flush: expected offset 0 and length 0, found {offset} and {length}")]
    FlushOfRange {
        /// First byte.
        offset: u64,
        /// Length in bytes.
        length: u32,
    },
    /// An empty range.
    #[error("length: expected at least 1 byte, found 0")]
    Empty,
    /// The length exceeds the maximum.
    #[error("length: expected at most {maximum} bytes, found {length}")]
    TooLong {
        /// Length in bytes.
        length: u32,
        /// The export's maximum.
        maximum: u32,
    },
    /// The range is not aligned to blocks.
    #[error("range: expected multiples of {minimum}, found offset {offset} and length {length}")]
    Unaligned {
        /// First byte.
        offset: u64,
        /// Length in bytes.
        length: u32,
        /// The export's minimum.
        minimum: u32,
    },
    /// The range extends beyond the export.
    #[error("range: expected an end up to {size}, found offset {offset} and length {length}")]
    Beyond {
        /// First byte.
        offset: u64,
        /// Length in bytes.
        length: u32,
        /// The export's size.
        size: u64,
        /// Whether the request writes.
        writes: bool,
    },
    /// Fast zeroing: zeroing is not known to be faster than writing.
    #[error("zeroing is not known to be faster than writing")]
    FastZero,
}

impl Refusal {
    /// Returns the error for the client.
    pub(crate) fn errno(&self) -> Errno {
        match self {
            Refusal::ShuttingDown => Errno::Shutdown,
            Refusal::ReadOnly => Errno::Perm,
            Refusal::Beyond { writes: true, .. } => Errno::NoSpc,
            Refusal::FastZero => Errno::NotSup,
            Refusal::Command { .. }
            | Refusal::Flags { .. }
            | Refusal::FlushOfRange { .. }
            | Refusal::Empty
            | Refusal::TooLong { .. }
            | Refusal::Unaligned { .. }
            | Refusal::Beyond { writes: false, .. } => Errno::Inval,
        }
    }
}

/// The longest read that one chunk can answer: its 32-bit length includes an offset.
const MOST_CARRIED: u32 = u32::MAX - 8;

/// Checks a request; returns its operation.
///
/// FUA is accepted with every command, as the protocol requires. The maximum applies to requests
/// that carry data: trims are usually larger than writes.
pub(crate) fn check(header: &RequestHeader, export: &Export, structured: bool) -> Result<Op, Refusal> {
    let &RequestHeader { flags, offset, length, .. } = header;
    let (op, offered, own_flags) = match header.command {
        command::READ => (Op::Read, true, if structured { flag::DF } else { 0 }),
        command::WRITE => (Op::Write, true, 0),
        command::FLUSH => (Op::Flush, true, 0),
        command::TRIM => (Op::Trim, export.trim, 0),
        command::WRITE_ZEROES => (Op::WriteZeroes, export.write_zeroes, flag::NO_HOLE | flag::FAST_ZERO),
        found => return Err(Refusal::Command { found }),
    };
    if !offered {
        return Err(Refusal::Command { found: header.command });
    }
    let known = flag::FUA | own_flags;
    if flags & !known != 0 {
        return Err(Refusal::Flags { found: flags, known });
    }
    if op == Op::Flush {
        return if offset == 0 && length == 0 { Ok(op) } else { Err(Refusal::FlushOfRange { offset, length }) };
    }
    if export.read_only && op != Op::Read {
        return Err(Refusal::ReadOnly);
    }
    if length == 0 {
        return Err(Refusal::Empty);
    }
    let carries_data = matches!(op, Op::Read | Op::Write);
    let maximum = export.blocks.maximum.min(MOST_CARRIED);
    if carries_data && length > maximum {
        return Err(Refusal::TooLong { length, maximum });
    }
    let minimum = export.blocks.minimum;
    if !offset.is_multiple_of(minimum.into()) || !length.is_multiple_of(minimum) {
        return Err(Refusal::Unaligned { offset, length, minimum });
    }
    if offset.checked_add(length.into()).is_none_or(|end| end > export.size) {
        let writes = matches!(op, Op::Write | Op::WriteZeroes);
        return Err(Refusal::Beyond { offset, length, size: export.size, writes });
    }
    if flags & flag::FAST_ZERO != 0 {
        return Err(Refusal::FastZero);
    }
    Ok(op)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::BlockSizes;
    use crate::wire::REQUEST_MAGIC;

    const MAXIMUM: u32 = 1 << 20;
    /// Two whole blocks of 4096 beyond 1 GiB, and an inaccessible remainder.
    const SIZE: u64 = (1 << 30) + 2 * 4096 + 100;

    fn export() -> Export {
        Export {
            name: "a".into(),
            description: String::new(),
            size: SIZE,
            read_only: false,
            rotational: false,
            trim: true,
            write_zeroes: true,
            multi_conn: false,
            blocks: BlockSizes::new(4096, 4096, MAXIMUM).unwrap(),
        }
    }

    fn header(command: u16, flags: u16, offset: u64, length: u32) -> RequestHeader {
        RequestHeader { magic: REQUEST_MAGIC, flags, command, cookie: 0, offset, length }
    }

    fn errno(export: &Export, header: RequestHeader) -> Option<Errno> {
        check(&header, export, true).err().map(|r| r.errno())
    }

    #[test]
    fn what_is_offered_and_lies_in_the_export_is_granted() {
        let granted = |command, flags, offset, length| check(&header(command, flags, offset, length), &export(), true);
        assert_eq!(granted(command::READ, 0, 0, 4096), Ok(Op::Read));
        assert_eq!(granted(command::WRITE, 0, 4096, MAXIMUM), Ok(Op::Write));
        assert_eq!(granted(command::FLUSH, 0, 0, 0), Ok(Op::Flush));
        assert_eq!(granted(command::TRIM, 0, 0, 4096), Ok(Op::Trim));
        assert_eq!(granted(command::WRITE_ZEROES, flag::NO_HOLE, 0, 4096), Ok(Op::WriteZeroes));
        let last = (SIZE / 4096 - 1) * 4096;
        assert_eq!(granted(command::READ, 0, last, 4096), Ok(Op::Read));
    }

    #[test]
    fn fua_is_taken_with_every_command() {
        for command in [command::READ, command::WRITE, command::TRIM, command::WRITE_ZEROES] {
            assert_eq!(errno(&export(), header(command, flag::FUA, 0, 4096)), None, "command {command}");
        }
        assert_eq!(errno(&export(), header(command::FLUSH, flag::FUA, 0, 0)), None);
    }

    #[test]
    fn a_flag_of_another_command_is_refused() {
        let refused = [
            (command::READ, flag::NO_HOLE),
            (command::READ, flag::FAST_ZERO),
            (command::WRITE, flag::DF),
            (command::WRITE, flag::NO_HOLE),
            (command::TRIM, flag::NO_HOLE),
            (command::WRITE_ZEROES, flag::DF),
            (command::WRITE_ZEROES, 1 << 3),
            (command::READ, 1 << 5),
            (command::WRITE, 1 << 15),
        ];
        for (command, flags) in refused {
            let found = check(&header(command, flags, 0, 4096), &export(), true);
            assert!(matches!(found, Err(Refusal::Flags { .. })), "command {command}, flags {flags:#x}: {found:?}");
        }
    }

    #[test]
    fn an_unfragmented_read_is_asked_for_with_structured_replies_alone() {
        let read = header(command::READ, flag::DF, 0, 4096);
        assert_eq!(check(&read, &export(), true), Ok(Op::Read));
        assert_eq!(check(&read, &export(), false), Err(Refusal::Flags { found: flag::DF, known: flag::FUA }));
    }

    #[test]
    fn a_command_that_is_not_offered_is_refused() {
        const CACHE: u16 = 5;
        const BLOCK_STATUS: u16 = 7;
        for command in [CACHE, BLOCK_STATUS, 8, 99, u16::MAX] {
            assert_eq!(errno(&export(), header(command, 0, 0, 4096)), Some(Errno::Inval), "command {command}");
        }
        let plain = Export { trim: false, write_zeroes: false, ..export() };
        for command in [command::TRIM, command::WRITE_ZEROES] {
            let found = check(&header(command, 0, 0, 4096), &plain, true);
            assert_eq!(found, Err(Refusal::Command { found: command }));
        }
    }

    #[test]
    fn nothing_is_written_to_a_read_only_export() {
        let fixed = Export { read_only: true, ..export() };
        for command in [command::WRITE, command::TRIM, command::WRITE_ZEROES] {
            assert_eq!(errno(&fixed, header(command, 0, 0, 4096)), Some(Errno::Perm), "command {command}");
        }
        assert_eq!(errno(&fixed, header(command::READ, 0, 0, 4096)), None);
        assert_eq!(errno(&fixed, header(command::FLUSH, 0, 0, 0)), None);
    }

    #[test]
    fn a_flush_has_no_range() {
        for (offset, length) in [(4096, 0), (0, 4096)] {
            let found = check(&header(command::FLUSH, 0, offset, length), &export(), true);
            assert_eq!(found, Err(Refusal::FlushOfRange { offset, length }));
        }
    }

    #[test]
    fn a_range_of_nothing_is_refused() {
        for command in [command::READ, command::WRITE, command::TRIM, command::WRITE_ZEROES] {
            assert_eq!(check(&header(command, 0, 0, 0), &export(), true), Err(Refusal::Empty));
        }
    }

    #[test]
    fn only_what_carries_data_has_a_maximum() {
        let length = MAXIMUM + 4096;
        for command in [command::READ, command::WRITE] {
            let found = check(&header(command, 0, 0, length), &export(), true);
            assert_eq!(found, Err(Refusal::TooLong { length, maximum: MAXIMUM }));
        }
        for command in [command::TRIM, command::WRITE_ZEROES] {
            assert_eq!(errno(&export(), header(command, 0, 0, length)), None);
        }
    }

    #[test]
    fn a_range_within_a_block_is_refused() {
        for (offset, length) in [(512, 4096), (0, 512), (1, 4095)] {
            let found = check(&header(command::READ, 0, offset, length), &export(), true);
            assert_eq!(found, Err(Refusal::Unaligned { offset, length, minimum: 4096 }));
        }
    }

    #[test]
    fn beyond_the_end_there_is_nothing_to_read_and_no_space_to_write() {
        let last = SIZE / 4096 * 4096;
        let far = u64::MAX / 4096 * 4096;
        for offset in [last, last - 4096, far] {
            let at_end = |command| errno(&export(), header(command, 0, offset, 8192));
            assert_eq!(at_end(command::READ), Some(Errno::Inval));
            assert_eq!(at_end(command::TRIM), Some(Errno::Inval));
            assert_eq!(at_end(command::WRITE), Some(Errno::NoSpc));
            assert_eq!(at_end(command::WRITE_ZEROES), Some(Errno::NoSpc));
        }
    }

    #[test]
    fn fast_zeroing_is_refused_only_where_zeroing_would_be_granted() {
        let fast = flag::FAST_ZERO | flag::NO_HOLE;
        assert_eq!(errno(&export(), header(command::WRITE_ZEROES, fast, 0, 4096)), Some(Errno::NotSup));
        assert_eq!(errno(&export(), header(command::WRITE_ZEROES, fast, 0, 100)), Some(Errno::Inval));
    }

    #[test]
    fn a_read_that_no_chunk_could_answer_is_refused_even_where_there_is_no_maximum() {
        let blocks = BlockSizes::new(1, 512, u32::MAX).unwrap();
        let large = Export { blocks, size: u64::MAX, ..export() };
        let found = check(&header(command::READ, 0, 0, u32::MAX - 7), &large, true);
        assert_eq!(found, Err(Refusal::TooLong { length: u32::MAX - 7, maximum: u32::MAX - 8 }));
        assert_eq!(errno(&large, header(command::READ, 0, 0, u32::MAX - 8)), None);
    }

    #[test]
    fn unchecked_block_sizes_do_no_harm() {
        let odd = Export { blocks: BlockSizes { minimum: 0, preferred: 0, maximum: 0 }, ..export() };
        assert_eq!(errno(&odd, header(command::READ, 0, 0, 4096)), Some(Errno::Inval));
        assert_eq!(errno(&odd, header(command::TRIM, 0, 0, 4096)), Some(Errno::Inval));
    }
}
