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
//!
//! Requests of an export with a rate limit may be in flight for minutes. So that they hold no room
//! that other exports use, an export with a limit has only its own part. The exception is a request
//! that its own part could never hold: it takes room from the shared part, of which all exports
//! with a limit together hold a quarter ([`LIMITED_DIVISOR`]). While that quarter has room, such a
//! request waits only for requests that are in progress, and later ones of all exports wait behind
//! it. Room in the shared part that exports with a limit hold, also what they took before they got
//! it, is ignored when the shared part must be unused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Requests in flight of all clients.
pub const MAX_REQUESTS: usize = 4096;

/// The accounting unit, bytes.
const UNIT: u64 = 4096;

/// The part of the shared part that exports with a limit may hold together: one in this number.
const LIMITED_DIVISOR: u64 = 4;

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
    owner: u32,
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

impl Amount {
    fn add(&mut self, other: Amount) {
        *self = Amount { requests: self.requests + other.requests, units: self.units + other.units };
    }

    fn sub(&mut self, other: Amount) {
        *self = Amount { requests: self.requests - other.requests, units: self.units - other.units };
    }
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
    /// The owners with a limit.
    limited: Vec<bool>,
    /// What each owner holds of the shared part, and what those with a limit hold together.
    shared: Vec<Amount>,
    all_limited: Amount,
}

impl Part {
    fn new(requests: u64, units: u64) -> Part {
        let all = Amount { requests, units };
        Part { all, free: all, held: BTreeMap::new() }
    }

    /// Returns whether a client's request of `units` units leaves free what the client then holds.
    fn is_fair(&self, client: ClientId, units: u64) -> bool {
        let (requests, left) = (self.free.requests.checked_sub(1), self.free.units.checked_sub(units));
        let held = self.held.get(&client).copied().unwrap_or_default();
        requests.is_some_and(|requests| held.requests < requests) && left.is_some_and(|left| held.units + units <= left)
    }

    /// Takes room for a client's request of `units` units, if that number is free.
    fn take(&mut self, client: ClientId, units: u64) -> bool {
        if self.free.requests == 0 || self.free.units < units {
            return false;
        }
        let one = Amount { requests: 1, units };
        self.free.sub(one);
        self.held.entry(client).or_default().add(one);
        true
    }

    fn give_back(&mut self, client: ClientId, units: u64) {
        let one = Amount { requests: 1, units };
        self.free.add(one);
        if let Some(held) = self.held.get_mut(&client) {
            held.sub(one);
            if held.requests == 0 {
                self.held.remove(&client);
            }
        }
    }
}

impl Inner {
    /// Returns the part that has room and the units taken from it. The shared part is used only if
    /// `shared_too`, and for no more units than it has.
    fn take(&mut self, owner: u32, client: ClientId, units: u64, shared_too: bool) -> Option<(usize, u64)> {
        let (own, last) = (owner as usize, self.parts.len() - 1);
        assert!(own < last, "expected an owner below {last}, found {owner}");
        let part = &mut self.parts[own];
        if (part.is_fair(client, units) || part.free == part.all) && part.take(client, units) {
            return Some((own, units));
        }
        if !shared_too {
            return None;
        }
        let units = self.units_of_shared(owner, client, units)?;
        if !self.parts[last].take(client, units) {
            return None;
        }
        let one = Amount { requests: 1, units };
        self.shared[own].add(one);
        if self.limited[own] {
            self.all_limited.add(one);
        }
        Some((last, units))
    }

    /// Returns how many units of the shared part a request takes; `None` if it may not take any
    /// now.
    fn units_of_shared(&self, owner: u32, client: ClientId, units: u64) -> Option<u64> {
        let shared = &self.parts[self.parts.len() - 1];
        if self.limited[owner as usize] {
            return self.limited_units(units).filter(|_| self.needs_shared(owner, units));
        }
        let mut held = shared.free;
        held.add(self.all_limited);
        match shared.is_fair(client, units) {
            true => Some(units),
            false => (held == shared.all).then_some(units.min(shared.free.units)),
        }
    }

    /// Returns whether a request may take room from the shared part at all.
    fn needs_shared(&self, owner: u32, units: u64) -> bool {
        !self.limited[owner as usize] || units > self.parts[owner as usize].all.units
    }

