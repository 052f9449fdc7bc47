//! Synthetic DiskSim files: every sparing scheme against DiskSim's own walk of slips, every kind of
//! seek curve, and the messages for invalid files.

use headtime_disk::Geometry;
use headtime_disk::profile::{self, GeometrySpec, Loaded, ProfileError, Skew, Slip, SpareUnit, WarningKind, ZoneSpec};

/// Returns a whole drive in one text: `layout` and `mech` replace the defaults' lines of the same
/// key.
fn parv(layout: &str, zone: &str, mech: &str) -> String {
    format!(
        "disksim_bus BUS1 {{ Arbitration time = 0.0, Read block transfer time = 0.2, Write block transfer time = 0.05 }}
disksim_ctlr C {{ type = 1, Scale for delays = 0.0 }}
disksim_disk D {{
  Model = dm_disk M {{
    Number of data surfaces = 2, Number of cylinders = 12, Block count = 0,
    Layout Model = dm_layout_g1 {{ LBN-to-PBN mapping scheme = 0, {layout}
      Zones = [ dm_layout_g1_zone {{ First cylinder number = 0, Last cylinder number = 10, Blocks per track = 10,
        {zone} }} ] }},
    Mechanical Model = dm_mech_g1 {{ Access time type = trackSwitchPlusRotation, Rotation speed (in rpms) = 7200,
      Head switch time = 1, Add. write settling delay = -0.25, {mech} }}
  }},
  Bulk sector transfer time = 0.1, Number of buffer segments = 2, Segment size (in blks) = 64,
  Time scale for overheads = 2.0, Read hit over. after read = 0.1
}}
instantiate [ bus1 ] as BUS1
instantiate [ c0 ] as C
instantiate [ disk0 .. disk1 ] as D
topology disksim_ctlr c0 [ disksim_bus bus1 [ disksim_disk disk0 [] disksim_disk disk1 [] ] ]
"
    )
}

const LAYOUT: &str = "Sparing scheme used = 0, Rangesize for sparing = 3,";
const ZONE: &str = "Offset of first block = 0.0, Empty space at zone front = 0, Skew for track switch = 2.0, \
                    Skew for cylinder switch = 3, Number of spares = 0, slips = [ ], defects = [ ]";
const MECH: &str = "Seek type = constant, Constant seek time = 5.0";

fn try_load(text: &str) -> Result<Loaded, ProfileError> {
    let files = |path: &str| match path {
        "d.parv" => Ok(text.to_string()),
        "good.seek" => Ok("Seek distances measured: 3\n1, 1.0, 0.1\n2 0.75\n\n4, 2.5,".to_string()),
        _ => Err("no such file".to_string()),
    };
    profile::load("d.parv", &files)
}

fn load(text: &str) -> Loaded {
    try_load(text).unwrap_or_else(|e| panic!("{e}"))
}

fn zone(scheme: u32, dead: u64, spares: u64, slips: &[u64]) -> ZoneSpec {
    geometry(scheme, dead, spares, slips).zones.remove(0)
}

fn geometry(scheme: u32, dead: u64, spares: u64, slips: &[u64]) -> GeometrySpec {
    let layout = LAYOUT.replace("used = 0", &format!("used = {scheme}"));
    let zone = ZONE
        .replace("front = 0", &format!("front = {dead}"))
        .replace("spares = 0", &format!("spares = {spares}"))
        .replace("slips = [ ]", &format!("slips = {slips:?}"));
    load(&parv(&layout, &zone, MECH)).profile.geometry
}

const TOTAL: u64 = 220;
const TRACK: u64 = 10;
const CYLINDER: u64 = 20;

