//! Typed access to a block's parameters, with detection of unread ones.

use crate::profile::decimal::Decimal;
use crate::profile::fault::{At, ProfileError, WarningKind, Warnings};
use crate::time::Dur;

use super::parser::{Block, Node, Value};

/// Maximum time in a parameter file: one second, in ns, as in a profile file.
const MAX_TIME_NS: i64 = 1_000_000_000;

/// Reader of a block's parameters.
pub(super) struct Params<'a> {
    block: &'a Block,
    label: String,
    read: Vec<bool>,
    notes: Warnings,
}

impl<'a> Params<'a> {
    /// Starts reading `block`.
    pub(super) fn new(block: &'a Block) -> Params<'a> {
        let label = match &block.name {
            Some(name) => format!("{} {name}", block.kind),
            None => block.kind.clone(),
        };
        Params { block, label, read: vec![false; block.params.len()], notes: Warnings::default() }
    }

    /// Returns the block's location.
    pub(super) fn at(&self) -> &'a At {
        &self.block.at
    }

    /// Records a warning at `at`.
    pub(super) fn note(&mut self, at: &At, kind: WarningKind) {
        self.notes.note(at, kind);
    }

    /// Returns the value of `key`; the last one if it is repeated.
    pub(super) fn get(&mut self, key: &str) -> Option<&'a Node> {
        let mut found: Option<&'a Node> = None;
        for (i, p) in self.block.params.iter().enumerate() {
            if p.key == key {
                if found.is_some() && !self.read[i] {
                    let kind = WarningKind::RepeatedParameter { key: key.into(), block: self.label.clone() };
                    self.notes.note(&p.at, kind);
                }
                self.read[i] = true;
                found = Some(&p.value);
            }
        }
        found
    }

    /// Returns the value of `key`, which is required.
    pub(super) fn need(&mut self, key: &str) -> Result<&'a Node, ProfileError> {
        self.get(key).ok_or_else(|| ProfileError::missing(&self.block.at, &self.label, key))
    }

    fn defaulted(&mut self, key: &str, default: &str) {
        let kind = WarningKind::DefaultTaken { key: key.into(), block: self.label.clone(), default: default.into() };
        let at = self.block.at.clone();
        self.notes.note(&at, kind);
    }

    /// Returns a required whole number in `min..=max`.
    pub(super) fn int(&mut self, key: &str, min: i64, max: i64) -> Result<i64, ProfileError> {
        let node = self.need(key)?;
        ranged(key, node, int(node)?, min, max)
    }

    /// Returns a whole number in `min..=max`, or `default` with a warning.
    pub(super) fn int_or(&mut self, key: &str, default: i64, min: i64, max: i64) -> Result<i64, ProfileError> {
        match self.get(key) {
            Some(node) => ranged(key, node, int(node)?, min, max),
            None => {
                self.defaulted(key, &default.to_string());
                Ok(default)
            }
        }
    }

    /// Returns a boolean, 0 or 1; false with a warning when it is missing.
    pub(super) fn flag(&mut self, key: &str) -> Result<bool, ProfileError> {
        Ok(self.int_or(key, 0, 0, 1)? != 0)
    }

    /// Returns a figure, or zero with a warning.
    pub(super) fn real_or_zero(&mut self, key: &str) -> Result<Decimal, ProfileError> {
        match self.get(key) {
            Some(node) => real(node),
            None => {
                self.defaulted(key, "0");
                Ok(Decimal::ZERO)
            }
        }
    }

    /// Returns a required time in ms, which must not be negative.
    pub(super) fn time(&mut self, key: &str) -> Result<Dur, ProfileError> {
        let node = self.need(key)?;
        time(key, node, real(node)?)
    }

    /// Returns a time in ms times `scale`, or zero with a warning.
    pub(super) fn time_or_zero(&mut self, key: &str, scale: Decimal) -> Result<Dur, ProfileError> {
        let Some(node) = self.get(key) else {
            self.defaulted(key, "0");
            return Ok(Dur::ZERO);
        };
        let scaled = real(node)?
            .times(scale)
            .ok_or_else(|| ProfileError::range(&node.at, key, node.value.describe(), "of at most 15 digits"))?;
        time(key, node, scaled)
    }

    /// Returns a required list.
    pub(super) fn list(&mut self, key: &str) -> Result<&'a [Node], ProfileError> {
        let node = self.need(key)?;
        match &node.value {
            Value::List(items) => Ok(items),
            other => Err(ProfileError::expected(&node.at, format!("a list for `{key}`"), other.describe())),
        }
    }

    /// Marks parameters as known although they have no effect here.
    pub(super) fn skip(&mut self, keys: &[&str]) {
        for key in keys {
            self.get(key);
        }
    }

    /// Records a warning for a parameter whose value matters in DiskSim but has no effect here.
    pub(super) fn without_effect(&mut self, key: &str, harmless: &str, why: &'static str) {
        if let Some(node) = self.get(key) {
            let value = match &node.value {
                Value::Word(w) => w.clone(),
                other => other.describe(),
            };
            let same = match (Decimal::parse(&value), Decimal::parse(harmless)) {
                (Some(a), Some(b)) => a.to_string() == b.to_string(),
                _ => value == harmless,
            };
            if !same {
                let kind = WarningKind::NoEffect { key: key.into(), value, why };
                self.notes.note(&node.at, kind);
            }
        }
    }

    /// Ends the reading: warns of each unread parameter as unknown, and appends all warnings to
    /// `warnings`.
    pub(super) fn finish(mut self, warnings: &mut Warnings) {
        for (p, read) in self.block.params.iter().zip(&self.read) {
            if !read {
                let kind = WarningKind::UnknownParameter { key: p.key.clone(), block: self.label.clone() };
                self.notes.note(&p.at, kind);
            }
        }
        warnings.0.append(&mut self.notes.0);
    }
}

