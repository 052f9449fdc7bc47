//! For tests only: slow, obvious reference models, generators, a scripted device.

pub mod profiles;
pub mod slow_drive;
