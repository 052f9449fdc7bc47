//! What the drive under test must be able to do.

use headtime_disk::command::{Kind, Outcome};
use headtime_disk::time::Time;

/// A command to be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Reads; writes and flushes only where the drive may be written to.
    pub kind: Kind,
    /// First sector.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// Not to be sent before this instant; time zero: as soon as there is room.
    pub not_before: Time,
}

impl Ask {
    /// A read as soon as there is room.
    pub fn read(lbn: u64, count: u32) -> Ask {
        Ask { kind: Kind::Read, lbn, count, not_before: Time::ZERO }
    }
}

/// What became of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When it was sent.
    pub sent: Time,
    /// When its end was heard of.
    pub done: Time,
    /// How it ended.
    pub outcome: Outcome,
}

/// The device cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeviceError(pub String);

/// A drive that is timed. Its clock goes on between calls.
pub trait Device {
    /// Sectors.
    fn sectors(&self) -> u64;
    /// Bytes a sector.
    fn sector_bytes(&self) -> u32;
    /// Commands that it takes at once.
    fn depth(&self) -> u32;
    /// Now, by the clock that answers are stamped with.
    fn now(&self) -> Time;
    /// Sends these in this order, with at most `outstanding` at the drive, and waits for all: one
    /// answer each, in the same order.
    ///
    /// # Errors
    /// The device is gone or refuses: the probe ends.
    fn run(&mut self, asks: &[Ask], outstanding: u32) -> Result<Vec<Answer>, DeviceError>;
    /// Whether the next answers are an earlier run's, which went on with other questions if it was
    /// asked for the time more often: whoever only wants to know this must not ask for that.
    fn is_past(&self) -> bool {
        false
    }
    /// Answers before this instant were an earlier run's, and where the platter is since then is
    /// not known. `None`: all are of this one, or still of that.
    fn resumed_at(&self) -> Option<Time> {
        None
    }
}
