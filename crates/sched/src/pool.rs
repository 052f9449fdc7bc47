//! The pool: every unfinished request, and which of them are eligible.
//!
//! A request occupies one slot from submission to finish. It is *blocked* while an older request
//! that it conflicts with is unfinished, then *eligible*, then *sent*. ORDER sees only the eligible
//! ones, in two ways: by arrival, and by position (cylinder or LBN) if the order uses it. A
//! request's place on the disk is computed once, on arrival. If ADMIT separates applications, both
//! are kept per application ([`crate::queues`]).

mod index;

use std::collections::VecDeque;

use headtime_disk::{Kind, Place, Time};

use index::Index;
pub(crate) use index::Key;

use crate::list::{List, NONE};
use crate::overlap::Overlaps;
use crate::queues::{Eligible, Entry, Queues};
use crate::request::Request;

/// One unfinished request.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// As submitted.
    pub request: Request,
    /// Its place in the order of arrival.
    pub seq: u64,
    /// When it was submitted.
    pub submitted: Time,
    /// Its place on the disk; `None` for a flush.
    pub place: Option<Place>,
    /// Its queue, where requests are divided into queues.
    pub queue: u32,
    state: State,
    /// The first of the requests blocked by this one.
    first_waiter: u32,
    /// The next of the requests blocked by the same one as this.
    next_waiter: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Blocked,
    Eligible,
    Sent,
}

/// Every unfinished request.
#[derive(Clone, Debug)]
pub struct Pool {
    slots: Vec<Slot>,
    /// Maximum number of slots.
    most: usize,
    free: Vec<u32>,
    next_seq: u64,
    /// Numbers of unfinished writes without FUA and with FUA.
    writes_by_fua: [usize; 2],
    waiting: usize,
    /// Eligible requests by arrival, flushes included.
    eligible: List,
    /// Eligible flushes by arrival.
    flushes: List,
    /// Unfinished writes by arrival.
    writes: List,
    overlaps: Overlaps,
    /// Empty with queues.
    index: Index,
    /// The index per application.
    queues: Option<Queues>,
    /// Requests that became eligible and were not reported to ADMIT yet.
    ready: VecDeque<u32>,
}

impl Pool {
    /// Creates a pool with room for `slots` unfinished requests, indexed by `key`.
    pub fn new(slots: usize, key: Key) -> Pool {
        assert!(slots < NONE as usize, "too many slots");
        Pool {
            slots: Vec::with_capacity(slots),
            most: slots,
            free: Vec::with_capacity(slots),
            next_seq: 0,
            writes_by_fua: [0; 2],
            waiting: 0,
            eligible: List::new(slots),
            flushes: List::new(slots),
            writes: List::new(slots),
            overlaps: Overlaps::new(slots),
            index: Index::new(key, slots),
            queues: None,
            ready: VecDeque::new(),
        }
    }

    /// Gives every application its own queue. Must be called while the pool is empty.
    pub fn divide(&mut self) {
        assert!(self.free.len() == self.slots.len(), "requests are in the pool already");
        self.queues = Some(Queues::default());
        self.index.give_up();
    }

    /// Returns a request that became eligible since the last call; only with queues.
    #[inline]
    pub fn next_ready(&mut self) -> Option<u32> {
        self.ready.pop_front()
    }

