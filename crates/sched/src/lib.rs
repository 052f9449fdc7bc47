//! The scheduling core of a disk: a state machine of inputs and actions, which knows where the head
//! is.
//!
//! * Inputs: [`Core::submit`], [`Core::complete`], [`Core::tick`], and the calls of background
//!   sessions ([`Core::open`], [`Core::register`] and others)
//! * Actions: [`Core::poll`], until `None` after every input; [`Core::next_wakeup`]
//!
//! It has no clock, no I/O, no threads and no data: only ids and block ranges. The driver owns the
//! device and the clock, and carries out the [`Action`]s; [`Scheduler`] is that contract as a
//! trait.
//!
//! A core makes three decisions. [`Policy`] (ADMIT) decides which applications' requests are
//! eligible; [`streams`] with guarantees come first. [`Order`] (ORDER) chooses one of the eligible
//! requests, given the predicted head position. [`FillConfig`] (FILL) says how background work is
//! put into the rotational gap before it and into idle time: applications register tasks
//! ([`TaskSpec`]) and receive [`TaskEvent`]s.
//!
//! [`layout`] is the bookkeeping of a reorganised layout. [`write_cache`] is a write-back cache as
//! a state machine, which writes with such tasks.
//!
//! # Internal structure
//!
//! The path of a request: `pool` keeps it until it has finished, and blocks it while `overlap`
//! finds an older request that it conflicts with. `admit` selects the application that may
//! dispatch, or lets the disk idle for one; with a policy each application has its own queue
//! (`queues`). Whenever `dispatch` has room at the drive, `order` chooses one of the eligible
//! requests, given the predicted head position (`predictor`). Writes that continue the chosen one
//! are merged into its command (`merge`). The prediction of one command is a `flight`; hits in the
//! drive's cache are in `cache_model`. Orders consider positions, with one exception: a read that
//! begins where the last one ended costs nothing if the drive reads ahead there or its cache holds
//! the first block (`order::View`).

#![warn(missing_docs, unreachable_pub)]

mod admit;
mod cache_model;
mod classify;
mod core;
mod custom;
mod dispatch;
mod fill;
mod flight;
#[doc(hidden)]
pub mod internals;
pub mod layout;
mod list;
mod merge;
mod names;
mod order;
mod overheads;
mod overlap;
mod passage;
mod pool;
mod predictor;
mod queues;
mod request;
mod scheduler;
mod stats;
pub mod streams;
mod tasks;
mod throttle;
pub mod write_cache;

// The core, and what a driver exchanges with it.
pub use core::{Commitment, Config, Core, Refused};
pub use custom::{Candidate, Choose, Custom};
pub use request::{Action, Finished, Overdue, Prediction, Request, Surprise};
pub use scheduler::{Firmware, Scheduler};
pub use stats::{DecisionCost, PredictionStats, Stats, SubsetStats};

// Names of settings, as users write them.
pub use names::{NameError, joined};

// ADMIT: which applications' requests are eligible. Streams with guarantees are in [`streams`].
pub use admit::bfq::{AsynchronousLimits, BfqRules, Bursts, LowLatency, SoftRealTime};
pub use admit::cfq::CfqRules;
pub use admit::{BadWeight, Class, MAX_WEIGHT, Policy, Share};

// ORDER: which eligible request is dispatched next.
pub use order::Order;

// Limits of applications above the scheduler.
pub use throttle::{BURST, Rate, RateLimit, Throttle};

// FILL: background work in gaps and in idle time.
pub use fill::Algorithm;
pub use fill::config::{Conservatism, FillConfig};
pub use fill::idle::IdleThresholds;
pub use fill::idling::IdleConfig;
pub use fill::placement::Placement;
pub use fill::reach::IdlePolicy;
pub use fill::regions::RegionMemory;
pub use fill::report::FillReport;

// Background work: sessions, tasks and their events.
pub use tasks::manager::SessionInfo;
pub use tasks::memory::TaskMemory;
pub use tasks::register::MAX_PICKUP;
pub use tasks::{SessionId, TaskError, TaskEvent, TaskId, TaskLimits, TaskRange, TaskSpec};

/// The example in the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
