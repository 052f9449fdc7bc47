//! The whole server: the engine on its thread, clients on theirs, and an orderly shutdown.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use headtime_nbd::Limits;
use headtime_sched::Scheduler;
use headtime_sched::streams::Disk;
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle as Task;
use tokio_rustls::TlsAcceptor;

use crate::clock::Clock;
use crate::control;
use crate::destage::driver::Left;
pub use crate::destage::inside::Caches;
use crate::destage::inside::{MAX_CACHED, Working};
use crate::device::Device;
use crate::engine::inbox::{Inbox, Outbox, inbox};
use crate::engine::messages::EngineMessage;
use crate::engine::pieces::MAX_PIECES;
use crate::engine::snapshot::Snapshot;
use crate::engine::{End, Engine};
use crate::layout::{Area, LayoutError, UNIT_BYTES};
use crate::net::address::{Address, ListenError, Listening};
use crate::net::budget::{Budget, MAX_REQUESTS};
use crate::net::connection::Shared;
use crate::net::descriptors::Sockets;
use crate::net::exports::{ExportSpec, Exports, MAX_EXPORTS};
use crate::net::listener::accept;
use crate::note::{About, Note};
use crate::record::{NewRecording, Recorder, Recording};
use crate::streams::{Grounds, Live};
use crate::web::WebAt;
use control::layouts::Layouts;
use pages::Pages;

mod handle;
mod pages;
mod watching;

pub use handle::Handle;

/// Requests that the core must be able to hold: each write may need one read before it
/// ([`crate::engine::image`]), large requests are in pieces, and there is the final flush.
pub const CAPACITY: usize = 2 * (MAX_REQUESTS + MAX_CACHED) + MAX_PIECES + 1;
/// Bytes in flight of all clients.
const MAX_BYTES_IN_FLIGHT: u64 = 256 << 20;
/// Further requests with reorganised exports: each may be in as many places as it has units, and
/// one more if it does not begin with one, and each of them may need a read before it. Each export
/// writes its map.
pub const CAPACITY_FOR_LAYOUTS: usize =
    2 * ((MAX_BYTES_IN_FLIGHT / *UNIT_BYTES.start()) as usize + MAX_REQUESTS) + MAX_EXPORTS;
/// Calls other than requests that may be queued for the engine.
pub const MAX_CALLS: usize = 4096;
/// Messages of the server itself: of its streams, each from a thread of its own (tokio has at most
/// 512 such), and of reloading the configuration.
const MAX_OWN: usize = 1024;
/// The time for clients to read their last answers at shutdown.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// The server's settings.
pub struct Service {
    /// The addresses for NBD clients.
    pub listen: Vec<Address>,
    /// The exports.
    pub exports: Exports,
    /// The limits of each client.
    pub limits: Limits,
    /// Clients at a time, on each socket.
    pub clients: usize,
    /// Bytes in flight of all clients.
    pub bytes: u64,
    /// The time limit for negotiation.
    pub handshake: Duration,
    /// TLS, and whether clients over TCP must use it. On a unix socket it is offered but never
    /// required: the file's mode controls access.
    pub tls: Option<(TlsAcceptor, bool)>,
    /// The control interface; `None` if there is none.
    pub control: Option<ControlAt>,
    /// The exports with a write cache.
    pub caches: Caches,
    /// The reorganised exports, by number.
    pub layouts: Vec<(u32, Area)>,
    /// Those of them whose map is written for the first time.
    pub new_maps: Vec<u32>,
    /// The address of the metrics endpoint, a loopback address; `None` if there is none.
    pub metrics: Option<SocketAddr>,
    /// The live view; `None` if there is none.
    pub web: Option<WebAt>,
    /// The drive's figures for the guarantees of streams; `None` if there are no streams.
    pub streams: Option<Arc<Disk>>,
    /// The basis of these guarantees.
    pub grounds: Arc<Grounds>,
    /// The recording of requests; `None` if there is none.
    pub record: Option<NewRecording>,
    /// Called for clients that did not disconnect properly, and for a drive that exceeds its
    /// worst-case service time.
    pub note: Note,
}

/// The control interface of a server.
#[derive(Clone, Debug)]
pub struct ControlAt {
    /// The path of its unix socket.
    pub path: PathBuf,
    /// The drive's name, as shown to clients.
    pub disk: String,
    /// The disk's persistent identifier, so that an application does not continue on another disk.
    pub disk_id: String,
    /// The disk's sectors.
    pub sectors: u64,
    /// Whether background work is enabled.
    pub fills: bool,
}

