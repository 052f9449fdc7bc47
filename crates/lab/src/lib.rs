//! Experiments, one file each: a paper's measurement, the same on the virtual drive, and whether
//! the paper's claim holds there.
//!
//! An [`Experiment`] names its claims with their rules; [`runner::run`] runs it for several seeds;
//! [`report`] compares the paper's figures and ours. Experiments are grouped by paper. Each group's
//! folder begins with a table of them:
//!
//! | folder | experiments |
//! |---|---|
//! | `freeblock_lumb` | F: freeblock scheduling outside of disk firmware (Lumb 2002) |
//! | `freeblock_thereska` | S: a freeblock subsystem (Thereska 2003) |
//! | `fair_queueing` | B: BFQ and BFQ+ (Valente 2014) |
//! | `guarantees` | D: guarantees with a dynamic active subset (Reuther 2003) |
//! | `characterisation` | P: characterisation of drives |
//! | `combined` | X: all of it together |
//!
//! `common` has the runs and drives that several groups share, `experiment` the framework.

#![warn(unreachable_pub)]

mod characterisation;
mod combined;
mod common;
mod experiment;
mod fair_queueing;
mod freeblock_lumb;
mod freeblock_thereska;
mod guarantees;
#[cfg(test)]
mod pictures;

pub use experiment::{
    Check, Claim, Experiment, Length, Progress, RunError, Spec, Test, Unwatched, registry, report, runner,
};
