//! Virtual time: event loop, workloads, trace readers, statistics.

pub mod device;
pub mod observe;
pub mod run;
pub mod scheduler;
pub mod stats;
pub mod traces;
pub mod validate;
pub mod workload;
