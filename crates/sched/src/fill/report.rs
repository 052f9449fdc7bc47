//! What the freeblock subsystem says of itself.

use super::regions::RegionMemory;
use crate::tasks::manager::SessionInfo;
use crate::tasks::memory::Memory;

/// What the subsystem has done and what it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Searches for something that fits.
    pub searches: u64,
    /// Commands that were freeblock work alone, in gaps.
    pub commands: u64,
    /// Foreground commands that began earlier for free.
    pub merged: u64,
    /// Commands in idle time.
    pub idle: u64,
    /// Sectors moved by these, wanted or bridged.
    pub sectors: u64,
    /// Sectors that tasks got from requests of the foreground, promoted tasks' and stragglers'
    /// included: not for free.
    pub by_foreground: u64,
    /// How often filling stopped because the drive surprised.
    pub times_shut: u64,
    /// Whether it is stopped now.
    pub shut: bool,
    /// What the sessions are at.
    pub sessions: Vec<SessionInfo>,
    /// What the task manager takes.
    pub tasks: Memory,
    /// What the scheduling layer takes.
    pub regions: RegionMemory,
}

impl Report {
    /// All bytes that tasks take, in both layers.
    pub fn bytes(&self) -> usize {
        self.tasks.total() + self.regions.total()
    }
}
