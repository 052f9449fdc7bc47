//! The subcommands, one file each: its flags, and what it does.

pub mod attach;
pub mod demo;
pub mod disk;
pub mod profiles;
pub mod reproduce;
pub mod serve;
pub mod simulate;
pub mod top;
pub mod validate;
