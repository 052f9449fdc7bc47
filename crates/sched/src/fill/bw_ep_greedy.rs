//! BW-EP-Greedy: the most wanted sectors, with a third of the search from the innermost and
//! outermost cylinders (Thereska 2003 section 4.4), so that those are examined as often as the
//! middle.

use super::search::Policy;

/// BW-EP-Greedy.
pub(crate) static BW_EP_GREEDY: Policy = Policy {
    name: "BW-EP-Greedy",
    edges: true,
    needs_left: false,
    by_angle: false,
    score: |sectors, _, _| [u64::from(sectors), 0, 0],
    most: |sectors, _, _| [u64::from(sectors), 0, 0],
};
