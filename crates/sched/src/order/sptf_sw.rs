//! SPTF-SWn%: short positioning with rotational latency in place of seek time (Lumb 2002 section
//! 4.2). What it loses in positioning time remains as rotational latency, which FILL can use.

use headtime_disk::Dur;

use super::{View, sptf};

/// Returns, of the eligible requests whose positioning time is within `percent` of the shortest,
/// the one with the smallest seek time; ties go to the shorter positioning time, then to the one
/// that arrived first.
pub(crate) fn next(view: &mut View, percent: u32) -> Option<u32> {
    let (_, shortest) = sptf::shortest(view)?;
    let limit = within(shortest, percent);
    let mut best = view.continuation.map(|slot| (Dur::ZERO, Dur::ZERO, view.pool.get(slot).seq, slot));
    for queue in view.choices() {
        for (distance, entry) in view.outward(&queue) {
            let floor = view.floor(distance);
            if floor > limit || best.is_some_and(|(seek, ..)| floor > seek) {
                break;
            }
            view.looked_at += 1;
            let cost = view.cost(entry);
            if cost.positioning > limit {
                continue;
            }
            let candidate = (cost.seek, cost.positioning, view.seq(entry), entry.slot);
            if best.is_none_or(|b| candidate < b) && !view.continues_another(entry.slot) {
                best = Some(candidate);
            }
        }
    }
    best.map(|(.., slot)| slot)
}

/// Returns the longest positioning time within `percent` of `shortest`, rounded down.
pub(crate) fn within(shortest: Dur, percent: u32) -> Dur {
    let ns = shortest.0 as u128 * (100 + percent as u128) / 100;
    Dur(u64::try_from(ns).unwrap_or(u64::MAX))
}
