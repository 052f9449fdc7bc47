//! A write-back cache in memory whose dirty blocks are written in gaps: as a separate program
//! (`headtime destage`), or within the server for an export with `write-cache`.
//!
//! To its clients it is an NBD server. To the scheduler it is one session of the control interface:
//! read misses, FUA writes and flushes are foreground requests, and dirty blocks are write tasks
//! that wait for gaps.
//!
//! ```text
//! NBD clients ── net/connection ──► ingress ──► machine ──► driver ──► control session ──► serve
//! ```
//!
//! * [`machine`]: the state machine, [`headtime_sched::write_cache`], with real data; see there why
//!   no read returns old data, and what an acknowledged flush covers
//! * [`ingress`]: the engine's queue, as read by a tokio task; [`driver`]: the upstream session,
//!   reopened when it is lost
//! * [`server`]: `headtime destage`; [`inside`]: the same within the server
//!
//! # The cost of promotion
//!
//! Blocks that cannot wait (a flush, a cache above three quarters of its memory) become foreground
//! writes of this session rather than promoted tasks: the scheduler takes only four pieces of
//! promoted tasks at a time but can choose among many writes, neighbouring blocks that arrived at
//! different times are merged, and a failed write is identified.

pub mod driver;
pub(crate) mod ingress;
pub(crate) mod inside;
pub(crate) mod machine;
pub mod server;

pub use headtime_sched::write_cache::{Counts, Limits, MAX_MEMORY, MIN_MEMORY};