    /// Returns the candidates of an order; `queue` is used only with queues.
    #[inline]
    pub fn choice(&self, queue: Option<u32>) -> Eligible<'_> {
        match (&self.queues, queue) {
            (Some(queues), Some(queue)) => queues.eligible(queue),
            _ => Eligible { index: self.index.entries(), oldest: self.oldest(), oldest_flush: self.oldest_flush() },
        }
    }

    /// Returns the candidates of each of `queues`; `None`: of all requests.
    #[inline]
    pub fn choices<'a>(&'a self, queues: Option<&'a [u32]>) -> impl Iterator<Item = Eligible<'a>> + use<'a> {
        let count = queues.map_or(1, <[u32]>::len);
        (0..count).map(move |at| self.choice(queues.map(|q| q[at])))
    }

    /// Returns the number of eligible requests of a queue; only with queues.
    pub fn waiting_in(&self, queue: u32) -> usize {
        self.queues.as_ref().map_or(0, |q| q.waiting(queue))
    }

    /// Returns the number of requests not sent to the drive yet, including blocked ones.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns whether a request is blocked by an older one.
    pub fn is_blocked(&self, slot: u32) -> bool {
        self.slots[slot as usize].state == State::Blocked
    }

    /// Returns the eligible request at the end of the chain of requests that block this one; `None`
    /// if that one is in flight.
    pub fn waits_for(&self, slot: u32) -> Option<u32> {
        let mut at = slot;
        // Each is older than the one before.
        while self.is_blocked(at) {
            at = self.blocker(at)?;
        }
        (self.slots[at as usize].state == State::Eligible).then_some(at)
    }

    /// Returns the number of eligible requests.
    #[inline]
    pub fn eligible(&self) -> usize {
        self.eligible.len()
    }

    /// Returns the eligible reads and writes, ascending by key, equal keys by arrival.
    #[inline]
    pub fn index(&self) -> &[Entry] {
        self.index.entries()
    }

    /// Returns the eligible request that arrived first.
    #[inline]
    pub fn oldest(&self) -> Option<u32> {
        self.eligible.first()
    }

    /// Returns the eligible flush that arrived first.
    #[inline]
    pub fn oldest_flush(&self) -> Option<u32> {
        self.flushes.first()
    }

    /// Returns an unfinished request.
    #[inline]
    pub fn get(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    /// Adds a request; `place` is its place on the disk, `None` for a flush. The caller ensures
    /// that there is room.
    pub fn insert(&mut self, request: Request, place: Option<Place>, queue: u32, now: Time) -> u32 {
        assert!(place.is_some() == (request.kind != Kind::Flush));
        let slot = self.take_slot(request, place, queue, now);
        let seq = self.slots[slot as usize].seq;
        self.waiting += 1;
        let blocker = self.blocker(slot);
        if request.kind != Kind::Flush {
            self.overlaps.insert(slot, request.kind, request.lbn, request.count, seq);
        }
        if request.kind == Kind::Write {
            self.writes.push_back(slot);
            self.writes_by_fua[usize::from(request.fua)] += 1;
        }
        match blocker {
            Some(older) => self.wait_for(slot, older),
            None => self.make_eligible(slot, true),
        }
        slot
    }

    fn take_slot(&mut self, request: Request, place: Option<Place>, queue: u32, now: Time) -> u32 {
        let seq = self.next_seq;
        self.next_seq += 1;
        let (state, submitted) = (State::Blocked, now);
        let entry = Slot { request, seq, submitted, place, queue, state, first_waiter: NONE, next_waiter: NONE };
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                assert!(self.slots.len() < self.most, "the pool is full");
                self.slots.push(entry);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Adds freeblock work, which is sent at once without waiting: it conflicts with no unfinished
    /// request, and later conflicting requests wait until it has finished. The caller ensures room
    /// and, with [`Pool::conflicts`], the absence of conflicts.
    pub fn insert_sent(&mut self, request: Request, now: Time) -> u32 {
        assert!(request.kind != Kind::Flush && !self.conflicts(request.kind, request.lbn, request.count));
        let slot = self.take_slot(request, None, 0, now);
        let s = &mut self.slots[slot as usize];
        s.state = State::Sent;
        let seq = s.seq;
        self.overlaps.insert(slot, request.kind, request.lbn, request.count, seq);
        if request.kind == Kind::Write {
            self.writes.push_back(slot);
            self.writes_by_fua[usize::from(request.fua)] += 1;
        }
        slot
    }

    /// Returns whether an unfinished request must not be in flight together with `count` sectors
    /// from `lbn`, or must precede them.
    #[inline]
    pub fn conflicts(&self, kind: Kind, lbn: u64, count: u32) -> bool {
        self.overlaps.blocker(kind, lbn, count, u64::MAX).is_some()
    }

    /// Returns whether a request that has not been sent begins at this LBN.
    pub fn begins_at(&self, lbn: u64) -> bool {
        self.overlaps.begins_at(lbn).any(|slot| self.slots[slot as usize].state != State::Sent)
    }

    /// Returns the eligible read that begins at this LBN; the first of them that arrived.
    pub fn read_at(&self, lbn: u64) -> Option<u32> {
        let reads = self.overlaps.begins_at(lbn).filter(|&slot| {
            let s = &self.slots[slot as usize];
            s.state == State::Eligible && s.request.kind.is_read()
        });
        reads.min_by_key(|&slot| self.slots[slot as usize].seq)
    }

    /// Returns the eligible write that begins at this LBN. There is at most one: overlapping writes
    /// block each other.
    pub fn write_at(&self, lbn: u64) -> Option<u32> {
        self.overlaps.begins_at(lbn).find(|&slot| {
            let s = &self.slots[slot as usize];
            s.state == State::Eligible && s.request.kind == Kind::Write
        })
    }

    /// Returns the eligible requests that end right before this LBN.
    pub fn ends_at(&self, lbn: u64) -> impl Iterator<Item = u32> + '_ {
        self.overlaps.ends_at(lbn).filter(|&slot| self.slots[slot as usize].state == State::Eligible)
    }

    /// Returns whether a write is unfinished, waiting or in flight.
    #[inline]
    pub fn waits_to_write(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Returns whether an unfinished write may be cached by the drive: one without FUA, or any if
    /// the drive ignores FUA.
    #[inline]
    pub fn has_cacheable_writes(&self, ignores_fua: bool) -> bool {
        self.writes_by_fua[0] > 0 || ignores_fua && self.writes_by_fua[1] > 0
    }

    /// Marks an eligible request as sent to the drive.
    pub fn send(&mut self, slot: u32) {
        let s = &mut self.slots[slot as usize];
        assert!(s.state == State::Eligible, "slot {slot}: {:?}", s.state);
        s.state = State::Sent;
        self.waiting -= 1;
        let (queue, seq, kind) = (s.queue, s.seq, s.request.kind);
        self.eligible.remove(slot);
        if kind == Kind::Flush {
            self.flushes.remove(slot);
        }
        let indexed = self.index.holds(kind);
        if let Some(queues) = &mut self.queues {
            queues.remove(queue, (seq, slot), indexed.then(|| self.index.before(&self.slots, slot)));
        } else if indexed {
            self.index.remove(&self.slots, slot);
        }
    }

    /// Removes a finished request; requests blocked by it may become eligible.
    pub fn finish(&mut self, slot: u32) -> Slot {
        let gone = self.slots[slot as usize];
        assert!(gone.state == State::Sent, "slot {slot}: {:?}", gone.state);
        self.slots[slot as usize].state = State::Free;
        self.free.push(slot);
        if gone.request.kind != Kind::Flush {
            self.overlaps.remove(slot);
        }
        if gone.request.kind == Kind::Write {
            self.writes.remove(slot);
            self.writes_by_fua[usize::from(gone.request.fua)] -= 1;
        }
        let mut waiter = gone.first_waiter;
        while waiter != NONE {
            let next = self.slots[waiter as usize].next_waiter;
            match self.blocker(waiter) {
                Some(older) => self.wait_for(waiter, older),
                None => self.make_eligible(waiter, false),
            }
            waiter = next;
        }
        gone
    }

    /// Returns an older unfinished request that blocks this one.
    #[inline]
    fn blocker(&self, slot: u32) -> Option<u32> {
        let s = &self.slots[slot as usize];
        match s.request.kind {
            // A flush covers the writes before it: it waits for all of them, the oldest first.
            Kind::Flush => self.writes.first().filter(|&w| self.get(w).seq < s.seq),
            kind => self.overlaps.blocker(kind, s.request.lbn, s.request.count, s.seq),
        }
    }

    fn wait_for(&mut self, slot: u32, older: u32) {
        let first = std::mem::replace(&mut self.slots[older as usize].first_waiter, slot);
        self.slots[slot as usize].next_waiter = first;
    }

    /// `youngest`: it has just arrived, so it is behind all others.
    fn make_eligible(&mut self, slot: u32, youngest: bool) {
        let s = &mut self.slots[slot as usize];
        assert!(s.state == State::Blocked, "slot {slot}: {:?}", s.state);
        s.state = State::Eligible;
        s.next_waiter = NONE;
        let (queue, seq, kind) = (s.queue, s.seq, s.request.kind);
        let slots = &self.slots;
        let join = |list: &mut List| match youngest {
            true => list.push_back(slot),
            false => list.insert_before_later(slot, |other| slots[other as usize].seq > seq),
        };
        join(&mut self.eligible);
        if kind == Kind::Flush {
            join(&mut self.flushes);
        }
        let indexed = self.index.holds(kind);
        if let Some(queues) = &mut self.queues {
            let (index, slots) = (&self.index, &self.slots);
            let place = indexed.then(|| (index.entry(slots, slot), index.before(slots, slot)));
            queues.insert(queue, (seq, slot), kind == Kind::Flush, place);
            self.ready.push_back(slot);
        } else if indexed {
            self.index.insert(&self.slots, slot);
        }
    }
}

#[cfg(test)]
mod tests;
