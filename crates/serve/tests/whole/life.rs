//! One life of a server, with all its parts and all its clients.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use headtime_disk::profile::{Profile, load};
use headtime_disk::{Model, Time};
use headtime_nbd::Limits as ClientLimits;
use headtime_sched::{Algorithm, Config, Core, FillConfig, Order, Policy};
use headtime_serve::clock::Timer;
use headtime_serve::destage::driver::{Driver, Left, Place};
use headtime_serve::destage::{Counts, Limits};
use headtime_serve::engine::inbox::{Outbox, inbox};
use headtime_serve::engine::messages::EngineMessage;
use headtime_serve::engine::{End, Engine};
use headtime_serve::internals::control::service::{ForCache, Service};
use headtime_serve::internals::destage::machine::Machine;
use headtime_serve::internals::net::connection::Shared;
use headtime_serve::net::budget::Budget;
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::server::CAPACITY;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::client::{Habit, LOST_AFTER};
use super::disk::{Disk, Wreck};
use super::door::Door;
use super::network::Fate;
use super::outside::Beside;
use super::process::{Doom, Process};
use super::visitor::Visitor;
use super::writer::Writer;
use super::{ARCHIVE, CACHED, Done, FIRST, NAMES, SECTORS, Standing, Store, Troubles, apps, rng, session, talker};
use crate::parts::{bridged, service};

/// A drive of 48 cylinders.
const SMALL: &str = include_str!("../../../cli/tests/real/small.toml");
/// Requests in flight of clients, and of the write cache; queued calls. The limits are so low that
/// they are often reached.
const REQUESTS: usize = 32;
const MAX_CACHED: usize = 16;
const CALLS: usize = 16;
/// The largest number of bytes after which a connection breaks within a frame.
const MAX_CUT_BYTES: usize = 2_000;
/// The longest silence between outside programs and the server, milliseconds: longer than programs
/// wait for an answer.
const SILENCE: u64 = 40_000;

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

/// One life of a server.
pub struct Life<'a> {
    pub seed: u64,
    pub store: &'a Store,
    pub door: &'a Door,
    /// A write cache in a separate program, if there is one.
    pub outside: &'a Beside,
    /// The folder for the files of reading programs, if there are any.
    pub folder: &'a Option<Rc<TempDir>>,
    pub troubles: Troubles,
    pub doom: Rc<Doom>,
}

