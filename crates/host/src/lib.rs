//! What headtime has to do with the machine it runs on, which is Linux.
//!
//! - [`blockdev`]: what a block device is, whether anybody uses it, and how it is opened so that
//!   nobody else does.
//! - [`tuning`]: the queue of a disk whose order we decide must not decide it again; what it was
//!   before comes back.
//! - [`attach`]: an NBD export as a block device of this kernel, and away again.
//! - [`awake`]: processors that are quick to hear of an answer.
//! - [`privileges`]: becoming an ordinary user once everything is open.
//! - [`systemd`]: telling the service manager how we are.
//!
//! Everything that is read from `/sys`, `/proc` and `/etc` goes through a [`sys::Sys`], so that
//! tests can show it a tree of their own. What must outlive a crash is in small files: [`state`]
//! and [`process`].

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

#[cfg(test)]
mod scratch;
