//! Accepting clients, and letting go of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::address::Listening;
use super::connection::{Shared, serve};

/// After the machine ran short of something, the next client is waited for this long later.
const SHORT_OF: Duration = Duration::from_millis(100);

/// Called with a line about a client that did not leave in good order.
pub type Note = Arc<dyn Fn(String) + Send + Sync>;

/// Accepts clients until `end` becomes true, as many at a time as there are `places`, which all listeners of a server share;
/// then lets each finish what it has under way. Returns when all have gone.
pub async fn accept(
    listening: Listening,
    shared: Shared,
    places: Arc<Semaphore>,
    end: watch::Receiver<bool>,
    note: Note,
) {
    let shared = Arc::new(shared);
    let mut clients = JoinSet::new();
    let mut ends = end.clone();
    while !*ends.borrow_and_update() {
        // Who finds no place waits in the socket's own queue, and in the end in his own timeout.
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place.expect("never closed"),
            _ = ends.changed() => continue,
        };
        let accepted = tokio::select! {
            accepted = listening.accept() => accepted,
            _ = ends.changed() => continue,
            Some(_) = clients.join_next() => continue,
        };
        match accepted {
            Ok(stream) => {
                let (shared, end, note) = (Arc::clone(&shared), end.clone(), Arc::clone(&note));
                clients.spawn(async move {
                    let _place = place;
                    if let Err(why) = serve(stream, &shared, end).await {
                        note(format!("a client's connection ended: {why}"));
                    }
                });
            }
            Err(why) => {
                note(format!("a client could not be accepted: {why}"));
                tokio::time::sleep(SHORT_OF).await;
            }
        }
    }
    drop(listening);
    while clients.join_next().await.is_some() {}
}
