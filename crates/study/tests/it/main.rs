//! Sweeps from the grid to the rows.

mod grids;
mod sweeps;
