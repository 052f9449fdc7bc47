//! Mapping of logical block numbers to physical positions and back.
//!
//! All layouts and sparing schemes share one principle: LBNs are the usable physical sectors in LBN
//! order, that is, all sectors without the holes (a zone's reserved front, slips, unused spares).
//! `order` defines the physical order in closed form, `holes` removes what holds no data, and
//! `extents` finds the run that contains an LBN or a sector. Remapped LBNs are exceptions on top
//! (`moved`).
//!
//! # Definitions
//!
//! * Good sectors are physical sectors in LBN order without slips. The first or last good ones of
//!   each spare unit are its spares; slips that are not "extra" use up the same number of them. The
//!   first `reserved_sectors` physical sectors of a zone never hold data. Where the whole zone is
//!   the spare unit, the unit excludes them: slips among them cost no spare, and spares at the
//!   front lie after them.
//! * In a seek-first layout, a spare unit of `n` cylinders is `n` neighbouring tracks of one
//!   surface in one group, counted in LBN order from where the zone enters the group. A remainder
//!   at the end has no spares, and loses its slips (DiskSim scheme 8).
//! * Head-first: the angle of the track on the h-th surface in the zone's k-th cylinder, both in
//!   LBN order, is offset + (k * (surfaces - 1) + h) * track skew + k * cylinder skew (DiskSim
//!   layout g1). A zone without an offset continues from the previous zone, with that zone's
//!   cylinder skew.
//! * Seek-first: a track's angle is that of the previous track in LBN order plus the previous
//!   track's skew: its zone's track skew when both are on one surface and in one group, otherwise
//!   its cylinder skew. The first track of a zone with an offset has that offset. Groups are
//!   counted from cylinder 0.
//! * A skew in whole sectors uses the zone's first sectors-per-track figure; whole revolutions are
//!   dropped.
//! * The left edge of sector k of n has the track's angle + k * floor(2^64 / n) / 2^64 revolutions.
//!   Skews are rounded down to 2^-64 revolution, so a track's angle is exact to 10^-12 revolution
//!   even at the end of a chain of 10^7 tracks.

mod alike;
mod divide;
mod error;
mod extents;
mod head_first;
mod holes;
mod moved;
mod order;
mod position;
mod seek_first;
mod slots;
mod steps;
mod zone_ends;
mod zones;

use crate::angle::Angle;
use crate::profile::{GeometrySpec, Layout, SectorAddress};

pub use alike::AlikeTracks;
pub use error::{GeometryError, GeometryWarning, NotASpare, warnings};
use extents::{Extent, Extents};
use moved::Moved;
use order::{Order, TrackSpot};
pub use position::Position;
use position::position;

/// A track in the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Cylinder.
    pub cylinder: u32,
    /// Surface.
    pub surface: u16,
    /// Physical sectors.
    pub spt: u32,
    /// Lowest LBN on it (ignoring remaps).
    pub first_lbn: u64,
    /// Number of LBNs on it (ignoring remaps), at least 1.
    pub lbns: u32,
    /// Angle of its physical sector 0.
    pub angle: Angle,
    /// Every sector holds an LBN, and none is remapped: sector k holds LBN `first_lbn` + k.
    pub plain: bool,
}

/// A run of consecutive LBNs on one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackRun {
    /// First LBN.
    pub lbn: u64,
    /// Number of LBNs.
    pub count: u32,
    /// Physical sectors from the first LBN's sector to the last's, both included, with holes.
    pub span: u32,
    /// Position of the first LBN.
    pub start: Position,
}

/// The compiled mapping of a drive.
#[derive(Clone, Debug)]
pub struct Geometry {
    surfaces: u16,
    cylinders: u32,
    group_tracks: Option<u32>,
    track_sectors: (u32, u32),
    order: Order,
    extents: Extents,
    moved: Moved,
}

