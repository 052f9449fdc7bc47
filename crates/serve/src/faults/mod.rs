//! Faults of a virtual drive for tests of storage software: what happens to it, and when.
//!
//! * [`table`]: a fault as it is written, in a file or by a command
//! * [`plan`]: the faults of a drive, each waiting for its time or its command, active or over
//! * [`worn`]: random defects of a worn drive
//! * [`calls`], [`control`]: changes while the drive is used, over a unix socket
//!
//! [`crate::device::test_disk`] is the drive that they happen to.

pub mod calls;
mod closest;
pub mod control;
pub mod plan;
pub mod table;
pub(crate) mod worn;

pub use plan::{MAX_FAULTS, MAX_RANGES};
