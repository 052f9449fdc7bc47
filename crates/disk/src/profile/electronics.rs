//! A drive's electronics in a profile: bus, overheads, cache and queue.

use crate::time::Dur;

/// Two figures, selected by the kind of the drive's last command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByLast {
    /// After a read.
    pub after_read: Dur,
    /// After a write.
    pub after_write: Dur,
}

/// The non-mechanical part of a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Electronics {
    /// The bus.
    pub bus: BusSpec,
    /// Command overheads.
    pub overheads: Overheads,
    /// The cache.
    pub cache: CacheSpec,
    /// The command queue.
    pub queue: QueueSpec,
}

impl Electronics {
    /// Returns the defaults: no cache, a bus and electronics that take no time, one command at a
    /// time.
    pub fn neutral() -> Electronics {
        Electronics {
            bus: BusSpec::default(),
            overheads: Overheads::default(),
            cache: CacheSpec::default(),
            queue: QueueSpec::default(),
        }
    }

    /// Returns the effective overheads: a drive that never disconnects has none for disconnecting
    /// and reselecting.
    pub fn acting_overheads(&self) -> Overheads {
        if !self.bus.never_disconnect {
            return self.overheads;
        }
        Overheads {
            reselect: Dur::ZERO,
            other_reselect: Dur::ZERO,
            read_disconnect: ByLast::default(),
            write_disconnect: Dur::ZERO,
            ..self.overheads
        }
    }
}

/// The bus between drive and host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusSpec {
    /// Picoseconds to transfer a 512-byte block to the host (a 4096-byte sector takes eight times
    /// that).
    pub read_block_ps: u64,
    /// Picoseconds to transfer a 512-byte block to the drive.
    pub write_block_ps: u64,
    /// The bus is held for a whole read once data flows, even while no data is available.
    pub hold_for_reads: bool,
    /// The same for writes (stored, not simulated).
    pub hold_for_writes: bool,
    /// The drive never disconnects during a command.
    pub never_disconnect: bool,
    /// Arbitration time, each time the bus is acquired.
    pub arbitration: Dur,
}

/// A bus that takes no time.
impl Default for BusSpec {
    fn default() -> BusSpec {
        BusSpec {
            read_block_ps: 0,
            write_block_ps: 0,
            hold_for_reads: false,
            hold_for_writes: false,
            never_disconnect: false,
            arbitration: Dur::ZERO,
        }
    }
}

/// Command overheads, as durations, named after DiskSim's parameters (DiskSim 4.0 manual).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// Before a read that hits the cache.
    pub read_hit: ByLast,
    /// Before a read that misses it.
    pub read_miss: ByLast,
    /// Before a write that completes in the cache.
    pub write_hit: ByLast,
    /// Before a write that completes on the media.
    pub write_miss: ByLast,
    /// After a read's last sector.
    pub read_completion: Dur,
    /// After a write's last sector.
    pub write_completion: Dur,
    /// Before data flows.
    pub data_preparation: Dur,
    /// Reselecting the first time.
    pub reselect: Dur,
    /// Reselecting again in the same command (stored, not simulated).
    pub other_reselect: Dur,
    /// Disconnecting in a read.
    pub read_disconnect: ByLast,
    /// Disconnecting in a write.
    pub write_disconnect: Dur,
    /// Minimum time of a write's move (0: none), for drives without a write cache (DiskSim `Minimum
    /// seek delay`).
    pub minimum_seek: Dur,
    /// On arrival of every command, before any other (DiskSim `Per-request overhead time`).
    pub per_request: Dur,
    /// DiskSim's `Extradisc` times, for drives that disconnect a second time in a write.
    pub extra_disconnect: Option<ExtraDisconnect>,
    /// Between two commands when the second was already queued in the drive: by pair (read-read,
    /// read-write, write-read, write-write), Reuther 2003 equation 6, queue of two.
    pub queued: QueuedOverheads,
}

/// Times of a drive that disconnects a second time in a write to the write segment (DiskSim `Extra
/// write disconnect`; disabled in Western Digital's build, where only
/// [`CacheSpec::write_burst_sectors`] remains of it).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtraDisconnect {
    /// Before the first disconnect.
    pub command: Dur,
    /// The first disconnect.
    pub disconnect: Dur,
    /// Between the two.
    pub between: Dur,
    /// The second disconnect.
    pub second: Dur,
    /// Subtracted from the time available to the seek in the interval.
    pub seek_delta: Dur,
}

/// Overhead between two commands when the second was queued in the drive, by kind of the pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuedOverheads {
    /// Read then read.
    pub read_read: Dur,
    /// Read then write.
    pub read_write: Dur,
    /// Write then read.
    pub write_read: Dur,
    /// Write then write.
    pub write_write: Dur,
}

