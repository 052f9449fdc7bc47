//! Parts common to `headtime scrub`, `backup` and `task`: flags, signals, the progress bar.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use headtime_sched::TaskRange;
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::job::{Job, State, Status};
use headtime_serve::apps::pace::Floor;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::Failure;
use crate::screen::Bar;
use crate::words::{percent, time};
use crate::{figures, log, screen};

/// The lowest processor priority (niceness) of an ordinary process.
const MAX_NICENESS: i32 = 19;

/// `--priority N`, flattened into the flags of commands.
#[derive(Clone, Copy, Debug, Args)]
pub struct Priority {
    /// Share of free bandwidth, in proportion to the priorities of other sessions: 1 to 1000000
    #[arg(long, value_name = "N", default_value = "100", value_parser = figures::priority)]
    pub priority: u32,
}

/// `--unit SECTORS`, flattened into the flags of commands.
#[derive(Clone, Copy, Debug, Args)]
pub struct Unit {
    /// Sectors read, written and compared as one unit [default: 8 KiB, more on disks beyond 512
    /// GiB]
    #[arg(long, value_name = "SECTORS", value_parser = figures::unit)]
    pub unit: Option<u32>,
}

/// The share of the disk's time that a background application gets.
#[derive(Debug, Args)]
pub struct Rate {
    #[command(flatten)]
    pub priority: Priority,
    /// Minimum rate in MB/s: what rotational gaps do not deliver is read as foreground work
    #[arg(long, value_name = "MB/S", value_parser = figures::mb_s)]
    pub at_least: Option<f64>,
    /// Highest rate in MB/s, in gaps and idle time
    #[arg(long, value_name = "MB/S", value_parser = figures::mb_s, conflicts_with = "done_by",
        allow_negative_numbers = true)]
    pub at_most: Option<f64>,
    /// Deadline: within a duration (90m, 36h, 2d) or at a time of day in UTC (06:30); what
    /// rotational gaps do not deliver is read as foreground work
    #[arg(long, value_name = "DURATION|TIME", value_parser = figures::done_by)]
    pub done_by: Option<Duration>,
}

impl Rate {
    /// Returns a job with this priority and these rates.
    ///
    /// # Errors
    /// The highest rate is below the lowest.
    pub fn job(&self, control: PathBuf, name: &str) -> Result<Job, Failure> {
        if let (Some(least), Some(most)) = (self.at_least, self.at_most)
            && most < least
        {
            return Err(Failure::Input(format!(
                "--at-most: expected at least {least}, as --at-least says, found {most}"
            )));
        }
        let floor = Floor { bytes_s: self.at_least.map(|mb| mb * 1e6), within: self.done_by };
        Ok(Job { priority: self.priority.priority, max_mb_s: self.at_most, floor, ..Job::new(control, name) })
    }

    /// Lowers the processor priority, unless a minimum rate or a deadline was given, so that the
    /// background application does not slow down computing processes. Must be called before
    /// [`run`], whose threads inherit the priority.
    pub fn yield_processor(&self) {
        if self.at_least.is_none() && self.done_by.is_none() {
            // A process without permission to change its priority keeps it.
            let _ = rustix::process::nice(MAX_NICENESS);
        }
    }
}

/// Runs an application. SIGINT, SIGTERM and SIGHUP request an orderly stop. A second signal, or one
/// that arrives while the result is written to a stalled reader, ends the process at once.
pub fn run<T>(app: impl AsyncFnOnce(watch::Receiver<bool>) -> T) -> Result<T, Failure> {
    let failed = |e| Failure::Input(format!("threads for the connection: {e}"));
    if !std::io::stderr().is_terminal() {
        // A stalled stderr must not delay the application or its exit.
        log::by_a_thread();
    }
    // One thread for the connection; this thread writes files. The runtime lives as long as the
    // process because it receives the signals.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(failed)?;
    let runtime: &'static Runtime = Box::leak(Box::new(runtime));
    let (tell, stop) = watch::channel(false);
    let heard = {
        let _inside = runtime.enter();
        let heard = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        heard.into_iter().collect::<Result<Vec<_>, _>>()
    };
    let mut heard = heard.map_err(|e| Failure::Input(format!("signals cannot be heard: {e}")))?;
    runtime.spawn(async move {
        for times in 0.. {
            let [a, b, c] = &mut heard[..] else { return };
            tokio::select! {
                _ = a.recv() => {}
                _ = b.recv() => {}
                _ = c.recv() => {}
            }
            // `send` fails once the application has ended: exit.
            if times > 0 || tell.send(true).is_err() {
                std::process::exit(130);
            }
        }
    });
    Ok(runtime.block_on(app(stop)))
}

