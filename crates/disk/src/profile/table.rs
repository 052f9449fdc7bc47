//! Typed access to a parsed TOML table, with line numbers.

use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::decimal::Decimal;
use super::fault::{At, ProfileError, Reason};

/// The keys that a table may have.
pub(crate) trait Keys: Sync {
    /// Returns the table's name, for messages.
    fn title(&self) -> &'static str;
    /// Returns the keys in order.
    fn names(&self) -> Vec<&'static str>;
    /// Whether a key is one of them.
    fn has(&self, name: &str) -> bool;
}

/// A file's text, for converting offsets to lines.
pub(super) struct Source {
    file: Arc<str>,
    line_starts: Vec<usize>,
}

impl Source {
    /// Records where lines begin.
    pub(super) fn new(path: &str, text: &str) -> Source {
        let starts = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Source { file: path.into(), line_starts: std::iter::once(0).chain(starts).collect() }
    }

    /// Returns the location of a byte offset.
    pub(super) fn at(&self, offset: usize) -> At {
        let line = self.line_starts.partition_point(|&start| start <= offset);
        At { file: self.file.clone(), line: line as u32 }
    }

    /// Returns the location of the whole file.
    pub(super) fn whole(&self) -> At {
        At { file: self.file.clone(), line: 0 }
    }
}

/// A value with its location.
#[derive(Clone)]
pub(super) struct Item<'a> {
    /// The key or list index, for messages.
    pub label: String,
    /// Location.
    pub at: At,
    value: &'a DeValue<'a>,
    source: &'a Source,
}

impl<'a> Item<'a> {
    fn fail<T>(&self, expected: &str) -> Result<T, ProfileError> {
        let found = match self.value {
            DeValue::String(s) => format!("the text \"{s}\""),
            DeValue::Integer(n) => n.to_string(),
            DeValue::Float(x) => x.to_string(),
            DeValue::Boolean(b) => b.to_string(),
            DeValue::Datetime(d) => format!("the date {d}"),
            DeValue::Array(a) => format!("a list of {}", a.len()),
            DeValue::Table(_) => "a table".into(),
        };
        Err(ProfileError::expected(&self.at, format!("{expected} for `{}`", self.label), found))
    }

    /// Rejects the value with what was expected.
    pub(super) fn refuse<T>(&self, expected: &str) -> Result<T, ProfileError> {
        self.fail(expected)
    }

    /// Rejects a text that is none of the `known` names of a `what`.
    pub(super) fn unknown<T>(&self, what: &str, known: &str) -> Result<T, ProfileError> {
        let reason = Reason::UnknownName { what: what.into(), found: self.text()?.into(), known: known.into() };
        Err(ProfileError { at: self.at.clone(), reason })
    }

    /// Returns the value as a decimal figure.
    pub(super) fn decimal(&self) -> Result<Decimal, ProfileError> {
        let figure = match self.value {
            DeValue::Integer(n) if n.radix() == 10 => Decimal::parse(n.as_str()),
            DeValue::Float(x) => Decimal::parse(x.as_str()),
            _ => None,
        };
        figure.map_or_else(|| self.fail("a number"), Ok)
    }

    /// Returns the value as a whole number from `min` to `max`.
    pub(super) fn int(&self, min: i64, max: i64) -> Result<i64, ProfileError> {
        let n = match self.value {
            DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok(),
            _ => None,
        };
        let Some(n) = n else {
            return self.fail("a whole number");
        };
        if (min..=max).contains(&n) {
            Ok(n)
        } else {
            Err(ProfileError::range(&self.at, &self.label, n, format!("between {min} and {max}")))
        }
    }

    /// Returns a figure in units of 10^-`places`: a whole number of these units from `min` to
    /// `max`.
    pub(super) fn units(&self, places: u32, min: i64, max: i64) -> Result<i64, ProfileError> {
        let figure = self.decimal()?;
        match figure.scaled(places) {
            Some(n) if (min..=max).contains(&n) => Ok(n),
            _ => {
                let (min, max) = (Decimal::from_units(min, places), Decimal::from_units(max, places));
                Err(ProfileError::range(&self.at, &self.label, figure, format!("between {min} and {max}")))
            }
        }
    }

