//! Reuther 2003: guarantees with a dynamic active subset (DAS).
//!
//! | id | source | file |
//! |---|---|---|
//! | D1 | equation 5, table 1 | `d01_worst_case` |
//! | D2 | sections 3.1.2, 4.1 and 4.4.1, figure 4, table 2 | `d02_service_times` |
//! | D3a | section 4.2, figure 5 | `d03a_active_subset` |
//! | D3b | section 4.2 | `d03b_subset_cost` |
//! | D4 | section 4.3.1, figure 6 | `d04_prediction_by_depth` |
//! | D5 | section 4.3.2, figure 7 | `d05_satf_outside` |
//! | D6 | section 4.3.3, figure 8 | `d06_skewed_streams` |
//! | D7 | section 4.4.1, figure 9 | `d07_guaranteed_bandwidth` |
//! | D8 | section 4.4.2, figure 10 | `d08_stream_sizes` |
//! | D9 | section 4.4.3, table 2 | `d09_optional_streams` |
//! | D10 | section 3.2 | `d10_missed_periods` |
//! | D11 | section 4.1 | `d11_queued_overheads` |
//! | D12 | section 3.1, figure 1 | `d12_film_streams` |
//! | D13 | section 4.1, table 1 | `d13_settling_revolutions` |
//! | D14 | condition 3 | `d14_optional_quality` |
//! | D15 | headtime's own | `d15_best_effort_forecast` |
//! | D16 | headtime's own | `d16_admission_time` |
//! | D17 | headtime's own | `d17_unknown_figures` |

mod blocking_count;
mod d01_worst_case;
mod d02_service_times;
mod d03a_active_subset;
mod d03b_subset_cost;
mod d04_prediction_by_depth;
mod d05_satf_outside;
mod d06_skewed_streams;
mod d07_guaranteed_bandwidth;
mod d08_stream_sizes;
mod d09_optional_streams;
mod d10_missed_periods;
mod d11_queued_overheads;
mod d12_film_streams;
mod d13_settling_revolutions;
mod d14_optional_quality;
mod d15_best_effort_forecast;
mod d16_admission_time;
mod d17_unknown_figures;
mod late_settling;
mod limit_load;
mod tuning;

use crate::experiment::Experiment;

/// The experiments, in the order of the report.
pub(crate) const ALL: &[Experiment] = &[
    d01_worst_case::D1,
    d02_service_times::D2,
    d03a_active_subset::D3A,
    d03b_subset_cost::D3B,
    d04_prediction_by_depth::D4,
    d05_satf_outside::D5,
    d06_skewed_streams::D6,
    d07_guaranteed_bandwidth::D7,
    d08_stream_sizes::D8,
    d09_optional_streams::D9,
    d10_missed_periods::D10,
    d11_queued_overheads::D11,
    d12_film_streams::D12,
    d13_settling_revolutions::D13,
    d14_optional_quality::D14,
    d15_best_effort_forecast::D15,
    d16_admission_time::D16,
    d17_unknown_figures::D17,
];
