//! A whole server in one thread, under one seed: NBD clients, a write cache, a session that reads everything, the
//! engine and a disk, and the failures of each.
//!
//! Time is tokio's, and passes only when every task waits. Its timers have a resolution of a millisecond, which stands
//! for a microsecond of the platter, so that gaps are as long as in real time.

mod client;
mod disk;
mod life;
mod network;
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

use disk::{Errs, Media};
use life::Life;
use shadow::Shadow;

/// Sectors of each export: few, so that requests meet.
const SECTORS: usize = 768;
/// Where the exports begin: neither at the beginning of the disk nor of a track.
const FIRST: [u64; 2] = [1_000, 60_000];
const NAMES: [&str; 2] = ["plain", "cached"];
/// The one with a write cache.
const CACHED: u32 = 1;

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
    /// Connections that were lost.
    pub lost: u64,
    /// Deaths of the server, of the power, and ends in good order.
    pub kills: u64,
    pub blackouts: u64,
    pub ends: u64,
}

impl Done {
    /// Requests, blocks that a session was brought or has written, and commands.
    pub fn operations(&self) -> u64 {
        self.requests + self.delivered / 8 + self.free_writes + self.commands
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
    /// Sessions that talk fast.
    talkers: u64,
}

/// What a server may answer to what is asked rightly.
#[derive(Clone)]
struct Standing {
    /// It ends.
    ending: Rc<Cell<bool>>,
    /// Its device is gone.
    gone: Arc<AtomicBool>,
    errs: Errs,
}

impl Standing {
    /// Whether it may say that it has ended.
    fn may_end(&self) -> bool {
        self.ending.get() || self.gone.load(Ordering::Relaxed)
    }

    /// Whether it may say that something could not be done.
    fn may_fail(&self) -> bool {
        self.errs.fails > 0 || self.may_end()
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
    let media: Arc<Mutex<Media>> = Arc::default();
    let shadows: [Rc<RefCell<Shadow>>; 2] = NAMES.map(|name| Rc::new(RefCell::new(Shadow::new(name, SECTORS))));
    let mut done = Done::default();
    for life in 0..1 + chance.next_u64() % 4 {
        let mut one_of = |ns: &[u64]| ns[chance.next_u64() as usize % ns.len()];
        let errs = Errs { fails: one_of(&[0, 0, 200]), hangs: one_of(&[0, 100]), dies: one_of(&[0, 0, 0, 3_000]) };
        let troubles = Troubles { errs, cuts: one_of(&[0, 3]), talkers: one_of(&[0, 0, 3]) };
        // How it ends: with a signal, or by a crash in the middle of something.
        let ends = one_of(&[0, 1, 2, 2]);
        let lives_ms = 20_000 + one_of(&[1, 7, 40, 300]) * one_of(&[1, 10, 100]) * 997;
        let server = Life { seed: seed ^ life << 48, media: &media, shadows: &shadows, troubles };
        let (wreck, lived) = server.live((ends > 0).then(|| Duration::from_millis(lives_ms))).await;
        assert_eq!(PANICS.get(), 0, "a task has panicked");
        done += lived;
        done.commands += wreck.commands();
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
