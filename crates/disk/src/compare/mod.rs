//! Two profiles held against each other, in what a host of the drives could see.
//!
//! Two files may describe one drive in different words: a zone split in two, an overhead booked
//! before the media instead of behind it. So nothing is compared key by key. Tracks are walked in
//! LBN order in both ([`tracks`]), curves are held against each other at the distances that were
//! measured ([`times`]), and the angle of sectors is taken at random places ([`angles`]). Each
//! figure becomes a [`Row`]; some have a rule, and a comparison agrees when all of those hold.

mod angles;
mod times;
mod tracks;

pub use tracks::{BOUNDARIES, OTHER_SECTORS, SKEWS};

use crate::model::{Model, ModelError};
use crate::profile::Profile;

/// What is compared, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Sectors whose angle is compared.
    pub sectors: u32,
    /// Which they are.
    pub seed: u64,
    /// Rules of writes do not count: a profile made by reading alone knows nothing of them.
    pub reads_only: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { sectors: 1_000, seed: 1, reads_only: false }
    }
}

/// One figure of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Under which group it stands: `period`, `zones`, `skews`, `layout`, `seeks`, `angles`,
    /// `electronics`, `size`.
    pub group: &'static str,
    /// What it is.
    pub what: String,
    /// Of which surface, where it is of one.
    pub surface: Option<u16>,
    /// The first profile's.
    pub a: String,
    /// The second's.
    pub b: String,
    /// How far they are apart; `None` where that is no number.
    pub difference: Option<f64>,
    /// What the difference is counted in.
    pub unit: &'static str,
    /// The largest difference that is allowed; `None`: there is no rule, and it is only told.
    pub allowed: Option<f64>,
    /// Whether the rule holds; without one it does.
    pub holds: bool,
    /// Where the difference is, in words; may be empty.
    pub place: String,
}

impl Row {
    /// A figure without a rule.
    fn told(group: &'static str, what: impl Into<String>, a: impl ToString, b: impl ToString) -> Row {
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

    /// The same, with what lies between.
    fn apart(mut self, difference: f64, unit: &'static str) -> Row {
        (self.difference, self.unit) = (Some(difference), unit);
        self
    }

    /// With a rule: so much at most. A difference that is none (not a number) breaks it.
    fn within(mut self, allowed: f64) -> Row {
        self.allowed = Some(allowed);
        self.holds = self.difference.is_some_and(|d| d.abs() <= allowed);
        self
    }

    /// Of one surface.
    fn on(mut self, surface: u16) -> Row {
        self.surface = Some(surface);
        self
    }

    /// With the place of the difference.
    fn at(mut self, place: impl Into<String>) -> Row {
        self.place = place.into();
        self
    }

    /// Two of a kind that must be the same.
    fn same<T: PartialEq>(mut self, a: &T, b: &T) -> Row {
        self.difference = Some(f64::from(a != b));
        self.within(0.0)
    }

    /// Without its rule where that is of writes and those do not count.
    fn unless(mut self, ignored: bool) -> Row {
        if ignored {
            (self.allowed, self.holds) = (None, true);
        }
        self
    }
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Every figure, grouped.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Whether every rule holds.
    pub fn agrees(&self) -> bool {
        self.rows.iter().all(|r| r.holds)
    }

    /// The figures whose rule does not hold.
    pub fn broken(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|r| !r.holds)
    }
}

/// Holds `b` against `a`. Where one of them is the truth and the other was measured, the truth goes
/// first: seeks are compared at the distances that `b` was measured at.
///
/// # Errors
/// One of them makes no drive.
pub fn compare(a: &Profile, b: &Profile, options: &Options) -> Result<Comparison, ModelError> {
    let (ma, mb) = (Model::new(a)?, Model::new(b)?);
    let mut rows = vec![
        Row::told("size", "bytes a sector", a.sector_bytes, b.sector_bytes).same(&a.sector_bytes, &b.sector_bytes),
        {
            let (ca, cb) = (ma.geometry.capacity(), mb.geometry.capacity());
            Row::told("size", "sectors", ca, cb).apart(cb as f64 - ca as f64, "sectors").within(0.0)
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
