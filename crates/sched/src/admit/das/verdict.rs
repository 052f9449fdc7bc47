//! Results of admission control: a feasible set, or the reason for which a stream is refused, with
//! the nearest feasible alternatives.

use headtime_disk::Dur;

use super::stream::{Kinds, Quality};

/// A feasible set of streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// r of each stream, in the given order; `None` for one served as mandatory
    /// (`ledger`).
    pub reservations: Vec<Option<Dur>>,
    /// Load of the drive.
    pub load: Load,
    /// Number of commands, of best effort or others, in flight at the start of a period for which
    /// periods of optional streams have room.
    pub crossing: u32,
}

/// Load of a drive by a set of streams, in parts per million of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The left side of condition 2: mandatory requests at their worst case.
    pub worst_ppm: u64,
    /// All requests expected to complete, at their mean times.
    pub expected_ppm: u64,
}

/// Why a set is infeasible.
///
/// Exhaustive on purpose: programs report each reason with its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusalReason {
    /// No service times for requests of this size.
    #[error("stream {stream}: expected requests of at most {most} sectors, found {found}")]
    Size {
        /// Which stream.
        stream: usize,
        /// The largest known size.
        most: u32,
        /// The requested size.
        found: u32,
    },
    /// No service times for requests of these kinds.
    #[error(
        "stream {stream}: expected service times of its requests ({}) in the drive's profile, found those of others \
         only",
        kinds.name()
    )]
    Kinds {
        /// Which stream.
        stream: usize,
        /// Its kinds.
        kinds: Kinds,
    },
    /// Condition 2 does not hold.
    #[error("mandatory streams would take {} of the time at their worst, expected at most 100%", percent(*needed_ppm))]
    Worst {
        /// The left side of the condition, in parts per million.
        needed_ppm: u64,
    },
    /// No room for a request of a longer period between mandatory streams with short periods.
    #[error("stream {stream}: expected room for {worst} beside mandatory streams with shorter periods, found {free}")]
    Between {
        /// The stream with the longer period.
        stream: usize,
        /// The worst case of its longest single command, which may be an older request that blocks
        /// one of its own.
        worst: Dur,
        /// The least time that the others leave free from a release to a deadline before its own.
        free: Dur,
    },
    /// X has too few samples for the rare requests that the stream may miss.
    #[error(
        "stream {stream}: expected a quality of at most {}, the finest below 100% that {samples} samples of X can \
         show, found {}",
        percent((*finest_ppm).into()), percent(u64::from(asked.ppm()))
    )]
    Samples {
        /// Which stream.
        stream: usize,
        /// The requested quality.
        asked: Quality,
        /// The finest quality that can be guaranteed.
        finest_ppm: u32,
        /// Number of samples of X.
        samples: u64,
    },
    /// Condition 3 does not hold: this stream, the new one or another beside it, would not reach
    /// its quality.
    #[error("stream {stream}: expected a quality of {}, found at most \
            {}", percent(u64::from(asked.ppm())), percent(*reached_ppm))]
    Quality {
        /// Which stream.
        stream: usize,
        /// The requested quality.
        asked: Quality,
        /// The quality it could reach.
        reached_ppm: u64,
    },
}

impl RefusalReason {
    /// Returns the reason; `name` maps a stream's place to its name.
    pub fn with_names(&self, name: impl Fn(usize) -> String) -> String {
        let text = self.to_string();
        let stream = match *self {
            RefusalReason::Worst { .. } => return text,
            RefusalReason::Size { stream, .. }
            | RefusalReason::Kinds { stream, .. }
            | RefusalReason::Between { stream, .. }
            | RefusalReason::Samples { stream, .. }
            | RefusalReason::Quality { stream, .. } => stream,
        };
        text.replacen(&format!("stream {stream}"), &name(stream), 1)
    }
}

/// Returns a percentage with two decimals, or up to four if significant, so that the requested and
/// the found value never look alike.
fn percent(ppm: u64) -> String {
    let all = format!("{}.{:04}", ppm / 10_000, ppm % 10_000);
    let few = all.strip_suffix("00").or(all.strip_suffix('0')).unwrap_or(&all);
    format!("{few}%")
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}{}", said(nearest))]
pub struct Refusal {
    /// The place of the first stream that is infeasible beside the previous ones.
    pub stream: usize,
    /// The reason; it may name one of the previous ones, whose guarantee would not hold.
    pub why: RefusalReason,
    /// The nearest feasible alternatives for that stream.
    pub nearest: Nearest,
}

impl Refusal {
    /// Returns the same without a nearest quality, for orders under which no optional stream is
    /// admitted.
    #[must_use]
    pub fn without_quality(self) -> Refusal {
        Refusal { nearest: Nearest { quality: None, ..self.nearest }, ..self }
    }

    /// Returns the reason and the nearest alternatives; `name` maps a stream's place to its name.
    pub fn with_names(&self, name: impl Fn(usize) -> String) -> String {
        format!("{}{}", self.why.with_names(name), said(&self.nearest))
    }
}

/// The nearest feasible alternatives to a refused stream; `None`: none of that kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nearest {
    /// The same stream with this number of requests per period.
    pub requests: Option<u32>,
    /// The same stream at this quality.
    pub quality: Option<Quality>,
    /// The same stream with this period; searched for only if neither of the others exists.
    pub period: Option<Dur>,
}

fn said(nearest: &Nearest) -> String {
    let requests = nearest.requests.map(|n| format!("{n} requests in a period"));
    let quality = nearest.quality.map(|q| format!("a quality of {}", percent(u64::from(q.ppm()))));
    let period = nearest.period.map(|t| format!("a period of {} ms", t.as_ms_f64()));
    let either: Vec<String> = [requests, quality, period].into_iter().flatten().collect();
    if either.is_empty() { String::new() } else { format!("; possible: {}", either.join(", or ")) }
}
