//! `[noise]`: keys of the drive's randomness.

use super::forms::{Described, Form, MICROS, Maybe, Units, Whole};
use super::{Key, MS, Presence, SECOND, Schema, US, key};
use crate::profile::NoiseSpec;

const HOUR: i64 = 3600 * SECOND;
/// Parts per million.
const CHANCE: Whole = Whole(0, 1_000_000);
/// Parts per billion: at most a tenth.
const TENTH: i64 = 100_000_000;

/// `[noise]`.
pub(in super::super) static NOISE: Schema<NoiseSpec> = Schema {
    title: "[noise]",
    written_first: &[],
    blank: NoiseSpec::default,
    keys: &[
        key! {
            NoiseSpec, seek_sd, "seek_sd_us", Optional, MICROS,
            "standard deviation of one move about its table value"
        },
        key! {
            NoiseSpec, seek_max, "seek_max_us", Optional, MICROS,
            "no move differs by more than this"
        },
        key! {
            NoiseSpec, move_error_mean_ns, "move_error_mean_us", Optional,
            Units { places: US, min: -SECOND, max: SECOND },
            "mean of the constant errors of moves: positive if the drive is slower than its table"
        },
        key! {
            NoiseSpec, move_error_sd, "move_error_sd_us", Optional, MICROS,
            "standard deviation of the constant errors of moves. Each distance and surface has its own error, which \
                depends on the seed"
        },
        key! {
            NoiseSpec, move_error_max, "move_error_max_us", Optional, MICROS,
            "no constant error of a move exceeds this in either direction"
        },
        key! {
            NoiseSpec, completion_jitter, "completion_jitter_us", Optional, MICROS,
            "completions are reported late by up to this time"
        },
        key! {
            NoiseSpec, late_completion_ppm, "late_completion_ppm", Optional, CHANCE,
            "chance that a completion is reported much later"
        },
        key! {
            NoiseSpec, late_completion_max, "late_completion_max_us", Optional, MICROS,
            "such a completion is late by up to this time"
        },
        key! {
            NoiseSpec, overlap_jitter_per_4k, "overlap_jitter_per_4k_us", Optional, MICROS,
            "variation of the overlap of bus and media for each 4 KiB of a transfer; from 40 KiB on it is ten \
                times this"
        },
        key! {
            NoiseSpec, settle_retry_ppm, "settle_retry_ppm", Optional, CHANCE,
            "chance that the head needs another revolution to settle after a move"
        },
        key! {
            NoiseSpec, settle_retry_again_ppm, "settle_retry_again_ppm", Optional, Maybe(CHANCE),
            "chance that a head which has just failed to settle fails again, for drives on which failures \
                come together. When it is left out, failures are independent. 0: never twice in succession",
            "`settle_retry_ppm`: failures are independent"
        },
        key! {
            NoiseSpec, settle_retry_turns, "settle_retry_turns", Optional, Whole(0, 100),
            "the largest number of extra revolutions in one command. It is n - 1, where n is the DAS paper's \
                largest number of revolutions that a request waits for its sector"
        },
        key! {
            NoiseSpec, recalibrate_every, "recalibrate_every_s", Optional,
            Units { places: 9, min: 0, max: HOUR * 24 * 365 },
            "mean interval between two recalibrations"
        },
        key! {
            NoiseSpec, recalibrate_takes, "recalibrate_takes_ms", Optional, Units { places: MS, min: 0, max: HOUR },
            "duration of a recalibration, during which the mechanism is busy"
        },
        key! {
            NoiseSpec, speed_error_ppb, "speed_error_ppb", Optional, Whole(-TENTH, TENTH),
            "constant difference of the period from its nominal value"
        },
        key! {
            NoiseSpec, speed_drift_ppb, "speed_drift_ppb", Optional, Whole(0, TENTH),
            "the period drifts within plus or minus this"
        },
    ],
};
