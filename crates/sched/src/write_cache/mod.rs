//! A write-back cache in the host's memory, as a state machine: its input is requests and the
//! results of its own calls, its output is calls for the scheduler and answers. It has no clock, no
//! sockets and no data of its own; the type of data is defined by its [`Traffic`].
//!
//! * `cache`: dirty sectors, and the writes they are responsible for; `machine`: requests,
//!   flushes and when dirty blocks are written; `reads`, `writes`: its two halves; `waiters`:
//!   requests that wait for writes
//! * `calls`: its messages
//! * `front`: the machine in front of a [`crate::scheduler::Scheduler`], as a scheduler itself
//!
//! # Why a read never returns data older than an acknowledged write
//!
//! 1. A write is acknowledged when its data is in the cache, or (FUA) later. A sector leaves the
//!    cache only when the scheduler has reported that *this* data is on the disk: `written` names a
//!    task, and only extents that still belong to this task are removed; a foreground write's
//!    answer names a token, and only extents in the state of this token are removed. Data that was
//!    overwritten in between is in a new extent, which belongs to neither.
//! 2. So when a read arrives, each of its sectors is either in the cache, with the newest data, or
//!    the newest data is on the disk and nothing older is on its way there (3). The parts from the
//!    cache are taken at that instant. The others are read afterwards, so they return what was on
//!    the disk at that instant, or newer data that was written during the read. Either was current
//!    at some moment of the read.
//! 3. Older data never lands after newer: of the ways to the disk that the same sectors can take at
//!    once, the scheduler puts a newer task before an older one (the older one is superseded, or
//!    was written before), a foreground write before all tasks that were registered before it, and
//!    foreground writes into their order. The one order that it does not guarantee is a task
//!    registered while a foreground write of the same sectors is in flight; `writes` does not
//!    register such a task.
//! 4. When a session is lost, its tasks end with it, but its foreground requests may still be
//!    carried out. Their sectors are all still in the cache (1), and are written again *in the
//!    foreground*, which the scheduler carries out after the old ones. A background write of an
//!    ended session that is at the drive hides its sectors until it has completed.
//!
//! # Why an answered flush covers everything acknowledged before it
//!
//! An extent that replaces another inherits its age (`since`), so a flush waits until each sector
//! that was dirty on its arrival is on the disk with its data of that time, or with newer data;
//! then the drive is flushed. An urgent extent in flight is not written a second time before its
//! answer, so a client that overwrites a block continuously cannot delay a flush indefinitely: the
//! first answer settles what the flush waits for.
//!
//! # When a dirty block is written
//!
//! A block that stays dirty costs nothing, and the more blocks are dirty, the nearer the next one
//! is to the path of the head. So blocks are not written as soon as possible. See `policy`.

pub(crate) mod cache;
pub(crate) mod calls;
pub(crate) mod front;
pub(crate) mod machine;
pub(crate) mod policy;
mod reads;
#[cfg(test)]
mod tests;
mod waiters;
mod writes;

use std::fmt::Debug;
use std::ops::Range as Span;

pub use calls::{Answer, Ask, Call, Event};
pub use front::Front;
pub use machine::Machine;
pub use policy::{QUIET, TICK};

/// Minimum memory of a cache, bytes.
pub const MIN_MEMORY: u64 = 1 << 20;
/// Maximum memory, bytes.
pub const MAX_MEMORY: u64 = 16 << 30;

/// Types of the traffic through a cache, besides ranges.
pub trait Traffic: Debug {
    /// A block's data.
    type Data: Clone + Debug + Default;
    /// Identifies a client's request.
    type Ticket: Debug;
    /// How a request fails.
    type Fault: Copy + Debug;

    /// Returns the bytes of data.
    fn len(data: &Self::Data) -> u64;
    /// Returns a part, in bytes, that may share memory with the whole.
    fn part(data: &Self::Data, bytes: Span<usize>) -> Self::Data;
    /// Returns a part, in bytes, with memory of its own: a few sectors must not keep the memory of
    /// a large write.
    fn copy(data: &Self::Data, bytes: Span<usize>) -> Self::Data;
    /// Returns the concatenation of parts.
    fn join(parts: &[&Self::Data]) -> Self::Data;
}

/// Limits of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory. A single larger write is accepted when the cache is empty.
    pub memory: u64,
}

impl Limits {
    /// Creates the limits of a cache with this memory, bytes; `None` outside [`MIN_MEMORY`] to
    /// [`MAX_MEMORY`].
    pub fn new(memory: u64) -> Option<Limits> {
        (MIN_MEMORY..=MAX_MEMORY).contains(&memory).then_some(Limits { memory })
    }

    /// Returns the high mark: above it some blocks are written in the foreground, in LBN order.
    pub fn high(&self) -> u64 {
        self.memory / 4 * 3
    }

    /// Returns the low mark: below it blocks are written only when they are old, or when a client
    /// flushes.
    pub fn low(&self) -> u64 {
        self.memory / 2
    }
}

/// Counters of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes that clients wrote.
    pub accepted: u64,
    /// Bytes written for free.
    pub free: u64,
    /// Bytes written in the foreground: with FUA, for a flush, for lack of memory.
    pub through: u64,
    /// Reads answered from the cache.
    pub hits: u64,
    /// Reads that needed the disk.
    pub misses: u64,
    /// Dirty bytes in the cache.
    pub dirty: u64,
}
