//! `[[task]]` tables of a scenario: user-defined tasks.

use serde::Deserialize;

use headtime_disk::{Dur, Time};

use super::LONGEST_RUN_S;
use super::source::Source;
use super::values::{Bytes, Sizes};
use crate::workload::variates::Share;
use crate::workload::{
    Arrivals, Gaps, GroupSpec, PatternSpec, PlaceSpec, SizeSpec, Think, WorkloadError, by_name, closed, open, unknown,
};

/// A `[[task]]` table.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskTable {
    /// Name in statistics; required.
    pub name: String,
    /// A named workload that supplies the figures not given here.
    pub like: Option<String>,
    /// Closed: number of tasks.
    pub tasks: Option<u32>,
    /// Closed: think time between a completion and the next request, ms.
    pub think_ms: Option<f64>,
    /// Closed: `fixed` or `exponential`.
    pub think: Option<String>,
    /// Open: requests per second.
    pub rate: Option<f64>,
    /// Open: `exponential` or `uniform` interarrival times.
    pub arrivals: Option<String>,
    /// Start time in virtual seconds.
    pub start_s: Option<f64>,
    /// Share of reads, 0 to 1.
    pub reads: Option<f64>,
    /// Constant size.
    pub size: Option<Bytes>,
    /// Mean of an exponential size.
    pub size_mean: Option<Bytes>,
    /// Step of an exponential or uniform size.
    pub size_step: Option<Bytes>,
    /// Minimum of a uniform size.
    pub size_min: Option<Bytes>,
    /// Maximum of a uniform size.
    pub size_max: Option<Bytes>,
    /// Sizes with weights: `[["4k", 3], ["64k", 1]]`.
    pub sizes: Option<Sizes>,
    /// `uniform`, `sequential`, `part`, `window`, `recent-group`.
    pub place: Option<String>,
    /// `part`: its start, as a share of the disk.
    pub from: Option<f64>,
    /// `part`: its end.
    pub to: Option<f64>,
    /// `window`, `recent-group`: cylinders.
    pub cylinders: Option<u32>,
    /// `recent-group`: share of the requests that stay in the group.
    pub share: Option<f64>,
    /// Alignment of first sectors.
    pub align: Option<Bytes>,
    /// Whether writes have FUA.
    pub fua: Option<bool>,
    /// Location in its file.
    #[serde(skip)]
    pub(super) source: Option<Source>,
}

/// Longest think time in ms.
const LONGEST_THINK_MS: f64 = 1e6;
/// Names reserved by statistics.
const TAKEN: [&str; 4] = ["read", "write", "flush", "all"];

/// Checks the name of a task or a stream.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), WorkloadError> {
    if name.is_empty() {
        return Err(WorkloadError::Conflict(format!("a {what} without a name: give name = \"...\"")).about(&["name"]));
    }
    if TAKEN.contains(&name) || name.chars().any(char::is_control) {
        return Err(WorkloadError::Conflict(format!(
            "name: expected another than {} or {}, without control characters, found \"{}\"",
            TAKEN[..3].join(", "),
            TAKEN[3],
            name.escape_debug()
        ))
        .about(&["name"]));
    }
    Ok(())
}

impl TaskTable {
    /// Builds the group of tasks.
    pub fn group(&self) -> Result<GroupSpec, WorkloadError> {
        check_name("task", &self.name)?;
        let mut group = match &self.like {
            Some(name) => by_name(name).map_err(|e| self.conflict(&["like"], &format!("like: {e}")))?,
            None => closed(1),
        };
        group.name.clone_from(&self.name);
        self.arrivals(&mut group)?;
        if let Some(s) = self.start_s {
            if !(0.0..=LONGEST_RUN_S).contains(&s) {
                return Err(self.range(&["start_s"], s, 0, LONGEST_RUN_S));
            }
            group.start = Time::ZERO + Dur::from_ms_f64(s * 1e3);
        }
        let p: &mut PatternSpec = &mut group.pattern;
        if let Some(r) = self.reads {
            p.reads = Share::from_f64(r).ok_or_else(|| self.range(&["reads"], r, 0, 1))?;
        }
        if let Some(size) = self.size()? {
            p.size = size;
        }
        if let Some(place) = self.place()? {
            p.place = place;
        }
        if let Some(a) = self.align {
            p.align_bytes = a.0;
        }
        if let Some(fua) = self.fua {
            p.fua = fua;
        }
        Ok(group)
    }

