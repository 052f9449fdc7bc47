//! Angle-EP-Frag: like Angle-EP-Greedy, but candidates that clear a whole track come first, and of
//! two equal angles the one on the track with the fewest wanted blocks left (Thereska 2003 section
//! 4.4). It leaves the fewest fragments, and is the paper's default.

use super::search::Policy;

/// Angle-EP-Frag.
pub(crate) static ANGLE_EP_FRAG: Policy = Policy {
    name: "Angle-EP-Frag",
    edges: true,
    needs_left: true,
    by_angle: true,
    score: |_, turn, left| [u64::from(left == 0), turn, u64::from(u32::MAX - left)],
    most: |_, turn, left| [u64::from(left == 0), turn, u64::from(u32::MAX - left)],
};
