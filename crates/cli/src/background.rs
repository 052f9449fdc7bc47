//! What `headtime scrub`, `backup` and `task` share: flags, signals, the progress bar.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use headtime_sched::tasks::Range;
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

/// The lowest priority that the kernel has for ordinary programs.
const LOWEST: i32 = 19;

/// `--priority N`, for commands to flatten into their flags.
#[derive(Clone, Copy, Debug, Args)]
pub struct Priority {
    /// Its part of what is free, in proportion to that of other sessions: 1 to 1000000
    #[arg(long, value_name = "N", default_value = "100", value_parser = figures::priority)]
    pub priority: u32,
}

/// `--unit SECTORS`, likewise.
#[derive(Clone, Copy, Debug, Args)]
pub struct Unit {
    /// Sectors that are read, written and compared as one [default: 8 KiB, more on disks beyond 512
    /// GiB]
    #[arg(long, value_name = "SECTORS", value_parser = figures::unit)]
    pub unit: Option<u32>,
}

/// How much of the disk's time it may have.
#[derive(Debug, Args)]
pub struct Rate {
    #[command(flatten)]
    pub priority: Priority,
    /// Keep up so many MB/s at least: what gaps do not bring is read as foreground work
    #[arg(long, value_name = "MB/S", value_parser = figures::mb_s)]
    pub at_least: Option<f64>,
    /// Be done within a time (90m, 36h, 2d) or at a time of day in UTC (06:30): what gaps do not
    /// bring is read as foreground work
    #[arg(long, value_name = "DURATION|TIME", value_parser = figures::done_by)]
    pub done_by: Option<Duration>,
}

impl Rate {
    /// A job with these.
    pub fn job(&self, control: PathBuf, name: &str) -> Job {
        let floor = Floor { bytes_s: self.at_least.map(|mb| mb * 1e6), within: self.done_by };
        Job { priority: self.priority.priority, floor, ..Job::new(control, name) }
    }

    /// Lowers the processor priority, unless a rate or an end was asked for: otherwise the
    /// background application would slow down programs that compute. Call it before [`run`], whose
    /// threads inherit the priority.
    pub fn yield_processor(&self) {
        if self.at_least.is_none() && self.done_by.is_none() {
            // A process that may not lower its priority keeps it.
            let _ = rustix::process::nice(LOWEST);
        }
    }
}

/// Runs an application; SIGINT, SIGTERM and SIGHUP ask it to stop, and it does so in good order. A
/// second one is not waited for, nor one that comes while the result is said to a reader that does
/// not read.
pub fn run<T>(app: impl AsyncFnOnce(watch::Receiver<bool>) -> T) -> Result<T, Failure> {
    let failed = |e| Failure::Input(format!("threads for the connection: {e}"));
    if !std::io::stderr().is_terminal() {
        // Lines that are not read must not keep it from its work, nor from ending.
        log::by_a_thread();
    }
    // One thread for the connection while this one writes files. It lasts as long as the program,
    // which hears signals by it.
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
            // Once the application has ended, there is nothing that could stop.
            if times > 0 || tell.send(true).is_err() {
                std::process::exit(130);
            }
        }
    });
    Ok(runtime.block_on(app(stop)))
}

/// The exit status of what an application did not reach: a lost image is a result, everything else
/// a fault.
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

/// The bar, and notes when something changes that is worth a line in a log.
pub struct Watcher {
    bar: Bar,
    what: String,
    state: State,
}

impl Watcher {
    /// Over so many bytes.
    pub fn new(what: &str, bytes: u64) -> Watcher {
        Watcher { bar: Bar::told(bytes, what), what: what.into(), state: State::Working }
    }

    /// It is so far.
    pub fn see(&mut self, s: &Status) {
        self.bar.spread(s.total);
        self.bar.reach(s.done);
        let how = match (s.state, s.left) {
            (State::Paused, _) => "paused".to_string(),
            (State::Away, _) => "the server is away".to_string(),
            (State::Working, None) => format!("{:.2} MB/s", s.lately / 1e6),
            (State::Working, Some(left)) => format!("{:.2} MB/s, {} left", s.lately / 1e6, time(left.as_secs_f64())),
        };
        let promoted = match s.promoted {
            0 => String::new(),
            p => format!(", {:.0}% promoted", percent(p, s.done)),
        };
        let bad = match s.unreadable {
            0 => String::new(),
            n => format!(", {n} sectors unreadable"),
        };
        self.bar.say(&format!("{how}{promoted}{bad}"));
        if s.state != self.state {
            self.state = s.state;
            let session = s.session.map_or(String::new(), |n| format!(" (session {n})"));
            self.bar.note(&match s.state {
                State::Working => format!("{}: goes on{session}", self.what),
                State::Paused => format!("{}: paused by somebody{session}", self.what),
                State::Away => format!("{}: the server is away; waiting for it", self.what),
            });
        }
    }
}

/// `LBN+COUNT`.
pub fn range(text: &str) -> Result<Range, String> {
    let parsed = text.split_once('+').and_then(|(lbn, count)| Some((lbn.parse().ok()?, count.parse().ok()?)));
    match parsed {
        Some((lbn, count)) if count > 0 => Ok(Range { lbn, count }),
        _ => Err("expected LBN+COUNT, both in sectors, such as 2048+64".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_a_first_sector_and_a_count() {
        assert_eq!(range("2048+64"), Ok(Range { lbn: 2048, count: 64 }));
        for wrong in ["", "1", "1+", "1+0", "-1+4", "1+2+3", "99999999999999999999+1"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
