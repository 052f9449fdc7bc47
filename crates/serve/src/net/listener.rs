//! Accepting and disconnecting clients.
//!
//! Each socket has its own client limit, so that the clients of one do not take the places of
//! another's. A client takes a place with its first data and keeps it while it is served; an idle
//! connection takes none. The number of clients in negotiation is bounded as well: when another
//! connects, the one that has negotiated for the longest is disconnected.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::address::Listening;
use super::connection::{Ended, Shared, serve};
use crate::note::{About, Note};

/// The delay before the next client is accepted after the system ran out of a resource.
pub(crate) const SHORT_OF: Duration = Duration::from_millis(100);
/// Clients of a socket in negotiation at a time.
pub const MAX_NEGOTIATING: usize = 32;

/// Clients of a socket that are accepted in a burst; after that, one each [`COMES_EACH`]. Each
/// costs the server work, whatever it sends. Excess clients wait in the kernel's backlog of the
/// socket.
pub const COME_AT_ONCE: u32 = 64;
/// See [`COME_AT_ONCE`].
pub const COMES_EACH: Duration = Duration::from_millis(1);

/// A token bucket for accepting clients.
#[derive(Debug)]
pub(crate) struct Pace(Instant);

impl Default for Pace {
    fn default() -> Pace {
        Pace(Instant::now() - COME_AT_ONCE * COMES_EACH)
    }
}

impl Pace {
    /// Waits until another client may be accepted.
    pub(crate) async fn next(&mut self) {
        let now = Instant::now();
        self.0 = self.0.max(now - (COME_AT_ONCE - 1) * COMES_EACH) + COMES_EACH;
        if self.0 > now {
            sleep_until(self.0).await;
        }
    }
}

/// Accepts clients until `end` becomes true and serves at most `clients` of them at a time; then
/// lets each finish its requests in flight. Returns when all have disconnected.
pub(crate) async fn accept(
    listening: Listening,
    shared: Shared,
    clients: usize,
    end: watch::Receiver<bool>,
    note: Note,
) {
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
                if negotiating.len() == MAX_NEGOTIATING {
                    // Dropping the sender disconnects the client.
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
                        // Logged as a visit: the client had no guarantees, and a probe for a
                        // listening server does the same.
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
        // Unused tokens accumulate up to the burst size.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let rested = Instant::now();
        for _ in 0..COME_AT_ONCE + 100 {
            pace.next().await;
        }
        assert!((98 * COMES_EACH..=102 * COMES_EACH).contains(&rested.elapsed()), "{:?}", rested.elapsed());
    }
}