/// DiskSim's walk: returns the physical index of each LBN of the zone, for the schemes whose walk
/// is known.
fn disksim_walk(scheme: u32, dead: u64, spares: u64, slips: &[u64]) -> Vec<u64> {
    let unit = match scheme {
        2 => CYLINDER,
        3 => TRACK,
        8 => 3 * CYLINDER,
        _ => TOTAL,
    };
    let lost = match scheme {
        1 => spares * TRACK,
        2 | 3 | 8 => spares * (TOTAL / unit),
        7 => slips.len() as u64,
        9 => spares,
        10 => spares + slips.len() as u64,
        _ => 0,
    };
    let push = |y: u64, within: std::ops::Range<u64>, size: u64| {
        let mut x = y;
        for slip in slips.iter().map(|s| s * size).filter(|s| within.contains(s)) {
            if slip <= x {
                x += size;
            }
        }
        x
    };
    (dead..TOTAL - lost)
        .map(|y| match scheme {
            0 => y,
            1 => push(y, 0..TOTAL, TRACK),
            2 | 3 | 8 => {
                let data = unit - spares;
                let start = y / data * unit;
                // The short unit at the end has no spares.
                let start = if start >= TOTAL / unit * unit { TOTAL / unit * unit } else { start };
                push(start + y - start / unit * data, start..start + unit, 1)
            }
            _ => push(y, 0..TOTAL, 1),
        })
        .collect()
}

/// Returns the sectors of a profile's zone: all in order, without the reserved front, the slips and
/// unused spares.
fn profile_order(z: &ZoneSpec) -> Vec<u64> {
    let mut hole = vec![false; TOTAL as usize];
    hole[..z.reserved_sectors as usize].fill(true);
    for slip in &z.slips {
        match *slip {
            Slip::Index(i) => hole[i as usize] = true,
            Slip::TrackIndex(t) => hole[(t * TRACK) as usize..((t + 1) * TRACK) as usize].fill(true),
            ref other => panic!("{other:?}"),
        }
    }
    let slipped = |range: std::ops::Range<u64>| -> u64 {
        let of = |s: &Slip| match *s {
            Slip::Index(i) => u64::from(range.contains(&i)),
            Slip::TrackIndex(t) => TRACK * u64::from(range.contains(&(t * TRACK))),
            _ => 0,
        };
        z.slips.iter().map(of).sum()
    };
    let unit = match z.sparing.unit {
        SpareUnit::Zone => TOTAL,
        SpareUnit::Cylinders(n) => u64::from(n) * CYLINDER,
        SpareUnit::Track => TRACK,
    };
    for u in 0..TOTAL / unit {
        let range = u * unit..(u + 1) * unit;
        let used = if z.sparing.slips_are_extra { 0 } else { slipped(range.clone()) };
        let mut left = z.sparing.spares.saturating_sub(used);
        for x in range.rev() {
            if left > 0 && !hole[x as usize] {
                hole[x as usize] = true;
                left -= 1;
            }
        }
    }
    (0..TOTAL).filter(|&x| !hole[x as usize]).collect()
}

/// Returns the physical index of each LBN in the compiled mapping.
fn compiled(spec: &GeometrySpec) -> Vec<u64> {
    let g = Geometry::new(spec).unwrap_or_else(|e| panic!("{e}"));
    let index = |lbn| {
        let p = g.locate(lbn).unwrap_or_else(|| panic!("no place for {lbn}"));
        (u64::from(p.cylinder) * 2 + u64::from(p.surface)) * TRACK + u64::from(p.sector)
    };
    (0..g.capacity()).map(index).collect()
}

