//! Experiments, one file each: what a paper measured, the same on the virtual drive, and whether the paper's claim
//! holds there.
//!
//! An experiment ([`experiment::Experiment`]) names its claims with their rules; [`runner::run`] runs it for several
//! seeds; [`report`] puts the paper's figures and ours side by side. [`svg`] draws the pictures, for experiments and
//! for anybody else.

mod bench;
mod beside;
pub mod experiment;
mod f10;
mod f11;
mod f1;
mod f2;
mod f3;
mod f4;
mod f5;
mod f6;
mod f7;
mod f8;
mod f9;
mod figure9;
mod filled;
mod narrowed;
pub mod output;
mod predictions;
pub mod registry;
pub mod report;
pub mod runner;
mod s10;
mod s11;
mod s13;
mod s14;
mod s15;
mod s16;
mod s8;
mod s9;
mod scans;
pub mod svg;
mod x3;
mod x4;
