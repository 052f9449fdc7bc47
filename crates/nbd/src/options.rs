//! Parsing of option data.

use bytes::Buf;
use thiserror::Error;

/// Malformed option data. The message is sent to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Malformed {
    /// It ends too early.
    #[error("{what}: expected {expected} bytes, found {found}")]
    TooShort {
        /// The field.
        what: &'static str,
        /// Bytes announced, or the field's fixed length.
        expected: usize,
        /// Bytes left.
        found: usize,
    },
    /// There are bytes after the last field.
    #[error("end of the option: expected nothing more, found {found} bytes")]
    TooLong {
        /// Bytes left.
        found: usize,
    },
    /// A string is not UTF-8.
    #[error("{what}: expected UTF-8")]
    NotText {
        /// The field.
        what: &'static str,
    },
}

/// Data of `INFO` and `GO`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AboutExport<'a> {
    /// Name of the export.
    pub name: &'a str,
    /// Requested kinds of information, two bytes each; unknown kinds are ignored.
    kinds: &'a [u8],
}

impl<'a> AboutExport<'a> {
    /// Parses the data.
    pub(crate) fn read(data: &'a [u8]) -> Result<AboutExport<'a>, Malformed> {
        let mut parts = Parts(data);
        let name = parts.text("name of the export")?;
        let count = parts.u16("number of information requests")?;
        let kinds = parts.take("information requests", 2 * usize::from(count))?;
        parts.end()?;
        Ok(AboutExport { name, kinds })
    }

    /// Whether this kind of information was requested.
    pub(crate) fn wants(&self, kind: u16) -> bool {
        self.kinds.chunks_exact(2).any(|k| k == kind.to_be_bytes())
    }
}

/// Parses the data of `LIST_META_CONTEXT` and `SET_META_CONTEXT`; returns the export's name.
/// Queries must be well formed; their contents do not matter, as there are no contexts.
pub(crate) fn meta_context(data: &[u8]) -> Result<&str, Malformed> {
    let mut parts = Parts(data);
    let name = parts.text("name of the export")?;
    let queries = parts.u32("number of queries")?;
    // Each query takes at least the four bytes of its length, so a large count fails at the end of
    // the data.
    for _ in 0..queries {
        parts.text("query")?;
    }
    parts.end()?;
    Ok(name)
}

/// Parses the data of options that have none.
pub(crate) fn nothing(data: &[u8]) -> Result<(), Malformed> {
    Parts(data).end()
}

/// The unparsed rest of an option.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn take(&mut self, what: &'static str, expected: usize) -> Result<&'a [u8], Malformed> {
        let found = self.0.len();
        let (part, rest) = self.0.split_at_checked(expected).ok_or(Malformed::TooShort { what, expected, found })?;
        self.0 = rest;
        Ok(part)
    }

    fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        Ok(self.take(what, 2)?.get_u16())
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        Ok(self.take(what, 4)?.get_u32())
    }

    fn text(&mut self, what: &'static str) -> Result<&'a str, Malformed> {
        let length = self.u32(what)?;
        let bytes = self.take(what, length as usize)?;
        std::str::from_utf8(bytes).map_err(|_| Malformed::NotText { what })
    }

    fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed::TooLong { found: self.0.len() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::info;

    #[test]
    fn a_question_about_an_export_is_read() {
        let about = AboutExport::read(b"\0\0\0\x02ab\0\x02\0\x03\0\x09").unwrap();
        assert_eq!(about.name, "ab");
        assert!(about.wants(info::BLOCK_SIZE));
        assert!(!about.wants(info::NAME));
        assert!(!about.wants(0x0300), "kinds do not straddle two of them");
    }

    #[test]
    fn a_question_about_an_export_has_exactly_its_parts() {
        let whole = b"\0\0\0\x02ab\0\x01\0\x03";
        assert!(AboutExport::read(whole).is_ok());
        for cut in 0..whole.len() {
            let found = AboutExport::read(&whole[..cut]);
            assert!(matches!(found, Err(Malformed::TooShort { .. })), "cut at {cut}: {found:?}");
        }
        let longer = [&whole[..], b"x"].concat();
        assert_eq!(AboutExport::read(&longer), Err(Malformed::TooLong { found: 1 }));
    }

    #[test]
    fn lengths_beyond_the_data_are_refused() {
        let found = AboutExport::read(b"\xff\xff\xff\xffab");
        let expected = Malformed::TooShort { what: "name of the export", expected: u32::MAX as usize, found: 2 };
        assert_eq!(found, Err(expected));
        assert!(AboutExport::read(b"\0\0\0\0\xff\xff\0\x03").is_err());
    }

    #[test]
    fn a_name_is_text() {
        let found = AboutExport::read(b"\0\0\0\x01\xff\0\0");
        assert_eq!(found, Err(Malformed::NotText { what: "name of the export" }));
    }

    #[test]
    fn queries_for_contexts_are_read_to_their_end() {
        assert_eq!(meta_context(b"\0\0\0\x01a\0\0\0\0"), Ok("a"));
        assert_eq!(meta_context(b"\0\0\0\x01a\0\0\0\x02\0\0\0\x01x\0\0\0\0"), Ok("a"));
        assert_eq!(meta_context(b"\0\0\0\x01a\0\0\0\0x"), Err(Malformed::TooLong { found: 1 }));
        assert!(meta_context(b"\0\0\0\x01a\0\0\0\x02\0\0\0\x01x").is_err());
        assert!(meta_context(b"\0\0\0\x01a\xff\xff\xff\xff").is_err());
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(nothing(b""), Ok(()));
        assert_eq!(nothing(b"ab"), Err(Malformed::TooLong { found: 2 }));
    }
}
