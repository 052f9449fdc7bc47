//! Fleets: what a policy does to thousands of disks over years.
//!
//! A fleet has two levels. Simulations of one disk give rates: of a scrub, of a rebuild, of
//! clients' responses, by load and policy. [`durability`] and [`hazard`] turn rates into what
//! operators decide by.

pub mod disk;
pub mod durability;
mod estimate;
pub mod hazard;
mod missed;
pub mod page;
mod random;
mod repeat;
pub mod run;
pub mod study;

pub use estimate::Estimate;
pub use missed::Missed;
