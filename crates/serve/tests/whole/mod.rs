//! A whole server in one thread, under one seed: NBD clients, a write cache, a session that reads
//! everything, the engine and a disk, and the failures of each.
//!
//! Time is tokio's and advances only when every task waits. Its timers have a resolution of a
//! millisecond, which stands for a microsecond of the platter, so that gaps are as long as in real
//! time.

mod apps;
mod client;
mod disk;
mod door;
mod life;
mod network;
mod outside;
mod process;
mod session;
mod shadow;
mod talker;
mod visitor;
mod writer;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::task::LocalSet;

use apps::Scrubs;
use disk::{Errs, Media};
use door::Door;
use life::Life;
use outside::Beside;
use process::Doom;
use shadow::{SECTOR, Shadow, filled};

/// The disk of the server, and another one that it may have after a restart.
const DISKS: [&str; 2] = ["one", "two"];
/// Sectors of each export: few, so that requests overlap.
const SECTORS: usize = 768;
/// First sectors of the exports: neither at the start of the disk nor of a track.
const FIRST: [u64; 4] = [1_000, 60_000, 45_000, 20_000];
const NAMES: [&str; 4] = ["plain", "cached", OUTSIDE, ARCHIVE];
/// The export with a write cache.
const CACHED: u32 = 1;
/// The export with a write cache in a separate program, if any.
const OUTSIDE: &str = "outside";
/// The read-only export.
const ARCHIVE: &str = "archive";

/// Counters of the work done under a seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Answered requests of NBD clients, and those answered with an error.
    pub requests: u64,
    pub failed: u64,
    /// Sectors checked against the shadow.
    pub checked: u64,
    /// Sectors delivered to a session.
    pub delivered: u64,
    /// Blocks that a session wrote, and those superseded by a client's newer data.
    pub free_writes: u64,
    pub superseded: u64,
    /// Calls of sessions that send many calls.
    pub talked: u64,
    /// Commands of the drive.
    pub commands: u64,
    /// Lost connections of NBD clients, and broken ones of the control interface.
    pub lost: u64,
    pub broken: u64,
    /// Kills of the server, power failures, and orderly shutdowns.
    pub kills: u64,
    pub blackouts: u64,
    pub ends: u64,
    /// Of the kills, those right after the answer to a flush.
    pub dooms: u64,
    /// Lives with another disk.
    pub swaps: u64,
    /// Requests of clients of a write cache outside.
    pub outside: u64,
    /// Completed backups and scrubs, and damaged units found by scrubs.
    pub backups: u64,
    pub scrubs: u64,
    pub found: u64,
}

impl Done {
    /// Returns the number of requests, of blocks delivered to or written by sessions, and of
    /// commands.
    pub fn operations(&self) -> u64 {
        self.requests + self.outside + self.delivered / 8 + self.free_writes + self.commands
    }
}

impl std::ops::AddAssign for Done {
    fn add_assign(&mut self, more: Done) {
        self.requests += more.requests;
        self.failed += more.failed;
        self.checked += more.checked;
        self.delivered += more.delivered;
        self.free_writes += more.free_writes;
        self.superseded += more.superseded;
        self.talked += more.talked;
        self.commands += more.commands;
        self.lost += more.lost;
        self.broken += more.broken;
        self.kills += more.kills;
        self.blackouts += more.blackouts;
        self.ends += more.ends;
        self.dooms += more.dooms;
        self.swaps += more.swaps;
        self.outside += more.outside;
        self.backups += more.backups;
        self.scrubs += more.scrubs;
        self.found += more.found;
    }
}

/// The failures that may occur in a world.
#[derive(Clone, Copy, Debug, Default)]
struct Troubles {
    errs: Errs,
    /// One in this number of a client's rounds ends in a cut connection; 0 for none.
    cuts: u64,
    /// Sessions that send many calls.
    talkers: u64,
    /// The longest life of a connection of programs outside, milliseconds; 0 if none breaks.
    lost: u64,
}

/// The errors that a server may report for valid requests.
#[derive(Clone)]
struct Standing {
    /// The server is shutting down.
    ending: Rc<Cell<bool>>,
    /// Its device is gone.
    gone: Arc<AtomicBool>,
    troubles: Troubles,
    /// The kill that is triggered by answered flushes.
    doom: Rc<Doom>,
}

impl Standing {
    /// Returns whether the server may report that it has ended.
    fn may_end(&self) -> bool {
        self.ending.get() || self.gone.load(Ordering::Relaxed)
    }

    /// Returns whether it may report that a request failed.
    fn may_fail(&self) -> bool {
        self.troubles.errs.fails > 0 || self.troubles.errs.spots > 0 || self.may_end()
    }

    /// Returns whether a session of an outside program may end through no fault of the server, or
    /// be obstructed by others.
    fn is_shaky(&self) -> bool {
        self.troubles.lost > 0 || self.troubles.talkers > 0 || self.may_end()
    }
}

fn rng(seed: u64, what: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ what)
}

