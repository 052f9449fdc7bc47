//! The interface between the engine and devices, and the devices.
//!
//! * [`virtual_drive`]: a drive simulated in real time over a backing file
//! * [`test_disk`]: a virtual drive with faults, power failures and a speed of its own
//! * [`mod@file`]: a block device, a loop device or a file, through io_uring
//! * [`null`]: completes at once, to measure the cost of everything else
//! * [`faulty`]: any device with injected faults

pub(crate) mod faulty;
pub mod file;
pub(crate) mod null;
pub mod test_disk;
pub mod virtual_drive;
mod volatile;

use std::fmt;
use std::os::fd::BorrowedFd;

use bytes::Bytes;
use headtime_disk::{Command, Dur, Kind, Outcome, Time};

/// A device in real time: takes commands and the time, and is polled for completions. It never
/// blocks.
pub trait Device {
    /// Usable sectors.
    fn sectors(&self) -> u64;
    /// Bytes per sector.
    fn sector_bytes(&self) -> u32;
    /// Commands it takes at a time.
    fn depth(&self) -> u32;
    /// Starts a command. `data` is the data of a write, exactly as long as the command. A command
    /// that cannot be started completes with a fault.
    fn submit(&mut self, command: &Command, data: Bytes, now: Time);
    /// Returns a completed command, if any; to be called until `None`.
    fn poll(&mut self, now: Time) -> Option<Done>;
    /// Returns the time of the next completion, if it is known in advance.
    fn next_event(&self) -> Option<Time>;
    /// Returns a descriptor that is readable after a completion that was not known in advance;
    /// `None` if [`Device::next_event`] covers all. There is no default on purpose: a wrapper that
    /// did not forward this would let the engine sleep despite completions.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
}

/// A completed command.
#[derive(Clone, Debug)]
pub struct Done {
    /// The command's identifier.
    pub id: u64,
    /// The outcome for the scheduler.
    pub outcome: Outcome,
    /// The fault for the client; `None` on success.
    pub fault: Option<Fault>,
    /// The data of a read, exactly as long as the command; empty for others and on failure.
    pub data: Bytes,
    /// The delay in noticing the completion, if its time was known in advance.
    pub late: Option<Dur>,
}

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It could not be read or written.
    Io,
    /// No space is left beneath the device.
    NoSpace,
    /// The device is gone.
    Gone,
    /// Its period is over, and its stream prefers no answer to a late one.
    Late,
    /// It is larger than requests may be with streams, or larger than its stream declared.
    TooLarge,
}

impl Fault {
    /// Returns the message for users.
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
    /// Converts an error of the kernel.
    pub fn of(e: &std::io::Error) -> Fault {
        // ENODEV, ENXIO: removed. ENOSPC, EDQUOT, EFBIG: a sparse file that cannot grow.
        match e.raw_os_error() {
            Some(19 | 6) => Fault::Gone,
            Some(28 | 122 | 27) => Fault::NoSpace,
            _ => Fault::Io,
        }
    }

    /// Returns the outcome that the scheduler is given for a command with this fault.
    pub fn outcome(self, command: &Command) -> Outcome {
        match self {
            Fault::Gone => Outcome::Dead,
            // The failed sector is unknown; the first is reported.
            Fault::Io | Fault::NoSpace | Fault::Late | Fault::TooLarge => Outcome::MediaError { lbn: command.lbn },
        }
    }
}

impl Done {
    /// Returns a successful completion.
    pub fn ok(id: u64, data: Bytes) -> Done {
        Done { id, outcome: Outcome::Ok, fault: None, data, late: None }
    }

    /// Returns a failed completion.
    pub fn failed(command: &Command, fault: Fault) -> Done {
        Done { id: command.id, outcome: fault.outcome(command), fault: Some(fault), data: Bytes::new(), late: None }
    }
}

/// Returns the bytes that a command transfers.
pub fn bytes_of(command: &Command, sector_bytes: u32) -> usize {
    match command.kind {
        Kind::Flush => 0,
        Kind::Read | Kind::Write => command.count as usize * sector_bytes as usize,
    }
}