impl Geometry {
    /// Compiles a mapping.
    ///
    /// # Errors
    /// The layout is impossible; the error names the zone, and the expected and actual figures.
    pub fn new(spec: &GeometrySpec) -> Result<Geometry, GeometryError> {
        zones::check(spec)?;
        let order = match spec.layout {
            Layout::HeadFirst(heads) => head_first::compile(spec, heads)?,
            Layout::SeekFirst { group_tracks, surfaces_alternate, .. } => {
                seek_first::compile(spec, seek_first::Serpentine { group_tracks, surfaces_alternate })?
            }
        };
        let holes = holes::compile(spec, &order)?;
        let mut extents = Extents::new(&order, &holes.extents, &[]);
        if extents.capacity() == 0 {
            return Err(GeometryError::NoCapacity);
        }
        let moved = Moved::compile(spec, &order, &extents, &holes)?;
        let moved_lbns = moved.lbns();
        if !moved_lbns.is_empty() {
            extents = Extents::new(&order, &holes.extents, &moved_lbns);
        }
        let group_tracks = match spec.layout {
            Layout::HeadFirst(_) => None,
            Layout::SeekFirst { group_tracks, .. } => Some(group_tracks),
        };
        let spt = order.shapes.iter().map(|s| s.spt.get() as u32);
        let track_sectors = (spt.clone().min().unwrap_or(0), spt.max().unwrap_or(0));
        let GeometrySpec { surfaces, cylinders, .. } = *spec;
        Ok(Geometry { surfaces, cylinders, group_tracks, track_sectors, order, extents, moved })
    }

