//! A whole server in one thread, under one seed: NBD clients, a write cache, a session that reads everything, the
//! engine and a disk, and the failures of each.
//!
//! Time is tokio's, and passes only when every task waits. Its timers have a resolution of a millisecond, which stands
//! for a microsecond of the platter, so that gaps are as long as in real time.

mod client;
mod disk;
mod network;
mod session;
mod shadow;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use crate::parts::{bridged, service};
use headtime_disk::model::Model;
use headtime_disk::profile::{Profile, load};
use headtime_disk::time::Time;
use headtime_nbd::Limits as ClientLimits;
use headtime_sched::admit::Policy;
use headtime_sched::core::{Config, Core, Order};
use headtime_sched::fill::Algorithm;
use headtime_sched::fill::subsystem::FillConfig;
use headtime_serve::clock::Timer;
use headtime_serve::control::service::{ForCache, Service};
use headtime_serve::destage::driver::{Driver, Place};
use headtime_serve::destage::machine::Machine;
use headtime_serve::destage::{Counts, Limits};
use headtime_serve::engine::inbox::{Outbox, inbox};
use headtime_serve::engine::telling::Telling;
use headtime_serve::engine::{End, Engine};
use headtime_serve::net::budget::Budget;
use headtime_serve::net::connection::{Shared, serve};
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::server::{CAPACITY, MOST_REQUESTS};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::Instant;

use client::Client;
use disk::{Disk, Errs, Media, Wreck};
use network::{Fate, connection};
use shadow::Shadow;

/// A drive of 48 cylinders.
const SMALL: &str = include_str!("../../../cli/tests/real/small.toml");
/// Sectors of each export: few, so that requests meet.
const SECTORS: usize = 768;
/// Where the exports begin: neither at the beginning of the disk nor of a track.
const FIRST: [u64; 2] = [1_000, 60_000];
const NAMES: [&str; 2] = ["plain", "cached"];
/// The one with a write cache.
const CACHED: u32 = 1;

/// A clock that shows tokio's time, a microsecond for each of its milliseconds.
#[derive(Clone, Copy)]
struct Platter(Instant);

impl Timer for Platter {
    fn now(&self) -> Time {
        Time(self.0.elapsed().as_millis() as u64 * 1_000)
    }
    fn may_sleep(&self, _: Time) -> bool {
        true
    }
    fn sleep(&self, _: Option<Time>, _: &[BorrowedFd<'_>]) -> io::Result<()> {
        unreachable!("the engine is a task")
    }
}

impl Platter {
    fn at(&self, time: Time) -> Instant {
        self.0 + Duration::from_millis(time.0.div_ceil(1_000))
    }
}

/// What was done under a seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Requests of NBD clients that were answered, and those answered with an error.
    pub requests: u64,
    pub failed: u64,
    /// Sectors that were held against the shadow.
    pub checked: u64,
    /// Sectors that a session was brought.
    pub delivered: u64,
    /// Commands of the drive.
    pub commands: u64,
    /// Connections that were lost.
    pub lost: u64,
    /// Deaths of the server, of the power, and ends in good order.
    pub kills: u64,
    pub blackouts: u64,
    pub ends: u64,
}

impl Done {
    /// Requests, blocks that a session was brought, and commands.
    pub fn operations(&self) -> u64 {
        self.requests + self.delivered / 8 + self.commands
    }
}

impl std::ops::AddAssign for Done {
    fn add_assign(&mut self, more: Done) {
        self.requests += more.requests;
        self.failed += more.failed;
        self.checked += more.checked;
        self.delivered += more.delivered;
        self.commands += more.commands;
        self.lost += more.lost;
        self.kills += more.kills;
        self.blackouts += more.blackouts;
        self.ends += more.ends;
    }
}

/// What may go wrong in a world.
#[derive(Clone, Copy, Debug)]
struct Troubles {
    errs: Errs,
    /// One of this number of rounds of a client ends in a cut connection; 0: none.
    cuts: u64,
}

fn rng(seed: u64, what: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ what)
}

thread_local! {
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// Counts the panics of this thread, also of tasks that are not awaited.
fn counts_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.set(PANICS.get() + 1);
            usual(info);
        }));
    });
}

