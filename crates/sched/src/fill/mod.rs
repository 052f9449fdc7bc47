//! FILL: what background work fits before the next foreground request, for free? (seeds 000, 001, 002)
//!
//! * [`gap`]: the opportunity, and the last word on whether a plan keeps it
//! * [`conservatism`]: how much longer than predicted a move may take
//! * [`adaptive`]: seek times and margins that follow the drive, from [`evidence`]
//! * [`gate`]: no filling while the drive surprises
//! * [`idle`]: when the disk is idle; [`reach`]: what to fetch then
//! * [`placement`]: what a scheduler inside or outside the drive may do
//! * [`cells`], [`regions`]: where something is wanted, coarsely, so that a search looks only where it can find something
//! * [`track`]: which sectors of one track pass when
//! * [`candidate`]: the best that one track offers to a gap
//! * one algorithm a file, over a common search

pub mod adaptive;
mod bitmap;
pub mod candidate;
pub mod cells;
pub mod conservatism;
pub mod evidence;
pub mod gap;
pub mod gate;
pub mod headtime;
pub mod placement;
pub mod planner;
pub mod regions;
pub mod subsystem;
pub mod track;

/// What looks for blocks that fit into gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// The most blocks, whatever they leave behind (seed 002 section 4.4).
    BwGreedy,
    /// The same with an extra pass from the edges of the disk.
    BwEpGreedy,
    /// Compares angles instead of blocks.
    AngleEpGreedy,
    /// The same, and prefers what clears a track.
    AngleEpFrag,
    /// headtime's own planner.
    Headtime,
}
pub mod idle;
pub mod placement;
pub mod reach;
