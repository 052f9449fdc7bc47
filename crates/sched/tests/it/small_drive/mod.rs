//! A small drive of any layout, for comparisons with a loop over every sector.

use headtime_disk::profile::{GeometrySpec, Layout, SectorAddress, Skew, Slip, SpareUnit, Sparing};
use headtime_disk::{Dur, Model, Rotation};
use headtime_testkit::profiles::{between, plain_profile, rng, small_geometry, with_all_overheads};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A small drive; one in three has slipped and remapped sectors, and spares.
pub fn drive(layout: Layout, seed: u64) -> (Model, Xoshiro256PlusPlus) {
    let mut rng = rng(seed);
    let surfaces = between(&mut rng, 1, 4) as u16;
    let mut geometry = small_geometry(layout, surfaces, &mut rng);
    if between(&mut rng, 0, 2) == 0 {
        add_holes(&mut geometry, &mut rng);
    }
    let profile = plain_profile(geometry, &mut rng);
    let mut profile = if between(&mut rng, 0, 1) == 0 { profile } else { with_all_overheads(profile, &mut rng) };
    if between(&mut rng, 0, 2) > 0 {
        // Skewed as drives are: the next track's first sector passes when the arm has just moved
        // there.
        let (num, den) = profile.mechanics.rpm;
        let rotation = Rotation::from_rpm(num, den).unwrap();
        let moved = profile.mechanics.head_switch.max(profile.mechanics.seek[0].1) + Dur::from_us(50);
        for zone in &mut profile.geometry.zones {
            zone.track_skew = Skew::Turn(rotation.angle_after(moved));
            zone.cylinder_skew = zone.track_skew;
        }
    }
    (Model::new(&profile).unwrap(), rng)
}

fn add_holes(geometry: &mut GeometrySpec, rng: &mut Xoshiro256PlusPlus) {
    for zone in &mut geometry.zones {
        zone.sparing = Sparing { spares: 3, unit: SpareUnit::Track, slips_are_extra: false, ..Sparing::NONE };
        let cylinder = between(rng, u64::from(zone.first_cylinder), u64::from(zone.last_cylinder)) as u32;
        zone.slips = (7..9).map(|sector| Slip::Sector(SectorAddress { cylinder, surface: 0, sector })).collect();
    }
    // To the last sector of a track without slips.
    let cylinder = (3..20).find(|c| !geometry.zones[0].slips.iter().any(|s| at_cylinder(s, *c))).unwrap();
    let sector = geometry.zones[0].sectors_per_track[0] - 1;
    geometry.remaps = vec![(between(rng, 5, 200), SectorAddress { cylinder, surface: 0, sector })];
}

fn at_cylinder(slip: &Slip, cylinder: u32) -> bool {
    matches!(slip, Slip::Sector(at) if at.cylinder == cylinder)
}
