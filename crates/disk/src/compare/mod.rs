//! Comparison of two profiles, by what a host of the drives could observe.
//!
//! Two files may describe one drive differently: a zone split in two, an overhead before the media
//! access instead of after it. So keys are not compared one by one. Tracks of both are walked in
//! LBN order (`tracks`), curves are compared at the measured distances (`times`), and sector
//! angles at random places (`angles`). Each figure becomes a [`Row`]; some have a tolerance, and
//! the profiles agree when all of those hold.

mod angles;
mod times;
mod tracks;

pub use tracks::{BOUNDARIES, OTHER_SECTORS, SKEWS};

use crate::error::ModelError;
use crate::model::Model;
use crate::profile::Profile;

/// Parameters of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of sectors whose angle is compared.
    pub sectors: u32,
    /// Seed of their choice.
    pub seed: u64,
    /// Ignores tolerances of writes: a profile made by reading alone knows nothing of them.
    pub reads_only: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { sectors: 1_000, seed: 1, reads_only: false }
    }
}

/// A compared figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Group: `period`, `zones`, `skews`, `layout`, `seeks`, `angles`, `electronics`, `size`.
    pub group: &'static str,
    /// Name of the figure.
    pub what: String,
    /// Its surface, if it belongs to one.
    pub surface: Option<u16>,
    /// The first profile's value.
    pub a: String,
    /// The second profile's value.
    pub b: String,
    /// The difference; `None` where it is not a number.
    pub difference: Option<f64>,
    /// Unit of the difference.
    pub unit: &'static str,
    /// Tolerance; `None`: the figure is for information only.
    pub allowed: Option<f64>,
    /// Whether the tolerance holds; true without one.
    pub holds: bool,
    /// Location of the difference; may be empty.
    pub place: String,
}

impl Row {
    /// Makes a figure without a tolerance.
    fn plain(group: &'static str, what: impl Into<String>, a: impl ToString, b: impl ToString) -> Row {
        Row {
            group,
            what: what.into(),
            surface: None,
            a: a.to_string(),
            b: b.to_string(),
            difference: None,
            unit: "",
            allowed: None,
            holds: true,
            place: String::new(),
        }
    }

    /// Sets the difference.
    fn apart(mut self, difference: f64, unit: &'static str) -> Row {
        (self.difference, self.unit) = (Some(difference), unit);
        self
    }

    /// Sets the tolerance. A difference that is not a number violates it.
    fn within(mut self, allowed: f64) -> Row {
        self.allowed = Some(allowed);
        self.holds = self.difference.is_some_and(|d| d.abs() <= allowed);
        self
    }

    /// Sets the surface.
    fn on(mut self, surface: u16) -> Row {
        self.surface = Some(surface);
        self
    }

    /// Sets the location of the difference.
    fn at(mut self, place: impl Into<String>) -> Row {
        self.place = place.into();
        self
    }

    /// Requires two values to be equal.
    fn same<T: PartialEq>(mut self, a: &T, b: &T) -> Row {
        self.difference = Some(f64::from(a != b));
        self.within(0.0)
    }

    /// Removes the tolerance if `ignored`, as for writes when those are ignored.
    fn unless(mut self, ignored: bool) -> Row {
        if ignored {
            (self.allowed, self.holds) = (None, true);
        }
        self
    }
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// All figures, grouped.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Whether all tolerances hold.
    pub fn agrees(&self) -> bool {
        self.rows.iter().all(|r| r.holds)
    }

    /// Iterates over the figures outside their tolerance.
    pub fn broken(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|r| !r.holds)
    }
}

/// Compares `b` with `a`. If one of them is the truth and the other was measured, the truth comes
/// first: seeks are compared at the distances measured in `b`.
///
/// # Errors
/// One of them cannot be compiled.
pub fn compare(a: &Profile, b: &Profile, options: &Options) -> Result<Comparison, ModelError> {
    let (ma, mb) = (Model::new(a)?, Model::new(b)?);
    let mut rows = vec![
        Row::plain("size", "bytes a sector", a.sector_bytes, b.sector_bytes).same(&a.sector_bytes, &b.sector_bytes),
        {
            let (ca, cb) = (ma.geometry.capacity(), mb.geometry.capacity());
            Row::plain("size", "sectors", ca, cb).apart(cb as f64 - ca as f64, "sectors").within(0.0)
        },
    ];
    rows.extend(times::rotation(a, b));
    rows.extend(tracks::rows(a, &ma.geometry, b, &mb.geometry));
    rows.extend(times::seeks(a, &ma, b, &mb, options));
    rows.push(angles::row(&ma, &mb, options));
    rows.extend(times::electronics(a, &ma, b, &mb, options));
    Ok(Comparison { rows })
}

#[cfg(test)]
mod tests;
