//! Protection of the server's write caches from clients of the control interface.
//!
//! A write cache holds acknowledged data. A write to the disk that bypasses the cache would be lost
//! when the cache writes its older data, and the cache can no longer write once its session is
//! closed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headtime_sched::write_cache::Counts;
use headtime_sched::{SessionId, TaskRange};
use tokio::sync::watch;

use crate::net::exports::Exports;

/// The exports that have a write cache, and the sessions of these caches.
#[derive(Clone, Debug, Default)]
pub struct Cached {
    exports: Arc<BTreeSet<u32>>,
    sessions: Arc<Mutex<BTreeSet<SessionId>>>,
    counts: Arc<Mutex<BTreeMap<u32, watch::Receiver<Counts>>>>,
}

impl Cached {
    /// Creates the set from export numbers.
    pub fn new(exports: impl Iterator<Item = u32>) -> Cached {
        Cached { exports: Arc::new(exports.collect()), ..Cached::default() }
    }

    /// Returns whether an export has a write cache.
    pub fn has(&self, export: u32) -> bool {
        self.exports.contains(&export)
    }

    /// Returns why a write to these ranges may not bypass the caches, or `None` if it may.
    pub fn forbids(&self, exports: &Exports, ranges: &[TaskRange]) -> Option<String> {
        let cached = |&&export: &&u32| {
            let spec = &exports.specs[export as usize];
            let own = TaskRange { lbn: spec.first, count: spec.sectors };
            ranges.iter().any(|r| r.overlaps(&own))
        };
        let name = &exports.specs[*self.exports.iter().find(cached)? as usize].name;
        Some(format!("export \"{name}\" has a write cache: only its own clients may write there"))
    }

    /// Returns the numbers of the exports that have a write cache.
    pub fn exports(&self) -> impl Iterator<Item = u32> {
        self.exports.iter().copied()
    }

    /// Registers the counters of an export's cache.
    pub fn counts_in(&self, export: u32, counts: watch::Receiver<Counts>) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).insert(export, counts);
    }

    /// Returns the dirty bytes in an export's cache, or `None` if it has no cache.
    pub fn dirty(&self, export: u32) -> Option<u64> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&export).map(|c| c.borrow().dirty)
    }

    /// Records a session that a cache has opened.
    pub fn opened(&self, session: SessionId) {
        self.sessions().insert(session);
    }

    /// Removes a session that has been closed.
    pub fn closed(&self, session: SessionId) {
        self.sessions().remove(&session);
    }

    /// Returns whether a session belongs to a cache.
    pub fn owns(&self, session: SessionId) -> bool {
        self.sessions().contains(&session)
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeSet<SessionId>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
