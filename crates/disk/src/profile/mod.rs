//! The profile: typed data of one drive.
//!
//! A profile is read from a TOML file or from DiskSim's parameter files ([`load`] accepts both), or
//! made by a program. It holds figures only; [`crate::geometry::Geometry`] and
//! [`crate::mechanics::Mechanics`] are compiled from it. docs/profile-format.md documents each key
//! of the file.

pub mod bounds;
mod builtin;
mod capacity;
mod check;
pub mod decimal;
pub mod disksim;
mod electronics;
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
pub use electronics::{
    BusSpec, ByLast, CacheSpec, Electronics, ExtraDisconnect, FirmwareOrder, Overheads, Prefetch, QueueSpec,
    QueuedOverheads,
};
pub use fault::{At, ProfileError, Reason, Warning, WarningKind};
pub use known::{Figure, Figures, Knowledge, Known, LATE_TURNS, Late};
pub use load::{Loaded, Resolver, load};
pub use service::{Run, ServiceLoad, ServiceTimes};
pub use write::write;

/// The data of one drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Short name, lower case, as typed on a command line.
    pub name: String,
    /// The drive's full name.
    pub title: String,
    /// Release year, where known.
    pub year: Option<u16>,
    /// How the profile was derived from published figures, when it was not measured.
    pub synthesised: Option<String>,
    /// Sources of figures: table or table.key -> source.
    pub sources: BTreeMap<String, String>,
    /// Bytes per sector: 512 or 4096.
    pub sector_bytes: u32,
    /// Usable sectors according to the manufacturer or the drive, checked against the geometry.
    pub stated_sectors: Option<u64>,
    /// Layout of the sectors.
    pub geometry: GeometrySpec,
    /// Motion of arm and platter.
    pub mechanics: MechanicsSpec,
    /// Bus, overheads, cache and queue, as seen by a host of the drive's era.
    pub electronics: Electronics,
    /// Random components of the drive's behaviour.
    pub noise: NoiseSpec,
    /// Knowledge of the figures that a worst case depends on.
    pub known: Known,
    /// Electronics in the measuring rig that recorded this drive's trace (its own bus, its own
    /// modes), where they differ. Used by `headtime validate`.
    pub rig: Option<Electronics>,
    /// Measured service times: one distribution per request size, by ascending size.
    pub service_times: Vec<ServiceTimes>,
}

/// Prefix of the source of a table that was read from DiskSim's files.
pub(crate) const FROM_DISKSIM: &str = "DiskSim parameter file ";

impl Profile {
    /// Whether the seek table is an unmodified DiskSim table. Those are accepted with all their
    /// oddities, in either format.
    pub fn seeks_from_disksim(&self) -> bool {
        self.sources.get("mechanics").is_some_and(|source| source.starts_with(FROM_DISKSIM))
    }
}

/// Layout of the sectors.
#[derive(Clone, Debug, PartialEq)]
pub struct GeometrySpec {
    /// Data surfaces.
    pub surfaces: u16,
    /// Cylinders (radial tracks of one surface).
    pub cylinders: u32,
    /// Order of the tracks.
    pub layout: Layout,
    /// Zones, outside in. In seek-first layouts a zone may belong to a single surface.
    pub zones: Vec<ZoneSpec>,
    /// Remapped LBNs with their new place, which must be a spare.
    pub remaps: Vec<(u64, SectorAddress)>,
}

/// A physical sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectorAddress {
    /// Cylinder.
    pub cylinder: u32,
    /// Surface.
    pub surface: u16,
    /// Physical index on the track, from 0, holes included.
    pub sector: u32,
}

/// Order of the tracks (FIELD terms: H. Wong 2019).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All surfaces of a cylinder, then the next cylinder.
    HeadFirst(HeadOrder),
    /// A group of neighbouring tracks on one surface, then the next surface.
    SeekFirst {
        /// Tracks (cylinders) per group.
        group_tracks: u32,
        /// First letter: tracks of a group run outside in on every surface (`F`), or in alternating
        /// directions (`A`).
        tracks_alternate: bool,
        /// Second letter: surfaces are visited in the same order in each group (`F`), or reversed
        /// in every second group (`A`).
        surfaces_alternate: bool,
    },
}

/// Order of surfaces in a cylinder, for head-first layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOrder {
    /// 0, 1, 2, ... in every cylinder (`F`; DiskSim mapping 0).
    Forward,
    /// Reversed in every second cylinder, counted from the zone's first (`A`; DiskSim mapping 1).
    AlternatingInZone,
    /// Reversed in odd cylinders of the disk (`A`; DiskSim mapping 2).
    AlternatingOnDisk,
}

/// A skew or offset along the track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// Whole sectors of the zone.
    Sectors(u32),
    /// A fraction of a revolution.
    Turn(Angle),
}

impl Skew {
    /// No skew.
    pub const ZERO: Skew = Skew::Sectors(0);

    /// Returns the angle on a track of `spt` sectors.
    pub fn angle(self, spt: u32) -> Angle {
        match self {
            Skew::Sectors(n) => Angle::fraction(n as u64, spt as u64),
            Skew::Turn(a) => a,
        }
    }
}

