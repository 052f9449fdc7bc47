//! Shortest seek time first, by distance in cylinders (Lumb 2002 section 4.2).

use super::View;

/// Returns the eligible request at the shortest cylinder distance; ties go to the oldest.
pub(crate) fn next(view: &mut View) -> Option<u32> {
    let mut best: Option<(u32, u64, u32)> = None;
    for queue in view.choices() {
        for (distance, entry) in view.outward(&queue) {
            if best.is_some_and(|(nearest, ..)| distance > nearest) {
                break;
            }
            view.looked_at += 1;
            let candidate = (distance, view.seq(entry), entry.slot);
            if best.is_none_or(|b| candidate < b) {
                best = Some(candidate);
            }
        }
    }
    best.map(|(.., slot)| slot)
}
