//! The eligible requests of each application, if ADMIT separates applications.
//!
//! ORDER sees the same as without ADMIT, an index by position and the oldest request, but of one
//! queue alone ([`Eligible`]). An empty queue takes no memory except for spare buffers.

use std::collections::BTreeMap;

use headtime_disk::{Angle, Kind};

/// A request in its queue: place in the order of arrival, and slot.
pub(crate) type Arrived = (u64, u32);

/// Maximum number of empty queues kept for reuse, so that an application does not allocate each
/// time it becomes backlogged.
const MAX_SPARE: usize = 64;

/// What a search looks at, kept small: one eligible request in the position index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Cylinder or LBN, as [`crate::pool::Key`] says.
    pub key: u64,
    /// Angle of the first sector's left edge.
    pub angle: Angle,
    /// The request's slot.
    pub slot: u32,
    /// Surface of the first sector.
    pub surface: u16,
    /// Read or write.
    pub kind: Kind,
}

/// The requests that an order may choose from.
#[derive(Clone, Copy, Debug)]
pub struct Eligible<'a> {
    /// Reads and writes, ascending by key, equal keys by arrival.
    pub index: &'a [Entry],
    /// The request that arrived first.
    pub oldest: Option<u32>,
    /// The flush that arrived first.
    pub oldest_flush: Option<u32>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    /// By arrival, flushes included.
    arrived: Vec<Arrived>,
    flushes: Vec<Arrived>,
    index: Vec<Entry>,
}

/// The queues by application number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    queues: BTreeMap<u32, Queue>,
    spare: Vec<Queue>,
}

impl Queues {
    /// Adds a request that became eligible. `entry` is its index entry, and `before` returns which
    /// entries precede it; flushes have none, and an order by arrival needs none.
    pub(crate) fn insert(
        &mut self,
        queue: u32,
        request: Arrived,
        flush: bool,
        entry: Option<(Entry, impl Fn(&Entry) -> bool)>,
    ) {
        let spare = &mut self.spare;
        let q = self.queues.entry(queue).or_insert_with(|| spare.pop().unwrap_or_default());
        sorted_in(&mut q.arrived, request);
        if flush {
            sorted_in(&mut q.flushes, request);
        }
        if let Some((entry, before)) = entry {
            let at = q.index.partition_point(before);
            q.index.insert(at, entry);
        }
    }

    /// Removes a request that is no longer eligible. Panics if it was not; `before` is as for
    /// [`Queues::insert`], `None` if the request has no index entry.
    pub(crate) fn remove(&mut self, queue: u32, request: Arrived, before: Option<impl Fn(&Entry) -> bool>) {
        let q = self.queues.get_mut(&queue).expect("an eligible request has a queue");
        let at = q.arrived.binary_search(&request).expect("an eligible request is in its queue");
        q.arrived.remove(at);
        if let Ok(at) = q.flushes.binary_search(&request) {
            q.flushes.remove(at);
        }
        if let Some(before) = before {
            let at = q.index.partition_point(before);
            assert!(q.index[at].slot == request.1, "an eligible request is in its queue's index");
            q.index.remove(at);
        }
        if q.arrived.is_empty() {
            let empty = self.queues.remove(&queue).expect("looked at above");
            if self.spare.len() < MAX_SPARE {
                self.spare.push(empty);
            }
        }
    }

    /// Returns the number of requests in a queue.
    pub(crate) fn waiting(&self, queue: u32) -> usize {
        self.queues.get(&queue).map_or(0, |q| q.arrived.len())
    }

    /// Returns the candidates of a queue.
    pub(crate) fn eligible(&self, queue: u32) -> Eligible<'_> {
        match self.queues.get(&queue) {
            None => Eligible { index: &[], oldest: None, oldest_flush: None },
            Some(q) => Eligible {
                index: &q.index,
                oldest: q.arrived.first().map(|r| r.1),
                oldest_flush: q.flushes.first().map(|r| r.1),
            },
        }
    }
}

/// Inserts in order, nearly always at the end.
fn sorted_in(list: &mut Vec<Arrived>, request: Arrived) {
    let at = list.partition_point(|r| *r < request);
    list.insert(at, request);
}
