//! A profile's statements of how its figures are known: read, written, inferred for older files,
//! refused, and bounded.

// The crate has no files; its tests read some.
#![allow(clippy::disallowed_methods)]

use headtime_disk::Dur;
use headtime_disk::profile::{self, Bounds, Figure, Knowledge, Profile};

/// Returns the text of the stored profile of the Ultrastar.
fn ultrastar() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/ultrastar36z15.toml");
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the same without its statements.
fn silent() -> String {
    let text = ultrastar();
    let (before, after) = text.split_once("[known]").expect("it has statements");
    let (_, after) = after.split_once("[[service_times]]").expect("they stand before its times");
    format!("{before}[[service_times]]{after}")
}

fn read(text: &str) -> Profile {
    profile::read("p.toml", text).unwrap_or_else(|e| panic!("{e}")).profile
}

fn unknown(p: &Profile) -> Vec<Figure> {
    p.known.unknown().iter().collect()
}

#[test]
fn built_in_drives_state_how_each_figure_is_known() {
    for name in profile::builtin_names() {
        let p = profile::builtin(name).expect("a built-in drive");
        assert_eq!(unknown(&p), [], "{name}");
        for figure in Figure::ALL.into_iter().filter(|f| f.is_needed()) {
            assert!(p.known.of(figure).how().is_some(), "{name}: {figure}");
        }
    }
}

#[test]
fn without_statements_a_figure_that_stands_in_the_file_is_stated_and_one_that_does_not_is_unknown() {
    assert_eq!(unknown(&read(&silent())), [Figure::Recalibration]);
    for (line, figure) in [
        ("settle_retry_ppm = 10\nsettle_retry_turns = 4\n", Figure::SettleTurns),
        ("seek_sd_us = 20\nseek_max_us = 60\n", Figure::SeekSpread),
        ("overlap_jitter_per_4k_us = 10\n", Figure::Overlap),
        ("write_settle_ms = 0.1\n", Figure::WriteSettle),
        ("write_miss_us = 66.8\n", Figure::WriteOverheads),
    ] {
        let text = silent().replacen("[noise]\n", "[noise]\nrecalibrate_takes_ms = 0\n", 1);
        assert_eq!(unknown(&read(&text)), []);
        assert!(text.contains(line), "{line}");
        let without = read(&text.replacen(line, "", 1));
        assert_eq!(unknown(&without), [figure]);
        // Stated figures remain stated when written, although zeros are omitted.
        assert_eq!(read(&profile::write(&without)), without);
    }
}

#[test]
fn a_file_of_an_older_characterisation_knows_what_its_sources_say() {
    let of = |noise: &str, electronics: &str| {
        let p = profile::builtin("ultrastar36z15").expect("a built-in drive");
        let mut noise_spec = p.noise;
        (noise_spec.settle_retry_ppm, noise_spec.settle_retry_turns, noise_spec.overlap_jitter_per_4k) =
            (0, 0, Dur::ZERO);
        let mut old = Profile { noise: noise_spec, ..p };
        old.mechanics.write_settle_ns = 0;
        old.sources.insert("noise".into(), noise.into());
        old.sources.insert("electronics".into(), electronics.into());
        let text = profile::write(&old);
        let (before, after) = text.split_once("\n[known]").expect("it is written");
        let (_, after) = after.split_once("\n[[service_times]]").expect("times follow");
        read(&format!("{before}\n[[service_times]]{after}"))
    };
    let by_reading = of(
        "measured: completion jitter, and by how much seeks differ; nothing else",
        "measured with reads; what concerns writes is taken from them",
    );
    let all_but_seeks = Figure::ALL.into_iter().filter(|f| *f != Figure::SeekSpread).collect::<Vec<_>>();
    assert_eq!(unknown(&by_reading), all_but_seeks);
    let thorough = of(
        "measured: completion jitter, by how much seeks differ, settling, recalibrations",
        "measured with reads and writes",
    );
    assert_eq!(unknown(&thorough), [Figure::Overlap, Figure::ReadAheadStop, Figure::WriteSettle]);
    assert!(matches!(thorough.known.of(Figure::SettleTurns), Knowledge::Measured(_)));
}

