//! Layout of a drawn drive: zones, skews, spares, slips.

use headtime_disk::Angle;
use headtime_disk::profile::{
    GeometrySpec, HeadOrder, Layout, SectorAddress, Skew, Slip, SpareUnit, Sparing, ZoneSpec,
};

use super::choose::Choose;
use super::electronics::Moving;

/// Fewest and most tracks of a drive: enough for a few zones, and few enough for hundreds of
/// drives.
const TRACKS: (u64, u64) = (15_000, 150_000);
/// Defects of a drive, at most: drives leave the factory with a few for each gigabyte.
const MOST_SLIPS: u64 = 60;

/// What all zones of a drive have in common.
struct Plan {
    layout: Layout,
    surfaces: u16,
    /// Tracks of a group; 1 in head-first layouts.
    group: u32,
    track_skew: SkewPlan,
    cylinder_skew: SkewPlan,
    spares: SparePlan,
    /// Sectors by which the tracks of each surface are shorter than the first surface's, in parts
    /// per thousand.
    shorter: Vec<u64>,
}

/// How a skew follows from zone to zone.
#[derive(Clone, Copy)]
enum SkewPlan {
    /// The same part of a revolution everywhere.
    Turn(f64),
    /// That part in whole sectors of each zone, rounded up.
    Sectors(f64),
}

impl SkewPlan {
    fn of(self, spt: u32) -> Skew {
        match self {
            SkewPlan::Turn(part) => Skew::Turn(Angle::from_turns(part)),
            SkewPlan::Sectors(part) => Skew::Sectors(((part * f64::from(spt)).ceil() as u32).min(spt - 1)),
        }
    }
}

/// Spare sectors of each zone.
#[derive(Clone, Copy)]
enum SparePlan {
    None,
    /// A part of the zone, in parts per ten thousand.
    Zone(u64),
    Cylinders(u32, u64),
    Track(u64),
}

/// Draws the layout of a drive with sectors of this size; `classes` gets what it has.
pub(super) fn geometry(
    choose: &mut Choose,
    moving: &Moving,
    sector_bytes: u32,
    classes: &mut Vec<&'static str>,
) -> GeometrySpec {
    let surfaces = choose.one(&[1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 10]) as u16;
    let layout = layout(choose, classes);
    let group = match layout {
        Layout::SeekFirst { group_tracks, .. } => group_tracks,
        Layout::HeadFirst(_) => 1,
    };
    if surfaces == 1 {
        classes.push("one surface");
    }
    let by_surface = group > 1 && surfaces > 1 && choose.chance(25);
    let uneven = surfaces > 1 && !by_surface && choose.chance(35);
    if uneven {
        classes.push("uneven heads");
    }
    let shorter = (0..surfaces).map(|s| if uneven && s > 0 { choose.whole(0, 30) } else { 0 }).collect();
    let (track_skew, cylinder_skew) = skews(choose, moving, group > 1, classes);
    let spares = spares(choose, group, classes);
    let plan = Plan { layout, surfaces, group, track_skew, cylinder_skew, spares, shorter };
    // Zones end where groups do, or anywhere.
    let aligned = group > 1 && choose.chance(60);
    let tracks = choose.log(TRACKS.0, TRACKS.1);
    let least = 3 * u64::from(group) * u64::from(surfaces);
    let cylinders = (tracks.max(3 * least) / u64::from(surfaces)) as u32;
    let count = choose.whole(3, 30).min(u64::from(cylinders / (2 * group).max(60))).max(2) as u32;
    let (outer, inner) = sectors_per_track(choose, sector_bytes);
    let mut zones = Vec::new();
    let every = if by_surface { 0..surfaces } else { 0..1 };
    for surface in every {
        let ends = ends(choose, cylinders, count, if aligned { group } else { 1 });
        let mut first = 0;
        for (i, end) in ends.iter().enumerate() {
            let at = i as f64 / (ends.len() - 1).max(1) as f64;
            let spt = outer - (f64::from(outer - inner) * at.powf(1.5)) as u32;
            let place = (first, *end, by_surface.then_some(surface));
            zones.push(zone(choose, &plan, place, spt));
            first = end + 1;
        }
    }
    if by_surface {
        classes.push("zones of each surface");
    }
    if choose.chance(25) {
        zones[0].reserved_sectors = choose.whole(1, 5_000);
        classes.push("reserved front");
    }
    let cylinders = zones.iter().map(|z| z.last_cylinder).max().unwrap_or(0) + 1;
    slips(choose, &mut zones, surfaces, classes);
    GeometrySpec { surfaces, cylinders, layout: plan.layout, zones, remaps: Vec::new() }
}

