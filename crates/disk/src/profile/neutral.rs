//! Neutral electronics, as a basis for a file's keys and a probe's findings.

use super::electronics::{BusSpec, CacheSpec, Electronics, FirmwareOrder, Overheads, Prefetch, QueueSpec};
use crate::time::Dur;

impl Electronics {
    /// Returns the defaults: no cache, a bus and electronics that take no time, one command at a
    /// time.
    pub fn neutral() -> Electronics {
        Electronics {
            bus: BusSpec {
                read_block_ps: 0,
                write_block_ps: 0,
                hold_for_reads: false,
                hold_for_writes: false,
                never_disconnect: false,
                arbitration: Dur::ZERO,
            },
            overheads: Overheads::default(),
            cache: CacheSpec {
                segments: 0,
                segment_sectors: 0,
                prefetch: Prefetch::None,
                minimum_prefetch_sectors: 0,
                prefetch_on_idle_hit: false,
                stop_in_sector: false,
                prefetch_only_sequential: false,
                same_track_prefetch_delays: false,
                keep_delivered: true,
                read_watermark_permille: 0,
                write_watermark_permille: 0,
                watermark_by_request: true,
                write_back: false,
                dirty_segments: 1,
                read_hits_on_written: true,
                writes_update_segments: false,
                combine_sequential_writes: false,
                write_burst_sectors: 0,
                almost_hits: false,
                separate_write_segment: false,
                write_segments: 1,
            },
            queue: QueueSpec { depth: 1, order: FirmwareOrder::Fcfs },
        }
    }
}
