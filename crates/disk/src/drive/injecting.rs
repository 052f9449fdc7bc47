//! Faults that are injected while a drive is used, and what a power failure would lose.

use super::faults::Faults;
use super::{Busy, Drive, Fault};
use crate::time::{Dur, Time};

impl Drive {
    /// Returns whether commands that arrive at `now` wait for the end of a hang, which may not have
    /// begun: it does with the next command.
    pub(super) fn hangs(&self, now: Time) -> bool {
        now < self.hung_until || (!self.mech.faults.is_empty() && self.mech.faults.is_hang_due(now))
    }

    /// Begins a hang that is due at `at`, when the mechanism is idle; returns whether one was.
    pub(super) fn hang(&mut self, at: Time) -> bool {
        let takes = self.mech.faults.hang(at);
        if takes > Dur::ZERO {
            self.busy = Busy::Other;
            self.free_at = at + takes;
            self.hung_until = self.free_at;
        }
        takes > Dur::ZERO
    }

    /// Returns the current faults. Sectors that were written are no longer in an unreadable range,
    /// and what happens once is no longer there once it has happened.
    pub fn faults(&self) -> &[Fault] {
        self.mech.faults.list()
    }

    /// Replaces all faults from `now` on. A command that is being served is not affected. Sectors
    /// that become unreadable are dropped from the cache, unless they are there to be written.
    ///
    /// # Panics
    /// `now` is before an earlier call's.
    pub fn set_faults(&mut self, faults: Vec<Fault>, now: Time) {
        assert!(now >= self.now, "time went back: {now} after {}", self.now);
        self.free_up(now);
        self.now = now;
        for fault in &faults {
            if let Fault::Unreadable { lbn, count } = *fault {
                // A prefetch may be reading these sectors.
                self.stop_stream(now);
                self.cache.empty_overlapping(lbn, lbn + count, None);
            }
        }
        self.mech.faults = Faults::new(faults);
        while let Some(on) = self.mech.faults.write_cache(now) {
            self.switch_write_cache(on, now);
        }
    }

    /// Returns whether the volatile write cache is on.
    pub fn has_write_cache(&self) -> bool {
        self.cache_spec.write_back && self.cache.exists()
    }

    /// Returns the ranges (first LBN and end) that are not on the media although their writes may
    /// have completed: the contents of the write cache, and what is being written.
    pub fn unwritten(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let dirty = self.dirty.iter().map(|d| (d.lbn, d.lbn + u64::from(d.count)));
        dirty.chain(self.writing)
    }
}
