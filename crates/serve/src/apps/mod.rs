//! Background applications, all of them clients of the control interface ([`crate::control`]).
//!
//! * [`units`]: the scope of a job, divided into units; [`progress`]: completed units, and the
//!   journal
//! * [`ranges`]: sets of sectors, such as the unreadable ones; [`coverage`]: what was read, in
//!   reports
//! * [`pace`]: the rate, the estimate, and the promotion needed to keep a floor
//! * [`job`]: parameters and status
//! * [`runner`]: the common part: a session with its tasks, through restarts of either side;
//!   [`link`]: its connection; `narrow`: finding the bad sectors of unreadable units
//! * [`sums`]: a file with a checksum per unit; [`journal`]: where a journal is
//! * [`scrub`], [`image`] with [`backup`], [`copy`], [`search`], [`reorganise`], [`hand`]: the
//!   applications

pub mod backup;
pub mod copy;
pub mod coverage;
pub mod error;
pub mod hand;
pub mod image;
pub mod job;
pub mod journal;
pub mod link;
mod narrow;
pub mod pace;
pub mod progress;
pub(crate) mod ranges;
pub mod reorganise;
pub mod runner;
pub mod scrub;
pub mod search;
pub(crate) mod sums;
pub mod units;
