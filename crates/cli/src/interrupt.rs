//! Signals that ask a long run to stop in good order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headtime_host::whole_file;

/// Signals within this time of the first count as one.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Starts to handle Ctrl-C, SIGTERM and SIGHUP: the first one makes the returned flag true, a
/// second one ends the process at once. Signals that arrive together with the first count as the
/// first: `timeout` and terminals signal a process and its group.
pub fn flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let mut first: Option<Instant> = None;
    // Without a handler the run still works; it only leaves no result when it is stopped.
    let _ = ctrlc::set_handler(move || {
        told.store(true, Ordering::Relaxed);
        if first.get_or_insert_with(Instant::now).elapsed() > AT_ONCE {
            whole_file::discard_unfinished();
            std::process::exit(130);
        }
    });
    stop
}
