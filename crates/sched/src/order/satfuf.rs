//! Shortest access time first with urgent forcing: SPTF with a starvation bound (Reuther 2003
//! section 3.4).

use headtime_disk::Dur;

use super::{View, sptf};

/// Returns the oldest eligible request if it has waited longer than `threshold`, else SPTF's.
pub(crate) fn next(view: &mut View, threshold: Dur) -> Option<u32> {
    let oldest = view.oldest_of(|queue| queue.oldest)?;
    if view.now.since(view.pool.get(oldest).submitted) > threshold {
        view.looked_at += 1;
        return Some(oldest);
    }
    sptf::next(view)
}
