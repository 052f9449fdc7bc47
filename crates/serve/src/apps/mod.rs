//! Background applications: clients of the control interface ([`crate::control`]) and nothing else.
//!
//! * [`units`]: what a job covers, cut into units; [`progress`]: which of them are done, and the
//!   journal that remembers it
//! * [`ranges`]: sets of sectors, such as the unreadable ones
//! * [`pace`]: how fast it goes, when it will end, and how much must be promoted so that it does
//!   not fall behind
//! * [`job`]: what is to be done, and how far it is
//! * [`runner`]: what all of them share: a session with its tasks, through restarts of either side;
//!   [`link`]: its connection;
//!   [`narrow`]: finding the bad sectors of what could not be read
//! * [`sums`]: a checksum a unit, in a file
//! * [`scrub`], [`image`] with [`backup`], [`hand`]: the applications

pub mod backup;
pub mod error;
pub mod hand;
pub mod image;
pub mod job;
pub mod link;
mod narrow;
pub mod pace;
pub mod progress;
pub mod ranges;
pub mod runner;
pub mod scrub;
pub mod sums;
pub mod units;