/// A segmented cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// Segments; 0: no cache.
    pub segments: u32,
    /// Sectors per segment.
    pub segment_sectors: u32,
    /// Extent of read-ahead.
    pub prefetch: Prefetch,
    /// Sectors read ahead before another command may stop it (DiskSim `Minimum read-ahead`).
    pub minimum_prefetch_sectors: u32,
    /// A hit starts a prefetch if none is running.
    pub prefetch_on_idle_hit: bool,
    /// A prefetch stops immediately, not at the end of its sector (or rotational wait).
    pub stop_in_sector: bool,
    /// Prefetch only after a read that begins where the previous one ended.
    pub prefetch_only_sequential: bool,
    /// After two successive reads on one track the drive reads the rest of the track, delaying
    /// queued commands (Lumb 2002 section 4.3: why an external scheduler must merge).
    pub same_track_prefetch_delays: bool,
    /// Delivered data may be hit again.
    pub keep_delivered: bool,
    /// Share of a segment-sized request that must be buffered before data flows to the host, in
    /// 1/1000.
    pub read_watermark_permille: u32,
    /// Share of the segment that must be free before more write data is accepted, in 1/1000
    /// (stored, not simulated).
    pub write_watermark_permille: u32,
    /// The watermark is a share of the request when that is smaller than the segment.
    pub watermark_by_request: bool,
    /// Writes complete when their data is in the cache.
    pub write_back: bool,
    /// Write-back: maximum number of writes in the cache that wait for the media.
    pub dirty_segments: u32,
    /// Write-back: maximum number of their sectors. A longer write is cached alone. 0: as many as
    /// `dirty_segments` writes have.
    pub dirty_sectors: u32,
    /// Write-back: time without a command after which cached writes are written back.
    pub destage_delay: Dur,
    /// Write-back: share of `dirty_sectors` in the cache above which writes are written back
    /// without that delay, in 1/1000.
    pub destage_above_permille: u32,
    /// Written data can be hit by reads.
    pub read_hits_on_written: bool,
    /// A write updates the segment that holds all of its blocks and keeps that segment's other
    /// contents. Otherwise segments that hold any of its blocks are invalidated.
    pub writes_update_segments: bool,
    /// A write that is contiguous with the one being written back is combined with it.
    pub combine_sequential_writes: bool,
    /// A write's sectors count as buffered only when at least this many of it (or all) are; half as
    /// many again for writes of 45 sectors or more (DiskSim `Extra write disconnect`: 10, and 15
    /// from 45 on). 0: each counts at once.
    pub write_burst_sectors: u32,
    /// A read whose first sector the running prefetch reads next counts as a hit (DiskSim `Allow
    /// almost read hits`).
    pub almost_hits: bool,
    /// Writes use one segment that reads never use (DiskSim `Use separate write segment`).
    pub separate_write_segment: bool,
    /// Segments that may hold writes (DiskSim `Maximum number of write segments`; Western Digital's
    /// build ignores it).
    pub write_segments: u32,
}

/// No cache; its other figures are the defaults of a profile file.
impl Default for CacheSpec {
    fn default() -> CacheSpec {
        CacheSpec {
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
            dirty_sectors: 0,
            destage_delay: Dur::ZERO,
            destage_above_permille: 500,
            read_hits_on_written: true,
            writes_update_segments: false,
            combine_sequential_writes: false,
            write_burst_sectors: 0,
            almost_hits: false,
            separate_write_segment: false,
            write_segments: 1,
        }
    }
}

impl CacheSpec {
    /// Returns the sectors of a read of `count` that must be buffered before data flows to the
    /// host.
    #[inline]
    pub fn read_watermark(&self, count: u64) -> u64 {
        let size = u64::from(self.segment_sectors.max(1));
        let of = if self.watermark_by_request { count.min(size) } else { size };
        (of * u64::from(self.read_watermark_permille) / 1000).clamp(1, count.max(1))
    }

    /// Whether a write keeps the rest of the segment that it goes into. This needs a drive that is
    /// so configured, that writes through (with write-back, a waiting write has a segment of its
    /// own), and whose reads may hit written data.
    pub fn updates_segments(&self) -> bool {
        self.writes_update_segments && !self.write_back && self.read_hits_on_written
    }

    /// Returns the sectors of a write of `count` that must be buffered before any counts.
    pub fn write_burst(&self, count: u32) -> u32 {
        // DiskSim 4.0 with `Extra write disconnect`: 10 sectors, 15 for writes of 45 and more.
        match self.write_burst_sectors {
            0 => 0,
            n if count >= 45 => n + n / 2,
            n => n,
        }
    }
}

/// Extent of read-ahead after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// None.
    None,
    /// This many sectors, but not past the end of the track.
    ToTrackEnd(u32),
    /// This many sectors, but not past the end of the cylinder.
    ToCylinderEnd(u32),
    /// This many sectors.
    Sectors(u32),
    /// To the end of the track; one more track when the stream came from the previous track
    /// (DiskSim scheme 4).
    TrackAhead,
}

/// Order in which a drive serves queued commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirmwareOrder {
    /// Arrival order.
    Fcfs,
    /// Shortest positioning time first.
    Sptf,
}

/// The drive's command queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// Maximum number of outstanding commands, 1 to 256.
    pub depth: u32,
    /// Their order of service.
    pub order: FirmwareOrder,
    /// With [`FirmwareOrder::Sptf`]: the oldest command is served next when it has waited for
    /// longer than this, so that none starves. The default has no source: no maker publishes such a
    /// limit.
    pub oldest_after: Dur,
}

/// One command at a time.
impl Default for QueueSpec {
    fn default() -> QueueSpec {
        QueueSpec { depth: 1, order: FirmwareOrder::Fcfs, oldest_after: Dur::from_secs(2) }
    }
}
