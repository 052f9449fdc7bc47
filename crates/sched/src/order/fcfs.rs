//! First come, first served.

use super::View;

/// Returns the eligible request that arrived first.
#[inline]
pub(crate) fn next(view: &mut View) -> Option<u32> {
    view.looked_at += 1;
    view.oldest_of(|queue| queue.oldest)
}
