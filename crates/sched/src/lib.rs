//! The scheduling core: a state machine that is told things and asked things (ARCHITECTURE.md).
//!
//! * told: [`core::Core::submit`], [`core::Core::complete`], [`core::Core::tick`]
//! * asked: [`core::Core::poll`] until `None` after every telling; [`core::Core::next_wakeup`]
//!
//! It has no clock, no I/O, no threads, no data: only ids and block ranges.
//!
//! A request's way through it: [`pool`] keeps it until it has finished, and holds it back while
//! [`overlap`] names an older one that it conflicts with. [`admit`] says whose turn it is, or that
//! the disk idles for an application; where it does, each application has a queue of its own
//! ([`queues`]). Of those that may go, [`order`] chooses one whenever [`dispatch`] has room at the
//! drive, from where [`predictor`] says the head will be. Writes that continue the chosen one go
//! with it ([`merge`]). What the predictor says of one command is a [`flight`]; what the drive's
//! cache answers without the head is in [`cached`]. Orders look at positions, with one exception: a
//! read that begins where the last one ended costs nothing if the drive reads ahead there or its
//! cache holds the first block ([`order::View::goes_on`]).

pub mod admit;
pub mod cached;
pub mod classify;
pub mod core;
pub mod dispatch;
pub mod fill;
pub mod flight;
pub mod list;
pub mod merge;
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
