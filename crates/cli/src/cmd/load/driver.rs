//! Drives a suite in real time: what is due is handed to a thread of the application's own, and
//! what is finished is told.
//!
//! A kernel's scheduler knows applications by the tasks that ask (their I/O contexts). So each
//! application has threads that ask for nobody else; one that starts again is a new one. A reader
//! and a program's start have one request under way and one thread. A writer has several, each of
//! them waited for by a thread: to the kernel these are several applications, and none of it is a
//! page cache's.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use headtime_disk::command::Kind;
use headtime_disk::time::Time;
use headtime_serve::buffer::Aligned;
use headtime_sim::workload::Workload;
use headtime_sim::workload::suite::named::FIRST;
use headtime_sim::workload::suite::{Suite, actor_of};

use super::SECTOR;
use super::places::{Place, Places};

/// Until then applications may be raised that are there for long.
pub const EARLY: Duration = Duration::from_nanos(FIRST.0);

/// What was done.
#[derive(Debug, Default)]
pub struct Done {
    /// Bytes of each class.
    pub bytes: Vec<u64>,
    /// Of these, those within [`EARLY`].
    pub early: Vec<u64>,
    /// Requests that failed.
    pub errors: u64,
    /// How long it ran.
    pub seconds: f64,
    /// How the first of them did.
    pub first_error: Option<io::Error>,
}

/// A request for an application's thread.
struct Task {
    place: Place,
    kind: Kind,
    /// Bytes of the disk.
    at: u64,
    bytes: usize,
    class: u16,
}

/// What a thread says when it is through with one.
struct Finished {
    owner: u32,
    class: u16,
    bytes: usize,
    result: io::Result<()>,
    /// Hands it the next.
    thread: Thread,
}

/// The way to a thread.
type Thread = Sender<(Task, Back)>;

/// Goes to the thread with each task and comes back with its result, so that it ends when nobody
/// has a task for it any more.
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

/// A thread that asks for one application.
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

/// Threads that wait for something to do, by application, and since when.
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
        // A start that is over asks for nothing any more; threads that are forgotten here end.
        if self.0.len() > MOST_IDLE {
            self.0.retain(|_, of| now.saturating_sub(of.0) < FORGOTTEN);
        }
    }
}

/// Beyond so many idle applications those that were served last so long ago are forgotten.
const MOST_IDLE: usize = 1_000;
const FORGOTTEN: Duration = Duration::from_secs(5);

/// Runs it for so long.
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
                        if began.elapsed() < EARLY {
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

/// A load that fails so often is over: it would ask as fast as it is refused.
const MOST_ERRORS: u64 = 100;