impl Service {
    /// Returns the default settings: 64 clients per socket, 256 MiB in flight, 10 s to negotiate.
    pub fn new(listen: Vec<Address>, exports: Exports, note: Note) -> Service {
        Service {
            listen,
            exports,
            limits: Limits::default(),
            clients: 64,
            bytes: MAX_BYTES_IN_FLIGHT,
            handshake: Duration::from_secs(10),
            tls: None,
            control: None,
            caches: Caches::default(),
            layouts: Vec::new(),
            new_maps: Vec::new(),
            metrics: None,
            web: None,
            streams: None,
            grounds: Arc::default(),
            record: None,
            note,
        }
    }

    /// Returns the listening sockets.
    pub fn sockets(&self) -> Sockets {
        let (control, metrics, web) = (self.control.is_some(), self.metrics.is_some(), self.web.is_some());
        Sockets { nbd: self.listen.len(), clients: self.clients, control, metrics, web }
    }
}

/// Why a server did not start or did not end properly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// It cannot listen on an address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A system resource is missing.
    #[error("{0}: {1}")]
    System(&'static str, io::Error),
    /// The engine's thread panicked: a bug.
    #[error("the engine failed; what was acknowledged before is on the device as far as the device keeps it")]
    Engine,
    /// Data of a write cache could not be written.
    #[error("{0} bytes were acknowledged and are not on the disk: they are lost")]
    Lost(u64),
    /// The block map of a reorganised export cannot be used.
    #[error("export \"{0}\", reorganise: {1}")]
    Layout(String, LayoutError),
    /// A write cache's task panicked: a bug. The amount of lost data is unknown.
    #[error("a write cache failed: what was acknowledged and not flushed may be lost")]
    CacheFailed,
}

/// The body of the engine's thread.
type Run = Box<dyn FnOnce(Inbox<EngineMessage>, Option<Recorder>) -> io::Result<End> + Send>;

/// A running server.
pub struct Server {
    runtime: Runtime,
    /// The runtimes of the sockets.
    threads: Vec<Runtime>,
    engine: Option<JoinHandle<io::Result<End>>>,
    ended: oneshot::Receiver<()>,
    outbox: Outbox<EngineMessage>,
    handle: Handle,
    end: watch::Sender<bool>,
    listeners: Vec<Task<()>>,
    ports: Vec<u16>,
    /// The ports of the metrics and of the live view.
    page_ports: (Option<u16>, Option<u16>),
    streams: Option<Live>,
    recording: Option<Recording>,
    caches: Working,
    export_names: Vec<String>,
    note: Note,
}

/// The nice value of threads for background work.
const BACKGROUND_NICE: i32 = 10;

/// Creates a runtime with two threads for clients.
fn threads(name: &str, nice: i32) -> Result<Runtime, ServeError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // On Linux each thread has its own nice value.
    let start = move || {
        let _ = rustix::process::nice(nice);
    };
    let built = builder.worker_threads(2).thread_name(name).on_thread_start(start).enable_all().build();
    built.map_err(|e| ServeError::System("threads for clients", e))
}

/// Listens with threads of its own, so that the clients of one socket do not delay those of
/// another.
fn on_own_threads(name: &str, nice: i32, address: &Address) -> Result<(Runtime, Listening), ServeError> {
    let own = threads(name, nice)?;
    let listening = own.block_on(address.listen())?;
    Ok((own, listening))
}

impl Server {
    /// Starts the engine and listens.
    pub fn start<S, D>(scheduler: S, device: D, service: Service) -> Result<Server, ServeError>
    where
        S: Scheduler + Send + 'static,
        D: Device + Send + 'static,
    {
        // Only this closure depends on the device type; all else is compiled once.
        let engine = |inbox, recorder| Engine::new(Clock::start(), scheduler, device, inbox).recording(recorder).run();
        Server::begin(service, Box::new(engine))
    }