fn layout(choose: &mut Choose, classes: &mut Vec<&'static str>) -> Layout {
    if choose.chance(40) {
        let (name, order) = choose.one(&[
            ("F", HeadOrder::Forward),
            ("A", HeadOrder::AlternatingInZone),
            ("A-disk", HeadOrder::AlternatingOnDisk),
        ]);
        classes.push(name);
        return Layout::HeadFirst(order);
    }
    let group_tracks = match choose.whole(0, 3) {
        0 => choose.one(&[50, 64, 100, 256, 512, 600]) as u32,
        1 => choose.whole(40, 120) as u32,
        _ => choose.whole(60, 900) as u32,
    };
    let (name, tracks_alternate, surfaces_alternate) =
        choose.one(&[("FF", false, false), ("FA", false, true), ("AF", true, false), ("AA", true, true)]);
    classes.push(name);
    Layout::SeekFirst { group_tracks, tracks_alternate, surfaces_alternate }
}

/// Skews that cover the moves, as makers choose them, or any.
fn skews(
    choose: &mut Choose,
    moving: &Moving,
    serpentine: bool,
    classes: &mut Vec<&'static str>,
) -> (SkewPlan, SkewPlan) {
    let (seek, switch) = (moving.shortest_us as f64, moving.head_switch_us as f64);
    let (to_track, to_cylinder) = if serpentine { (seek, switch.max(seek)) } else { (switch, seek.max(switch)) };
    let covers = |us: f64, more: f64| ((us + more) / moving.period_us()).min(0.95);
    let (track, cylinder) = match choose.whole(0, 9) {
        0..2 => {
            classes.push("any skews");
            (choose.real(0.02, 0.95), choose.real(0.02, 0.95))
        }
        2..5 => {
            classes.push("equal skews");
            let both = covers(to_track.max(to_cylinder), choose.real(200.0, 700.0));
            (both, both)
        }
        _ => {
            classes.push("skews that cover the moves");
            let more = choose.real(200.0, 700.0);
            (covers(to_track, more), covers(to_cylinder, more + choose.real(0.0, 300.0)))
        }
    };
    match choose.chance(50) {
        true => (SkewPlan::Turn(track), SkewPlan::Turn(cylinder)),
        false => (SkewPlan::Sectors(track), SkewPlan::Sectors(cylinder)),
    }
}

fn spares(choose: &mut Choose, group: u32, classes: &mut Vec<&'static str>) -> SparePlan {
    let (name, plan) = match choose.whole(0, 9) {
        0..3 => ("no spares", SparePlan::None),
        3..6 => ("spares per zone", SparePlan::Zone(choose.whole(2, 60))),
        6..8 => {
            let width = choose.whole(1, u64::from(group.clamp(4, 16))) as u32;
            ("spares per cylinders", SparePlan::Cylinders(width, choose.whole(4, 40)))
        }
        _ => ("spares per track", SparePlan::Track(choose.whole(1, 6))),
    };
    classes.push(name);
    plan
}

/// Sectors of the outermost and the innermost tracks.
fn sectors_per_track(choose: &mut Choose, sector_bytes: u32) -> (u32, u32) {
    let outer = if sector_bytes == 512 { choose.log(250, 2_700) } else { choose.log(90, 600) } as u32;
    (outer, (f64::from(outer) * choose.real(0.45, 0.75)) as u32)
}

