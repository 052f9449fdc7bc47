//! `headtime destage`: an export with a write-back cache in memory whose dirty blocks are written for free.
//!
//! It is a client of the control interface and nothing else: to its own clients it is an NBD server, upstream it has one
//! session of a `headtime serve`, in which read misses, writes with FUA and flushes are foreground requests, and dirty blocks are
//! write tasks that wait for gaps.
//!
//! ```text
//! NBD clients ── net/connection ──► ingress ──► machine: cache, reads, writes ──► driver ──► control session ──► serve
//! ```
//!
//! * [`cache`]: dirty sectors and who is responsible for what; [`machine`]: what is done with requests and events, without
//!   sockets or clocks; `reads`, `writes`: its two halves
//! * [`ingress`]: the engine's queue, as a tokio task reads it; [`driver`]: the session upstream, lost and found again;
//!   [`server`]: all of it together
//!
//! # Why a read never returns what is older than an acknowledged write
//!
//! 1. A write is acknowledged when its data is in the cache, or (FUA) later. A sector leaves the cache only when upstream said
//!    that *this* data is on the disk: `written` names a task, and only extents that still belong to this task go; a foreground
//!    write's answer names a token, and only extents in the state of this token go. Data that was overwritten meanwhile is in a new
//!    extent, which belongs to neither.
//! 2. So at the moment at which a read comes, each of its sectors is either in the cache, with the newest data, or the newest data
//!    is on the disk and nothing older is on its way there (3). The parts from the cache are taken at this very moment. The others are
//!    asked for upstream afterwards, and so they bring what was on the disk at this moment, or newer data that was written during the
//!    read. Either was current at some moment of the read.
//! 3. Older data never lands behind newer: of the ways to the disk that the same sectors can be on at once, upstream puts a newer
//!    task before an older one (the older one is superseded, or was written before), a foreground write before all tasks that were
//!    registered before it, and foreground writes into their order. The one order that it does not promise is a task that is registered
//!    while a foreground write of the same sectors is under way; `writes` does not register such a task.
//! 4. When a session is lost, its tasks end with it, but its foreground requests may still be carried out. Their sectors are all
//!    still in the cache (1), and are written again *in the foreground*, which upstream carries out after the old ones. A background
//!    write of a session that has ended and that is at the drive already hides its sectors upstream until it has landed.
//!
//! # Why a flush that was answered covers everything acknowledged before it
//!
//! An extent that replaces another takes over its age (`since`), so a flush waits until each sector that was dirty when it came
//! is on the disk with its data of then, or with newer data; then it flushes upstream. Since an urgent extent that is being written
//! is not written a second time before that was answered, a client that overwrites a block without end cannot hold a flush up:
//! the first answer settles what the flush waits for.
//!
//! # What it costs to be promoted
//!
//! Blocks that cannot wait (a flush, a cache above three quarters of its memory) become foreground writes of this session rather
//! than promoted tasks: the scheduler can choose among many of them where it takes four pieces of promoted tasks at a time, neighbours
//! that came at different times go together, and a write that fails is known to be this one.

pub mod cache;
pub mod driver;
pub mod ingress;
pub mod machine;
mod reads;
pub mod server;
mod writes;

/// Smallest memory for a cache.
pub const LEAST_MEMORY: u64 = 1 << 20;
/// Largest.
pub const MOST_MEMORY: u64 = 16 << 30;

/// What a cache may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory. A single write that is larger is taken when nothing else is there.
    pub memory: u64,
}

impl Limits {
    /// Above this the oldest blocks do not wait for gaps any more.
    pub fn high(&self) -> u64 {
        self.memory / 4 * 3
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
