//! The subcommands, one file each: flags and implementation.

pub mod admit;
pub mod attach;
pub mod backup;
pub mod characterize;
pub mod demo;
pub mod destage;
pub mod disk;
pub mod load;
pub mod profiles;
pub mod reproduce;
pub mod scrub;
pub mod serve;
pub mod simulate;
pub mod stream;
pub mod task;
pub mod top;
pub mod validate;
