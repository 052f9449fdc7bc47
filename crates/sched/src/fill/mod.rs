//! FILL: what background work fits before the next foreground request, for free? (seeds 000, 001, 002)
//!
//! * [`gap`]: the opportunity, and the last word on whether a plan keeps it
//! * [`conservatism`]: how much longer than predicted a move may take
//! * [`adaptive`]: seek times and margins that follow the drive, from [`evidence`]
//! * [`gate`]: no filling while the drive surprises
//! * [`idle`]: when the disk is idle; [`reach`]: what to fetch then
//! * [`placement`]: what a scheduler inside or outside the drive may do
//! * one algorithm a file, over a common search

pub mod adaptive;
pub mod conservatism;
pub mod evidence;
pub mod gap;
pub mod gate;
pub mod idle;
pub mod placement;
pub mod reach;
