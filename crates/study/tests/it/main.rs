//! Sweeps from the grid to the rows; fleets against figures of others.

mod grids;
mod hazards;
mod published;
mod sweeps;
