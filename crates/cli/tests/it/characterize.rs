//! `headtime characterize`: rejected input, and runs on virtual drives.

use crate::common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Scratch, command, headtime};

/// 41 MB, 10025 rpm.
const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real/small.toml");
const GIB: u64 = 1 << 30;

fn small() -> String {
    format!("disk:{SMALL}")
}

fn characterize(args: &[&str]) -> common::Ran {
    headtime(&[&["characterize"], args].concat())
}

#[test]
fn a_virtual_drives_period_is_found_and_its_profile_can_be_read() {
    let there = Scratch::new("characterize-virtual");
    let (out, report) = (there.path("found.toml"), there.path("report"));
    let said = characterize(&[&small(), "-o", &out, "--report", &report, "--json"]).json();
    let period = said["findings"].as_array().unwrap().iter().find(|f| f["what"] == "period").unwrap();
    let ms: f64 = period["value"].as_str().unwrap().trim_end_matches(" ms").parse().unwrap();
    assert!((ms / (60e3 / 10_025.0) - 1.0).abs() < 10e-6, "{period}");
    assert_eq!((&said["sectors"], &said["surprises"]["unreadable_count"]), (&81_072.into(), &0.into()));
    let shown = headtime(&["profiles", "show", &out]).ok();
    assert!(shown.contains("name = \"found\"") && shown.contains("measured"), "{shown}");
    assert_eq!(there.names(), ["found.toml", "report"]);
    let findings: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(format!("{report}/findings.json")).unwrap()).unwrap();
    assert_eq!(findings, said);
    let page = fs::read_to_string(format!("{report}/report.md")).unwrap();
    assert!(page.contains("| period |"));
    for picture in ["seeks.svg", "zones.svg", "angles.svg"] {
        assert!(
            page.contains(picture) && fs::read_to_string(format!("{report}/{picture}")).unwrap().starts_with("<svg")
        );
    }
    // The figures behind guarantees are there, marked as predicted.
    assert!(shown.contains("\"service_times\" = \"predicted"), "{shown}");
    assert!(said["findings"].as_array().unwrap().iter().any(|f| f["what"] == "worst case (w)"), "{said}");
}

#[test]
fn the_same_seed_gives_the_same_profile() {
    let there = Scratch::new("characterize-seed");
    let with = |seed: &str| {
        let out = there.path("it.toml");
        let said = characterize(&[SMALL, "--virtual", "-o", &out, "--force", "--seed", seed]).ok();
        assert!(said.contains("how sure") && said.contains(&out), "{said}");
        fs::read_to_string(out).unwrap()
    };
    assert_eq!(with("5"), with("5"));
    assert_ne!(with("5"), with("6"));
}

#[test]
fn an_older_profile_gives_what_is_not_measured() {
    let there = Scratch::new("characterize-update");
    let out = there.path("new.toml");
    characterize(&[&small(), "-o", &out, "--update", SMALL]).ok();
    headtime(&["profiles", "compare", SMALL, &out]).ok();
    fs::remove_file(&out).unwrap();
    let e = characterize(&[&small(), "-o", &out, "--update", "atlas10k"]).refused();
    assert!(e.contains("another drive's") && e.contains("81072"), "{e}");
    let bad = there.file("bad.toml", "name = \"x\"\nspeed = [");
    assert!(characterize(&[&small(), "-o", &out, "--update", &bad]).refused().contains("bad.toml:2"));
    assert_eq!(there.names(), ["bad.toml"]);
}

#[test]
fn a_profile_that_is_there_stays_unless_it_may_be_replaced() {
    let there = Scratch::new("characterize-force");
    let out = there.file("mine.toml", "precious");
    assert!(characterize(&[&small(), "-o", &out]).refused().contains("--force"));
    assert_eq!(fs::read_to_string(&out).unwrap(), "precious");
    characterize(&[&small(), "-o", &out, "--force"]).ok();
    assert!(fs::read_to_string(&out).unwrap().contains("rpm = "));
    let nowhere = there.path("no/such/x.toml");
    assert!(characterize(&[&small(), "-o", &nowhere]).refused().contains("no/such/x.toml"));
}

#[test]
fn a_run_whose_time_is_over_is_gone_on_with() {
    let there = Scratch::new("characterize-resume");
    let (out, kept) = (there.path("x.toml"), there.path("x.toml.unfinished"));
    let with = |more: &[&str]| characterize(&[&["disk:cheetah36es", "-o", &out], more].concat());
    assert!(with(&["--resume"]).refused().contains("x.toml.unfinished"));
    let first = with(&["--budget", "2"]);
    assert_eq!((first.status, first.out.as_str()), (Some(1), ""), "{}", first.err);
    assert!(first.err.contains("--resume goes on from") && first.err.contains("2 minutes"), "{}", first.err);
    assert_eq!(there.names(), ["x.toml.unfinished"]);
    let text = fs::read_to_string(&kept).unwrap();
    assert!(text.contains("# ended: ") && text.lines().count() > 1_000, "{}", &text[..200]);
    // It is not started anew inadvertently, nor resumed with another seed.
    let e = with(&[]).refused();
    assert!(e.contains("--resume goes on") && e.contains("--force"), "{e}");
    assert!(with(&["--resume", "--seed", "2"]).refused().contains("\"seed\":2"));
    // Two more minutes each time, until it is done.
    let runs = (2..9).find(|_| with(&["--resume", "--budget", "2"]).status == Some(0));
    assert!(runs.is_some_and(|n| n < 6), "{runs:?}");
    assert_eq!(there.names(), ["x.toml"]);
    let compared = headtime(&["profiles", "compare", "cheetah36es", &out, "--reads-only"]);
    assert!(compared.out.contains("angle of 1000 random sectors"), "{}", compared.out);
}

