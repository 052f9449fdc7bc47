//! The built-in drives load, are consistent, name their sources, and agree with them.

use headtime_disk::profile::{self, Layout, Profile, Skew};
use headtime_disk::{Angle, Dur, Geometry, Model, SeekCurve};

fn get(name: &str) -> Profile {
    profile::builtin(name).unwrap_or_else(|e| panic!("{e}"))
}

fn all() -> Vec<Profile> {
    profile::builtin_names().map(get).collect()
}

#[test]
fn every_builtin_compiles_and_holds_the_capacity_it_states() {
    let names: Vec<&str> = profile::builtin_names().collect();
    assert_eq!(names.len(), 16);
    for p in all() {
        assert!(names.contains(&p.name.as_str()), "{} is stored under another name", p.name);
        let model = Model::new(&p).unwrap_or_else(|e| panic!("{}: {e}", p.name));
        assert_eq!(Some(model.geometry.capacity()), p.stated_sectors, "{}", p.name);
        assert_eq!(model.geometry.capacity(), p.geometry.usable_sectors(), "{}", p.name);
        let last = model.geometry.capacity() - 1;
        let end = model.geometry.locate(last).unwrap_or_else(|| panic!("{}: no place for {last}", p.name));
        let address = profile::SectorAddress { cylinder: end.cylinder, surface: end.surface, sector: end.sector };
        assert_eq!(model.geometry.lbn_at(address), Some(last), "{}", p.name);
    }
}

#[test]
fn every_table_of_every_builtin_has_a_source() {
    for p in all() {
        let mut tables = vec!["geometry", "mechanics", "electronics", "noise"];
        if p.rig.is_some() {
            tables.push("rig");
        }
        for table in tables {
            let source = p.sources.get(table).map_or("", String::as_str);
            assert!(source.len() > 10, "{} does not say where its {table} comes from", p.name);
        }
        let measured = ["atlas10k", "atlas3", "cheetah9lp"].contains(&p.name.as_str());
        assert_eq!(p.synthesised.is_none(), measured, "{}", p.name);
        assert_eq!(p.rig.is_some(), measured, "{}", p.name);
    }
}

#[test]
fn what_is_written_of_every_builtin_reads_back_the_same() {
    for p in all() {
        let text = profile::write(&p);
        let back = profile::read("written.toml", &text).unwrap_or_else(|e| panic!("{}: {e}", p.name));
        assert_eq!(back.profile, p, "{}", p.name);
    }
}

#[test]
fn no_builtin_has_an_odd_figure() {
    for name in profile::builtin_names() {
        let p = get(name);
        assert_eq!(profile::check(&p), Ok(vec![]), "{name}");
        let shortest = p.mechanics.seek[0].1;
        assert!(shortest >= Dur::from_us(300) && shortest <= Dur::from_us(2000), "{name}: {shortest}");
    }
}

#[test]
fn an_unknown_drive_is_answered_with_the_known_ones() {
    let e = profile::builtin("atlas10").unwrap_err().to_string();
    assert!(e.starts_with("no built-in drive is called `atlas10`; there are: cheetah9lp, atlas3, "), "{e}");
}

/// Reuther 2003 equation 5 with the figures of its table 1: the worst-case time of a 64 KB request.
fn worst_case_ms(p: &Profile) -> f64 {
    let (num, den) = p.mechanics.rpm;
    let turn = 60_000.0 * den as f64 / num as f64;
    let seek = p.mechanics.seek[p.mechanics.seek.len() - 1].1.as_ms_f64();
    let turns = f64::from(p.noise.settle_retry_turns + 1);
    let inner = &p.geometry.zones[p.geometry.zones.len() - 1];
    let sector = turn / f64::from(inner.sectors_per_track[0]);
    let overhead =
        p.electronics.overheads.read_miss.after_read.as_ms_f64() + p.electronics.bus.read_block_ps as f64 / 1e9;
    let Skew::Turn(skew) = inner.cylinder_skew else { panic!("the skew is an angle") };
    seek + turns * turn + 128.0 * sector + overhead + skew.turns() * turn
}

#[test]
fn the_drives_of_the_das_paper_have_its_worst_case() {
    assert!((worst_case_ms(&get("ultrastar36z15")) - 29.69).abs() < 0.005);
    assert!((worst_case_ms(&get("barracuda36es2")) - 31.11).abs() < 0.005);
}

