//! The secret that changes in the live view need.

use std::fmt;
use std::hint::black_box;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

/// The shortest and the longest token, bytes.
const SHORTEST: usize = 16;
const LONGEST: usize = 256;

/// A secret, shown nowhere.
#[derive(Clone)]
pub struct Token(Arc<str>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Why a token's file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct TokenError {
    path: PathBuf,
    why: String,
}

impl Token {
    /// Reads a token from the only line of a file that its owner alone may read, and which belongs
    /// to root or this user.
    ///
    /// # Errors
    /// The file cannot be read, others may read it, or it has no token.
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let failed = |why: String| TokenError { path: path.into(), why };
        let opened = std::fs::OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path);
        let file = opened.map_err(|e| failed(e.to_string()))?;
        let found = file.metadata().map_err(|e| failed(e.to_string()))?;
        if !found.is_file() {
            return Err(failed("expected a plain file, found something else".into()));
        }
        let us = rustix::process::geteuid().as_raw();
        if ![0, us].contains(&found.uid()) {
            return Err(failed(format!("expected a file of user {us} or root, found one of user {}", found.uid())));
        }
        if found.mode() & 0o077 != 0 {
            let mode = found.mode() & 0o777;
            return Err(failed(format!("expected a file that only its owner may use (mode 600), found mode {mode:o}")));
        }
        let mut text = Vec::new();
        file.take(LONGEST as u64 + 2).read_to_end(&mut text).map_err(|e| failed(e.to_string()))?;
        Token::from_text(&text).ok_or_else(|| {
            failed(format!("expected one line of {SHORTEST} to {LONGEST} letters, digits and signs, without spaces"))
        })
    }

    fn from_text(text: &[u8]) -> Option<Token> {
        let text = std::str::from_utf8(text.strip_suffix(b"\n").unwrap_or(text)).ok()?;
        let is_token = (SHORTEST..=LONGEST).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        is_token.then(|| Token(text.into()))
    }

    /// Returns whether `given` is the token, in a time that depends only on the lengths.
    pub(super) fn is(&self, given: &str) -> bool {
        if given.len() != self.0.len() {
            return false;
        }
        let pairs = self.0.bytes().zip(given.bytes());
        pairs.fold(0, |differs, (a, b)| black_box(differs | (a ^ b))) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_token_is_the_token() {
        let token = Token::from_text(b"0123456789abcdef\n").unwrap();
        assert!(token.is("0123456789abcdef"));
        for other in ["", "0123456789abcdeF", "1123456789abcdef", "0123456789abcdef0", "0123456789abcde"] {
            assert!(!token.is(other), "{other}");
        }
        assert_eq!(format!("{token:?}"), "Token(..)");
    }

    #[test]
    fn a_file_that_others_may_read_or_without_a_token_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let with = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Token::read(&path).map_err(|e| e.to_string())
        };
        assert!(with("0123456789abcdef\n", 0o600).is_ok());
        assert!(with(&"x".repeat(256), 0o400).is_ok());
        for mode in [0o640, 0o604, 0o620, 0o644] {
            let e = with("0123456789abcdef\n", mode).unwrap_err();
            assert!(
                e.contains("token: expected a file that only its owner") && e.ends_with(&format!("{mode:o}")),
                "{e}"
            );
        }
        let long = "x".repeat(257);
        for text in ["", "\n", "short", "0123456789 abcdef", "0123456789abcdef\n\n", "0123456789abcd\u{e9}f", &long] {
            assert!(with(text, 0o600).unwrap_err().contains("expected one line of 16 to 256"), "{text:?}");
        }
        assert!(Token::read(dir.path()).unwrap_err().to_string().contains("plain file"));
        assert!(Token::read(&dir.path().join("none")).is_err());
    }
}
