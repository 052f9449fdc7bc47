//! What clients may have under way, from the request until they have read the answer. A connection
//! that finds it used up waits, and reads nothing more from its client: so whatever clients do,
//! memory is bounded, and there is room for each request in the engine's queue.
//!
//! Half of it is common, and half is divided among the owners of requests, which are the exports
//! and, after them, the control interface: each has a reserved part. An owner takes of its own
//! part, and of the common one when that is used up. So one whose clients send requests without end
//! has at most the common half and its own part, and each of the others always finds its own.
//!
//! Within a part no client may have more than it leaves free (dynamic thresholds; Choudhury and
//! Hahne, Dynamic Queue Length Thresholds in a Shared Memory ATM Switch, INFOCOM 1996): one alone
//! has half of it, and n that take what they can each have 1/(n + 1), so that something is left for
//! the next client. A request that alone is longer than half of the part waits until nothing of it
//! is taken.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Bytes of a unit, in which bytes are counted.
const UNIT: u64 = 4096;

/// Requests and bytes, for each owner and for all.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Mutex<Inner>>);

/// A client, which has requests under way: a connection, or a session of the control interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(u64);

/// A request's part of the budget: given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    /// `None`: it was given back already.
    budget: Option<Budget>,
    client: ClientId,
    part: usize,
    units: u64,
}

/// Requests and units of bytes.
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
    /// Those of the owners, and the common one behind them.
    parts: Vec<Part>,
    waiting: VecDeque<Waiter>,
    clients: u64,
}

impl Part {
    fn new(requests: u64, units: u64) -> Part {
        let all = Amount { requests, units };
        Part { all, free: all, held: BTreeMap::new() }
    }

    /// Takes room for a client's request of `units` units, if there is room.
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
    /// The part that has room, and the units that are taken of it: of the common one no more than
    /// it has, and only if `common_too`.
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

    /// Whether a client that has nothing of the common part waits for it: then later ones take none
    /// of it.
    fn is_awaited(&self) -> bool {
        let common = &self.parts[self.parts.len() - 1];
        self.waiting.iter().any(|w| !w.room.is_closed() && !common.held.contains_key(&w.client))
    }

    /// Gives room to the requests that wait, in the order in which they came. One that finds none
    /// is overtaken; where its client has nothing of the common part, only by requests that take of
    /// their owners' parts.
    fn serve(&mut self, budget: &Budget) {
        let waiting = std::mem::take(&mut self.waiting);
        let mut awaited = false;
        for waiter in waiting {
            let Waiter { client, owner, units, .. } = waiter;
            // Its client has gone.
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
                // It has gone at this instant. Dropped, it would ask for the lock that we have.
                share.budget = None;
                self.parts[part].give_back(client, units);
            }
        }
    }
}

impl Budget {
    /// Room for `requests` requests and `bytes` bytes, of `owners` owners.
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

    /// A new client.
    pub fn client(&self) -> ClientId {
        let mut inner = self.lock();
        inner.clients += 1;
        ClientId(inner.clients)
    }

    /// Room for a request of `bytes` bytes, as soon as there is some. Panics when there is no such
    /// owner.
    pub async fn share(&self, owner: u32, client: ClientId, bytes: u64) -> Share {
        loop {
            if let Some(share) = self.try_share(owner, client, bytes) {
                return share;
            }
            let (room, waits) = oneshot::channel();
            {
                let mut inner = self.lock();
                inner.waiting.push_back(Waiter { client, owner, units: bytes.div_ceil(UNIT), room });
                // It may have been given back just now.
                inner.serve(self);
            }
            // There is no answer only when the budget itself goes, which we hold.
            if let Ok(share) = waits.await {
                return share;
            }
        }
    }

    /// The same, at once or not at all.
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
        // Half of its owner's part, and half of the common one.
        let mut shares = all_of(&b, 0, client, UNIT);
        assert_eq!(shares.len(), 8);
        assert!(b.try_share(0, client, 0).is_none(), "requests are counted, too");
        shares.pop();
        assert!(b.try_share(0, client, 2 * UNIT).is_none());
        assert!(b.try_share(0, client, UNIT).is_some());
        drop(shares);
        // Larger than all there is: it waits until the common part is free, and has all of it.
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
    async fn who_asks_without_end_leaves_others_their_parts_and_a_part_of_his_own() {
        let b = Budget::new(8_000, 8_000 * UNIT, 4);
        let greedy: Vec<Vec<Share>> = (0..9).map(|_| all_of(&b, 0, b.client(), UNIT)).collect();
        // 4,000 are common, and 1,000 his owner's. Each has as much as it leaves free when it is
        // the only one, so that the first has half; those that come later have half of what they
        // find.
        assert_eq!(greedy[0].len(), 2_500);
        // Another client of the same owner finds something all the same, and one of another owner
        // half of its part.
        assert!(b.try_share(0, b.client(), UNIT).is_some());
        assert!(all_of(&b, 1, b.client(), UNIT).len() >= 500);
        // While one that has nothing of the common part waits for it, others take none of it.
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
        // What one that waits takes no longer is not kept for it.
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
