//! The budget of client requests in flight, from the request until the client has read the answer.
//! When it is exhausted, a connection waits and reads nothing more from its client. This bounds
//! memory whatever clients do, and each request finds room in the engine's queue.
//!
//! Half of the budget is shared, and half is divided among the owners of requests as reserved
//! parts. The owners are the exports and, after them, the control interface. An owner takes from
//! its own part first and then from the shared one. Thus an owner whose clients send requests
//! without limit has at most the shared half and its own part, and every other owner keeps its own
//! part.
//!
//! Within a part, a client may hold no more than the part has left (dynamic thresholds; Choudhury
//! and Hahne, Dynamic Queue Length Thresholds in a Shared Memory ATM Switch, INFOCOM 1996). A
//! single client holds at most half, and n clients with unlimited demand hold 1/(n + 1) each, so
//! that something is left for the next client. A request that exceeds half of the part waits until
//! the part is unused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Requests in flight of all clients.
pub const MAX_REQUESTS: usize = 4096;

/// The accounting unit, bytes.
const UNIT: u64 = 4096;

/// The budget in requests and bytes, for each owner and for all.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Mutex<Inner>>);

/// A client with requests in flight: a connection, or a session of the control interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(u64);

/// A request's share of the budget, returned on drop.
#[derive(Debug)]
pub struct Share {
    /// `None` once it has been returned.
    budget: Option<Budget>,
    client: ClientId,
    part: usize,
    units: u64,
}

/// Requests, and units of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    requests: u64,
    units: u64,
}

#[derive(Debug)]
struct Part {
    all: Amount,
    free: Amount,
    held: BTreeMap<ClientId, Amount>,
}

#[derive(Debug)]
struct Waiter {
    client: ClientId,
    owner: u32,
    units: u64,
    room: oneshot::Sender<Share>,
}

#[derive(Debug)]
struct Inner {
    /// The owners' parts, and the shared one last.
    parts: Vec<Part>,
    waiting: VecDeque<Waiter>,
    clients: u64,
}

impl Part {
    fn new(requests: u64, units: u64) -> Part {
        let all = Amount { requests, units };
        Part { all, free: all, held: BTreeMap::new() }
    }

    /// Takes room for a client's request of `units` units; returns false if there is none.
    fn take(&mut self, client: ClientId, units: u64) -> bool {
        let (requests, left) = (self.free.requests.checked_sub(1), self.free.units.checked_sub(units));
        let (Some(requests), Some(left)) = (requests, left) else { return false };
        let held = self.held.get(&client).copied().unwrap_or_default();
        let fair = held.requests < requests && held.units + units <= left;
        if !fair && self.free != self.all {
            return false;
        }
        self.free = Amount { requests, units: left };
        self.held.insert(client, Amount { requests: held.requests + 1, units: held.units + units });
        true
    }

    fn give_back(&mut self, client: ClientId, units: u64) {
        self.free = Amount { requests: self.free.requests + 1, units: self.free.units + units };
        if let Some(held) = self.held.get_mut(&client) {
            *held = Amount { requests: held.requests - 1, units: held.units - units };
            if held.requests == 0 {
                self.held.remove(&client);
            }
        }
    }
}

impl Inner {
    /// Returns the part that has room and the units taken from it. The shared part is used only if
    /// `common_too`, and for no more units than it has.
    fn take(&mut self, owner: u32, client: ClientId, units: u64, common_too: bool) -> Option<(usize, u64)> {
        let common = self.parts.len() - 1;
        assert!((owner as usize) < common, "expected an owner below {common}, found {owner}");
        let (own, most) = (owner as usize, units.min(self.parts[common].all.units));
        if self.parts[own].take(client, units) {
            Some((own, units))
        } else if common_too && self.parts[common].take(client, most) {
            Some((common, most))
        } else {
            None
        }
    }

    /// Returns whether a client that holds nothing of the shared part waits for it; then later
    /// requests take nothing from it.
    fn is_awaited(&self) -> bool {
        let common = &self.parts[self.parts.len() - 1];
        self.waiting.iter().any(|w| !w.room.is_closed() && !common.held.contains_key(&w.client))
    }

    /// Serves the waiting requests in order of arrival. Later requests may overtake one that finds
    /// no room; if its client holds nothing of the shared part, only from their owners' parts.
    fn serve(&mut self, budget: &Budget) {
        let waiting = std::mem::take(&mut self.waiting);
        let mut awaited = false;
        for waiter in waiting {
            let Waiter { client, owner, units, .. } = waiter;
            // The client has disconnected.
            if waiter.room.is_closed() {
                continue;
            }
            let Some((part, units)) = self.take(owner, client, units, !awaited) else {
                awaited |= !self.parts[self.parts.len() - 1].held.contains_key(&client);
                self.waiting.push_back(waiter);
                continue;
            };
            let share = Share { budget: Some(budget.clone()), client, part, units };
            if let Err(mut share) = waiter.room.send(share) {
                // The waiter was just cancelled. Dropping the share here would deadlock.
                share.budget = None;
                self.parts[part].give_back(client, units);
            }
        }
    }
}

