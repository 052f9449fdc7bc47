//! What a server offers: exports and their block sizes.

use crate::wire::can;
use thiserror::Error;

/// What a server offers under one name. `FLUSH` and FUA are always offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What clients call it. A client that names nothing gets the export whose name is empty, else
    /// the first.
    pub name: String,
    /// What it is, for people; may be empty.
    pub description: String,
    /// Bytes. What lies beyond the last whole [`BlockSizes::minimum`] cannot be reached.
    pub size: u64,
    /// Writing, trimming and zeroing are refused.
    pub read_only: bool,
    /// It turns, and seeks cost: clients may sort their requests.
    pub rotational: bool,
    /// [`crate::Op::Trim`] is offered, unless it is read-only.
    pub trim: bool,
    /// [`crate::Op::WriteZeroes`] is offered, unless it is read-only.
    pub write_zeroes: bool,
    /// A flush on one connection holds for what was answered on all of them, so that a client may
    /// use several.
    pub multi_conn: bool,
    /// What requests must be multiples of, and how long they may be.
    pub blocks: BlockSizes,
}

impl Export {
    /// The transmission flags that a client is told.
    ///
    /// Fast zeroing is offered with zeroing, and always refused: to be told at once that zeroing is
    /// no faster than writing is what a client that asks wants to know.
    pub(crate) fn flags(&self, structured: bool) -> u16 {
        let offered = |yes: bool, flags: u16| if yes { flags } else { 0 };
        can::HAS_FLAGS
            | can::FLUSH
            | can::FUA
            | offered(self.read_only, can::READ_ONLY)
            | offered(self.rotational, can::ROTATIONAL)
            | offered(self.trim && !self.read_only, can::TRIM)
            | offered(self.write_zeroes && !self.read_only, can::WRITE_ZEROES | can::FAST_ZERO)
            | offered(structured, can::DF)
            | offered(self.multi_conn, can::MULTI_CONN)
    }

    /// Which of `exports` a client means by `name`.
    pub(crate) fn find(exports: &[Export], name: &[u8]) -> Option<usize> {
        let named = exports.iter().position(|e| e.name.as_bytes() == name);
        named.or(if name.is_empty() && !exports.is_empty() { Some(0) } else { None })
    }
}

/// The block sizes of an export, in bytes. [`BlockSizes::new`] checks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths are multiples of it; anything else is refused.
    pub minimum: u32,
    /// Multiples of it are served well.
    pub preferred: u32,
    /// No read and no write is longer; anything else is refused. Trimming and zeroing carry no data
    /// and may be longer.
    pub maximum: u32,
}

impl BlockSizes {
    /// The largest minimum that the protocol knows.
    pub const MOST_MINIMUM: u32 = 1 << 16;
    /// The smallest preferred size that the protocol knows.
    pub const LEAST_PREFERRED: u32 = 512;

    /// These sizes, if a client can be told so.
    pub fn new(minimum: u32, preferred: u32, maximum: u32) -> Result<BlockSizes, BlockSizeError> {
        if !minimum.is_power_of_two() || minimum > Self::MOST_MINIMUM {
            return Err(BlockSizeError::Minimum { found: minimum });
        }
        let least = minimum.max(Self::LEAST_PREFERRED);
        if !preferred.is_power_of_two() || preferred < least {
            return Err(BlockSizeError::Preferred { found: preferred, least });
        }
        if maximum < preferred {
            return Err(BlockSizeError::MaximumTooSmall { found: maximum, preferred });
        }
        // All ones is the protocol's way to say that there is no limit.
        if !maximum.is_multiple_of(minimum) && maximum != u32::MAX {
            return Err(BlockSizeError::MaximumNotMultiple { found: maximum, minimum });
        }
        Ok(BlockSizes { minimum, preferred, maximum })
    }
}

