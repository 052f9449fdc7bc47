//! What the engine needs of a device, and the devices.
//!
//! * [`virtual_drive`]: a drive that spins in real time over a backing file
//! * [`file`]: a block device, a loop device or a file, through io_uring
//! * [`null`]: answers at once, to measure what everything else costs
//! * [`faulty`]: any of them, with faults planted in it

pub mod faulty;
pub mod file;
pub mod null;
pub mod virtual_drive;

use std::fmt;
use std::os::fd::BorrowedFd;

use bytes::Bytes;
use headtime_disk::command::{Command, Kind, Outcome};
use headtime_disk::time::{Dur, Time};

/// A device in real time: told commands and the time, asked for what has finished. It never waits.
pub trait Device {
    /// Usable sectors.
    fn sectors(&self) -> u64;
    /// Bytes a sector.
    fn sector_bytes(&self) -> u32;
    /// Commands it takes at once.
    fn depth(&self) -> u32;
    /// Begins a command. `data`: what a write writes, exactly as long as the command. A command
    /// that cannot be begun completes with a fault.
    fn submit(&mut self, command: &Command, data: Bytes, now: Time);
    /// One command that has finished; to be called until `None`.
    fn poll(&mut self, now: Time) -> Option<Done>;
    /// When something will have finished, where that is known beforehand.
    fn next_event(&self) -> Option<Time>;
    /// Readable when something has finished that was not known beforehand; `None`:
    /// [`Device::next_event`] knows of everything. There is no default on purpose: a device around
    /// another that forgot to hand this on would let the engine sleep for ever beside data that has
    /// come.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
}

/// A finished command.
#[derive(Clone, Debug)]
pub struct Done {
    /// The command's name.
    pub id: u64,
    /// How it ended, as the scheduler sees it.
    pub outcome: Outcome,
    /// Why it failed, as a client is told; `None` when it did not.
    pub fault: Option<Fault>,
    /// What a read has read, exactly as long as the command; empty for all else and for what
    /// failed.
    pub data: Bytes,
    /// How late the host hears of it, where the moment was known beforehand.
    pub late: Option<Dur>,
}

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It could not be read or written.
    Io,
    /// There is no room for it beneath.
    NoSpace,
    /// The device is gone.
    Gone,
    /// The period that it belonged to is over, and its stream rather has nothing than something
    /// late.
    Late,
    /// It is larger than any that may be asked for beside streams, or than its stream said that its
    /// requests are.
    TooLarge,
}

impl Fault {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Fault::Io => "input or output error",
            Fault::NoSpace => "no space left beneath the device",
            Fault::Gone => "the device is gone",
            Fault::Late => "not done in its period, and given up",
            Fault::TooLarge => "larger than requests may be here: what streams are promised rests on the largest",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl Fault {
    /// What an error of the kernel means.
    pub fn of(e: &std::io::Error) -> Fault {
        // ENODEV, ENXIO: removed. ENOSPC, EDQUOT, EFBIG: a sparse file that cannot grow.
        match e.raw_os_error() {
            Some(19 | 6) => Fault::Gone,
            Some(28 | 122 | 27) => Fault::NoSpace,
            _ => Fault::Io,
        }
    }

    /// What the scheduler is told of a command that failed so.
    pub fn outcome(self, command: &Command) -> Outcome {
        match self {
            Fault::Gone => Outcome::Dead,
            // Which sector it was is not known: the first stands for all.
            Fault::Io | Fault::NoSpace | Fault::Late | Fault::TooLarge => Outcome::MediaError { lbn: command.lbn },
        }
    }
}

impl Done {
    /// A command that was carried out.
    pub fn ok(id: u64, data: Bytes) -> Done {
        Done { id, outcome: Outcome::Ok, fault: None, data, late: None }
    }

    /// A command that failed.
    pub fn failed(command: &Command, fault: Fault) -> Done {
        Done { id: command.id, outcome: fault.outcome(command), fault: Some(fault), data: Bytes::new(), late: None }
    }
}

/// Bytes that a command moves.
pub fn bytes_of(command: &Command, sector_bytes: u32) -> usize {
    match command.kind {
        Kind::Flush => 0,
        Kind::Read | Kind::Write => command.count as usize * sector_bytes as usize,
    }
}
