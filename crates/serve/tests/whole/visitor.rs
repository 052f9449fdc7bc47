//! NBD clients that connect and disconnect.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use headtime_serve::internals::net::connection::{Shared, serve};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::sync::{Semaphore, oneshot, watch};

use super::client::{Client, Habit};
use super::network::{Fate, connection};
use super::process::Process;
use super::shadow::Shadow;
use super::{Done, Standing};

/// The largest number of bytes after which a connection breaks within a message.
const MAX_CUT_BYTES: usize = 20_000;

/// Connects, sends requests and disconnects in some way, repeatedly.
pub struct Visitor {
    pub shadow: Rc<RefCell<Shadow>>,
    pub export: &'static str,
    pub shared: Shared,
    pub ends: watch::Receiver<bool>,
    /// One in this number of connections is cut or falls silent; 0 for none.
    pub cuts: u64,
    pub habit: Habit,
    pub rng: Xoshiro256PlusPlus,
    pub done: Rc<RefCell<Done>>,
    pub standing: Standing,
    /// The process that its connections belong to.
    pub process: Rc<Process>,
    /// An answer that takes longer never arrives.
    pub patience: Duration,
}

impl Visitor {
    /// Makes some visits.
    pub async fn visit(mut self) {
        let places = Arc::new(Semaphore::new(8));
        for _ in 0..4 {
            self.once(&places).await;
        }
    }

    /// Makes visits indefinitely.
    pub async fn stay(mut self) {
        let places = Arc::new(Semaphore::new(8));
        loop {
            self.once(&places).await;
            let pause = Duration::from_millis(self.rng.next_u64() % 1_000_000);
            tokio::time::sleep(pause).await;
        }
    }

    async fn once(&mut self, places: &Arc<Semaphore>) {
        {
            let (stream, wire, fate) = connection(Xoshiro256PlusPlus::seed_from_u64(self.rng.next_u64()));
            let (goes_on, must_go) = oneshot::channel();
            let (shared, ends, places) = (self.shared.clone(), self.ends.clone(), Arc::clone(places));
            self.process.spawn(async move {
                let _goes_on = goes_on;
                let _ = serve(Box::new(wire), &shared, places, must_go, ends).await;
            });
            let rng = Xoshiro256PlusPlus::seed_from_u64(self.rng.next_u64());
            let (shadow, standing) = (Rc::clone(&self.shadow), self.standing.clone());
            let client = Client::open(stream, self.export, shadow, rng, standing, self.habit);
            let mut client = client.await.expect("an export");
            let cut = self.cuts > 0 && self.rng.next_u64().is_multiple_of(self.cuts);
            if cut {
                self.process.spawn_local(trouble(fate, self.rng.next_u64()));
            }
            let worked = client.work(120, self.patience).await;
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

/// Disturbs a connection at a random time.
async fn trouble(fate: Fate, chance: u64) {
    tokio::time::sleep(Duration::from_millis(chance % 1_000_000)).await;
    match chance % 3 {
        0 => fate.cut(),
        1 => fate.cut_after(1 + (chance >> 32) as usize % MAX_CUT_BYTES),
        _ => fate.silence(),
    }
}
