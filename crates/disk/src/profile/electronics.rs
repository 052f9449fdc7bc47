//! What a profile says of a drive's electronics: bus, overheads, cache and queue.

use crate::time::Dur;

/// A pair of figures, by what the drive's last command was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByLast {
    /// After a read.
    pub after_read: Dur,
    /// After a write.
    pub after_write: Dur,
}

/// The part of a drive that is not mechanics.
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
    /// The overheads as they act: a drive that never lets go of the bus has none for letting go and
    /// getting it back.
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
    /// Picoseconds a 512-byte block takes to the host (for 4096-byte sectors, eight times that a
    /// sector).
    pub read_block_ps: u64,
    /// Picoseconds a 512-byte block takes to the drive.
    pub write_block_ps: u64,
    /// The bus is kept for a whole read once data flows, even while it runs dry.
    pub hold_for_reads: bool,
    /// The same for writes (kept, not simulated).
    pub hold_for_writes: bool,
    /// The drive never lets go of the bus during a command.
    pub never_disconnect: bool,
    /// Each time the bus is taken.
    pub arbitration: Dur,
}

/// Command overheads. Names follow DiskSim's parameters (DiskSim 4.0 manual); all are spans of
/// time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// Before a read that the cache can answer.
    pub read_hit: ByLast,
    /// Before a read that needs the media.
    pub read_miss: ByLast,
    /// Before a write that goes to the cache and completes there.
    pub write_hit: ByLast,
    /// Before a write that completes on the media.
    pub write_miss: ByLast,
    /// After a read's last sector.
    pub read_completion: Dur,
    /// After a write's last sector.
    pub write_completion: Dur,
    /// Before data flows.
    pub data_preparation: Dur,
    /// Getting the bus back the first time.
    pub reselect: Dur,
    /// Getting the bus back again in the same command (kept, not simulated).
    pub other_reselect: Dur,
    /// Letting go of the bus in a read.
    pub read_disconnect: ByLast,
    /// Letting go of the bus in a write.
    pub write_disconnect: Dur,
    /// Shortest time a write's move may take (0: none), drives without a write cache (DiskSim
    /// `Minimum seek delay`).
    pub minimum_seek: Dur,
    /// On arrival of every command, before anything else (DiskSim `Per-request overhead time`).
    pub per_request: Dur,
    /// DiskSim's `Extradisc` times, for drives that let go of the bus once more in a write.
    pub extra_disconnect: Option<ExtraDisconnect>,
    /// Between two commands when the second was already waiting in the drive: by pair (read-read,
    /// read-write, write-read, write-write), Reuther 2003 equation 6, queue of two.
    pub queued: QueuedOverheads,
}

/// What a drive does that lets go of the bus a second time in a write to the segment kept for
/// writes (DiskSim `Extra write disconnect`; off in Western Digital's build, where only
/// [`CacheSpec::write_burst_sectors`] is left of it).
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
    /// Taken off the time that the arm has for its seek meanwhile.
    pub seek_delta: Dur,
}

/// Overhead between two commands of which the second was waiting in the drive, by kind of the pair.
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
    /// Sectors a segment holds.
    pub segment_sectors: u32,
    /// How far a read is read ahead.
    pub prefetch: Prefetch,
    /// This much is read ahead before another command may stop it (DiskSim `Minimum read-ahead`).
    pub minimum_prefetch_sectors: u32,
    /// A hit without a running prefetch starts one.
    pub prefetch_on_idle_hit: bool,
    /// A prefetch that must stop stops at once, not at the end of its sector (or rotational wait).
    pub stop_in_sector: bool,
    /// Prefetch only behind a read that begins where the read before it ended.
    pub prefetch_only_sequential: bool,
    /// Two reads in a row on one track make the drive read the rest of the track, and commands that
    /// wait in the queue wait for it (Lumb 2002 section 4.3: why an external scheduler must merge).
    pub same_track_prefetch_delays: bool,
    /// Data just delivered may be hit again.
    pub keep_delivered: bool,
    /// Share of a segment-sized request that must be in before data flows to the host, in 1/1000.
    pub read_watermark_permille: u32,
    /// Share of the segment that must be free before more write data is taken, in 1/1000 (kept, not
    /// simulated).
    pub write_watermark_permille: u32,
    /// The watermark is a share of the request when that is smaller than the segment.
    pub watermark_by_request: bool,
    /// Writes complete when their data is in the cache.
    pub write_back: bool,
    /// Write-back: how many writes may wait in the cache for the media.
    pub dirty_segments: u32,
    /// Written data can be hit by reads.
    pub read_hits_on_written: bool,
    /// A write puts its data into the segment that holds all of its blocks, and what else lies
    /// there stays. Otherwise segments that hold any of its blocks are emptied.
    pub writes_update_segments: bool,
    /// A write that follows the one being written back is joined to it.
    pub combine_sequential_writes: bool,
    /// A write's sectors count as in the buffer only when at least this many of it (or all) are;
    /// half as many again for writes of four and a half times as many (DiskSim `Extra write
    /// disconnect`: 10, and 15 from 45 on). 0: each counts at once.
    pub write_burst_sectors: u32,
    /// A read whose first sector the running prefetch is about to read counts as a hit (DiskSim
    /// `Allow almost read hits`).
    pub almost_hits: bool,
    /// Writes use one segment that reads never use (DiskSim `Use separate write segment`).
    pub separate_write_segment: bool,
    /// Segments that may hold writes (DiskSim `Maximum number of write segments`; Western Digital's
    /// build ignores it).
    pub write_segments: u32,
}

impl CacheSpec {
    /// Sectors of a read of `count` that must be in before data flows to the host.
    #[inline]
    pub fn read_watermark(&self, count: u64) -> u64 {
        let size = u64::from(self.segment_sectors.max(1));
        let of = if self.watermark_by_request { count.min(size) } else { size };
        (of * u64::from(self.read_watermark_permille) / 1000).clamp(1, count.max(1))
    }

    /// Whether a write leaves the rest of a segment that it goes into: of a drive that says so,
    /// that writes through (a write that waits for the media has a segment that holds nothing else)
    /// and whose reads may hit what is written.
    pub fn updates_segments(&self) -> bool {
        self.writes_update_segments && !self.write_back && self.read_hits_on_written
    }

    /// How many sectors of a write of `count` must be in the buffer before any counts as there.
    pub fn write_burst(&self, count: u32) -> u32 {
        // DiskSim 4.0 with `Extra write disconnect`: 10 sectors, 15 for writes of 45 and more.
        match self.write_burst_sectors {
            0 => 0,
            n if count >= 45 => n + n / 2,
            n => n,
        }
    }
}

/// How far a drive reads ahead after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// Not at all.
    None,
    /// This many sectors, but not past the end of the track.
    ToTrackEnd(u32),
    /// This many sectors, but not past the end of the cylinder.
    ToCylinderEnd(u32),
    /// This many sectors.
    Sectors(u32),
    /// To the end of the track; one more track when the stream came from the track before (DiskSim
    /// scheme 4).
    TrackAhead,
}

/// Which queued command a drive takes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirmwareOrder {
    /// As they came.
    Fcfs,
    /// Shortest positioning time first.
    Sptf,
}

/// The drive's command queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// Commands that may be outstanding, 1 to 32 (or more where a drive has more).
    pub depth: u32,
    /// How they are ordered.
    pub order: FirmwareOrder,
}
