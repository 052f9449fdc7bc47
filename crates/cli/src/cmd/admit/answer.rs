//! The answer of `headtime admit`, as text and as JSON.

use headtime_disk::profile::{Profile, ServiceTimes};
use headtime_disk::{Dur, Model};
use headtime_sched::streams::{
    Admitted, Disk, Distribution, Exhausted, Kinds, Refusal, RefusalReason, Service, Stream, WorstCase, WorstError,
};
use headtime_sim::promises::{Grounds, RestsOn};
use headtime_sim::streams::Asked;
use serde::Serialize;

use crate::promises::{Shares, grounds_text};
use crate::screen::columns;
use crate::words::{ppm, served};

/// The inputs of the answer.
pub struct Known<'a> {
    /// How requests of streams with exhausted reservations are treated.
    pub exhausted: Exhausted,
    /// The drive's profile, with the stated bounds applied.
    pub profile: &'a Profile,
    /// The model compiled from it.
    pub model: &'a Model,
    /// w and X for its request sizes.
    pub disk: &'a Disk,
    /// The sizes, in sectors, whose X was measured by simulation and is not from the profile.
    pub measured: &'a [u32],
    /// The figures that w depends on.
    pub grounds: &'a Grounds,
}

/// Why streams are not admitted.
pub enum No {
    /// The set cannot be admitted.
    Refused(Refusal),
    /// One stream is mandatory and its worst case is unknown; the reason.
    Unknown(String),
}

/// The complete answer.
#[derive(Serialize)]
pub struct Answer<'a> {
    disk: &'a str,
    #[serde(skip)]
    title: &'a str,
    sizes: Vec<Size<'a>>,
    /// The figures of w that random reads do not reveal, and how each is known.
    rests_on: &'a [RestsOn],
    /// Those that are unknown.
    unknown: Vec<&'a str>,
    /// The same as text.
    #[serde(skip)]
    grounds: &'a Grounds,
    admitted: bool,
    streams: Vec<Row<'a>>,
    /// Shares of the drive's time, for an admitted set.
    load: Option<Shares>,
    /// The reason, for a refused set.
    why: Option<String>,
    /// The nearest admissible parameters of the first stream that does not fit.
    nearest: Option<Nearest>,
}

/// Service times of requests of up to one size.
#[derive(Serialize)]
struct Size<'a> {
    sectors: u32,
    bytes: u64,
    worst_ms: f64,
    worst: Terms,
    /// Figures of reads under the given load, if measured.
    mean_ms: f64,
    p999_ms: f64,
    samples: u64,
    /// All measured distributions.
    family: Vec<Member>,
    /// What admission uses: for each kind of request, the number of candidates and the mean.
    #[serde(skip)]
    reckoned: Vec<(&'static str, Vec<(u32, f64)>)>,
    workload: &'a str,
    reads: f64,
    waiting: u32,
    order: &'a str,
    outstanding: u32,
    /// Measured by simulation in this run; not in the profile.
    measured_now: bool,
}

/// Service times for one share of reads and one number of candidates.
#[derive(Serialize)]
struct Member {
    reads: f64,
    candidates: u32,
    mean_ms: f64,
    p999_ms: f64,
    samples: u64,
}

/// The terms of w (Reuther and Pohlack 2003, equation 5).
#[derive(Serialize)]
struct Terms {
    seek_ms: f64,
    turns: u32,
    turn_ms: f64,
    sectors: u32,
    sector_ms: f64,
    overhead_ms: f64,
    skews: u32,
    skew_ms: f64,
    stop_ms: f64,
    detours_ms: f64,
    recalibration_ms: f64,
}

/// One stream.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    requests: u32,
    period_ms: f64,
    quality: f64,
    bytes: u64,
    mandatory: bool,
    /// Whether an optional stream was admitted as mandatory: all of its requests complete in time.
    served_as_mandatory: bool,
    /// The number of older requests that each request of the stream may wait for, and their
    /// worst-case time in total.
    blocked_by: u32,
    blocking_ms: f64,
    /// The reservation of an admitted stream that is not served as mandatory.
    reservation_ms: Option<f64>,
    #[serde(skip)]
    worst_ms: f64,
}

