//! Memory of the task manager's structures, in bytes (Thereska 2003 tables 1 and 2).

/// Bytes allocated, by structure. Exact: capacities, not lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskMemory {
    /// The session list.
    pub sessions: usize,
    /// The task table.
    pub tasks: usize,
    /// The tasks' ranges.
    pub ranges: usize,
    /// The bits of the ranges, at present.
    pub bits: usize,
    /// Upper bound of the bits while nothing is registered: counted against the limit.
    pub bits_at_most: usize,
    /// The index of the ranges.
    pub index: usize,
    /// Events and changes not yet fetched, writes in progress.
    pub queues: usize,
}

impl TaskMemory {
    /// Returns the total allocated.
    pub fn total(&self) -> usize {
        self.sessions + self.tasks + self.ranges + self.bits + self.index + self.queues
    }

    /// Returns what is counted against [`TaskLimits::bytes`](super::TaskLimits): everything but the
    /// queues, which have bounds of their own, with the bits at their upper bound.
    pub fn held(&self) -> usize {
        self.sessions + self.tasks + self.ranges + self.bits_at_most + self.index
    }
}