/// Runs a world from its first server to its last.
pub fn run(seed: u64) -> Done {
    counts_panics();
    let mut chance = rng(seed, 0);
    let media: Arc<Mutex<Media>> = Arc::default();
    let shadows: [Rc<RefCell<Shadow>>; 2] = NAMES.map(|name| Rc::new(RefCell::new(Shadow::new(name, SECTORS))));
    let mut done = Done::default();
    for life in 0..1 + chance.next_u64() % 4 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let local = LocalSet::new();
        let mut one_of = |ns: &[u64]| ns[chance.next_u64() as usize % ns.len()];
        let errs = Errs { fails: one_of(&[0, 0, 200]), hangs: one_of(&[0, 100]), dies: one_of(&[0, 0, 0, 3_000]) };
        let troubles = Troubles { errs, cuts: one_of(&[0, 3]) };
        // How it ends: with a signal, or by a crash in the middle of something.
        let ends = one_of(&[0, 1, 2, 2]);
        let lives_ms =
            if ends == 0 { u64::MAX } else { 20_000 + one_of(&[1, 7, 40, 300]) * one_of(&[1, 10, 100]) * 997 };
        let world = Life { seed: seed ^ life << 48, media: &media, shadows: &shadows, troubles };
        let (wreck, lived) = runtime.block_on(local.run_until(world.live(lives_ms)));
        done += lived;
        done.commands += wreck.commands();
        // Whatever goes on is gone with the process.
        drop((local, runtime));
        assert_eq!(PANICS.get(), 0, "a task has panicked");
        let mut chance = rng(seed, 1 + life);
        wreck.settle(&mut chance);
        let power = ends == 2;
        if power {
            media.lock().unwrap().lose_power(&mut chance);
        }
        match ends {
            0 => done.ends += 1,
            1 => done.kills += 1,
            _ => done.blackouts += 1,
        }
        for (n, shadow) in shadows.iter().enumerate() {
            let found = |sector: usize| media.lock().unwrap().sector(FIRST[n] + sector as u64);
            // With the process goes what is only in its cache.
            let volatile = power || n == CACHED as usize;
            shadow.borrow_mut().crashed(found, volatile, power);
        }
    }
    done.checked = shadows.iter().map(|s| s.borrow().checked).sum();
    done
}

/// One life of a server.
struct Life<'a> {
    seed: u64,
    media: &'a Arc<Mutex<Media>>,
    shadows: &'a [Rc<RefCell<Shadow>>; 2],
    troubles: Troubles,
}

impl Life<'_> {
    fn core(&self, profile: &Profile) -> Core {
        let mut chance = rng(self.seed, 2);
        let orders = [Order::SptfJoint, Order::Sptf, Order::Clook, Order::Fcfs];
        let order = orders[chance.next_u64() as usize % orders.len()];
        let fill = Some(FillConfig { seed: self.seed, ..FillConfig::new(Algorithm::Headtime) });
        let config = Config { order, max_outstanding: 2, capacity: CAPACITY, fill };
        let policy = if chance.next_u64().is_multiple_of(3) { "bfq+" } else { "none" };
        let model = Model::new(profile).expect("a drive that works");
        Core::new(config, model).admitting(&Policy::named(policy).expect("a policy"))
    }

    async fn live(&self, lives_ms: u64) -> (Wreck, Done) {
        let profile = load("small.toml", &|_| Ok(SMALL.into())).expect("a drive").profile;
        let platter = Platter(Instant::now());
        let device = Disk::new(&profile, self.media, self.troubles.errs, self.seed, rng(self.seed, 3));
        let wreck = device.wreck();
        let sectors = headtime_serve::device::Device::sectors(&device);
        let exports = exports(sectors);
        let (outbox, tellings) = inbox(MOST_REQUESTS + 1024, 256).unwrap();
        let engine = Engine::new(platter, self.core(&profile), device, tellings);
        let engine = tokio::task::spawn_local(engine.run_as_task(move |time| platter.at(time)));
        // So little that requests wait for room.
        let budget = Budget::new(MOST_REQUESTS, 256 << 10, exports.specs.len() + 1);
        let service = service(&exports, &outbox, &budget, sectors, &[CACHED]);
        let (cache, write_out, driver) = cache(&service);
        let shared = Shared {
            exports,
            engine: outbox.clone(),
            caches: Arc::new(BTreeMap::from([(CACHED, cache)])),
            budget,
            limits: ClientLimits::default(),
            handshake: Duration::from_secs(10_000),
            tls: None,
        };
        let (end, ends) = watch::channel(false);
        let done = Rc::new(RefCell::new(Done::default()));
        let mut clients = Vec::new();
        for n in 0..3 {
            let life = Visitor {
                shadow: Rc::clone(&self.shadows[n % 2]),
                export: NAMES[n % 2],
                shared: shared.clone(),
                ends: ends.clone(),
                cuts: self.troubles.cuts,
                rng: rng(self.seed, 10 + n as u64),
                done: Rc::clone(&done),
            };
            clients.push(tokio::task::spawn_local(life.visit()));
        }
        let reads = session::read_all(service, FIRST[0], Rc::clone(&self.shadows[0]), Rc::clone(&done));
        tokio::task::spawn_local(reads);
        let work = async {
            for client in &mut clients {
                client.await.expect("a client finds nothing wrong");
            }
        };
        let patient = tokio::time::timeout(Duration::from_millis(lives_ms.min(u64::MAX / 4)), work).await.is_ok();
        if lives_ms == u64::MAX {
            assert!(patient);
            self.end(end, outbox, engine, (write_out, driver)).await;
        }
        (wreck, *done.borrow())
    }

    /// An end in good order: what was acknowledged is on the disk, or it is said that it is not.
    async fn end(
        &self,
        end: watch::Sender<bool>,
        outbox: Outbox<Telling>,
        engine: JoinHandle<End>,
        (write_out, driver): (watch::Sender<bool>, JoinHandle<headtime_serve::destage::driver::Left>),
    ) {
        let _ = end.send(true);
        let _ = write_out.send(true);
        let left = driver.await.expect("the cache's task");
        let _ = outbox.tell(Telling::End);
        let how = engine.await.expect("the engine's task");
        // A cache waits for its last writes for seconds of tokio's time, which are milliseconds here; so it may give
        // up, and what it reports counts.
        if left.bytes == 0 && left.flushed && how == End::Drained {
            // All that was answered is on the platters now.
            for shadow in self.shadows {
                let now = shadow.borrow_mut().flush();
                shadow.borrow_mut().flushed(now);
            }
        }
    }
}

