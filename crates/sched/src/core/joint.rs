//! Joint decision of ORDER and FILL on the next request ([`Order::SptfJoint`]).
//!
//! ORDER gives the cost of each waiting request to the foreground, FILL the worth of the gap before
//! it. A slightly more expensive request may leave a gap of much higher worth: its seek is shorter
//! and its rotational latency longer, and FILL uses rotational latency. The next request minimises
//!
//! ```text
//! cost + weight * (seek - min(turn * SHARE% * worth / mean worth, turn))
//! ```
//!
//! with a `weight` from 0 to 1. The worth is that of the plan found by a quick search of FILL. Its
//! mean falls towards the end of a scan, so that the remaining blocks are worth as much as a full
//! gap at the start. The seek counts because FILL can never use it, and a long one moves the head
//! away from the other requests.
//!
//! # Cost to the foreground
//!
//! The foreground is to be served as by SPTF without FILL. Look-ahead makes it faster, and that
//! gain may be spent: `weight` rises while the chosen requests, including the following ones, take
//! less time than SPTF's choices would, and falls while they take more. SPTF's own choices leave
//! the head further from the other requests, which is not counted, so the foreground gains a
//! little. Measured against SPTF without FILL with oltp and 3, 8 and 16 random reads outstanding
//! (atlas10k, hitachi-7k1000c, nearline-20tb, write cache off): -0.1 to +1.8% of the requests, 0.88
//! to 1.01 times the p99, and 1.1 to 1.5 times what a scan reads with `sptf-ahead`.
//!
//! That holds with up to [`MAX_EXACT_FOR_THREE`] requests waiting. With more ORDER decides alone,
//! as [`Order::SptfAhead`] does: with 31, preferring short seeks left the head further from the
//! other requests than the weight accounts for, and 2 to 3% of the requests were lost.
//!
//! [`MAX_EXACT_FOR_THREE`]: crate::order::ahead::MAX_EXACT_FOR_THREE
//! [`Order::SptfAhead`]: super::Order::SptfAhead
//! [`Order::SptfJoint`]: super::Order::SptfJoint

use headtime_disk::{Dur, Model};

use super::Core;
use crate::order::ahead::Ranked;

/// Number of requests whose gaps are evaluated, the cheapest first.
const CANDIDATES: usize = 10;
/// Value of a gap of mean worth, in hundredths of a revolution. From 13 to 28 a scan of the Atlas
/// 10K beside oltp takes the same time, to 0.3%.
const SHARE: u64 = 25;
/// Filter constant: one choice changes a mean by one part in this.
const CHOICES: i64 = 256;
/// Unit of the weight.
const ONE: i64 = 1 << 12;

/// State of the joint decision.
#[derive(Clone, Debug)]
pub(super) struct Joint {
    /// ORDER's ranking of the eligible requests.
    pub ranked: Vec<Ranked>,
    turn: Dur,
    /// Mean worth of the gaps before chosen requests, in nanoseconds.
    worth: i64,
    /// Mean saving relative to SPTF's choices, in nanoseconds.
    spared: i64,
    weight: i64,
}

impl Joint {
    pub(super) fn new(model: &Model) -> Joint {
        let turn = model.mechanics.rotation.period();
        Joint { ranked: Vec::new(), turn, worth: turn.0 as i64 / 4, spared: 0, weight: 0 }
    }

    /// Returns a request's cost to the foreground, less the worth of its gap.
    fn cost(&self, of: &Ranked, worth: u64) -> i64 {
        let bonus = self.turn.0 * SHARE / 100;
        let bonus = u128::from(bonus) * u128::from(worth) / self.worth.max(1) as u128;
        let bonus = i64::try_from(bonus).unwrap_or(i64::MAX).min(self.turn.0 as i64);
        of.cost + (of.seek.0 as i64 - bonus) * self.weight / ONE
    }

    /// Updates the means after a choice; `sptf`: SPTF's choice.
    fn learn(&mut self, chosen: &Ranked, sptf: &Ranked, worth: u64) {
        let part = |mean: i64, new: i64| mean + (new - mean) / CHOICES;
        self.worth = part(self.worth, worth as i64).max(self.turn.0 as i64 / 1024);
        self.spared = part(self.spared, sptf.time - chosen.time);
        self.weight = (self.weight + self.spared.signum()).clamp(0, ONE);
    }
}

impl Core {
    /// Returns the next request, given ORDER's choice `slot`. If the head does not move for `slot`,
    /// it is `slot`.
    pub(super) fn weigh(&mut self, slot: u32) -> u32 {
        let stays = self.hits.first.contains(&slot) || self.continuation() == Some(slot);
        if self.joint.ranked.len() < 2 || self.streams.is_some() || stays {
            return slot;
        }
        let mut ranked = std::mem::take(&mut self.joint.ranked);
        let weighed = self.weighed(&mut ranked);
        self.joint.ranked = ranked;
        weighed.unwrap_or(slot)
    }

    /// Returns the joint choice; `None` if FILL has no preference.
    fn weighed(&mut self, ranked: &mut [Ranked]) -> Option<u32> {
        let sptf = *ranked.iter().min_by_key(|r| (r.positioning, r.seq))?;
        ranked.sort_unstable_by_key(|r| (self.joint.cost(r, 0), r.seq));
        self.fill.as_mut()?.legs_before = 0;
        let mut best: Option<(i64, u64, &Ranked)> = None;
        let mut brings = false;
        for r in ranked.iter().take(CANDIDATES) {
            let worth = self.worth_before(r.slot)?;
            brings |= worth > 0;
            let cost = self.joint.cost(r, worth);
            if best.is_none_or(|(least, ..)| cost < least) {
                best = Some((cost, worth, r));
            }
        }
        // No gap has worth, so nothing would be gained.
        let (_, worth, chosen) = best.filter(|_| brings)?;
        self.joint.learn(chosen, &sptf, worth);
        Some(chosen.slot)
    }

    /// Returns the worth of the gap before a request, 0 if it has none; `None` if FILL gives none.
    fn worth_before(&mut self, slot: u32) -> Option<u64> {
        let Some(to_fill) = self.gap_to_fill(slot) else { return Some(0) };
        self.fill.as_mut()?.worth(&self.model, &to_fill, self.now)
    }
}