thread_local! {
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// Counts the panics of this thread, including those of tasks that are not awaited.
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

/// A disk, and the expected data of the exports that only a server's clients write.
struct Store {
    id: &'static str,
    media: Arc<Mutex<Media>>,
    shadows: [Rc<RefCell<Shadow>>; 2],
}

impl Store {
    fn new(id: &'static str) -> Store {
        let shadow = |name| Rc::new(RefCell::new(Shadow::new(name, SECTORS)));
        let media: Arc<Mutex<Media>> = Arc::default();
        (0..SECTORS).for_each(|n| media.lock().unwrap().fill(FIRST[3] + n as u64, filled(1 + n as u64, n)));
        Store { id, media, shadows: [shadow(NAMES[0]), shadow(NAMES[1])] }
    }

    /// Returns whether it is the first disk, which outside programs started with.
    fn is_first(&self) -> bool {
        self.id == DISKS[0]
    }

    /// Updates the state after the server has ended. `power`: the disk lost power as well.
    fn after(&self, power: bool) {
        let media = self.media.lock().unwrap();
        for (n, shadow) in self.shadows.iter().enumerate() {
            let found = |sector: usize| media.sector(FIRST[n] + sector as u64);
            // With the process its cache is lost.
            let volatile = power || n == CACHED as usize;
            shadow.borrow_mut().crashed(found, volatile, power);
        }
        if !self.is_first() {
            let found = |sector: usize| media.sector(FIRST[2] + sector as u64);
            let foreign = (0..SECTORS).find(|&sector| found(sector) != [0; SECTOR]);
            assert_eq!(foreign, None, "a sector of the other disk has data that was meant for the first");
        }
    }
}

/// Runs a world from its first server to its last.
pub fn run(seed: u64) -> Done {
    counts_panics();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let local = LocalSet::new();
    let done = runtime.block_on(local.run_until(world(seed)));
    drop((local, runtime));
    assert_eq!(PANICS.get(), 0, "a task has panicked");
    done
}

async fn world(seed: u64) -> Done {
    let mut chance = rng(seed, 0);
    let stores = DISKS.map(|id| Rc::new(Store::new(id)));
    let with_outside = chance.next_u64().is_multiple_of(3);
    let (door, outside) = (Door::new(rng(seed, 50)), Beside::new(with_outside));
    let (mut done, scrubbed) = (Done::default(), Rc::<RefCell<Done>>::default());
    let folder = with_outside.then(|| Rc::new(apps::folder()));
    let scrubs = folder.clone().map(|folder| Scrubs {
        door: door.clone(),
        folder,
        first: Rc::clone(&stores[0]),
        done: Rc::clone(&scrubbed),
        rng: rng(seed, 60),
    });
    let scrubs = scrubs.map(|scrubs| tokio::task::spawn_local(scrubs.scrub()));
    let lives = 1 + chance.next_u64() % if with_outside { 6 } else { 4 };
    for life in 0..lives {
        let mut one_of = |ns: &[u64]| ns[chance.next_u64() as usize % ns.len()];
        let errs = Errs {
            fails: one_of(&[0, 0, 200, 20]),
            hangs: one_of(&[0, 100]),
            dies: one_of(&[0, 0, 0, 3_000]),
            spots: one_of(&[0, 3, 3, 10]),
        };
        let mut troubles = Troubles { errs, cuts: one_of(&[0, 3]), talkers: one_of(&[0, 0, 3]), lost: 0 };
        // How the server ends: with a signal, or in a crash.
        let mut ends = one_of(&[0, 1, 2, 2]);
        let flushes = one_of(&[0, 1, 10, 40]);
        let mut lives_ms = 20_000 + one_of(&[1, 7, 40, 300]) * one_of(&[1, 10, 100]) * 997;
        let mut store = &stores[0];
        if with_outside {
            // Silent connections would only add waiting time, and a missing server would be retried
            // all the time.
            (troubles.cuts, troubles.lost) = (0, one_of(&[0, 5_000_000]));
            ends = one_of(&[0, 1, 1, 2]);
            if life > 0 && one_of(&[0, 0, 1]) == 1 {
                (store, ends, lives_ms) = (&stores[1], one_of(&[1, 1, 2]), 20_000 + one_of(&[1, 10, 300]) * 997);
                done.swaps += 1;
            }
        }
        let seed = seed ^ life << 48;
        let doom = Rc::new(Doom::after(if ends > 0 { flushes } else { 0 }));
        let server = Life { seed, store, door: &door, outside: &outside, folder: &folder, troubles, doom };
        let (wreck, lived) = server.live((ends > 0).then(|| Duration::from_millis(lives_ms))).await;
        assert_eq!(PANICS.get(), 0, "a task has panicked");
        done += lived;
        done.commands += wreck.commands();
        let mut chance = rng(seed, 1);
        wreck.settle(&mut chance);
        let power = ends == 2;
        if power {
            store.media.lock().unwrap().lose_power(&mut chance);
        }
        match ends {
            0 => done.ends += 1,
            1 => done.kills += 1,
            _ => done.blackouts += 1,
        }
        store.after(power);
        // A program beside the server loses its power, too, and may end by itself.
        let dies = power || life + 1 == lives || chance.next_u64().is_multiple_of(4);
        outside.after(&stores[0], dies, power && store.is_first()).await;
    }
    scrubs.iter().for_each(|scrubs| scrubs.abort());
    done += *scrubbed.borrow();
    done.checked = stores.iter().flat_map(|s| &s.shadows).map(|s| s.borrow().checked).sum::<u64>() + outside.checked();
    done.outside = outside.done.borrow().requests;
    done.failed += outside.done.borrow().failed;
    done
}
