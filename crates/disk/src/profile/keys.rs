//! All keys of a profile file. The reader accepts no others, the writer writes no others, and a
//! test checks that docs/profile-format.md documents each.

/// A table of the file and its keys.
pub type TableKeys = (&'static str, &'static [&'static str]);

/// The file's top level.
pub const TOP: TableKeys = (
    "the top level",
    &[
        "format",
        "name",
        "title",
        "year",
        "synthesised",
        "sector_bytes",
        "sectors",
        "sources",
        "geometry",
        "mechanics",
        "electronics",
        "noise",
        "known",
        "rig",
        "service_times",
    ],
);
/// `[geometry]`.
pub const GEOMETRY: TableKeys =
    ("[geometry]", &["surfaces", "cylinders", "layout", "group_tracks", "unused_cylinders", "zones", "remaps"]);
/// An entry of `zones`.
pub const ZONE: TableKeys = (
    "a zone",
    &[
        "cylinders",
        "surface",
        "sectors_per_track",
        "offset",
        "track_skew",
        "cylinder_skew",
        "reserved_sectors",
        "spares",
        "spare_unit",
        "spares_at_front",
        "slips_are_extra",
        "slips_push_skew",
        "slips",
        "slipped_tracks",
        "slips_at",
        "slipped_tracks_at",
        "defects",
    ],
);
/// `[mechanics]`.
pub const MECHANICS: TableKeys = (
    "[mechanics]",
    &[
        "rpm",
        "seek_ms",
        "write_seek_ms",
        "head_switch_ms",
        "write_settle_ms",
        "read_on_arrival",
        "write_on_arrival",
        "keep_passing",
    ],
);
/// `[electronics]` and `[rig]`.
pub const ELECTRONICS: TableKeys = ("[electronics]", &["bus", "overheads", "cache", "queue"]);
/// `[electronics.bus]`.
pub const BUS: TableKeys = (
    "[electronics.bus]",
    &["read_block_ns", "write_block_ns", "hold_for_reads", "hold_for_writes", "never_disconnect", "arbitration_us"],
);
/// `[electronics.overheads]`.
pub const OVERHEADS: TableKeys = (
    "[electronics.overheads]",
    &[
        "per_request_us",
        "read_hit_us",
        "read_miss_us",
        "write_hit_us",
        "write_miss_us",
        "read_completion_us",
        "write_completion_us",
        "data_preparation_us",
        "reselect_us",
        "other_reselect_us",
        "read_disconnect_us",
        "write_disconnect_us",
        "minimum_seek_us",
        "extra_disconnect_us",
        "queued_us",
    ],
);
/// A pair of overheads, by the kind of the last command.
pub const BY_LAST: TableKeys = ("a pair of overheads", &["after_read", "after_write"]);
/// `extra_disconnect_us`.
pub const EXTRA_DISCONNECT: TableKeys =
    ("extra_disconnect_us", &["command", "disconnect", "between", "second", "seek_delta"]);
/// `queued_us`.
pub const QUEUED: TableKeys = ("queued_us", &["read_read", "read_write", "write_read", "write_write"]);
/// `[electronics.cache]`.
pub const CACHE: TableKeys = (
    "[electronics.cache]",
    &[
        "segments",
        "segment_sectors",
        "prefetch",
        "prefetch_sectors",
        "minimum_prefetch_sectors",
        "prefetch_on_idle_hit",
        "stop_in_sector",
        "prefetch_only_sequential",
        "same_track_prefetch_delays",
        "keep_delivered",
        "read_watermark",
        "write_watermark",
        "watermark_by_request",
        "write_back",
        "dirty_segments",
        "read_hits_on_written",
        "writes_update_segments",
        "combine_sequential_writes",
        "write_burst_sectors",
        "almost_hits",
        "separate_write_segment",
        "write_segments",
    ],
);
/// `[electronics.queue]`.
pub const QUEUE: TableKeys = ("[electronics.queue]", &["depth", "order"]);
/// `[noise]`.
pub const NOISE: TableKeys = (
    "[noise]",
    &[
        "seek_sd_us",
        "seek_max_us",
        "completion_jitter_us",
        "overlap_jitter_per_4k_us",
        "settle_retry_ppm",
        "settle_retry_again_ppm",
        "settle_retry_turns",
        "recalibrate_every_s",
        "recalibrate_takes_ms",
        "speed_error_ppb",
        "speed_drift_ppb",
    ],
);
/// `[known]`.
pub const KNOWN: TableKeys = (
    "[known]",
    &[
        "settle_retry_turns",
        "recalibration",
        "seek_max",
        "overlap_jitter",
        "read_ahead_stop",
        "write_settle",
        "write_overheads",
        "verified_reads",
        "late_reads",
    ],
);
/// An entry of `service_times`.
pub const SERVICE_TIMES: TableKeys = (
    "service times",
    &[
        "sectors",
        "workload",
        "reads",
        "waiting",
        "candidates",
        "order",
        "outstanding",
        "samples",
        "bin_us",
        "histogram",
    ],
);

/// All tables.
pub const TABLES: &[TableKeys] = &[
    TOP,
    GEOMETRY,
    ZONE,
    MECHANICS,
    ELECTRONICS,
    BUS,
    OVERHEADS,
    BY_LAST,
    EXTRA_DISCONNECT,
    QUEUED,
    CACHE,
    QUEUE,
    NOISE,
    KNOWN,
    SERVICE_TIMES,
];
