//! Scenarios: a whole simulation as a short text file.
//!
//! Every option of `headtime simulate` is a key, with `_` for `-`; flags on the command line win over the file. Tasks
//! of one's own come as `[[task]]` tables instead of `workload` or `trace`:
//!
//! ```toml
//! disk = "atlas10k"
//! order = "sptf"
//! seconds = 60
//!
//! [[task]]               # eight clients that think for 20 ms on average
//! name = "clients"
//! tasks = 8
//! think_ms = 20.0
//! think = "exponential"  # or "fixed" (default)
//! reads = 0.7            # share of reads; default 1
//! size_mean = "8k"       # whole steps, geometrically distributed
//! size_step = "4k"
//!
//! [[task]]               # a log: 50 synchronous writes a second
//! name = "log"
//! rate = 50.0            # Poisson arrivals instead of tasks that think
//! reads = 0.0
//! size = "4k"
//! place = "sequential"
//! fua = true
//! ```

use std::path::{Path, PathBuf};

use serde::Deserialize;

use headtime_disk::time::{Dur, Time};
use headtime_sched::core::Order;

use super::generator::{PatternSpec, PlaceSpec, SizeSpec};
use super::population::{Arrivals, GroupSpec, Think};
use super::variates::Share;
use super::{Beyond, Mode, Population, Replay, Target, Workload, WorkloadError, by_name, open};
use crate::simulate::Scheduling;
use crate::traces::{self, ReadOptions, TraceFormat};

/// Options of a simulation; what is `None` was not said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Name of a built-in disk, or a profile's file.
    pub disk: Option<String>,
    /// A named workload.
    pub workload: Option<String>,
    /// A trace to replay. In a file: relative to the file.
    pub trace: Option<PathBuf>,
    /// Its format.
    pub trace_format: Option<String>,
    /// Only the trace's requests to this device.
    pub device: Option<u32>,
    /// When recorded requests are due: `auto`, `open`, `closed`.
    pub replay: Option<String>,
    /// ADMIT.
    pub admit: Option<String>,
    /// ORDER.
    pub order: Option<String>,
    /// FILL.
    pub fill: Option<String>,
    /// Where FILL is placed.
    pub placement: Option<String>,
    /// Background work.
    pub background: Option<String>,
    /// Commands at the drive at most.
    pub depth: Option<u32>,
    /// End of the run in virtual seconds.
    pub seconds: Option<f64>,
    /// End of the run in requests.
    pub requests: Option<u64>,
    /// Seed.
    pub seed: Option<u64>,
    /// Tasks of one's own.
    pub task: Vec<TaskTable>,
}

/// One `[[task]]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskTable {
    /// Its name in statistics; must be there.
    pub name: String,
    /// A named workload whose figures are taken where this table gives none.
    pub like: Option<String>,
    /// Closed: how many tasks.
    pub tasks: Option<u32>,
    /// Closed: pause between an answer and the next request, ms.
    pub think_ms: Option<f64>,
    /// Closed: `fixed` or `exponential`.
    pub think: Option<String>,
    /// Open: Poisson arrivals, so many a second.
    pub rate: Option<f64>,
    /// Nothing before this, virtual seconds.
    pub start_s: Option<f64>,
    /// Share of reads, 0 to 1.
    pub reads: Option<f64>,
    /// One size for all.
    pub size: Option<Bytes>,
    /// Mean of an exponential size.
    pub size_mean: Option<Bytes>,
    /// Step of an exponential or even size.
    pub size_step: Option<Bytes>,
    /// Smallest of an even distribution.
    pub size_min: Option<Bytes>,
    /// Largest of an even distribution.
    pub size_max: Option<Bytes>,
    /// Sizes with weights: `[["4k", 3], ["64k", 1]]`.
    pub sizes: Option<Vec<(Bytes, u32)>>,
    /// `uniform`, `sequential`, `part`, `window`, `recent-group`.
    pub place: Option<String>,
    /// `part`: where it begins, a share of the disk.
    pub from: Option<f64>,
    /// `part`: where it ends.
    pub to: Option<f64>,
    /// `window`, `recent-group`: cylinders.
    pub cylinders: Option<u32>,
    /// `recent-group`: share of the requests that stay.
    pub share: Option<f64>,
    /// First sectors lie at multiples of this.
    pub align: Option<Bytes>,
    /// Writes complete only on the media.
    pub fua: Option<bool>,
}

