//! Long work without the interpreter's lock, which Ctrl-C ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use headtime_sim::observe::Observer;
use pyo3::prelude::*;

/// How often signals are looked for.
const EVERY: Duration = Duration::from_millis(50);

/// Runs `work` on a thread. When a signal raises an exception, `stop` becomes true; the work is to
/// end then, and its result is dropped.
pub(crate) fn watched<T: Send>(py: Python<'_>, stop: &AtomicBool, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| {
        thread::scope(|scope| {
            let (done, wait) = mpsc::channel();
            let worker = scope.spawn(move || {
                // The other end exists until this thread has ended.
                let _ = done.send(work());
            });
            let mut raised = None;
            let result = loop {
                match wait.recv_timeout(EVERY) {
                    Ok(result) => break Some(result),
                    Err(RecvTimeoutError::Disconnected) => break None,
                    Err(RecvTimeoutError::Timeout) if raised.is_none() => {
                        if let Err(e) = Python::attach(|py| py.check_signals()) {
                            stop.store(true, Ordering::Relaxed);
                            raised = Some(e);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
            };
            match (raised, result) {
                (Some(e), _) => Err(e),
                (None, Some(result)) => Ok(result),
                // The thread panicked, which is an error of headtime's.
                (None, None) => match worker.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => unreachable!("a thread that ended sent its result"),
                },
            }
        })
    })
}

/// Ends a run when the flag is true.
pub(crate) struct Stopper<'a>(pub(crate) &'a AtomicBool);

impl Observer for Stopper<'_> {
    fn stops(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