/// Block sizes that no client could be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BlockSizeError {
    /// The minimum.
    #[error("minimum block size: expected a power of two up to {}, found {found}", BlockSizes::MOST_MINIMUM)]
    Minimum {
        /// What it was.
        found: u32,
    },
    /// The preferred size.
    #[error("preferred block size: expected a power of two from {least} on, found {found}")]
    Preferred {
        /// What it was.
        found: u32,
        /// What it must at least be: the minimum, and what the protocol asks for.
        least: u32,
    },
    /// The maximum is below the preferred size.
    #[error("maximum block size: expected at least the preferred {preferred}, found {found}")]
    MaximumTooSmall {
        /// What it was.
        found: u32,
        /// The preferred size.
        preferred: u32,
    },
    /// The maximum would end within a block.
    #[error("maximum block size: expected a multiple of the minimum {minimum}, found {found}")]
    MaximumNotMultiple {
        /// What it was.
        found: u32,
        /// The minimum.
        minimum: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(name: &str) -> Export {
        Export {
            name: name.into(),
            description: String::new(),
            size: 1 << 20,
            read_only: false,
            rotational: false,
            trim: true,
            write_zeroes: true,
            multi_conn: false,
            blocks: BlockSizes::new(512, 4096, 1 << 20).unwrap(),
        }
    }

    #[test]
    fn block_sizes_are_powers_of_two_in_order() {
        assert!(BlockSizes::new(1, 512, 512).is_ok());
        assert!(BlockSizes::new(512, 4096, 3 * 4096 + 512).is_ok());
        assert!(BlockSizes::new(4096, 4096, u32::MAX).is_ok());
        for minimum in [0, 3, 513, 1 << 17] {
            assert_eq!(BlockSizes::new(minimum, 1 << 18, 1 << 20), Err(BlockSizeError::Minimum { found: minimum }));
        }
        for (minimum, preferred, least) in [(512, 4095, 512), (1, 256, 512), (4096, 2048, 4096), (1, 0, 512)] {
            let error = BlockSizeError::Preferred { found: preferred, least };
            assert_eq!(BlockSizes::new(minimum, preferred, 1 << 20), Err(error));
        }
        let error = BlockSizeError::MaximumTooSmall { found: 2048, preferred: 4096 };
        assert_eq!(BlockSizes::new(512, 4096, 2048), Err(error));
        let error = BlockSizeError::MaximumNotMultiple { found: 5000, minimum: 512 };
        assert_eq!(BlockSizes::new(512, 4096, 5000), Err(error));
    }

    #[test]
    fn a_block_size_error_says_what_was_expected_and_found() {
        let text = BlockSizes::new(512, 256, 4096).unwrap_err().to_string();
        assert_eq!(text, "preferred block size: expected a power of two from 512 on, found 256");
    }

    #[test]
    fn a_plain_export_offers_flush_and_fua() {
        let plain = Export { trim: false, write_zeroes: false, ..export("a") };
        assert_eq!(plain.flags(false), 0b1101);
    }

    #[test]
    fn every_flag_stands_for_one_property() {
        let plain = Export { trim: false, write_zeroes: false, ..export("a") };
        let flags = |e: Export| e.flags(false) & !0b1101;
        assert_eq!(flags(Export { read_only: true, ..plain.clone() }), 1 << 1);
        assert_eq!(flags(Export { rotational: true, ..plain.clone() }), 1 << 4);
        assert_eq!(flags(Export { trim: true, ..plain.clone() }), 1 << 5);
        assert_eq!(flags(Export { write_zeroes: true, ..plain.clone() }), 1 << 6 | 1 << 11);
        assert_eq!(flags(Export { multi_conn: true, ..plain.clone() }), 1 << 8);
        assert_eq!(plain.flags(true) & !0b1101, 1 << 7);
    }

    #[test]
    fn a_read_only_export_offers_neither_trim_nor_zeroes() {
        let flags = Export { read_only: true, ..export("a") }.flags(false);
        assert_eq!(flags & (can::TRIM | can::WRITE_ZEROES | can::FAST_ZERO), 0);
    }

    #[test]
    fn the_empty_name_is_the_export_called_so_else_the_first() {
        assert_eq!(Export::find(&[export("a"), export("b")], b""), Some(0));
        assert_eq!(Export::find(&[export("a"), export("")], b""), Some(1));
        assert_eq!(Export::find(&[], b""), None);
        assert_eq!(Export::find(&[export("a"), export("b")], b"b"), Some(1));
        assert_eq!(Export::find(&[export("a")], b"A"), None);
    }
}