impl Life<'_> {
    fn core(&self, profile: &Profile) -> Core {
        let mut chance = rng(self.seed, 2);
        let orders = [Order::SptfJoint, Order::Sptf, Order::Clook, Order::Fcfs];
        let order = orders[chance.next_u64() as usize % orders.len()];
        let fill = Some(FillConfig { seed: self.seed, ..FillConfig::new(Algorithm::Headtime) });
        let config = Config::new(order).with_capacity(CAPACITY).with_fill(fill);
        let policy = if chance.next_u64().is_multiple_of(3) { "bfq+" } else { "none" };
        let model = Model::new(profile).expect("a drive that works");
        Core::new(config, model).admitting(&Policy::named(policy).expect("a policy"))
    }

    /// Runs until all clients are done and the server shuts down, or until it is killed.
    pub async fn live(&self, lives: Option<Duration>) -> (Wreck, Done) {
        let profile = load("small.toml", &|_| Ok(SMALL.into())).expect("a drive").profile;
        let platter = Platter(Instant::now());
        let device = Disk::new(&profile, &self.store.media, self.troubles.errs, self.seed, rng(self.seed, 3));
        let (wreck, gone) = (device.wreck(), device.gone());
        let (ending, doom) = (Rc::new(Cell::new(false)), Rc::clone(&self.doom));
        let standing = Standing { ending, gone, troubles: self.troubles, doom };
        let sectors = headtime_serve::device::Device::sectors(&device);
        let exports = exports(sectors);
        let process = Rc::new(Process::default());
        let (outbox, tellings) = inbox(REQUESTS + MAX_CACHED, CALLS).unwrap();
        let engine = Engine::new(platter, self.core(&profile), device, tellings);
        let engine = process.spawn_local(engine.run_as_task(move |time| platter.at(time)));
        // A small budget, so that requests wait for room.
        let budget = Budget::new(REQUESTS, 256 << 10, exports.specs.len() + 1);
        let service =
            Service { disk_id: self.store.id.into(), ..service(&exports, &outbox, &budget, sectors, &[CACHED]) };
        let (cache, write_out, driver) = cache(&service, &process);
        let service = Service { engine: outbox.of_interface(), ..service };
        self.door.open(service.clone(), &process);
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
        let hurries = rng(self.seed, 4).next_u64().is_multiple_of(2);
        for n in 0..4 {
            let life = Visitor {
                shadow: Rc::clone(&self.store.shadows[n % 2]),
                export: NAMES[n % 2],
                shared: shared.clone(),
                ends: ends.clone(),
                cuts: self.troubles.cuts,
                habit: if n == 3 { Habit::one_place(hurries) } else { Habit::anything(SECTORS) },
                rng: rng(self.seed, 10 + n as u64),
                done: Rc::clone(&done),
                standing: standing.clone(),
                process: Rc::clone(&process),
                patience: LOST_AFTER,
            };
            clients.push(process.spawn_local(life.visit()));
        }
        self.sessions(&service, &process, &done, &standing);
        self.outside.begin(self).await;
        if self.troubles.lost > 0 {
            process.spawn_local(cut_now_and_then(
                self.door.clone(),
                rng(self.seed, 5),
                self.troubles.lost,
                Rc::clone(&done),
            ));
        }
        let work = async {
            for client in &mut clients {
                client.await.expect("a client finds nothing wrong");
            }
        };
        match lives {
            Some(lives) => tokio::select! {
                biased;
                () = self.doom.comes() => done.borrow_mut().dooms += 1,
                _ = tokio::time::timeout(lives, work) => {}
            },
            None => {
                work.await;
                self.outside.may_end(self).await;
                standing.ending.set(true);
                self.end(end, outbox, engine, (write_out, driver)).await;
            }
        }
        self.door.shut();
        process.kill().await;
        let done = *done.borrow();
        (wreck, done)
    }

    /// Starts the background sessions.
    fn sessions(&self, service: &Service, process: &Process, done: &Rc<RefCell<Done>>, standing: &Standing) {
        let shadow = &self.store.shadows[0];
        let reads = session::read_all(service.clone(), FIRST[0], Rc::clone(shadow), Rc::clone(done), standing.clone());
        process.spawn_local(reads);
        let writer = Writer {
            service: service.clone(),
            first: FIRST[0],
            shadow: Rc::clone(shadow),
            done: Rc::clone(done),
            standing: standing.clone(),
            rng: rng(self.seed, 20),
        };
        process.spawn_local(writer.write());
        if let Some(folder) = self.folder {
            let (door, folder, shadow) = (self.door.clone(), Rc::clone(folder), Rc::clone(shadow));
            let rng = rng(self.seed, 21);
            process.spawn_local(apps::backups(door, folder, shadow, Rc::clone(done), standing.clone(), rng));
        }
        for n in 0..self.troubles.talkers {
            let rng = rng(self.seed, 30 + n);
            process.spawn_local(talker::talk(service.clone(), rng, Rc::clone(done), standing.clone()));
        }
    }

    /// Shuts down in order: acknowledged data is on the disk, or reported as lost.
    async fn end(
        &self,
        end: watch::Sender<bool>,
        outbox: Outbox<EngineMessage>,
        engine: JoinHandle<End>,
        (write_out, driver): (watch::Sender<bool>, JoinHandle<Left>),
    ) {
        let _ = end.send(true);
        let _ = write_out.send(true);
        let left = driver.await.expect("the cache's task");
        let _ = outbox.send(EngineMessage::End);
        let how = engine.await.expect("the engine's task");
        // A cache waits for its last writes for seconds of tokio's time, which are milliseconds
        // here; so it may stop early, and its report counts.
        if left.bytes == 0 && left.flushed && how == End::Drained {
            // All acknowledged data is on the platters now.
            for shadow in &self.store.shadows {
                let now = shadow.borrow_mut().moment();
                shadow.borrow_mut().flushed(now);
            }
        }
    }
}

/// Breaks connections of the control interface at random intervals of at most `most` milliseconds:
/// at once, in the middle of the next message, or after a period of silence in both directions.
async fn cut_now_and_then(door: Door, mut rng: Xoshiro256PlusPlus, most: u64, done: Rc<RefCell<Done>>) {
    loop {
        tokio::time::sleep(Duration::from_millis(rng.next_u64() % most)).await;
        let chance = rng.next_u64();
        door.all(|_| done.borrow_mut().broken += 1);
        match chance % 3 {
            0 => door.all(Fate::cut),
            1 => door.all(|fate| fate.cut_after(1 + (chance >> 32) as usize % MAX_CUT_BYTES)),
            _ => {
                door.all(Fate::silence);
                tokio::time::sleep(Duration::from_millis((chance >> 32) % SILENCE)).await;
                door.all(Fate::cut);
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
        read_only: name == ARCHIVE,
        weight: 100,
    };
    Exports::new(NAMES.into_iter().zip(FIRST).map(spec).collect(), sectors, 512).expect("four exports")
}

/// Creates the write cache of an export, as in the server.
fn cache(service: &Service, process: &Process) -> (Outbox<EngineMessage>, watch::Sender<bool>, JoinHandle<Left>) {
    let (outbox, told) = inbox(REQUESTS, 0).unwrap();
    let ingress = bridged(told);
    let machine = Machine::new(512, Limits { memory: 256 << 10 }, true).with_requests_up_to(32 << 20);
    let (counts, _) = watch::channel(Counts::default());
    let place = Place::Inside(Box::new(Service {
        cache: Some(ForCache { export: CACHED, most: MAX_CACHED }),
        ..service.clone()
    }));
    let (write_out, stop) = watch::channel(false);
    let driver = Driver::new(machine, ingress, counts).run(place, stop, Arc::new(|_, _| {}));
    (outbox, write_out, process.spawn(driver))
}
