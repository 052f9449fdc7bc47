//! The schema of profile files: the keys of each table, with their form, range, default and
//! documentation.
//!
//! One list per table. The reader ([`super::toml`]), the writer ([`super::write()`]), the known
//! keys of a message and the tables of docs/profile-format.md come from it. A default is the value
//! in the table's blank specification; a key without a form of its own has functions of its own.

mod cache;
mod electronics;
mod forms;
mod geometry;
mod known;
mod mechanics;
mod noise;
mod service;
mod top;
mod zone;

use super::fault::ProfileError;
use super::places::Places;
use super::table::{Item, Keys, Table};

pub(super) use electronics::ELECTRONICS_TABLES;
pub(super) use geometry::GEOMETRY;
pub(super) use known::KNOWN;
pub(super) use mechanics::MECHANICS;
pub(super) use noise::NOISE;
pub(super) use service::SERVICE_TIMES;
pub(super) use top::TOP;

/// Version of the file format.
const FORMAT: i64 = 1;
/// Maximum number of sectors of a drive.
const SECTORS: i64 = 1 << 46;
/// Maximum number of cylinders of a drive.
const CYLINDERS: i64 = 10_000_000;
/// Maximum of an overhead or of a seek, in ns.
const SECOND: i64 = 1_000_000_000;
/// Decimal places of a microsecond in ns.
const US: u32 = 3;
/// Decimal places of a millisecond in ns.
const MS: u32 = 6;

/// Whether a key may be missing, and whether the writer writes a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// It must be in the file; in `[rig]` it may be missing.
    Required,
    /// It may be missing and is always written.
    Kept,
    /// It may be missing and is not written if it is the default.
    Optional,
}

/// A value as the writer formats it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// A value on one line, or with its own line breaks.
    Value(String),
    /// The items of a list, which the writer wraps.
    List(Vec<String>),
}

impl Written {
    /// Makes a list, or nothing without items.
    fn list(items: Vec<String>) -> Option<Written> {
        (!items.is_empty()).then_some(Written::List(items))
    }
}

/// A key of a table whose figures are in a `T`.
struct Key<T: 'static> {
    name: &'static str,
    presence: Presence,
    /// Description of the value in the documentation: its form and range.
    form: fn() -> String,
    /// Description of the default; empty: the blank specification's value.
    default: &'static str,
    /// Meaning, for the documentation.
    doc: &'static str,
    read: fn(&mut Reader<'_, '_>, &mut T) -> Result<(), ProfileError>,
    write: fn(&T) -> Option<Written>,
}

/// A key whose value is one field, in a form: `key! { BusSpec, arbitration, "arbitration_us", Kept,
/// FORM, "doc" }`, with a description of the default at the end where it is no plain value.
macro_rules! key {
    ($T:ty, $($field:ident).+, $name:literal, $presence:ident, $form:expr, $doc:literal $(, $default:literal)?) => {
        Key {
            name: $name,
            presence: Presence::$presence,
            form: || $form.words(),
            default: concat!("" $(, $default)?),
            doc: $doc,
            read: |reader, spec: &mut $T| {
                if let Some(item) = reader.find($name, Presence::$presence)? {
                    spec.$($field).+ = $form.read(&item)?;
                }
                Ok(())
            },
            write: |spec: &$T| $form.write(&spec.$($field).+),
        }
    };
}
use key;

/// A table of the file.
pub(super) struct Schema<T: 'static> {
    /// Its name in messages and in the documentation.
    title: &'static str,
    keys: &'static [Key<T>],
    /// Keys that are written before the others, in this order.
    written_first: &'static [&'static str],
    /// The specification of an empty table: the defaults.
    blank: fn() -> T,
}

impl<T> Keys for Schema<T> {
    fn title(&self) -> &'static str {
        self.title
    }

    fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|k| k.name).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|k| k.name == name)
    }
}

