//! Circular LOOK: upward through the LBNs, then from the lowest again.

use super::View;

/// Returns the eligible request with the lowest LBN at or beyond the end of the last one sent; if
/// there is none, the one with the lowest LBN of all. Ties go to the one that arrived first.
#[inline]
pub(crate) fn next(view: &mut View) -> Option<u32> {
    let mut best: Option<((bool, u64, u64), u32)> = None;
    for queue in view.choices() {
        view.looked_at += 1;
        let entries = queue.index;
        let at = entries.partition_point(|e| e.key < view.lbn);
        let Some(entry) = entries.get(at).or(entries.first()) else { continue };
        let behind = entry.key < view.lbn;
        let rank = (behind, entry.key, view.seq(entry));
        if best.is_none_or(|(b, _)| rank < b) {
            best = Some((rank, entry.slot));
        }
    }
    best.map(|(_, slot)| slot)
}
