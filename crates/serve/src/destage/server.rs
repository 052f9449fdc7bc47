//! All of it together: clients on one side, the server's session on the other, and an orderly end.

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
use crate::engine::telling::Telling;
use crate::net::address::{Address, ListenError};
use crate::net::budget::Budget;
use crate::net::connection::Shared;
use crate::net::descriptors::Sockets;
use crate::net::exports::{ExportError, ExportSpec, Exports};
use crate::net::listener::accept;
use crate::note::Note;
use crate::server::MOST_REQUESTS;

/// Bytes that all clients together may have under way: with the cache, the most that is held.
const MOST_UNDER_WAY: u64 = 64 << 20;
/// Clients at a time.
const MOST_CLIENTS: usize = 64;
/// How long a client may take to negotiate.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long clients may take to fetch their last answers at the end. A request may wait for the
/// disk meanwhile.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// What is destaged, and to whom it is exported.
pub struct Setup {
    /// Where the data goes.
    pub upstream: Upstream,
    /// Where clients come.
    pub listen: Vec<Address>,
    /// The cache.
    pub limits: Limits,
    /// Told of what an operator should know.
    pub note: Note,
}

impl Setup {
    /// Where clients come.
    pub fn sockets(&self) -> Sockets {
        Sockets { nbd: self.listen.len(), clients: MOST_CLIENTS, control: false, metrics: false }
    }
}

/// Why it did not begin, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum DestageError {
    /// The export cannot be destaged to.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// It cannot listen where it should.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The server says something of its export that cannot be.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The machine is short of something that it needs.
    #[error("{0}: {1}")]
    System(&'static str, std::io::Error),
    /// A task panicked: a bug.
    #[error("the cache failed; what was not flushed may be lost")]
    Panicked,
}

/// An export with a cache, at work.
#[derive(Debug)]
pub struct Destage {
    runtime: Runtime,
    driver: JoinHandle<Left>,
    listeners: Vec<JoinHandle<()>>,
    no_more_clients: watch::Sender<bool>,
    write_out: watch::Sender<bool>,
    counts: watch::Receiver<Counts>,
    ports: Vec<u16>,
    outbox: Outbox<Telling>,
}

impl Destage {
    /// Looks at the server, and listens.
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
        let (outbox, inbox) = inbox(MOST_REQUESTS, 0).map_err(|e| DestageError::System("eventfd", e))?;
        let ingress = bridge(inbox).map_err(|e| DestageError::System("a thread", e))?;
        let shared = Shared {
            exports,
            engine: outbox.clone(),
            caches: Arc::default(),
            budget: Budget::new(MOST_REQUESTS, MOST_UNDER_WAY, 1),
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
            runtime.spawn(accept(l, shared, MOST_CLIENTS, ends.clone(), note))
        });
        let listeners = listeners.collect();
        Ok(Destage { runtime, driver, listeners, no_more_clients, write_out, counts, ports, outbox })
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// The ports of its TCP listeners, in their order.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Waits until something else has happened.
    pub fn wait_for<T>(&self, stop: impl Future<Output = T>) -> T {
        self.runtime.block_on(stop)
    }

    /// Takes no more clients or requests, answers those that are under way, writes everything out,
    /// flushes, and ends. When the server is not there, or the disk does not take it, it says how
    /// much is left.
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
        // The thread between ends with this, or with the next telling that nobody takes.
        let _ = outbox.tell(Telling::End);
        runtime.shutdown_timeout(Duration::from_millis(100));
        ended.map_err(|_| DestageError::Panicked)
    }
}
