//! FILL: what background work fits before the next foreground request, for free? (seeds 000, 001, 002)
//!
//! * [`gap`]: the opportunity, and the last word on whether a plan keeps it
//! * [`conservatism`]: how much longer than predicted a move may take
//! * [`placement`]: what a scheduler inside or outside the drive may do
//! * one algorithm a file, over a common search

pub mod conservatism;
pub mod gap;
pub mod headtime;
pub mod placement;
