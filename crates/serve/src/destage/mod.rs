//! `headtime destage`: an export with a write-back cache in memory whose dirty blocks are written for free.
//!
//! It is a client of the control interface and nothing else: to its own clients it is an NBD server, upstream it has one
//! session of a `headtime serve`, in which read misses, writes with FUA and flushes are foreground requests, and dirty blocks are
//! write tasks that wait for gaps.
//!
//! ```text
//! NBD clients ── net/connection ──► ingress ──► machine ──► driver ──► control session ──► serve
//! ```
//!
//! * [`machine`]: the state machine, which is [`headtime_sched::write_cache`], with data and over a session; there is
//!   also why no read returns old data, and what a flush that was answered covers
//! * [`ingress`]: the engine's queue, as a tokio task reads it; [`driver`]: the session upstream, lost and found again;
//!   [`server`]: all of it together
//! * [`inside`]: the same machine within the server, for exports with a write cache of their own
//!
//! # What it costs to be promoted
//!
//! Blocks that cannot wait (a flush, a cache above three quarters of its memory) become foreground writes of this session rather
//! than promoted tasks: the scheduler can choose among many of them where it takes four pieces of promoted tasks at a time, neighbours
//! that came at different times go together, and a write that fails is known to be this one.

pub mod driver;
pub mod ingress;
pub mod inside;
pub mod machine;
pub mod server;

pub use headtime_sched::write_cache::{Counts, LEAST_MEMORY, Limits, MOST_MEMORY};
