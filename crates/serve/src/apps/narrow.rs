//! Units that could not be read as a whole and are read sector by sector to find their bad sectors.

use std::collections::BTreeMap;

use headtime_sched::TaskRange;

/// Bytes of units that are read this way at a time; further damage is reported in whole units.
const MAX_BYTES: u64 = 16 << 20;

/// All such units, by number.
#[derive(Debug, Default)]
pub(crate) struct Narrow {
    units: BTreeMap<u64, Unit>,
    bytes: u64,
}

#[derive(Debug)]
struct Unit {
    heard: Heard,
    /// Sectors without a result yet.
    left: u64,
}

/// The results for a unit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// The unit's sectors.
    pub range: TaskRange,
    /// Their data, zeros where unreadable.
    pub data: Vec<u8>,
    /// The unreadable sectors, in order of arrival.
    pub bad: Vec<TaskRange>,
}

impl Narrow {
    /// Returns whether there are no such units.
    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Returns whether this unit is read sector by sector.
    pub(crate) fn has(&self, index: u64) -> bool {
        self.units.contains_key(&index)
    }

    /// Adds a unit with these sectors; returns false if there is no room.
    pub(crate) fn begin(&mut self, index: u64, range: TaskRange, sector_bytes: u64) -> bool {
        let bytes = range.count * sector_bytes;
        if self.bytes + bytes > MAX_BYTES {
            return false;
        }
        let heard = Heard { range, data: vec![0; bytes as usize], bad: Vec::new() };
        self.bytes += bytes;
        self.units.insert(index, Unit { heard, left: range.count });
        true
    }

    /// Removes a unit that was delivered as a whole.
    pub(crate) fn forget(&mut self, index: u64) {
        if let Some(unit) = self.units.remove(&index) {
            self.bytes -= unit.heard.data.len() as u64;
        }
    }

    /// Takes the result of one sector: its data, or `None` if it is unreadable. After the last one,
    /// removes the unit and returns its results.
    pub(crate) fn record(&mut self, index: u64, lbn: u64, data: Option<&[u8]>) -> Option<Heard> {
        let unit = self.units.get_mut(&index)?;
        match data {
            Some(data) => {
                let from = (lbn - unit.heard.range.lbn) as usize * data.len();
                unit.heard.data[from..from + data.len()].copy_from_slice(data);
            }
            None => unit.heard.bad.push(TaskRange { lbn, count: 1 }),
        }
        unit.left = unit.left.saturating_sub(1);
        if unit.left > 0 {
            return None;
        }
        let unit = self.units.remove(&index)?;
        self.bytes -= unit.heard.data.len() as u64;
        Some(unit.heard)
    }

    /// Removes all units and returns their results.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u64, Heard)> + use<> {
        self.bytes = 0;
        std::mem::take(&mut self.units).into_iter().map(|(index, unit)| (index, unit.heard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_whole_when_its_last_sector_was_heard_of() {
        let mut n = Narrow::default();
        let range = TaskRange { lbn: 100, count: 3 };
        assert!(n.begin(7, range, 2));
        assert_eq!(n.record(7, 102, Some(&[5, 6])), None);
        assert_eq!(n.record(7, 100, None), None);
        assert_eq!(n.record(8, 101, Some(&[0, 0])), None, "of another unit");
        let bad = vec![TaskRange { lbn: 100, count: 1 }];
        assert_eq!(n.record(7, 101, Some(&[3, 4])), Some(Heard { range, data: vec![0, 0, 3, 4, 5, 6], bad }));
        assert!(n.is_empty() && n.bytes == 0);
    }

    #[test]
    fn there_is_room_for_so_many_and_what_ends_makes_room() {
        let mut n = Narrow::default();
        let range = |lbn| TaskRange { lbn, count: MAX_BYTES / 1024 };
        assert!(n.begin(0, range(0), 512) && n.begin(1, range(1 << 20), 512));
        assert!(!n.begin(2, range(1 << 30), 512));
        n.forget(1);
        assert!(!n.has(1) && n.begin(2, range(1 << 30), 512));
        assert_eq!(n.drain().map(|(index, h)| (index, h.data.len())).collect::<Vec<_>>(), [(0, 8 << 20), (2, 8 << 20)]);
        assert!(n.is_empty() && n.begin(3, range(0), 512));
    }
}
