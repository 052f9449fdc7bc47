//! The scheduling core: a state machine that is told things and asked things (DESIGN section 4).
//!
//! * told: [`core::Core::submit`], [`core::Core::complete`], [`core::Core::tick`]
//! * asked: [`core::Core::poll`] until `None` after every telling; [`core::Core::next_wakeup`]
//!
//! It has no clock, no I/O, no threads, no data: only ids and block ranges.

pub mod core;
pub mod dispatch;
pub mod list;
pub mod order;
pub mod overlap;
pub mod pool;
pub mod predictor;
pub mod request;
pub mod stats;
