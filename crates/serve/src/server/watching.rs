//! Checks of the drive while a server runs.

use std::time::{Duration, Instant};

use crate::engine::inbox::Outbox;
use crate::engine::messages::EngineMessage;
use crate::note::{About, Note};

/// The interval of the checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The shortest interval between reports of commands that exceeded the worst case.
const OVERDUE_AGAIN: Duration = Duration::from_secs(10);

/// Reports deviations of the drive until the engine ends: a service time above the worst case, with
/// the last such command, or an unexpected state of its write cache.
pub(super) async fn watch(engine: Outbox<EngineMessage>, note: Note) {
    let (mut said, mut cache, mut quiet_until) = (0, None, Instant::now());
    while let Ok(s) = engine.snapshot().await {
        if let (times, Some(last)) = s.overdue
            && times > said
            && Instant::now() >= quiet_until
        {
            let what = "what streams are promised does not hold";
            note(About::Warning, format!("{last} ({times} times since the start): {what}"));
            said = times;
            quiet_until = Instant::now() + OVERDUE_AGAIN;
        }
        if s.write_cache != cache {
            cache = s.write_cache;
            let (about, said) = match cache {
                Some(true) => (About::Warning, HIDDEN_CACHE),
                Some(false) => (About::Server, NO_CACHE),
                None => (About::Server, "the drive's write cache is again as its profile or the kernel says"),
            };
            note(about, said.into());
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

const HIDDEN_CACHE: &str = "the drive answers writes before they can be on the disk: its write cache is on, although \
    its profile or the kernel says that it is off. Gaps are not filled while the cache may hold data, and what was not \
    flushed is lost in a power failure";
const NO_CACHE: &str = "the drive answers writes when they are on the disk: its write cache is off, although its \
    profile or the kernel says that it is on";
