//! Virtual time: event loop, workloads, trace readers, statistics.

pub mod validate;