fn exports(sectors: u64) -> Exports {
    let spec = |(name, first): (&str, u64)| ExportSpec {
        name: name.into(),
        description: String::new(),
        first,
        sectors: SECTORS as u64,
        read_only: false,
        weight: 100,
    };
    Exports::new(NAMES.into_iter().zip(FIRST).map(spec).collect(), sectors, 512).expect("two exports")
}

type Written = JoinHandle<headtime_serve::destage::driver::Left>;

/// The write cache of an export, as the server has it.
fn cache(service: &Service) -> (Outbox<Telling>, watch::Sender<bool>, Written) {
    let (outbox, told) = inbox(MOST_REQUESTS, 16).unwrap();
    let ingress = bridged(told);
    let machine = Machine::new(512, Limits { memory: 256 << 10 }, true).with_requests_up_to(32 << 20);
    let (counts, _) = watch::channel(Counts::default());
    let place =
        Place::Inside(Box::new(Service { cache: Some(ForCache { export: CACHED, most: 256 }), ..service.clone() }));
    let (write_out, stop) = watch::channel(false);
    let driver = Driver::new(machine, ingress, counts).run(place, stop, Arc::new(|_, _| {}));
    (outbox, write_out, tokio::spawn(driver))
}

/// Comes, asks for something, and leaves, one way or another; and comes again.
struct Visitor {
    shadow: Rc<RefCell<Shadow>>,
    export: &'static str,
    shared: Shared,
    ends: watch::Receiver<bool>,
    cuts: u64,
    rng: Xoshiro256PlusPlus,
    done: Rc<RefCell<Done>>,
}

impl Visitor {
    async fn visit(mut self) {
        let places = Arc::new(Semaphore::new(8));
        for _ in 0..4 {
            let (stream, wire, fate) = connection(Xoshiro256PlusPlus::seed_from_u64(self.rng.next_u64()));
            let (goes_on, must_go) = oneshot::channel();
            let (shared, ends, places) = (self.shared.clone(), self.ends.clone(), Arc::clone(&places));
            tokio::spawn(async move {
                let _goes_on = goes_on;
                let _ = serve(Box::new(wire), &shared, places, must_go, ends).await;
            });
            let rng = Xoshiro256PlusPlus::seed_from_u64(self.rng.next_u64());
            let mut client = Client::open(stream, self.export, Rc::clone(&self.shadow), rng).await.expect("an export");
            let cut = self.cuts > 0 && self.rng.next_u64().is_multiple_of(self.cuts);
            if cut {
                tokio::task::spawn_local(trouble(fate, self.rng.next_u64()));
            }
            let worked = client.work(120).await;
            let mut done = self.done.borrow_mut();
            done.requests += client.done;
            done.failed += client.failed;
            match worked {
                Ok(()) => {}
                Err(e) if cut && e.kind() != io::ErrorKind::InvalidData => {
                    done.lost += 1;
                    client.lost();
                }
                Err(e) => panic!("export {}: {e}", self.export),
            }
        }
    }
}

/// Something happens to a connection, some time.
async fn trouble(fate: Fate, chance: u64) {
    tokio::time::sleep(Duration::from_millis(chance % 1_000_000)).await;
    if chance & 1 == 0 { fate.cut() } else { fate.silence() }
}
