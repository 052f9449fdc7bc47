//! Which units are accessed often, and after which others.

use std::collections::{BTreeMap, VecDeque};

/// Units that are remembered at most.
pub const MAX_UNITS: usize = 1 << 16;
/// Units that were accessed last: a further access to one of them is counted with the last one,
/// since the head has just been there. An application that reads a file has one at a time, and few
/// have more than this number of requests under way.
const RECENT: usize = 8;
/// Accesses after which all counts are halved: two hours of a busy disk.
const HALVED_AFTER: u64 = 1 << 20;

/// A unit follows another one if it leads by this part of the other's accesses: without any order
/// one of them leads, too, by a few.
const LEAST_LEAD: u32 = 4;

/// What is known of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Unit {
    count: u32,
    /// The unit that was accessed next most often, by majority vote (Boyer and Moore): the
    /// candidate, and by how many votes it leads.
    next: u64,
    lead: u32,
}

/// How often a unit was accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotUnit {
    /// The unit.
    pub unit: u64,
    /// Accesses, where those before each halving count half.
    pub count: u32,
    /// The unit that usually follows.
    pub next: Option<u64>,
}

/// Counts the accesses to units. An access is what may move the head: entering a unit, at any
/// sector. A request that continues within a unit which was accessed just before is not one.
///
/// Memory is bounded: when too many units are known, those that were accessed once are forgotten,
/// as all units are that only a scan of the disk enters. If these are too few, and once in many
/// accesses, all counts are halved; so they follow a load that changes.
#[derive(Clone, Debug, Default)]
pub struct Heat {
    units: BTreeMap<u64, Unit>,
    recent: VecDeque<u64>,
    accesses: u64,
    /// Accesses since all counts were halved.
    since_halved: u64,
}

impl Heat {
    /// Creates it without any access.
    pub fn new() -> Heat {
        Heat::default()
    }

    /// Counts a request to these units.
    pub fn accessed(&mut self, units: std::ops::RangeInclusive<u64>) {
        for unit in units {
            self.entered(unit);
        }
    }

    fn entered(&mut self, unit: u64) {
        if let Some(at) = self.recent.iter().position(|&recent| recent == unit) {
            // It is the last one again.
            self.recent.remove(at);
            self.recent.push_back(unit);
            return;
        }
        if let Some(last) = self.recent.back().and_then(|last| self.units.get_mut(last)) {
            match last.lead {
                0 => (last.next, last.lead) = (unit, 1),
                _ if last.next == unit => last.lead += 1,
                _ => last.lead -= 1,
            }
        }
        self.recent.push_back(unit);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        (self.accesses, self.since_halved) = (self.accesses + 1, self.since_halved + 1);
        let known = self.units.entry(unit).or_default();
        known.count = known.count.saturating_add(1);
        if self.since_halved >= HALVED_AFTER {
            self.halve();
        }
        if self.units.len() > MAX_UNITS {
            self.units.retain(|_, known| known.count > 1);
            while self.units.len() > MAX_UNITS / 2 {
                self.halve();
            }
        }
    }

    fn halve(&mut self) {
        (self.accesses, self.since_halved) = (self.accesses / 2, 0);
        self.units.retain(|_, known| {
            known.count /= 2;
            known.lead /= 2;
            known.count > 0
        });
    }

    /// Returns the number of accesses, where those before each halving count half.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Returns all units of which accesses are known, ascending.
    pub fn units(&self) -> impl Iterator<Item = HotUnit> {
        let next = |known: &Unit| (known.lead > known.count / LEAST_LEAD).then_some(known.next);
        self.units.iter().map(move |(&unit, known)| HotUnit { unit, count: known.count, next: next(known) })
    }
}

/// Returns up to `most` of these units that were accessed most often, the hottest first.
pub fn hottest(mut units: Vec<HotUnit>, most: usize) -> Vec<HotUnit> {
    units.sort_unstable_by_key(|hot| (std::cmp::Reverse(hot.count), hot.unit));
    units.truncate(most);
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_entries_and_what_follows() {
        let mut heat = Heat::new();
        for round in 0..10 {
            // A file of two units, in small requests, and one elsewhere that differs each time.
            for _ in 0..16 {
                heat.accessed(70..=70);
            }
            heat.accessed(70..=71);
            for far in 0..9 {
                heat.accessed(1_000 + round * 9 + far..=1_000 + round * 9 + far);
            }
        }
        let hot = hottest(heat.units().collect(), 3);
        assert_eq!(hot[0], HotUnit { unit: 70, count: 10, next: Some(71) });
        assert_eq!((hot[1].unit, hot[1].count, hot[2].count), (71, 10, 1));
        assert_eq!(heat.accesses(), 110);
    }

    #[test]
    fn a_scan_leaves_what_is_hot() {
        let mut heat = Heat::new();
        for round in 0..100 {
            for hot in 0..20 {
                heat.accessed(hot * 1_000..=hot * 1_000);
                let cold = (1 << 40) + round * 20 + hot;
                heat.accessed(cold..=cold);
            }
        }
        (0..1_000_000).for_each(|unit| heat.accessed(unit + 100_000..=unit + 100_000));
        assert!(heat.units.len() <= MAX_UNITS);
        let hot: Vec<(u64, u32)> = hottest(heat.units().collect(), 20).iter().map(|h| (h.unit, h.count)).collect();
        assert_eq!(hot, (0..20).map(|n| (n * 1_000, 100)).collect::<Vec<_>>());
    }

    #[test]
    fn memory_is_bounded_where_many_units_are_accessed_often() {
        let mut heat = Heat::new();
        for _ in 0..4 {
            (0..MAX_UNITS as u64 * 2).for_each(|unit| heat.accessed(unit..=unit));
            assert!(heat.units.len() <= MAX_UNITS);
        }
        let counted: u64 = heat.units().map(|h| u64::from(h.count)).sum();
        assert!(counted <= heat.accesses());
    }
}
