//! Point-in-time reads: the blocks of a task that are still to be delivered as they were at its
//! registration.
//!
//! A foreground write to such a block is preceded by a read of it ("copy before write"). Requests
//! that overlap are carried out in order of submission, so nothing else is needed to keep the two
//! apart. The read satisfies the task like any other. If the task can take nothing at that moment
//! (its client has not acknowledged earlier data, or it is suspended), the block is still sent to
//! the client, up to a bound, and the task no longer needs it.

use headtime_sched::{SessionId, TaskId, TaskRange};

/// Point-in-time tasks at a time: each needs one bit per unit in memory.
pub const MAX_IMAGES: usize = 4;

/// The blocks of one task.
#[derive(Debug)]
pub(crate) struct Image {
    /// The task's session.
    pub session: SessionId,
    /// The task.
    pub task: TaskId,
    unit: u64,
    /// In order of sectors.
    ranges: Vec<Pending>,
}

/// One range, with a bit for each of its units, set while the unit is to be delivered.
#[derive(Debug)]
struct Pending {
    range: TaskRange,
    bits: Vec<u64>,
}

impl Pending {
    /// Returns the units that have a sector in `range`.
    fn units(&self, range: &TaskRange, unit: u64) -> std::ops::Range<u64> {
        if !self.range.overlaps(range) {
            return 0..0;
        }
        let from = range.lbn.max(self.range.lbn) - self.range.lbn;
        let to = range.end().min(self.range.end()) - self.range.lbn;
        from / unit..to.div_ceil(unit)
    }

    fn is_set(&self, at: u64) -> bool {
        self.bits[(at / 64) as usize] >> (at % 64) & 1 == 1
    }

    fn clear(&mut self, at: u64) {
        self.bits[(at / 64) as usize] &= !(1 << (at % 64));
    }

    fn span(&self, units: std::ops::Range<u64>, unit: u64) -> TaskRange {
        let lbn = self.range.lbn + units.start * unit;
        let end = (self.range.lbn + units.end * unit).min(self.range.end());
        TaskRange { lbn, count: end - lbn }
    }
}

impl Image {
    /// Creates the image of all blocks of these ranges, which must not overlap, in units of `unit`
    /// sectors.
    pub(crate) fn new(session: SessionId, task: TaskId, ranges: &[TaskRange], unit: u32) -> Image {
        let unit = u64::from(unit.max(1));
        let all = ranges.iter().map(|&range| {
            let units = range.count.div_ceil(unit);
            let mut bits = vec![u64::MAX; units.div_ceil(64) as usize];
            if !units.is_multiple_of(64) {
                *bits.last_mut().expect("a range is not empty") = (1 << (units % 64)) - 1;
            }
            Pending { range, bits }
        });
        let mut ranges: Vec<Pending> = all.collect();
        ranges.sort_unstable_by_key(|p| p.range.lbn);
        Image { session, task, unit, ranges }
    }

    /// Returns the indices of the ranges that have a sector in this one.
    fn touched(&self, range: &TaskRange) -> std::ops::Range<usize> {
        let first = self.ranges.partition_point(|p| p.range.end() <= range.lbn);
        first..first + self.ranges[first..].partition_point(|p| p.range.lbn < range.end())
    }

    /// Returns the smallest range that covers every undelivered block with a sector in `range`.
    pub(crate) fn pending(&self, range: &TaskRange) -> Option<TaskRange> {
        let mut all: Option<TaskRange> = None;
        for p in &self.ranges[self.touched(range)] {
            let mut units = p.units(range, self.unit);
            let (Some(first), last) = (units.find(|&u| p.is_set(u)), p.units(range, self.unit).rfind(|&u| p.is_set(u)))
            else {
                continue;
            };
            let here = p.span(first..last.unwrap_or(first) + 1, self.unit);
            all = Some(match all {
                None => here,
                Some(a) => {
                    let lbn = a.lbn.min(here.lbn);
                    TaskRange { lbn, count: a.end().max(here.end()) - lbn }
                }
            });
        }
        all
    }

    /// Marks the blocks within `range` as delivered and returns those that were not yet, as ranges.
    pub(crate) fn take(&mut self, range: &TaskRange) -> Vec<TaskRange> {
        let (unit, mut taken) = (self.unit, Vec::new());
        let touched = self.touched(range);
        for p in &mut self.ranges[touched] {
            let mut begun: Option<u64> = None;
            let units = p.units(range, unit);
            for at in units.clone() {
                let one = p.span(at..at + 1, unit);
                // A block that was read only in part is not delivered.
                let whole = range.lbn <= one.lbn && one.end() <= range.end();
                if whole && p.is_set(at) {
                    p.clear(at);
                    begun.get_or_insert(at);
                } else if let Some(from) = begun.take() {
                    taken.push(p.span(from..at, unit));
                }
            }
            if let Some(from) = begun {
                taken.push(p.span(from..units.end, unit));
            }
        }
        taken
    }

    /// Returns the memory it uses in bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.ranges.iter().map(|p| p.bits.len() * 8).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(lbn: u64, count: u64) -> TaskRange {
        TaskRange { lbn, count }
    }

    fn image() -> Image {
        // Units 100..108, 108..116, 116..120 (short), and 1000..1008.
        Image::new(SessionId(1), TaskId(1), &[range(100, 20), range(1000, 8)], 8)
    }

    #[test]
    fn what_a_write_touches_is_pending_in_whole_blocks() {
        let i = image();
        assert_eq!(i.pending(&range(0, 100)), None);
        assert_eq!(i.pending(&range(0, 101)), Some(range(100, 8)));
        assert_eq!(i.pending(&range(107, 2)), Some(range(100, 16)));
        assert_eq!(i.pending(&range(119, 5)), Some(range(116, 4)));
        assert_eq!(i.pending(&range(110, 2000)), Some(range(108, 900)));
    }

    #[test]
    fn a_block_is_delivered_once_and_only_as_a_whole() {
        let mut i = image();
        assert_eq!(i.take(&range(101, 15)), [range(108, 8)]);
        assert_eq!(i.take(&range(90, 30)), [range(100, 8), range(116, 4)]);
        assert_eq!(i.take(&range(0, 2000)), [range(1000, 8)]);
        assert_eq!(i.take(&range(0, 2000)), []);
        assert_eq!(i.pending(&range(0, 2000)), None);
    }

    #[test]
    fn many_units_fill_their_words_exactly() {
        for units in [63, 64, 65, 128] {
            let mut i = Image::new(SessionId(1), TaskId(1), &[range(0, units)], 1);
            assert_eq!(i.pending(&range(0, 1000)), Some(range(0, units)));
            assert_eq!(i.take(&range(0, 1000)), [range(0, units)]);
            assert_eq!(i.bytes(), units.div_ceil(64) as usize * 8);
        }
    }
}
