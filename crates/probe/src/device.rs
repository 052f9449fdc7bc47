//! The interface of the drive under test.

use headtime_disk::{Kind, Outcome, Time};

/// A command to be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Reads; writes and flushes only if the drive may be written to.
    pub kind: Kind,
    /// First sector.
    pub lbn: u64,
    /// Number of sectors.
    pub count: u32,
    /// Earliest time of dispatch; time zero: as soon as there is room.
    pub not_before: Time,
}

impl Ask {
    /// Returns a read without an earliest time.
    pub fn read(lbn: u64, count: u32) -> Ask {
        Ask { kind: Kind::Read, lbn, count, not_before: Time::ZERO }
    }
}

/// The answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Time of dispatch.
    pub sent: Time,
    /// Time at which the completion was noticed.
    pub done: Time,
    /// Result.
    pub outcome: Outcome,
}

/// A failure of the device that ends the probe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeviceError(pub String);

/// A drive under test. Its clock runs between calls too.
pub trait Device {
    /// Capacity in sectors.
    fn sectors(&self) -> u64;
    /// Sector size in bytes.
    fn sector_bytes(&self) -> u32;
    /// Queue depth.
    fn depth(&self) -> u32;
    /// The current time of the clock that answers are stamped with.
    fn now(&self) -> Time;
    /// Dispatches the commands in order, with at most `outstanding` in flight, and waits for all.
    /// Returns one answer each, in the same order.
    ///
    /// # Errors
    /// The device is gone or refuses a command: the probe ends.
    fn run(&mut self, asks: &[Ask], outstanding: u32) -> Result<Vec<Answer>, DeviceError>;
    /// Returns whether the next answers are replayed from an earlier run. Use this instead of
    /// reading the clock: an additional clock reading would diverge from the earlier run.
    fn is_past(&self) -> bool {
        false
    }
    /// Answers before this time are an earlier run's, and the platter's position since then is
    /// unknown. `None`: all answers are of this run, or all still of the earlier one.
    fn resumed_at(&self) -> Option<Time> {
        None
    }
}
