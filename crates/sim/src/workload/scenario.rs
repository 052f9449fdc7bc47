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
use headtime_sched::fill::placement::Placement;
use headtime_sched::fill::subsystem::FillConfig;

use super::source::{in_plain_words, sources};
use super::task_table::TaskTable;
use super::{Beyond, Mode, Population, Replay, Target, Workload, WorkloadError, by_name};
use crate::background::Background;
use crate::filling;
use crate::input;
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
    /// How much longer than predicted a move may take when a gap is filled: microseconds, or `adaptive`.
    pub conservatism_us: Option<Figure>,
    /// End of the run when the background work has all it wants.
    pub until_scanned: Option<bool>,
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

/// A number, or a word that stands for one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Figure {
    /// A number.
    Number(u64),
    /// A word, or a number in quotes.
    Word(String),
}

impl Figure {
    fn text(&self) -> String {
        match self {
            Figure::Number(n) => n.to_string(),
            Figure::Word(w) => w.clone(),
        }
    }
}

/// Names of ADMIT that work.
pub const ADMITS: [&str; 1] = ["none"];
/// Names of ORDER; `drive` leaves the choice to the drive.
pub const ORDERS: [&str; 7] = ["fcfs", "clook", "sstf", "sptf", "sptf-sw:N", "satfuf:MS", "drive"];

/// Longest file of a scenario, bytes.
const LONGEST_FILE: u64 = 1 << 20;
/// Largest N of `sptf-sw:N`, percent.
const WIDEST_WINDOW: u32 = 1_000;
/// Longest threshold of `satfuf:MS`, ms.
pub(super) const LONGEST_WAIT_MS: f64 = 1e6;
/// Longest run, virtual seconds (ten years).
pub const LONGEST_RUN_S: f64 = 315_360_000.0;

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

pub(crate) fn unknown(what: &'static str, name: &str, known: &[&str]) -> WorkloadError {
    WorkloadError::Unknown { what, name: name.to_owned(), known: known.join(", ") }
}

fn one_of(what: &'static str, name: Option<&str>, known: &[&str]) -> Result<(), WorkloadError> {
    match name {
        Some(n) if !known.contains(&n) => Err(unknown(what, n, known)),
        _ => Ok(()),
    }
}

impl Scenario {
    /// Reads a scenario's text and checks each setting. The error names the file and the line.
    pub fn parse(text: &str, file: &str) -> Result<Scenario, WorkloadError> {
        let mut s: Scenario = toml::from_str(text).map_err(|e| fault(text, file, &e))?;
        let (own, tasks) = sources(text, file);
        for (task, source) in s.task.iter_mut().zip(tasks) {
            task.source = Some(source);
        }
        s.check_settings(&own)?;
        Ok(s)
    }