    /// Adds file, line and name to an error, where known.
    pub(super) fn fault(&self, e: WorkloadError) -> WorkloadError {
        match &self.source {
            Some(source) => source.table_fault("task", &self.name, e),
            None => e,
        }
    }

    /// Makes the error of a figure out of range; its key is the only one of `key`.
    fn range(
        &self,
        key: &'static [&'static str; 1],
        found: impl ToString,
        low: impl ToString,
        high: impl ToString,
    ) -> WorkloadError {
        WorkloadError::range(format!("{} of task \"{}\"", key[0], self.name), found, low, high).about(key).named()
    }

    fn conflict(&self, keys: &'static [&'static str], why: &str) -> WorkloadError {
        WorkloadError::Conflict(format!("task \"{}\": {why}", self.name)).about(keys).named()
    }

    fn arrivals(&self, group: &mut GroupSpec) -> Result<(), WorkloadError> {
        self.rate_or_tasks(group)?;
        let known = match self.arrivals.as_deref() {
            None => return Ok(()),
            Some("exponential") => Gaps::Exponential,
            Some("uniform") => Gaps::Uniform,
            Some(other) => return Err(unknown("arrivals", other, &["exponential", "uniform"]).about(&["arrivals"])),
        };
        match &mut group.arrivals {
            Arrivals::Open { gaps, .. } => *gaps = known,
            Arrivals::Closed { .. } => return Err(self.conflict(&["arrivals"], "arrivals goes with a rate")),
        }
        Ok(())
    }

    fn rate_or_tasks(&self, group: &mut GroupSpec) -> Result<(), WorkloadError> {
        if let Some(rate) = self.rate {
            if self.tasks.is_some() || self.think_ms.is_some() || self.think.is_some() {
                return Err(self.conflict(&["rate"], "rate makes it open; tasks and think are for closed ones"));
            }
            group.arrivals = open(rate).map_err(|e| self.conflict(&["rate"], &format!("rate: {e}")))?.arrivals;
            return Ok(());
        }
        let (mut tasks, mut think) = match group.arrivals {
            Arrivals::Closed { tasks, think } => (tasks, think),
            Arrivals::Open { .. } if self.tasks.is_none() && self.think_ms.is_none() && self.think.is_none() => {
                return Ok(());
            }
            Arrivals::Open { .. } => (1, Think::None),
        };
        if let Some(n) = self.tasks {
            tasks = n;
        }
        if let Some(ms) = self.think_ms {
            if !(0.0..=LONGEST_THINK_MS).contains(&ms) {
                return Err(self.range(&["think_ms"], ms, 0, LONGEST_THINK_MS));
            }
            let pause = Dur::from_ms_f64(ms);
            think = match (think, pause) {
                (_, Dur::ZERO) => Think::None,
                (Think::Exponential(_), d) => Think::Exponential(d),
                (_, d) => Think::Fixed(d),
            };
        }
        think = match (self.think.as_deref(), think) {
            (None, t) => t,
            (Some("fixed"), Think::Exponential(d)) => Think::Fixed(d),
            (Some("exponential"), Think::Fixed(d)) => Think::Exponential(d),
            (Some("fixed" | "exponential"), t) => t,
            (Some(other), _) => return Err(unknown("think", other, &["fixed", "exponential"]).about(&["think"])),
        };
        group.arrivals = Arrivals::Closed { tasks, think };
        Ok(())
    }

    fn size(&self) -> Result<Option<SizeSpec>, WorkloadError> {
        let even = self.size_min.is_some() || self.size_max.is_some();
        let ways = [self.size.is_some(), self.size_mean.is_some(), even, self.sizes.is_some()];
        if ways.iter().filter(|w| **w).count() > 1 {
            let why = "give one of size, size_mean, size_min with size_max, sizes";
            return Err(self.conflict(&["size", "size_mean", "size_min", "size_max", "sizes"], why));
        }
        let step = self.size_step.map_or(4096, |b| b.0);
        if let Some(b) = self.size {
            return Ok(Some(SizeSpec::Fixed { bytes: b.0 }));
        }
        if let Some(mean) = self.size_mean {
            return Ok(Some(SizeSpec::Exponential { mean_bytes: mean.0, step_bytes: step }));
        }
        if let Some(sizes) = &self.sizes {
            return Ok(Some(SizeSpec::Weighted(sizes.0.iter().map(|(b, w)| (b.0, *w)).collect())));
        }
        match (self.size_min, self.size_max) {
            (None, None) if self.size_step.is_some() => {
                Err(self.conflict(&["size_step"], "size_step goes with size_mean or size_min"))
            }
            (None, None) => Ok(None),
            (Some(min), Some(max)) => {
                Ok(Some(SizeSpec::Uniform { min_bytes: min.0, max_bytes: max.0, step_bytes: step }))
            }
            _ => Err(self.conflict(&["size_min", "size_max"], "size_min and size_max go together")),
        }
    }

    fn place(&self) -> Result<Option<PlaceSpec>, WorkloadError> {
        let known = ["uniform", "sequential", "shared-sequential", "shared-backward", "part", "window", "recent-group"];
        let word = self.place.as_deref();
        let keys: [(_, &[&str], _, &[&str]); 3] = [
            (self.from.is_some() || self.to.is_some(), &["from", "to"], "from and to", &["part"]),
            (self.cylinders.is_some(), &["cylinders"], "cylinders", &["window", "recent-group"]),
            (self.share.is_some(), &["share"], "share", &["recent-group"]),
        ];
        for (given, keys, what, of) in keys {
            if given && !word.is_some_and(|w| of.contains(&w)) {
                return Err(self.conflict(keys, &format!("{what} goes with place = \"{}\"", of.join("\" or \""))));
            }
        }
        let cylinders = || self.cylinders.ok_or_else(|| self.conflict(&["place"], "this place needs cylinders"));
        Ok(Some(match word {
            None => return Ok(None),
            Some("uniform") => PlaceSpec::Uniform,
            Some("sequential") => PlaceSpec::Sequential,
            Some("shared-sequential") => PlaceSpec::SharedSequential,
            Some("shared-backward") => PlaceSpec::SharedBackward,
            Some("part") => PlaceSpec::Part { from: self.from.unwrap_or(0.0), to: self.to.unwrap_or(1.0) },
            Some("window") => PlaceSpec::Window { cylinders: cylinders()? },
            Some("recent-group") => {
                let share = self.share.ok_or_else(|| self.conflict(&["place"], "this place needs a share"))?;
                PlaceSpec::RecentGroup {
                    share: Share::from_f64(share).ok_or_else(|| self.range(&["share"], share, 0, 1))?,
                    cylinders: cylinders()?,
                }
            }
            Some(other) => return Err(unknown("place", other, &known).about(&["place"])),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(lines: &str) -> Result<GroupSpec, WorkloadError> {
        toml::from_str::<TaskTable>(&format!("name = \"a\"\n{lines}")).unwrap().group()
    }

    #[test]
    fn an_open_group_says_how_its_arrivals_are_distributed() {
        let mean_gap = Dur::from_ms(10);
        let open = |lines: &str| group(lines).unwrap().arrivals;
        assert_eq!(open("rate = 100.0"), Arrivals::Open { mean_gap, gaps: Gaps::Exponential });
        assert_eq!(open("rate = 100.0\narrivals = \"uniform\""), Arrivals::Open { mean_gap, gaps: Gaps::Uniform });
        assert_eq!(
            open("like = \"open:100\"\narrivals = \"uniform\""),
            Arrivals::Open { mean_gap, gaps: Gaps::Uniform }
        );
        let e = group("tasks = 2\narrivals = \"uniform\"").unwrap_err().to_string();
        assert!(e.contains("arrivals goes with a rate"), "{e}");
        let e = group("rate = 5.0\narrivals = \"bursts\"").unwrap_err().to_string();
        assert!(e.contains("\"bursts\"; known: exponential, uniform"), "{e}");
    }
}
