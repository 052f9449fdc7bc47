//! What the task manager's structures take, in bytes (Thereska 2003 tables 1 and 2).

/// Bytes allocated, by structure. Exact: capacities, not lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The session list.
    pub sessions: usize,
    /// The task table.
    pub tasks: usize,
    /// The tasks' ranges.
    pub ranges: usize,
    /// The bits of the ranges, now.
    pub bits: usize,
    /// What the bits can grow to while nothing is registered: this is what is held against the
    /// limit.
    pub bits_at_most: usize,
    /// Which ranges lie where.
    pub index: usize,
    /// Events and changes that wait to be fetched, writes under way.
    pub queues: usize,
}

impl Memory {
    /// All that is allocated.
    pub fn total(&self) -> usize {
        self.sessions + self.tasks + self.ranges + self.bits + self.index + self.queues
    }

    /// What is held against [`Limits::bytes`](super::Limits): everything but the queues, which have
    /// bounds of their own, with the bits at their largest.
    pub fn held(&self) -> usize {
        self.sessions + self.tasks + self.ranges + self.bits_at_most + self.index
    }
}
