//! FILL: what background work fits before the next foreground request, for free? (seeds 000, 001, 002)
//!
//! * [`gap`]: the opportunity, and the last word on whether a plan keeps it
//! * [`conservatism`]: how much longer than predicted a move may take
//! * [`placement`]: what a scheduler inside or outside the drive may do
//! * [`cells`], [`regions`]: where something is wanted, coarsely, so that a search looks only where it can find something
//! * [`track`]: which sectors of one track pass when
//! * [`candidate`]: the best that one track offers to a gap
//! * one algorithm a file, over a common search

mod bitmap;
pub mod candidate;
pub mod cells;
pub mod conservatism;
pub mod gap;
pub mod headtime;
pub mod placement;
pub mod regions;
pub mod track;
