//! Forms of values: how each is read, written and described.

use super::super::decimal::Decimal;
use super::super::fault::ProfileError;
use super::super::places::Places;
use super::super::table::{Item, Keys};
use super::super::text::text;
use super::{Schema, Written};
use crate::time::Dur;

/// A form of a value of type `V`.
pub(super) trait Form<V>: Described {
    /// Reads a value.
    fn read(&self, item: &Item<'_>) -> Result<V, ProfileError>;
    /// Formats a value; `None`: the key is not written.
    fn write(&self, value: &V) -> Option<Written>;
}

/// A form that the documentation describes.
pub(super) trait Described {
    /// Returns the form and its range.
    fn words(&self) -> String;
}

/// A figure that is kept as an integer.
pub(super) trait Figure: Copy {
    fn from_units(units: i64) -> Self;
    fn units(self) -> i64;
}

macro_rules! figures {
    ($($type:ty),*) => {
        $(impl Figure for $type {
            fn from_units(units: i64) -> $type {
                units as $type
            }

            fn units(self) -> i64 {
                self as i64
            }
        })*
    };
}
figures!(u16, u32, u64, i64);

impl Figure for Dur {
    fn from_units(units: i64) -> Dur {
        Dur(units as u64)
    }

    fn units(self) -> i64 {
        self.0 as i64
    }
}

/// `true` or `false`.
pub(super) struct Flag;

impl Form<bool> for Flag {
    fn read(&self, item: &Item<'_>) -> Result<bool, ProfileError> {
        item.flag()
    }

    fn write(&self, value: &bool) -> Option<Written> {
        Some(Written::Value(value.to_string()))
    }
}

impl Described for Flag {
    fn words(&self) -> String {
        "true or false".into()
    }
}

/// A whole number in a range.
pub(super) struct Whole(pub(super) i64, pub(super) i64);

impl<V: Figure + ToString> Form<V> for Whole {
    fn read(&self, item: &Item<'_>) -> Result<V, ProfileError> {
        item.int(self.0, self.1).map(V::from_units)
    }

    fn write(&self, value: &V) -> Option<Written> {
        Some(Written::Value(value.to_string()))
    }
}

impl Described for Whole {
    fn words(&self) -> String {
        let Whole(min, max) = self;
        format!("{min} to {max}")
    }
}

/// An exact decimal figure that is kept as an integer of units of 10^-`places`.
pub(super) struct Units {
    pub(super) places: u32,
    pub(super) min: i64,
    pub(super) max: i64,
}

/// A time in microseconds, of at most a second.
pub(super) const MICROS: Units = Units { places: super::US, min: 0, max: super::SECOND };
/// A time of up to a minute.
pub(super) const DELAY: Units = Units { places: super::MS, min: 0, max: 60 * super::SECOND };

impl<V: Figure> Form<V> for Units {
    fn read(&self, item: &Item<'_>) -> Result<V, ProfileError> {
        item.units(self.places, self.min, self.max).map(V::from_units)
    }

    fn write(&self, value: &V) -> Option<Written> {
        Some(Written::Value(Decimal::from_units(value.units(), self.places).to_string()))
    }
}

impl Described for Units {
    fn words(&self) -> String {
        let end = |units| Decimal::from_units(units, self.places);
        format!("{} to {}", end(self.min), end(self.max))
    }
}

/// A text.
pub(super) struct Text;

impl Form<String> for Text {
    fn read(&self, item: &Item<'_>) -> Result<String, ProfileError> {
        Ok(item.text()?.to_string())
    }

    fn write(&self, value: &String) -> Option<Written> {
        Some(Written::Value(text(value)))
    }
}

impl Described for Text {
    fn words(&self) -> String {
        "text".into()
    }
}

/// A value that may be absent.
pub(super) struct Maybe<F>(pub(super) F);

impl<V, F: Form<V>> Form<Option<V>> for Maybe<F> {
    fn read(&self, item: &Item<'_>) -> Result<Option<V>, ProfileError> {
        self.0.read(item).map(Some)
    }

    fn write(&self, value: &Option<V>) -> Option<Written> {
        self.0.write(value.as_ref()?)
    }
}

impl<F: Described> Described for Maybe<F> {
    fn words(&self) -> String {
        self.0.words()
    }
}

/// One of some names.
pub(super) struct Name<V: 'static> {
    /// What they name, for a message.
    pub(super) of: &'static str,
    pub(super) names: &'static [(&'static str, V)],
}

impl<V: Copy + PartialEq> Form<V> for Name<V> {
    fn read(&self, item: &Item<'_>) -> Result<V, ProfileError> {
        let found = item.text()?;
        match self.names.iter().find(|(name, _)| *name == found) {
            Some((_, value)) => Ok(*value),
            None => item.unknown(self.of, &self.names.iter().map(|n| n.0).collect::<Vec<_>>().join(", ")),
        }
    }

    fn write(&self, value: &V) -> Option<Written> {
        let (name, _) = self.names.iter().find(|(_, v)| v == value)?;
        Some(Written::Value(text(name)))
    }
}

impl<V> Described for Name<V> {
    fn words(&self) -> String {
        self.names.iter().map(|(name, _)| format!("`\"{name}\"`")).collect::<Vec<_>>().join(", ")
    }
}

/// A table as a value.
pub(super) struct Inline<T: 'static>(pub(super) &'static Schema<T>);

impl<T> Form<T> for Inline<T> {
    fn read(&self, item: &Item<'_>) -> Result<T, ProfileError> {
        // No message refers to these locations.
        self.0.read(&item.table(self.0)?, "", &mut Places::new(item.at.clone()))
    }

    fn write(&self, value: &T) -> Option<Written> {
        let keys = self.0.written(value).into_iter().map(|(name, value)| match value {
            Written::Value(value) => format!("{name} = {value}"),
            Written::List(items) => format!("{name} = [{}]", items.join(", ")),
        });
        Some(Written::Value(format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))))
    }
}

impl<T> Described for Inline<T> {
    fn words(&self) -> String {
        format!("table of {}", self.0.names().iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "))
    }
}

/// A form whose range a check of the whole profile narrows: with the range for the documentation.
pub(super) struct Narrowed<F>(pub(super) F, pub(super) &'static str);

impl<V, F: Form<V>> Form<V> for Narrowed<F> {
    fn read(&self, item: &Item<'_>) -> Result<V, ProfileError> {
        self.0.read(item)
    }

    fn write(&self, value: &V) -> Option<Written> {
        self.0.write(value)
    }
}

impl<F> Described for Narrowed<F> {
    fn words(&self) -> String {
        self.1.into()
    }
}
