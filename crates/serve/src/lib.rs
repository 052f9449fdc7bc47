//! Real time: the scheduling core in front of a device, and everything that brings clients to it.
//!
//! ```text
//! clients ── net (tokio) ──► ingress ──► engine thread: core + device ──► drive
//!                 ▲                            │
//!                 └──────── answers ───────────┘
//! ```
//!
//! * [`engine`]: the one thread that owns the core and the device
//! * [`device`]: what it drives: a block device, a file, a virtual drive
//! * [`net`]: clients over NBD
//! * [`control`]: clients of the control interface; [`apps`]: the background applications, which
//!   are such clients
//! * [`streams`]: exports that were promised something
//! * [`metrics`]: figures for Prometheus
//! * [`note`]: log lines for the operator of a server
//! * [`plain`]: text of others as it is shown
//! * [`private`]: files that no other user may read
//! * [`record`]: what clients asked for and when, in a file that the simulator replays
//! * [`server`]: all of it together, from its start to its end
//! * [`destage`]: an export with a write-back cache, as a client of the control interface
//! * [`timed`]: commands whose times matter, for characterisation
//! * [`clock`], [`buffer`], [`ring`]: time, memory and the kernel's I/O beneath

pub mod apps;
pub mod backing;
pub mod buffer;
pub mod clock;
pub mod config;
pub mod control;
pub mod destage;
pub mod device;
pub mod engine;
pub mod metrics;
pub mod net;
pub mod note;
pub mod plain;
pub mod private;
pub mod record;
pub mod ring;
pub mod server;
pub mod streams;
pub mod timed;
