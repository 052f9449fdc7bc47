//! skeleton
pub mod traces;