    /// Returns the value as a text.
    pub(super) fn text(&self) -> Result<&'a str, ProfileError> {
        match self.value {
            DeValue::String(s) => Ok(s),
            _ => self.fail("a text"),
        }
    }

    /// Returns a text, or a number as text.
    pub(super) fn text_or_number(&self) -> Result<String, ProfileError> {
        match self.value {
            DeValue::String(s) => Ok(s.to_string()),
            DeValue::Integer(n) => Ok(n.to_string()),
            DeValue::Float(x) => Ok(x.to_string()),
            _ => self.fail("a text or a number"),
        }
    }

    /// Whether the value is a text.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.value, DeValue::String(_))
    }

    /// Returns the value as a boolean.
    pub(super) fn flag(&self) -> Result<bool, ProfileError> {
        match self.value {
            DeValue::Boolean(b) => Ok(*b),
            _ => self.fail("true or false"),
        }
    }

    /// Returns the value as a list.
    pub(super) fn list(&self) -> Result<Vec<Item<'a>>, ProfileError> {
        let DeValue::Array(array) = self.value else {
            return self.fail("a list");
        };
        let items = array.iter().enumerate().map(|(i, v)| Item {
            label: format!("{}[{i}]", self.label),
            at: self.source.at(v.span().start),
            value: v.get_ref(),
            source: self.source,
        });
        Ok(items.collect())
    }

    /// Returns a list of exactly `N` values; `form` describes them.
    pub(super) fn tuple<const N: usize>(&self, form: &str) -> Result<[Item<'a>; N], ProfileError> {
        let items = match self.value {
            DeValue::Array(_) => self.list()?,
            _ => return self.fail(form),
        };
        items.try_into().or_else(|_| self.fail(form))
    }

    /// Whether the value is a table.
    pub(super) fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }

    /// Whether the value is a list.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// Returns a table with known keys; unknown ones are refused.
    pub(super) fn table(&self, keys: &'static dyn Keys) -> Result<Table<'a>, ProfileError> {
        match self.value {
            DeValue::Table(table) => Table::new(self.label.clone(), self.at.clone(), keys, table, self.source),
            _ => self.fail("a table"),
        }
    }

    /// Returns a table with arbitrary keys as texts.
    pub(super) fn texts(&self) -> Result<Vec<(String, String, At)>, ProfileError> {
        let DeValue::Table(table) = self.value else {
            return self.fail("a table");
        };
        table
            .iter()
            .map(|(key, value)| {
                let item = Item {
                    label: format!("{}.{}", self.label, key.get_ref()),
                    at: self.source.at(key.span().start),
                    value: value.get_ref(),
                    source: self.source,
                };
                Ok((key.get_ref().to_string(), item.text()?.to_string(), item.at))
            })
            .collect()
    }
}

/// A table whose keys are known.
pub(super) struct Table<'a> {
    label: String,
    /// Location of its start.
    pub at: At,
    keys: &'static dyn Keys,
    table: &'a DeTable<'a>,
    source: &'a Source,
}

impl<'a> Table<'a> {
    /// Wraps a table and refuses unknown keys.
    pub(super) fn new(
        label: String,
        at: At,
        keys: &'static dyn Keys,
        table: &'a DeTable<'a>,
        source: &'a Source,
    ) -> Result<Table<'a>, ProfileError> {
        // The map is sorted by key; report the first unknown key in the file.
        let unknown = table.iter().filter(|(k, _)| !keys.has(k.get_ref()));
        if let Some((key, _)) = unknown.min_by_key(|(k, _)| k.span().start) {
            return Err(ProfileError {
                at: source.at(key.span().start),
                reason: Reason::UnknownKey {
                    table: label,
                    key: key.get_ref().to_string(),
                    known: keys.names().join(", "),
                },
            });
        }
        Ok(Table { label, at, keys, table, source })
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, key: &str) -> Option<Item<'a>> {
        assert!(self.keys.has(key), "`{key}` is not listed among the keys of {}", self.keys.title());
        let (k, value) = self.table.iter().find(|(k, _)| k.get_ref() == key)?;
        // A sub-table's own span may begin before its header; the key's location is always right.
        let start = match value.get_ref() {
            DeValue::Table(_) => k.span().start,
            _ => value.span().start,
        };
        Some(Item { label: key.into(), at: self.source.at(start), value: value.get_ref(), source: self.source })
    }

    /// Returns the value of a required key.
    pub(super) fn need(&self, key: &str) -> Result<Item<'a>, ProfileError> {
        self.get(key).ok_or_else(|| ProfileError::missing(&self.at, &self.label, key))
    }

    /// Returns the value of a key through `read`, or `default` when it is missing.
    pub(super) fn or<T>(
        &self,
        key: &str,
        default: T,
        read: impl FnOnce(Item<'a>) -> Result<T, ProfileError>,
    ) -> Result<T, ProfileError> {
        self.get(key).map_or(Ok(default), read)
    }

    /// Returns a boolean, or `default`.
    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool, ProfileError> {
        self.or(key, default, |v| v.flag())
    }
}
