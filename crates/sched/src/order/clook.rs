//! Circular LOOK: upward through the LBNs, then from the lowest again.

use super::View;

/// The eligible request with the lowest LBN at or beyond the end of the last one sent; when there is none, the one
/// with the lowest LBN of all. Of requests with the same LBN the one that arrived first.
#[inline]
pub fn next(view: &mut View) -> Option<u32> {
    view.looked_at += 1;
    let entries = view.choice.index;
    let at = entries.partition_point(|e| e.key < view.lbn);
    let entry = entries.get(at).or(entries.first())?;
    Some(entry.slot)
}
