//! Fault injection in a virtual drive.

use crate::time::{Dur, Time};

/// An injected fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Reads of these sectors fail after retries of 8 revolutions, until they are written.
    Unreadable {
        /// First LBN.
        lbn: u64,
        /// Number of sectors.
        count: u64,
    },
    /// Accesses to these sectors take the given number of extra revolutions; where several overlap,
    /// the largest counts.
    Slow {
        /// First LBN.
        lbn: u64,
        /// Number of sectors.
        count: u64,
        /// Extra revolutions.
        turns: u32,
    },
    /// From `at` on, this sector is unreadable; a write repairs it (the drive remaps it).
    Grown {
        /// LBN.
        lbn: u64,
        /// Time.
        at: Time,
    },
    /// The first command that starts at or after `at` is delayed by `takes`, and so are all that
    /// arrive until then, cached writes included.
    Hang {
        /// Time.
        at: Time,
        /// Delay.
        takes: Dur,
    },
    /// From `at` on, every command fails at once.
    Death {
        /// Time.
        at: Time,
    },
    /// From `at` on, the write cache is on or off, whatever the profile says.
    WriteCache {
        /// Time.
        at: Time,
        /// Whether it is on.
        on: bool,
    },
    /// FUA is ignored: such writes are cached like others. A kernel that believes a write cache to
    /// be off drops FUA, with the same effect.
    IgnoresFua,
}

/// Revolutions that a drive retries before it reports a sector as unreadable.
pub const RETRY_TURNS: u32 = 8;

/// The current faults of a drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    list: Vec<Fault>,
}

impl Faults {
    /// Creates the list.
    pub(super) fn new(list: Vec<Fault>) -> Faults {
        Faults { list }
    }

    /// Returns all of them, as they are now: parts of ranges that were written are no longer in
    /// them.
    pub(super) fn list(&self) -> &[Fault] {
        &self.list
    }

    /// Whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the first sector of a range that is unreadable at `now`.
    pub(super) fn unreadable(&self, lbn: u64, count: u64, now: Time) -> Option<u64> {
        let end = lbn + count;
        self.list
            .iter()
            .filter_map(|f| match *f {
                Fault::Unreadable { lbn: b, count: n } if b < end && lbn < b + n => Some(b.max(lbn)),
                Fault::Grown { lbn: b, at } if at <= now && lbn <= b && b < end => Some(b),
                _ => None,
            })
            .min()
    }

    /// Returns the extra revolutions of an access to a range.
    pub(super) fn extra_turns(&self, lbn: u64, count: u64) -> u32 {
        self.list
            .iter()
            .map(|f| match *f {
                Fault::Slow { lbn: b, count: n, turns } if b < lbn + count && lbn < b + n => turns,
                _ => 0,
            })
            .max()
            .unwrap_or(0)
    }

    /// Notes a write of a range at `now`: unreadable sectors in it become readable. A defect that
    /// has not yet grown remains.
    pub(super) fn written(&mut self, lbn: u64, count: u64, now: Time) {
        if self.list.is_empty() {
            return;
        }
        let end = lbn + count;
        let mut left = Vec::with_capacity(self.list.len());
        for f in self.list.drain(..) {
            match f {
                Fault::Unreadable { lbn: b, count: n } if b < end && lbn < b + n => {
                    if b < lbn {
                        left.push(Fault::Unreadable { lbn: b, count: lbn - b });
                    }
                    if b + n > end {
                        left.push(Fault::Unreadable { lbn: end, count: b + n - end });
                    }
                }
                Fault::Grown { lbn: b, at } if at <= now && lbn <= b && b < end => {}
                other => left.push(other),
            }
        }
        self.list = left;
    }

    /// Whether a hang is due by `now` that has not begun.
    pub(super) fn is_hang_due(&self, now: Time) -> bool {
        self.list.iter().any(|f| matches!(f, Fault::Hang { at, .. } if *at <= now))
    }

    /// Returns the delay of a hang due by `now`; each happens once.
    pub(super) fn hang(&mut self, now: Time) -> Dur {
        let found = self.list.iter().position(|f| matches!(f, Fault::Hang { at, .. } if *at <= now));
        match found.map(|i| self.list.remove(i)) {
            Some(Fault::Hang { takes, .. }) => takes,
            _ => Dur::ZERO,
        }
    }

    /// Returns the switched state of the write cache due by `now`; each switch happens once.
    pub(super) fn write_cache(&mut self, now: Time) -> Option<bool> {
        let found = self.list.iter().position(|f| matches!(f, Fault::WriteCache { at, .. } if *at <= now));
        match found.map(|i| self.list.remove(i)) {
            Some(Fault::WriteCache { on, .. }) => Some(on),
            _ => None,
        }
    }

    /// Whether FUA is ignored.
    pub(super) fn ignores_fua(&self) -> bool {
        self.list.contains(&Fault::IgnoresFua)
    }

    /// Whether the drive is dead at `now`.
    pub(super) fn dead(&self, now: Time) -> bool {
        self.list.iter().any(|f| matches!(f, Fault::Death { at } if *at <= now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_part_of_an_unreadable_range_mends_that_part_only() {
        let mut f = Faults::new(vec![Fault::Unreadable { lbn: 100, count: 10 }]);
        f.written(103, 2, Time(0));
        assert_eq!(f.unreadable(100, 3, Time(0)), Some(100));
        assert_eq!(f.unreadable(103, 2, Time(0)), None);
        assert_eq!(f.unreadable(103, 5, Time(0)), Some(105));
    }

    #[test]
    fn a_grown_defect_appears_in_time_and_a_hang_happens_once() {
        let mut f =
            Faults::new(vec![Fault::Grown { lbn: 7, at: Time(50) }, Fault::Hang { at: Time(10), takes: Dur(5) }]);
        assert_eq!(f.unreadable(0, 10, Time(49)), None);
        assert_eq!(f.unreadable(0, 10, Time(50)), Some(7));
        assert_eq!(f.hang(Time(9)), Dur::ZERO);
        assert_eq!(f.hang(Time(10)), Dur(5));
        assert_eq!(f.hang(Time(11)), Dur::ZERO);
    }
}