/// Returns a word.
pub(super) fn word(node: &Node) -> Result<&str, ProfileError> {
    match &node.value {
        Value::Word(w) => Ok(w),
        other => Err(ProfileError::expected(&node.at, "a word", other.describe())),
    }
}

/// Parses a whole number, decimal or hexadecimal.
pub(super) fn int(node: &Node) -> Result<i64, ProfileError> {
    let fail = || ProfileError::expected(&node.at, "a whole number", node.value.describe());
    let Value::Word(w) = &node.value else {
        return Err(fail());
    };
    let (sign, digits) = match w.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, w.as_str()),
    };
    let number = match digits.strip_prefix("0x") {
        Some(hex) if hex.starts_with(|c: char| c.is_ascii_hexdigit()) => i64::from_str_radix(hex, 16),
        _ if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse::<i64>(),
        _ => return Err(fail()),
    };
    number.map(|n| sign * n).map_err(|_| fail())
}

/// Parses a figure, including whole numbers.
pub(super) fn real(node: &Node) -> Result<Decimal, ProfileError> {
    if let Ok(n) = int(node) {
        return Ok(Decimal::from_int(n));
    }
    match &node.value {
        Value::Word(w) => Decimal::parse(w),
        _ => None,
    }
    .ok_or_else(|| ProfileError::expected(&node.at, "a number", node.value.describe()))
}

/// Converts a figure in ms to a duration.
pub(super) fn time(what: &str, node: &Node, ms: Decimal) -> Result<Dur, ProfileError> {
    match ms.scaled(6) {
        Some(ns) if (0..=MAX_TIME_NS).contains(&ns) => Ok(Dur(ns as u64)),
        _ => Err(ProfileError::range(&node.at, what, format!("{ms} ms"), "between 0 and 1000 ms")),
    }
}

fn ranged(key: &str, node: &Node, n: i64, min: i64, max: i64) -> Result<i64, ProfileError> {
    if (min..=max).contains(&n) {
        Ok(n)
    } else {
        let range = format!("between {min} and {max}");
        Err(ProfileError::range(&node.at, key, n, range))
    }
}