/// Last cylinders of zones, each a multiple of `unit` cylinders wide.
fn ends(choose: &mut Choose, cylinders: u32, count: u32, unit: u32) -> Vec<u32> {
    let width = cylinders / count;
    let mut ends: Vec<u32> = (1..count)
        .map(|i| {
            let by = choose.real(-0.2, 0.2) * f64::from(width);
            let end = (i * width).saturating_add_signed(by as i32);
            (end / unit * unit).max(unit)
        })
        .collect();
    ends.push((cylinders / unit).max(1) * unit);
    ends.sort_unstable();
    ends.dedup();
    ends.iter().map(|end| end - 1).collect()
}

fn zone(choose: &mut Choose, plan: &Plan, (first, last, surface): (u32, u32, Option<u16>), spt: u32) -> ZoneSpec {
    let per_surface: Vec<u32> = match plan.shorter.iter().any(|s| *s > 0) {
        true => plan.shorter.iter().map(|s| spt - (u64::from(spt) * s / 1_000) as u32).collect(),
        false => vec![spt],
    };
    let (unit, spares) = match plan.spares {
        SparePlan::None => (SpareUnit::Zone, 0),
        SparePlan::Zone(parts) => {
            let surfaces = if surface.is_some() { 1 } else { u64::from(plan.surfaces) };
            (SpareUnit::Zone, u64::from(last - first + 1) * surfaces * u64::from(spt) * parts / 10_000)
        }
        SparePlan::Cylinders(width, spares) => (SpareUnit::Cylinders(width), spares),
        SparePlan::Track(spares) => (SpareUnit::Track, spares),
    };
    let sparing = match spares {
        0 => Sparing::NONE,
        _ => Sparing { unit, spares, at_front: choose.chance(15), slips_are_extra: false, slips_push_skew: false },
    };
    // Each zone begins at an angle of its own, or where the tracks before it lead.
    let own_offset = plan.group == 1 && first > 0 && choose.chance(50);
    ZoneSpec {
        first_cylinder: first,
        last_cylinder: last,
        surface,
        offset: own_offset.then(|| Skew::Turn(Angle::from_turns(choose.part()))),
        track_skew: plan.track_skew.of(spt),
        cylinder_skew: plan.cylinder_skew.of(spt),
        reserved_sectors: 0,
        sparing,
        slips: Vec::new(),
        defects: Vec::new(),
        sectors_per_track: per_surface,
    }
}

/// Bad sectors and tracks that the order of sectors skips.
fn slips(choose: &mut Choose, zones: &mut [ZoneSpec], surfaces: u16, classes: &mut Vec<&'static str>) {
    let sectors = if choose.chance(50) { choose.log(3, MOST_SLIPS) } else { 0 };
    let tracks = if choose.chance(20) { choose.whole(1, 8) } else { 0 };
    if sectors > 0 {
        classes.push("slips");
    }
    if tracks > 0 {
        classes.push("skipped tracks");
    }
    for i in 0..sectors + tracks {
        let z = choose.whole(0, zones.len() as u64 - 1) as usize;
        let zone = &mut zones[z];
        let surface = zone.surface.unwrap_or(choose.whole(0, u64::from(surfaces) - 1) as u16);
        let cylinder = choose.whole(u64::from(zone.first_cylinder), u64::from(zone.last_cylinder)) as u32;
        zone.slips.push(match i < sectors {
            true => {
                let sector = choose.whole(0, u64::from(zone.spt(surface)) - 1) as u32;
                Slip::Sector(SectorAddress { cylinder, surface, sector })
            }
            false => Slip::Track { cylinder, surface },
        });
        // Makers leave room for what the factory finds: a zone's spares, or its end.
        if zone.sparing.unit != SpareUnit::Zone || i >= sectors {
            zone.sparing.slips_are_extra = true;
        }
    }
}
