//! Exports and their block sizes.

use crate::wire::can;
use thiserror::Error;

/// An export. `FLUSH` and FUA are always offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name by which clients request it. An empty name selects the export with an empty name,
    /// else the first.
    pub name: String,
    /// Description for users; may be empty.
    pub description: String,
    /// Size in bytes. A remainder after the last whole [`BlockSizes::minimum`] is not accessible.
    pub size: u64,
    /// Whether writes, trims and zeroing are refused.
    pub read_only: bool,
    /// Whether seeks are expensive, so that clients may sort their requests.
    pub rotational: bool,
    /// Whether [`crate::Op::Trim`] is offered, unless the export is read-only.
    pub trim: bool,
    /// Whether [`crate::Op::WriteZeroes`] is offered, unless the export is read-only.
    pub write_zeroes: bool,
    /// Whether a flush on one connection covers the completed requests of all connections, so that
    /// a client may use several.
    pub multi_conn: bool,
    /// Alignment and maximum length of requests.
    pub blocks: BlockSizes,
}

impl Export {
    /// Returns the transmission flags.
    ///
    /// Fast zeroing is offered along with zeroing and always refused: a client that asks wants an
    /// immediate error when zeroing is no faster than writing.
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

    /// Finds the export that a client requests by `name`.
    pub(crate) fn find(exports: &[Export], name: &[u8]) -> Option<usize> {
        let named = exports.iter().position(|e| e.name.as_bytes() == name);
        named.or(if name.is_empty() && !exports.is_empty() { Some(0) } else { None })
    }
}

/// The block sizes of an export, in bytes. [`BlockSizes::new`] checks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths must be multiples of it.
    pub minimum: u32,
    /// Multiples of it are served efficiently.
    pub preferred: u32,
    /// Maximum length of reads and writes. Trims and zeroing carry no data and may be longer.
    pub maximum: u32,
}

impl BlockSizes {
    /// The largest minimum that the protocol allows.
    pub const MOST_MINIMUM: u32 = 1 << 16;
    /// The smallest preferred size that the protocol allows.
    pub const LEAST_PREFERRED: u32 = 512;

    /// Checks the sizes against the protocol's rules.
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
        // All ones means "no limit" in the protocol.
        if !maximum.is_multiple_of(minimum) && maximum != u32::MAX {
            return Err(BlockSizeError::MaximumNotMultiple { found: maximum, minimum });
        }
        Ok(BlockSizes { minimum, preferred, maximum })
    }
}

/// Block sizes that the protocol does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BlockSizeError {
    /// The minimum.
    #[error("minimum block size: expected a power of two up to {}, found {found}", BlockSizes::MOST_MINIMUM)]
    Minimum {
        /// The size given.
        found: u32,
    },
    /// The preferred size.
    #[error("preferred block size: expected a power of two from {least} on, found {found}")]
    Preferred {
        /// The size given.
        found: u32,
        /// The lower bound: the minimum, and what the protocol requires.
        least: u32,
    },
    /// The maximum is below the preferred size.
    #[error("maximum block size: expected at least the preferred {preferred}, found {found}")]
    MaximumTooSmall {
        /// The size given.
        found: u32,
        /// The preferred size.
        preferred: u32,
    },
    /// The maximum is not a multiple of the minimum.
    #[error("maximum block size: expected a multiple of the minimum {minimum}, found {found}")]
    MaximumNotMultiple {
        /// The size given.
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
