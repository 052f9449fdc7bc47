//! The profile: everything known about one drive, in typed form.
//!
//! A profile is made from a TOML file, from DiskSim's parameter files ([`load`] takes either) or by a program. It
//! holds figures only; [`crate::geometry::Geometry`] and [`crate::mechanics::Mechanics`] are compiled from it.
//! docs/profile-format.md says what each key of the file means.

pub mod bounds;
mod builtin;
mod capacity;
mod check;
pub mod decimal;
pub mod disksim;
pub mod fault;
pub mod keys;
pub mod known;
mod load;
mod neutral;
mod order;
pub mod service;
mod skew;
mod table;
pub mod toml;
mod words;
mod write;

use std::collections::BTreeMap;

use crate::angle::Angle;
use crate::time::Dur;

pub use builtin::{UnknownProfile, builtin, builtin_names};
pub use check::check;
pub use fault::{At, ProfileError, Reason, Warning, WarningKind};
pub use known::{Figure, Figures, Knowledge, Known};
pub use load::{Loaded, Resolver, load};
pub use service::{Run, ServiceLoad, ServiceTimes};
pub use write::write;

/// Everything known about one drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Short name, lower case, as typed on a command line.
    pub name: String,
    /// The drive's full name.
    pub title: String,
    /// Year it came out, where known.
    pub year: Option<u16>,
    /// How the profile was built from published figures, when it was not measured.
    pub synthesised: Option<String>,
    /// Where figures come from: table or table.key -> source.
    pub sources: BTreeMap<String, String>,
    /// Bytes a sector holds: 512 or 4096.
    pub sector_bytes: u32,
    /// Usable sectors the maker or the drive states, checked against the geometry when given.
    pub stated_sectors: Option<u64>,
    /// Where the sectors lie.
    pub geometry: GeometrySpec,
    /// How the arm and the platter move.
    pub mechanics: MechanicsSpec,
    /// Bus, overheads, cache and queue, as a host of the drive's day would see them.
    pub electronics: Electronics,
    /// What of the drive's behaviour is chance.
    pub noise: NoiseSpec,
    /// What is known of the figures that a worst case rests on.
    pub known: Known,
    /// The electronics as they were in the measuring rig that recorded this drive's trace (its own bus, its own
    /// modes), where that differs. `headtime validate` uses it.
    pub rig: Option<Electronics>,
    /// How long commands do take, where it was measured: one distribution a request size, sizes ascending.
    pub service_times: Vec<ServiceTimes>,
}

/// How the source of a table begins that was read from DiskSim's files.
pub(crate) const FROM_DISKSIM: &str = "DiskSim parameter file ";

impl Profile {
    /// Whether the seek table is one of DiskSim's files as it stands. Those are taken with all their oddities, in
    /// either format.
    pub fn seeks_from_disksim(&self) -> bool {
        self.sources.get("mechanics").is_some_and(|source| source.starts_with(FROM_DISKSIM))
    }
}

/// Where the sectors lie.
#[derive(Clone, Debug, PartialEq)]
pub struct GeometrySpec {
    /// Data surfaces.
    pub surfaces: u16,
    /// Cylinders (radial tracks of one surface).
    pub cylinders: u32,
    /// In which order tracks follow each other.
    pub layout: Layout,
    /// Zones, outside in. With seek-first layouts a zone may belong to one surface only.
    pub zones: Vec<ZoneSpec>,
    /// Logical blocks whose sector lies elsewhere: `(lbn, where)`. The place must be a spare.
    pub remaps: Vec<(u64, SectorAddress)>,
}

/// A physical sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectorAddress {
    /// Cylinder.
    pub cylinder: u32,
    /// Surface.
    pub surface: u16,
    /// Physical index on the track, from 0, holes counted.
    pub sector: u32,
}

/// The order in which tracks follow each other (FIELD terms: H. Wong 2019).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All surfaces of a cylinder, then the next cylinder.
    HeadFirst(HeadOrder),
    /// A group of neighbouring tracks on one surface, then the next surface.
    SeekFirst {
        /// Tracks (cylinders) a group is wide.
        group_tracks: u32,
        /// First letter: are tracks of a group followed outside-in on every surface (`F`), or is the direction
        /// turned round from one surface to the next (`A`)?
        tracks_alternate: bool,
        /// Second letter: are surfaces visited in the same order in each group (`F`), or in turned-round order in
        /// every second group (`A`)?
        surfaces_alternate: bool,
    },
}

/// The order of surfaces in a cylinder, for head-first layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOrder {
    /// 0, 1, 2, ... in every cylinder (`F`; DiskSim mapping 0).
    Forward,
    /// Turned round in every second cylinder, counted from the zone's first (`A`; DiskSim mapping 1).
    AlternatingInZone,
    /// Turned round in odd cylinders of the disk (`A`; DiskSim mapping 2).
    AlternatingOnDisk,
}

