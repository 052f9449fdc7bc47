//! Why a connection takes no more input.

use thiserror::Error;

/// Why a connection takes no more input. Requests in flight are still answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The client disconnected.
    ByClient,
    /// The client's input ended, possibly within a message.
    EndOfInput,
    /// The server is shutting down, and the client used `EXPORT_NAME`, which cannot be refused
    /// otherwise.
    ShutDown,
    /// The server accepts no more clients, and the client used `EXPORT_NAME`, which cannot be
    /// refused otherwise.
    Full,
    /// The client violated the protocol, or its request allows no error reply.
    Protocol(Violation),
}

/// A violation that requires closing the connection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Violation {
    /// Client flags that no server offers: the meaning of what follows is unknown.
    #[error("client flags: expected none but 0x1 and 0x2, found {found:#x}")]
    ClientFlags {
        /// The flags received.
        found: u32,
    },
    /// Not the magic number of an option.
    #[error("start of an option: expected 0x49484156454f5054, found {found:#018x}")]
    OptionMagic {
        /// The number received.
        found: u64,
    },
    /// Too many options.
    #[error("options: expected at most {limit}, found one more")]
    TooManyOptions {
        /// [`crate::Limits::options`].
        limit: u32,
    },
    /// An option that a client without fixed newstyle cannot use.
    #[error("option of a client without fixed newstyle: expected EXPORT_NAME (1), found {option}")]
    NotFixedNewstyle {
        /// Its number.
        option: u32,
    },
    /// `EXPORT_NAME` with a name longer than any export's may be.
    #[error("name of an export: expected at most {limit} bytes, found {length}")]
    NameTooLong {
        /// Length in bytes.
        length: u32,
        /// [`crate::Limits::option_bytes`].
        limit: u32,
    },
    /// `EXPORT_NAME` with an unknown name.
    #[error("EXPORT_NAME: expected the name of an export, found {name:?}")]
    UnknownExport {
        /// The beginning of the name.
        name: String,
    },
    /// `EXPORT_NAME` before the required TLS.
    #[error("EXPORT_NAME: expected STARTTLS first")]
    TlsRequired,
    /// Bytes between the option STARTTLS and TLS: they would be taken as protected by TLS.
    #[error("after STARTTLS: expected nothing before TLS is established, found more plain bytes")]
    PlainAfterStartTls,
    /// Not the magic number of a request.
    #[error("start of a request: expected 0x25609513, found {found:#010x}")]
    RequestMagic {
        /// The number received.
        found: u32,
    },
    /// A write too long for its data to be skipped.
    #[error("length of a write: expected at most {limit} bytes, found {length}")]
    PayloadTooLong {
        /// Length in bytes.
        length: u32,
        /// The sum of the export's maximum and [`crate::PAYLOAD_SKIPPED`].
        limit: u64,
    },
}

impl Violation {
    /// Bytes of an unknown name that are kept for a log message.
    const NAME_KEPT: usize = 64;

    /// Makes the violation for a name that no export has.
    pub(crate) fn unknown_export(name: &[u8]) -> Violation {
        let kept = &name[..name.len().min(Self::NAME_KEPT)];
        Violation::UnknownExport { name: String::from_utf8_lossy(kept).into_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_kept_short_and_shown_escaped() {
        let violation = Violation::unknown_export(&[b'\n'; 5000]);
        let Violation::UnknownExport { name } = &violation else { panic!("{violation:?}") };
        assert_eq!(name.len(), 64);
        assert!(violation.to_string().ends_with("\\n\""), "{violation}");
        assert!(!violation.to_string().contains('\n'));
    }

    #[test]
    fn a_name_that_is_not_text_is_still_shown() {
        assert_eq!(Violation::unknown_export(&[b'a', 0xff]), Violation::UnknownExport { name: "a\u{fffd}".into() });
    }
}
