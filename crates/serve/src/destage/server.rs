//! The destaging server: clients, a session with the server, and an orderly shutdown.

use std::sync::Arc;
use std::time::Duration;

use headtime_nbd::Limits as ClientLimits;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::driver::{Driver, Left, Place, Upstream, UpstreamError};
use super::ingress::bridge;
use super::machine::Machine;
use super::{Counts, Limits};
use crate::engine::inbox::{Outbox, inbox};
use crate::engine::messages::EngineMessage;
use crate::net::address::{Address, ListenError};
use crate::net::budget::{Budget, MAX_REQUESTS};
use crate::net::connection::Shared;
use crate::net::descriptors::Sockets;
use crate::net::exports::{ExportError, ExportSpec, Exports};
use crate::net::listener::accept;
use crate::note::Note;

/// Bytes in flight of all clients; with the cache, the most memory that is used.
const MAX_UNDER_WAY: u64 = 64 << 20;
/// Clients at a time.
const MAX_CLIENTS: usize = 64;
/// The time limit for negotiation.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The time for clients to read their last answers at shutdown. A request may wait for the disk
/// during that time.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// The settings.
pub struct Setup {
    /// The export that is written to.
    pub upstream: Upstream,
    /// The addresses for NBD clients.
    pub listen: Vec<Address>,
    /// The limits of the cache.
    pub limits: Limits,
    /// Called for conditions that an operator should know.
    pub note: Note,
}

impl Setup {
    /// Returns the listening sockets.
    pub fn sockets(&self) -> Sockets {
        Sockets { nbd: self.listen.len(), clients: MAX_CLIENTS, control: false, metrics: false, web: false }
    }
}

/// Why it did not start or did not end properly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DestageError {
    /// The export cannot be destaged to.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// It cannot listen on an address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The server's description of the export is invalid.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A system resource is missing.
    #[error("{0}: {1}")]
    System(&'static str, std::io::Error),
    /// A task panicked: a bug.
    #[error("the cache failed; what was not flushed may be lost")]
    Panicked,
}

/// A running export with a cache.
#[derive(Debug)]
pub struct Destage {
    runtime: Runtime,
    driver: JoinHandle<Left>,
    listeners: Vec<JoinHandle<()>>,
    no_more_clients: watch::Sender<bool>,
    write_out: watch::Sender<bool>,
    counts: watch::Receiver<Counts>,
    ports: Vec<u16>,
    outbox: Outbox<EngineMessage>,
}

impl Destage {
    /// Queries the server and listens.
    pub fn start(setup: Setup) -> Result<Destage, DestageError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("headtime-destage")
            .enable_all()
            .build()
            .map_err(|e| DestageError::System("threads", e))?;
        let Setup { upstream, listen, limits, note } = setup;
        let found = runtime.block_on(upstream.look())?;
        let (export, info) = &found;
        let spec = ExportSpec {
            name: export.name.clone(),
            description: format!("{}, with a write-back cache", info.disk),
            first: export.first,
            sectors: export.sectors,
            read_only: false,
            weight: export.weight,
        };
        let sector_bytes = info.sector_bytes;
        let exports = Exports::new(vec![spec], info.sectors, sector_bytes)?;
        let mut listening = Vec::with_capacity(listen.len());
        for address in &listen {
            listening.push(runtime.block_on(address.listen())?);
        }
        let ports = listening.iter().filter_map(|l| l.port()).collect();
        let (outbox, inbox) = inbox(MAX_REQUESTS, 0).map_err(|e| DestageError::System("eventfd", e))?;
        let ingress = bridge(inbox).map_err(|e| DestageError::System("a thread", e))?;
        let shared = Shared {
            exports,
            engine: outbox.clone(),
            caches: Arc::default(),
            budget: Budget::new(MAX_REQUESTS, MAX_UNDER_WAY, 1),
            limits: ClientLimits::default(),
            handshake: HANDSHAKE,
            tls: None,
        };
        let (no_more_clients, ends) = watch::channel(false);
        let (write_out, stop) = watch::channel(false);
        let (send, counts) = watch::channel(Counts::default());
        let driver = Driver::new(Machine::new(sector_bytes, limits, true).eager(), ingress, send);
        let place = Place::Served { upstream, as_before: Box::new(found) };
        let driver = runtime.spawn(driver.run(place, stop, Arc::clone(&note)));
        let listeners = listening.into_iter().map(|l| {
            let (shared, note) = (shared.clone(), Arc::clone(&note));
            runtime.spawn(accept(l, shared, MAX_CLIENTS, ends.clone(), note))
        });
        let listeners = listeners.collect();
        Ok(Destage { runtime, driver, listeners, no_more_clients, write_out, counts, ports, outbox })
    }

    /// Returns the counters.
    pub fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// Returns the ports of the TCP listeners, in order.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Waits until `stop` completes.
    pub fn wait_for<T>(&self, stop: impl Future<Output = T>) -> T {
        self.runtime.block_on(stop)
    }

    /// Stops accepting clients and requests, answers the requests in flight, writes everything out,
    /// flushes, and ends. If the server is unreachable or the disk fails, the result says how much
    /// is left.
    pub fn stop(self) -> Result<Left, DestageError> {
        let Destage { runtime, driver, listeners, no_more_clients, write_out, outbox, .. } = self;
        let _ = no_more_clients.send(true);
        let ended = runtime.block_on(async {
            let _ = tokio::time::timeout(LAST_ANSWERS, async {
                for l in listeners {
                    let _ = l.await;
                }
            })
            .await;
            let _ = write_out.send(true);
            driver.await
        });
        // The forwarding thread ends with this, or with the next message that cannot be delivered.
        let _ = outbox.send(EngineMessage::End);
        runtime.shutdown_timeout(Duration::from_millis(100));
        ended.map_err(|_| DestageError::Panicked)
    }
}