#[test]
fn every_sparing_scheme_maps_as_disksim_walks() {
    let cases: [(u64, u64, &[u64]); 7] = [
        (0, 4, &[]),
        (0, 4, &[0, 5, 6, 33, 61, 219]),
        (0, 2, &[3, 3, 60]),
        (7, 4, &[2, 7, 8, 100]),
        (41, 3, &[0, 40, 44, 70, 90]),
        (20, 5, &[20, 21, 22]),
        (1, 3, &[500]),
    ];
    let mut left_out = 0;
    for (dead, spares, slips) in cases {
        for scheme in [0, 2, 7, 8, 9, 10] {
            let g = geometry(scheme, dead, spares, slips);
            let z = &g.zones[0];
            let walk = disksim_walk(scheme, dead, spares, slips);
            // More slips than spares in a unit: DiskSim's walk leaves the unit, which is an error,
            // not a rule.
            if !walk.is_sorted_by(|a, b| a < b) || walk.last().is_some_and(|&x| x >= TOTAL) {
                left_out += 1;
                continue;
            }
            assert_eq!(profile_order(z), walk, "scheme {scheme}, {dead} dead, {spares} spares, slips {slips:?}");
            assert_eq!(z.usable_sectors(2), walk.len() as u64, "scheme {scheme}");
            assert_eq!(compiled(&g), walk, "scheme {scheme}, {dead} dead, {spares} spares, slips {slips:?}");
        }
    }
    assert!(left_out < 6, "{left_out} cases left out");
    for (dead, tracks, slips) in [(0, 3, &[0u64, 4, 5][..]), (23, 2, &[1, 2]), (10, 2, &[1, 9])] {
        let z = zone(1, dead, tracks, slips);
        assert_eq!(
            compiled(&geometry(1, dead, tracks, slips)),
            disksim_walk(1, dead, tracks, slips),
            "{dead} {slips:?}"
        );
        assert_eq!(profile_order(&z), disksim_walk(1, dead, tracks, slips), "{dead} {slips:?}");
        assert_eq!(z.usable_sectors(2), TOTAL - dead - tracks * TRACK);
    }
    for (dead, slips) in [(0, &[12u64, 33, 34][..]), (9, &[12]), (27, &[31])] {
        let z = zone(3, dead, 2, slips);
        assert_eq!(compiled(&geometry(3, dead, 2, slips)), disksim_walk(3, dead, 2, slips), "{dead} {slips:?}");
        assert_eq!(profile_order(&z), disksim_walk(3, dead, 2, slips), "{dead} {slips:?}");
        assert_eq!(z.usable_sectors(2), TOTAL - dead - 2 * 22);
    }
}

#[test]
fn schemes_two_to_six_push_the_skew_and_differ_in_where_spares_lie() {
    let s = |scheme| zone(scheme, 0, 2, &[7, 31]).sparing;
    for scheme in 0..=10 {
        assert_eq!(s(scheme).slips_push_skew, (2..=6).contains(&scheme), "{scheme}");
        assert_eq!(s(scheme).at_front, scheme == 5 || scheme == 6, "{scheme}");
        let extra = [0, 4, 6, 7, 10].contains(&scheme);
        assert_eq!(s(scheme).slips_are_extra, extra, "{scheme}");
    }
    assert_eq!(s(8).unit, SpareUnit::Cylinders(3));
    assert_eq!(zone(4, 0, 2, &[7, 31]).usable_sectors(2), TOTAL - 2 * 11 - 2);
    assert_eq!(zone(5, 0, 2, &[7, 31]).usable_sectors(2), TOTAL - 2 * 11);
}

#[test]
fn the_bus_of_the_topology_counts_where_it_is_slower_and_overheads_are_scaled() {
    let Loaded { profile: p, warnings } = load(&parv(LAYOUT, ZONE, MECH));
    assert_eq!((p.electronics.bus.read_block_ps, p.electronics.bus.write_block_ps), (200_000_000, 100_000_000));
    assert_eq!(p.electronics.overheads.read_hit.after_read.0, 200_000);
    assert_eq!(p.mechanics.write_settle_ns, -250_000);
    assert_eq!(p.geometry.cylinders, 12);
    assert!(
        warnings.iter().any(|w| matches!(&w.kind, WarningKind::DefaultTaken { key, .. } if key == "Never disconnect"))
    );
}

#[test]
fn skews_may_be_fractions_of_a_revolution_and_are_reported_beyond_one() {
    let layout = format!("{LAYOUT} Skew units = revolutions,");
    let zone = ZONE
        .replace("track switch = 2.0", "track switch = 0.25")
        .replace("cylinder switch = 3", "cylinder switch = 1.5");
    let Loaded { profile: p, warnings } = load(&parv(&layout, &zone, MECH));
    let z = &p.geometry.zones[0];
    let turn = |num, den| Skew::Turn(headtime_disk::Angle::fraction(num, den));
    assert_eq!((z.track_skew, z.cylinder_skew), (turn(1, 4), turn(1, 2)));
    let beyond: Vec<_> = warnings
        .iter()
        .filter(|w| matches!(w.kind, WarningKind::SkewBeyondTurn { .. }))
        .map(ToString::to_string)
        .collect();
    assert_eq!(beyond, ["d.parv:8: Skew for cylinder switch of 1.5 is a turn or more (10 sectors)"]);
    let z = &load(&parv(LAYOUT, &ZONE.replace("switch = 2.0", "switch = -2.9"), MECH)).profile.geometry.zones[0];
    assert_eq!(z.track_skew, Skew::Sectors(8));
}

