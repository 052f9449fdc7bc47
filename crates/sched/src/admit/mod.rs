//! ADMIT: who may go now.
//!
//! * [`bwf2q`]: B-WF²Q+, the order of budgets: fair shares in sectors
//!
//! The core does not ask it yet.

pub mod bwf2q;