/// A skew or offset along the track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// Whole sectors of the zone it is used in.
    Sectors(u32),
    /// A fraction of a turn.
    Turn(Angle),
}

impl Skew {
    /// No skew.
    pub const ZERO: Skew = Skew::Sectors(0);

    /// As an angle on a track of `spt` sectors.
    pub fn angle(self, spt: u32) -> Angle {
        match self {
            Skew::Sectors(n) => Angle::fraction(n as u64, spt as u64),
            Skew::Turn(a) => a,
        }
    }
}

/// A zone: cylinders with the same number of sectors a track.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneSpec {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder, included.
    pub last_cylinder: u32,
    /// The surface this zone belongs to; `None`: all of them.
    pub surface: Option<u16>,
    /// Sectors a track: one figure for all surfaces, or one a surface.
    pub sectors_per_track: Vec<u32>,
    /// Angle of the zone's first physical sector. `None` (seek-first only): it follows on from the track before it
    /// in LBN order, with that track's skew.
    pub offset: Option<Skew>,
    /// From one track to the next in LBN order: head-first, the next surface of the cylinder; seek-first, the next
    /// cylinder of the group.
    pub track_skew: Skew,
    /// Head-first: to the next cylinder, instead of (not added to) the track skew. Seek-first: to the next surface
    /// or group.
    pub cylinder_skew: Skew,
    /// Physical sectors at the zone's front that hold no data.
    pub reserved_sectors: u64,
    /// How spare room is kept.
    pub sparing: Sparing,
    /// Defects skipped in the mapping.
    pub slips: Vec<Slip>,
    /// Defects replaced by a sector elsewhere in the zone, as `(bad, replacement)` physical indices (DiskSim).
    pub defects: Vec<(u64, u64)>,
}

/// How spare room is kept in a zone. All usable sectors follow in physical order; the holes are the reserved front,
/// the slips, and the spares that slips have not used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparing {
    /// The stretch that has its own spares.
    pub unit: SpareUnit,
    /// Spare sectors a unit.
    pub spares: u64,
    /// Spares lie at the unit's front instead of its end.
    pub at_front: bool,
    /// Slips are lost besides the spares, instead of being taken from them.
    pub slips_are_extra: bool,
    /// Slipped sectors of earlier units push the skew of later ones (DiskSim schemes 2 to 6).
    pub slips_push_skew: bool,
}

/// The stretch of a zone that has its own spares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpareUnit {
    /// The whole zone.
    Zone,
    /// Each run of so many cylinders, counted from the zone's first. A shorter run at the zone's end has none.
    Cylinders(u32),
    /// Each track.
    Track,
}

impl Sparing {
    /// No spares; slips, if any, are lost at the zone's end (DiskSim scheme 7).
    pub const NONE: Sparing =
        Sparing { unit: SpareUnit::Zone, spares: 0, at_front: false, slips_are_extra: true, slips_push_skew: false };
}

/// A defect that the mapping skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slip {
    /// Head-first only: index among the zone's physical sectors, in LBN order.
    Index(u64),
    /// Head-first only: index among the zone's physical tracks, in LBN order; all its sectors are skipped.
    TrackIndex(u64),
    /// This sector.
    Sector(SectorAddress),
    /// All sectors of this track.
    Track {
        /// Cylinder.
        cylinder: u32,
        /// Surface.
        surface: u16,
    },
}

/// How the arm and the platter move.
#[derive(Clone, Debug, PartialEq)]
pub struct MechanicsSpec {
    /// Rotations a minute, as a ratio (exact).
    pub rpm: (u64, u64),
    /// Seek times for reads by distance in cylinders, ascending.
    pub seek: Vec<(u32, Dur)>,
    /// Seek times for writes, settling included, where measured separately.
    pub write_seek: Option<Vec<(u32, Dur)>>,
    /// Head switch.
    pub head_switch: Dur,
    /// Added before a write that moved, ns; may be negative.
    pub write_settle_ns: i64,
    /// Zero-latency access: a read starts with whatever wanted sector comes first (DiskSim `Immediate
    /// buffer read`).
    pub read_on_arrival: bool,
    /// The same for writes (DiskSim `Immediate buffer write`).
    pub write_on_arrival: bool,
    /// Everything that passes under the head on the track of a read goes to the cache, wanted or not (DiskSim
    /// `Read any free blocks`).
    pub keep_passing: bool,
}

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
    /// The overheads as they act: a drive that never lets go of the bus has none for letting go and getting it back.
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
    /// Picoseconds a 512-byte block takes to the host (for 4096-byte sectors, eight times that a sector).
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

