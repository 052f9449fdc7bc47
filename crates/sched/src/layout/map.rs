//! Where each unit of a part of the disk is.

use std::collections::BTreeMap;

use crate::TaskRange;

/// Where a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Where it is without reorganisation.
    Home,
    /// In this slot of the reserve.
    Slot(u32),
}

/// Why a map is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// Units have no sectors, or the part of the disk has none.
    #[error("expected units of 1 sector or more in a part of the disk, found none")]
    Empty,
    /// The reserve is smaller than a unit.
    #[error("expected a reserve of one unit or more, {unit} sectors, found {found}")]
    Reserve {
        /// Sectors of a unit.
        unit: u64,
        /// Sectors of the reserve.
        found: u64,
    },
    /// The reserve has more slots than their numbers allow.
    #[error("expected a reserve of at most {MAX_SLOTS} units, found {0}")]
    Slots(u64),
    /// The reserve is not outside of the part whose units it takes.
    #[error("expected a reserve outside of what is reorganised, found one that overlaps it")]
    Overlap,
    /// The gap within the part does not begin between two of its units, or the reserve is not in
    /// it.
    #[error("expected a gap between two units of {unit} sectors that contains the reserve, found one at {found}")]
    Gap {
        /// Sectors of a unit.
        unit: u64,
        /// First sector of the gap.
        found: u64,
    },
    /// There is no such unit or slot.
    #[error("unit {unit}: expected one of {units} units and {slots} slots, found slot {slot:?}")]
    Unknown {
        /// The unit.
        unit: u64,
        /// Units that there are.
        units: u64,
        /// The slot, if one was named.
        slot: Option<u32>,
        /// Slots that there are.
        slots: u32,
    },
    /// Another unit is in the slot.
    #[error("unit {unit}: expected an empty slot, found unit {other} in slot {slot}")]
    Taken {
        /// The unit.
        unit: u64,
        /// The slot.
        slot: u32,
        /// The unit that is there.
        other: u64,
    },
}

/// Slots of a reserve at most: as many as units of which the heat is known.
pub(super) const MAX_SLOTS: u64 = super::heat::MAX_UNITS as u64;

/// Where each unit of a part of the disk is: at home, or in a slot of the reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockMap {
    part: TaskRange,
    /// Sectors within the part that are none of its own: units from its first sector on have their
    /// homes behind it. At the end of the part, and empty: none.
    gap: TaskRange,
    reserve: TaskRange,
    unit: u64,
    /// The slots of the units that are not at home.
    moved: BTreeMap<u64, u32>,
    /// The unit in each slot.
    slots: Vec<Option<u64>>,
}

impl BlockMap {
    /// Creates the map of a part of the disk with units of `unit` sectors, all of them at home. The
    /// last unit may be shorter. What is left of the reserve behind the last whole slot is unused.
    pub fn new(part: TaskRange, reserve: TaskRange, unit: u64) -> Result<BlockMap, MapError> {
        if part.overlaps(&reserve) {
            return Err(MapError::Overlap);
        }
        BlockMap::with_gap(part, TaskRange { lbn: part.end(), count: 0 }, reserve, unit)
    }

    /// Creates the map of a part of the disk that has the reserve, and what else is in `gap`, in
    /// its middle. `part` has the sectors as clients count them: on the disk, those from the gap
    /// on are behind it.
    ///
    /// # Errors
    /// [`MapError::Gap`], and those of [`BlockMap::new`].
    pub fn around(part: TaskRange, gap: TaskRange, reserve: TaskRange, unit: u64) -> Result<BlockMap, MapError> {
        let is_between = part.lbn < gap.lbn && gap.lbn < part.end() && (gap.lbn - part.lbn).is_multiple_of(unit.max(1));
        if !is_between || reserve.lbn < gap.lbn || reserve.end() > gap.end() {
            return Err(MapError::Gap { unit, found: gap.lbn });
        }
        BlockMap::with_gap(part, gap, reserve, unit)
    }

    fn with_gap(part: TaskRange, gap: TaskRange, reserve: TaskRange, unit: u64) -> Result<BlockMap, MapError> {
        if unit == 0 || part.count == 0 {
            return Err(MapError::Empty);
        }
        let slots = reserve.count / unit;
        match slots {
            0 => return Err(MapError::Reserve { unit, found: reserve.count }),
            1..=MAX_SLOTS => {}
            _ => return Err(MapError::Slots(slots)),
        }
        Ok(BlockMap { part, gap, reserve, unit, moved: BTreeMap::new(), slots: vec![None; slots as usize] })
    }

    /// Returns the part of the disk whose units these are, as clients count its sectors.
    pub fn part(&self) -> TaskRange {
        self.part
    }

    /// Returns the gap in the part; `None` if it has none.
    pub fn gap(&self) -> Option<TaskRange> {
        (self.gap.count > 0).then_some(self.gap)
    }

    /// Returns the reserve.
    pub fn reserve(&self) -> TaskRange {
        self.reserve
    }

