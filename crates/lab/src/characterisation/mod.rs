//! Characterisation of drives: headtime's own claims, and figures of Lumb 2002 repeated with them.
//!
//! | id | source | file |
//! |---|---|---|
//! | P1 | headtime's own claim | `p01_rotation_period` |
//! | P2 | headtime's own claim | `p02_tracks` |
//! | P3 | headtime's own claim | `p03_skews` |
//! | P4 | headtime's own claim | `p04_layout` |
//! | P5 | headtime's own claim | `p05_seek_table` |
//! | P6 | headtime's own claim | `p06_angles` |
//! | P7 | headtime's own claim | `p07_overheads` |
//! | P8 | sections 5.2 and 5.3, figures 7a and 9 | `p08_scheduling` |
//! | P9 | headtime's own claim | `p09_duration` |

mod p01_rotation_period;
mod p02_tracks;
mod p03_skews;
mod p04_layout;
mod p05_seek_table;
mod p06_angles;
mod p07_overheads;
mod p08_scheduling;
mod p09_duration;
mod profile_comparison;
mod profile_error;

use crate::experiment::Experiment;

/// The experiments, in the order of the report.
pub(crate) const ALL: &[Experiment] = &[
    p01_rotation_period::P1,
    p02_tracks::P2,
    p03_skews::P3,
    p04_layout::P4,
    p05_seek_table::P5,
    p06_angles::P6,
    p07_overheads::P7,
    p08_scheduling::P8,
    p09_duration::P9,
];
