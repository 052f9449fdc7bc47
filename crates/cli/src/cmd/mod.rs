//! The subcommands, one file each: its flags, and what it does.

pub mod reproduce;