    fn begin(service: Service, run: Run) -> Result<Server, ServeError> {
        let runtime = threads("headtime-own", 0)?;
        let listening = service.listen.iter().map(|address| on_own_threads("headtime-net", 0, address));
        let listening = listening.collect::<Result<Vec<_>, _>>()?;
        let control = service.control.as_ref().map(|at| Address::Unix(at.path.clone()));
        let control = control.map(|address| on_own_threads("headtime-ctrl", BACKGROUND_NICE, &address)).transpose()?;
        let pages = Pages::listen(&service)?;
        let page_ports = pages.ports();
        let (outbox, inbox) =
            inbox(MAX_REQUESTS + MAX_CACHED + MAX_OWN, MAX_CALLS).map_err(|e| ServeError::System("eventfd", e))?;
        let recording = service.record.map(|new| new.begin(Arc::clone(&service.note))).transpose();
        let (recorder, recording) = recording.map_err(|e| ServeError::System("the recording", e))?.unzip();
        let (over, ended) = oneshot::channel();
        let engine = std::thread::Builder::new().name("headtime-engine".into()).spawn(move || {
            // Dropped whenever the engine ends.
            let _over = over;
            run(inbox, recorder)
        });
        let engine = Some(engine.map_err(|e| ServeError::System("the engine's thread", e))?);
        let (end, ends) = watch::channel(false);
        // The control interface has a part of its own.
        let owners = service.exports.specs.len() + 1;
        let budget = Budget::new(MAX_REQUESTS, service.bytes, owners);
        let names: Arc<Mutex<BTreeMap<u32, String>>> = Arc::default();
        let ends_at = |s: &ExportSpec| s.first + s.sectors;
        let at = service.control.as_ref();
        let interface = control::service::Service {
            disk: at.map_or_else(String::new, |at| at.disk.clone()),
            disk_id: at.map_or_else(String::new, |at| at.disk_id.clone()),
            sectors: at.map_or_else(|| service.exports.specs.iter().map(ends_at).max().unwrap_or(0), |at| at.sectors),
            exports: service.exports.clone(),
            fills: at.is_some_and(|at| at.fills),
            engine: outbox.clone(),
            budget: budget.clone(),
            names: Arc::clone(&names),
            streams: None,
            cached: control::caches::Cached::new(service.caches.exports.iter().map(|e| e.0)),
            layouts: Layouts::new(&service.layouts, &service.exports, outbox.clone()),
            cache: None,
        };
        let export_names: Vec<String> = service.exports.specs.iter().map(|s| s.name.clone()).collect();
        // Before the first request of a client.
        if let Err((export, why)) = runtime.block_on(interface.layouts.load(&service.new_maps)) {
            let _ = outbox.send(EngineMessage::End);
            return Err(ServeError::Layout(export_names[export as usize].clone(), why));
        }
        for (export, name) in (0..).zip(&export_names) {
            if let Some(moved @ 1..) = interface.layouts.moved(export) {
                let undo = "before the reserve is removed from the configuration: 'headtime reorganise --undo'";
                (service.note)(About::Server, format!("export \"{name}\": {moved} units are in its reserve; {undo}"));
            }
        }
        let caches = service.caches.start(&runtime, &interface, &service.note);
        let caches = caches.map_err(|e| ServeError::System("a write cache", e))?;
        // The clients of write caches are NBD clients. Other clients of the interface are served
        // when there is time.
        let interface = control::service::Service { engine: outbox.of_interface(), ..interface };
        let shared = Shared {
            exports: service.exports,
            engine: outbox.clone(),
            caches: caches.outboxes(),
            budget,
            limits: service.limits,
            handshake: service.handshake,
            tls: service.tls,
        };
        let (engine_handle, exports) = (outbox.clone(), shared.exports.clone());
        let handle = Handle { engine: engine_handle, exports, budget: shared.budget.clone() };
        // The queue is empty; an engine that has ended already is noticed later.
        let _ = handle.apply_settings();
        let grounds = service.grounds;
        let streams = service.streams.map(|disk| {
            let live = Live::new(outbox.of_interface(), disk, shared.exports.clone()).on(grounds);
            live.beside_caches(interface.cached.clone())
        });
        runtime.spawn(watching::watch(outbox.clone(), service.note.clone()));
        let mut threads = pages.serve(&interface, &ends);
        if let Some((own, listening)) = control {
            let interface = control::service::Service { streams: streams.clone(), ..interface };
            let (mut ends, note) = (ends.clone(), service.note.clone());
            own.spawn(async move {
                let ended = async move { _ = ends.wait_for(|&end| end).await };
                if let Err(why) = control::rpc::serve(interface, listening, Arc::clone(&note), ended).await {
                    note(About::Warning, format!("the control interface ended: {why}"));
                }
            });
            threads.push(own);
        }
        let ports = listening.iter().filter_map(|(_, l)| l.port()).collect();
        let listeners = listening.into_iter().map(|(own, l)| {
            let (mut shared, clients, note) = (shared.clone(), service.clients, service.note.clone());
            if l.port().is_none()
                && let Some((_, required)) = &mut shared.tls
            {
                *required = false;
            }
            let accepting = own.spawn(accept(l, shared, clients, ends.clone(), note));
            threads.push(own);
            accepting
        });
        let listeners = listeners.collect();
        let note = service.note;
        Ok(Server {
            runtime,
            threads,
            engine,
            ended,
            outbox,
            handle,
            end,
            listeners,
            ports,
            page_ports,
            streams,
            recording,
            caches,
            export_names,
            note,
        })
    }

