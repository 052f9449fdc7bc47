//! Sweeps from the grid to the rows; fleets against figures of others.

mod fleets;
mod grids;
mod hazards;
mod published;
mod sweeps;
