//! `[[stream]]` tables of a scenario: user-defined streams.

use serde::Deserialize;

use headtime_disk::{Dur, Time};
use headtime_sched::streams::{Quality, Stream, period_format};

use super::LONGEST_RUN_S;
use super::source::Source;
use super::task_table::check_name;
use super::values::{Asked, Bytes, Period};
use crate::workload::variates::Share;
use crate::workload::{PlaceSpec, SizeSpec, StreamSpec, WorkloadError, unknown};

/// A `[[stream]]` table.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StreamTable {
    /// Name in statistics; required.
    pub name: String,
    /// Requests per period; required.
    pub requests: Option<u32>,
    /// The period; required.
    pub period: Option<Period>,
    /// Required share of them that is done in its period; 1: all, a mandatory stream.
    pub quality: Option<Asked>,
    /// Maximum number of older requests that one of them may have to wait for; of a mandatory
    /// stream.
    pub blocked_by: Option<u32>,
    /// It starts with the first period that begins at or after this time, in virtual seconds.
    pub start_s: Option<f64>,
    /// Its last period is the last one that begins before this time.
    pub stop_s: Option<f64>,
    /// Share of reads, 0 to 1.
    pub reads: Option<f64>,
    /// Request size.
    pub size: Option<Bytes>,
    /// `uniform`, `sequential`, `part`.
    pub place: Option<String>,
    /// `part`: its start, as a share of the disk.
    pub from: Option<f64>,
    /// `part`: its end.
    pub to: Option<f64>,
    /// Alignment of first sectors.
    pub align: Option<Bytes>,
    /// Whether writes have FUA.
    pub fua: Option<bool>,
    /// Location in its file.
    #[serde(skip)]
    pub(super) source: Option<Source>,
}

/// Places of a stream's requests.
const PLACES: [&str; 3] = ["uniform", "sequential", "part"];

