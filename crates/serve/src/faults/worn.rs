//! Random defects of a worn drive: single sectors, evenly distributed.

use std::collections::BTreeSet;

use headtime_disk::Fault as Planted;

/// Returns this number of unreadable and of slow sectors, in ascending order, all different. There
/// are no more of them than the drive has sectors.
pub(super) fn defects(sectors: u64, unreadable: u64, slow: u64, turns: u32, seed: u64) -> Vec<Planted> {
    let mut random = Random(seed);
    let mut places = BTreeSet::new();
    let mut draw = |count: u64| {
        let mut new = BTreeSet::new();
        while (new.len() as u64) < count && (places.len() as u64) < sectors {
            let lbn = random.below(sectors);
            if places.insert(lbn) {
                new.insert(lbn);
            }
        }
        new
    };
    let unreadable = draw(unreadable).into_iter().map(|lbn| Planted::Unreadable { lbn, count: 1 }).collect::<Vec<_>>();
    let slow = draw(slow).into_iter().map(|lbn| Planted::Slow { lbn, count: 1, turns });
    unreadable.into_iter().chain(slow).collect()
}

/// A generator of random numbers (SplitMix64), the same on every machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defects_are_different_sectors_and_the_same_for_the_same_seed() {
        let found = defects(1 << 30, 300, 200, 5, 7);
        assert_eq!(found, defects(1 << 30, 300, 200, 5, 7));
        assert_ne!(found, defects(1 << 30, 300, 200, 5, 8));
        let place = |p: &Planted| match *p {
            Planted::Unreadable { lbn, count: 1 } | Planted::Slow { lbn, count: 1, turns: 5 } => lbn,
            ref other => panic!("{other:?}"),
        };
        assert_eq!(found.iter().map(place).collect::<BTreeSet<_>>().len(), 500);
        // Both halves of the drive have some.
        let first = found.iter().filter(|p| place(p) < 1 << 29).count();
        assert!((200..300).contains(&first), "{first}");
        assert_eq!(defects(4, 3, 3, 1, 1).len(), 4, "no more than there are sectors");
    }
}
