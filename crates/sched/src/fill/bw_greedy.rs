//! BW-Greedy: the most wanted sectors, looked for from source and destination outwards (Lumb 2002
//! section 4.3, Thereska 2003 section 4.4).
//!
//! It favours the outer cylinders, which are denser, and those near the middle of the disk, for it
//! looks from both ends of the way outwards and most ways lead over the middle; it leaves many
//! small fragments.

use super::search::Policy;

/// BW-Greedy.
pub static BW_GREEDY: Policy = Policy {
    name: "BW-Greedy",
    edges: false,
    needs_left: false,
    by_angle: false,
    score: |sectors, _, _| [u64::from(sectors), 0, 0],
    most: |sectors, _| [u64::from(sectors), 0, 0],
};
