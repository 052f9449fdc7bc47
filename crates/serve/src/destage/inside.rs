//! Write caches within the server: one for each export that has one, between its clients and the
//! engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use headtime_sched::write_cache::{Counts, Limits};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::driver::{Driver, Left, Place};
use super::ingress::bridge;
use super::machine::Machine;
use crate::control::service::{ForCache, Service};
use crate::engine::inbox::{Outbox, inbox};
use crate::engine::messages::EngineMessage;
use crate::net::budget::MAX_REQUESTS;
use crate::note::Note;

/// Foreground requests in flight of all caches.
pub(crate) const MAX_CACHED: usize = 1024;

/// The exports with a cache.
#[derive(Clone, Debug, Default)]
pub struct Caches {
    /// Exports by number, and the limits of each cache.
    pub exports: Vec<(u32, Limits)>,
    /// Whether the scheduler has FILL; without it dirty blocks are written while there are no
    /// client requests.
    pub fills: bool,
}

/// The running caches.
#[derive(Debug)]
pub struct Working {
    outboxes: Arc<BTreeMap<u32, Outbox<EngineMessage>>>,
    drivers: Vec<(u32, JoinHandle<Left>)>,
    write_out: watch::Sender<bool>,
}

impl Caches {
    /// Starts the caches in front of the engine of this service.
    pub fn start(self, runtime: &Runtime, service: &Service, note: &Note) -> std::io::Result<Working> {
        let (write_out, stop) = watch::channel(false);
        let (mut outboxes, mut drivers) = (BTreeMap::new(), Vec::new());
        let most = (MAX_CACHED / self.exports.len().max(1)).max(1);
        for (export, limits) in self.exports {
            let (outbox, inbox) = inbox(MAX_REQUESTS, 0)?;
            let ingress = bridge(inbox)?;
            let longest = service.exports.offered()[export as usize].blocks.maximum;
            let machine = Machine::new(service.exports.sector_bytes, limits, self.fills);
            let (counts, counted) = watch::channel(Counts::default());
            service.cached.counts_in(export, counted);
            let driver = Driver::new(machine.with_requests_up_to(u64::from(longest)), ingress, counts);
            let driver = if self.fills { driver } else { driver.without_fill() };
            let place = Place::Inside(Box::new(Service { cache: Some(ForCache { export, most }), ..service.clone() }));
            let name = service.exports.specs[export as usize].name.clone();
            let note = Arc::clone(note);
            let said: Note =
                Arc::new(move |about, line| note(about, format!("write cache of export \"{name}\": {line}")));
            drivers.push((export, runtime.spawn(driver.run(place, stop.clone(), said))));
            outboxes.insert(export, outbox);
        }
        Ok(Working { outboxes: Arc::new(outboxes), drivers, write_out })
    }
}

impl Default for Working {
    fn default() -> Working {
        Working { outboxes: Arc::default(), drivers: Vec::new(), write_out: watch::channel(false).0 }
    }
}

impl Working {
    /// Returns the queue of each export with a cache.
    pub fn outboxes(&self) -> Arc<BTreeMap<u32, Outbox<EngineMessage>>> {
        Arc::clone(&self.outboxes)
    }

    /// Returns whether there are no caches.
    pub fn is_empty(&self) -> bool {
        self.drivers.is_empty()
    }

    /// Writes everything out, flushes, and ends the caches. Returns what is left, by export; `None`
    /// if the task panicked, which is a bug.
    pub async fn finish(self) -> Vec<(u32, Option<Left>)> {
        let _ = self.write_out.send(true);
        let mut left = Vec::new();
        for (export, driver) in self.drivers {
            left.push((export, driver.await.ok()));
        }
        // The forwarding thread ends with this.
        self.outboxes.values().for_each(|o| _ = o.send(EngineMessage::End));
        left
    }
}