/// A zone: cylinders with the same number of sectors per track.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneSpec {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder, inclusive.
    pub last_cylinder: u32,
    /// The surface of this zone; `None`: all surfaces.
    pub surface: Option<u16>,
    /// Sectors per track: one figure for all surfaces, or one per surface.
    pub sectors_per_track: Vec<u32>,
    /// Angle of the zone's first physical sector. `None` (seek-first only): continues from the
    /// previous track in LBN order, with that track's skew.
    pub offset: Option<Skew>,
    /// Skew between successive tracks in LBN order: head-first, to the next surface of the
    /// cylinder; seek-first, to the next cylinder of the group.
    pub track_skew: Skew,
    /// Head-first: skew to the next cylinder, in place of the track skew. Seek-first: skew to the
    /// next surface or group.
    pub cylinder_skew: Skew,
    /// Reserved physical sectors at the zone's front.
    pub reserved_sectors: u64,
    /// Allocation of spares.
    pub sparing: Sparing,
    /// Defects skipped in the mapping.
    pub slips: Vec<Slip>,
    /// Defects replaced by another sector of the zone, as `(bad, replacement)` physical indices
    /// (DiskSim).
    pub defects: Vec<(u64, u64)>,
}

/// Allocation of spares in a zone. Usable sectors follow in physical order; the holes are the
/// reserved front, the slips, and the spares not used up by slips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparing {
    /// The unit with its own spares.
    pub unit: SpareUnit,
    /// Spare sectors per unit.
    pub spares: u64,
    /// Spares are at the unit's front, not at its end.
    pub at_front: bool,
    /// Slips are lost in addition to the spares, not taken from them.
    pub slips_are_extra: bool,
    /// Slipped sectors of earlier units push the skew of later ones (DiskSim schemes 2 to 6).
    pub slips_push_skew: bool,
}

/// The unit of a zone that has its own spares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpareUnit {
    /// The whole zone.
    Zone,
    /// Each run of the given number of cylinders, counted from the zone's first. A shorter run at
    /// the zone's end has none.
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
    /// Head-first only: index among the zone's physical tracks, in LBN order; all its sectors are
    /// skipped.
    TrackIndex(u64),
    /// A single sector.
    Sector(SectorAddress),
    /// All sectors of this track.
    Track {
        /// Cylinder.
        cylinder: u32,
        /// Surface.
        surface: u16,
    },
}

/// Motion of arm and platter.
#[derive(Clone, Debug, PartialEq)]
pub struct MechanicsSpec {
    /// Revolutions per minute, as an exact ratio.
    pub rpm: (u64, u64),
    /// Seek times for reads by distance in cylinders, ascending.
    pub seek: Vec<(u32, Dur)>,
    /// Seek times for writes, including settling, where measured separately.
    pub write_seek: Option<Vec<(u32, Dur)>>,
    /// Head switch.
    pub head_switch: Dur,
    /// Added before a write that requires a move, in ns; may be negative.
    pub write_settle_ns: i64,
    /// Zero-latency access: a read starts with the first wanted sector that passes (DiskSim
    /// `Immediate buffer read`).
    pub read_on_arrival: bool,
    /// The same for writes (DiskSim `Immediate buffer write`).
    pub write_on_arrival: bool,
    /// All sectors that pass under the head on the track of a read are cached, wanted or not
    /// (DiskSim `Read any free blocks`).
    pub keep_passing: bool,
}

/// Random components of the drive's behaviour. All zero: an ideal drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoiseSpec {
    /// Standard deviation of a seek or head switch from its table value.
    pub seek_sd: Dur,
    /// Maximum deviation of a seek.
    pub seek_max: Dur,
    /// Maximum delay of a completion report, uniformly distributed (controller, bus, interrupt).
    pub completion_jitter: Dur,
    /// Maximum variation of the overlap of a transfer's bus and media times, uniformly distributed,
    /// per 4 KiB up to 40 KiB; longer transfers vary as one of 40 KiB, for which the figure was
    /// given (Lumb 2002 section 5.2).
    pub overlap_jitter_per_4k: Dur,
    /// Probability, in parts per million, that the head needs extra revolutions to settle after a
    /// move.
    pub settle_retry_ppm: u32,
    /// Probability, in parts per million, that a head which has just failed to settle fails again.
    /// `None`: failures are independent, with [`NoiseSpec::settle_retry_ppm`].
    pub settle_retry_again_ppm: Option<u32>,
    /// Maximum number of extra revolutions to settle.
    pub settle_retry_turns: u32,
    /// Mean interval between internal recalibrations (0: never).
    pub recalibrate_every: Dur,
    /// Duration of a recalibration.
    pub recalibrate_takes: Dur,
    /// Constant deviation of the period from its nominal value, in parts per billion.
    pub speed_error_ppb: i64,
    /// Maximum slow variation of the period in either direction, in parts per billion.
    pub speed_drift_ppb: u32,
}