    /// Returns the handle to the engine.
    pub fn engine(&self) -> Outbox<EngineMessage> {
        self.outbox.clone()
    }

    /// Returns a handle for changes of the exports' settings.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns the streams; `None` if there are none.
    pub fn streams(&self) -> Option<&Live> {
        self.streams.as_ref()
    }

    /// Returns the ports of the TCP listeners, in order.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Returns the port of the metrics endpoint.
    pub fn metrics_port(&self) -> Option<u16> {
        self.page_ports.0
    }

    /// Returns the port of the live view.
    pub fn web_port(&self) -> Option<u16> {
        self.page_ports.1
    }

    /// Returns the current counters.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.runtime.block_on(self.outbox.snapshot()).ok()
    }

    /// Waits until `stop` completes, or the engine ends by itself.
    pub fn wait_for<T>(&mut self, stop: impl Future<Output = T>) -> Option<T> {
        let Server { runtime, ended, .. } = self;
        runtime.block_on(async {
            tokio::select! {
                t = stop => Some(t),
                _ = ended => None,
            }
        })
    }

    /// Stops accepting clients and requests, answers the requests in flight, flushes the device,
    /// and ends. This takes seconds, whatever the device and the clients do, except that the
    /// contents of write caches are written out first as long as that makes progress.
    pub fn stop(mut self) -> Result<End, ServeError> {
        let _ = self.end.send(true);
        let written_out = if self.caches.is_empty() { Ok(()) } else { self.write_out() };
        let _ = self.outbox.send(EngineMessage::End);
        let engine = self.engine.take().expect("a server is stopped once");
        let end = engine.join().map_err(|_| ServeError::Engine);
        if let Some(recording) = self.recording.take() {
            recording.finish();
        }
        let end = end?;
        self.last_answers();
        // The remaining tasks belong to clients whose time is over; they end with the process at
        // the latest.
        self.threads.into_iter().for_each(Runtime::shutdown_background);
        self.runtime.shutdown_timeout(Duration::from_millis(100));
        written_out?;
        end.map_err(|e| ServeError::System("waiting for the device", e))
    }
}

impl Server {
    /// Waits until clients have read their last answers, up to a time limit.
    fn last_answers(&mut self) {
        let listeners = &mut self.listeners;
        self.runtime.block_on(async {
            let _ = tokio::time::timeout(LAST_ANSWERS, async {
                while let Some(listener) = listeners.last_mut() {
                    let _ = listener.await;
                    listeners.pop();
                }
            })
            .await;
        });
    }

    /// Writes out the write caches while the engine runs, and reports what could not be written.
    fn write_out(&mut self) -> Result<(), ServeError> {
        self.last_answers();
        let caches = std::mem::take(&mut self.caches);
        let left = self.runtime.block_on(caches.finish());
        written_out(&left, |export, said| {
            (self.note)(About::Warning, format!("export \"{}\": {said}", self.export_names[export as usize]));
        })
    }
}

/// Checks that all contents of write caches are on the disk; reports the rest by export.
fn written_out(left: &[(u32, Option<Left>)], note: impl Fn(u32, String)) -> Result<(), ServeError> {
    for &(export, left) in left {
        match left {
            Some(left) if left.bytes == 0 && left.flushed => {}
            Some(left) if left.bytes == 0 => note(export, "the disk was not flushed at the end".into()),
            Some(left) => note(
                export,
                format!(
                    "{} bytes that clients were told are written are not on the disk, {} of them because it did not \
                     take them",
                    left.bytes, left.failed
                ),
            ),
            None => note(export, "its write cache failed; what was not flushed may be lost".into()),
        }
    }
    match left.iter().filter_map(|l| l.1).map(|l| l.bytes).sum() {
        0 if left.iter().any(|l| l.1.is_none()) => Err(ServeError::CacheFailed),
        0 => Ok(()),
        bytes => Err(ServeError::Lost(bytes)),
    }
}

#[cfg(test)]
mod tests;
