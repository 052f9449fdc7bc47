//! Shortest positioning time first, also called SATF: seek and rotational latency together (Lumb
//! 2002 section 4.2).
//!
//! Of reads that continue each other only the first is a candidate ([`View::continues_another`]):
//! the drive's read-ahead is worth more than a fraction of a revolution.

use headtime_disk::Dur;

use super::View;

/// Returns the eligible request with the shortest positioning time; ties go to the one that arrived
/// first.
#[inline]
pub(crate) fn next(view: &mut View) -> Option<u32> {
    shortest(view).map(|(slot, _)| slot)
}

/// Returns the same with its positioning time.
///
/// Walks outward from the head's cylinder and stops where the seek alone takes longer than the best
/// found so far, in this queue or a previous one.
pub(crate) fn shortest(view: &mut View) -> Option<(u32, Dur)> {
    // The walk may end before it reaches the one that costs nothing.
    let mut best = view.continuation.map(|slot| (Dur::ZERO, view.pool.get(slot).seq, slot));
    for queue in view.choices() {
        for (distance, entry) in view.outward(&queue) {
            view.looked_at += 1;
            let shortest = best.map_or(Dur(u64::MAX), |(shortest, ..)| shortest);
            let cost = view.cost(entry);
            // Only a seek that is itself too long can mean that all further ones are.
            if cost.seek > shortest && view.floor(distance) > shortest {
                break;
            }
            let positioning = cost.positioning;
            let better = match best {
                None => true,
                Some((shortest, seq, _)) => {
                    positioning < shortest || (positioning == shortest && view.seq(entry) < seq)
                }
            };
            if better && !view.continues_another(entry.slot) {
                best = Some((positioning, view.seq(entry), entry.slot));
            }
        }
    }
    best.map(|(positioning, _, slot)| (slot, positioning))
}
