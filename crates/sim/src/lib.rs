//! Virtual time: event loop, workloads, trace readers, statistics.
//!
//! * [`simulate::Simulation`] puts a profile's drive and the scheduling core together and runs a
//!   workload on them; [`run::run`] is the event loop beneath, over any [`device::Device`] and
//!   [`headtime_sched::scheduler::Scheduler`].
//! * [`workload`] makes requests: named ones, tasks of one's own, TOML scenarios, recorded
//!   [`traces`].
//! * [`stats`] counts in constant memory, [`result`] prints it, [`observe`] lets others watch:
//!   [`timeline`] for pictures, [`perfetto`] for a viewer.
//! * [`validate`] compares a model with what a real drive was measured to do.
//!
//! The same arguments give the same results on every machine: time is virtual, the generator is
//! seeded, and the only clock is one that the caller may pass in to learn what decisions cost.

pub mod background;
pub mod device;
pub mod filling;
pub mod input;
pub mod observe;
pub mod perfetto;
pub mod result;
pub mod run;
pub mod service;
pub mod simulate;
pub mod stats;
pub mod storm;
pub mod streams;
pub mod timeline;
pub mod traces;
pub mod validate;
pub mod workload;

/// The example in the README of the project is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
