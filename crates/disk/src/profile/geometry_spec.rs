//! The layout of the sectors in a profile: surfaces, zones, skews, spares and defects.

use std::fmt;

use crate::angle::Angle;

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

impl HeadOrder {
    /// Whether a cylinder's surfaces are visited from last to first, in a zone that begins at
    /// `first_cylinder`.
    pub fn is_turned(self, first_cylinder: u32, cylinder: u32) -> bool {
        match self {
            HeadOrder::Forward => false,
            HeadOrder::AlternatingInZone => (cylinder - first_cylinder) % 2 == 1,
            HeadOrder::AlternatingOnDisk => cylinder % 2 == 1,
        }
    }
}

impl Layout {
    /// Returns the surface of the `visit`th sweep (from 0) of a group in a seek-first layout, and
    /// whether its tracks run inside out. A head-first drive has one cylinder per group, without
    /// alternation.
    pub fn sweep(self, surfaces: u16, group: u32, visit: u16) -> (u16, bool) {
        match self {
            Layout::HeadFirst(_) => (visit, false),
            Layout::SeekFirst { tracks_alternate, surfaces_alternate, .. } => {
                let turned = surfaces_alternate && group % 2 == 1;
                (if turned { surfaces - 1 - visit } else { visit }, tracks_alternate && visit % 2 == 1)
            }
        }
    }
}

impl fmt::Display for SectorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cylinder {}, surface {}, sector {}", self.cylinder, self.surface, self.sector)
    }
}

impl fmt::Display for Slip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slip::Index(i) => write!(f, "sector {i} of the zone"),
            Slip::TrackIndex(i) => write!(f, "track {i} of the zone"),
            Slip::Sector(at) => write!(f, "{at}"),
            Slip::Track { cylinder, surface } => write!(f, "the track of cylinder {cylinder}, surface {surface}"),
        }
    }
}
