//! Experiments, one file each: what a paper measured, the same on the virtual drive, and whether the paper's claim
//! holds there.
//!
//! An experiment ([`experiment::Experiment`]) names its claims with their rules; [`runner::run`] runs it for several
//! seeds; [`report`] puts the paper's figures and ours side by side. [`svg`] draws the pictures, for experiments and
//! for anybody else.

mod admitted;
mod b1;
mod b10;
mod b11;
mod b12;
mod b13;
mod b14;
mod b15;
mod b2;
mod b3;
mod b4;
mod b5;
mod b6;
mod b7;
mod b8;
mod b9;
mod bench;
mod beside;
mod d10;
mod d3a;
mod d3b;
mod d8;
mod d9;
mod das;
mod doubled;
pub mod experiment;
mod f1;
mod f10;
mod f11;
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
mod four;
mod narrowed;
pub mod output;
mod predictions;
pub mod registry;
pub mod report;
pub mod runner;
mod s1;
mod s10;
mod s11;
mod s12;
mod s13;
mod s14;
mod s15;
mod s16;
mod s2;
mod s3;
mod s4;
mod s5;
mod s6;
mod s7;
mod s8;
mod s9;
mod scan_report;
mod scans;
pub mod svg;
mod tradeoffs;
mod x2;
mod x3;
mod x4;
mod zone_scan;
