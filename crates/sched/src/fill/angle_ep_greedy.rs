//! Angle-EP-Greedy: like BW-EP-Greedy, but compares the angle that the wanted sectors take instead
//! of their number (Thereska 2003 section 4.4): a sector of an inner track counts more in
//! proportion to its angle, so dense cylinders are not favoured.

use super::search::Policy;

/// Angle-EP-Greedy.
pub(crate) static ANGLE_EP_GREEDY: Policy = Policy {
    name: "Angle-EP-Greedy",
    edges: true,
    needs_left: false,
    by_angle: true,
    score: |_, turn, _| [turn, 0, 0],
    most: |_, turn, _| [turn, 0, 0],
};