#[derive(Serialize)]
struct Nearest {
    stream: String,
    requests: Option<u32>,
    quality: Option<f64>,
    period_ms: Option<f64>,
}

impl<'a> Answer<'a> {
    /// Builds the answer from `said` and the figures behind it.
    ///
    /// # Errors
    /// A size without a worst case.
    pub fn new(
        known: &Known<'a>,
        asked: &'a [Asked],
        streams: &[Stream],
        said: Result<Admitted, No>,
    ) -> Result<Answer<'a>, WorstError> {
        let Known { exhausted, profile, model, disk, measured, grounds } = *known;
        let used = |s: &Service| {
            streams.is_empty() || streams.iter().any(|r| disk.service_of(r).is_ok_and(|of| of.sectors == s.sectors))
        };
        let of_sizes = profile.service_times.chunk_by(|a, b| a.sectors == b.sectors);
        let services = of_sizes.filter_map(|of| Some((of, disk.service(of[0].sectors)?)));
        let sizes = services.filter(|(_, s)| used(s)).map(|(of, s)| {
            let worst = WorstCase::of(profile, model, s.sectors)?;
            Ok(size(profile, of, (disk, s), worst, measured.contains(&s.sectors)))
        });
        let reserved = said.as_ref().map(|a| a.reservations.clone()).unwrap_or_default();
        let rows = asked.iter().zip(streams).enumerate().map(|(i, (a, s))| Row {
            name: &a.name,
            requests: s.requests,
            period_ms: s.period.as_ms_f64(),
            quality: share(s.quality.ppm().into()),
            bytes: a.bytes,
            mandatory: s.is_mandatory(),
            served_as_mandatory: !s.is_mandatory() && reserved.get(i).is_some_and(Option::is_none),
            blocked_by: s.blocked_by,
            blocking_ms: disk.blocking_of(s).as_ms_f64(),
            reservation_ms: reserved.get(i).copied().flatten().map(|r| r.as_ms_f64()),
            worst_ms: disk.service_of(s).map_or(0.0, |of| of.worst.as_ms_f64()),
        });
        let name = |i: usize| asked.get(i).map_or_else(String::new, |a| a.name.clone());
        let (why, refused) = match said.as_ref().err() {
            None => (None, None),
            Some(No::Unknown(why)) => (Some(why.clone()), None),
            Some(No::Refused(r)) => (Some(self::why(r, &name)), Some(r)),
        };
        Ok(Answer {
            disk: &profile.name,
            title: &profile.title,
            sizes: sizes.collect::<Result<_, WorstError>>()?,
            rests_on: &grounds.rests_on,
            unknown: grounds.unknown_words(),
            grounds,
            admitted: why.is_none(),
            streams: rows.collect(),
            load: said.as_ref().ok().map(|a| Shares::admitted(disk, streams, a, exhausted)),
            why,
            nearest: refused.map(|r| Nearest {
                stream: name(r.stream),
                requests: r.nearest.requests,
                quality: r.nearest.quality.map(|q| share(q.ppm().into())),
                period_ms: r.nearest.period.map(|t| t.as_ms_f64()),
            }),
        })
    }

    /// Returns the answer as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n", self.title);
        for size in &self.sizes {
            text += &size.to_text();
        }
        text += &grounds_text(self.grounds);
        if !self.streams.is_empty() {
            let head = ["stream", "requests", "period", "quality", "size", "reserved in each period"];
            let mut rows = vec![head.map(String::from).to_vec()];
            rows.extend(self.streams.iter().map(|s| s.cells(self.admitted)));
            text += &format!("\n{}", columns(&rows, &[1, 2, 3, 4]));
        }
        text.push('\n');
        if let Some(load) = &self.load {
            text += &format!("Yes: {load}.\n");
            let bounds = self.grounds.bounded_names();
            if !bounds.is_empty() && self.streams.iter().any(|s| s.mandatory || s.served_as_mandatory) {
                text += &format!("This rests on stated bounds, which were not measured: {}.\n", bounds.join("; "));
            }
        }
        if let Some(why) = &self.why {
            text += &format!("No. {why}.\n");
        }
        if let Some(nearest) = &self.nearest {
            text += &nearest.to_text();
        }
        text
    }
}

