//! ORDER and FILL decide together which request goes next ([`Order::SptfJoint`]).
//!
//! ORDER says what each waiting request costs the foreground, FILL what the gap before it brings. A
//! request a little dearer than the cheapest may leave a gap that brings much more: the time for
//! its arm to move is shorter, and the head waits for the platter instead, which is what FILL uses.
//! So the request goes next for which this is least:
//!
//! ```text
//! cost + weight * (seek - turn * SHARE * worth / mean worth)
//! ```
//!
//! The worth is that of the plan which a quick search of FILL's finds. Its mean falls while a scan
//! comes to its end, and what is left is then worth as much as a gap full of blocks was at the
//! start. The seek counts because it is the part of the positioning time that FILL can never use; a
//! long one also takes the head away from the other requests.
//!
//! # What it may cost
//!
//! The foreground is to be served as by SPTF without FILL. Look-ahead makes it faster than that,
//! and this is what may be spent: `weight` rises while the requests that were chosen take less
//! time, with those behind them, than those that SPTF would have chosen, and falls while they take
//! more. What is not counted is that SPTF's own choices leave the head further from the other
//! requests, so the foreground gains a little. Measured against SPTF without FILL with oltp and 3,
//! 8 and 16 random reads outstanding (atlas10k, hitachi-7k1000c, nearline-20tb, write cache off):
//! -0.1 to +1.8% of the requests, 0.88 to 1.01 times the p99, and 1.1 to 1.5 times what a scan
//! reads with `sptf-ahead`.
//!
//! That holds with up to [`MOST_FOR_THREE`] requests waiting. With more ORDER decides alone, as
//! [`Order::SptfAhead`] does: with 31, preferring short seeks left the head further from the others
//! than the weight can see, and 2 to 3% of the requests were lost.
//!
//! [`MOST_FOR_THREE`]: crate::order::ahead::MOST_FOR_THREE
//! [`Order::SptfAhead`]: super::Order::SptfAhead
//! [`Order::SptfJoint`]: super::Order::SptfJoint

use headtime_disk::model::Model;
use headtime_disk::time::Dur;

use super::Core;
use crate::order::ahead::Ranked;

/// Requests whose gaps are looked at, the cheapest first.
const CANDIDATES: usize = 10;
/// Hundredths of a turn that a gap of mean worth counts as. From 13 to 28 a scan of the Atlas 10K
/// beside oltp takes the same time, to 0.3%.
const SHARE: u64 = 25;
/// One choice changes a mean by one part in this.
const CHOICES: i64 = 256;
/// The weight is in parts of this.
const ONE: i64 = 1 << 12;

/// The state of it.
#[derive(Clone, Debug)]
pub(super) struct Joint {
    /// What ORDER found of the requests that may go next.
    pub ranked: Vec<Ranked>,
    turn: Dur,
    /// The mean worth of the gaps before the requests that were chosen, nanoseconds.
    worth: i64,
    /// By how much less they cost than what SPTF would have chosen, the mean in nanoseconds.
    spared: i64,
    weight: i64,
}

impl Joint {
    pub(super) fn new(model: &Model) -> Joint {
        let turn = model.mechanics.rotation.period();
        Joint { ranked: Vec::new(), turn, worth: turn.0 as i64 / 4, spared: 0, weight: 0 }
    }

    /// What a request costs the foreground, less what its gap is worth.
    fn cost(&self, of: &Ranked, worth: u64) -> i64 {
        let bonus = self.turn.0 * SHARE / 100;
        let bonus = u128::from(bonus) * u128::from(worth) / self.worth.max(1) as u128;
        let bonus = i64::try_from(bonus).unwrap_or(i64::MAX).min(self.turn.0 as i64);
        of.cost + (of.seek.0 as i64 - bonus) * self.weight / ONE
    }

    /// Learns from a choice; `sptf`: what SPTF would have chosen.
    fn learn(&mut self, chosen: &Ranked, sptf: &Ranked, worth: u64) {
        let part = |mean: i64, new: i64| mean + (new - mean) / CHOICES;
        self.worth = part(self.worth, worth as i64).max(self.turn.0 as i64 / 1024);
        self.spared = part(self.spared, sptf.time - chosen.time);
        self.weight = (self.weight + self.spared.signum()).clamp(0, ONE);
    }
}

impl Core {
    /// The request that goes next, ORDER having chosen `slot`. Where the head does not move for
    /// that, it goes.
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

    /// `None` where FILL has nothing to say.
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
        // Nothing is gained by what would be spent.
        let (_, worth, chosen) = best.filter(|_| brings)?;
        self.joint.learn(chosen, &sptf, worth);
        Some(chosen.slot)
    }

    /// What the gap before a request is worth, 0 if it has none; `None` where FILL does not say.
    fn worth_before(&mut self, slot: u32) -> Option<u64> {
        let Some(gap) = self.gap_to_fill(slot) else { return Some(0) };
        let last_read = self.last_read(&gap);
        let front_only = self.fills_front_only();
        self.fill.as_mut()?.worth(&self.model, &gap, last_read, front_only, self.now)
    }
}