    /// Returns the number of usable sectors, which is one more than the highest LBN.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.extents.capacity()
    }

    /// Returns the position of `lbn`; `None` beyond the capacity.
    #[inline]
    pub fn locate(&self, lbn: u64) -> Option<Position> {
        if lbn >= self.capacity() {
            return None;
        }
        let extent = &self.extents.starting_with(lbn)[0];
        if extent.is_moved() {
            return self.moved.position_of(lbn);
        }
        let (spot, sector) = self.natural(extent, lbn);
        Some(position(&spot, sector as u32, extent.push))
    }

    /// Returns the LBN of a physical sector; `None` for holes and nonexistent sectors.
    #[inline]
    pub fn lbn_at(&self, at: SectorAddress) -> Option<u64> {
        let track = self.order.track(at.cylinder, at.surface)?;
        if at.sector >= track.spt() {
            return None;
        }
        match self.extents.lbn_on(&track, at.sector) {
            Some((lbn, false)) => Some(lbn),
            // The sector is defective: its LBN is remapped.
            Some((_, true)) => None,
            None => self.moved.lbn_at(at),
        }
    }

    /// Returns the track of `lbn`, ignoring remaps.
    #[inline]
    pub fn track_of(&self, lbn: u64) -> Option<Track> {
        if lbn >= self.capacity() {
            return None;
        }
        let extents = self.extents.starting_with(lbn);
        let extent = &extents[0];
        let (spot, _) = self.natural(extent, lbn);
        let (first_lbn, lbns) = self.extents.lbns_on(&spot, Some((extent, &extents[1])));
        Some(track(&spot, first_lbn, lbns, (extent, &extents[1])))
    }

    /// Returns the track at a cylinder and surface; `None` when there is none or it holds no data.
    #[inline]
    pub fn track(&self, cylinder: u32, surface: u16) -> Option<Track> {
        self.track_on(&self.order.track(cylinder, surface)?)
    }

    /// Returns the contents of a track; `None` when it holds no data.
    #[inline]
    fn track_on(&self, spot: &TrackSpot<'_>) -> Option<Track> {
        let near = self.extents.on_track(spot);
        let (first_lbn, lbns) = self.extents.lbns_on(spot, near);
        if lbns == 0 {
            return None;
        }
        let first = match near {
            Some((extent, next)) if extent.lbn <= first_lbn && first_lbn < next.lbn => (extent, next),
            _ => {
                let extents = self.extents.starting_with(first_lbn);
                (&extents[0], &extents[1])
            }
        };
        Some(track(spot, first_lbn, lbns, first))
    }

    /// Returns the longest run of consecutive LBNs on one track from `lbn`, at most `max`. A
    /// remapped LBN is a run of its own. `None` beyond the capacity and when `max` is 0.
    #[inline]
    pub fn run_at(&self, lbn: u64, max: u32) -> Option<TrackRun> {
        if lbn >= self.capacity() || max == 0 {
            return None;
        }
        let extents = self.extents.starting_with(lbn);
        let extent = &extents[0];
        if extent.is_moved() {
            return Some(TrackRun { lbn, count: 1, span: 1, start: self.moved.position_of(lbn)? });
        }
        let (spot, sector) = self.natural(extent, lbn);
        let start = position(&spot, sector as u32, extent.push);
        let max = u64::from(max);
        let mut run = TrackRun { lbn, count: 0, span: 0, start };
        // Usually one extent suffices; slips on the track split it into several.
        let mut slot = extent.slot + (lbn - extent.lbn);
        let mut first_sector = sector;
        let mut count = 0;
        for pair in extents.windows(2) {
            let (extent, next) = (&pair[0], &pair[1]);
            let end_on_track = match spot.slot(spot.shape.spt.get(), i64::from(extent.shift)) {
                Ok(slot) | Err(slot) => slot,
            };
            let end = end_on_track.min(extent.slot + (next.lbn - extent.lbn));
            let taken = (end - slot).min(max - count);
            count += taken;
            run.span = (first_sector + taken - sector) as u32;
            if count == max || end == end_on_track || next.is_moved() || next.lbn == self.capacity() {
                break;
            }
            let (next_spot, next_sector) = self.order.at_slot(next.section(), next.slot, i64::from(next.shift));
            if next_spot.first_sector() != spot.first_sector() {
                break;
            }
            slot = next.slot;
            first_sector = next_sector;
        }
        run.count = count as u32;
        Some(run)
    }

    /// Iterates over the runs of `count` LBNs from `lbn`, in LBN order, as [`Geometry::run_at`]
    /// returns them. Ends at the capacity.
    pub fn runs(&self, lbn: u64, count: u64) -> impl Iterator<Item = TrackRun> + '_ {
        let end = lbn.saturating_add(count);
        let mut next = lbn;
        std::iter::from_fn(move || {
            let left = end.saturating_sub(next).min(u64::from(u32::MAX));
            let run = self.run_at(next, left as u32)?;
            next += u64::from(run.count);
            Some(run)
        })
    }

    /// Returns the number of data surfaces.
    #[inline]
    pub fn surfaces(&self) -> u16 {
        self.surfaces
    }

    /// Returns the number of cylinders.
    #[inline]
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Returns the number of neighbouring tracks of one surface before the next surface follows, in
    /// a seek-first layout; groups are counted from cylinder 0. `None` for head-first layouts.
    #[inline]
    pub fn group_tracks(&self) -> Option<u32> {
        self.group_tracks
    }

    /// Returns the number of physical sectors on the sparsest and on the densest track.
    #[inline]
    pub fn track_sectors(&self) -> (u32, u32) {
        self.track_sectors
    }

    /// Whether `lbn` is remapped.
    #[inline]
    pub fn is_remapped(&self, lbn: u64) -> bool {
        lbn < self.capacity() && self.extents.starting_with(lbn)[0].is_moved()
    }

    /// Returns the end (exclusive) of the range from `lbn` in which LBNs and physical sectors
    /// follow each other without holes or remaps: each sector of a track that lies wholly in the
    /// range holds an LBN. Returns `lbn` itself where single tracks would have to be examined, as
    /// when each has its own spares.
    pub fn unbroken_until(&self, lbn: u64) -> u64 {
        if lbn >= self.capacity() {
            return lbn;
        }
        let extents = self.extents.starting_with(lbn);
        let section = &self.order.sections[extents[0].section()];
        let mut sweeps =
            section.patterns.iter().flat_map(|p| &self.order.sweeps[p.first as usize..(p.first + p.sweeps) as usize]);
        let has_units = section.unit.is_some() || sweeps.any(|l| self.order.shapes[l.shape as usize].unit.is_some());
        if has_units || extents[0].is_moved() { lbn } else { extents[1].lbn }
    }

    /// Returns the size of the mapping in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Geometry>() + self.order.memory_bytes() + self.extents.memory_bytes() + self.moved.memory_bytes()
    }

    /// Returns the place of an LBN of an extent, ignoring remaps.
    #[inline]
    fn natural(&self, extent: &Extent, lbn: u64) -> (TrackSpot<'_>, u64) {
        self.order.at_slot(extent.section(), extent.slot + (lbn - extent.lbn), i64::from(extent.shift))
    }
}

#[inline]
fn track(spot: &TrackSpot<'_>, first_lbn: u64, lbns: u32, (extent, next): (&Extent, &Extent)) -> Track {
    // Consecutive slots on one track are consecutive sectors except for holes, and with as many
    // LBNs as sectors there are no holes.
    let one_extent = extent.lbn <= first_lbn && first_lbn + u64::from(lbns) <= next.lbn;
    Track {
        cylinder: spot.cylinder(),
        surface: spot.sweep.surface,
        spt: spot.spt(),
        first_lbn,
        lbns,
        angle: spot.angle() + extent.push,
        plain: lbns == spot.spt() && one_extent && !extent.is_moved(),
    }
}