#[test]
fn published_figures_are_the_profiles_figures() {
    // Thereska 2003 table 1: sectors per track outside and inside, cylinders, heads.
    for (name, outer, inner, cylinders, surfaces) in [
        ("atlas3", 256, 168, 8057, 10),
        ("ultrastar18lzx", 382, 195, 11_634, 10),
        ("cheetah36es", 738, 574, 26_302, 2),
        ("atlas10k3", 686, 396, 31_022, 4),
        ("cheetah73lp", 746, 448, 29_550, 8),
        // Lumb 2002 table 1, and H. Wong's measurements.
        ("cheetah18lp", 360, 230, 9801, 6),
        ("toshiba-x300-5tb", 500, 229, 327_958, 10),
    ] {
        let g = get(name).geometry;
        let spt = |i: usize| g.zones[i].sectors_per_track[0];
        assert_eq!(
            (spt(0), spt(g.zones.len() - 1), g.cylinders, g.surfaces),
            (outer, inner, cylinders, surfaces),
            "{name}"
        );
    }
    // The Atlas 10K is the one drive of Lumb 2002 table 1 that differs from it: DIXtrac's
    // extraction of the drive whose trace is compared takes precedence. The table has 6 heads, 334
    // to 224 sectors per track, 10,000 rpm, a head switch of 0.8 ms, an average seek of 5.0 ms,
    // zero-latency access and 9 GB.
    let atlas = get("atlas10k");
    let spt = |i: usize| atlas.geometry.zones[i].sectors_per_track[0];
    assert_eq!((atlas.geometry.surfaces, spt(0)), (6, 334));
    assert!(atlas.mechanics.read_on_arrival && atlas.mechanics.write_on_arrival);
    assert_eq!(atlas.stated_sectors.map(|n| n * 512 / 1_000_000_000), Some(9));
    assert_eq!(spt(23), 229, "5 sectors more than the table's");
    assert_eq!(atlas.mechanics.rpm, (10_025, 1), "25 more than the table's");
    assert_eq!(atlas.mechanics.head_switch, Dur::from_us(176), "624 us less than the table's");
    let curve = SeekCurve::from_points(&atlas.mechanics.seek, 10_041).unwrap_or_else(|e| panic!("{e}"));
    let pairs = (1..10_042u32).map(|d| u64::from(10_042 - d) * 2 * curve.time(d).0);
    let mean_us = pairs.sum::<u64>() / (10_042 * 10_042) / 1000;
    assert_eq!(mean_us, 5568, "568 us more than the table's");
    let mechanics = ["10,000 rpm", "10,025 rpm", "0.8 ms", "0.176 ms", "5.0 ms", "5.57 ms"];
    for (table, figures) in [("geometry", &["334 to 224", "334 to 229"][..]), ("mechanics", &mechanics)] {
        for figure in figures {
            assert!(atlas.sources[table].contains(figure), "[sources] {table} of atlas10k does not say {figure}");
        }
    }
    assert_eq!(get("cheetah36es").geometry.zones.len(), 11);
    let hitachi = get("hitachi-7k1000c");
    assert_eq!(hitachi.geometry.zones[3].track_skew, Skew::Turn(Angle::fraction(4, 27)));
    assert_eq!(hitachi.mechanics.rpm, (35_999, 5));
    assert!(matches!(
        hitachi.geometry.layout,
        Layout::SeekFirst { tracks_alternate: true, surfaces_alternate: false, .. }
    ));
}

#[test]
fn sequential_rates_of_the_bfq_drives_are_those_of_its_table() {
    // Sectors of one cylinder group divided by their time, including skews, at both edges.
    for (name, outer, inner) in
        [("maxtor-6l080l0", 55.0, 33.0), ("maxtor-7l250s0", 61.0, 36.0), ("maxtor-stm332061", 90.0, 55.0)]
    {
        let p = get(name);
        let g = Geometry::new(&p.geometry).unwrap_or_else(|e| panic!("{name}: {e}"));
        for (lbn, expected) in [(0, outer), (g.capacity() - 1, inner)] {
            let Some(track) = g.track_of(lbn) else { panic!("{name}: no track for {lbn}") };
            let zone = p.geometry.zones.iter().find(|z| (z.first_cylinder..=z.last_cylinder).contains(&track.cylinder));
            let skew = zone.map_or(0.0, |z| z.track_skew.angle(track.spt).turns());
            let turn_s = 60.0 * p.mechanics.rpm.1 as f64 / p.mechanics.rpm.0 as f64;
            let mb_s = f64::from(track.spt) * 512.0 / (turn_s * (1.0 + skew)) / 1e6;
            assert!((mb_s - expected).abs() < 0.5, "{name}: {mb_s} MB/s, expected {expected}");
        }
    }
}

/// From the phases of the measured traces (docs/validation.md section 2): the angle from cylinder
/// to cylinder does not depend on the zone. A trace resolves 10^-6 revolution.
#[test]
fn a_cylinder_of_the_measured_drives_stands_at_one_angle_to_the_next_in_every_zone() {
    for (name, turns) in [("atlas10k", 5.0 / 18.0), ("atlas3", 0.0)] {
        let p = get(name);
        for (i, z) in p.geometry.zones.iter().enumerate() {
            let spt = z.sectors_per_track[0];
            let tracks = f64::from(p.geometry.surfaces - 1);
            let step = tracks * z.track_skew.angle(spt).turns() + z.cylinder_skew.angle(spt).turns();
            let off = step - turns - (step - turns).round();
            assert!(off.abs() < 1e-6, "{name}, zone {i}: {step} turns");
            assert_eq!(z.offset, Some(Skew::ZERO), "{name}, zone {i}: every zone starts at the index mark");
        }
    }
}

#[test]
fn a_change_of_track_fits_into_the_skew_even_for_a_write() {
    for p in all().into_iter().filter(|p| p.synthesised.is_some()) {
        let (num, den) = p.mechanics.rpm;
        let turn = 60e9 * den as f64 / num as f64;
        let single = p.mechanics.seek[0].1.0 as f64;
        let switch = p.mechanics.head_switch.0 as f64;
        let settle = p.mechanics.write_settle_ns as f64;
        for z in &p.geometry.zones {
            let spt = z.sectors_per_track[0];
            let (track, cylinder) = (z.track_skew.angle(spt).turns() * turn, z.cylinder_skew.angle(spt).turns() * turn);
            let (along, across) = match p.geometry.layout {
                Layout::HeadFirst(_) => (switch, single.max(switch)),
                Layout::SeekFirst { .. } => (single, switch.max(single)),
            };
            assert!(track >= along + settle, "{}: {track} ns of skew for a move of {along}", p.name);
            assert!(cylinder >= across + settle, "{}: {cylinder} ns of skew for a move of {across}", p.name);
        }
    }
}
