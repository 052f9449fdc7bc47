//! Guarantees of an export: the table `[export.stream]`.
//!
//! ```toml
//! [export.stream]
//! requests = 5         # in each period
//! period = "500ms"     # s, ms or us
//! quality = "99%"      # the fraction that must complete in the period; all: mandatory
//! size = "64 KiB"      # of each, at most
//! kinds = "reads"      # or "writes", or "any", the default
//! blocked-by = 1       # older requests that one of these may have to wait for, default 0
//! ```

use std::fmt;
use std::marker::PhantomData;

use headtime_disk::Dur;
use headtime_sched::streams::{
    Kinds, MAX_BLOCKERS, MAX_REQUESTS, QUALITY_FORMAT, Quality, Stream, parse_period, parse_quality, period_format,
};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};

use super::Config;
use super::size::{SIZE, Size};
use crate::net::exports::MAX_BYTES;

/// The table `[export.stream]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StreamTable {
    #[serde(deserialize_with = "figure::<_, Requests>")]
    requests: u32,
    #[serde(deserialize_with = "figure::<_, Period>")]
    period: Dur,
    #[serde(deserialize_with = "figure::<_, Share>")]
    quality: Quality,
    size: Size,
    #[serde(default, deserialize_with = "figure::<_, KindsName>")]
    kinds: Kinds,
    #[serde(default, deserialize_with = "figure::<_, Older>")]
    blocked_by: u32,
}

impl StreamTable {
    /// Checks the size; returns the valid sizes and the value found if it is malformed.
    pub(super) fn odd_size(&self) -> Option<(&'static str, String)> {
        match &self.size {
            Size::Text(text) if self.size.bytes().is_none() => Some((SIZE, format!("{text:?}"))),
            _ => None,
        }
    }

    /// Returns the stream on a disk with sectors of `sector_bytes` bytes.
    ///
    /// # Errors
    /// The size is not a number of whole sectors, or exceeds `most` bytes.
    pub(super) fn stream(&self, sector_bytes: u32, most: u32) -> Result<Stream, String> {
        let (unit, bytes) = (u64::from(sector_bytes), self.size.bytes().expect("checked when it was read"));
        if bytes == 0 || !bytes.is_multiple_of(unit) || bytes > u64::from(most) {
            return Err(format!(
                "size: expected whole sectors of {unit} bytes, {most} bytes at most, found {bytes} bytes"
            ));
        }
        let stream = Stream::new(self.requests, self.period, self.quality, (bytes / unit) as u32);
        stream.and_then(|s| s.only(self.kinds).blocked_by(self.blocked_by)).map_err(|e| e.to_string())
    }
}

impl Config {
    /// Returns the exports that are streams, by number. Fails if the requests of one are not whole
    /// sectors.
    pub fn streams(&self, sector_bytes: u32) -> Result<Vec<(u32, Stream)>, String> {
        let tables = self.exports.iter().zip(0..).filter_map(|(e, at)| Some((e, at, e.stream.as_ref()?)));
        let read = tables.map(|(e, at, table)| match table.stream(sector_bytes, MAX_BYTES) {
            Ok(stream) => Ok((at, stream)),
            Err(why) => Err(format!("export \"{}\", stream: {why}", e.name)),
        });
        read.collect()
    }
}

/// A figure of a stream: its valid values and how they are written.
trait Figure {
    type Value;
    fn expected() -> String;
    fn whole(_: u64) -> Option<Self::Value> {
        None
    }
    fn text(_: &str) -> Option<Self::Value> {
        None
    }
}

struct Requests;
impl Figure for Requests {
    type Value = u32;
    fn expected() -> String {
        format!("requests in each period, 1 to {MAX_REQUESTS}")
    }
    fn whole(n: u64) -> Option<u32> {
        u32::try_from(n).ok().filter(|n| (1..=MAX_REQUESTS).contains(n))
    }
}

struct Older;
impl Figure for Older {
    type Value = u32;
    fn expected() -> String {
        format!("older requests that one may have to wait for, 0 to {MAX_BLOCKERS}")
    }
    fn whole(n: u64) -> Option<u32> {
        u32::try_from(n).ok().filter(|n| *n <= MAX_BLOCKERS)
    }
}

struct Period;
impl Figure for Period {
    type Value = Dur;
    fn expected() -> String {
        format!("in quotes {}", period_format())
    }
    fn text(text: &str) -> Option<Dur> {
        parse_period(text)
    }
}

struct Share;
impl Figure for Share {
    type Value = Quality;
    fn expected() -> String {
        format!("{}; a percentage in quotes", QUALITY_FORMAT)
    }
    fn whole(n: u64) -> Option<Quality> {
        (n == 1).then_some(Quality::MANDATORY)
    }
    fn text(text: &str) -> Option<Quality> {
        parse_quality(text)
    }
}

struct KindsName;
impl Figure for KindsName {
    type Value = Kinds;
    fn expected() -> String {
        Kinds::NAMES.join(", ")
    }
    fn text(text: &str) -> Option<Kinds> {
        Kinds::named(text)
    }
}

/// Reads a figure, so that an error is reported with its line.
fn figure<'de, D: Deserializer<'de>, F: Figure>(from: D) -> Result<F::Value, D::Error> {
    struct Reader<F>(PhantomData<F>);
    impl<F: Figure> Visitor<'_> for Reader<F> {
        type Value = F::Value;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&F::expected())
        }
        fn visit_i64<E: Error>(self, n: i64) -> Result<F::Value, E> {
            let value = u64::try_from(n).ok().and_then(F::whole);
            value.ok_or_else(|| E::invalid_value(Unexpected::Signed(n), &self))
        }
        fn visit_f64<E: Error>(self, n: f64) -> Result<F::Value, E> {
            // As it was written: the shortest text for this number.
            F::text(&n.to_string()).ok_or_else(|| E::invalid_value(Unexpected::Float(n), &self))
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<F::Value, E> {
            F::text(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
        }
    }
    from.deserialize_any(Reader::<F>(PhantomData))
}
