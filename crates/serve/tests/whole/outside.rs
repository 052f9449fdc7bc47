//! `headtime destage` beside a server: a separate program, which survives the server.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use headtime_nbd::Limits as ClientLimits;
use headtime_serve::destage::driver::{Driver, Left, Place, Upstream};
use headtime_serve::destage::{Counts, Limits};
use headtime_serve::engine::inbox::inbox;
use headtime_serve::internals::destage::machine::Machine;
use headtime_serve::internals::net::connection::Shared;
use headtime_serve::net::budget::Budget;
use headtime_serve::net::exports::{ExportSpec, Exports};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::client::Habit;
use super::disk::Errs;
use super::door::Door;
use super::life::Life;
use super::process::{Doom, Process};
use super::shadow::Shadow;
use super::visitor::Visitor;
use super::{Done, FIRST, OUTSIDE, SECTORS, Standing, Store, Troubles, rng};
use crate::parts::bridged;

/// Requests in flight of its clients.
const REQUESTS: usize = 16;
/// Longer than the successive lives of servers with another disk or a failed device, each at most
/// 30,000 s.
const CLIENT_PATIENCE: Duration = Duration::from_secs(100_000);

/// The program, if it runs, and the shadow of its export, which is on the first disk.
pub struct Beside {
    program: RefCell<Option<Outside>>,
    shadow: Rc<RefCell<Shadow>>,
    /// The counters of its clients.
    pub done: Rc<RefCell<Done>>,
    wanted: bool,
}

impl Beside {
    /// Creates the state without a program; one is started only if it is wanted.
    pub fn new(wanted: bool) -> Beside {
        let shadow = Rc::new(RefCell::new(Shadow::new(OUTSIDE, SECTORS)));
        Beside { program: RefCell::default(), shadow, done: Rc::default(), wanted }
    }

    /// Starts the program if there is none and the server has the first disk.
    pub async fn begin(&self, server: &Life<'_>) {
        if self.wanted && server.store.is_first() && self.program.borrow().is_none() {
            let started = Outside::start(server.door, &self.shadow, server.seed, &self.done).await;
            *self.program.borrow_mut() = started;
        }
    }

    /// The server is about to shut down: the program may end before.
    pub async fn may_end(&self, server: &Life<'_>) {
        if !server.store.is_first() || server.seed.is_multiple_of(2) {
            return;
        }
        let Some(program) = self.program.take() else { return };
        if program.end().await {
            let mut shadow = self.shadow.borrow_mut();
            let now = shadow.moment();
            shadow.flushed(now);
        }
    }

    /// The server has ended, and the program too if `dies`. `power`: the first disk lost power.
    pub async fn after(&self, first: &Store, dies: bool, power: bool) {
        if dies && let Some(program) = self.program.take() {
            program.kill().await;
        }
        if self.program.borrow().is_none() {
            let found = |sector: usize| first.media.lock().unwrap().sector(FIRST[2] + sector as u64);
            self.shadow.borrow_mut().crashed(found, true, power);
        }
    }

    /// Returns the sectors checked against the shadow.
    pub fn checked(&self) -> u64 {
        self.shadow.borrow().checked
    }
}

/// The program and its clients.
struct Outside {
    clients: Rc<Process>,
    process: Process,
    driver: JoinHandle<Left>,
    write_out: watch::Sender<bool>,
    _ends: watch::Sender<bool>,
}

impl Outside {
    /// Starts it, if the server is available.
    async fn start(door: &Door, shadow: &Rc<RefCell<Shadow>>, seed: u64, done: &Rc<RefCell<Done>>) -> Option<Outside> {
        let upstream = Upstream { control: door.socket(), export: OUTSIDE.into(), priority: 100 };
        let found = upstream.look().await.ok()?;
        let (export, info) = &found;
        let spec = ExportSpec {
            name: export.name.clone(),
            description: String::new(),
            first: export.first,
            sectors: export.sectors,
            read_only: false,
            weight: export.weight,
        };
        let sector_bytes = info.sector_bytes;
        let exports = Exports::new(vec![spec], info.sectors, sector_bytes).expect("the export");
        let (clients, process) = (Rc::new(Process::default()), Process::default());
        let (outbox, told) = inbox(REQUESTS, 0).unwrap();
        let machine = Machine::new(sector_bytes, Limits { memory: 256 << 10 }, true).eager();
        let (write_out, stop) = watch::channel(false);
        let driver = Driver::new(machine, bridged(told), watch::channel(Counts::default()).0);
        let place = Place::Served { upstream, as_before: Box::new(found) };
        let driver = process.spawn(driver.run(place, stop, Arc::new(|_, _| {})));
        let shared = Shared {
            exports,
            engine: outbox,
            caches: Arc::default(),
            budget: Budget::new(REQUESTS, 128 << 10, 1),
            limits: ClientLimits::default(),
            handshake: Duration::from_secs(10_000),
            tls: None,
        };
        let (_ends, ends) = watch::channel(false);
        // Errors are reported, but it waits for a server that has gone in all cases.
        let troubles = Troubles { errs: Errs { fails: 1, ..Errs::default() }, ..Troubles::default() };
        let doom = Rc::new(Doom::after(0));
        let standing = Standing { ending: Rc::new(Cell::new(false)), gone: Arc::default(), troubles, doom };
        for n in 0..2 {
            let visitor = Visitor {
                shadow: Rc::clone(shadow),
                export: OUTSIDE,
                shared: shared.clone(),
                ends: ends.clone(),
                cuts: 0,
                habit: if n == 1 { Habit::one_place(false) } else { Habit::anything(SECTORS) },
                rng: rng(seed, 40 + n),
                done: Rc::clone(done),
                standing: standing.clone(),
                process: Rc::clone(&clients),
                patience: CLIENT_PATIENCE,
            };
            clients.spawn_local(visitor.stay());
        }
        Some(Outside { clients, process, driver, write_out, _ends })
    }

    /// Kills it.
    async fn kill(self) {
        self.clients.kill().await;
        self.process.kill().await;
    }

    /// Shuts it down in order. Returns whether all acknowledged data is on the platters.
    async fn end(self) -> bool {
        self.clients.kill().await;
        let _ = self.write_out.send(true);
        let left = self.driver.await.expect("its driver");
        left.bytes == 0 && left.flushed
    }
}