    /// Reads a scenario's file; a trace that it names lies relative to it.
    pub fn load(path: &Path) -> Result<Scenario, WorkloadError> {
        let file = path.display().to_string();
        let text = input::text(path, LONGEST_FILE)
            .map_err(|message| WorkloadError::Scenario { place: file.clone(), message })?;
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
        let own_end = self.seconds.is_some() || self.requests.is_some() || self.until_scanned.is_some();
        let (seconds, requests, until_scanned) = match own_end {
            true => (self.seconds, self.requests, self.until_scanned),
            false => (other.seconds, other.requests, other.until_scanned),
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
            conservatism_us: self.conservatism_us.or(other.conservatism_us),
            until_scanned,
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
        let filled = self.fill(0)?.is_some();
        let background = self.background.as_deref().unwrap_or("none");
        filling::check_background(background)?;
        // With `none` said in so many words, everything else is what the run is to be compared with.
        let none = self.fill.as_deref() == Some("none");
        let inside = self.placement.as_deref().is_some_and(|p| p != "host");
        for (given, what) in [(self.conservatism_us.is_some(), "conservatism_us"), (inside, "a placement")] {
            if given && !filled && !none {
                return Err(WorkloadError::Conflict(format!("{what} was given, but no fill")));
            }
        }
        if filled && self.scheduling()? == Scheduling::Drive {
            return Err(WorkloadError::Conflict(
                "order drive leaves the choice to the drive, which fills no gaps".into(),
            ));
        }
        if self.until_scanned == Some(true) && none {
            return Err(WorkloadError::Conflict("a run until the disk is scanned needs a fill that scans it".into()));
        }
        if self.until_scanned == Some(true) && !background.starts_with("scan") {
            return Err(WorkloadError::Conflict(
                "a run until the disk is scanned needs background work that ends: scan".into(),
            ));
        }
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
        for (i, t) in self.task.iter().enumerate() {
            t.group().map_err(|e| t.fault(e))?;
            if self.task[..i].iter().any(|before| before.name == t.name) {
                return Err(t.fault(WorkloadError::Conflict(format!("two tasks have the name \"{}\"", t.name))));
            }
        }
        if self.depth == Some(0) {
            return Err(WorkloadError::range("depth", 0, 1, u32::MAX));
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
        Ok(crate::run::Limits { until, requests: self.requests, until_scanned: self.until_scanned == Some(true) })
    }

    /// FILL; `None` for `none`. When nothing was said, headtime's own does the background work, if there is any.
    pub fn fill(&self, seed: u64) -> Result<Option<FillConfig>, WorkloadError> {
        let margin = self.conservatism_us.as_ref().map(Figure::text);
        let work = self.background.as_deref().is_some_and(|b| b != "none");
        let default = if work { "headtime" } else { "none" };
        filling::fill(self.fill.as_deref().unwrap_or(default), self.placement.as_deref(), margin.as_deref(), seed)
    }

    /// Where gaps are filled, or would be.
    pub fn placement(&self) -> Result<Placement, WorkloadError> {
        filling::placement(self.placement.as_deref().unwrap_or("host"))
    }

    /// Background work for a disk.
    pub fn background(&self, target: &Target) -> Result<Box<dyn Background>, WorkloadError> {
        let filled = self.fill(0)?.is_some();
        filling::background(self.background.as_deref().filter(|_| filled).unwrap_or("none"), target)
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
        let population = Population::new(&groups, target, seed);
        Ok(Box::new(population.map_err(|e| {
            // Whose fault it is shows when each task is tried alone.
            let alone = self.task.iter().zip(&groups);
            let whose = alone.filter(|(_, g)| Population::of(g, target, seed).is_err()).map(|(t, _)| t).next();
            whose.map_or_else(
                || WorkloadError::Conflict(e.to_string()),
                |t| t.fault(WorkloadError::Conflict(e.to_string())),
            )
        })?))
    }
}

/// TOML's message in one line, with the line that it is about.
fn fault(text: &str, file: &str, e: &toml::de::Error) -> WorkloadError {
    let line =
        e.span().map(|span| text.as_bytes()[..span.start.min(text.len())].iter().filter(|b| **b == b'\n').count());
    let place = line.map_or_else(|| file.to_owned(), |n| format!("{file}:{}", n + 1));
    WorkloadError::Scenario { place, message: in_plain_words(e.message()) }
}

#[cfg(test)]
mod tests {
    use super::super::variates::Share;
    use super::super::{Arrivals, Gaps, PatternSpec, SizeSpec, Think, oltp};
    use super::*;
    use headtime_sched::fill::Algorithm;
    use headtime_sched::fill::subsystem::Conservatism;

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
        assert_eq!(log.arrivals, Arrivals::Open { mean_gap: Dur::from_ms(20), gaps: Gaps::Exponential });
        assert_eq!((log.pattern.reads, log.pattern.fua), (Share::from_f64(0.0).unwrap(), true));
        assert_eq!(log.start, Time(1_500_000_000));
        let mut w = s.workload(&target(), 7).unwrap();
        assert_eq!(w.classes(), ["clients", "log"]);
        assert!(w.take().is_ok());
    }

    #[test]
    fn background_work_is_understood_in_any_order_of_keys_and_flags() {
        let file = "until_scanned = true\nbackground = \"scan:32\"\nconservatism_us = 300\nfill = \"angle-ep-frag\"\n";
        let s = parse(file).unwrap();
        let fill = s.fill(7).unwrap().unwrap();
        assert_eq!((fill.algorithm, fill.seed), (Algorithm::AngleEpFrag, 7));
        assert_eq!(fill.conservatism, Conservatism::Fixed(Dur::from_us(300)));
        assert!(s.limits().unwrap().until_scanned && s.background(&target()).unwrap().ends());
        // The file may leave the fill to a flag, or to headtime.
        let half = Scenario::parse("background = \"rescan\"\n", "s.toml").unwrap();
        assert_eq!(half.fill(1).unwrap().unwrap().algorithm, Algorithm::Headtime);
        let none = Scenario { fill: Some("none".into()), ..Scenario::default() }.over(half.clone());
        assert!(none.check().is_ok() && none.fill(1).unwrap().is_none());
        let flags = Scenario { fill: Some("headtime".into()), ..Scenario::default() };
        assert!(flags.clone().over(half).check().is_ok());
        // Another end of the run replaces the file's.
        let s = Scenario { seconds: Some(5.0), ..flags }.over(s);
        assert!(!s.limits().unwrap().until_scanned && s.fill(1).unwrap().unwrap().algorithm == Algorithm::Headtime);
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
            ("disk = \"a\"\nfoo = 1\n", "s.toml:2: unknown field `foo`"),
            ("disk = \n", "s.toml:1: "),
            ("depth = \"two\"\n", "s.toml:1: invalid type: string \"two\", expected a whole number from 0"),
            ("order = \"elevator\"\n", "fcfs, clook, sstf, sptf, sptf-sw:N, satfuf:MS"),
            ("order = \"sptf-sw:x\"\n", "expected 0 to 1000"),
            ("order = \"satfuf:-1\"\n", "expected 0 to"),
            ("admit = \"bfq\"\n", "known: none"),
            ("fill = \"greedy\"\n", "s.toml:1: unknown fill \"greedy\"; known: none, bw-greedy"),
            ("placement = \"drive\"\n", "s.toml:1: unknown placement \"drive\"; known: host, firmware"),
            ("disk = \"a\"\nbackground = \"copy\"\n", "s.toml:2: unknown background \"copy\"; known: none, scan"),
            ("fill = \"headtime\"\nbackground = \"scan:0\"\n", "s.toml:2: KIB of background scan:KIB: expected 1 to"),
            ("fill = \"headtime\"\nconservatism_us = -1\n", "s.toml:2: "),
            (
                "fill = \"headtime\"\nconservatism_us = \"bold\"\n",
                "s.toml:2: conservatism_us: expected 0 to 100000, or",
            ),
            ("fill = \"none\"\nbackground = \"scan\"\nuntil_scanned = true\n", "needs a fill that scans it"),
            ("conservatism_us = 300\n", "conservatism_us was given, but no fill"),
            ("placement = \"firmware\"\n", "a placement was given, but no fill"),
            ("fill = \"headtime\"\norder = \"drive\"\n", "the drive, which fills no gaps"),
            ("until_scanned = true\n", "needs background work that ends: scan"),
            ("fill = \"headtime\"\nbackground = \"rescan\"\nuntil_scanned = true\n", "background work that ends: scan"),
            ("seed = 1\ndepth = 0\n", "s.toml:2: depth: expected 1 to"),
            ("depth = -1\n", "expected a whole number from 0 to 4294967295"),
            ("seconds = \"long\"\n", "expected a number"),
            ("seconds = 1e300\n", "found 1e300"),
            ("requests = 1.5\n", "expected a whole number, 0 or more"),
            ("disk = 5\n", "expected text in quotes"),
            ("task = 5\n", "expected a list, written as [[task]]"),
            ("[[task]]\nname = \"a\"\nfua = 1\n", "s.toml:3: invalid type: integer `1`, expected true or false"),
            ("[[task]]\nname = \"a\"\n[[task]]\nname = \"a\"\n", "s.toml:4: task \"a\": two tasks have the name"),
            ("[[task]]\nname = \"read\"\n", "s.toml:2: task \"read\": name: expected another than"),
            ("[[task]]\nname = \"all\"\n", "read, write, flush or all"),
            ("[[task]]\nname = \"a\\u001b[2J\"\n", "without control characters, found \"a\\u{1b}[2J\""),
            ("[[task]]\nname = \"a\"\n\nreads = 7\n", "s.toml:4: reads of task \"a\""),
            ("[[task]]\nname = \"a\"\nrate = 0.0\n", "s.toml:3: task \"a\": rate: "),
            ("[[task]]\nname = \"a\"\nlike = \"b\"\n", "s.toml:3: task \"a\": like: unknown workload \"b\""),
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
    fn faults_that_only_show_on_the_disk_name_line_and_task() {
        for (lines, what) in [
            ("size = 0\n", "s.toml:7: task \"b\": request size in bytes"),
            ("place = \"window\"\ncylinders = 5\n", "task \"b\": "),
            ("tasks = 0\n", "s.toml:7: tasks of task \"b\": expected 1 to"),
        ] {
            let s = parse(&format!("seed = 1\n[[task]]\nname = \"a\"\n\n[[task]]\nname = \"b\"\n{lines}")).unwrap();
            let e = s.workload(&target(), 1).err().unwrap().to_string();
            assert!(e.starts_with("s.toml:") && e.contains(what), "{lines}: {e}");
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
