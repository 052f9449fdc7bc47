//! Thereska 2003: a freeblock subsystem (CMU-PDL-03-107).
//!
//! | id | source | file |
//! |---|---|---|
//! | S1 | section 4.3, tables 1 and 2 | `s01_task_memory` |
//! | S2 | section 4.3, figure 4 | `s02_pickup_size` |
//! | S3 | section 4.3, figure 4(b) | `s03_regions` |
//! | S4 | section 4.4, figure 5 | `s04_edge_pass` |
//! | S5 | section 4.4, figure 6 | `s05_angles` |
//! | S6 | section 4.4, figure 7 | `s06_fragments` |
//! | S7 | sections 1 and 4.4 | `s07_foreground_loss` |
//! | S8 | section 4.6, figure 9 | `s08_read_ahead` |
//! | S9 | section 4.6 | `s09_long_idle_time` |
//! | S10 | section 4.6, figure 10 | `s10_utilisation` |
//! | S11 | section 4.6, figure 11 | `s11_idle_scan` |
//! | S12 | section 4.7, figure 12 | `s12_larger_disks` |
//! | S13 | section 4.8, figure 13 | `s13_write_back_cache` |
//! | S14 | section 4.8 | `s14_adaptive_conservatism` |
//! | S15 | section 4.5 | `s15_lottery` |
//! | S16 | section 2.1 | `s16_random_calls` |
//! | S17 | section 1 | `s17_reorganised_layout` |

mod algorithm_comparison;
mod background_run;
mod memory_tradeoffs;
mod s01_task_memory;
mod s02_pickup_size;
mod s03_regions;
mod s04_edge_pass;
mod s05_angles;
mod s06_fragments;
mod s07_foreground_loss;
mod s08_read_ahead;
mod s09_long_idle_time;
mod s10_utilisation;
mod s11_idle_scan;
mod s12_larger_disks;
mod s13_write_back_cache;
mod s14_adaptive_conservatism;
mod s15_lottery;
mod s16_random_calls;
mod s17_reorganised_layout;
mod zone_scan;

use crate::experiment::Experiment;

/// The experiments, in the order of the report.
pub(crate) const ALL: &[Experiment] = &[
    s01_task_memory::S1,
    s02_pickup_size::S2,
    s03_regions::S3,
    s04_edge_pass::S4,
    s05_angles::S5,
    s06_fragments::S6,
    s07_foreground_loss::S7,
    s08_read_ahead::S8,
    s09_long_idle_time::S9,
    s10_utilisation::S10,
    s11_idle_scan::S11,
    s12_larger_disks::S12,
    s13_write_back_cache::S13,
    s14_adaptive_conservatism::S14,
    s15_lottery::S15,
    s16_random_calls::S16,
    s17_reorganised_layout::S17,
];
