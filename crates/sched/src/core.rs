//! The core (contract in the crate's documentation).

use headtime_disk::command::Outcome;
use headtime_disk::model::Model;
use headtime_disk::time::Time;

use crate::request::{Action, Request};

/// Who goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First come, first served.
    Fcfs,
    /// Circular LOOK by LBN.
    Clook,
    /// Shortest seek time first (by distance in cylinders).
    Sstf,
    /// Shortest positioning time first (SATF).
    Sptf,
    /// Smallest seek among those within so many percent of the shortest positioning time.
    SptfSw(u32),
    /// SPTF, but a request that waited longer than this goes first.
    SatfUf(headtime_disk::time::Dur),
}

/// How a core is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who goes next.
    pub order: Order,
    /// Commands outstanding at the drive at most (2 hides overheads and leaves the drive no choice).
    pub max_outstanding: u32,
    /// Requests that may wait at most; more are refused with [`Refused::Full`].
    pub capacity: usize,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many requests wait already.
    #[error("{capacity} requests wait already")]
    Full {
        /// The limit.
        capacity: usize,
    },
    /// It reaches beyond the drive's last sector, or asks for nothing.
    #[error("sectors {lbn} to {lbn}+{count} are not on a drive of {capacity} sectors")]
    OutOfRange {
        /// First LBN asked for.
        lbn: u64,
        /// Sectors asked for.
        count: u32,
        /// Usable sectors.
        capacity: u64,
    },
}

/// The scheduling core.
#[derive(Debug)]
pub struct Core {}

impl Core {
    /// A core that believes `model` of its drive.
    pub fn new(_config: Config, _model: Model) -> Core {
        unimplemented!()
    }
    /// Tells it of a new request.
    pub fn submit(&mut self, _request: Request, _now: Time) -> Result<(), Refused> {
        unimplemented!()
    }
    /// Tells it that the drive finished a command.
    pub fn complete(&mut self, _command: u64, _outcome: Outcome, _now: Time) {
        unimplemented!()
    }
    /// Tells it the time.
    pub fn tick(&mut self, _now: Time) {
        unimplemented!()
    }
    /// What it wants done; to be called until `None` after every telling.
    pub fn poll(&mut self) -> Option<Action> {
        unimplemented!()
    }
    /// When it wants to be told the time, if nothing else happens before.
    pub fn next_wakeup(&self) -> Option<Time> {
        unimplemented!()
    }
}
