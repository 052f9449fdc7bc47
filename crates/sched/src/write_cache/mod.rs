//! A write-back cache in the host's memory, as a state machine: requests and what comes of its own
//! calls go in, calls for the scheduler come out, and requests are answered. It has no clock, no
//! sockets and no data of its own; what data is, is said by its [`Traffic`].
//!
//! * [`cache`]: dirty sectors and who is responsible for what; [`machine`]: requests, flushes and
//!   when dirty blocks are written; `reads`, `writes`: its two halves; `waiters`: what waits for
//!   writes
//! * [`calls`]: what it says, what it hears
//! * [`front`]: the machine in front of a [`crate::scheduler::Scheduler`], as a scheduler itself
//!
//! # Why a read never returns what is older than an acknowledged write
//!
//! 1. A write is acknowledged when its data is in the cache, or (FUA) later. A sector leaves the
//!    cache only when the scheduler said that *this* data is on the disk: `written` names a task,
//!    and only extents that still belong to this task go; a foreground write's answer names a
//!    token, and only extents in the state of this token go. Data that was overwritten meanwhile is
//!    in a new extent, which belongs to neither.
//! 2. So at the moment at which a read comes, each of its sectors is either in the cache, with the
//!    newest data, or the newest data is on the disk and nothing older is on its way there (3). The
//!    parts from the cache are taken at this very moment. The others are read afterwards, and so
//!    they bring what was on the disk at this moment, or newer data that was written during the
//!    read. Either was current at some moment of the read.
//! 3. Older data never lands behind newer: of the ways to the disk that the same sectors can be on
//!    at once, the scheduler puts a newer task before an older one (the older one is superseded, or
//!    was written before), a foreground write before all tasks that were registered before it, and
//!    foreground writes into their order. The one order that it does not promise is a task that is
//!    registered while a foreground write of the same sectors is under way; `writes` does not
//!    register such a task.
//! 4. When a session is lost, its tasks end with it, but its foreground requests may still be
//!    carried out. Their sectors are all still in the cache (1), and are written again *in the
//!    foreground*, which the scheduler carries out after the old ones. A background write of a
//!    session that has ended and that is at the drive already hides its sectors until it has
//!    landed.
//!
//! # Why a flush that was answered covers everything acknowledged before it
//!
//! An extent that replaces another takes over its age (`since`), so a flush waits until each sector
//! that was dirty when it came is on the disk with its data of then, or with newer data; then the
//! drive is flushed. Since an urgent extent that is being written is not written a second time
//! before that was answered, a client that overwrites a block without end cannot hold a flush up:
//! the first answer settles what the flush waits for.
//!
//! # When a dirty block is written
//!
//! A block that stays dirty costs nothing, and the more blocks are dirty, the nearer the next one
//! is to wherever the head passes. So blocks are not written as soon as they can be. See
//! [`policy`].

pub mod cache;
pub mod calls;
pub mod front;
pub mod machine;
pub mod policy;
mod reads;
#[cfg(test)]
mod tests;
mod waiters;
mod writes;

use std::fmt::Debug;
use std::ops::Range as Span;

pub use calls::{Answer, Ask, Call, Event};
pub use machine::Machine;

/// Smallest memory for a cache, bytes.
pub const LEAST_MEMORY: u64 = 1 << 20;
/// Largest, bytes.
pub const MOST_MEMORY: u64 = 16 << 30;

/// What goes through a cache beside ranges.
pub trait Traffic: Debug {
    /// A block's data.
    type Data: Clone + Debug + Default;
    /// Names a request of a client.
    type Ticket: Debug;
    /// How a request fails.
    type Fault: Copy + Debug;

    /// Bytes of some data.
    fn len(data: &Self::Data) -> u64;
    /// A part, in bytes, that may share memory with the whole.
    fn part(data: &Self::Data, bytes: Span<usize>) -> Self::Data;
    /// A part, in bytes, with memory of its own: a few sectors must not keep the memory of a large
    /// write.
    fn copy(data: &Self::Data, bytes: Span<usize>) -> Self::Data;
    /// Parts one behind the other.
    fn join(parts: &[&Self::Data]) -> Self::Data;
}

/// What a cache may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory. A single write that is larger is taken when nothing else is there.
    pub memory: u64,
}

impl Limits {
    /// Of a cache with this memory, bytes; `None` outside [`LEAST_MEMORY`] to [`MOST_MEMORY`].
    pub fn new(memory: u64) -> Option<Limits> {
        (LEAST_MEMORY..=MOST_MEMORY).contains(&memory).then_some(Limits { memory })
    }

    /// Above this some blocks are written in the foreground, in the order of the disk.
    pub fn high(&self) -> u64 {
        self.memory / 4 * 3
    }

    /// Below this blocks are written only when they are old, or when a client flushes.
    pub fn low(&self) -> u64 {
        self.memory / 2
    }
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes that clients wrote.
    pub accepted: u64,
    /// Bytes written for free.
    pub free: u64,
    /// Bytes written in the foreground: with FUA, for a flush, for want of memory.
    pub through: u64,
    /// Reads that the cache answered.
    pub hits: u64,
    /// Reads for which the disk was asked.
    pub misses: u64,
    /// Bytes in the cache that are not on the disk.
    pub dirty: u64,
}
