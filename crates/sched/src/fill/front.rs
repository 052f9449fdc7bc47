//! Wanted sectors that a read can bring before its own because they pass on the way to it
//! (`core/read_through`).

use headtime_disk::Kind;

use super::gap::Leg;
use super::subsystem::Freeblock;
use crate::tasks::{TaskRange, Wants, Who};

impl Freeblock {
    /// Returns the wanted sectors from `low` up to a read of `own`, as the front of its command.
    pub(crate) fn front(&mut self, low: u64, own: TaskRange) -> Option<Leg> {
        self.passing.reset(low, u32::try_from(own.end().saturating_sub(low)).ok()?);
        self.tasks.wanted(Who::Anyone, Kind::Read, &mut self.passing);
        let first = self.passing.next(low).filter(|&first| first < own.lbn)?;
        Some(Leg { kind: Kind::Read, lbn: first, count: (own.lbn - first) as u32, merged: true })
    }

    /// Returns whether a leg has a sector that is known to be unreadable.
    pub(crate) fn holds_bad(&self, leg: &Leg) -> bool {
        self.bad.within(leg).is_some()
    }
}
