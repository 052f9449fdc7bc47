//! The served disk, as the control interface sees it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::caches::Cached;
use super::counts;
use super::layouts::Layouts;
use super::v1::Snapshot;
use crate::engine::inbox::{Outbox, SendError};
use crate::engine::messages::EngineMessage;
use crate::net::budget::Budget;
use crate::net::exports::Exports;
use crate::streams::Live;

/// The served disk and the handle to its engine.
#[derive(Clone, Debug)]
pub struct Service {
    /// The drive's name.
    pub disk: String,
    /// The disk's identifier.
    pub disk_id: String,
    /// Sectors of the disk.
    pub sectors: u64,
    /// The exports.
    pub exports: Exports,
    /// Whether background work is enabled.
    pub fills: bool,
    /// The handle to the engine.
    pub engine: Outbox<EngineMessage>,
    /// The budget shared by all clients.
    pub budget: Budget,
    /// The names that clients gave their sessions.
    pub names: Arc<Mutex<BTreeMap<u32, String>>>,
    /// The streams; `None` if the server has no streams.
    pub streams: Option<Live>,
    /// The exports with a write cache of this server.
    pub cached: Cached,
    /// The reorganised exports.
    pub layouts: Layouts,
    /// Set if this service is used by a write cache of this server and not by clients.
    pub cache: Option<ForCache>,
}

/// The differences of a write cache's session from a client's.
#[derive(Clone, Copy, Debug)]
pub struct ForCache {
    /// The export's number. The cache's requests count as the export's.
    pub export: u32,
    /// Foreground requests in flight at a time.
    pub most: usize,
}

impl Service {
    /// Returns the owner number of requests over this interface.
    pub fn owner(&self) -> u32 {
        self.cache.map_or(self.exports.specs.len() as u32, |c| c.export)
    }

    /// Returns the counters, as a message.
    ///
    /// # Errors
    /// [`SendError::Ended`].
    pub async fn snapshot(&self) -> Result<Snapshot, SendError> {
        counts::take(&self.engine, &self.exports, &self.names, &self.cached).await
    }
}