impl<T> Schema<T> {
    /// Reads a table on top of `spec`. Locations are recorded below `path`, which ends in a dot.
    /// In a `partial` table every key may be missing.
    fn read_into(
        &self,
        spec: &mut T,
        table: &Table<'_>,
        path: &str,
        partial: bool,
        places: &mut Places,
    ) -> Result<(), ProfileError> {
        let mut reader = Reader { table, path, partial, places };
        self.keys.iter().try_for_each(|key| (key.read)(&mut reader, spec))
    }

    /// Reads a complete table.
    pub(super) fn read(&self, table: &Table<'_>, path: &str, places: &mut Places) -> Result<T, ProfileError> {
        let mut spec = (self.blank)();
        self.read_into(&mut spec, table, path, false, places)?;
        Ok(spec)
    }

    /// Returns the keys to write with their values, in order.
    pub(super) fn written(&self, spec: &T) -> Vec<(&'static str, Written)> {
        let blank = (self.blank)();
        let first = self.written_first.iter().filter_map(|name| self.keys.iter().find(|k| k.name == *name));
        let others = self.keys.iter().filter(|k| !self.written_first.contains(&k.name));
        let value = |key: &Key<T>| {
            let value = (key.write)(spec)?;
            let is_default = key.presence == Presence::Optional && (key.write)(&blank).as_ref() == Some(&value);
            (!is_default).then_some((key.name, value))
        };
        first.chain(others).filter_map(value).collect()
    }

    /// Returns the rows of the documentation.
    fn rows(&self) -> TableDoc {
        let blank = (self.blank)();
        let mut rows = String::from("| key | value | default | meaning |\n|---|---|---|---|\n");
        for key in self.keys {
            let value = || match (key.write)(&blank) {
                Some(Written::Value(value)) => format!("`{value}`"),
                _ => "none".into(),
            };
            let default = match (key.presence, key.default) {
                (Presence::Required, _) => String::new(),
                (_, "") => value(),
                (_, words) => words.into(),
            };
            rows += &format!("| `{}` | {} | {default} | {} |\n", key.name, (key.form)(), key.doc);
        }
        TableDoc { title: self.title, names: self.names(), rows }
    }
}

/// The table that is read, and where locations go.
struct Reader<'r, 'a> {
    table: &'r Table<'a>,
    path: &'r str,
    partial: bool,
    places: &'r mut Places,
}

impl<'a> Reader<'_, 'a> {
    /// Returns the value of a key and records its location.
    fn find(&mut self, name: &str, presence: Presence) -> Result<Option<Item<'a>>, ProfileError> {
        let item = match presence == Presence::Required && !self.partial {
            true => Some(self.table.need(name)?),
            false => self.table.get(name),
        };
        self.places.remember(&format!("{}{name}", self.path), item.clone());
        Ok(item)
    }

    /// Returns the items of a list; none if the key is missing.
    fn items(&mut self, name: &str) -> Result<Vec<Item<'a>>, ProfileError> {
        self.find(name, Presence::Optional)?.map_or(Ok(Vec::new()), |item| item.list())
    }
}

/// The documentation of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDoc {
    /// The table.
    pub title: &'static str,
    /// Its keys.
    pub names: Vec<&'static str>,
    /// A table in Markdown: key, value, default and meaning.
    pub rows: String,
}

/// Returns the documentation of all tables of a profile file.
pub fn documentation() -> Vec<TableDoc> {
    vec![
        TOP.rows(),
        GEOMETRY.rows(),
        zone::ZONE.rows(),
        MECHANICS.rows(),
        electronics::ELECTRONICS.rows(),
        electronics::BUS.rows(),
        electronics::OVERHEADS.rows(),
        electronics::BY_LAST.rows(),
        electronics::EXTRA_DISCONNECT.rows(),
        electronics::QUEUED.rows(),
        cache::CACHE.rows(),
        electronics::QUEUE.rows(),
        NOISE.rows(),
        KNOWN.rows(),
        SERVICE_TIMES.rows(),
    ]
}
