//! A sweep on the threads of this process.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::{Chunk, Progress, Sweep, SweepError};
use crate::grid::Profiles;

/// How often progress is reported at least.
const EVERY: Duration = Duration::from_millis(250);

/// Runs the rest of a sweep on `threads` threads until it is done or `stop` becomes true, and calls
/// `see` as it goes on. All finished rows are stored, also when it is stopped or fails.
///
/// # Errors
/// Rows cannot be stored.
pub fn on_threads(
    sweep: &mut Sweep,
    threads: usize,
    stop: &AtomicBool,
    see: &mut dyn FnMut(&Progress),
) -> Result<(), SweepError> {
    let grid = sweep.grid().clone();
    let quit = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let (done, finished) = mpsc::channel::<(usize, Range<u64>, Chunk)>();
        let mut workers = Vec::new();
        for worker in 0..threads.max(1) {
            // One chunk waits while another is run, so no worker waits for the store.
            let (give, take) = mpsc::sync_channel::<Range<u64>>(2);
            let (done, grid, quit) = (done.clone(), &grid, &quit);
            scope.spawn(move || {
                let mut profiles = Profiles::default();
                for points in take {
                    let chunk = Chunk::run(grid, points.clone(), &mut profiles, quit);
                    if done.send((worker, points, chunk)).is_err() {
                        return;
                    }
                }
            });
            workers.push(give);
        }
        drop(done);
        let mut under_way = 0usize;
        let hand_out = |sweep: &mut Sweep, worker: usize, under_way: &mut usize| {
            if let Some(points) = sweep.take() {
                *under_way += 1;
                workers[worker].send(points).expect("a worker ends after its sender");
            }
        };
        // The first chunks tell how long a point takes.
        (0..threads.max(1)).for_each(|worker| hand_out(sweep, worker, &mut under_way));
        let mut primed = vec![false; threads.max(1)];
        while under_way > 0 {
            if stop.load(Ordering::Relaxed) {
                quit.store(true, Ordering::Relaxed);
            }
            match finished.recv_timeout(EVERY) {
                Ok((worker, points, chunk)) => {
                    under_way -= 1;
                    if let Err(e) = sweep.accept(&points, chunk) {
                        quit.store(true, Ordering::Relaxed);
                        return Err(e);
                    }
                    if !quit.load(Ordering::Relaxed) {
                        let more = if std::mem::replace(&mut primed[worker], true) { 1 } else { 2 };
                        (0..more).for_each(|_| hand_out(sweep, worker, &mut under_way));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("workers wait for chunks until their senders end"),
            }
            see(&sweep.progress());
        }
        Ok(())
    });
    // What was finished before an error is kept, if the disk takes it.
    let flushed = sweep.flush();
    result.and(flushed)
}