/// The reason, with the stream's name instead of its number, and possible remedies.
fn why(refusal: &Refusal, name: &impl Fn(usize) -> String) -> String {
    let text = refusal.why.with_names(|stream| format!("Stream {}", name(stream)));
    match &refusal.why {
        RefusalReason::Worst { .. } => format!("Stream {}: with it {text}", name(refusal.stream)),
        RefusalReason::Kinds { .. } => {
            format!("{text}; of a drive that was characterised, `--destructive` finds those of writes")
        }
        RefusalReason::Size { .. } => format!("{text}; `headtime profiles measure --sizes` measures larger ones"),
        RefusalReason::Samples { .. } => format!("{text}; `headtime profiles measure --requests` takes more"),
        RefusalReason::Between { .. } | RefusalReason::Quality { .. } => text,
    }
}

fn size<'a>(
    profile: &Profile,
    of: &'a [ServiceTimes],
    (disk, s): (&Disk, &Service),
    worst: WorstCase,
    now: bool,
) -> Size<'a> {
    let reckoned = |kinds: Kinds| {
        let times = &disk.service_for(kinds, s.sectors).ok().filter(|of| of.sectors == s.sectors)?.times;
        Some((kinds.name(), times.members().map(|(of, times)| (of, times.mean().as_ms_f64())).collect()))
    };
    let family: Vec<Member> = of.iter().map(|x| member(x, s.worst)).collect();
    // The first entry has the largest share of reads. The configured load has the most samples.
    let reads = of.iter().take_while(|x| x.load.reads_ppm == of[0].load.reads_ppm);
    let usual = reads.enumerate().max_by_key(|(_, x)| x.samples).map_or(0, |(at, _)| at);
    let x = &of[usual];
    let (mean_ms, p999_ms) = (family[usual].mean_ms, family[usual].p999_ms);
    Size {
        sectors: x.sectors,
        bytes: u64::from(x.sectors) * u64::from(profile.sector_bytes),
        worst_ms: worst.total().as_ms_f64(),
        worst: Terms {
            seek_ms: worst.seek.as_ms_f64(),
            turns: worst.turns,
            turn_ms: worst.turn.as_ms_f64(),
            sectors: worst.sectors,
            sector_ms: worst.sector.as_ms_f64(),
            overhead_ms: worst.overhead.as_ms_f64(),
            skews: worst.skews,
            skew_ms: worst.skew.as_ms_f64(),
            stop_ms: worst.stop.as_ms_f64(),
            detours_ms: worst.detours.as_ms_f64(),
            recalibration_ms: worst.away.as_ms_f64(),
        },
        mean_ms,
        p999_ms,
        samples: x.samples,
        family,
        reckoned: Kinds::ALL.into_iter().filter_map(reckoned).collect(),
        workload: &x.load.words,
        reads: share(x.load.reads_ppm.into()),
        waiting: x.load.waiting,
        order: &x.load.order,
        outstanding: x.load.outstanding,
        measured_now: now,
    }
}

fn member(x: &ServiceTimes, worst: Dur) -> Member {
    // Counts that make no distribution were refused earlier.
    let times = Distribution::from_counts(x.counts(), x.bin, worst).ok();
    let ms = |of: fn(&Distribution) -> Dur| times.as_ref().map_or(f64::NAN, |t| of(t).as_ms_f64());
    Member {
        reads: share(x.load.reads_ppm.into()),
        candidates: x.load.candidates,
        mean_ms: ms(Distribution::mean),
        p999_ms: ms(|t| t.quantile(999_000)),
        samples: x.samples,
    }
}

