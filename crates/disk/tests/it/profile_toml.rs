//! The profile file: valid input, messages for invalid input, and that writing and reading are
//! inverse.

// The crate has no files; its tests read some.
#![allow(clippy::disallowed_methods)]

use headtime_disk::profile::{self, ByLast, Prefetch, Profile, Reason, Skew};
use headtime_disk::{Angle, Dur};

const SMALL: &str = r#"format = 1
name = "small"
title = "a small drive"
sectors = 1980

[sources]
geometry = "made up"

[geometry]
surfaces = 2
cylinders = 12
layout = "F"
unused_cylinders = [[5, 5]]
zones = [
{cylinders = [0, 4], sectors_per_track = 100, track_skew = "7/100", cylinder_skew = 0.125, spares = 10, slips = [3, 5]},
{ cylinders = [6, 11], sectors_per_track = 90, track_skew = "6 sectors", cylinder_skew = "1/8", reserved_sectors = 90 },
]

[mechanics]
rpm = 7199.6
head_switch_ms = 0.8
write_settle_ms = -0.1
seek_ms = [
    [1, 1.0], [2, 1.5],
    [11, 4.25],
]

[electronics.bus]
read_block_ns = 6400.125
write_block_ns = 6400

[electronics.overheads]
read_hit_us = { after_read = 66, after_write = 273.5 }
read_miss_us = 100

[electronics.cache]
segments = 4
segment_sectors = 128
prefetch = "sectors"
prefetch_sectors = 64
read_watermark = 0.75

[electronics.queue]
depth = 32
order = "sptf"

[rig.bus]
read_block_ns = 99000

[rig.cache]
write_back = true
"#;

pub(super) fn read(text: &str) -> Result<profile::Loaded, profile::ProfileError> {
    profile::read("small.toml", text)
}

pub(super) fn small() -> Profile {
    // 5 * 2 * 100 - 10 spares, and 6 * 2 * 90 - 90.
    read(SMALL).unwrap_or_else(|e| panic!("{e}")).profile
}

#[test]
fn figures_are_read_exactly_in_the_unit_of_their_key() {
    let p = small();
    assert_eq!(p.mechanics.rpm, (35_998, 5));
    assert_eq!(p.mechanics.write_settle_ns, -100_000);
    assert_eq!(p.electronics.bus.read_block_ps, 6_400_125);
    let read_hit = ByLast { after_read: Dur(66_000), after_write: Dur(273_500) };
    assert_eq!(p.electronics.overheads.read_hit, read_hit);
    assert_eq!(p.electronics.overheads.read_miss.after_write, Dur(100_000));
    assert_eq!(p.electronics.cache.read_watermark_permille, 750);
    assert_eq!(p.electronics.cache.prefetch, Prefetch::Sectors(64));
    let (a, b) = (&p.geometry.zones[0], &p.geometry.zones[1]);
    assert_eq!((a.track_skew, a.cylinder_skew), (Skew::Sectors(7), Skew::Turn(Angle(1 << 61))));
    assert_eq!((b.track_skew, b.cylinder_skew), (Skew::Sectors(6), Skew::Turn(Angle(1 << 61))));
    assert_eq!(p.sector_bytes, 512);
    assert!(!a.sparing.slips_are_extra && b.sparing.slips_are_extra);
}

#[test]
fn a_rig_takes_from_the_electronics_what_it_does_not_say() {
    let p = small();
    let rig = p.rig.expect("the file has a rig");
    assert_eq!((rig.bus.read_block_ps, rig.bus.write_block_ps), (99_000_000, 6_400_000));
    assert_eq!(rig.overheads, p.electronics.overheads);
    assert!(rig.cache.write_back && !p.electronics.cache.write_back);
    assert_eq!((rig.cache.segments, rig.queue), (4, p.electronics.queue));
}

