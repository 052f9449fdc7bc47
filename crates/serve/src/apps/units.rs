//! The scope of a job: ranges of the disk, divided into units.
//!
//! Units are counted from the start of each range, as in the server, so that the server delivers
//! whole units. The last unit of a range may be shorter.

use headtime_sched::TaskRange;

/// The largest number of units: one bit each takes 8 MiB of memory.
const MAX_UNITS: u64 = 1 << 26;
/// The unit of small disks, bytes: it fits into most gaps.
const SMALLEST_BYTES: u64 = 8 << 10;
/// The largest unit, bytes: it must fit into a message and leave room in a window.
pub const LARGEST_BYTES: u64 = 4 << 20;

/// Why ranges or their unit are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitsError {
    /// There are no sectors.
    #[error("expected at least one sector, found none")]
    Empty,
    /// A range is not on the disk.
    #[error("sectors {first} to {end} are not on a disk of {sectors}")]
    OutOfRange {
        /// First sector.
        first: u64,
        /// One past the last.
        end: u64,
        /// Sectors of the disk.
        sectors: u64,
    },
    /// Two ranges overlap.
    #[error("the ranges at sectors {0} and {1} overlap")]
    Overlap(u64, u64),
    /// A unit is empty, too large, or so small that there are too many units.
    #[error("unit: expected {least} to {most} sectors, found {found}")]
    Unit {
        /// The smallest unit for these ranges.
        least: u64,
        /// The largest unit.
        most: u64,
        /// The unit given.
        found: u64,
    },
}

/// Ranges of a disk in ascending order, and their units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    ranges: Vec<TaskRange>,
    /// The number of the first unit of each range.
    first: Vec<u64>,
    unit: u32,
    len: u64,
    sectors: u64,
}

/// Returns the default unit for this number of sectors: a power of two in bytes.
pub fn usual_unit(sectors: u64, sector_bytes: u32) -> u32 {
    let bytes = sectors.saturating_mul(u64::from(sector_bytes));
    let unit = bytes.div_ceil(MAX_UNITS).next_power_of_two().clamp(SMALLEST_BYTES, LARGEST_BYTES);
    (unit / u64::from(sector_bytes)).max(1) as u32
}

impl Units {
    /// Creates the units of these ranges, with `unit` sectors each.
    pub fn new(mut ranges: Vec<TaskRange>, unit: u32, sectors: u64, sector_bytes: u32) -> Result<Units, UnitsError> {
        ranges.sort_unstable();
        if ranges.is_empty() || ranges.iter().any(|r| r.count == 0) {
            return Err(UnitsError::Empty);
        }
        for r in &ranges {
            let end = r.lbn.saturating_add(r.count);
            if end > sectors {
                return Err(UnitsError::OutOfRange { first: r.lbn, end, sectors });
            }
        }
        if let Some(w) = ranges.windows(2).find(|w| w[0].overlaps(&w[1])) {
            return Err(UnitsError::Overlap(w[0].lbn, w[1].lbn));
        }
        let wanted: u64 = ranges.iter().map(|r| r.count).sum();
        let (least, most) = (wanted.div_ceil(MAX_UNITS).max(1), LARGEST_BYTES / u64::from(sector_bytes));
        if !(least..=most).contains(&u64::from(unit)) {
            return Err(UnitsError::Unit { least, most, found: unit.into() });
        }
        let mut len = 0;
        let first = ranges.iter().map(|r| {
            let first = len;
            len += r.count.div_ceil(u64::from(unit));
            first
        });
        let first = first.collect();
        Ok(Units { ranges, first, unit, len, sectors: wanted })
    }

    /// Returns the ranges in ascending order.
    pub fn ranges(&self) -> &[TaskRange] {
        &self.ranges
    }

    /// Returns the sectors per unit.
    pub fn unit(&self) -> u32 {
        self.unit
    }

    /// Returns the number of units.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Always returns false: a job has at least one sector.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of sectors.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns the sectors of unit `index`.
    pub fn range(&self, index: u64) -> TaskRange {
        let i = self.first.partition_point(|&f| f <= index) - 1;
        let (r, unit) = (self.ranges[i], u64::from(self.unit));
        let lbn = r.lbn + (index - self.first[i]) * unit;
        TaskRange { lbn, count: unit.min(r.end() - lbn) }
    }

