//! Many runs: grids of parameters, sweeps over them, and tables of their results.
//!
//! * [`grid`] describes the points of a sweep: combinations, lists and random designs over every
//!   key of a scenario and every figure of a profile. Points are numbered and made when they are
//!   run, so a grid may have any number of them.
//! * [`sweep`] runs the points on threads, or hands chunks of them to others, and stores one row
//!   per point in Parquet files. It resumes after an interruption.
//! * [`fleet`] has what many disks need: hazards, and the durability of redundancy groups.
//! * [`tables`] converts results and single requests to Arrow.
//!
//! The rows of a sweep do not depend on who ran which points, nor on the order.

#![warn(unreachable_pub)]

pub mod fleet;
pub mod grid;
pub mod sweep;
pub mod tables;
