//! A whole server in one thread, under one seed: NBD clients, a write cache, a session that reads
//! everything, the engine and a disk, and the failures of each.
//!
//! Time is tokio's, and passes only when every task waits. Its timers have a resolution of a
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

/// The disk that a server has, and another that it may have after a new start.
const DISKS: [&str; 2] = ["one", "two"];
/// Sectors of each export: few, so that requests meet.
const SECTORS: usize = 768;
/// Where the exports begin: neither at the beginning of the disk nor of a track.
const FIRST: [u64; 4] = [1_000, 60_000, 45_000, 20_000];
const NAMES: [&str; 4] = ["plain", "cached", OUTSIDE, ARCHIVE];
/// The one with a write cache.
const CACHED: u32 = 1;
/// The one that has a write cache in a program of its own, if any.
const OUTSIDE: &str = "outside";
/// The read-only one.
const ARCHIVE: &str = "archive";

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
    /// Blocks that a session wrote, and those that it did not since a client's data is newer.
    pub free_writes: u64,
    pub superseded: u64,
    /// Calls of sessions that talk fast.
    pub talked: u64,
    /// Commands of the drive.
    pub commands: u64,
    /// Connections of NBD clients that were lost, and those of the control interface that were
    /// broken.
    pub lost: u64,
    pub broken: u64,
    /// Deaths of the server, of the power, and ends in good order.
    pub kills: u64,
    pub blackouts: u64,
    pub ends: u64,
    /// Of the deaths, those right when a flush was answered.
    pub dooms: u64,
    /// Lives with another disk.
    pub swaps: u64,
    /// Requests of clients of a write cache outside.
    pub outside: u64,
    /// Backups and scrubs that came to their end, and damaged units that scrubs have found.
    pub backups: u64,
    pub scrubs: u64,
    pub found: u64,
}

impl Done {
    /// Requests, blocks that a session was brought or has written, and commands.
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

/// What may go wrong in a world.
#[derive(Clone, Copy, Debug, Default)]
struct Troubles {
    errs: Errs,
    /// One of this number of rounds of a client ends in a cut connection; 0: none.
    cuts: u64,
    /// Sessions that talk fast.
    talkers: u64,
    /// Longest life of a connection of programs outside, milliseconds; 0: none breaks.
    lost: u64,
}

/// What a server may answer to what is asked rightly.
#[derive(Clone)]
struct Standing {
    /// It ends.
    ending: Rc<Cell<bool>>,
    /// Its device is gone.
    gone: Arc<AtomicBool>,
    troubles: Troubles,
    /// What flushes that are answered bring nearer.
    doom: Rc<Doom>,
}

impl Standing {
    /// Whether it may say that it has ended.
    fn may_end(&self) -> bool {
        self.ending.get() || self.gone.load(Ordering::Relaxed)
    }

    /// Whether it may say that something could not be done.
    fn may_fail(&self) -> bool {
        self.troubles.errs.fails > 0 || self.troubles.errs.spots > 0 || self.may_end()
    }

    /// Whether a session of a program outside may end without a reason of the server's, or find
    /// others' in its way.
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

/// A disk, and what the exports on it may hold that only a server's clients write.
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

    /// Whether it is the one that programs outside began with.
    fn is_first(&self) -> bool {
        self.id == DISKS[0]
    }

    /// A server has ended. `power`: and the power of the disk was gone.
    fn after(&self, power: bool) {
        let media = self.media.lock().unwrap();
        for (n, shadow) in self.shadows.iter().enumerate() {
            let found = |sector: usize| media.sector(FIRST[n] + sector as u64);
            // With the process goes what is only in its cache.
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
        // How it ends: with a signal, or by a crash in the middle of something.
        let mut ends = one_of(&[0, 1, 2, 2]);
        let flushes = one_of(&[0, 1, 10, 40]);
        let mut lives_ms = 20_000 + one_of(&[1, 7, 40, 300]) * one_of(&[1, 10, 100]) * 997;
        let mut store = &stores[0];
        if with_outside {
            // What falls silent would be waited for, and meanwhile a server that is not there tried
            // again and again.
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
