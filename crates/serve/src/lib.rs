//! The server: the scheduling core in front of a device in real time, with its client interfaces.
//!
//! ```text
//! clients ── net (tokio) ──► ingress ──► engine thread: core + device ──► drive
//!                 ▲                            │
//!                 └──────── answers ───────────┘
//! ```
//!
//! * [`engine`]: the single thread that owns the core and the device
//! * [`device`]: the devices it drives: a block device, a file, a virtual drive
//! * [`faults`]: what happens to a virtual drive in a test of storage software
//! * [`net`]: NBD clients
//! * [`control`]: the control interface; [`apps`]: the background applications, which are its
//!   clients
//! * [`streams`]: exports with guarantees
//! * [`metrics`]: the metrics endpoint for Prometheus; [`web`]: the live view for browsers;
//!   [`loopback`]: the HTTP of both
//! * [`note`]: log lines for the operator of a server
//! * [`plain`]: text from clients and servers, made safe to print
//! * [`private`]: files that other users cannot read
//! * [`record`]: traces of client requests, which the simulator replays
//! * [`layout`]: the block map of a reorganised export on the disk
//! * [`config`]: the configuration file; [`assembly`]: a server from it
//! * [`server`]: the whole server, from start to shutdown
//! * [`destage`]: an export with a write-back cache, a client of the control interface
//! * [`timed`]: commands with exact timing, for characterisation
//! * [`clock`], [`buffer`], [`ring`]: time, memory and the kernel's I/O interface

// Its documentation is for those who work on it: `cargo doc --document-private-items`.
#![allow(rustdoc::private_intra_doc_links)]
#![warn(unreachable_pub)]

pub mod apps;
pub mod assembly;
pub mod backing;
pub mod buffer;
pub mod clock;
pub mod config;
pub mod control;
pub mod destage;
pub mod device;
pub mod engine;
pub mod faults;
pub mod layout;
mod loopback;
mod metrics;
pub mod net;
pub mod note;
pub mod plain;
pub mod private;
pub mod record;
mod ring;
pub mod server;
pub mod streams;
pub mod timed;
pub mod web;

#[doc(hidden)]
pub mod internals;
