//! The profile file: conversion of TOML to a [`Profile`](super::Profile).
//!
//! The keys of each table, with forms, ranges and defaults, are listed in [`super::schema`]. Times
//! are decimal figures in the unit that ends the key and are converted to whole nanoseconds
//! exactly. Errors name the line; inconsistencies across lines (overlaps, sums) are detected by
//! [`super::check()`].

use toml::de::DeTable;

use super::check;
use super::fault::ProfileError;
use super::loaded::Loaded;
use super::places::Places;
use super::schema::TOP;
use super::table::{Source, Table};

/// Parses and checks a profile from the text of the file `path`.
///
/// # Errors
/// File, line and reason: syntax, an unknown or missing key, a wrong type, a figure out of range,
/// or figures that contradict each other.
pub fn read(path: &str, text: &str) -> Result<Loaded, ProfileError> {
    let source = Source::new(path, text);
    let root = DeTable::parse(text).map_err(|e| {
        let at = e.span().map_or(source.whole(), |s| source.at(s.start));
        ProfileError::expected(&at, "TOML", e.message())
    })?;
    let top = Table::new("the profile".into(), source.whole(), &TOP, root.get_ref(), &source)?;
    let mut places = Places::new(source.whole());
    let profile = TOP.read(&top, "", &mut places)?;
    let warnings = check::check_at(&profile, &places)?;
    Ok(Loaded { profile, warnings })
}
