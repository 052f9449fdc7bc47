//! Experiments, one file each: what a paper measured, the same on the virtual drive, and whether the paper's claim
//! holds there.
//!
//! An experiment ([`experiment::Experiment`]) names its claims with their rules; [`runner::run`] runs it for several
//! seeds; [`report`] puts the paper's figures and ours side by side. [`svg`] draws the pictures, for experiments and
//! for anybody else.

pub mod experiment;
pub mod output;
pub mod registry;
pub mod report;
pub mod runner;
pub mod svg;
