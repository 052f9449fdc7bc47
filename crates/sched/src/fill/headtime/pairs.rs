//! Pairs of legs, where the second can follow the first unchanged.
//!
//! Legs are found one by one, each as if it were the first. Whether two of them fit together
//! depends only on when one ends and the other begins, so pairs are tried by value, the best first,
//! and no track is examined again.

use std::cmp::Reverse;

use headtime_disk::Time;

use super::Planner;
use super::visit::PlanContext;
use crate::fill::gap::Plan;
use crate::fill::stay::KINDS;

/// Legs kept for pairing.
pub(super) const OFFERED: usize = 1 << 7;
/// Pairs tried, best first, each time that a search pauses. Not tuned: it bounds the cost of
/// pairing, which the budget of a search does not include.
const PAIRS: u32 = 128;

/// Sort key of a leg: its value, and in the lower bits its distance from the end of the list, so
/// that of equals the one found first ranks higher. A single number, since sorting three takes a
/// tenth of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u64);

impl Rank {
    const BITS: u32 = OFFERED.ilog2();

    fn new(value: u64, index: usize) -> Rank {
        assert!(
            value >> (u64::BITS - Rank::BITS) == 0 && index < OFFERED,
            "leg {index} of a search is worth {value} ns"
        );
        Rank(value << Rank::BITS | (OFFERED - 1 - index) as u64)
    }

    fn value(self) -> u64 {
        self.0 >> Rank::BITS
    }

    fn index(self) -> usize {
        OFFERED - 1 - self.0 as usize % OFFERED
    }
}

impl Planner {
    /// Combines the legs found into pairs, where the second leg can follow unchanged.
    pub(super) fn pair(&mut self, asked: &PlanContext) {
        let offered = std::mem::take(&mut self.offered);
        let mut lists = std::mem::take(&mut self.pairs);
        let most = offered.iter().map(|v| v.value).max().unwrap_or(0);
        // Where much is wanted, all legs end as late as possible, and none can follow.
        let first_end = offered.iter().map(|v| v.end.head.at).min().unwrap_or(Time::ZERO);
        let last_begin = offered.iter().map(|v| v.begins).max().unwrap_or(Time::ZERO);
        for (list, second) in lists.iter_mut().zip([false, true]) {
            list.clear();
            for (i, v) in offered.iter().enumerate() {
                let fits = if second { v.begins > first_end } else { v.end.head.at < last_begin };
                if fits && self.could_gain(v.value + most) {
                    list.push(Rank::new(v.value, i));
                }
            }
            list.sort_unstable_by_key(|&ranked| Reverse(ranked));
        }
        let mut tries = PAIRS;
        for &a in &lists[0] {
            let first = &offered[a.index()];
            let heads = KINDS.map(|kind| first.end.head_for(asked, kind));
            for &b in &lists[1] {
                if tries == 0 || !self.could_gain(a.value() + b.value()) {
                    break;
                }
                let second = &offered[b.index()];
                if second.begins <= first.end.head.at {
                    continue;
                }
                tries -= 1;
                if !asked.follows(first, &heads[usize::from(!second.leg.kind.is_read())], second) {
                    continue;
                }
                // The fragments that they leave may not have been examined yet.
                let (mut a, mut b) = (*first, *second);
                asked.appraise(&mut a, &mut self.near);
                asked.appraise(&mut b, &mut self.near);
                if let Some(plan) = Plan::of(a.leg, a.sectors).and(b.leg, b.sectors) {
                    self.keep(plan, a.value + b.value);
                    self.finish(asked, plan, a.value + b.value, &b.end);
                }
            }
        }
        (self.offered, self.pairs) = (offered, lists);
    }
}
