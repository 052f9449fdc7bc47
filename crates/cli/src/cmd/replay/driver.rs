//! Sends the requests of a workload to a device when they are due.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use headtime_disk::{Dur, Kind, Time};
use headtime_serve::buffer::Aligned;
use headtime_sim::stats::histogram::Histogram;
use headtime_sim::workload::{Ask, Workload, WorkloadError};

use super::SECTOR;
use crate::cmd::load::places::Place;

/// When a replay ends, and what it may do.
pub struct Limits {
    /// The most requests under way.
    pub depth: usize,
    /// The longest duration.
    pub seconds: Option<Duration>,
    /// The most requests.
    pub requests: u64,
    /// Writes are written.
    pub writes: bool,
}

/// What was done.
#[derive(Default)]
pub struct Done {
    /// Requests finished.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Writes that were not written.
    pub left_out: u64,
    /// Requests that failed.
    pub errors: u64,
    /// The first failure.
    pub first_error: Option<io::Error>,
    /// From due to done.
    pub response: Histogram,
    /// From sent to done.
    pub service: Histogram,
    /// From due to sent.
    pub late: Histogram,
    /// The duration.
    pub seconds: f64,
}

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace cannot be read on.
    #[error(transparent)]
    Trace(#[from] WorkloadError),
    /// A thread cannot be started.
    #[error("a thread for requests: {0}")]
    Thread(io::Error),
}

/// How long a signal may wait to be seen.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Failures that end a replay: a device that is gone would fail them all.
const MOST_ERRORS: u64 = 100;

struct Finished {
    ask: Ask,
    sent: Time,
    done: Time,
    result: io::Result<()>,
}

/// Runs a workload on a device, and calls `see` with the number of finished requests.
pub fn run(
    workload: &mut dyn Workload,
    place: &Place,
    limits: &Limits,
    stop: &AtomicBool,
    see: &mut dyn FnMut(u64),
) -> Result<Done, ReplayError> {
    let (give, asks) = channel::<Ask>();
    let (report, finished) = channel::<Finished>();
    let asks = Arc::new(Mutex::new(asks));
    let began = Instant::now();
    let now = move || Time(began.elapsed().as_nanos() as u64);
    for n in 0..limits.depth {
        let (asks, report, place) = (Arc::clone(&asks), report.clone(), place.clone());
        let work = move || {
            while let Ok(ask) = next(&asks) {
                let sent = now();
                let result = carry_out(&place, &ask);
                if report.send(Finished { ask, sent, done: now(), result }).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name(format!("request-{n}")).spawn(work);
        thread.map_err(ReplayError::Thread)?;
    }
    drop(report);
    let mut done = Done::default();
    let mut under_way = 0;
    let mut sent = 0;
    loop {
        let over = stop.load(Ordering::Relaxed)
            || done.errors >= MOST_ERRORS
            || sent >= limits.requests
            || limits.seconds.is_some_and(|most| began.elapsed() >= most);
        // Those that do not fit wait here, and count as late from when they were due.
        while !over
            && sent < limits.requests
            && under_way < limits.depth
            && workload.next_due().is_some_and(|due| due <= now())
        {
            let ask = workload.take()?;
            if ask.kind == Kind::Write && !limits.writes {
                done.left_out += 1;
                workload.completed(&ask, now());
                continue;
            }
            give.send(ask).expect("threads wait until this end is gone");
            (under_way, sent) = (under_way + 1, sent + 1);
        }
        if under_way == 0 && (over || workload.next_due().is_none()) {
            done.seconds = began.elapsed().as_secs_f64();
            return Ok(done);
        }
        let due = workload.next_due().filter(|_| !over && under_way < limits.depth);
        let wait = due.map_or(LONGEST_WAIT, |due| Duration::from_nanos(due.0).saturating_sub(began.elapsed()));
        match finished.recv_timeout(wait.min(LONGEST_WAIT)) {
            Ok(f) => {
                under_way -= 1;
                workload.completed(&f.ask, now());
                done.count(f);
                see(done.requests);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("threads wait until the requests' end is gone"),
        }
    }
}

/// Waits for the next request.
fn next(asks: &Mutex<Receiver<Ask>>) -> Result<Ask, std::sync::mpsc::RecvError> {
    asks.lock().unwrap_or_else(PoisonError::into_inner).recv()
}

impl Done {
    fn count(&mut self, f: Finished) {
        let since = |from: Time, to: Time| to.saturating_since(from);
        self.requests += 1;
        match f.result {
            Ok(()) => self.bytes += u64::from(f.ask.count) * SECTOR,
            Err(e) => {
                self.errors += 1;
                self.first_error.get_or_insert(e);
            }
        }
        self.response.record(since(f.ask.due, f.done));
        self.service.record(since(f.sent, f.done));
        self.late.record(if f.sent > f.ask.due { since(f.ask.due, f.sent) } else { Dur::ZERO });
    }
}

fn carry_out(place: &Place, ask: &Ask) -> io::Result<()> {
    let at = ask.lbn * SECTOR;
    let mut data = Aligned::new(ask.count as usize * SECTOR as usize);
    match ask.kind {
        Kind::Read => place.file.read_exact_at(data.as_mut(), at),
        Kind::Write => place.file.write_all_at(data.as_ref(), at).and_then(|()| match ask.fua {
            true => place.file.sync_data(),
            false => Ok(()),
        }),
        Kind::Flush => place.file.sync_data(),
    }
}