/// A number of bytes: a number, or text with `k`, `m` or `g` (powers of 1024) behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub struct Bytes(pub u64);

impl TryFrom<toml::Value> for Bytes {
    type Error = String;
    fn try_from(value: toml::Value) -> Result<Bytes, String> {
        let parsed = match &value {
            toml::Value::Integer(n) => u64::try_from(*n).ok(),
            toml::Value::String(s) => parse_bytes(s),
            _ => None,
        };
        parsed.map(Bytes).ok_or_else(|| format!("expected a number of bytes such as 4096 or \"4k\", found {value}"))
    }
}

fn parse_bytes(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let lower = lower.strip_suffix("ib").or(lower.strip_suffix('b')).unwrap_or(&lower);
    let (digits, factor) = match lower.as_bytes().last()? {
        b'k' => (&lower[..lower.len() - 1], 1u64 << 10),
        b'm' => (&lower[..lower.len() - 1], 1 << 20),
        b'g' => (&lower[..lower.len() - 1], 1 << 30),
        _ => (lower, 1),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(factor)
}

/// Names of ADMIT that work.
pub const ADMITS: [&str; 1] = ["none"];
/// Names of FILL that work.
pub const FILLS: [&str; 1] = ["none"];
/// Places of FILL.
pub const PLACEMENTS: [&str; 2] = ["host", "firmware"];
/// Background work that there is.
pub const BACKGROUNDS: [&str; 1] = ["none"];
/// Names of ORDER; `drive` leaves the choice to the drive.
pub const ORDERS: [&str; 7] = ["fcfs", "clook", "sstf", "sptf", "sptf-sw:N", "satfuf:MS", "drive"];

/// Largest N of `sptf-sw:N`, percent.
const WIDEST_WINDOW: u32 = 1_000;
/// Longest threshold of `satfuf:MS`, ms.
const LONGEST_WAIT_MS: f64 = 1e6;
/// Longest run, virtual seconds (ten years).
const LONGEST_RUN_S: f64 = 315_360_000.0;

/// An order by its name. Unknown names list the known ones; figures out of range say the range.
pub fn order(name: &str) -> Result<Scheduling, WorkloadError> {
    let (word, figure) = name.split_once(':').map_or((name, None), |(w, f)| (w, Some(f)));
    let order = match (word, figure) {
        ("fcfs", None) => Order::Fcfs,
        ("clook", None) => Order::Clook,
        ("sstf", None) => Order::Sstf,
        ("sptf" | "satf", None) => Order::Sptf,
        ("drive", None) => return Ok(Scheduling::Drive),
        ("sptf-sw", Some(f)) => match f.trim_end_matches('%').parse() {
            Ok(n) if n <= WIDEST_WINDOW => Order::SptfSw(n),
            _ => return Err(WorkloadError::range("N of order sptf-sw:N (percent)", quoted(f), 0, WIDEST_WINDOW)),
        },
        ("satfuf", Some(f)) => match f.parse::<f64>() {
            Ok(ms) if (0.0..=LONGEST_WAIT_MS).contains(&ms) => Order::SatfUf(Dur::from_ms_f64(ms)),
            _ => return Err(WorkloadError::range("MS of order satfuf:MS", quoted(f), 0, LONGEST_WAIT_MS)),
        },
        _ => return Err(unknown("order", name, &ORDERS)),
    };
    Ok(Scheduling::Host(order))
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn unknown(what: &'static str, name: &str, known: &[&str]) -> WorkloadError {
    WorkloadError::Unknown { what, name: name.to_owned(), known: known.join(", ") }
}

fn one_of(what: &'static str, name: Option<&str>, known: &[&str]) -> Result<(), WorkloadError> {
    match name {
        Some(n) if !known.contains(&n) => Err(unknown(what, n, known)),
        _ => Ok(()),
    }
}

impl Scenario {
    /// Reads a scenario's text. The error names the file and, where TOML knows it, line and column.
    pub fn parse(text: &str, file: &str) -> Result<Scenario, WorkloadError> {
        toml::from_str(text)
            .map_err(|e| WorkloadError::Scenario { file: file.to_owned(), message: where_and_why(text, &e) })
    }

    /// Reads a scenario's file; a trace that it names lies relative to it.
    pub fn load(path: &Path) -> Result<Scenario, WorkloadError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|e| WorkloadError::Scenario { file: file.clone(), message: e.to_string() })?;
        let mut s = Scenario::parse(&text, &file)?;
        if let (Some(trace), Some(folder)) = (&s.trace, path.parent()) {
            s.trace = Some(folder.join(trace));
        }
        Ok(s)
    }

    /// This scenario where it says something, otherwise `other`: flags over a file. A workload, a trace and tasks are
    /// one choice, and so are the two ends of a run: flags that make it replace the file's.
    pub fn over(self, other: Scenario) -> Scenario {
        let chosen = self.workload.is_some() || self.trace.is_some() || !self.task.is_empty();
        let (workload, trace, trace_format, task) = if chosen {
            (self.workload, self.trace, self.trace_format, self.task)
        } else {
            (other.workload, other.trace, self.trace_format.or(other.trace_format), other.task)
        };
        let (seconds, requests) = if self.seconds.is_some() || self.requests.is_some() {
            (self.seconds, self.requests)
        } else {
            (other.seconds, other.requests)
        };
        Scenario {
            disk: self.disk.or(other.disk),
            workload,
            trace,
            trace_format,
            device: self.device.or(if chosen { None } else { other.device }),
            replay: self.replay.or(if chosen { None } else { other.replay }),
            admit: self.admit.or(other.admit),
            order: self.order.or(other.order),
            fill: self.fill.or(other.fill),
            placement: self.placement.or(other.placement),
            background: self.background.or(other.background),
            depth: self.depth.or(other.depth),
            seconds,
            requests,
            seed: self.seed.or(other.seed),
            task,
        }
    }

    /// Checks every name and figure that needs no disk to be checked.
    pub fn check(&self) -> Result<(), WorkloadError> {
        one_of("admit", self.admit.as_deref(), &ADMITS)?;
        one_of("fill", self.fill.as_deref(), &FILLS)?;
        one_of("placement", self.placement.as_deref(), &PLACEMENTS)?;
        one_of("background", self.background.as_deref(), &BACKGROUNDS)?;
        self.scheduling()?;
        self.limits()?;
        let choices =
            [self.workload.is_some(), self.trace.is_some(), !self.task.is_empty()].into_iter().filter(|c| *c).count();
        if choices > 1 {
            return Err(WorkloadError::Conflict("give one of a workload, a trace and tasks, not several".into()));
        }
        if self.trace.is_none() {
            for (given, what) in [
                (self.trace_format.is_some(), "a trace format"),
                (self.device.is_some(), "a device"),
                (self.replay.is_some(), "a way of replaying"),
            ] {
                if given {
                    return Err(WorkloadError::Conflict(format!("{what} was given, but no trace")));
                }
            }
        } else if self.trace_format.is_none() {
            return Err(WorkloadError::Conflict(format!(
                "a trace needs its format; known: {}",
                TraceFormat::ALL.map(|(n, _)| n).join(", ")
            )));
        }
        if let Some(f) = &self.trace_format {
            TraceFormat::from_name(f)?;
        }
        self.mode()?;
        if let Some(w) = &self.workload {
            by_name(w)?;
        }
        for t in &self.task {
            t.group()?;
        }
        Ok(())
    }

    /// Who orders requests; SPTF when nothing was said.
    pub fn scheduling(&self) -> Result<Scheduling, WorkloadError> {
        order(self.order.as_deref().unwrap_or("sptf"))
    }

    /// When the run ends.
    pub fn limits(&self) -> Result<crate::run::Limits, WorkloadError> {
        let until = match self.seconds {
            None => None,
            Some(s) if s > 0.0 && s <= LONGEST_RUN_S => Some(Time::ZERO + Dur::from_ms_f64(s * 1e3)),
            Some(s) => return Err(WorkloadError::range("seconds", s, "more than 0", LONGEST_RUN_S)),
        };
        if self.requests == Some(0) {
            return Err(WorkloadError::range("requests", 0, 1, u64::MAX));
        }
        Ok(crate::run::Limits { until, requests: self.requests })
    }

    fn mode(&self) -> Result<Mode, WorkloadError> {
        match self.replay.as_deref() {
            None | Some("auto") => Ok(Mode::Auto),
            Some("open") => Ok(Mode::Open),
            Some("closed") => Ok(Mode::Closed),
            Some(other) => Err(unknown("way of replaying", other, &["auto", "open", "closed"])),
        }
    }

    /// Builds the workload for a disk; `oltp` when nothing was said. Opens the trace, if it is one.
    pub fn workload(&self, target: &Target, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        self.check()?;
        if let (Some(path), Some(format)) = (&self.trace, &self.trace_format) {
            let options = ReadOptions { device: self.device, ..ReadOptions::default() };
            let reader = traces::open(path, TraceFormat::from_name(format)?, options)?;
            return Ok(Box::new(Replay::new(reader, target, self.mode()?, Beyond::Refuse)?));
        }
        let groups = if self.task.is_empty() {
            vec![by_name(self.workload.as_deref().unwrap_or("oltp"))?]
        } else {
            self.task.iter().map(TaskTable::group).collect::<Result<_, _>>()?
        };
        Ok(Box::new(Population::new(&groups, target, seed)?))
    }
}

