//! Headtime's interface to its host, which is Linux.
//!
//! - [`blockdev`]: inspects a block device, detects its users, and opens it exclusively.
//! - [`tuning`]: turns off reordering in the kernel's queue of a scheduled disk, and restores the
//!   previous settings.
//! - [`attach`]: attaches an NBD export as a block device of this kernel, and detaches it.
//! - [`awake`]: keeps idle processors out of deep sleep, for short wake-up latency.
//! - [`privileges`]: drops privileges once everything is open.
//! - [`systemd`]: reports the state to the service manager.
//! - [`whole_file`]: files that are either complete or absent.
//!
//! All reads from `/sys`, `/proc` and `/etc` go through a [`sys::Sys`], so that tests can
//! substitute a directory tree. State that must survive a crash is kept in small files: [`state`]
//! and [`process`].

#![warn(unreachable_pub)]

pub mod accounts;
pub mod attach;
pub mod awake;
pub mod blockdev;
pub mod privileges;
pub mod process;
pub mod state;
pub mod sys;
pub mod systemd;
pub mod tuning;
pub mod usage;
pub mod whole_file;

#[cfg(test)]
mod scratch;
