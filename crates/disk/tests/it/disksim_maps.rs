//! The mapping agrees with DiskSim's own, LBN by LBN, on the drives whose files accompany the
//! measured traces.
//!
//! The files are not part of this project. They are expected in `$HEADTIME_DATA/disksim`, else in
//! `../shared/data/disksim` beside the workspace; without them the tests report that and pass.

#![allow(clippy::disallowed_methods, reason = "tests open files; the crate does not")]

use std::path::PathBuf;

use headtime_disk::{Angle, Geometry, profile};

fn folder() -> Option<PathBuf> {
    let root = match std::env::var_os("HEADTIME_DATA") {
        Some(data) => PathBuf::from(data),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let folder = root.join("disksim");
    folder.is_dir().then_some(folder)
}

/// Compares a drive's mapping with every line of its map.
fn agrees_with_disksim(name: &str) {
    let Some(folder) = folder() else {
        println!("skipped: no DiskSim files (set HEADTIME_DATA to the folder that holds disksim/)");
        return;
    };
    let path = folder.join(format!("{name}.parv"));
    let read = |p: &str| std::fs::read_to_string(p).map_err(|e| e.to_string());
    let loaded = profile::load(&path.to_string_lossy(), &read).unwrap_or_else(|e| panic!("{e}"));
    let geometry = Geometry::new(&loaded.profile.geometry).unwrap_or_else(|e| panic!("{name}: {e}"));
    let map = folder.join(format!("ref/{name}.map.csv"));
    let map = std::fs::read_to_string(&map).unwrap_or_else(|e| panic!("{}: {e}", map.display()));
    let mut lines = 0;
    let mut differ = Vec::new();
    for line in map.lines().skip(1) {
        let fields: Vec<u64> =
            line.split(',').take(8).map(|f| f.parse().unwrap_or_else(|e| panic!("{line}: {e}"))).collect();
        let [lbn, cylinder, surface, sector, angle, spt, first, last] = fields[..] else {
            panic!("{line}: expected at least 8 fields");
        };
        lines += 1;
        let at = geometry.locate(lbn).unwrap_or_else(|| panic!("{name}: no LBN {lbn}"));
        let ours = [u64::from(at.cylinder), u64::from(at.surface), u64::from(at.sector), u64::from(at.spt)];
        let track = geometry.track_of(lbn).expect("it has just been located");
        let bounds = [track.first_lbn, track.first_lbn + u64::from(track.lbns) - 1];
        // Angles in DiskSim's files are whole sectors; ours are exact to 1e-12 revolution.
        let angle_is_right = at.angle.distance(Angle::fraction(angle, spt)) < Angle::fraction(1, 1_000_000_000_000).0;
        if ours != [cylinder, surface, sector, spt] || bounds != [first, last] || !angle_is_right {
            differ.push(format!("{line}: {at:?} {track:?}"));
        }
        assert_eq!(geometry.lbn_at(at.address()), Some(lbn), "{name}: LBN {lbn} and back");
    }
    assert!(lines >= 200, "{name}: only {lines} lines in the map");
    assert!(
        differ.is_empty(),
        "{name}: {} of {lines} LBNs differ:\n{}",
        differ.len(),
        differ[..differ.len().min(20)].join("\n")
    );
    println!("{name}: all {lines} LBNs agree; the mapping takes {} bytes", geometry.memory_bytes());
}

#[test]
fn atlas_10k_is_mapped_as_disksim_maps_it() {
    agrees_with_disksim("atlas10k");
}

#[test]
fn atlas_iii_is_mapped_as_disksim_maps_it() {
    agrees_with_disksim("atlas_III");
}

#[test]
fn cheetah_9lp_is_mapped_as_disksim_maps_it() {
    agrees_with_disksim("cheetah9LP");
}

#[test]
fn hp_c2247a_is_mapped_as_disksim_maps_it() {
    agrees_with_disksim("hp_c2247a");
}
