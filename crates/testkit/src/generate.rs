//! Random small drives of every layout and every kind of sparing, for property tests.
//!
//! Strategies give raw numbers and [`RawGeometry::build`] maps them to consistent ranges, so that a
//! failing case shrinks number by number.

use headtime_disk::Angle;
use headtime_disk::profile::{
    GeometrySpec, HeadOrder, Layout, SectorAddress, Skew, Slip, SpareUnit, Sparing, ZoneSpec,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::geometry::Reference;

/// Raw numbers of a zone.
#[derive(Clone, Debug)]
pub struct RawZone {
    cylinders: u32,
    gap: u32,
    spt: Vec<u32>,
    spt_by_surface: bool,
    offset: Option<(u32, bool)>,
    track_skew: (u32, bool),
    cylinder_skew: (u32, bool),
    reserved: u64,
    unit: u8,
    unit_width: u32,
    spares: u64,
    flags: (bool, bool, bool),
    slips: Vec<(u8, u64)>,
    defects: Vec<(u64, u64)>,
}

/// Raw numbers of a drive.
#[derive(Clone, Debug)]
pub struct RawGeometry {
    layout: u8,
    surfaces: u16,
    group_tracks: u32,
    by_surface: bool,
    zones: Vec<RawZone>,
    remaps: Vec<(u64, u64)>,
}

fn raw_zone() -> impl Strategy<Value = RawZone> {
    let shape = (1..12u32, 0..3u32, vec(1..14u32, 4), any::<bool>());
    let skew = || (any::<u32>(), any::<bool>());
    let skews = (proptest::option::of(skew()), skew(), skew());
    let reserved = prop_oneof![2 => Just(0u64), 1 => 0..60u64];
    let sparing = (reserved, 0..3u8, 1..5u32, 0..12u64, any::<(bool, bool, bool)>());
    let slips = prop_oneof![1 => vec((0..4u8, any::<u64>()), 0..1), 3 => vec((0..4u8, any::<u64>()), 0..8)];
    let defects = prop_oneof![3 => vec(any::<(u64, u64)>(), 0..1), 1 => vec(any::<(u64, u64)>(), 0..3)];
    (shape, skews, sparing, slips, defects).prop_map(|(shape, skews, sparing, slips, defects)| RawZone {
        cylinders: shape.0,
        gap: shape.1,
        spt: shape.2,
        spt_by_surface: shape.3,
        offset: skews.0,
        track_skew: skews.1,
        cylinder_skew: skews.2,
        reserved: sparing.0,
        unit: sparing.1,
        unit_width: sparing.2,
        spares: sparing.3,
        flags: sparing.4,
        slips,
        defects,
    })
}

/// A random small drive. Some are invalid, because slips outnumber spares or nothing is left for
/// data.
pub fn geometry() -> impl Strategy<Value = GeometrySpec> {
    let remaps = prop_oneof![2 => vec(any::<(u64, u64)>(), 0..1), 1 => vec(any::<(u64, u64)>(), 0..4)];
    (0..7u8, 1..5u16, 1..7u32, any::<bool>(), vec(raw_zone(), 1..5), remaps).prop_map(|raw| {
        let (layout, surfaces, group_tracks, by_surface, zones, remaps) = raw;
        RawGeometry { layout, surfaces, group_tracks, by_surface, zones, remaps }.build()
    })
}

impl RawGeometry {
    fn layout(&self) -> Layout {
        match self.layout {
            0 => Layout::HeadFirst(HeadOrder::Forward),
            1 => Layout::HeadFirst(HeadOrder::AlternatingInZone),
            2 => Layout::HeadFirst(HeadOrder::AlternatingOnDisk),
            n => Layout::SeekFirst {
                group_tracks: self.group_tracks,
                tracks_alternate: n & 1 == 0,
                surfaces_alternate: n & 2 == 0,
            },
        }
    }

    /// Builds a drive from the numbers.
    pub fn build(&self) -> GeometrySpec {
        let layout = self.layout();
        let head_first = matches!(layout, Layout::HeadFirst(_));
        let mut zones = Vec::new();
        let mut cylinders = 0;
        if !head_first && self.by_surface {
            // Every surface has its own zones, from the same numbers in rotated order.
            for surface in 0..self.surfaces {
                let mut next = u32::from(surface) % 3;
                for i in 0..self.zones.len() {
                    let raw = &self.zones[(i + usize::from(surface)) % self.zones.len()];
                    zones.push(self.zone(raw, next, Some(surface), i == 0));
                    next += raw.cylinders;
                }
                cylinders = cylinders.max(next);
            }
        } else {
            for (i, raw) in self.zones.iter().enumerate() {
                let first = cylinders + if head_first || i == 0 { raw.gap } else { 0 };
                zones.push(self.zone(raw, first, None, i == 0));
                cylinders = first + raw.cylinders;
            }
        }
        // A cylinder or two at the end may hold no data.
        cylinders += self.zones[0].gap;
        let mut spec = GeometrySpec { surfaces: self.surfaces, cylinders, layout, zones, remaps: Vec::new() };
        self.add_moves(&mut spec);
        spec
    }

    fn zone(&self, raw: &RawZone, first_cylinder: u32, surface: Option<u16>, first: bool) -> ZoneSpec {
        let head_first = self.layout < 3;
        let several = raw.spt_by_surface && surface.is_none();
        let spt: Vec<u32> = raw.spt[..if several { usize::from(self.surfaces) } else { 1 }].to_vec();
        let skew = |(n, in_sectors): (u32, bool)| match in_sectors {
            // Occasionally a whole revolution or more.
            true => Skew::Sectors(n % (spt[0] + 2)),
            false => Skew::Turn(Angle(u64::from(n) << 32 | u64::from(n))),
        };
        let width = if head_first { raw.unit_width } else { 1 + (raw.unit_width - 1) % self.group_tracks };
        let smallest = u64::from(*spt.iter().min().expect("at least one figure"));
        let (unit, spares) = match raw.unit {
            0 => (SpareUnit::Zone, raw.spares * 3),
            1 => (SpareUnit::Cylinders(width), raw.spares % (smallest * u64::from(width))),
            _ => (SpareUnit::Track, raw.spares % smallest),
        };
        let (at_front, slips_are_extra, push) = raw.flags;
        let last_cylinder = first_cylinder + raw.cylinders - 1;
        let slips = raw.slips.iter().map(|(kind, n)| {
            let surface = surface.unwrap_or((n / 64 % u64::from(self.surfaces)) as u16);
            let cylinder = first_cylinder + (n % u64::from(raw.cylinders)) as u32;
            let on_track = if several { spt[usize::from(surface)] } else { spt[0] };
            let sector = (n / 4096 % u64::from(on_track)) as u32;
            let tracks = u64::from(raw.cylinders) * u64::from(self.surfaces);
            match kind {
                0 if head_first => Slip::Index(n % (tracks * smallest)),
                1 if head_first => Slip::TrackIndex(n % tracks),
                2 => Slip::Track { cylinder, surface },
                _ => Slip::Sector(SectorAddress { cylinder, surface, sector }),
            }
        });
        ZoneSpec {
            first_cylinder,
            last_cylinder,
            surface,
            offset: raw.offset.map(skew).filter(|_| !first || raw.spt_by_surface),
            track_skew: skew(raw.track_skew),
            cylinder_skew: skew(raw.cylinder_skew),
            reserved_sectors: raw.reserved,
            sparing: Sparing { unit, spares, at_front, slips_are_extra, slips_push_skew: push && head_first },
            slips: slips.collect(),
            defects: Vec::new(),
            sectors_per_track: spt,
        }
    }

    /// Adds remaps and replaced defects, if there are spares for them.
    fn add_moves(&self, spec: &mut GeometrySpec) {
        let Ok(plain) = Reference::new(spec) else {
            return;
        };
        let mut spares = plain.spares();
        let mut free_lbns: Vec<u64> = (0..plain.sectors.len() as u64).collect();
        if matches!(spec.layout, Layout::HeadFirst(_)) {
            for (zone, raw) in self.zones.iter().enumerate() {
                let sectors = plain.zone_sectors(zone);
                for (bad, replacement) in &raw.defects {
                    let ours: Vec<usize> = (0..sectors.len()).filter(|i| spares.contains(&sectors[*i])).collect();
                    if ours.is_empty() {
                        continue;
                    }
                    let bad = (bad % sectors.len() as u64) as usize;
                    let to = ours[(replacement % ours.len() as u64) as usize];
                    let lbn = plain.sectors.iter().position(|s| s.at == sectors[bad]);
                    if let Some(lbn) = lbn {
                        let Some(i) = free_lbns.iter().position(|l| *l == lbn as u64) else {
                            continue;
                        };
                        free_lbns.remove(i);
                        spares.retain(|s| *s != sectors[to]);
                    }
                    spec.zones[zone].defects.push((bad as u64, to as u64));
                }
            }
        }
        for (lbn, to) in &self.remaps {
            if spares.is_empty() || free_lbns.is_empty() {
                return;
            }
            let lbn = free_lbns.swap_remove((lbn % free_lbns.len() as u64) as usize);
            let to = spares.swap_remove((to % spares.len() as u64) as usize);
            spec.remaps.push((lbn, to));
        }
    }
}
