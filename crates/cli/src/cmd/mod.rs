//! The subcommands, one file each: its flags, and what it does.

pub mod demo;
pub mod destage;
pub mod disk;
pub mod profiles;
pub mod reproduce;
pub mod serve;
pub mod simulate;
pub mod validate;