/// Maps an application's error to an exit status: a lost image or a disk that no longer answers is
/// a failed check, any other error a fault.
pub fn failure(e: AppError) -> Failure {
    match e {
        AppError::Lost(_) | AppError::Gone => {
            screen::note(&e.to_string());
            Failure::Check
        }
        AppError::Stopped => Failure::Stopped,
        e => Failure::input(e),
    }
}

/// A progress bar, with a log line for each state change.
pub struct Watcher {
    bar: Bar,
    what: String,
    state: State,
}

impl Watcher {
    /// Creates a watcher of a job of `bytes` bytes.
    pub fn new(what: &str, bytes: u64) -> Watcher {
        Watcher { bar: Bar::with_message(bytes, what), what: what.into(), state: State::Working }
    }

    /// Shows the current status.
    pub fn see(&mut self, s: &Status) {
        self.bar.spread(s.total);
        self.bar.reach(s.done);
        self.bar.say(&words(s));
        // A slow destination is the usual case. It comes and goes, so it is shown and not logged.
        let state = if s.state.is_working() { State::Working } else { s.state };
        if state != self.state {
            self.state = state;
            let session = s.session.map_or(String::new(), |n| format!(" (session {n})"));
            self.bar.note(&match state {
                State::Working | State::AwaitsDestination => format!("{}: goes on{session}", self.what),
                State::Paused => format!("{}: paused by an operator{session}", self.what),
                State::Away => format!("{}: the server is away; waiting for it", self.what),
            });
        }
    }
}

/// Describes a status in the progress line.
fn words(s: &Status) -> String {
    let rate = || match s.left {
        None => format!("{:.2} MB/s", s.lately / 1e6),
        Some(left) => format!("{:.2} MB/s, {} left", s.lately / 1e6, time(left.as_secs_f64())),
    };
    let how = match s.state {
        State::Paused => "paused".to_string(),
        State::Away => "the server is away".to_string(),
        State::Working => rate(),
        State::AwaitsDestination => format!("{}, waits for the destination", rate()),
    };
    let promoted = match s.promoted {
        0 => String::new(),
        p => format!(", {:.0}% promoted", percent(p, s.done)),
    };
    let bad = match s.unreadable {
        0 => String::new(),
        n => format!(", {n} sectors unreadable"),
    };
    format!("{how}{promoted}{bad}")
}

/// Parses `LBN+COUNT`.
pub fn range(text: &str) -> Result<TaskRange, String> {
    let parsed = text.split_once('+').and_then(|(lbn, count)| Some((lbn.parse().ok()?, count.parse().ok()?)));
    match parsed {
        Some((lbn, count)) if count > 0 => Ok(TaskRange { lbn, count }),
        _ => Err("expected LBN+COUNT, both in sectors, such as 2048+64".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_line_says_what_a_job_waits_for() {
        let working = Status {
            state: State::Working,
            session: Some(1),
            done: 200,
            total: 1_000,
            lately: 2e6,
            left: Some(Duration::from_secs(90)),
            promoted: 20,
            unreadable: 0,
        };
        let of = |state| words(&Status { state, ..working });
        let rate = words(&Status { promoted: 0, ..working });
        assert_eq!(of(State::Working), format!("{rate}, 10% promoted"));
        assert_eq!(of(State::AwaitsDestination), format!("{rate}, waits for the destination, 10% promoted"));
        assert!(rate.starts_with("2.00 MB/s, ") && rate.ends_with(" left"), "{rate}");
        let bad = Status { state: State::Away, promoted: 0, unreadable: 3, ..working };
        assert_eq!(words(&bad), "the server is away, 3 sectors unreadable");
    }

    #[test]
    fn ranges_are_a_first_sector_and_a_count() {
        assert_eq!(range("2048+64"), Ok(TaskRange { lbn: 2048, count: 64 }));
        for wrong in ["", "1", "1+", "1+0", "-1+4", "1+2+3", "99999999999999999999+1"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
