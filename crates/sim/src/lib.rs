//! skeleton
pub mod stats;
pub mod traces;
pub mod workload;