/// Command overheads. Names follow DiskSim's parameters (DiskSim 4.0 manual); all are spans of time.
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
    /// Shortest time a write's move may take (0: none), drives without a write cache (DiskSim `Minimum seek delay`).
    pub minimum_seek: Dur,
    /// On arrival of every command, before anything else (DiskSim `Per-request overhead time`).
    pub per_request: Dur,
    /// DiskSim's `Extradisc` times, for drives that let go of the bus once more in a write.
    pub extra_disconnect: Option<ExtraDisconnect>,
    /// Between two commands when the second was already waiting in the drive: by pair (read-read, read-write,
    /// write-read, write-write), Reuther 2003 equation 6, queue of two.
    pub queued: QueuedOverheads,
}

/// What a drive does that lets go of the bus a second time in a write to the segment kept for writes (DiskSim
/// `Extra write disconnect`; off in Western Digital's build, where only [`CacheSpec::write_burst_sectors`] is left of it).
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
    /// Two reads in a row on one track make the drive read the rest of the track, and commands that wait in the
    /// queue wait for it (Lumb 2002 section 4.3: why an external scheduler must merge).
    pub same_track_prefetch_delays: bool,
    /// Data just delivered may be hit again.
    pub keep_delivered: bool,
    /// Share of a segment-sized request that must be in before data flows to the host, in 1/1000.
    pub read_watermark_permille: u32,
    /// Share of the segment that must be free before more write data is taken, in 1/1000 (kept, not simulated).
    pub write_watermark_permille: u32,
    /// The watermark is a share of the request when that is smaller than the segment.
    pub watermark_by_request: bool,
    /// Writes complete when their data is in the cache.
    pub write_back: bool,
    /// Write-back: how many writes may wait in the cache for the media.
    pub dirty_segments: u32,
    /// Written data can be hit by reads.
    pub read_hits_on_written: bool,
    /// A write puts its data into the segment that holds all of its blocks, and what else lies there stays. Otherwise
    /// segments that hold any of its blocks are emptied.
    pub writes_update_segments: bool,
    /// A write that follows the one being written back is joined to it.
    pub combine_sequential_writes: bool,
    /// A write's sectors count as in the buffer only when at least this many of it (or all) are; half as many again
    /// for writes of four and a half times as many (DiskSim `Extra write disconnect`: 10, and 15 from 45 on). 0: each
    /// counts at once.
    pub write_burst_sectors: u32,
    /// A read whose first sector the running prefetch is about to read counts as a hit (DiskSim `Allow almost read
    /// hits`).
    pub almost_hits: bool,
    /// Writes use one segment that reads never use (DiskSim `Use separate write segment`).
    pub separate_write_segment: bool,
    /// Segments that may hold writes (DiskSim `Maximum number of write segments`; Western Digital's build ignores it).
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

    /// Whether a write leaves the rest of a segment that it goes into: of a drive that says so, that writes through
    /// (a write that waits for the media has a segment that holds nothing else) and whose reads may hit what is written.
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
    /// To the end of the track; one more track when the stream came from the track before (DiskSim scheme 4).
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

/// What of the drive's behaviour is chance. All zero: an ideal drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoiseSpec {
    /// Standard deviation of one seek or head switch about its table value.
    pub seek_sd: Dur,
    /// No seek differs by more than this.
    pub seek_max: Dur,
    /// Completion is reported up to this much late, evenly spread (controller, bus, interrupt).
    pub completion_jitter: Dur,
    /// How much of a transfer's bus time overlaps with its media time varies by up to this much, evenly spread, for
    /// each 4 KiB up to 40 KiB; a longer transfer varies by as much as one of 40 KiB, for which the figure was given
    /// (Lumb 2002 section 5.2).
    pub overlap_jitter_per_4k: Dur,
    /// Chance, in parts per million, that the head needs more turns to settle after a move.
    pub settle_retry_ppm: u32,
    /// Chance, in parts per million, that a head which has just failed to settle fails again. `None`: failures are
    /// independent, and it is [`NoiseSpec::settle_retry_ppm`] again.
    pub settle_retry_again_ppm: Option<u32>,
    /// At most this many extra turns to settle.
    pub settle_retry_turns: u32,
    /// Internal recalibrations: one about every so often (0: never).
    pub recalibrate_every: Dur,
    /// How long one keeps the mechanism busy.
    pub recalibrate_takes: Dur,
    /// The period differs from its nominal value by this constant, in parts per billion.
    pub speed_error_ppb: i64,
    /// The period wanders within plus or minus this, in parts per billion.
    pub speed_drift_ppb: u32,
}
