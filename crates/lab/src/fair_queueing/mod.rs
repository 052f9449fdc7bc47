//! Valente 2014: BFQ and BFQ+.
//!
//! | id | source | file |
//! |---|---|---|
//! | B1 | section 7.2.1, figure 3 | `b01_throughput` |
//! | B2 | section 7.2.1, table 1 | `b02_peak_rate` |
//! | B3 | section 7.2.1 | `b03_random_readers` |
//! | B4 | section 7.2.1 | `b04_ramp_up` |
//! | B5 | section 7.3.1, figure 5 | `b05_bash_start` |
//! | B6 | section 7.3.1, figure 6 | `b06_konsole_start` |
//! | B7 | section 7.3.2, table 2 | `b07_starts_with_ncq` |
//! | B8 | section 7.2.2, figure 4 | `b08_throughput_with_ncq` |
//! | B9 | section 7.4, figure 7 | `b09_video_playback` |
//! | B10 | section 7.5, figures 8 and 9 | `b10_compile_checkout_merge` |
//! | B11 | sections 1 and 3.1 | `b11_weights` |
//! | B12 | sections 3.1 and 3.2 | `b12_fluid_system` |
//! | B13 | section 4.2 | `b13_peak_rate_estimate` |
//! | B14 | section 7 | `b14_heuristics` |
//! | B15 | section 3.1 | `b15_decision_cost` |
//! | B16 | section 3.4 | `b16_scattered_exports` |
//! | B17 | the kernel's BFQ | `b17_kernel_switches` |
//!
//! `paper` has the figures that the report states, `beside` draws them with those measured here.

mod b01_throughput;
mod b02_peak_rate;
mod b03_random_readers;
mod b04_ramp_up;
mod b05_bash_start;
mod b06_konsole_start;
mod b07_starts_with_ncq;
mod b08_throughput_with_ncq;
mod b09_video_playback;
mod b10_compile_checkout_merge;
mod b11_weights;
mod b12_fluid_system;
mod b13_peak_rate_estimate;
mod b14_heuristics;
mod b15_decision_cost;
mod b16_scattered_exports;
mod b17_kernel_switches;
mod beside;
mod paper;

use crate::experiment::Experiment;

/// The experiments, in the order of the report.
pub(crate) const ALL: &[Experiment] = &[
    b01_throughput::B1,
    b02_peak_rate::B2,
    b03_random_readers::B3,
    b04_ramp_up::B4,
    b05_bash_start::B5,
    b06_konsole_start::B6,
    b07_starts_with_ncq::B7,
    b08_throughput_with_ncq::B8,
    b09_video_playback::B9,
    b10_compile_checkout_merge::B10,
    b11_weights::B11,
    b12_fluid_system::B12,
    b13_peak_rate_estimate::B13,
    b14_heuristics::B14,
    b15_decision_cost::B15,
    b16_scattered_exports::B16,
    b17_kernel_switches::B17,
];