#[test]
fn every_fault_names_its_line_and_its_reason() {
    let mut wrong = Vec::new();
    for (from, to, message) in [
        ("format = 1", "format = 2", "small.toml:@: expected 1, the only version there is, for `format`, found 2"),
        ("title = \"a small drive\"", "title = ", "small.toml:@: expected TOML, found"),
        (
            "surfaces = 2",
            "surfaces = \"two\"",
            "small.toml:@: expected a whole number for `surfaces`, found the text \"two\"",
        ),
        ("surfaces = 2\n", "", "small.toml:9: geometry lacks the key `surfaces`"),
        (
            "layout = \"F\"",
            "layout = \"Z\"",
            "small.toml:@: unknown layout `Z`; known are: F, A, A-disk, FF, FA, AF, AA",
        ),
        ("layout = \"F\"", "layout = \"FA\"", "geometry lacks the key `group_tracks`"),
        ("layout = \"F\"", "layout = \"F\"\ngroup_tracks = 3", "small.toml:13: group_tracks goes with the layouts FF"),
        ("spares = 10", "sparse = 10", "small.toml:@: unknown key `sparse` in zones[0]; known are: cylinders, surface"),
        ("depth = 32", "depth = 500", "small.toml:@: depth is 500; it must be between 1 and 256"),
        ("\"sptf\"", "\"elevator\"", "small.toml:@: unknown order `elevator`; known are: fcfs, sptf"),
        ("\"7/100\"", "\"100/100\"", "small.toml:@: track_skew is 100 sectors; it must be below a turn of 100 sectors"),
        ("0.125", "1.5", "small.toml:@: expected a skew of less than a turn"),
        ("0.125", "\"a bit\"", "small.toml:@: expected a skew such as \"63/334\""),
        ("[0, 4]", "[0, 6]", "small.toml:16: zone of cylinders 0 to 6: the zone of cylinders 6 to 11 overlaps it"),
        ("[0, 4]", "[0, 3]", "small.toml:16: cylinders 4 to 5 belong to no zone; list them in `unused_cylinders`"),
        ("[[5, 5]]", "[[5, 5], [11, 11]]", "small.toml:@: cylinders 11 to 11 are listed as unused"),
        ("[6, 11]", "[6, 12]", "small.toml:@: a zone up to cylinder 12 on a drive of 12"),
        ("slips = [3, 5]", "slips = [3, 1000]", "small.toml:@: expected slips inside the zone"),
        ("sectors = 1980", "sectors = 1981", "small.toml:@: 1981 sectors are stated, but the zones hold 1980"),
        ("reserved_sectors = 90", "reserved_sectors = 9000", "small.toml:@: reserved_sectors is 9000"),
        ("7199.6", "59", "small.toml:@: rpm is 59/1; it must be between 60 and 60000"),
        ("7199.6", "\"fast\"", "small.toml:@: expected a speed such as 7200"),
        (
            "head_switch_ms = 0.8",
            "head_switch_ms = -0.8",
            "small.toml:@: head_switch_ms is -0.8; it must be between 0 and 1000",
        ),
        (
            "head_switch_ms = 0.8",
            "head_switch_ms = 200",
            "small.toml:@: head_switch_ms is 200.000000 ms; it must be at most 100 ms",
        ),
        ("[2, 1.5]", "[1, 1.5]", "small.toml:@: expected a seek distance beyond 1, found 1"),
        ("[2, 1.5]", "[2, 1.5, 9]", "small.toml:@: expected a list of a distance and a time"),
        ("[11, 4.25]", "[12, 4.25]", "small.toml:@: a seek distance is 12; it must be below the drive's 12 cylinders"),
        (
            "[11, 4.25]",
            "[11, 0.9]",
            "small.toml:@: a seek over 11 cylinders takes 0.9 ms, less than the 1.5 ms over 2 cylinders",
        ),
        ("[11, 4.25]", "[11, 0.9]", "more than a third less, which no drive does"),
        ("segments = 4\n", "", "small.toml:36: cache lacks the key `segments`"),
        ("prefetch_sectors = 64\n", "", "cache lacks the key `prefetch_sectors`"),
        ("prefetch = \"sectors\"", "prefetch = \"none\"", "small.toml:40: prefetch_sectors has no meaning"),
        ("0.75", "1.75", "small.toml:@: read_watermark is 1.75; it must be between 0 and 1"),
        ("name = \"small\"", "name = \"Small Drive\"", "small.toml:@: expected a name of 1 to 64 lower-case letters"),
        ("title", "sector_bytes = 520\ntitle", "small.toml:@: sector_bytes is 520; it must be 512 or 4096"),
        ("geometry = \"made up\"", "geometri = \"made up\"", "small.toml:@: unknown table in [sources] `geometri`"),
        ("read_miss_us = 100", "read_miss_us = -1", "small.toml:@: read_miss_us is -1; it must be between 0"),
        ("read_miss_us = 100", "read_mess_us = 1", "small.toml:@: unknown key `read_mess_us` in overheads"),
        (
            "[rig.bus]",
            "[noise]\nseek_sd_us = 30\n[rig.bus]",
            "small.toml: seek_max_us is 0.000000 ms; it must be no less than seek_sd_us",
        ),
        ("[rig.bus]", "[noise]\nsettle_retry_ppm = 9\n[rig.bus]", "small.toml:48: settle_retry_turns is 0"),
        (
            "[rig.bus]",
            "[noise]\nsettle_retry_ppm = 9\nsettle_retry_turns = 1\nsettle_retry_again_ppm = 1000001\n[rig.bus]",
            "small.toml:50: settle_retry_again_ppm is 1000001; it must be between 0 and 1000000",
        ),
        (
            "[rig.bus]",
            "[noise]\nsettle_retry_again_ppm = 0\n[rig.bus]",
            "small.toml:48: expected settle_retry_ppm of at least 1, found settle_retry_again_ppm = 0 without it",
        ),
        ("[rig.bus]", "[rigg.bus]", "small.toml:@: unknown key `rigg`"),
        ("write_back = true", "write_back = 1", "small.toml:@: expected true or false for `write_back`, found 1"),
    ] {
        let text = SMALL.replacen(from, to, 1);
        assert_ne!(text, SMALL, "{from} is in the file");
        // `@` stands for the line of the change.
        let line = SMALL
            .find(from)
            .map_or(0, |at| SMALL[..at].lines().count().max(1) + usize::from(at > 0 && SMALL[..at].ends_with('\n')));
        let message = &message.replace('@', &line.to_string());
        match read(&text) {
            Ok(_) => wrong.push(format!("{to} was taken; expected: {message}")),
            Err(e) if e.to_string().contains(message) => {}
            Err(e) => wrong.push(format!("{to}: expected\n{message}, got\n{e}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the small drive with measured service times; the text `from` is replaced.
fn measured(from: &str, to: &str) -> String {
    let times = r#"
[[service_times]]
sectors = 8
workload = "reads somewhere"
reads = 0.75
waiting = 20
order = "sptf"
outstanding = 2
samples = 10
bin_us = 12.5
histogram = [[3, 1, 0, 4], [90, 5]]

[[service_times]]
sectors = 16
workload = "reads somewhere else"
reads = 1
waiting = 1
order = "fcfs"
outstanding = 1
samples = 7
bin_us = 12.5
histogram = [[200, 7]]
"#;
    assert!(times.contains(from), "{from} is in the file");
    SMALL.to_owned() + &times.replacen(from, to, 1)
}

#[test]
fn service_times_are_read_with_their_load_and_written_again() {
    let p = read(&measured("", "")).unwrap_or_else(|e| panic!("{e}")).profile;
    let [small, large] = p.service_times.as_slice() else { panic!("{:?}", p.service_times) };
    assert_eq!((small.sectors, small.samples, small.bin), (8, 10, Dur(12_500)));
    let load = &small.load;
    assert_eq!((load.reads_ppm, load.waiting, load.outstanding), (750_000, 20, 2));
    assert_eq!((load.words.as_str(), load.order.as_str()), ("reads somewhere", "sptf"));
    assert_eq!(small.counts().collect::<Vec<_>>(), [(3, 1), (5, 4), (90, 5)]);
    assert_eq!((large.sectors, large.counts().collect::<Vec<_>>()), (16, vec![(200, 7)]));
    let text = profile::write(&p);
    assert_eq!(read(&text).map(|l| l.profile), Ok(p), "{text}");
}

#[test]
fn every_fault_of_service_times_names_its_line_and_its_reason() {
    let lines = SMALL.lines().count();
    for (from, to, line, message) in [
        ("sectors = 8", "sectors = 0", 3, "sectors is 0; it must be between 1 and 4294967295"),
        (
            "sectors = 8",
            "sectors = 1981",
            3,
            "sectors is 1981; it must be between 1 (sizes ascend) and the drive's 1980",
        ),
        ("sectors = 16", "sectors = 7", 14, "sectors is 7; it must be between 8 (sizes ascend)"),
        ("sectors = 16", "sectors = 8", 16, "reads is 1; it must be at most 0.75 (of one size they descend)"),
        (
            "sectors = 16\nworkload = \"reads somewhere else\"\nreads = 1\nwaiting = 1",
            "sectors = 8\nworkload = \"reads somewhere else\"\nreads = 0.75\nwaiting = 20\ncandidates = 19",
            18,
            "candidates is 19; it must be more than 19, or that with more than 20 waiting (of one size",
        ),
        ("waiting = 20", "waiting = 20\ncandidates = 21", 7, "candidates is 21; it must be at most what waited (20)"),
        ("waiting = 20", "waiting = 20\ncandidates = 0", 7, "candidates is 0; it must be between 1"),
        ("sectors = 8\n", "", 2, "service_times[0] lacks the key `sectors`"),
        ("sectors = 8", "sector = 8", 3, "unknown key `sector` in service_times[0]"),
        ("\"reads somewhere\"", "\" \"", 4, "expected workload in words, found an empty text"),
        ("reads = 0.75", "reads = 1.5", 5, "reads is 1.5; it must be between 0 and 1"),
        ("waiting = 20", "waiting = 1", 8, "outstanding is 2; it must be at least 1 and at most what waited (1)"),
        ("order = \"sptf\"", "order = \"\"", 7, "expected order in words, found an empty text"),
        ("outstanding = 2", "outstanding = 0", 8, "outstanding is 0; it must be between 1"),
        ("samples = 10", "samples = 11", 11, "11 samples are stated, but the histogram holds 10"),
        ("bin_us = 12.5", "bin_us = 0", 10, "bin_us is 0; it must be more than 0"),
        ("bin_us = 12.5", "bin_us = 10", 21, "bin_us is 0.012500 ms; it must be that of the first size, 0.010000 ms"),
        ("[90, 5]", "[5, 5]", 11, "a run of bins is 5 to 5; it must be from 6 on (bins ascend)"),
        ("[90, 5]", "[0, 5]", 11, "histogram[1][0] is 0; it must be between 1 and 1048576"),
        ("[90, 5]", "[1048576, 1, 4]", 11, "a run of bins is 1048576 to 1048577; it must be from 6 on"),
        ("[90, 5]", "[90]", 11, "expected a list of a first bin and of counts, found no counts"),
        ("[90, 5]", "[]", 11, "expected a list of a first bin and of counts for `histogram[1]`, found a list of 0"),
        ("[90, 5]", "[90, -5]", 11, "histogram[1][1] is -5"),
        ("[90, 5]", "90", 11, "expected a list for `histogram[1]`, found 90"),
    ] {
        let e = read(&measured(from, to)).expect_err(to).to_string();
        // The line after the small drive's text is empty.
        let message = format!("small.toml:{}: {message}", lines + line);
        assert!(e.starts_with(&message), "{to}: expected\n{message}, got\n{e}");
    }
}

#[test]
fn a_table_that_falls_a_little_is_reported_once_with_its_line() {
    let text = SMALL.replace("[11, 4.25]", "[3, 1.1], [4, 1.15], [11, 4.25]");
    let warnings = read(&text).unwrap_or_else(|e| panic!("{e}")).warnings;
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["small.toml:25: a seek over 3 cylinders takes 1.1 ms, less than the 1.5 ms over 2 cylinders"]);
}

#[test]
fn either_format_is_recognised_whatever_the_file_is_called() {
    let files = |path: &str| match path {
        "p" => Ok(SMALL.to_string()),
        "q" => Ok("# DiskSim\ndisksim_disk X {\n}".to_string()),
        _ => Err("no such file".to_string()),
    };
    assert_eq!(profile::load("p", &files).map(|l| l.profile.name), Ok("small".into()));
    let e = profile::load("q", &files).unwrap_err().to_string();
    assert!(e.starts_with("q:2: disksim_disk X lacks the key"), "{e}");
    let e = profile::load("r", &files).unwrap_err();
    assert_eq!(e.reason, Reason::Unreadable("no such file".into()));
}

#[test]
fn any_bytes_give_a_profile_or_a_fault_and_never_a_panic() {
    // Every truncation of a valid file, and every omission of a line.
    for end in (0..SMALL.len()).filter(|&i| SMALL.is_char_boundary(i)) {
        let _ = read(&SMALL[..end]).map_err(|e| e.to_string());
    }
    let lines: Vec<&str> = SMALL.lines().collect();
    for left_out in 0..lines.len() {
        let text: Vec<&str> = lines.iter().enumerate().filter(|(i, _)| *i != left_out).map(|(_, l)| *l).collect();
        if let Err(e) = read(&text.join("\n")) {
            assert!(e.to_string().starts_with("small.toml"), "{e}");
        }
    }
}

#[test]
fn every_key_is_explained_in_the_document() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profile-format.md");
    let doc = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    for table in headtime_disk::internals::schema::documentation() {
        for key in table.names {
            let explained = doc.contains(&format!("`{key}`"));
            assert!(explained, "docs/profile-format.md does not explain `{key}` of {}", table.title);
        }
    }
    for name in profile::builtin_names() {
        assert!(doc.contains(&format!("`{name}`")), "docs/profile-format.md does not list `{name}`");
    }
}

/// The key tables of docs/profile-format.md are made from the schema. A change that is meant is
/// taken over by running this test with `HEADTIME_BLESS=1`.
#[test]
fn the_key_tables_of_the_document_are_those_of_the_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profile-format.md");
    let written = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut page = written.clone();
    for table in headtime_disk::internals::schema::documentation() {
        let begin = format!("<!-- keys of {} -->\n", table.title);
        let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no table {begin}"));
        let (_, after) = rest.split_once("<!-- end -->").expect("each table has an end");
        page = format!("{before}{begin}{}<!-- end -->{after}", table.rows);
    }
    if std::env::var_os("HEADTIME_BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert!(
        page == written || std::env::var_os("HEADTIME_BLESS").is_some(),
        "docs/profile-format.md has other keys; if the change is meant, HEADTIME_BLESS=1"
    );
}

#[test]
fn a_slip_given_twice_is_reported_and_counts_once() {
    let loaded = read(&SMALL.replace("slips = [3, 5]", "slips = [3, 5, 3]")).unwrap_or_else(|e| panic!("{e}"));
    let told: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["small.toml:15: slip sector 3 of the zone stands twice; it counts once"]);
    assert_eq!(loaded.profile.geometry.usable_sectors(), 1980);
    // Where slips are lost in addition to the spares, counting one of them twice would show.
    let extra = SMALL.replace("slips = [3, 5]", "slips = [3, 5, 3], slips_are_extra = true").replace("1980", "1978");
    assert_eq!(read(&extra).map(|l| l.profile.geometry.usable_sectors()), Ok(1978));
}

#[test]
fn messages_speak_of_places_and_name_the_file_once() {
    for (from, to, message) in [
        ("format = 1\n", "", "small.toml: the profile lacks the key `format`"),
        ("slips = [3, 5]", "slips = [1000]", "found sector 1000 of the zone"),
        ("slips = [3, 5]", "slips_at = [[9, 1, 2]]", "found cylinder 9, surface 1, sector 2"),
        ("slips = [3, 5]", "slipped_tracks_at = [[9, 1]]", "found the track of cylinder 9, surface 1"),
        (
            "[[5, 5]]",
            "[[5, 5], [11, 11]]",
            "cylinders 11 to 11 are listed as unused, but the gaps between the zones are 5 to 5",
        ),
        ("layout = \"F\"", "layout = \"\\u001b[31m\"", "unknown layout `\\u{1b}[31m`"),
    ] {
        let text = SMALL.replacen(from, to, 1);
        assert_ne!(text, SMALL, "{from} is in the file");
        let e = read(&text).expect_err(to).to_string();
        assert!(e.contains(message), "{to}: expected\n{message}, got\n{e}");
    }
}
