//! Errors and warnings of geometries.

use crate::profile::{GeometrySpec, SectorAddress, Skew, Slip};

/// Why a geometry cannot be compiled. Zones are counted from 0, in the profile's order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// No surface.
    #[error("0 surfaces: expected at least 1")]
    NoSurfaces,
    /// No zone.
    #[error("no zones: expected at least 1")]
    NoZones,
    /// A seek-first layout with groups of no tracks.
    #[error("group_tracks is 0: expected at least 1")]
    NoGroupTracks,
    /// A zone's cylinder range is invalid.
    #[error("zone {zone}: cylinders {first} to {last}: expected a rising range within 0 to \
            {}", cylinders.saturating_sub(1))]
    ZoneRange {
        /// The zone.
        zone: usize,
        /// Its first cylinder.
        first: u32,
        /// Its last cylinder.
        last: u32,
        /// The drive's cylinders.
        cylinders: u32,
    },
    /// A zone names a surface that does not exist.
    #[error("zone {zone}: surface {surface}: expected 0 to {}", surfaces - 1)]
    ZoneSurface {
        /// The zone.
        zone: usize,
        /// The surface it names.
        surface: u16,
        /// The drive's surfaces.
        surfaces: u16,
    },
    /// A zone of a head-first layout belongs to one surface only.
    #[error("zone {zone}: belongs to surface {surface} alone: expected all surfaces, since the layout is head-first")]
    ZoneOfOneSurface {
        /// The zone.
        zone: usize,
        /// The surface it names.
        surface: u16,
    },
    /// A zone gives a wrong number of figures for its sectors per track.
    #[error("zone {zone}: {found} figures for the sectors per track: expected 1 or {expected}")]
    SectorsPerTrackCount {
        /// The zone.
        zone: usize,
        /// The number of surfaces: one figure for each is accepted as well as a single one.
        expected: usize,
        /// Figures given.
        found: usize,
    },
    /// A zone has tracks without sectors.
    #[error("zone {zone}: 0 sectors per track: expected at least 1")]
    NoSectors {
        /// The zone.
        zone: usize,
    },
    /// Zones of a head-first layout are not listed outside in.
    #[error("zone {zone}: begins at cylinder {found}: expected {expected} or higher, after the zone before it")]
    ZonesOutOfOrder {
        /// The zone.
        zone: usize,
        /// The lowest cylinder it may begin at.
        expected: u32,
        /// The cylinder it begins at.
        found: u32,
    },
    /// Two zones claim the same track.
    #[error("zone {zone}: claims cylinder {cylinder} of surface {surface}, which zone {other} has already")]
    ZonesOverlap {
        /// The zone.
        zone: usize,
        /// The zone that has the track too.
        other: usize,
        /// The first cylinder both claim.
        cylinder: u32,
        /// The surface.
        surface: u16,
    },
    /// Zones of a seek-first layout leave a gap between cylinders.
    #[error(
        "zone {zone}: begins at cylinder {found} of surface {surface}: expected {expected}, behind the zone before it"
    )]
    ZoneGap {
        /// The zone after the gap.
        zone: usize,
        /// The surface.
        surface: u16,
        /// The cylinder it should begin at.
        expected: u32,
        /// The cylinder it begins at.
        found: u32,
    },
    /// A surface of a seek-first layout belongs to no zone.
    #[error("surface {surface}: belongs to no zone: expected at least 1")]
    SurfaceWithoutZone {
        /// The surface.
        surface: u16,
    },
    /// The number of cylinders per spare unit is not usable.
    #[error("zone {zone}: spares for each {found} cylinders: expected 1 to {expected}")]
    UnitWidth {
        /// The zone.
        zone: usize,
        /// The largest usable number.
        expected: u32,
        /// The width given.
        found: u32,
    },
    /// A spare unit holds nothing but spares.
    #[error("zone {zone}: {found} spares in a unit of {sectors} sectors: expected at most {}", sectors - 1)]
    SparesFillUnit {
        /// The zone.
        zone: usize,
        /// Sectors of the unit.
        sectors: u64,
        /// Its spares.
        found: u64,
    },
    /// Slips that push skews need zones that are contiguous in LBN order.
    #[error("zone {zone}: slips that push the skew: expected only in a head-first layout")]
    PushedSkew {
        /// The zone.
        zone: usize,
    },
    /// A slip or defect is given by its index in the zone, which a seek-first layout does not have.
    #[error(
        "zone {zone}: a slip or defect given by index: expected cylinder and surface, since the layout is seek-first"
    )]
    IndexInSeekFirst {
        /// The zone.
        zone: usize,
    },
    /// A slip lies outside its zone.
    #[error("zone {zone}: slip {slip} lies outside: expected one of the zone's {tracks} tracks and {sectors} sectors")]
    SlipOutsideZone {
        /// The zone.
        zone: usize,
        /// The slip.
        slip: Slip,
        /// Tracks in the zone.
        tracks: u64,
        /// Sectors in the zone.
        sectors: u64,
    },
    /// A spare unit has more slips than spares to absorb them.
    #[error(
        "zone {zone}: {found} sectors slipped, the first of them at cylinder {cylinder}, surface {surface}, where \
         there are spares for {spares}"
    )]
    TooManySlips {
        /// The zone.
        zone: usize,
        /// Cylinder of the first slip in the unit.
        cylinder: u32,
        /// Surface of the first slip in the unit.
        surface: u16,
        /// Spares in it.
        spares: u64,
        /// Sectors slipped in it.
        found: u64,
    },
    /// A zone has fewer sectors than it must reserve.
    #[error("zone {zone}: {expected} sectors to be kept free at its ends: expected at most the {found} left")]
    ZoneTooSmall {
        /// The zone.
        zone: usize,
        /// Sectors to be reserved.
        expected: u64,
        /// Sectors there are.
        found: u64,
    },
    /// A defect or its replacement lies outside its zone.
    #[error("zone {zone}: defect {bad} -> {replacement}: expected two of the zone's {sectors} sectors")]
    DefectOutsideZone {
        /// The zone.
        zone: usize,
        /// The bad sector's index.
        bad: u64,
        /// Its replacement's index.
        replacement: u64,
        /// Sectors in the zone.
        sectors: u64,
    },
    /// A defect cannot be replaced by the sector given.
    #[error("zone {zone}: defect {bad} -> {replacement}: the replacement {why}: expected a spare")]
    Replacement {
        /// The zone.
        zone: usize,
        /// The bad sector's index.
        bad: u64,
        /// Its replacement's index.
        replacement: u64,
        /// What is wrong with it.
        why: NotASpare,
    },
    /// An LBN cannot be remapped to the sector given.
    #[error("remap of LBN {lbn} to cylinder {}, surface {}, sector {}: it {why}: expected a \
            spare", to.cylinder, to.surface, to.sector)]
    RemapTarget {
        /// The LBN.
        lbn: u64,
        /// The new place.
        to: SectorAddress,
        /// What is wrong with it.
        why: NotASpare,
    },
    /// A remapped LBN does not exist.
    #[error("remap of LBN {lbn}: expected 0 to {}", capacity - 1)]
    RemapBeyondCapacity {
        /// The LBN.
        lbn: u64,
        /// LBNs of the drive.
        capacity: u64,
    },
    /// An LBN is remapped twice.
    #[error("LBN {lbn} is remapped twice: expected once")]
    RemappedTwice {
        /// The LBN.
        lbn: u64,
    },
    /// A quantity exceeds what the mapping can represent.
    #[error("{found} {what}: expected at most {limit}")]
    TooLarge {
        /// The quantity.
        what: &'static str,
        /// Its value.
        found: u128,
        /// The largest value allowed.
        limit: u64,
    },
    /// No sector is left for data.
    #[error("the drive has no usable sector: expected at least 1")]
    NoCapacity,
}