impl Budget {
    /// Creates a budget of `requests` requests and `bytes` bytes for `owners` owners.
    pub fn new(requests: usize, bytes: u64, owners: usize) -> Budget {
        let (requests, units, n) = (requests as u64, (bytes / UNIT).max(1), owners as u64);
        let (own_requests, own_units) = (requests / 2 / n.max(1), units / 2 / n.max(1));
        let mut parts: Vec<Part> = (0..owners).map(|_| Part::new(own_requests, own_units)).collect();
        parts.push(Part::new(requests - own_requests * n, units - own_units * n));
        Budget(Arc::new(Mutex::new(Inner { parts, waiting: VecDeque::new(), clients: 0 })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a new client.
    pub fn client(&self) -> ClientId {
        let mut inner = self.lock();
        inner.clients += 1;
        ClientId(inner.clients)
    }

    /// Waits for room for a request of `bytes` bytes. Panics if there is no such owner.
    pub async fn share(&self, owner: u32, client: ClientId, bytes: u64) -> Share {
        loop {
            if let Some(share) = self.try_share(owner, client, bytes) {
                return share;
            }
            let (room, waits) = oneshot::channel();
            {
                let mut inner = self.lock();
                inner.waiting.push_back(Waiter { client, owner, units: bytes.div_ceil(UNIT), room });
                // Room may have been returned in the meantime.
                inner.serve(self);
            }
            // The sender is dropped only with the budget, which `self` keeps alive.
            if let Ok(share) = waits.await {
                return share;
            }
        }
    }

    /// Takes room for a request if it is available now.
    pub fn try_share(&self, owner: u32, client: ClientId, bytes: u64) -> Option<Share> {
        let mut inner = self.lock();
        let common_too = !inner.is_awaited();
        let (part, units) = inner.take(owner, client, bytes.div_ceil(UNIT), common_too)?;
        Some(Share { budget: Some(self.clone()), client, part, units })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(budget) = self.budget.take() {
            let mut inner = budget.lock();
            inner.parts[self.part].give_back(self.client, self.units);
            if !inner.waiting.is_empty() {
                inner.serve(&budget);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_of(b: &Budget, owner: u32, client: ClientId, bytes: u64) -> Vec<Share> {
        std::iter::from_fn(|| b.try_share(owner, client, bytes)).collect()
    }

    #[tokio::test]
    async fn a_share_is_there_again_when_it_was_given_back() {
        let b = Budget::new(16, 16 * UNIT, 1);
        let [client, other] = [b.client(), b.client()];
        // Half of its owner's part, and half of the shared one.
        let mut shares = all_of(&b, 0, client, UNIT);
        assert_eq!(shares.len(), 8);
        assert!(b.try_share(0, client, 0).is_none(), "requests are counted, too");
        shares.pop();
        assert!(b.try_share(0, client, 2 * UNIT).is_none());
        assert!(b.try_share(0, client, UNIT).is_some());
        drop(shares);
        // Larger than the budget: it waits until the shared part is unused and takes all of it.
        let small = (0..8).map(|_| b.try_share(0, other, UNIT).expect("room")).collect::<Vec<_>>();
        let large = tokio::spawn({
            let b = b.clone();
            async move { b.share(0, client, 1 << 40).await }
        });
        tokio::task::yield_now().await;
        assert!(!large.is_finished());
        drop(small);
        let large = large.await.unwrap();
        assert_eq!(all_of(&b, 0, other, UNIT).len(), 4, "its owner's part is left");
        drop(large);
        assert_eq!(all_of(&b, 0, other, UNIT).len(), 8);
    }

    #[tokio::test]
    async fn an_endless_client_leaves_others_their_shares_and_keeps_its_own() {
        let b = Budget::new(8_000, 8_000 * UNIT, 4);
        let greedy: Vec<Vec<Share>> = (0..9).map(|_| all_of(&b, 0, b.client(), UNIT)).collect();
        // 4,000 are shared, and 1,000 are their owner's. Each client holds as much as it leaves
        // free, so the first has half, and later ones have half of what they find.
        assert_eq!(greedy[0].len(), 2_500);
        // Another client of the same owner still finds room, and one of another owner half of its
        // part.
        assert!(b.try_share(0, b.client(), UNIT).is_some());
        assert!(all_of(&b, 1, b.client(), UNIT).len() >= 500);
        // While a client that holds nothing of the shared part waits for it, others take nothing
        // from it.
        let large = tokio::spawn({
            let (b, new) = (b.clone(), b.client());
            async move { b.share(2, new, 1_500 * UNIT).await }
        });
        tokio::task::yield_now().await;
        let before = b.lock().parts[4].free;
        assert!(!all_of(&b, 1, b.client(), UNIT).is_empty(), "its owner's part is there for it");
        assert!(!large.is_finished() && b.lock().parts[4].free == before);
        let patient = b.client();
        let mine = all_of(&b, 0, patient, UNIT).len();
        let waits = tokio::spawn({
            let b = b.clone();
            async move { b.share(0, patient, 64 * UNIT).await }
        });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished() && mine < 64);
        // Room is not kept for a waiter that has been cancelled.
        let gone = tokio::spawn({
            let b = b.clone();
            async move { b.share(0, patient, 2_000 * UNIT).await }
        });
        tokio::task::yield_now().await;
        gone.abort();
        drop(greedy);
        waits.await.unwrap();
        drop(large.await.unwrap());
        assert!(gone.await.is_err());
        let inner = b.lock();
        assert!(inner.waiting.is_empty() && inner.parts.iter().all(|p| p.free == p.all && p.held.is_empty()));
    }
}