impl StreamTable {
    /// Builds the stream.
    pub fn spec(&self) -> Result<StreamSpec, WorkloadError> {
        check_name("stream", &self.name)?;
        let requests = self.requests.ok_or_else(|| self.missing("requests", "requests in a period"))?;
        let period = self.period.ok_or_else(|| self.missing("period", &period_format()))?.0;
        let quality = self.quality.map_or(Quality::MANDATORY, |q| q.0);
        let mut spec = StreamSpec::new(&*self.name, requests, period, quality);
        let seconds = |what: &'static [&'static str; 1], s: f64| match (0.0..=LONGEST_RUN_S).contains(&s) {
            true => Ok(Time::ZERO + Dur::from_ms_f64(s * 1e3)),
            false => Err(self.range(what, s, 0, LONGEST_RUN_S)),
        };
        if let Some(s) = self.start_s {
            spec.start = seconds(&["start_s"], s)?;
        }
        if let Some(s) = self.stop_s {
            spec.stop = Some(seconds(&["stop_s"], s)?);
            if spec.stop <= Some(spec.start) {
                let after = format!("more than {} (start_s)", self.start_s.unwrap_or(0.0));
                return Err(self.range(&["stop_s"], s, after, LONGEST_RUN_S));
            }
        }
        if let Some(r) = self.reads {
            spec.pattern.reads = Share::from_f64(r).ok_or_else(|| self.range(&["reads"], r, 0, 1))?;
        }
        if let Some(size) = self.size {
            spec.pattern.size = SizeSpec::Fixed { bytes: size.0 };
        }
        if let Some(place) = self.place()? {
            spec.pattern.place = place;
        }
        if let Some(align) = self.align {
            spec.pattern.align_bytes = align.0;
        }
        spec.pattern.fua = self.fua.unwrap_or(false);
        // Checks what does not depend on the drive.
        spec.blocked_by = self.blocked_by.unwrap_or(0);
        Stream::new(spec.requests, spec.period, spec.quality, 1)?.blocked_by(spec.blocked_by)?;
        Ok(spec)
    }

    fn place(&self) -> Result<Option<PlaceSpec>, WorkloadError> {
        if (self.from.is_some() || self.to.is_some()) && self.place.as_deref() != Some("part") {
            let why = "from and to goes with place = \"part\"";
            let why = WorkloadError::Conflict(format!("stream \"{}\": {why}", self.name));
            return Err(why.about(&["from", "to"]).named());
        }
        Ok(match self.place.as_deref() {
            None => None,
            Some("uniform") => Some(PlaceSpec::Uniform),
            Some("sequential") => Some(PlaceSpec::Sequential),
            Some("part") => Some(PlaceSpec::Part { from: self.from.unwrap_or(0.0), to: self.to.unwrap_or(1.0) }),
            Some(other) => return Err(unknown("place", other, &PLACES).about(&["place"])),
        })
    }

    /// Adds file, line and name to an error, where known.
    pub(super) fn fault(&self, e: WorkloadError) -> WorkloadError {
        match &self.source {
            Some(source) => source.table_fault("stream", &self.name, e),
            None => e,
        }
    }

    fn missing(&self, key: &str, what: &str) -> WorkloadError {
        let name = self.name.escape_debug();
        WorkloadError::Conflict(format!("stream \"{name}\": expected {key} = {what}, found none")).named()
    }

    /// Makes the error of a figure out of range; its key is the only one of `key`.
    fn range(
        &self,
        key: &'static [&'static str; 1],
        found: impl ToString,
        low: impl ToString,
        high: impl ToString,
    ) -> WorkloadError {
        WorkloadError::range(format!("{} of stream \"{}\"", key[0], self.name), found, low, high).about(key).named()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(lines: &str) -> Result<StreamSpec, WorkloadError> {
        toml::from_str::<StreamTable>(&format!("name = \"a\"\n{lines}")).unwrap().spec()
    }

    const PLAIN: &str = "requests = 5\nperiod = \"500ms\"\n";

    fn fault(lines: &str) -> String {
        spec(&format!("{PLAIN}{lines}")).unwrap_err().to_string()
    }

    #[test]
    fn a_stream_says_what_it_asks_for() {
        let s = spec(PLAIN).unwrap();
        assert_eq!(s, StreamSpec::new("a", 5, Dur::from_ms(500), Quality::MANDATORY));
        let s = spec(&format!(
            "{PLAIN}quality = 0.95\nstart_s = 1.5\nstop_s = 3.0\nreads = 0.0\nsize = \"4k\"\nplace = \
             \"sequential\"\nfua = true"
        ));
        let s = s.unwrap();
        assert_eq!((s.quality.ppm(), s.start, s.stop), (950_000, Time(1_500_000_000), Some(Time(3_000_000_000))));
        assert_eq!((s.pattern.reads.as_f64(), s.pattern.size.clone()), (0.0, SizeSpec::Fixed { bytes: 4096 }));
        assert!(s.pattern.place == PlaceSpec::Sequential && s.pattern.fua);
        assert_eq!(spec(&format!("{PLAIN}quality = \"95%\"")).unwrap().quality.ppm(), 950_000);
        assert_eq!(spec(&format!("{PLAIN}blocked_by = 2")).unwrap().blocked_by, 2);
        assert_eq!(spec(&format!("{PLAIN}quality = 0.999999")).unwrap().quality.ppm(), 999_999);
    }

    #[test]
    fn a_stream_that_cannot_be_is_refused_with_what_was_expected() {
        for wrong in ["0.0", "1.1", "0.9999999", "nan", "\"much\"", "true", "[]"] {
            let e = toml::from_str::<StreamTable>(&format!("{PLAIN}quality = {wrong}")).unwrap_err().to_string();
            assert!(e.contains("expected a share such as 99% or 0.99"), "{wrong}: {e}");
        }
        for wrong in ["500", "\"500\"", "\"0.5ms\"", "\"20s\"", "true"] {
            let e = toml::from_str::<StreamTable>(&format!("period = {wrong}")).unwrap_err().to_string();
            assert!(e.contains("expected in quotes a time such as 500ms, from 1 ms to 10 s, found "), "{wrong}: {e}");
        }
        assert!(fault("start_s = 2\nstop_s = 2").contains("expected more than 2 (start_s)"));
        assert!(fault("blocked_by = 101").contains("expected at most 100, found 101"));
        assert!(fault("from = 0.5").contains("place = \"part\""));
        assert!(fault("place = \"window\"").contains("known: uniform, sequential, part"));
        assert!(spec("period = \"500ms\"").unwrap_err().to_string().contains("expected requests"));
        assert!(spec("requests = 5").unwrap_err().to_string().contains("expected period = a time such as 500ms"));
        assert!(spec("requests = 0\nperiod = \"50ms\"").unwrap_err().to_string().starts_with("requests per period"));
    }
}
