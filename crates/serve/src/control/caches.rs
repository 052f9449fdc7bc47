//! What clients of the control interface may not do beside the server's own write caches.
//!
//! A cache holds data that its export's clients were told is written. A write to the disk past it
//! would be lost when the cache writes its own, older data; and without its session it could write
//! nothing any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headtime_sched::tasks::{Range, SessionId};
use headtime_sched::write_cache::Counts;
use tokio::sync::watch;

use crate::net::exports::Exports;

/// The exports that have a cache, and the sessions of the caches.
#[derive(Clone, Debug, Default)]
pub struct Cached {
    exports: Arc<BTreeSet<u32>>,
    sessions: Arc<Mutex<BTreeSet<SessionId>>>,
    counts: Arc<Mutex<BTreeMap<u32, watch::Receiver<Counts>>>>,
}

impl Cached {
    /// Of these exports, by their numbers.
    pub fn new(exports: impl Iterator<Item = u32>) -> Cached {
        Cached { exports: Arc::new(exports.collect()), ..Cached::default() }
    }

    /// Whether an export has a cache.
    pub fn has(&self, export: u32) -> bool {
        self.exports.contains(&export)
    }

    /// Why nothing may be written to these ranges past a cache; `None` when it may.
    pub fn forbids(&self, exports: &Exports, ranges: &[Range]) -> Option<String> {
        let cached = |&&export: &&u32| {
            let spec = &exports.specs[export as usize];
            let own = Range { lbn: spec.first, count: spec.sectors };
            ranges.iter().any(|r| r.overlaps(&own))
        };
        let name = &exports.specs[*self.exports.iter().find(cached)? as usize].name;
        Some(format!("export \"{name}\" has a write cache: only its own clients may write there"))
    }

    /// The exports that have a cache, by their numbers.
    pub fn exports(&self) -> impl Iterator<Item = u32> {
        self.exports.iter().copied()
    }

    /// The cache of this export counts there.
    pub fn counts_in(&self, export: u32, counts: watch::Receiver<Counts>) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).insert(export, counts);
    }

    /// Bytes in the cache of an export that are not on the disk; `None` where it has none.
    pub fn dirty(&self, export: u32) -> Option<u64> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&export).map(|c| c.borrow().dirty)
    }

    /// A cache has opened this session.
    pub fn opened(&self, session: SessionId) {
        self.sessions().insert(session);
    }

    /// And closed it.
    pub fn closed(&self, session: SessionId) {
        self.sessions().remove(&session);
    }

    /// Whether a session is a cache's.
    pub fn owns(&self, session: SessionId) -> bool {
        self.sessions().contains(&session)
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeSet<SessionId>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
