//! Small synthetic drives for tests.

use std::collections::BTreeMap;

use headtime_disk::Dur;
use headtime_disk::profile::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A number from `from` to `to`, inclusive.
pub fn between(rng: &mut Xoshiro256PlusPlus, from: u64, to: u64) -> u64 {
    from + rng.next_u64() % (to - from + 1)
}

/// A generator for one case of a test.
pub fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Two zones of plain cylinders in a given layout.
pub fn small_geometry(layout: Layout, surfaces: u16, rng: &mut Xoshiro256PlusPlus) -> GeometrySpec {
    let zone = |first, last, spt: u64, rng: &mut Xoshiro256PlusPlus| ZoneSpec {
        first_cylinder: first,
        last_cylinder: last,
        surface: None,
        sectors_per_track: vec![spt as u32],
        offset: match layout {
            Layout::HeadFirst(_) => Some(Skew::Sectors(between(rng, 0, spt - 1) as u32)),
            _ => None,
        },
        track_skew: Skew::Sectors(between(rng, 0, spt / 2) as u32),
        cylinder_skew: Skew::Turn(headtime_disk::Angle(rng.next_u64() >> 1)),
        reserved_sectors: 0,
        sparing: Sparing::NONE,
        slips: vec![],
        defects: vec![],
    };
    let (a, b) = (between(rng, 20, 60), between(rng, 10, 40));
    GeometrySpec {
        surfaces,
        cylinders: 40,
        layout,
        zones: vec![zone(0, 21, a, rng), zone(22, 39, b, rng)],
        remaps: vec![],
    }
}

/// All layouts.
pub fn layouts() -> Vec<Layout> {
    let mut all = vec![
        Layout::HeadFirst(HeadOrder::Forward),
        Layout::HeadFirst(HeadOrder::AlternatingInZone),
        Layout::HeadFirst(HeadOrder::AlternatingOnDisk),
    ];
    for (tracks_alternate, surfaces_alternate) in [(false, false), (false, true), (true, false), (true, true)] {
        all.push(Layout::SeekFirst { group_tracks: 7, tracks_alternate, surfaces_alternate });
    }
    all
}

/// A drive without cache and without noise over a geometry; its speed, seeks, bus and overheads are
/// synthetic.
pub fn plain_profile(geometry: GeometrySpec, rng: &mut Xoshiro256PlusPlus) -> Profile {
    let speeds = [(5_400, 1), (7_200, 1), (10_025, 1), (15_000, 1), (72_471, 10)];
    let mut us = |from, to| Dur::from_us(between(rng, from, to));
    let mut seek = vec![(1, us(300, 1_300))];
    let mut last = seek[0].1;
    for d in [2u32, 3, 7, 20, 39] {
        last = last.saturating_add_signed(us(0, 900).0 as i64 - 100_000);
        seek.push((d, last));
    }
    let mut by_last = |to| ByLast { after_read: us(0, to), after_write: us(0, to) };
    let overheads = Overheads {
        read_hit: by_last(300),
        read_miss: by_last(600),
        write_hit: by_last(300),
        write_miss: by_last(600),
        read_completion: by_last(60).after_read,
        write_completion: by_last(60).after_read,
        data_preparation: by_last(30).after_read,
        reselect: Dur::ZERO,
        ..Overheads::default()
    };
    let head_switch = us(100, 1_000);
    let cache = CacheSpec { segments: 0, ..plain_cache() };
    Profile {
        name: "made-up".into(),
        title: "a made-up drive for tests".into(),
        year: None,
        synthesised: Some("made up".into()),
        sources: BTreeMap::new(),
        sector_bytes: 512,
        stated_sectors: None,
        mechanics: MechanicsSpec {
            rpm: speeds[between(rng, 0, speeds.len() as u64 - 1) as usize],
            seek,
            write_seek: None,
            head_switch,
            write_settle_ns: between(rng, 0, 700_000) as i64 - 100_000,
            read_on_arrival: between(rng, 0, 1) == 1,
            write_on_arrival: false,
            keep_passing: false,
        },
        electronics: Electronics {
            bus: BusSpec {
                read_block_ps: between(rng, 5_000, 120_000_000),
                write_block_ps: between(rng, 5_000, 120_000_000),
                hold_for_reads: true,
                ..BusSpec::default()
            },
            overheads,
            cache,
            queue: QueueSpec { depth: 32, order: FirmwareOrder::Fcfs, ..QueueSpec::default() },
        },
        noise: NoiseSpec::default(),
        known: Known::default(),
        rig: None,
        service_times: Vec::new(),
        geometry,
    }
}

/// The first cylinders of a drive, as a drive: real figures, few enough sectors for a full read in
/// a real-time test.
pub fn cut(mut p: Profile, cylinders: u32) -> Profile {
    let g = &mut p.geometry;
    g.cylinders = cylinders.min(g.cylinders);
    g.zones.retain(|z| z.first_cylinder < cylinders);
    for z in &mut g.zones {
        z.last_cylinder = z.last_cylinder.min(cylinders - 1);
        // They refer to the whole zone.
        z.slips.clear();
        z.defects.clear();
        z.sparing = Sparing::NONE;
    }
    g.remaps.clear();
    p.stated_sectors = None;
    // Measured on the whole drive.
    p.service_times.clear();
    p.name = format!("{}-{cylinders}", p.name);
    p.title = format!("{}, its first {cylinders} cylinders", p.title);
    p
}

/// A small cache without special behaviour.
pub fn plain_cache() -> CacheSpec {
    CacheSpec {
        segments: 4,
        segment_sectors: 128,
        prefetch: Prefetch::TrackAhead,
        combine_sequential_writes: true,
        ..CacheSpec::default()
    }
}

/// The same drive with what [`plain_profile`] leaves out: large sectors, writes that begin on
/// arrival, and all overheads of a drive alone on its bus.
pub fn with_all_overheads(mut p: Profile, rng: &mut Xoshiro256PlusPlus) -> Profile {
    p.sector_bytes = if between(rng, 0, 1) == 0 { 512 } else { 4096 };
    p.mechanics.write_on_arrival = between(rng, 0, 1) == 1;
    p.electronics.bus.arbitration = Dur::from_us(between(rng, 0, 20));
    let o = &mut p.electronics.overheads;
    o.reselect = Dur::from_us(between(rng, 0, 200));
    o.per_request = Dur::from_us(between(rng, 0, 50));
    o.minimum_seek = Dur::from_us(between(rng, 0, 900));
    p
}
