//! For tests only.

pub mod scripted;
pub mod sptf;
