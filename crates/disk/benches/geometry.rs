//! LBN to position and back, at random places, on three kinds of drive. Divan prints the time of
//! one pass over `LOOKUPS` places; the goal is 40 ns per lookup. Run at a small size by `cargo test
//! --benches`.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use headtime_disk::profile::{
    GeometrySpec, HeadOrder, Layout, SectorAddress, Skew, Slip, SpareUnit, Sparing, ZoneSpec,
};
use headtime_disk::{Angle, Geometry, Position};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const LOOKUPS: usize = 10_000;

fn main() {
    divan::main();
}

/// Returns a random number below `end`.
fn below(rng: &mut Xoshiro256PlusPlus, end: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(end)) >> 64) as u64
}

fn zone(first_cylinder: u32, last_cylinder: u32, surface: Option<u16>, spt: u32) -> ZoneSpec {
    ZoneSpec {
        first_cylinder,
        last_cylinder,
        surface,
        sectors_per_track: vec![spt],
        offset: None,
        track_skew: Skew::Turn(Angle::fraction(1, 7)),
        cylinder_skew: Skew::Turn(Angle::fraction(1, 5)),
        reserved_sectors: 0,
        sparing: Sparing::NONE,
        slips: Vec::new(),
        defects: Vec::new(),
    }
}

/// Returns a head-first drive with the given number of slipped sectors per zone.
fn head_first(
    surfaces: u16,
    cylinders: u32,
    zones: u32,
    spt: (u32, u32),
    slips: u64,
    order: HeadOrder,
) -> GeometrySpec {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let zones = (0..zones).map(|i| {
        let first = cylinders * i / zones;
        let last = cylinders * (i + 1) / zones - 1;
        let mut z = zone(first, last, None, spt.0 - (spt.0 - spt.1) * i / zones);
        let sectors = u64::from(last - first + 1) * u64::from(surfaces) * u64::from(z.sectors_per_track[0]);
        z.sparing = Sparing { unit: SpareUnit::Zone, spares: 2 * slips, ..Sparing::NONE };
        z.sparing.slips_are_extra = false;
        z.slips = (0..slips).map(|_| Slip::Index(below(&mut rng, sectors))).collect();
        z
    });
    GeometrySpec { surfaces, cylinders, layout: Layout::HeadFirst(order), zones: zones.collect(), remaps: Vec::new() }
}

/// 9 GB: 6 surfaces, 10,042 cylinders, 24 zones of 334 to 229 sectors per track, like the Quantum
/// Atlas 10K.
fn atlas_10k() -> GeometrySpec {
    head_first(6, 10_042, 24, (334, 229), 45, HeadOrder::AlternatingInZone)
}

/// 9 GB: 12 surfaces, 6,962 cylinders, 7 zones, hundreds of slips in each, like the Seagate Cheetah
/// 9LP.
fn cheetah_9lp() -> GeometrySpec {
    head_first(12, 6_962, 7, (254, 167), 400, HeadOrder::Forward)
}

/// 20 TB: 20 surfaces of 460,000 tracks in groups of 46 (10^4 groups), each surface with its own 30
/// zones and slips.
fn serpentine_20_tb() -> GeometrySpec {
    let (surfaces, cylinders, zones) = (20u16, 460_000u32, 30u32);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut all = Vec::new();
    for surface in 0..surfaces {
        let mut first = 0;
        for i in 0..zones {
            let wobble = below(&mut rng, 2_000) as u32;
            let last = if i + 1 == zones { cylinders - 1 } else { cylinders / zones * (i + 1) - wobble };
            let spt = 5_600 - 90 * i + below(&mut rng, 60) as u32;
            let mut z = zone(first, last, Some(surface), spt);
            for _ in 0..20 {
                let cylinder = first + below(&mut rng, u64::from(last - first)) as u32;
                let sector = below(&mut rng, u64::from(spt)) as u32;
                z.slips.push(Slip::Sector(SectorAddress { cylinder, surface, sector }));
            }
            all.push(z);
            first = last + 1;
        }
    }
    GeometrySpec {
        surfaces,
        cylinders,
        layout: Layout::SeekFirst { group_tracks: 46, tracks_alternate: true, surfaces_alternate: false },
        zones: all,
        remaps: Vec::new(),
    }
}

/// Returns a drive by its name in the results.
fn drive(name: &str) -> Geometry {
    let spec = match name {
        "atlas_10k" => atlas_10k(),
        "cheetah_9lp" => cheetah_9lp(),
        "serpentine_20_tb" => serpentine_20_tb(),
        other => panic!("no drive {other}"),
    };
    Geometry::new(&spec).expect("a drive that works")
}

const DRIVES: [&str; 3] = ["atlas_10k", "cheetah_9lp", "serpentine_20_tb"];

fn random_lbns(geometry: &Geometry) -> Vec<u64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    (0..LOOKUPS).map(|_| below(&mut rng, geometry.capacity())).collect()
}

#[divan::bench(args = DRIVES)]
fn locate(bencher: Bencher<'_, '_>, name: &str) {
    let geometry = drive(name);
    let lbns = random_lbns(&geometry);
    bencher.counter(ItemsCount::new(LOOKUPS)).bench_local(|| {
        for lbn in &lbns {
            black_box(geometry.locate(black_box(*lbn)));
        }
    });
}

#[divan::bench(args = DRIVES)]
fn lbn_at(bencher: Bencher<'_, '_>, name: &str) {
    let geometry = drive(name);
    let places: Vec<SectorAddress> =
        random_lbns(&geometry).iter().filter_map(|l| geometry.locate(*l)).map(|p: Position| p.address()).collect();
    bencher.counter(ItemsCount::new(LOOKUPS)).bench_local(|| {
        for at in &places {
            black_box(geometry.lbn_at(black_box(*at)));
        }
    });
}

#[divan::bench(args = DRIVES)]
fn run_at(bencher: Bencher<'_, '_>, name: &str) {
    let geometry = drive(name);
    let lbns = random_lbns(&geometry);
    bencher.counter(ItemsCount::new(LOOKUPS)).bench_local(|| {
        for lbn in &lbns {
            black_box(geometry.run_at(black_box(*lbn), 8));
        }
    });
}

#[divan::bench(args = DRIVES)]
fn track_of(bencher: Bencher<'_, '_>, name: &str) {
    let geometry = drive(name);
    let lbns = random_lbns(&geometry);
    bencher.counter(ItemsCount::new(LOOKUPS)).bench_local(|| {
        for lbn in &lbns {
            black_box(geometry.track_of(black_box(*lbn)));
        }
    });
}
