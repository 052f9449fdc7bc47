//! Real clients over virtual drives in real time: third-party programs, misbehaving clients, and
//! the drive's contents after the server was killed.
//!
//! A test that needs something the machine lacks prints `skipped: NAME: WHY` and adds the line to
//! the file that `HEADTIME_SKIPPED` names, by the helpers of the host crate's tests.

#[path = "../../host/tests/support/mod.rs"]
mod support;

mod real;
