//! Accepting clients, and letting go of them.
//!
//! Each socket has places of its own, so that clients of one take none from those of another. A
//! client takes a place when it has sent something, and as long as it is served; one that sends
//! nothing has none. How many negotiate at a time is bounded, too: the one that has negotiated for
//! the longest is disconnected when another comes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::address::Listening;
use super::connection::{Ended, Shared, serve};
use crate::note::{About, Note};

/// After the machine ran short of something, the next client is accepted this much later.
pub(crate) const SHORT_OF: Duration = Duration::from_millis(100);
/// Clients of a socket that may negotiate at a time.
pub const NEGOTIATING: usize = 64;

/// Clients of a socket that are accepted at once, and one more each so often. Each costs the server
/// work, whatever it says; those that come faster wait in the kernel's queue, which is the socket's
/// own.
pub const COME_AT_ONCE: u32 = 64;
/// See [`COME_AT_ONCE`].
pub const COMES_EACH: Duration = Duration::from_millis(1);

/// Bounds how many come.
#[derive(Debug)]
pub struct Pace(Instant);

impl Default for Pace {
    fn default() -> Pace {
        Pace(Instant::now() - COME_AT_ONCE * COMES_EACH)
    }
}

impl Pace {
    /// Waits until another one may come.
    pub async fn next(&mut self) {
        let now = Instant::now();
        self.0 = self.0.max(now - (COME_AT_ONCE - 1) * COMES_EACH) + COMES_EACH;
        if self.0 > now {
            sleep_until(self.0).await;
        }
    }
}

/// Accepts clients until `end` becomes true, of which `clients` at a time are served; then lets
/// each finish what it has under way. Returns when all have gone.
pub async fn accept(listening: Listening, shared: Shared, clients: usize, end: watch::Receiver<bool>, note: Note) {
    let (shared, places) = (Arc::new(shared), Arc::new(Semaphore::new(clients)));
    let mut clients = JoinSet::new();
    let mut negotiating: VecDeque<oneshot::Sender<()>> = VecDeque::new();
    let (mut ends, mut pace) = (end.clone(), Pace::default());
    while !*ends.borrow_and_update() {
        let accepted = tokio::select! {
            accepted = listening.accept() => accepted,
            _ = ends.changed() => continue,
            Some(_) = clients.join_next() => continue,
        };
        match accepted {
            Ok(stream) => {
                pace.next().await;
                negotiating.retain(|one| !one.is_closed());
                if negotiating.len() == NEGOTIATING {
                    // It hears of it by this.
                    negotiating.pop_front();
                }
                let (goes_on, must_go) = oneshot::channel();
                negotiating.push_back(goes_on);
                let (shared, places, end, note) =
                    (Arc::clone(&shared), Arc::clone(&places), end.clone(), Arc::clone(&note));
                clients.spawn(async move {
                    note(About::Visits, "a client comes".into());
                    match serve(stream, &shared, places, must_go, end).await {
                        Ok(()) => note(About::Visits, "a client has left".into()),
                        // Nothing was promised to it, and a probe of whether a server listens does
                        // no more.
                        Err(why @ Ended::Silent) => note(About::Visits, format!("a client's connection ended: {why}")),
                        Err(why) => note(About::Client, format!("a client's connection ended: {why}")),
                    }
                });
            }
            Err(why) => {
                note(About::Client, format!("a client could not be accepted: {why}"));
                tokio::time::sleep(SHORT_OF).await;
            }
        }
    }
    drop(listening);
    while clients.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn some_come_at_once_and_the_others_one_after_another() {
        let (begun, mut pace) = (Instant::now(), Pace::default());
        for _ in 0..COME_AT_ONCE {
            pace.next().await;
        }
        assert!(begun.elapsed() <= COMES_EACH, "{:?}", begun.elapsed());
        for _ in 0..1_000 {
            pace.next().await;
        }
        assert!(begun.elapsed() >= 1_000 * COMES_EACH, "{:?}", begun.elapsed());
        // What is not used for a while is there again, and no more than that.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let rested = Instant::now();
        for _ in 0..COME_AT_ONCE + 100 {
            pace.next().await;
        }
        assert!((98 * COMES_EACH..=102 * COMES_EACH).contains(&rested.elapsed()), "{:?}", rested.elapsed());
    }
}
