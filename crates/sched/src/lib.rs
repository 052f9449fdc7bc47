//! The scheduling core: a state machine of inputs and actions (ARCHITECTURE.md).
//!
//! * inputs: [`core::Core::submit`], [`core::Core::complete`], [`core::Core::tick`]
//! * actions: [`core::Core::poll`] until `None` after every input; [`core::Core::next_wakeup`]
//!
//! It has no clock, no I/O, no threads, no data: only ids and block ranges.
//!
//! The path of a request: [`pool`] keeps it until it has finished, and blocks it while [`overlap`]
//! finds an older request that it conflicts with. [`admit`] selects the application that may
//! dispatch, or lets the disk idle for one; with a policy each application has its own queue
//! ([`queues`]). Whenever [`dispatch`] has room at the drive, [`order`] chooses one of the eligible
//! requests, given the predicted head position ([`predictor`]). Writes that continue the chosen one
//! are merged into its command ([`merge`]). The prediction of one command is a [`flight`]; hits in
//! the drive's cache are in [`cached`]. Orders consider positions, with one exception: a read that
//! begins where the last one ended costs nothing if the drive reads ahead there or its cache holds
//! the first block ([`order::View::goes_on`]).

pub mod admit;
pub mod cached;
pub mod classify;
pub mod core;
pub mod dispatch;
pub mod fill;
pub mod flight;
pub mod list;
pub mod merge;
pub mod names;
pub mod order;
pub mod overheads;
pub mod overlap;
pub mod pool;
pub mod predictor;
pub mod queues;
pub mod request;
pub mod scheduler;
pub mod stats;
pub mod tasks;
pub mod write_cache;

/// The example in the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
