//! Lumb 2002: freeblock scheduling outside of disk firmware (FAST 2002).
//!
//! | id | source | file |
//! |---|---|---|
//! | F1 | section 2.1 | `f01_rotational_latency` |
//! | F2 | section 5.2, figure 7a | `f02_prediction_4k` |
//! | F3 | section 5.2, figure 7b | `f03_prediction_40k` |
//! | F4 | section 5.2 | `f04_prediction_local` |
//! | F5 | section 5.2, figure 7c | `f05_prediction_file_system` |
//! | F6 | section 5.2, figure 8 | `f06_queue_depth` |
//! | F7 | section 5.3, figure 9 | `f07_conservatism` |
//! | F8 | section 5.3, figure 9 | `f08_foreground_orders` |
//! | F9 | sections 1, 5.4 and 7 | `f09_whole_scan` |
//! | F10 | section 5.3, figure 10 | `f10_outside_and_inside` |
//! | F11 | section 5.4 | `f11_processor_time` |

mod f01_rotational_latency;
mod f02_prediction_4k;
mod f03_prediction_40k;
mod f04_prediction_local;
mod f05_prediction_file_system;
mod f06_queue_depth;
mod f07_conservatism;
mod f08_foreground_orders;
mod f09_whole_scan;
mod f10_outside_and_inside;
mod f11_processor_time;

use crate::experiment::Experiment;

/// The experiments, in the order of the report.
pub(crate) const ALL: &[Experiment] = &[
    f01_rotational_latency::F1,
    f02_prediction_4k::F2,
    f03_prediction_40k::F3,
    f04_prediction_local::F4,
    f05_prediction_file_system::F5,
    f06_queue_depth::F6,
    f07_conservatism::F7,
    f08_foreground_orders::F8,
    f09_whole_scan::F9,
    f10_outside_and_inside::F10,
    f11_processor_time::F11,
];
