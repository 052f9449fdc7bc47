//! All of it together: headtime's own claims.
//!
//! | id | source | file |
//! |---|---|---|
//! | X1 | Reuther and Pohlack 2003, Valente 2014, Lumb, Schindler and Ganger 2002, and headtime's own | `x01_everything_at_once` |
//! | X2 | Valente, New version of BFQ, benchmark suite and experimental results (2014), section 3.4, and headtime's own | `x02_idling_windows` |
//! | X3 | headtime's own | `x03_planner_comparison` |
//! | X4 | headtime's own | `x04_outside_losses` |
//! | X8 | headtime's own | `x08_bare_drive` |
//! | X9 | headtime's own | `x09_joint_decision` |
//! | X10 | headtime's own | `x10_host_write_cache` |
//! | X11 | headtime's own | `x11_recorded_programs` |

mod bare_drive;
mod hard_loads;
mod x01_everything_at_once;
mod x02_idling_windows;
mod x03_planner_comparison;
mod x04_outside_losses;
mod x08_bare_drive;
mod x09_joint_decision;
mod x10_host_write_cache;
mod x11_recorded_programs;

use crate::experiment::Experiment;

/// The experiments, in the order of the report.
pub(crate) const ALL: &[Experiment] = &[
    x01_everything_at_once::X1,
    x02_idling_windows::X2,
    x03_planner_comparison::X3,
    x04_outside_losses::X4,
    x08_bare_drive::X8,
    x09_joint_decision::X9,
    x10_host_write_cache::X10,
    x11_recorded_programs::X11,
];