#[test]
fn what_was_found_is_said_where_it_cannot_be_written_and_nothing_is_left_beside_a_device() {
    let ran = characterize(&[&small(), "-o", "/dev/full", "--force"]);
    assert_eq!(ran.status, Some(2), "{}", ran.err);
    assert!(ran.out.contains("how sure") && ran.out.contains("verified"), "{}", ran.out);
    assert!(ran.err.contains("No space left"), "{}", ran.err);
    assert!(!std::path::Path::new("/dev/full.unfinished").exists());
    let there = Scratch::new("characterize-report");
    let (out, taken) = (there.path("x.toml"), there.file("taken", "dear"));
    assert!(characterize(&[&small(), "-o", &out, "--report", &taken]).refused().contains("taken"));
    assert_eq!(there.names(), ["taken"]);
}

#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    let there = Scratch::new("characterize-twice");
    let (out, kept) = (there.path("x.toml"), there.path("x.toml.unfinished"));
    let child = command(&["characterize", "disk:hitachi-7k1000c", "-o", &out]).stderr(Stdio::piped()).spawn().unwrap();
    while !fs::read_to_string(&kept).is_ok_and(|text| text.lines().count() > 100) {
        sleep(Duration::from_millis(5));
    }
    for _ in 0..2 {
        // The first signal may have ended it already.
        Command::new("kill").args(["-TERM", &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
    }
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(there.names(), ["x.toml.unfinished"]);
    assert!(fs::read_to_string(&kept).unwrap().contains("# ended: stopped"));
}

#[test]
fn wrong_usage_is_reported_in_one_line() {
    let there = Scratch::new("characterize-usage");
    let out = there.path("x.toml");
    let e = characterize(&[&small(), "-o", &out, "--budget", "0"]).refused();
    assert!(e.starts_with("headtime: --budget: expected a whole number from 1 to 44640"), "{e}");
    for args in [vec![small()], vec![small(), "-o".into(), out.clone(), "--yes-overwrite".into(), "x".into()]] {
        let ran = characterize(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(ran.status == Some(2) && ran.err.contains("Usage:"), "{}", ran.err);
    }
    assert!(characterize(&["disk:nothing", "-o", &out]).refused().contains("atlas10k"));
    assert!(characterize(&["atlas10k", "-o", &out]).refused().contains("disk:atlas10k"));
    assert_eq!(there.names(), [""; 0]);
}

#[test]
fn what_is_no_disk_is_refused() {
    let there = Scratch::new("characterize-guards");
    let out = there.path("x.toml");
    let said = |device: &str| {
        let ran = characterize(&[device, "-o", &out]);
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
        ran.err
    };
    assert!(said("/dev/null").contains("expected a block device or a regular file, found a character device"));
    assert!(said(&there.path(".")).contains("found a directory"));
    assert!(said(&there.path("none")).contains("No such file"));
    let small = there.file("small", "dear");
    assert!(said(&small).contains("expected 1.07 GB or more, found 4 bytes"));
    // As large as a disk, but answered from memory or by a file system.
    let image = there.path("image");
    fs::File::create(&image).unwrap().set_len(GIB).unwrap();
    let e = said(&image);
    assert!(e.contains("no rotating disk") || e.contains("found none") || e.contains("direct I/O"), "{e}");
    assert!(!there.names().contains(&"x.toml".to_string()), "{:?}", there.names());
    assert_eq!(fs::read(&small).unwrap(), b"dear");
}

#[test]
fn writes_ask_for_the_name_of_what_is_lost() {
    let there = Scratch::new("characterize-destructive");
    let (out, image) = (there.path("x.toml"), there.file("image", "dear"));
    // There is no terminal to ask on.
    let e = characterize(&[&image, "-o", &out, "--destructive"]).refused();
    assert!(e.contains("all data on") && e.contains("--yes-overwrite"), "{e}");
    let e = characterize(&[&image, "-o", &out, "--destructive", "--yes-overwrite", "sda"]).refused();
    assert!(e.contains("nothing was touched") && e.contains("found \"sda\""), "{e}");
    assert_eq!(fs::read(&image).unwrap(), b"dear");
    // A virtual drive has no data to lose.
    characterize(&[&small(), "-o", &out, "--destructive"]).ok();
}

#[test]
fn a_signal_ends_it_with_its_status_and_leaves_no_half_profile() {
    let there = Scratch::new("characterize-stop");
    let (out, image) = (there.path("x.toml"), there.path("image"));
    fs::File::create(&image).unwrap().set_len(GIB).unwrap();
    let mut child = command(&["characterize", &image, "-o", &out]);
    let mut child = child.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert!(line.contains("a file"), "{line}");
    let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    // Without direct I/O, or if the signal came late, it has ended by itself: a file is no rotating
    // disk.
    let no_disk =
        ["direct I/O", "no rotating disk", "found none", "from a cache each time"].iter().any(|why| rest.contains(why));
    let by_itself = no_disk || !asked.success();
    assert!(status.code() == Some(130) || by_itself, "{status}: {rest}");
    assert!(!there.names().iter().any(|n| n.contains("x.toml") && !n.ends_with(".unfinished")), "{:?}", there.names());
}
