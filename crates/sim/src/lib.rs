//! Simulation in virtual time: event loop, workloads, trace readers, statistics.
//!
//! * [`simulate::Simulation`] combines a profile's drive with the scheduling core and runs a
//!   workload on them; [`run::run`] is the underlying event loop, over any [`device::Device`] and
//!   [`headtime_sched::Scheduler`].
//! * [`workload`] generates requests: named workloads, user-defined tasks, TOML scenarios, recorded
//!   [`traces`].
//! * [`stats`] collects statistics in constant memory, [`result`] formats them, [`observe`] is the
//!   observer interface: [`timeline`] for plots, [`perfetto`] for a viewer.
//! * [`scaled_drives`] makes smaller and larger drives of one, for short runs and for experiments.
//! * [`promises`] sets up guarantees to streams on a profile's drive.
//! * [`validate`] compares a model with a real drive's measurements.
//!
//! The same arguments give the same results on every machine: time is virtual, the generator is
//! seeded, and the only clock is an optional one passed by the caller to measure the cost of
//! decisions.

#![warn(unreachable_pub)]

pub mod background;
pub mod device;
pub mod input;
pub mod observe;
pub mod perfetto;
pub mod promises;
pub mod result;
pub mod run;
pub mod scaled_drives;
pub mod scenario;
pub mod service;
pub mod simulate;
pub mod stats;
#[doc(hidden)]
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
