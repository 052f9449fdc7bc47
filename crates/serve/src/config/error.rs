//! What is wrong with a configuration, with its place in the file.

use headtime_sched::NameError;

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The text is not valid TOML or does not have the expected structure.
    #[error("{file}:{line}: {why}")]
    Toml {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The cause.
        why: String,
    },
    /// A value is out of range.
    #[error("{file}: {key}: expected {expected}, found {found}")]
    Value {
        /// The file.
        file: String,
        /// The key.
        key: String,
        /// The valid values.
        expected: String,
        /// The value found.
        found: String,
    },
    /// A value is not one of the known names, or a figure in it is out of range.
    #[error("{file}: {why}")]
    Name {
        /// The file.
        file: String,
        /// The value found, and the valid ones.
        why: String,
    },
    /// An export or its stream does not fit the disk.
    #[error("{file}: {why}")]
    Export {
        /// The file.
        file: String,
        /// The export, what was expected and what was found.
        why: String,
    },
}

impl ConfigError {
    /// Converts an error of the TOML library in this text of `file`.
    pub(super) fn toml(file: &str, text: &str, error: &toml::de::Error) -> ConfigError {
        let at = error.span().map_or(0, |s| s.start).min(text.len());
        ConfigError::Toml { file: file.into(), line: line_of(text, at), why: reworded(error.message(), &text[..at]) }
    }
}

/// Makes the errors of a file, which has this name.
pub(super) struct Wrong(pub(super) String);

impl Wrong {
    /// Makes the error of a value that is out of range.
    pub(super) fn value(&self, key: &str, expected: &str, found: String) -> ConfigError {
        ConfigError::Value { file: self.0.clone(), key: key.into(), expected: expected.into(), found }
    }

    /// Makes the error of an unknown name, or of a figure in a name.
    pub(super) fn name(&self, why: &NameError) -> ConfigError {
        ConfigError::Name { file: self.0.clone(), why: why.to_string() }
    }
}

/// Returns the line of this byte of a text, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// Rewrites serde's message as "expected ..., found ...", with the key, which serde does not name.
fn reworded(why: &str, before: &str) -> String {
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let odd = why.strip_prefix("invalid type: ").or_else(|| why.strip_prefix("invalid value: "));
    let Some((found, expected)) = odd.and_then(|odd| odd.split_once(", expected ")) else { return why };
    let whole = |most: u64| format!("a whole number from 0 to {most}");
    let expected = match expected {
        "u32" => whole(u32::MAX.into()),
        // TOML's integers end there.
        "u64" | "usize" => whole(i64::MAX as u64),
        other => other.into(),
    };
    let key = key(before).map_or(String::new(), |k| format!("{k}: "));
    format!("{key}expected {expected}, found {found}")
}

/// Returns the key whose value or list contains the end of this text.
fn key(before: &str) -> Option<&str> {
    let (keys, value) = before.rsplit_once('=')?;
    let value = value.trim();
    let within = value.is_empty() || value.starts_with('[') && !value.contains(']');
    let key = keys.rsplit(['\n', '{', ',']).next()?.trim();
    (within && !key.is_empty()).then_some(key)
}
