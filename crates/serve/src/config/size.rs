//! Sizes: `start`, `size` and `write-cache` of an export, `size` of a stream.

use std::fmt;

use headtime_disk::internals::bytes;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// A size: a number of bytes, or a number with a unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Size {
    Bytes(u64),
    Text(String),
}

/// The valid sizes.
pub(super) const SIZE: &str = "bytes, or in quotes a number and KiB, MiB, GiB, TiB, KB, MB, GB or TB";

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Size, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Size;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(SIZE)
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<Size, E> {
                n.try_into().map(Size::Bytes).map_err(|_| E::invalid_value(Unexpected::Signed(n), &self))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                Ok(Size::Text(text.into()))
            }
        }
        from.deserialize_any(Either)
    }
}

impl Default for Size {
    fn default() -> Size {
        Size::Bytes(0)
    }
}

impl Size {
    /// Returns the number of bytes; `None` if the text is malformed.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Size::Bytes(b) => Some(*b),
            Size::Text(t) => bytes(t),
        }
    }
}