#[test]
fn a_wrong_statement_is_refused_with_its_line_and_what_was_expected() {
    let text = ultrastar();
    let stated = "write_settle = \"bounded: assumed\"";
    let line = text[..text.find(stated).expect("it is there")].matches('\n').count() + 1;
    let refused = |to: &str| {
        let e = profile::read("p.toml", &text.replacen(stated, to, 1)).expect_err(to).to_string();
        assert!(e.starts_with(&format!("p.toml:{line}: ")), "{e}");
        e
    };
    let long = format!("write_settle = \"bounded: {}\"", "x".repeat(400));
    for wrong in [
        "write_settle = \"\"",
        "write_settle = \"measured\"",
        "write_settle = \"measured: \"",
        "write_settle = \"stated: by me\"",
        "write_settle = \"unknown: why\"",
        "write_settle = \"guessed: at most 1 ms\"",
        "write_settle = \"bounded: \\u001b[31m\"",
        &long,
    ] {
        let e = refused(wrong);
        assert!(e.contains("expected \"measured: HOW\", \"bounded: WHY\", \"stated\" or \"unknown\""), "{e}");
    }
    assert!(refused("write_settle = 3").contains("expected a text for `write_settle`, found 3"));
    assert!(refused("write_setle = \"unknown\"").contains("unknown key `write_setle` in known; known are: settle"));
    let e = refused("write_settle = \"unknown\"");
    assert!(
        e.contains("expected no figure beside `write_settle = \"unknown\"`") && e.contains("write_settle_ms = 0.1"),
        "{e}"
    );
}

#[test]
fn what_is_said_of_a_figure_is_written_and_read_again() {
    let mut p = profile::builtin("ultrastar36z15").expect("a built-in drive");
    (p.noise.settle_retry_ppm, p.noise.settle_retry_turns) = (0, 0);
    p.known.set(Figure::SettleTurns, Knowledge::Unknown);
    p.known.set(Figure::SeekSpread, Knowledge::Stated);
    p.known.set(Figure::WriteSettle, Knowledge::Measured("so: \"and\" so".into()));
    let again = read(&profile::write(&p));
    assert_eq!(again.known, p.known);
    assert_eq!(again, p);
    assert_eq!(profile::check(&p), Ok(vec![]));
    p.noise.settle_retry_turns = 1;
    assert!(profile::check(&p).expect_err("a figure that is unknown").to_string().contains("settle_retry_turns = 1"));
}

#[test]
fn a_bound_takes_the_place_of_a_figure_and_is_never_below_it() {
    let of = |text: &str| Bounds::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut p = profile::builtin("ultrastar36z15").expect("a built-in drive");
    let known = p.clone();
    of("n=7, recalibration=0.02s,seek-max=100us,overlap=200us,write-settle=2ms,\
        write-overhead=80us,read-ahead-stop=at-once")
    .apply(&mut p, "so I say")
    .expect("larger than what is known");
    assert_eq!((p.noise.settle_retry_turns, p.noise.recalibrate_takes), (6, Dur::from_ms(20)));
    assert_eq!((p.noise.seek_max, p.noise.overlap_jitter_per_4k), (Dur::from_us(100), Dur::from_us(20)));
    assert_eq!(p.mechanics.write_settle_ns, 2_000_000);
    let o = &p.electronics.overheads;
    // A figure above its bound is known better and stays.
    assert_eq!((o.write_miss.after_read, o.queued.write_write), (Dur::from_us(80), Dur::from_us(80)));
    assert_eq!(o.read_miss.after_read, known.electronics.overheads.read_miss.after_read);
    for figure in Figure::ALL {
        assert_eq!(*p.known.of(figure), Knowledge::Bounded("so I say".into()));
    }
    for (text, said) in [
        ("n=4", "expected n of at least the 5 that the profile has, found 4"),
        ("write-settle=50us", "write-settle of at least the 0.100000 ms that the profile has, found 0.050000 ms"),
        ("seek-max=10us", "seek-max of at least the 0.020000 ms"),
        ("overlap=99us", "overlap of at least the 0.100000 ms"),
    ] {
        let e = of(text).apply(&mut known.clone(), "").expect_err(text).to_string();
        assert!(e.contains(said), "{e}");
    }
    let mut table = known.clone();
    table.mechanics.write_seek = Some(table.mechanics.seek.clone());
    let e = of("write-settle=2ms").apply(&mut table, "").expect_err("a table").to_string();
    assert!(e.contains("found write_seek_ms in the profile"), "{e}");
}

#[test]
fn bounds_that_are_none_are_refused() {
    for (text, said) in [
        ("", "expected n=TURNS"),
        ("n", "found \"n\""),
        ("m=5", "found \"m=5\""),
        ("n=0", "expected n of 1 to 101 turns, found \"0\""),
        ("n=102", "found \"102\""),
        ("n=5,n=6", "expected each figure once, found n twice"),
        ("write-settle=2", "expected write-settle as a time such as 2ms"),
        ("write-settle=-2ms", "found \"-2ms\""),
        ("recalibration=11s", "from 0us to 10 s, found \"11s\""),
        ("read-ahead-stop=0ms", "expected read-ahead-stop=at-once"),
        ("n=\u{1b}[31m", "\\u{1b}[31m"),
    ] {
        let e = Bounds::parse(text).expect_err(text).to_string();
        assert!(e.contains(said) && !e.contains('\u{1b}'), "{text}: {e}");
    }
}