#[test]
fn every_kind_of_seek_curve_gives_its_textbook_times() {
    let seek = |mech: &str| load(&parv(LAYOUT, ZONE, mech)).profile.mechanics.seek;
    let ms = |points: &[(u32, headtime_disk::Dur)]| -> Vec<(u32, f64)> {
        points.iter().map(|&(d, t)| (d, t.as_ms_f64())).collect()
    };
    assert_eq!(ms(&seek(MECH)), [(1, 5.0), (11, 5.0)]);
    let three = "Single cylinder seek time = 1.0, Average seek time = 4, Full strobe seek time = 8.0";
    assert_eq!(ms(&seek(&format!("Seek type = linear, {three}"))), [(1, 1.0), (4, 4.0), (11, 8.0)]);
    let curve = ms(&seek(&format!("Seek type = curve, {three}")));
    assert_eq!(curve.len(), 11);
    assert_eq!(curve[0], (1, 1.0));
    let n = 12f64;
    let (a, b) = ((-10.0 + 60.0 - 40.0) / (3.0 * n.sqrt()), (7.0 - 60.0 + 64.0) / (3.0 * n));
    assert!((curve[8].1 - (1.0 + a * 8f64.sqrt() + b * 8.0)).abs() < 1e-6);
    let hpl = "HPL seek equation values = [ 4, 1.0, 0.5, 2.0, 0.25, 0.9 ]";
    let plain = ms(&seek(&format!("Seek type = hpl, {hpl}")));
    assert_eq!(plain[0], (1, 0.9));
    assert!((plain[1].1 - (1.0 + 0.5 * 2f64.sqrt())).abs() < 1e-6);
    assert_eq!((plain[3], plain[4]), ((4, 3.0), (11, 4.75)));
    let ten = "First ten seek times = [ 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9 ]";
    let plus = ms(&seek(&format!("Seek type = hplplus10, {hpl}, {ten}")));
    assert_eq!((plus[0], plus[9], plus[10]), ((1, 1.0), (10, 1.9), (11, 4.75)));
}

#[test]
fn seek_tables_may_have_a_count_line_and_a_third_column() {
    let Loaded { profile: p, warnings } =
        load(&parv(LAYOUT, ZONE, "Seek type = extracted, Full seek curve = good.seek"));
    let points: Vec<(u32, u64)> = p.mechanics.seek.iter().map(|&(d, t)| (d, t.0)).collect();
    assert_eq!(points, [(1, 1_000_000), (2, 750_000), (4, 2_500_000)]);
    let falls = warnings.iter().find(|w| matches!(w.kind, WarningKind::SeekFalls { .. })).map(ToString::to_string);
    assert_eq!(
        falls.as_deref(),
        Some("good.seek:3: a seek over 2 cylinders takes 0.75 ms, less than the 1 ms over 1 cylinders")
    );
}

