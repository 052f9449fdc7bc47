//! Two legs put together, where the second can follow the first as it stands.
//!
//! Legs are found one by one, each as if it were the first. Which two of them go together depends
//! on when one ends and the other begins only, so pairs are tried by their value, the best first,
//! and no track is looked at again.

use std::cmp::Reverse;

use headtime_disk::time::Time;

use super::visit::Asked;
use super::{KINDS, Planner};
use crate::fill::gap::Plan;

/// Legs that are remembered for putting them together.
pub(super) const OFFERED: usize = 1 << 7;
/// Pairs of them that are followed, best first, each time that a search stops for a while.
const PAIRS: u32 = 128;

/// A leg that was offered, in an order by value: the value, and below it how far from the end of
/// the list it stands, so that of two with one value the one offered first counts as the better.
/// One number, for sorting three is a tenth of a search.
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
    /// Puts together what was offered, two and two, where the second leg can follow as it stands.
    pub(super) fn pair(&mut self, asked: &Asked) {
        let offered = std::mem::take(&mut self.offered);
        let mut lists = std::mem::take(&mut self.pairs);
        let most = offered.iter().map(|v| v.value).max().unwrap_or(0);
        // Where much is wanted, all end as late as they may, and nothing can follow.
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
                // What they leave beside them may not have been looked at yet.
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
