//! Real clients over virtual drives in real time: what other people's programs see, what happens to
//! those who behave badly, and what is on the drive after the server was killed.
//!
//! A test that needs something the machine lacks says `skipped: NAME: WHY` and adds the line to the
//! file that `HEADTIME_SKIPPED` names, as the tests of the host crate do, whose way of doing it is
//! used here.

#[path = "../../host/tests/support/mod.rs"]
mod support;

mod real;
