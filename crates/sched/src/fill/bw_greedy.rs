//! BW-Greedy: the most wanted sectors, searched from source and destination outwards (Lumb 2002
//! section 4.3, Thereska 2003 section 4.4).
//!
//! It favours the outer cylinders, which are denser, and those near the middle of the disk, since
//! it searches outwards from both ends of a seek and most seeks cross the middle; it leaves many
//! small fragments.

use super::search::Policy;

/// BW-Greedy.
pub(crate) static BW_GREEDY: Policy = Policy {
    name: "BW-Greedy",
    edges: false,
    needs_left: false,
    by_angle: false,
    score: |sectors, _, _| [u64::from(sectors), 0, 0],
    most: |sectors, _, _| [u64::from(sectors), 0, 0],
};