    /// Returns the number of the unit that contains sector `lbn`.
    pub fn holding(&self, lbn: u64) -> Option<u64> {
        let i = self.ranges.partition_point(|r| r.lbn <= lbn).checked_sub(1)?;
        let r = self.ranges[i];
        (lbn < r.end()).then(|| self.first[i] + (lbn - r.lbn) / u64::from(self.unit))
    }

    /// Returns the offset of `lbn` from the start, counting only covered sectors.
    pub fn offset(&self, lbn: u64) -> u64 {
        self.ranges.iter().map(|r| lbn.clamp(r.lbn, r.end()) - r.lbn).sum()
    }

    /// Returns the sectors of the units from `from` up to `to`, as one range for each range of the
    /// job that they touch.
    pub fn stretches(&self, from: u64, to: u64) -> impl Iterator<Item = TaskRange> + '_ {
        let mut at = from;
        std::iter::from_fn(move || {
            (at < to).then(|| {
                let i = self.first.partition_point(|&f| f <= at) - 1;
                let end = self.first.get(i + 1).copied().unwrap_or(self.len).min(to);
                let (a, b) = (self.range(at), self.range(end - 1));
                at = end;
                TaskRange { lbn: a.lbn, count: b.end() - a.lbn }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units() -> Units {
        let ranges =
            vec![TaskRange { lbn: 100, count: 5 }, TaskRange { lbn: 10, count: 20 }, TaskRange { lbn: 30, count: 1 }];
        Units::new(ranges, 8, 1000, 512).unwrap()
    }

    #[test]
    fn every_sector_is_in_the_unit_whose_range_holds_it() {
        let u = units();
        assert_eq!((u.len(), u.sectors()), (3 + 1 + 1, 26));
        for index in 0..u.len() {
            let r = u.range(index);
            assert!((r.lbn..r.end()).all(|lbn| u.holding(lbn) == Some(index)));
        }
        assert!([0, 9, 31, 99, 105, u64::MAX].into_iter().all(|lbn| u.holding(lbn).is_none()));
        assert_eq!(u.range(2), TaskRange { lbn: 26, count: 4 });
    }

    #[test]
    fn stretches_of_units_end_where_a_range_ends() {
        let all: Vec<_> = units().stretches(1, 5).collect();
        assert_eq!(
            all,
            [TaskRange { lbn: 18, count: 12 }, TaskRange { lbn: 30, count: 1 }, TaskRange { lbn: 100, count: 5 }]
        );
        assert_eq!(units().stretches(2, 2).count(), 0);
    }

    #[test]
    fn offsets_leave_out_what_is_not_covered() {
        let u = units();
        assert_eq!([10, 29, 30, 100, 104].map(|lbn| u.offset(lbn)), [0, 19, 20, 21, 25]);
    }

    #[test]
    fn what_is_no_part_of_the_disk_is_refused() {
        let of = |lbn, count, unit| Units::new(vec![TaskRange { lbn, count }], unit, 1000, 512);
        assert_eq!(of(0, 0, 8), Err(UnitsError::Empty));
        assert!(matches!(of(999, 2, 8), Err(UnitsError::OutOfRange { .. })));
        assert!(matches!(of(u64::MAX, 2, 8), Err(UnitsError::OutOfRange { .. })));
        assert!(matches!(of(0, 8, 0), Err(UnitsError::Unit { .. })));
        assert!(matches!(of(0, 8, 8193), Err(UnitsError::Unit { most: 8192, .. })));
        let twice = vec![TaskRange { lbn: 0, count: 9 }, TaskRange { lbn: 8, count: 1 }];
        assert_eq!(Units::new(twice, 8, 1000, 512), Err(UnitsError::Overlap(0, 8)));
    }

    #[test]
    fn the_usual_unit_grows_with_the_disk_so_that_one_bit_each_stays_small() {
        assert_eq!(usual_unit(18_000_000, 512), 16);
        assert_eq!(usual_unit(16 << 31, 512), 512);
        assert_eq!(usual_unit(16 << 28, 4096), 64);
        for sectors in [1, 1 << 20, 1 << 36] {
            let unit = usual_unit(sectors, 4096);
            assert!(Units::new(vec![TaskRange { lbn: 0, count: sectors }], unit, sectors, 4096).is_ok());
        }
    }
}
