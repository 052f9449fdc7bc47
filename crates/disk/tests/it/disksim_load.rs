//! The four drives whose DiskSim files accompany the measured traces load, with the expected
//! figures.
//!
//! The files are not part of this project. They are expected in `$HEADTIME_DATA/disksim`, else in
//! `../shared/data/disksim` beside the workspace; without them the tests report that and pass.

// The crate has no files; its tests read some.
#![allow(clippy::disallowed_methods)]

use std::path::PathBuf;

use headtime_disk::Dur;
use headtime_disk::profile::{self, ByLast, HeadOrder, Layout, Loaded, Prefetch, Skew, Slip, SpareUnit, WarningKind};

fn folder() -> Option<PathBuf> {
    let root = match std::env::var_os("HEADTIME_DATA") {
        Some(data) => PathBuf::from(data),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let folder = root.join("disksim");
    folder.is_dir().then_some(folder)
}

/// Loads one drive; `None`, with a message, without the files.
fn drive(name: &str) -> Option<Loaded> {
    let Some(folder) = folder() else {
        println!("skipped: no DiskSim files (set HEADTIME_DATA to the folder that holds disksim/)");
        return None;
    };
    let path = folder.join(format!("{name}.parv"));
    let read = |p: &str| std::fs::read_to_string(p).map_err(|e| e.to_string());
    match profile::load(&path.to_string_lossy(), &read) {
        Ok(loaded) => Some(loaded),
        Err(e) => panic!("{e}"),
    }
}

fn us(x: u64) -> Dur {
    Dur::from_us(x)
}

#[test]
fn atlas_10k_loads_with_its_zones_overheads_and_slow_bus() {
    let Some(Loaded { profile: p, warnings }) = drive("atlas10k") else {
        return;
    };
    assert_eq!((p.name.as_str(), p.title.as_str()), ("atlas10k", "QUANTUM_TORNADO_validate"));
    assert_eq!((p.geometry.surfaces, p.geometry.cylinders), (6, 10_042));
    assert_eq!(p.geometry.layout, Layout::HeadFirst(HeadOrder::AlternatingInZone));
    assert_eq!(p.geometry.zones.len(), 24);
    let z = &p.geometry.zones[0];
    assert_eq!((z.track_skew, z.cylinder_skew), (Skew::Sectors(63), Skew::Sectors(113)));
    assert_eq!((z.sparing.unit, z.sparing.spares), (SpareUnit::Zone, 89));
    assert_eq!(z.slips[0], Slip::Index(55_017));
    assert_eq!(z.usable_sectors(6), 867_643);
    assert_eq!(p.geometry.usable_sectors(), 17_966_953);
    assert_eq!(p.mechanics.rpm, (10_025, 1));
    assert_eq!(p.mechanics.seek.len(), 138);
    assert_eq!(p.mechanics.seek[0], (1, us(1245)));
    assert_eq!((p.mechanics.head_switch, p.mechanics.write_settle_ns), (us(176), 487_000));
    assert!(p.mechanics.read_on_arrival);
    let e = &p.electronics;
    assert_eq!((e.bus.read_block_ps, e.bus.write_block_ps), (99_000_000, 99_000_000));
    let write_hit = ByLast { after_read: us(186), after_write: us(189) };
    assert_eq!(e.overheads.write_hit, write_hit);
    assert_eq!((e.cache.segments, e.cache.segment_sectors), (10, 374));
    assert_eq!(e.cache.prefetch, Prefetch::TrackAhead);
    assert!(e.cache.write_back && e.cache.keep_delivered && e.cache.read_hits_on_written);
    assert_eq!(e.queue.depth, 1);
    // Its file states 17,938,986 sectors; its layout has more.
    assert!(
        warnings.iter().any(|w| matches!(w.kind, WarningKind::Capacity { stated: 17_938_986, computed: 17_966_953 })
            && w.at.to_string().ends_with("atlas10k.model:4"))
    );
}

#[test]
fn atlas_iii_loads_with_its_unsorted_slips_put_in_order() {
    let Some(Loaded { profile: p, warnings }) = drive("atlas_III") else {
        return;
    };
    assert_eq!(p.name, "atlas_iii");
    let z = &p.geometry.zones[0];
    assert_eq!((z.reserved_sectors, z.sparing.spares), (128_000, 0));
    assert_eq!(z.usable_sectors(10), 1_448_956);
    assert_eq!(p.geometry.usable_sectors(), 17_797_944);
    let slips = |i: usize| -> Vec<u64> {
        let list = p.geometry.zones[i].slips.iter();
        list.map(|s| match s {
            Slip::Index(i) => *i,
            other => panic!("{other:?}"),
        })
        .collect()
    };
    assert!(slips(1).is_sorted());
    assert_eq!(slips(1).len(), 25);
    let unsorted: Vec<String> = warnings
        .iter()
        .filter(|w| matches!(w.kind, WarningKind::UnsortedSlips { .. }))
        .map(ToString::to_string)
        .collect();
    assert_eq!(unsorted.len(), 1, "{warnings:?}");
    assert!(unsorted[0].contains("atlas_III.model:"), "{unsorted:?}");
    assert!(!p.mechanics.read_on_arrival);
}

#[test]
fn cheetah_9lp_keeps_its_holes_between_zones() {
    let Some(Loaded { profile: p, .. }) = drive("cheetah9LP") else {
        return;
    };
    assert_eq!(p.geometry.zones.len(), 11);
    assert_eq!(p.geometry.zones[1].first_cylinder, 848);
    assert_eq!(p.geometry.zones[0].usable_sectors(12), 2_580_386);
    assert_eq!(p.electronics.overheads.read_miss.after_read, Dur(283_620));
}

#[test]
fn hp_c2247_gets_its_bus_from_the_topology_and_its_seeks_from_the_equation() {
    let Some(Loaded { profile: p, .. }) = drive("hp_c2247a") else {
        return;
    };
    let e = &p.electronics;
    assert_eq!((e.bus.read_block_ps, e.bus.write_block_ps), (170_100_000, 186_860_000));
    assert!(e.bus.hold_for_reads && !e.bus.hold_for_writes);
    assert_eq!(e.cache.prefetch, Prefetch::Sectors(128));
    assert_eq!((e.cache.read_watermark_permille, e.cache.write_burst_sectors), (750, 10));
    assert!(!e.cache.write_back);
    assert_eq!(e.overheads.minimum_seek, us(600));
    let z = &p.geometry.zones[0];
    assert_eq!((z.sparing.unit, z.sparing.spares), (SpareUnit::Zone, 325 * 96));
    assert_eq!((z.reserved_sectors, z.slips[0]), (1632, Slip::TrackIndex(468)));
    assert_eq!(z.usable_sectors(13), 559 * 13 * 96 - 1632 - 325 * 96);
    let seek = |d: u32| p.mechanics.seek.iter().find(|x| x.0 == d).map(|x| x.1.as_ms_f64());
    assert_eq!(seek(1), Some(2.89));
    assert_eq!(seek(10), Some(4.99));
    let at = |d| seek(d).expect("a point at this distance");
    assert!((at(299) - (3.81 + 0.33 * 299f64.sqrt())).abs() < 1e-6);
    assert!((at(300) - (7.75 + 0.0059 * 300.0)).abs() < 1e-6);
    assert!((at(2050) - (7.75 + 0.0059 * 2050.0)).abs() < 1e-6);
}

#[test]
fn what_is_written_of_the_four_drives_reads_back_the_same() {
    for name in ["atlas10k", "atlas_III", "cheetah9LP", "hp_c2247a"] {
        let Some(Loaded { profile: p, warnings }) = drive(name) else {
            return;
        };
        let text = profile::write(&p);
        let back = profile::read("written.toml", &text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(back.profile, p, "{name}");
        // The HP's file has a separate write segment, which no build of DiskSim that ran it uses.
        assert!(!warnings.iter().any(|w| w.to_string().contains("write segment")), "{name}: {warnings:?}");
        for (first, last) in unzoned(&p) {
            let told = WarningKind::UnzonedCylinders { first, last };
            assert!(warnings.iter().any(|w| w.kind == told && w.at.line > 0), "{name}: {first} to {last}");
        }
    }
    let holes = drive("cheetah9LP").map_or(0, |l| unzoned(&l.profile).len());
    assert!(folder().is_none() || holes > 0, "the Cheetah's zones leave cylinders between them");
}

/// Returns the cylinders between successive zones.
fn unzoned(p: &profile::Profile) -> Vec<(u32, u32)> {
    let pairs = p.geometry.zones.windows(2).map(|w| (w[0].last_cylinder + 1, w[1].first_cylinder));
    pairs.filter(|(next, first)| next < first).map(|(next, first)| (next, first - 1)).collect()
}
