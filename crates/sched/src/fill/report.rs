//! Statistics of the freeblock subsystem.

use super::regions::RegionMemory;
use crate::tasks::manager::SessionInfo;
use crate::tasks::memory::TaskMemory;

/// Work done and memory used by the subsystem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FillReport {
    /// Searches for work that fits.
    pub searches: u64,
    /// Their cost: one for each cell entered, each track examined and each query of the task layer.
    pub search_cost: u64,
    /// Commands of freeblock work alone, in gaps.
    pub commands: u64,
    /// Foreground commands that began earlier for free.
    pub merged: u64,
    /// Commands in idle time.
    pub idle: u64,
    /// Sectors moved by these, wanted or bridged.
    pub sectors: u64,
    /// Sectors that tasks got from foreground requests, including those of promoted tasks and
    /// stragglers: not for free.
    pub by_foreground: u64,
    /// How often filling was disabled because predictions failed.
    pub times_shut: u64,
    /// Whether it is disabled now.
    pub shut: bool,
    /// State of the sessions.
    pub sessions: Vec<SessionInfo>,
    /// Memory of the task manager.
    pub tasks: TaskMemory,
    /// Memory of the scheduling layer.
    pub regions: RegionMemory,
}

impl FillReport {
    /// Returns all bytes occupied by tasks, in both layers.
    pub fn bytes(&self) -> usize {
        self.tasks.total() + self.regions.total()
    }
}