    /// Returns how many units of the shared part a request of an owner with a limit may take;
    /// `None`: requests of such owners hold too much of it.
    fn limited_units(&self, units: u64) -> Option<u64> {
        let most = (self.parts[self.parts.len() - 1].all.units / LIMITED_DIVISOR).max(1);
        let taken = units.min(most);
        (self.all_limited.requests == 0 || self.all_limited.units + taken <= most).then_some(taken)
    }

    /// Returns whether this request waits for the shared part and its client holds nothing of it,
    /// so that later requests take nothing from it: those of owners without a limit, and with one.
    /// A request that waits for the owners with a limit holds up only these.
    fn awaits(&self, waiter: &Waiter) -> [bool; 2] {
        let shared = &self.parts[self.parts.len() - 1];
        let limited = self.limited[waiter.owner as usize];
        match self.needs_shared(waiter.owner, waiter.units) && !shared.held.contains_key(&waiter.client) {
            false => [false, false],
            true => [!limited || self.limited_units(waiter.units).is_some(), limited],
        }
    }

    /// Returns whether a request awaits the shared part before a new one of `owner`.
    fn is_awaited(&self, owner: u32) -> bool {
        let limited = usize::from(self.limited[owner as usize]);
        self.waiting.iter().any(|w| !w.room.is_closed() && self.awaits(w)[limited])
    }

    fn give_back(&mut self, owner: u32, client: ClientId, part: usize, units: u64) {
        self.parts[part].give_back(client, units);
        if part == self.parts.len() - 1 {
            let one = Amount { requests: 1, units };
            self.shared[owner as usize].sub(one);
            if self.limited[owner as usize] {
                self.all_limited.sub(one);
            }
        }
    }

    /// Serves the waiting requests in order of arrival. Later requests may overtake one that finds
    /// no room; if its client holds nothing of the shared part, only from their owners' parts.
    fn serve(&mut self, budget: &Budget) {
        let waiting = std::mem::take(&mut self.waiting);
        let mut awaited = [false; 2];
        for waiter in waiting {
            let Waiter { client, owner, units, .. } = waiter;
            // The client has disconnected.
            if waiter.room.is_closed() {
                continue;
            }
            let limited = usize::from(self.limited[owner as usize]);
            let Some((part, units)) = self.take(owner, client, units, !awaited[limited]) else {
                let awaits = self.awaits(&waiter);
                awaited = [awaited[0] | awaits[0], awaited[1] | awaits[1]];
                self.waiting.push_back(waiter);
                continue;
            };
            let share = Share { budget: Some(budget.clone()), owner, client, part, units };
            if let Err(mut share) = waiter.room.send(share) {
                // The waiter was just cancelled. Dropping the share here would deadlock.
                share.budget = None;
                self.give_back(owner, client, part, units);
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
        Budget(Arc::new(Mutex::new(Inner {
            parts,
            waiting: VecDeque::new(),
            clients: 0,
            limited: vec![false; owners],
            shared: vec![Amount::default(); owners],
            all_limited: Amount::default(),
        })))
    }

    /// Sets which owners have a rate limit, from owner 0 on.
    pub fn set_limited(&self, owners: impl Iterator<Item = bool>) {
        let mut inner = self.lock();
        let Inner { limited, shared, all_limited, .. } = &mut *inner;
        for ((before, shared), now) in limited.iter_mut().zip(shared).zip(owners) {
            match (std::mem::replace(before, now), now) {
                (false, true) => all_limited.add(*shared),
                (true, false) => all_limited.sub(*shared),
                _ => {}
            }
        }
        inner.serve(self);
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
        let shared_too = !inner.is_awaited(owner);
        let (part, units) = inner.take(owner, client, bytes.div_ceil(UNIT), shared_too)?;
        Some(Share { budget: Some(self.clone()), owner, client, part, units })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(budget) = self.budget.take() {
            let mut inner = budget.lock();
            inner.give_back(self.owner, self.client, self.part, self.units);
            if !inner.waiting.is_empty() {
                inner.serve(&budget);
            }
        }
    }
}

#[cfg(test)]
mod tests;
