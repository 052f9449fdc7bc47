//! Which units to move next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::heat::HotUnit;
use super::map::{BlockMap, Place};

/// A unit is hot if it was accessed this many times as often as the average one. With equal
/// accesses to all units the counts differ by chance: where the mean is 4,
/// one unit in 200,000 has 16 (Poisson).
const TIMES_AVERAGE: u64 = 4;
/// Accesses without which a unit is not moved: a move costs a read and a write of it.
const LEAST: u32 = 4;
/// A unit in a slot makes room for one that was accessed this many times as often.
const TIMES_EVICTED: u64 = 2;
/// Accesses for each slot before any unit makes room: the counts begin anew with the server, and
/// units that were hot for weeks have none at first.
const LEARNED: u64 = 8;

/// A move of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The unit.
    pub unit: u64,
    /// Where it is to go.
    pub to: Place,
}

/// Returns the moves that bring the hot units into the reserve, in the order in which they can be
/// made: first those home, of units that make room. Units that follow each other in accesses get
/// slots that follow each other. `accesses`: the number of accesses to all units.
pub fn moves(map: &BlockMap, hot: &[HotUnit], accesses: u64) -> Vec<Move> {
    let counts: BTreeMap<u64, HotUnit> = hot.iter().map(|h| (h.unit, *h)).collect();
    let is_hot = |h: &HotUnit| {
        h.unit < map.units()
            && h.count >= LEAST
            && u128::from(h.count) * u128::from(map.units()) >= u128::from(accesses) * u128::from(TIMES_AVERAGE)
    };
    let mut wanted: Vec<HotUnit> = hot.iter().copied().filter(is_hot).collect();
    wanted.sort_unstable_by_key(|h| (std::cmp::Reverse(h.count), h.unit));
    let arriving: Vec<HotUnit> =
        wanted.iter().copied().filter(|h| map.place(h.unit) == Place::Home).take(map.slots() as usize).collect();
    // The coldest of those in slots, first.
    let mut residents: Vec<(u32, u64)> =
        map.moved().map(|(unit, _)| (counts.get(&unit).map_or(0, |h| h.count), unit)).collect();
    residents.sort_unstable_by(|a, b| b.cmp(a));
    let mut free: BTreeSet<u32> = (0..map.slots()).filter(|&slot| map.unit_in(slot).is_none()).collect();
    let (mut all, mut selected) = (Vec::new(), Vec::new());
    for h in arriving {
        if free.len() == selected.len() {
            let has_learned = accesses >= u64::from(map.slots()) * LEARNED;
            let is_colder = |(count, _): &&(u32, u64)| u64::from(h.count) >= u64::from(*count) * TIMES_EVICTED;
            let colder = residents.last().filter(|resident| has_learned && is_colder(resident));
            let Some(&(_, unit)) = colder else { break };
            residents.pop();
            if let Place::Slot(slot) = map.place(unit) {
                free.insert(slot);
            }
            all.push(Move { unit, to: Place::Home });
        }
        selected.push(h);
    }
    // The slots nearest to the middle of the reserve: the head travels least to those.
    let mut free: Vec<u32> = free.into_iter().collect();
    free.sort_by_key(|&slot| (u64::from(slot) * 2 + 1).abs_diff(u64::from(map.slots())));
    free.truncate(selected.len());
    free.sort_unstable();
    all.extend(arranged(&selected).into_iter().zip(free).map(|(unit, slot)| Move { unit, to: Place::Slot(slot) }));
    all
}

/// Returns the units in the order of their places. Units that are neighbours at home stay
/// neighbours, since a request may be to both; after them come those that usually follow. The
/// hottest of these sequences is in the middle, the others at its sides in turn: the organ pipe
/// arrangement, of which the head travels least.
fn arranged(selected: &[HotUnit]) -> Vec<u64> {
    let mut left: BTreeMap<u64, Option<u64>> = selected.iter().map(|h| (h.unit, h.next)).collect();
    let mut order: VecDeque<u64> = VecDeque::with_capacity(selected.len());
    let (mut before, mut after) = (0, 0);
    for h in selected {
        let sequence = sequence(h.unit, &mut left);
        if before < after {
            before += sequence.len();
            sequence.into_iter().rev().for_each(|unit| order.push_front(unit));
        } else {
            // The first one is in the middle.
            after += if order.is_empty() { 0 } else { sequence.len() };
            order.extend(sequence);
        }
    }
    order.into()
}

/// Takes a unit, its neighbours and those that usually follow from what is left.
fn sequence(hottest: u64, left: &mut BTreeMap<u64, Option<u64>>) -> Vec<u64> {
    let mut units = Vec::new();
    let mut following = left.contains_key(&hottest).then_some(hottest);
    while let Some(unit) = following {
        let mut first = unit;
        while first > 0 && left.contains_key(&(first - 1)) {
            first -= 1;
        }
        let mut last_next = None;
        for unit in first.. {
            let Some(next) = left.remove(&unit) else { break };
            units.push(unit);
            last_next = next;
        }
        following = last_next.filter(|next| left.contains_key(next));
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskRange;

    fn map() -> BlockMap {
        BlockMap::new(TaskRange { lbn: 0, count: 8_000 }, TaskRange { lbn: 10_000, count: 32 }, 8).unwrap()
    }

    fn hot(unit: u64, count: u32, next: Option<u64>) -> HotUnit {
        HotUnit { unit, count, next }
    }

    fn into(moves: &[Move]) -> Vec<(u64, Option<u32>)> {
        let slot = |to| match to {
            Place::Home => None,
            Place::Slot(slot) => Some(slot),
        };
        moves.iter().map(|m| (m.unit, slot(m.to))).collect()
    }

    #[test]
    fn what_is_accessed_together_is_put_together_the_hottest_first() {
        let all = [
            hot(900, 50, Some(7)),
            hot(20, 40, None),
            hot(7, 30, Some(8)),
            hot(8, 20, Some(900)),
            hot(9, 10, None),
            hot(11, 3, None),
        ];
        assert_eq!(into(&moves(&map(), &all, 1_000)), [(900, Some(0)), (7, Some(1)), (8, Some(2)), (20, Some(3))]);
    }

    #[test]
    fn nothing_is_moved_where_all_units_are_alike() {
        let alike: Vec<HotUnit> = (0..1_000).map(|unit| hot(unit, 10, Some(unit + 1))).collect();
        assert_eq!(moves(&map(), &alike, 10_000), []);
        assert_eq!(moves(&map(), &[hot(5, 3, None)], 3), [], "three accesses are too few");
    }

    #[test]
    fn a_colder_unit_makes_room_and_one_that_is_as_hot_stays() {
        let mut map = map();
        for (unit, slot) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
            map.set(unit, Place::Slot(slot)).unwrap();
        }
        let all = [hot(1, 30, None), hot(2, 30, None), hot(3, 10, None), hot(50, 25, None), hot(60, 25, None)];
        // 4 was not accessed; 3 was accessed less than half as often; 1 and 2 as often.
        let planned = moves(&map, &all, 200);
        assert_eq!(into(&planned), [(4, None), (3, None), (50, Some(2)), (60, Some(3))]);
        for m in &planned {
            map.set(m.unit, m.to).unwrap();
        }
        assert_eq!(moves(&map, &all, 200), [], "the same again changes nothing");
        let full = planned.iter().filter(|m| m.to != Place::Home).count();
        assert_eq!((full, moves(&map, &[hot(70, 30, None)], 31).len()), (2, 0), "nothing is known of the others yet");
    }
}