impl Size<'_> {
    fn to_text(&self) -> String {
        let w = &self.worst;
        let row = |what: String, ms: f64| vec![what, format!("{ms:.2} ms")];
        let mut rows = vec![
            row("  w, the longest that one can take".into(), self.worst_ms),
            row("    the longest seek".into(), w.seek_ms),
            row(format!("    {} turns of {:.3} ms", w.turns, w.turn_ms), f64::from(w.turns) * w.turn_ms),
            row(format!("    {} sectors of {:.4} ms", w.sectors, w.sector_ms), f64::from(w.sectors) * w.sector_ms),
            row("    overhead".into(), w.overhead_ms),
            row(format!("    ends of tracks: {} of {:.2} ms", w.skews, w.skew_ms), f64::from(w.skews) * w.skew_ms),
        ];
        if w.stop_ms > 0.0 {
            rows.push(row("    until a read-ahead stops".into(), w.stop_ms));
        }
        if w.detours_ms > 0.0 {
            rows.push(row("    where sectors do not follow each other".into(), w.detours_ms));
        }
        if w.recalibration_ms > 0.0 {
            rows.push(row("    a recalibration".into(), w.recalibration_ms));
        }
        rows.push(row("  X, how long they do take: mean".into(), self.mean_ms));
        rows.push(row("    99.9% of them within".into(), self.p999_ms));
        for (kinds, means) in &self.reckoned {
            let means: Vec<String> = means.iter().map(|(of, ms)| format!("{ms:.2} of {of}")).collect();
            rows.push(vec![format!("    {kinds}, by how many to choose from"), means.join(", ")]);
        }
        let now = if self.measured_now { ", measured just now on the virtual drive" } else { "" };
        format!(
            "\nRequests of up to {} bytes ({} sectors)\n{}    {} samples{now}: {}; {} waiting, {}, {} at the drive\n",
            self.bytes,
            self.sectors,
            columns(&rows, &[1]),
            self.samples,
            self.workload,
            self.waiting,
            self.order,
            self.outstanding
        )
    }
}

impl Row<'_> {
    fn cells(&self, admitted: bool) -> Vec<String> {
        let reserved = match self.reservation_ms {
            _ if !admitted => "-".into(),
            Some(ms) => match self.blocked_by {
                0 => format!("{ms:.2} ms"),
                n => format!("{ms:.2} ms, with {n} older for each"),
            },
            None => {
                let all = f64::from(self.requests) * (self.worst_ms + self.blocking_ms);
                let older = match self.blocked_by {
                    0 => String::new(),
                    n => format!(", each behind {n} older of {:.2} ms in all", self.blocking_ms),
                };
                format!("{}: {} times w{older}, {all:.2} ms", served(self.mandatory), self.requests)
            }
        };
        let period = format!("{} ms", self.period_ms);
        vec![
            self.name.into(),
            self.requests.to_string(),
            period,
            percent(self.quality),
            self.bytes.to_string(),
            reserved,
        ]
    }
}

impl Nearest {
    fn to_text(&self) -> String {
        let requests = self.requests.map(|n| format!("{n} requests in a period"));
        let quality = self.quality.map(|q| format!("a quality of {}", percent(q)));
        let period = self.period_ms.map(|ms| format!("a period of {ms} ms"));
        let either: Vec<String> = [requests, quality, period].into_iter().flatten().collect();
        match either.is_empty() {
            true => format!(
                "No smaller number of requests, no lower quality and no longer period of stream {} is possible \
                 either.\n",
                self.stream
            ),
            false => format!("Possible for stream {}: {}.\n", self.stream, either.join(", or ")),
        }
    }
}

fn share(ppm: u64) -> f64 {
    ppm as f64 / 1e6
}

/// Formats a share as a percentage, rounded to parts per million.
fn percent(share: f64) -> String {
    ppm((share * 1e6).round() as u64)
}