impl GeometryError {
    /// Returns the zone at fault, if any.
    pub fn zone(&self) -> Option<usize> {
        match *self {
            GeometryError::ZoneRange { zone, .. }
            | GeometryError::ZoneSurface { zone, .. }
            | GeometryError::ZoneOfOneSurface { zone, .. }
            | GeometryError::SectorsPerTrackCount { zone, .. }
            | GeometryError::NoSectors { zone }
            | GeometryError::ZonesOutOfOrder { zone, .. }
            | GeometryError::ZonesOverlap { zone, .. }
            | GeometryError::ZoneGap { zone, .. }
            | GeometryError::UnitWidth { zone, .. }
            | GeometryError::SparesFillUnit { zone, .. }
            | GeometryError::PushedSkew { zone }
            | GeometryError::IndexInSeekFirst { zone }
            | GeometryError::SlipOutsideZone { zone, .. }
            | GeometryError::TooManySlips { zone, .. }
            | GeometryError::ZoneTooSmall { zone, .. }
            | GeometryError::DefectOutsideZone { zone, .. }
            | GeometryError::Replacement { zone, .. } => Some(zone),
            _ => None,
        }
    }

    /// Returns the remapped LBN at fault, if any.
    pub fn lbn(&self) -> Option<u64> {
        match *self {
            GeometryError::RemapTarget { lbn, .. }
            | GeometryError::RemapBeyondCapacity { lbn, .. }
            | GeometryError::RemappedTwice { lbn } => Some(lbn),
            _ => None,
        }
    }
}