#[test]
fn wrong_files_are_refused_with_file_line_expectation_and_finding() {
    let good = parv(LAYOUT, ZONE, MECH);
    for (from, to, message) in [
        (
            "Model = dm_disk M",
            "Model = dm_thing M",
            "d.parv:4: expected a block of type dm_disk, found a block of type dm_thing",
        ),
        (
            "dm_layout_g1 {",
            "dm_layout_g4 {",
            "d.parv:6: expected a layout of type dm_layout_g1, found a block of type dm_layout_g4",
        ),
        ("Blocks per track = 10", "Blocks per track = 10.5", "d.parv:7: expected a whole number, found `10.5`"),
        ("Blocks per track = 10", "Blocks per track = 0", "Blocks per track is 0; it must be between 1 and"),
        ("Last cylinder number = 10, ", "", "dm_layout_g1_zone lacks the key `Last cylinder number`"),
        ("used = 0", "used = 11", "Sparing scheme used is 11; it must be between 0 and 10"),
        ("slips = [ ]", "slips = [ -1 ]", "a slip is -1; it must be 0 or more"),
        (
            "defects = [ ]",
            "defects = [ 1, 2, 3 ]",
            "expected pairs of a bad sector and its replacement, found 3 numbers",
        ),
        ("front = 0", "front = 999", "Empty space at zone front is 999"),
        ("= 7200", "= 7", "the speed is 7; it must be 60 to 60000 rpm"),
        ("type = constant", "type = magic", "unknown seek type `magic`; known are: extracted, hplplus10"),
        ("Constant seek time = 5.0", "Constant seek time = -1", "between 0 and 1000 ms"),
        (
            "type = constant",
            "type = extracted, Full seek curve = gone.seek",
            "d.parv:10: cannot be read: gone.seek: no such file",
        ),
        ("disksim_disk D", "simpledisk D", "expected a definition of type disksim_disk for `disk0` of the topology"),
        ("Head switch time = 1,", "Head switch time = 101,", "d.parv:10: Head switch time is 101.000000 ms"),
        (
            "Segment size (in blks) = 64",
            "Segment size (in blks) = big",
            "d.parv:12: expected a whole number, found `big`",
        ),
        ("after read = 0.1", "after read = -0.1", "Read hit over. after read is -0.2 ms"),
        ("[ bus1 ] as BUS1", "[ bus9 ] as BUS1", "expected a definition of type disksim_bus for `bus1`, found none"),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from} is in the file");
        let e = try_load(&text).expect_err(message).to_string();
        assert!(e.contains(message), "{to}: expected\n{message}, got\n{e}");
    }
}

#[test]
fn overlapping_zones_are_refused_and_unknown_parameters_reported() {
    let two = format!(
        "{ZONE} }}, dm_layout_g1_zone {{ First cylinder number = 10, Last cylinder number = 11, Blocks per track = 8, \
         {ZONE}"
    );
    let e = try_load(&parv(LAYOUT, &two, MECH)).unwrap_err().to_string();
    assert!(e.contains("zone of cylinders 10 to 11 overlaps the zone of cylinders 0 to 10"), "{e}");
    let odd = load(&parv(LAYOUT, &format!("{ZONE}, Colour = blue"), MECH));
    assert!(
        odd.warnings.iter().any(|w| matches!(&w.kind, WarningKind::UnknownParameter { key, .. } if key == "Colour"))
    );
}

/// Loads a drive whose seek table is `table`.
fn with_table(table: &str) -> Result<Loaded, ProfileError> {
    let text = parv(LAYOUT, ZONE, "Seek type = extracted, Full seek curve = t.seek");
    let files = |path: &str| match path {
        "d.parv" => Ok(text.clone()),
        "t.seek" => Ok(table.to_string()),
        _ => Err("no such file".to_string()),
    };
    profile::load("d.parv", &files)
}

#[test]
fn what_only_the_compiled_mapping_shows_is_reported_at_the_zones_line() {
    // Every cylinder holds 20 sectors, every track 10; the zone holds 220.
    for (scheme, from, to, message) in [
        (9, "spares = 0", "spares = 300", "spares and slips leave nothing of the zone's 220 sectors"),
        (8, "spares = 0", "spares = 60", "zone 0: 60 spares in a unit of 60 sectors"),
        (9, "defects = [ ]", "defects = [ 5, 6 ]", "zone 0: defect 5 -> 6: the replacement holds LBN 6"),
    ] {
        let layout = LAYOUT.replace("used = 0", &format!("used = {scheme}"));
        let e = try_load(&parv(&layout, &ZONE.replace(from, to), MECH)).expect_err(to).to_string();
        assert!(e.starts_with("d.parv:7: ") && e.contains(message), "expected {message}, got {e}");
    }
}

#[test]
fn cylinders_that_belong_to_no_zone_are_reported_at_the_zone_behind_them() {
    let zones = format!(
        "{ZONE} }},\n dm_layout_g1_zone {{ First cylinder number = 14, Last cylinder number = 15, Blocks per track = \
         8, {ZONE}"
    );
    let loaded = load(&parv(LAYOUT, &zones, MECH).replace("of cylinders = 12", "of cylinders = 18"));
    let told: Vec<String> = loaded
        .warnings
        .iter()
        .filter(|w| matches!(w.kind, WarningKind::UnzonedCylinders { .. }))
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        told,
        [
            "d.parv:9: cylinders 11 to 13 belong to no zone and hold no data",
            "d.parv:6: cylinders 16 to 17 belong to no zone and hold no data"
        ]
    );
}

