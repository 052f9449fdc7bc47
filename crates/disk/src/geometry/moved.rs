//! Relocated LBNs: remaps, and DiskSim's replaced defects.

use std::collections::BTreeMap;

use super::error::{GeometryError, NotASpare};
use super::extents::Extents;
use super::holes::{Holes, sector_by_index};
use super::order::Order;
use super::position::{Position, position};
use super::slots;
use crate::profile::{GeometrySpec, SectorAddress};

/// All relocated LBNs, found by LBN or by place.
#[derive(Clone, Debug, Default)]
pub(super) struct Moved {
    by_lbn: Vec<(u64, Position)>,
    by_place: Vec<(SectorAddress, u64)>,
}

impl Moved {
    /// Checks and collects them; `extents` are those before relocation.
    pub(super) fn compile(
        spec: &GeometrySpec,
        order: &Order,
        extents: &Extents,
        holes: &Holes,
    ) -> Result<Moved, GeometryError> {
        let mut moved = Collector { order, extents, holes, by_lbn: Vec::new(), by_place: BTreeMap::new() };
        for (zone, z) in spec.zones.iter().enumerate() {
            for (bad, replacement) in z.defects.iter().copied() {
                let by_index = |index| {
                    sector_by_index(spec, order, zone, index)?.ok_or_else(|| GeometryError::DefectOutsideZone {
                        zone,
                        bad,
                        replacement,
                        sectors: slots::zone_size(z, spec.surfaces).1,
                    })
                };
                let from = address(order, by_index(bad)?);
                let to = address(order, by_index(replacement)?);
                // DiskSim: a defect replaced by itself changes nothing, nor does a defect without
                // data.
                let Some(lbn) = natural_lbn(order, extents, from).filter(|_| from != to) else {
                    continue;
                };
                moved.add(lbn, to).map_err(|why| GeometryError::Replacement { zone, bad, replacement, why })?;
            }
        }
        for (lbn, to) in spec.remaps.iter().copied() {
            if lbn >= extents.capacity() {
                return Err(GeometryError::RemapBeyondCapacity { lbn, capacity: extents.capacity() });
            }
            moved.add(lbn, to).map_err(|why| GeometryError::RemapTarget { lbn, to, why })?;
        }
        let Collector { mut by_lbn, by_place, .. } = moved;
        by_lbn.sort_unstable_by_key(|m| m.0);
        if let Some(pair) = by_lbn.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(GeometryError::RemappedTwice { lbn: pair[0].0 });
        }
        Ok(Moved { by_lbn, by_place: by_place.into_iter().collect() })
    }

    /// Returns the LBNs in ascending order.
    pub(super) fn lbns(&self) -> Vec<u64> {
        self.by_lbn.iter().map(|m| m.0).collect()
    }

    /// Returns the position of a relocated LBN.
    #[cold]
    pub(super) fn position_of(&self, lbn: u64) -> Option<Position> {
        let i = self.by_lbn.binary_search_by_key(&lbn, |m| m.0).ok()?;
        Some(self.by_lbn[i].1)
    }

    /// Returns the LBN that was relocated to a place.
    pub(super) fn lbn_at(&self, at: SectorAddress) -> Option<u64> {
        let i = self.by_place.binary_search_by_key(&at, |m| m.0).ok()?;
        Some(self.by_place[i].1)
    }

    /// Returns the size of the tables in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.by_lbn) + size_of_val(&*self.by_place)
    }
}

/// Relocated LBNs under construction.
struct Collector<'a> {
    order: &'a Order,
    /// The drive's extents before relocation.
    extents: &'a Extents,
    holes: &'a Holes,
    by_lbn: Vec<(u64, Position)>,
    by_place: BTreeMap<SectorAddress, u64>,
}

impl Collector<'_> {
    fn add(&mut self, lbn: u64, to: SectorAddress) -> Result<(), NotASpare> {
        let track =
            self.order.track(to.cylinder, to.surface).filter(|t| to.sector < t.spt()).ok_or(NotASpare::Missing)?;
        if let Some((holds, _)) = self.extents.lbn_on(&track, to.sector) {
            return Err(NotASpare::HoldsData(holds));
        }
        let first_sector = track.first_sector();
        if self.holes.is_slipped(first_sector + u64::from(to.sector)) {
            return Err(NotASpare::Slipped);
        }
        if let Some(taken) = self.by_place.insert(to, lbn) {
            return Err(NotASpare::Taken(taken));
        }
        let push = self.holes.push_at(track.shape.zone, first_sector);
        self.by_lbn.push((lbn, position(&track, to.sector, push)));
        Ok(())
    }
}

fn address(order: &Order, sector: u64) -> SectorAddress {
    let (spot, sector) = order.at_sector(sector);
    SectorAddress { cylinder: spot.cylinder(), surface: spot.sweep.surface, sector: sector as u32 }
}

fn natural_lbn(order: &Order, extents: &Extents, at: SectorAddress) -> Option<u64> {
    let track = order.track(at.cylinder, at.surface)?;
    extents.lbn_on(&track, at.sector).map(|found| found.0)
}
