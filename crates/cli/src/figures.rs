//! Figures and names on the command line: every fault says the range, in one line, and shows no more of what was typed than a
//! reader needs.

use std::error::Error as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Characters shown of what was typed.
const SHOWN: usize = 40;
/// Commands that any drive takes at most; a drive's own limit is checked with the drive.
const DEEPEST: u64 = u32::MAX as u64;

fn whole(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let within = text.parse().ok().filter(|n| range.contains(n));
    within.ok_or_else(|| format!("expected a whole number from {} to {}", range.start(), range.end()))
}

/// `--depth`.
pub fn depth(text: &str) -> Result<u32, String> {
    whole(text, 1..=DEEPEST).map(|n| n as u32)
}

/// `--device`.
pub fn device(text: &str) -> Result<u32, String> {
    whole(text, 0..=u64::from(u32::MAX)).map(|n| n as u32)
}

/// `--requests`.
pub fn requests(text: &str) -> Result<u64, String> {
    whole(text, 1..=u64::MAX)
}

/// `--seed`.
pub fn seed(text: &str) -> Result<u64, String> {
    whole(text, 0..=u64::MAX)
}

/// `--seconds`.
pub fn seconds(text: &str) -> Result<f64, String> {
    let most = headtime_sim::workload::scenario::LONGEST_RUN_S;
    let within = text.parse().ok().filter(|s| *s > 0.0 && *s <= most);
    within.ok_or_else(|| format!("expected more than 0 to {most} virtual seconds"))
}

/// A file or directory to be written. `-` is refused: elsewhere it means standard output, where the results go already, and
/// nobody wants a file of that name unasked.
pub fn output() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path == Path::new("-") {
        true => Err("expected a name (standard output is for the results; what is really called - is ./-)"),
        false => Ok(path),
    })
}

/// The line for a figure that was refused; `None` for all other faults.
pub fn fault(e: &clap::Error) -> Option<String> {
    if e.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let text = |kind| match e.get(kind) {
        Some(ContextValue::String(s)) => Some(s.as_str()),
        _ => None,
    };
    let (flag, found, why) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?, e.source()?);
    let flag = flag.split_whitespace().next().unwrap_or(flag);
    let mut shown: String = found.chars().take(SHOWN).flat_map(char::escape_default).collect();
    if found.chars().count() > SHOWN {
        shown.push_str("...");
    }
    Some(format!("{flag}: {why}, found \"{shown}\""))
}