#[test]
fn a_seek_table_shorter_than_its_count_line_says_is_refused() {
    let e = with_table("# so\nSeek distances measured: 3\n1, 1.0\n2, 1.5\n").unwrap_err().to_string();
    assert_eq!(e, "t.seek:2: expected 3 points of the seek table, as this line says, found 2");
}

#[test]
fn bytes_that_are_no_text_are_written_out_and_cut_short() {
    let e = with_table(&format!("1, 1.0\n\u{1b}[31m{}", "x".repeat(4000))).unwrap_err().to_string();
    assert!(e.starts_with("t.seek:2: expected `distance, ms`, found `\\u{1b}[31mxxx"), "{e}");
    assert!(e.len() < 200 && !e.chars().any(char::is_control), "{e}");
}

#[test]
fn odd_seek_tables_load_with_their_lines_and_what_is_written_of_them_reads_back() {
    // A peak of more than a third; an end that extrapolates to zero; a distance beyond the drive.
    for (table, line, message) in [
        ("1, 1.0\n2, 3.0\n3, 1.1\n10, 4.0", 3, "a seek over 3 cylinders takes 1.1 ms, less than the 3 ms over 2"),
        ("1, 1.0\n4, 5.0\n5, 4.0", 3, "lead to -2 ms over 11 cylinders, less than half of the 4 ms over 5"),
        ("1, 1.0\n200, 5.0\n300, 3.9", 3, "a seek over 300 cylinders takes 3.9 ms"),
    ] {
        let Loaded { profile: p, warnings } = with_table(table).unwrap_or_else(|e| panic!("{e}"));
        let told = warnings.iter().map(ToString::to_string).find(|w| w.starts_with(&format!("t.seek:{line}: ")));
        assert!(told.as_ref().is_some_and(|w| w.contains(message)), "{told:?}");
        let text = profile::write(&p);
        let back = profile::read("written.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(back.profile, p);
        // The same table from another source is refused.
        let own = text.replace("DiskSim parameter file", "My own file");
        assert!(profile::read("own.toml", &own).is_err(), "{table}");
    }
}

#[test]
fn the_longest_times_that_load_are_readable_as_a_profile_file() {
    let text = parv(LAYOUT, ZONE, "Seek type = constant, Constant seek time = 1000")
        .replace("Head switch time = 1,", "Head switch time = 100,")
        .replace("after read = 0.1", "after read = 500, Minimum seek delay = 1000");
    let p = load(&text).profile;
    let back = profile::read("written.toml", &profile::write(&p)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(back.profile, p);
    let e = try_load(&text.replace("delay = 1000", "delay = 1000.1")).unwrap_err().to_string();
    assert!(e.contains("Minimum seek delay is 1000.1 ms; it must be between 0 and 1000 ms"), "{e}");
}

#[test]
fn a_file_with_any_name_loads_as_a_profile_that_can_be_written() {
    let text = parv(LAYOUT, ZONE, MECH);
    let files = |_: &str| Ok(text.clone());
    let p = profile::load("x/My Drive (2).parv", &files).unwrap_or_else(|e| panic!("{e}")).profile;
    assert_eq!(p.name, "my-drive--2-");
    assert!(profile::read("written.toml", &profile::write(&p)).is_ok());
}

#[test]
fn almost_hits_are_said_to_have_no_effect() {
    let text = parv(LAYOUT, ZONE, MECH).replace("after read = 0.1", "after read = 0.1, Allow almost read hits = 1");
    let Loaded { profile: p, warnings } = load(&text);
    assert!(p.electronics.cache.almost_hits);
    let told: Vec<String> = warnings.iter().map(ToString::to_string).filter(|w| w.contains("almost")).collect();
    assert_eq!(told, ["d.parv:13: `Allow almost read hits = 1` has no effect: only the other value is modelled"]);
}
