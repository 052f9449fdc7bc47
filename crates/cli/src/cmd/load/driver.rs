//! Drives a suite in real time: hands due requests to threads of their application, and reports
//! completions to the suite.
//!
//! A kernel scheduler distinguishes applications by the issuing tasks (their I/O contexts). So each
//! application has threads of its own, and a program that starts again is a new application. A
//! reader and a program's start have one request in flight and one thread. A writer has several
//! requests in flight, each with a thread that waits for it: the kernel sees several applications
//! there, and no page-cache writeback.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use headtime_disk::{Kind, Time};
use headtime_serve::buffer::Aligned;
use headtime_sim::workload::Workload;
use headtime_sim::workload::suite::named::FIRST;
use headtime_sim::workload::suite::{Suite, actor_of};

use super::SECTOR;
use super::places::{Place, Places};

/// Initial interval in which long-running applications may be raised.
pub const RAISED_INTERVAL: Duration = Duration::from_nanos(FIRST.0);

/// The results of a load.
#[derive(Debug, Default)]
pub struct Done {
    /// Bytes of each class.
    pub bytes: Vec<u64>,
    /// Bytes of each class within [`RAISED_INTERVAL`].
    pub early: Vec<u64>,
    /// Number of failed requests.
    pub errors: u64,
    /// Duration.
    pub seconds: f64,
    /// Error of the first failed request.
    pub first_error: Option<io::Error>,
}

/// A request for an application's thread.
struct Task {
    place: Place,
    kind: Kind,
    /// Byte offset on the disk.
    at: u64,
    bytes: usize,
    class: u16,
}

/// A thread's report of a finished task.
struct Finished {
    owner: u32,
    class: u16,
    bytes: usize,
    result: io::Result<()>,
    /// The thread's sender, for the next task.
    thread: Thread,
}

/// The channel to a thread.
type Thread = Sender<(Task, Back)>;

/// A thread's own sender, passed with each task and returned with its result: the thread ends when
/// no sender is left.
struct Back(Thread);

fn carry_out(task: &Task) -> io::Result<()> {
    let at = task.at.checked_sub(task.place.start).filter(|at| at + task.bytes as u64 <= task.place.bytes);
    let at = at.ok_or_else(|| {
        io::Error::other(format!(
            "{} bytes at byte {} of the disk are not in this application's place",
            task.bytes, task.at
        ))
    })?;
    let mut data = Aligned::new(task.bytes);
    match task.kind {
        Kind::Read => task.place.file.read_exact_at(data.as_mut(), at),
        Kind::Write => task.place.file.write_all_at(data.as_ref(), at),
        Kind::Flush => task.place.file.sync_data(),
    }
}

/// Starts a thread for one application.
fn begin(owner: u32, finished: &Sender<Finished>) -> io::Result<Thread> {
    let (sender, tasks) = channel::<(Task, Back)>();
    let finished = finished.clone();
    let body = move |tasks: Receiver<(Task, Back)>| {
        while let Ok((task, Back(thread))) = tasks.recv() {
            let result = carry_out(&task);
            if finished.send(Finished { owner, class: task.class, bytes: task.bytes, result, thread }).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name(format!("application-{owner}")).spawn(move || body(tasks))?;
    Ok(sender)
}

/// Idle threads by application, and since when.
#[derive(Default)]
struct Idle(BTreeMap<u32, (Duration, Vec<Thread>)>);

impl Idle {
    fn take(&mut self, owner: u32) -> Option<Thread> {
        self.0.get_mut(&owner)?.1.pop()
    }

    fn put(&mut self, owner: u32, thread: Thread, now: Duration) {
        let of = self.0.entry(owner).or_default();
        of.0 = now;
        of.1.push(thread);
        // A finished program start issues no more requests; threads dropped here end.
        if self.0.len() > MOST_IDLE {
            self.0.retain(|_, of| now.saturating_sub(of.0) < FORGET_AFTER);
        }
    }
}

/// Beyond this number of idle applications, those idle for `FORGET_AFTER` are dropped.
const MOST_IDLE: usize = 1_000;
const FORGET_AFTER: Duration = Duration::from_secs(5);

/// Runs the suite for the given duration.
pub fn run(suite: &mut Suite, places: &Places, length: Duration) -> io::Result<Done> {
    let classes = suite.classes().len();
    let mut done = Done { bytes: vec![0; classes], early: vec![0; classes], ..Done::default() };
    let (sender, finished) = channel();
    let mut idle = Idle::default();
    let began = Instant::now();
    let now = || Time(began.elapsed().as_nanos() as u64);
    loop {
        while suite.next_due().is_some_and(|due| due <= now()) {
            let ask = suite.take().expect("a suite always has what is due");
            let place = places.of(actor_of(ask.owner)).clone();
            let (at, bytes) = (ask.lbn * SECTOR, ask.count as usize * SECTOR as usize);
            let thread = match idle.take(ask.owner) {
                Some(thread) => thread,
                None => begin(ask.owner, &sender)?,
            };
            let back = Back(thread.clone());
            let task = Task { place, kind: ask.kind, at, bytes, class: ask.class };
            thread.send((task, back)).map_err(|_| io::Error::other("an application's thread has ended"))?;
        }
        let left = length.saturating_sub(began.elapsed());
        if left.is_zero() || done.errors >= MOST_ERRORS {
            done.seconds = began.elapsed().as_secs_f64();
            return Ok(done);
        }
        let due = suite.next_due().map_or(left, |due| Duration::from_nanos(due.0).saturating_sub(began.elapsed()));
        match finished.recv_timeout(left.min(due)) {
            Ok(f) => {
                suite.finished(f.owner, now());
                match f.result {
                    Ok(()) => {
                        done.bytes[usize::from(f.class)] += f.bytes as u64;
                        if began.elapsed() < RAISED_INTERVAL {
                            done.early[usize::from(f.class)] += f.bytes as u64;
                        }
                    }
                    Err(e) => {
                        done.errors += 1;
                        done.first_error.get_or_insert(e);
                    }
                }
                idle.put(f.owner, f.thread, began.elapsed());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("a sender is kept here"),
        }
    }
}

/// Number of errors that ends a load: failing requests would be reissued without delay.
const MOST_ERRORS: u64 = 100;
