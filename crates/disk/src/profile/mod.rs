//! The profile: everything known about one drive, in typed form.
//!
//! A profile is made from a TOML file, from DiskSim's parameter files ([`load`] takes either) or by
//! a program. It holds figures only; [`crate::geometry::Geometry`] and
//! [`crate::mechanics::Mechanics`] are compiled from it. docs/profile-format.md says what each key
//! of the file means.

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
    /// The electronics as they were in the measuring rig that recorded this drive's trace (its own
    /// bus, its own modes), where that differs. `headtime validate` uses it.
    pub rig: Option<Electronics>,
    /// How long commands do take, where it was measured: one distribution a request size, sizes
    /// ascending.
    pub service_times: Vec<ServiceTimes>,
}

/// How the source of a table begins that was read from DiskSim's files.
pub(crate) const FROM_DISKSIM: &str = "DiskSim parameter file ";

impl Profile {
    /// Whether the seek table is one of DiskSim's files as it stands. Those are taken with all
    /// their oddities, in either format.
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
        /// First letter: are tracks of a group followed outside-in on every surface (`F`), or is
        /// the direction turned round from one surface to the next (`A`)?
        tracks_alternate: bool,
        /// Second letter: are surfaces visited in the same order in each group (`F`), or in
        /// turned-round order in every second group (`A`)?
        surfaces_alternate: bool,
    },
}

/// The order of surfaces in a cylinder, for head-first layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOrder {
    /// 0, 1, 2, ... in every cylinder (`F`; DiskSim mapping 0).
    Forward,
    /// Turned round in every second cylinder, counted from the zone's first (`A`; DiskSim mapping
    /// 1).
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
    /// Angle of the zone's first physical sector. `None` (seek-first only): it follows on from the
    /// track before it in LBN order, with that track's skew.
    pub offset: Option<Skew>,
    /// From one track to the next in LBN order: head-first, the next surface of the cylinder;
    /// seek-first, the next cylinder of the group.
    pub track_skew: Skew,
    /// Head-first: to the next cylinder, instead of (not added to) the track skew. Seek-first: to
    /// the next surface or group.
    pub cylinder_skew: Skew,
    /// Physical sectors at the zone's front that hold no data.
    pub reserved_sectors: u64,
    /// How spare room is kept.
    pub sparing: Sparing,
    /// Defects skipped in the mapping.
    pub slips: Vec<Slip>,
    /// Defects replaced by a sector elsewhere in the zone, as `(bad, replacement)` physical indices
    /// (DiskSim).
    pub defects: Vec<(u64, u64)>,
}

/// How spare room is kept in a zone. All usable sectors follow in physical order; the holes are the
/// reserved front, the slips, and the spares that slips have not used up.
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
    /// Each run of so many cylinders, counted from the zone's first. A shorter run at the zone's
    /// end has none.
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
    /// Zero-latency access: a read starts with whatever wanted sector comes first (DiskSim
    /// `Immediate buffer read`).
    pub read_on_arrival: bool,
    /// The same for writes (DiskSim `Immediate buffer write`).
    pub write_on_arrival: bool,
    /// Everything that passes under the head on the track of a read goes to the cache, wanted or
    /// not (DiskSim `Read any free blocks`).
    pub keep_passing: bool,
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
    /// How much of a transfer's bus time overlaps with its media time varies by up to this much,
    /// evenly spread, for each 4 KiB up to 40 KiB; a longer transfer varies by as much as one of 40
    /// KiB, for which the figure was given (Lumb 2002 section 5.2).
    pub overlap_jitter_per_4k: Dur,
    /// Chance, in parts per million, that the head needs more turns to settle after a move.
    pub settle_retry_ppm: u32,
    /// Chance, in parts per million, that a head which has just failed to settle fails again.
    /// `None`: failures are independent, and it is [`NoiseSpec::settle_retry_ppm`] again.
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