    /// Returns the sectors of a unit.
    pub fn unit_sectors(&self) -> u64 {
        self.unit
    }

    /// Returns the number of units.
    pub fn units(&self) -> u64 {
        self.part.count.div_ceil(self.unit)
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the units that are not at home, ascending, with their slots.
    pub fn moved(&self) -> impl ExactSizeIterator<Item = (u64, u32)> {
        self.moved.iter().map(|(&unit, &slot)| (unit, slot))
    }

    /// Returns the unit in a slot.
    pub fn unit_in(&self, slot: u32) -> Option<u64> {
        self.slots.get(slot as usize).copied().flatten()
    }

    /// Returns where a unit is.
    pub fn place(&self, unit: u64) -> Place {
        self.moved.get(&unit).map_or(Place::Home, |&slot| Place::Slot(slot))
    }

    /// Returns the unit that contains a sector of the part, as clients count sectors. Panics if the
    /// sector is before the part.
    pub fn unit_of(&self, lbn: u64) -> u64 {
        assert!(self.part.lbn <= lbn, "sector {lbn} is not within {:?}", self.part);
        (lbn - self.part.lbn) / self.unit
    }

    /// Returns the sectors of a place for this unit. Panics if there is no such unit or slot
    /// ([`BlockMap::check`]).
    pub fn range(&self, unit: u64, place: Place) -> TaskRange {
        assert!(unit < self.units(), "there are {} units, not {unit}", self.units());
        let from = unit * self.unit;
        let count = self.unit.min(self.part.count - from);
        match place {
            Place::Home => TaskRange { lbn: self.home(self.part.lbn + from), count },
            Place::Slot(slot) => {
                assert!(slot < self.slots(), "there are {} slots, not {slot}", self.slots());
                TaskRange { lbn: self.reserve.lbn + u64::from(slot) * self.unit, count }
            }
        }
    }

    /// Returns where a sector, as clients count them, is when its unit is at home.
    fn home(&self, lbn: u64) -> u64 {
        if lbn < self.gap.lbn { lbn } else { lbn + self.gap.count }
    }

    /// Checks that a unit can be moved to a place: both are there, and no other unit is.
    ///
    /// # Errors
    /// [`MapError::Unknown`], [`MapError::Taken`].
    pub fn check(&self, unit: u64, to: Place) -> Result<(), MapError> {
        let slot = match to {
            Place::Home => None,
            Place::Slot(slot) => Some(slot),
        };
        if unit >= self.units() || slot.is_some_and(|slot| slot >= self.slots()) {
            return Err(MapError::Unknown { unit, units: self.units(), slot, slots: self.slots() });
        }
        match slot.and_then(|slot| Some((slot, self.unit_in(slot)?))) {
            Some((slot, other)) if other != unit => Err(MapError::Taken { unit, slot, other }),
            _ => Ok(()),
        }
    }

    /// Notes that a unit is in another place from now on.
    ///
    /// # Errors
    /// Those of [`BlockMap::check`]; then nothing has changed.
    pub fn set(&mut self, unit: u64, to: Place) -> Result<(), MapError> {
        self.check(unit, to)?;
        if let Some(slot) = self.moved.remove(&unit) {
            self.slots[slot as usize] = None;
        }
        if let Place::Slot(slot) = to {
            self.moved.insert(unit, slot);
            self.slots[slot as usize] = Some(unit);
        }
        Ok(())
    }

    /// Returns where the sectors of a request are, in its order, as ranges of consecutive sectors.
    /// Panics if the request is not within the part, or has no sectors.
    pub fn runs(&self, request: TaskRange) -> Vec<TaskRange> {
        assert!(
            request.count > 0 && self.part.lbn <= request.lbn && request.end() <= self.part.end(),
            "{request:?} is not within {:?}",
            self.part
        );
        let (first, last) = (self.unit_of(request.lbn), self.unit_of(request.end() - 1));
        let spans_gap = request.lbn < self.gap.lbn && self.gap.lbn < request.end();
        if !spans_gap && self.moved.range(first..=last).next().is_none() {
            return vec![TaskRange { lbn: self.home(request.lbn), count: request.count }];
        }
        let mut runs: Vec<TaskRange> = Vec::new();
        for unit in first..=last {
            let begin = self.part.lbn + unit * self.unit;
            let (from, to) = (request.lbn.max(begin), request.end().min(begin + self.unit));
            let lbn = self.range(unit, self.place(unit)).lbn + (from - begin);
            match runs.last_mut().filter(|run| run.end() == lbn) {
                Some(run) => run.count += to - from,
                None => runs.push(TaskRange { lbn, count: to - from }),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(lbn: u64, count: u64) -> TaskRange {
        TaskRange { lbn, count }
    }

    /// 13 units of 8 sectors, the last one of 4, and 3 slots.
    fn map() -> BlockMap {
        BlockMap::new(range(1_000, 100), range(5_000, 30), 8).unwrap()
    }

    #[test]
    fn a_request_is_where_its_units_are() {
        let mut map = map();
        assert_eq!((map.units(), map.slots()), (13, 3));
        let all = range(1_000, 100);
        assert_eq!(map.runs(all), [all]);
        // Two that follow each other, in order, and the short one.
        map.set(4, Place::Slot(0)).unwrap();
        map.set(5, Place::Slot(1)).unwrap();
        map.set(12, Place::Slot(2)).unwrap();
        assert_eq!(map.runs(all), [range(1_000, 32), range(5_000, 16), range(1_048, 48), range(5_016, 4)]);
        assert_eq!(map.runs(range(1_034, 4)), [range(5_002, 4)]);
        assert_eq!(map.runs(range(1_039, 10)), [range(5_007, 9), range(1_048, 1)]);
        assert_eq!(map.runs(range(1_099, 1)), [range(5_019, 1)]);
        assert_eq!(map.moved().collect::<Vec<_>>(), [(4, 0), (5, 1), (12, 2)]);
    }

    #[test]
    fn units_behind_a_reserve_in_the_middle_have_their_homes_there() {
        // 10 units of 8 sectors from sector 1,000 with a gap of 40 sectors between the third and
        // the fourth; 2 slots from its 5th sector on.
        let around = |gap| BlockMap::around(range(1_000, 80), gap, range(1_028, 16), 8);
        let mut map = around(range(1_024, 40)).unwrap();
        assert_eq!(map.gap(), Some(range(1_024, 40)));
        assert_eq!(map.runs(range(1_000, 80)), [range(1_000, 24), range(1_064, 56)]);
        assert_eq!(
            (map.runs(range(1_016, 8)), map.runs(range(1_024, 8))),
            (vec![range(1_016, 8)], vec![range(1_064, 8)])
        );
        map.set(2, Place::Slot(0)).unwrap();
        map.set(3, Place::Slot(1)).unwrap();
        assert_eq!(map.runs(range(1_010, 30)), [range(1_010, 6), range(1_028, 16), range(1_072, 8)]);
        assert_eq!(map.range(9, Place::Home), range(1_112, 8));
        for wrong in [range(1_000, 40), range(1_020, 40), range(1_024, 10), range(1_080, 40)] {
            assert!(matches!(around(wrong), Err(MapError::Gap { .. })), "{wrong:?}");
        }
    }

    #[test]
    fn every_sector_is_in_one_place_whatever_was_moved() {
        let mut map = map();
        // A fixed sequence of moves that visits every combination of a unit and a slot.
        for step in 0..200_u64 {
            let (unit, slot) = (step * 5 % 13, (step * 7 % 3) as u32);
            if map.place(unit) == Place::Slot(slot) {
                map.set(unit, Place::Home).unwrap();
            } else if let Some(other) = map.unit_in(slot) {
                assert_eq!(map.set(unit, Place::Slot(slot)), Err(MapError::Taken { unit, slot, other }));
                map.set(other, Place::Home).unwrap();
            } else {
                map.set(unit, Place::Slot(slot)).unwrap();
            }
            let mut sectors: Vec<u64> =
                map.runs(map.part()).iter().flat_map(|run| run.lbn..run.lbn + run.count).collect();
            assert_eq!(sectors.len(), 100);
            for (offset, &sector) in sectors.iter().enumerate() {
                assert_eq!(map.runs(range(1_000 + offset as u64, 1)), [range(sector, 1)]);
            }
            sectors.sort_unstable();
            sectors.dedup();
            assert_eq!(sectors.len(), 100, "no two share a place");
        }
    }

    #[test]
    fn a_unit_that_went_home_is_where_it_was() {
        let mut map = map();
        map.set(3, Place::Slot(2)).unwrap();
        // From one slot to another.
        map.set(3, Place::Slot(1)).unwrap();
        assert_eq!((map.unit_in(2), map.unit_in(1)), (None, Some(3)));
        map.set(3, Place::Home).unwrap();
        assert_eq!(map, super::tests::map());
    }

    #[test]
    fn impossible_maps_and_moves_are_refused() {
        let of = |part, reserve, unit| BlockMap::new(part, reserve, unit).map(|_| ()).unwrap_err();
        assert_eq!(of(range(0, 100), range(200, 50), 0), MapError::Empty);
        assert_eq!(of(range(0, 0), range(200, 50), 8), MapError::Empty);
        assert_eq!(of(range(0, 100), range(200, 7), 8), MapError::Reserve { unit: 8, found: 7 });
        assert_eq!(of(range(0, 100), range(99, 8), 8), MapError::Overlap);
        let most = MAX_SLOTS + 1;
        assert_eq!(of(range(0, 100), range(200, most * 8), 8), MapError::Slots(most));
        let mut map = map();
        for (unit, to) in [(13, Place::Home), (0, Place::Slot(3))] {
            assert!(matches!(map.set(unit, to), Err(MapError::Unknown { .. })));
        }
    }
}