/// TOML's message in one line, with line and column.
fn where_and_why(text: &str, e: &toml::de::Error) -> String {
    let why = e.message().replace('\n', " ");
    match e.span() {
        Some(span) => {
            let before = &text[..span.start.min(text.len())];
            let line = before.matches('\n').count() + 1;
            let column = before.len() - before.rfind('\n').map_or(0, |n| n + 1) + 1;
            format!("line {line}, column {column}: {why}")
        }
        None => why,
    }
}

impl TaskTable {
    /// The group of tasks it describes.
    pub fn group(&self) -> Result<GroupSpec, WorkloadError> {
        if self.name.is_empty() {
            return Err(WorkloadError::Conflict("a task without a name: give name = \"...\"".into()));
        }
        let mut group = match &self.like {
            Some(name) => by_name(name)?,
            None => super::closed(1),
        };
        group.name.clone_from(&self.name);
        self.arrivals(&mut group)?;
        if let Some(s) = self.start_s {
            if !(0.0..=LONGEST_RUN_S).contains(&s) {
                return Err(self.range("start_s", s, 0, LONGEST_RUN_S));
            }
            group.start = Time::ZERO + Dur::from_ms_f64(s * 1e3);
        }
        let p: &mut PatternSpec = &mut group.pattern;
        if let Some(r) = self.reads {
            p.reads = Share::from_f64(r).ok_or_else(|| self.range("reads", r, 0, 1))?;
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

    fn range(&self, what: &str, found: impl ToString, low: impl ToString, high: impl ToString) -> WorkloadError {
        WorkloadError::range(format!("{what} of task \"{}\"", self.name), found, low, high)
    }

    fn conflict(&self, why: &str) -> WorkloadError {
        WorkloadError::Conflict(format!("task \"{}\": {why}", self.name))
    }

    fn arrivals(&self, group: &mut GroupSpec) -> Result<(), WorkloadError> {
        if let Some(rate) = self.rate {
            if self.tasks.is_some() || self.think_ms.is_some() || self.think.is_some() {
                return Err(self.conflict("rate makes it open; tasks and think are for closed ones"));
            }
            group.arrivals = open(rate)?.arrivals;
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
            if !(0.0..=LONGEST_WAIT_MS).contains(&ms) {
                return Err(self.range("think_ms", ms, 0, LONGEST_WAIT_MS));
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
            (Some(other), _) => return Err(unknown("think", other, &["fixed", "exponential"])),
        };
        group.arrivals = Arrivals::Closed { tasks, think };
        Ok(())
    }

    fn size(&self) -> Result<Option<SizeSpec>, WorkloadError> {
        let even = self.size_min.is_some() || self.size_max.is_some();
        let ways = [self.size.is_some(), self.size_mean.is_some(), even, self.sizes.is_some()];
        if ways.iter().filter(|w| **w).count() > 1 {
            return Err(self.conflict("give one of size, size_mean, size_min with size_max, sizes"));
        }
        let step = self.size_step.map_or(4096, |b| b.0);
        if let Some(b) = self.size {
            return Ok(Some(SizeSpec::Fixed { bytes: b.0 }));
        }
        if let Some(mean) = self.size_mean {
            return Ok(Some(SizeSpec::Exponential { mean_bytes: mean.0, step_bytes: step }));
        }
        if let Some(sizes) = &self.sizes {
            return Ok(Some(SizeSpec::Weighted(sizes.iter().map(|(b, w)| (b.0, *w)).collect())));
        }
        match (self.size_min, self.size_max) {
            (None, None) if self.size_step.is_some() => Err(self.conflict("size_step goes with size_mean or size_min")),
            (None, None) => Ok(None),
            (Some(min), Some(max)) => {
                Ok(Some(SizeSpec::Uniform { min_bytes: min.0, max_bytes: max.0, step_bytes: step }))
            }
            _ => Err(self.conflict("size_min and size_max go together")),
        }
    }

    fn place(&self) -> Result<Option<PlaceSpec>, WorkloadError> {
        let known = ["uniform", "sequential", "part", "window", "recent-group"];
        let word = self.place.as_deref();
        for (given, what, of) in [
            (self.from.is_some() || self.to.is_some(), "from and to", &["part"][..]),
            (self.cylinders.is_some(), "cylinders", &["window", "recent-group"]),
            (self.share.is_some(), "share", &["recent-group"]),
        ] {
            if given && !word.is_some_and(|w| of.contains(&w)) {
                return Err(self.conflict(&format!("{what} goes with place = \"{}\"", of.join("\" or \""))));
            }
        }
        let cylinders = || self.cylinders.ok_or_else(|| self.conflict("this place needs cylinders"));
        Ok(Some(match word {
            None => return Ok(None),
            Some("uniform") => PlaceSpec::Uniform,
            Some("sequential") => PlaceSpec::Sequential,
            Some("part") => PlaceSpec::Part { from: self.from.unwrap_or(0.0), to: self.to.unwrap_or(1.0) },
            Some("window") => PlaceSpec::Window { cylinders: cylinders()? },
            Some("recent-group") => {
                let share = self.share.ok_or_else(|| self.conflict("this place needs a share"))?;
                PlaceSpec::RecentGroup {
                    share: Share::from_f64(share).ok_or_else(|| self.range("share", share, 0, 1))?,
                    cylinders: cylinders()?,
                }
            }
            Some(other) => return Err(unknown("place", other, &known)),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::oltp;
    use super::*;

    fn target() -> Target {
        Target { capacity: 1_000_000, sector_bytes: 512, geometry: None }
    }

    fn parse(text: &str) -> Result<Scenario, WorkloadError> {
        let s = Scenario::parse(text, "s.toml")?;
        s.check()?;
        Ok(s)
    }

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    const MIX: &str = r#"
        disk = "atlas10k"
        order = "sptf-sw:60"
        seconds = 60
        seed = 7
        [[task]]
        name = "clients"
        tasks = 8
        think_ms = 20.0
        think = "exponential"
        reads = 0.7
        size_mean = "8k"
        [[task]]
        name = "log"
        rate = 50.0
        reads = 0.0
        size = "4KiB"
        place = "sequential"
        fua = true
        start_s = 1.5
    "#;

    #[test]
    fn the_example_in_the_documentation_is_understood() {
        let text: String = include_str!("scenario.rs")
            .lines()
            .skip_while(|l| *l != "//! ```toml")
            .skip(1)
            .take_while(|l| *l != "//! ```")
            .map(|l| format!("{}\n", l.trim_start_matches("//!")))
            .collect();
        let s = parse(&text).unwrap();
        assert_eq!(s.task.len(), 2);
        assert!(s.workload(&target(), 1).is_ok());
    }

    #[test]
    fn tasks_say_what_they_do() {
        let s = parse(MIX).unwrap();
        assert_eq!(s.scheduling().unwrap(), Scheduling::Host(Order::SptfSw(60)));
        assert_eq!(s.limits().unwrap().until, Some(Time(60_000_000_000)));
        let clients = s.task[0].group().unwrap();
        assert_eq!(clients.arrivals, Arrivals::Closed { tasks: 8, think: Think::Exponential(Dur::from_ms(20)) });
        assert_eq!(clients.pattern.size, SizeSpec::Exponential { mean_bytes: 8192, step_bytes: 4096 });
        let log = s.task[1].group().unwrap();
        assert_eq!(log.arrivals, Arrivals::Open { mean_gap: Dur::from_ms(20) });
        assert_eq!((log.pattern.reads, log.pattern.fua), (Share::from_f64(0.0).unwrap(), true));
        assert_eq!(log.start, Time(1_500_000_000));
        let mut w = s.workload(&target(), 7).unwrap();
        assert_eq!(w.classes(), ["clients", "log"]);
        assert!(w.take().is_ok());
    }

    #[test]
    fn a_task_can_be_like_a_named_workload() {
        let s = parse("[[task]]\nname = \"big\"\nlike = \"oltp\"\nsize = \"256k\"\n").unwrap();
        let g = s.task[0].group().unwrap();
        let like = oltp();
        assert_eq!(g.arrivals, like.arrivals);
        assert_eq!(g.pattern, PatternSpec { size: SizeSpec::Fixed { bytes: 262_144 }, ..like.pattern });
    }

    #[test]
    fn flags_win_over_the_file() {
        let file = parse(MIX).unwrap();
        let flags = Scenario { order: Some("fcfs".into()), requests: Some(10), ..Scenario::default() };
        let s = flags.over(file.clone());
        assert_eq!((s.order.as_deref(), s.seconds, s.requests), (Some("fcfs"), None, Some(10)));
        assert_eq!((s.disk.as_deref(), s.task.len(), s.seed), (Some("atlas10k"), 2, Some(7)));
        let flags = Scenario { workload: Some("closed:3".into()), ..Scenario::default() };
        let s = flags.over(file);
        assert!(s.task.is_empty());
        assert!(s.check().is_ok());
    }

    #[test]
    fn mistakes_name_place_expectation_and_what_is_known() {
        for (text, what) in [
            ("disk = \"a\"\nfoo = 1\n", "s.toml: line 2, column 1: unknown field `foo`"),
            ("disk = \n", "s.toml: line 1"),
            ("depth = \"two\"\n", "line 1"),
            ("order = \"elevator\"\n", "fcfs, clook, sstf, sptf, sptf-sw:N, satfuf:MS"),
            ("order = \"sptf-sw:x\"\n", "expected 0 to 1000"),
            ("order = \"satfuf:-1\"\n", "expected 0 to"),
            ("admit = \"bfq\"\n", "known: none"),
            ("fill = \"bw-greedy\"\n", "known: none"),
            ("placement = \"cloud\"\n", "host, firmware"),
            ("workload = \"tpcc\"\n", "closed:N"),
            ("seconds = 0.0\n", "more than 0"),
            ("seconds = nan\n", "more than 0"),
            ("requests = 0\n", "expected 1 to"),
            ("workload = \"oltp\"\ntrace = \"t\"\ntrace_format = \"mqsim\"\n", "not several"),
            ("trace = \"t\"\n", "disksim-validate, disksim-ascii, mqsim"),
            ("trace_format = \"mqsim\"\n", "no trace"),
            ("trace = \"t\"\ntrace_format = \"mqsim\"\nreplay = \"fast\"\n", "auto, open, closed"),
            ("[[task]]\ntasks = 3\n", "without a name"),
            ("[[task]]\nname = \"a\"\nrate = 5.0\ntasks = 3\n", "task \"a\": rate makes it open"),
            ("[[task]]\nname = \"a\"\nsize = \"4q\"\n", "4096 or \"4k\""),
            ("[[task]]\nname = \"a\"\nsize = -4\n", "4096 or \"4k\""),
            ("[[task]]\nname = \"a\"\nsize = 4096\nsize_mean = 4096\n", "give one of size"),
            ("[[task]]\nname = \"a\"\nreads = 1.5\n", "reads of task \"a\": expected 0 to 1, found 1.5"),
            ("[[task]]\nname = \"a\"\nplace = \"here\"\n", "uniform, sequential, part, window, recent-group"),
            ("[[task]]\nname = \"a\"\ncylinders = 5\n", "cylinders goes with place"),
            ("[[task]]\nname = \"a\"\nplace = \"window\"\n", "needs cylinders"),
            ("[[task]]\nname = \"a\"\nthink = \"long\"\n", "fixed, exponential"),
            ("[[task]]\nname = \"a\"\nsize_min = 512\n", "go together"),
        ] {
            let e = error(text);
            assert!(e.contains(what), "{text}: {e}");
        }
    }

    #[test]
    fn a_missing_trace_is_named() {
        let s = parse("trace = \"no/such/file\"\ntrace_format = \"mqsim\"\n").unwrap();
        let e = s.workload(&target(), 1).err().unwrap().to_string();
        assert!(e.starts_with("no/such/file: "), "{e}");
        let e = Scenario::load(Path::new("no/such.toml")).unwrap_err().to_string();
        assert!(e.starts_with("no/such.toml: "), "{e}");
    }
}
