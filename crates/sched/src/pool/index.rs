//! The position index: the eligible reads and writes, sorted by cylinder or by LBN.

use headtime_disk::Kind;

use super::Slot;
use crate::queues::Entry;

/// What the position index is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// There is no index: the order looks at arrival only.
    Arrival,
    /// Cylinder of the first sector.
    Cylinder,
    /// First LBN.
    Lbn,
}

/// Eligible reads and writes, ascending by key, equal keys by arrival.
#[derive(Clone, Debug)]
pub(super) struct Index {
    key: Key,
    entries: Vec<Entry>,
}

impl Index {
    /// An empty index with room for `slots` requests.
    pub(super) fn new(key: Key, slots: usize) -> Index {
        Index { key, entries: Vec::with_capacity(if key == Key::Arrival { 0 } else { slots }) }
    }

    /// Frees its memory: each application has an index of its own ([`crate::queues`]).
    pub(super) fn give_up(&mut self) {
        self.entries = Vec::new();
    }

    #[inline]
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether requests of this kind are in an index.
    #[inline]
    pub(super) fn holds(&self, kind: Kind) -> bool {
        kind != Kind::Flush && self.key != Key::Arrival
    }

    pub(super) fn insert(&mut self, slots: &[Slot], slot: u32) {
        let at = self.position(slots, slot);
        self.entries.insert(at, self.entry(slots, slot));
    }

    pub(super) fn remove(&mut self, slots: &[Slot], slot: u32) {
        let at = self.position(slots, slot);
        self.entries.remove(at);
    }

    /// Where a slot is or belongs.
    fn position(&self, slots: &[Slot], slot: u32) -> usize {
        self.entries.partition_point(self.before(slots, slot))
    }

    /// The entry of a slot.
    pub(super) fn entry(&self, slots: &[Slot], slot: u32) -> Entry {
        let s = &slots[slot as usize];
        let place = s.place.as_ref().expect("a flush has no position");
        Entry {
            key: match self.key {
                Key::Cylinder => place.cylinder as u64,
                Key::Lbn | Key::Arrival => place.lbn,
            },
            angle: place.angle,
            slot,
            surface: place.surface,
            kind: s.request.kind,
        }
    }

    /// Whether an entry goes before that of `slot`: equal keys go by arrival.
    pub(super) fn before<'a>(&self, slots: &'a [Slot], slot: u32) -> impl Fn(&Entry) -> bool + use<'a> {
        let (key, seq) = (self.entry(slots, slot).key, slots[slot as usize].seq);
        move |e| e.key < key || (e.key == key && slots[e.slot as usize].seq < seq)
    }
}
