//! A write-back cache in memory whose dirty blocks are written for free: in a program of its own
//! (`headtime destage`), or within the server for an export with `write-cache`.
//!
//! To its clients it is an NBD server. To the scheduler it is one session of the control interface,
//! in which read misses, writes with FUA and flushes are foreground requests, and dirty blocks are
//! write tasks that wait for gaps.
//!
//! ```text
//! NBD clients ── net/connection ──► ingress ──► machine ──► driver ──► control session ──► serve
//! ```
//!
//! * [`machine`]: the state machine, which is [`headtime_sched::write_cache`], with real data; why
//!   no read returns old data, and what an answered flush covers, is said there
//! * [`ingress`]: the engine's queue, as a tokio task reads it; [`driver`]: the session upstream,
//!   lost and found again
//! * [`server`]: `headtime destage`; [`inside`]: the same within the server
//!
//! # What it costs to be promoted
//!
//! Blocks that cannot wait (a flush, a cache above three quarters of its memory) become foreground
//! writes of this session rather than promoted tasks: the scheduler can choose among many of them
//! where it takes four pieces of promoted tasks at a time, neighbours that came at different times
//! go together, and a write that fails is known to be this one.

pub mod driver;
pub mod ingress;
pub mod inside;
pub mod machine;
pub mod server;

pub use headtime_sched::write_cache::{Counts, LEAST_MEMORY, Limits, MOST_MEMORY};
