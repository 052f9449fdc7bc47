//! For tests only: slow, simple reference models, generators, a scripted device.

#![warn(unreachable_pub)]

pub mod das;
pub mod das_admission;
pub mod das_demand;
pub mod das_rig;
pub mod drives;
pub mod fair;
pub mod gap;
pub mod gap_exhaustive;
pub mod gap_replay;
pub mod generate;
pub mod geometry;
pub mod profiles;
pub mod scripted;
pub mod slow_drive;
pub mod sptf;
pub mod tasks;