/// Why a sector cannot serve as a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotASpare {
    /// There is no such sector.
    #[error("does not exist")]
    Missing,
    /// It holds an LBN of its own.
    #[error("holds LBN {0}")]
    HoldsData(u64),
    /// It is itself a skipped defect.
    #[error("is skipped as a defect")]
    Slipped,
    /// Another LBN was remapped to it before.
    #[error("has been given to LBN {0} already")]
    Taken(u64),
}

/// An oddity in a geometry that can still be compiled. A reader of profiles may refuse it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryWarning {
    /// A skew or offset of a whole revolution or more. Whole revolutions are dropped, as in
    /// DiskSim.
    #[error("zone {zone}: {what} of {found} sectors: expected less than a turn ({sectors_per_track} sectors)")]
    SkewBeyondTurn {
        /// The zone.
        zone: usize,
        /// Which figure.
        what: &'static str,
        /// Sectors per track.
        sectors_per_track: u32,
        /// Sectors of skew.
        found: u32,
    },
    /// Slips are not in rising order. They are sorted.
    #[error("zone {zone}: slip {slip} stands behind a higher one: expected rising order")]
    UnsortedSlips {
        /// The zone.
        zone: usize,
        /// The first slip out of order.
        slip: Slip,
    },
    /// Cylinders between two zones of a head-first layout hold no data.
    #[error("zone {zone}: cylinders {from} to {to} before it hold no data")]
    CylindersLeftOut {
        /// The zone after them.
        zone: usize,
        /// First cylinder left out.
        from: u32,
        /// Last cylinder left out.
        to: u32,
    },
}

/// Returns all oddities in `spec`, zone by zone. Does not cover what [`super::Geometry::new`]
/// refuses.
pub fn warnings(spec: &GeometrySpec) -> Vec<GeometryWarning> {
    let mut found = Vec::new();
    let mut next = 0u32;
    for (zone, z) in spec.zones.iter().enumerate() {
        let spt = z.sectors_per_track.first().copied().unwrap_or(0);
        let skews = [
            ("offset", z.offset.unwrap_or(Skew::ZERO)),
            ("track skew", z.track_skew),
            ("cylinder skew", z.cylinder_skew),
        ];
        for (what, skew) in skews {
            if let Skew::Sectors(n) = skew
                && n >= spt.max(1)
            {
                found.push(GeometryWarning::SkewBeyondTurn { zone, what, sectors_per_track: spt, found: n });
            }
        }
        let indices = |slip: &Slip| match *slip {
            Slip::Index(i) | Slip::TrackIndex(i) => Some(i),
            Slip::Sector(_) | Slip::Track { .. } => None,
        };
        if let Some(pair) = z.slips.windows(2).find(|w| indices(&w[1]).is_some() && indices(&w[1]) < indices(&w[0])) {
            found.push(GeometryWarning::UnsortedSlips { zone, slip: pair[1] });
        }
        let head_first = matches!(spec.layout, crate::profile::Layout::HeadFirst(_));
        if head_first && zone > 0 && z.first_cylinder > next {
            found.push(GeometryWarning::CylindersLeftOut { zone, from: next, to: z.first_cylinder - 1 });
        }
        next = z.last_cylinder.saturating_add(1);
    }
    found
}
