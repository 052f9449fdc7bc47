//! Why a connection takes no more input.

use thiserror::Error;

/// Why a connection takes no more input. What is in flight is still answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The client said so.
    ByClient,
    /// The client stopped sending, be it in the middle of a message.
    EndOfInput,
    /// The server is going away, and the client asked for an export in the one way that cannot be
    /// refused.
    ShutDown,
    /// The server takes no more clients, and this one asked for an export in the one way that
    /// cannot be refused.
    Full,
    /// The client broke the protocol, or asked in a way that has no other answer.
    Protocol(Violation),
}

/// What a client did that only the end of the connection can answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// Flags that no server could have offered: what follows may mean anything.
    #[error("client flags: expected none but 0x1 and 0x2, found {found:#x}")]
    ClientFlags {
        /// All of them.
        found: u32,
    },
    /// No option where one should begin.
    #[error("start of an option: expected 0x49484156454f5054, found {found:#018x}")]
    OptionMagic {
        /// What was there.
        found: u64,
    },
    /// Options without end.
    #[error("options: expected at most {limit}, found one more")]
    TooManyOptions {
        /// [`crate::Limits::options`].
        limit: u32,
    },
    /// An option that a client of before the fixed newstyle cannot know.
    #[error("option of a client without fixed newstyle: expected EXPORT_NAME (1), found {option}")]
    NotFixedNewstyle {
        /// Which.
        option: u32,
    },
    /// `EXPORT_NAME` with a name that no export can have.
    #[error("name of an export: expected at most {limit} bytes, found {length}")]
    NameTooLong {
        /// Its bytes.
        length: u32,
        /// [`crate::Limits::option_bytes`].
        limit: u32,
    },
    /// `EXPORT_NAME` with a name that no export has.
    #[error("EXPORT_NAME: expected the name of an export, found {name:?}")]
    UnknownExport {
        /// The beginning of the name.
        name: String,
    },
    /// `EXPORT_NAME` before the TLS that is required.
    #[error("EXPORT_NAME: expected STARTTLS first")]
    TlsRequired,
    /// Bytes between the option STARTTLS and TLS itself: they would be taken for what came under
    /// its protection.
    #[error("after STARTTLS: expected nothing before TLS is established, found more plain bytes")]
    PlainAfterStartTls,
    /// No request where one should begin.
    #[error("start of a request: expected 0x25609513, found {found:#010x}")]
    RequestMagic {
        /// What was there.
        found: u32,
    },
    /// A write so long that not even reading past it is worth the time.
    #[error("length of a write: expected at most {limit} bytes, found {length}")]
    PayloadTooLong {
        /// Its bytes.
        length: u32,
        /// The export's maximum and [`crate::PAYLOAD_SKIPPED`].
        limit: u64,
    },
}

impl Violation {
    /// Bytes of an unknown name that are kept: enough to recognise it in a log.
    const NAME_KEPT: usize = 64;

    /// No export has this name.
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
