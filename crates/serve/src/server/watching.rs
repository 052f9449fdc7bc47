//! What is looked at while a server works.

use std::time::{Duration, Instant};

use super::snapshot;
use crate::engine::inbox::Outbox;
use crate::engine::telling::Telling;
use crate::note::{About, Note};

/// How often it is looked whether the drive is what it is taken to be.
const LOOK: Duration = Duration::from_millis(500);
/// How long nothing more is said of commands that took longer than the worst case.
const OVERDUE_AGAIN: Duration = Duration::from_secs(10);

/// Reports where the drive is not what it is taken to be, until the engine ends: it took longer
/// than its worst case, with the last command that showed it, or its write cache is in another
/// state.
pub(super) async fn watch(engine: Outbox<Telling>, note: Note) {
    let (mut said, mut cache, mut quiet_until) = (0, None, Instant::now());
    while let Ok(s) = snapshot(&engine).await {
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
        tokio::time::sleep(LOOK).await;
    }
}

const HIDDEN_CACHE: &str = "the drive answers writes before they can be on the disk: its write cache is on, although \
    its profile or the kernel says that it is off. Gaps are not filled while the cache may hold data, and what was not \
    flushed is lost in a power failure";
const NO_CACHE: &str = "the drive answers writes when they are on the disk: its write cache is off, although its \
    profile or the kernel says that it is on";
