//! Values of a scenario's keys with more than one notation.
//!
//! Each is parsed from any TOML value, so that its error states what was expected and found, and
//! not the types that the program tried.

use headtime_disk::Dur;
use headtime_disk::internals::bytes;
use headtime_sched::streams::{QUALITY_FORMAT, Quality, parse_period, parse_quality, period_format};
use serde::Deserialize;
use toml::Value;

use crate::workload::{Beyond, WorkloadError, shown, unknown};

/// A number, or a word in place of one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Figure {
    /// A number.
    Number(u64),
    /// A word, or a number in quotes; also a number out of range, which its own check refuses.
    Word(String),
}

impl TryFrom<Value> for Figure {
    type Error = String;
    fn try_from(value: Value) -> Result<Figure, String> {
        match value {
            Value::Integer(n) => Ok(u64::try_from(n).map_or_else(|_| Figure::Word(n.to_string()), Figure::Number)),
            Value::Float(f) => Ok(Figure::Word(f.to_string())),
            Value::String(word) => Ok(Figure::Word(word)),
            other => Err(format!("expected a whole number or a word in quotes, found {}", found(&other))),
        }
    }
}

impl Figure {
    pub(super) fn text(&self) -> String {
        match self {
            Figure::Number(n) => n.to_string(),
            Figure::Word(w) => w.clone(),
        }
    }
}

/// Bytes: a number, or text with a suffix `k`, `m` or `g` (powers of 1024).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Bytes(pub u64);

impl Bytes {
    /// Parses a text.
    pub fn parse(text: &str) -> Option<u64> {
        bytes(text)
    }
}

impl TryFrom<Value> for Bytes {
    type Error = String;
    fn try_from(value: Value) -> Result<Bytes, String> {
        let parsed = match &value {
            Value::Integer(n) => u64::try_from(*n).ok(),
            Value::String(s) => bytes(s),
            _ => None,
        };
        parsed
            .map(Bytes)
            .ok_or_else(|| format!("expected a number of bytes such as 4096 or \"4k\", found {}", found(&value)))
    }
}

/// A period of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Period(pub Dur);

impl TryFrom<Value> for Period {
    type Error = String;
    fn try_from(value: Value) -> Result<Period, String> {
        let parsed = value.as_str().and_then(parse_period);
        parsed.map(Period).ok_or_else(|| format!("expected in quotes {}, found {}", period_format(), found(&value)))
    }
}

/// A quality of a stream: a number, or text in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Asked(pub Quality);

impl TryFrom<Value> for Asked {
    type Error = String;
    fn try_from(value: Value) -> Result<Asked, String> {
        let text = match &value {
            Value::String(text) => text.clone(),
            Value::Integer(n) => n.to_string(),
            Value::Float(n) => n.to_string(),
            _ => String::new(),
        };
        let parsed = parse_quality(&text);
        parsed
            .map(Asked)
            .ok_or_else(|| format!("expected {}; a percentage in quotes, found {}", QUALITY_FORMAT, found(&value)))
    }
}

/// Sizes with weights.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Sizes(pub Vec<(Bytes, u32)>);

impl TryFrom<Value> for Sizes {
    type Error = String;
    fn try_from(value: Value) -> Result<Sizes, String> {
        let fault = |v: &Value| {
            format!("expected a list of sizes with weights such as [[\"4k\", 3], [\"64k\", 1]], found {}", found(v))
        };
        let Value::Array(all) = &value else { return Err(fault(&value)) };
        let pair = |v: &Value| match v.as_array().map(Vec::as_slice) {
            Some([size, weight]) => {
                let weight = weight.as_integer().and_then(|w| u32::try_from(w).ok()).ok_or_else(|| fault(v))?;
                Ok((Bytes::try_from(size.clone())?, weight))
            }
            _ => Err(fault(v)),
        };
        all.iter().map(pair).collect::<Result<_, _>>().map(Sizes)
    }
}

fn found(value: &Value) -> String {
    shown(value.to_string())
}

/// Parses `beyond`: `refuse`, `wrap`, or `spread:SIZE`, with the volume's size in bytes or with a
/// suffix.
pub(super) fn beyond(text: &str) -> Result<Beyond, WorkloadError> {
    match text.split_once(':') {
        None if text == "refuse" => Ok(Beyond::Refuse),
        None if text == "wrap" => Ok(Beyond::Wrap),
        Some(("spread", size)) => bytes(size).and_then(Beyond::spread).ok_or_else(|| {
            WorkloadError::range("SIZE of beyond spread:SIZE", format!("\"{size}\""), "1 MiB", "2^63 bytes")
        }),
        _ => Err(unknown("way of placing requests beyond the drive", text, &Beyond::FORMS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_of_placing_are_parsed_and_others_refused_with_the_list() {
        assert_eq!(beyond("refuse").unwrap(), Beyond::Refuse);
        assert_eq!(beyond("wrap").unwrap(), Beyond::Wrap);
        assert_eq!(beyond("spread:40g").unwrap(), Beyond::Spread(40 << 21));
        for wrong in ["", "spread", "spread:", "spread:0", "spread:-1", "wrap:1", "fold"] {
            let e = beyond(wrong).unwrap_err().to_string();
            assert!(e.contains("spread:SIZE"), "{wrong}: {e}");
        }
    }
}
