//! Many runs: `sweep`, `fleet`, tables of requests, replays on a file, figures for other
//! schedulers.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Scratch, command, headtime, run};

const GRID: &str = "[scenario]\nworkload = 'random-4k'\nrequests = 200\n[grid]\norder = ['fcfs', 'sptf']\n\
                    seed = { from = 1, to = 5 }\n";

#[test]
fn a_sweep_is_run_once_and_continued() {
    let there = Scratch::new("sweep");
    let (grid, out) = (there.file("g.toml", GRID), there.path("rows"));
    let said = headtime(&["sweep", &grid, "--check", "-o", &out]).ok();
    assert!(said.contains("10 points") && said.contains("order = \"fcfs\""), "{said}");
    let report = headtime(&["sweep", &grid, "-o", &out, "--threads", "2", "--json"]).json();
    assert_eq!(
        (report["points"].as_u64(), report["done"].as_u64(), report["failed"].as_u64()),
        (Some(10), Some(10), Some(0))
    );
    let names = crate::common::names(std::path::Path::new(&out));
    assert_eq!(names.len(), 4, "{names:?}");
    assert!([".lock", "grid.toml", "sweep.json"].iter().all(|n| names.contains(&(*n).to_owned())), "{names:?}");
    assert!(names.iter().any(|n| n.starts_with("part-00000-") && n.ends_with(".parquet")), "{names:?}");
    let again = headtime(&["sweep", &grid, "-o", &out, "--json"]);
    assert!(again.err.contains("continues after 10 of 10"), "{}", again.err);
    assert_eq!(again.status, Some(0));
    let other = there.file("other.toml", &GRID.replace("200", "201"));
    assert!(headtime(&["sweep", &other, "-o", &out]).refused().contains("another one"));
}

#[test]
fn points_that_cannot_be_run_say_why_in_their_rows() {
    let there = Scratch::new("sweep-failed");
    let grid = there.file(
        "g.toml",
        &format!("{GRID}[list]\nfill = ['none', 'headtime']\nbackground = ['none', 'scan']\n")
            .replace("'sptf'", "'drive'"),
    );
    let done = headtime(&["sweep", &grid, "-o", &there.path("rows")]);
    assert_eq!(done.status, Some(1), "{}", done.err);
    assert!(done.out.contains("5 could not be run"), "{}", done.out);
    // They are still failed when the sweep is continued.
    let again = headtime(&["sweep", &grid, "-o", &there.path("rows")]);
    assert_eq!(again.status, Some(1), "{}", again.err);
    assert!(again.err.contains("continues after 20 of 20 points; 5 of them could not be run"), "{}", again.err);
    assert!(again.out.contains("5 could not be run"), "{}", again.out);
}

#[test]
fn a_stopped_sweep_says_that_it_continues() {
    let there = Scratch::new("sweep-stopped");
    let grid = there.file("g.toml", "[scenario]\nrequests = 20000\n[grid]\nseed = { from = 1, to = 2000 }\n");
    let out = there.path("rows");
    let mut child = command(&["sweep", &grid, "-o", &out]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let lock = std::path::Path::new(&out).join("sweep.json");
    let began = Instant::now();
    while !lock.exists() && began.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(700));
    let mut kill = Command::new("kill");
    kill.args(["-INT", &child.id().to_string()]);
    assert_eq!(run(kill).status, Some(0));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let some = crate::common::names(std::path::Path::new(&out));
    assert!(some.iter().any(|n| n.starts_with("part-00000-")), "{some:?}");
}

#[test]
fn wrong_grids_are_refused() {
    let there = Scratch::new("sweep-wrong");
    let said = |text: &str| headtime(&["sweep", &there.file("g.toml", text), "-o", &there.path("rows")]).refused();
    assert!(said("[grid]\nordr = ['sptf']\n").contains("the closest are order"));
    assert!(said("[grid]\n'profile.mechanics.rpmm' = [7200]\n").contains("mechanics.rpm"));
    assert!(said("[grid\n").contains("g.toml:1"));
    assert!(headtime(&["sweep", "/nowhere", "-o", &there.path("rows")]).refused().contains("/nowhere"));
    assert_eq!(headtime(&["sweep", &there.file("g.toml", GRID)]).status, Some(2), "without -o");
}

#[test]
fn requests_are_written_as_a_table_or_not_at_all() {
    let there = Scratch::new("requests");
    let path = there.path("r.parquet");
    headtime(&["simulate", "--requests", "500", "--requests-out", &path]).ok();
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let e = headtime(&["simulate", "--requests", "5", "--requests-out", "/nowhere/r.parquet"]).refused();
    assert!(e.contains("/nowhere/r.parquet"), "{e}");
    if std::path::Path::new("/dev/full").exists() {
        let e = headtime(&["simulate", "--requests", "5", "--requests-out", "/dev/full"]).refused();
        assert!(e.contains("/dev/full"), "{e}");
    }
}

#[test]
fn a_trace_is_replayed_on_a_file() {
    let there = Scratch::new("replay");
    let disk = there.path("disk");
    std::fs::File::create(&disk).unwrap().set_len(1 << 20).unwrap();
    let trace = there.file("t.csv", "0,R,0,8\n20,W,8,8\n40,R,16,8\n60,R,4096,8\n");
    let args = ["replay", &trace, &disk, "--trace-format", "csv", "--json"];
    let r = headtime(&args).json();
    assert_eq!((r["requests"].as_u64(), r["left_out"].as_u64(), r["refused"].as_u64()), (Some(2), Some(1), Some(1)));
    assert!(r["late_ms"]["max"].as_f64().unwrap() < 1000.0);
    let r = headtime(&[&args[..], &["--overwrite", "--beyond", "wrap"]].concat()).json();
    assert_eq!((r["requests"].as_u64(), r["left_out"].as_u64(), r["refused"].as_u64()), (Some(4), Some(0), Some(0)));
    assert!(r["seconds"].as_f64().unwrap() >= 0.06);
    assert!(headtime(&["replay", &trace, &disk, "--trace-format", "cvs"]).refused().contains("plain-csv"));
    assert!(headtime(&["replay", "/nowhere", &disk, "--trace-format", "csv"]).refused().contains("/nowhere"));
}

#[test]
fn figures_for_other_schedulers() {
    let export = |whose: &str| headtime(&["profiles", "export", "atlas10k", "--for", whose, "--json"]).json();
    let ceph = export("ceph");
    let iops = ceph["osd_mclock_max_capacity_iops_hdd"].as_f64().unwrap();
    let bandwidth = ceph["osd_mclock_max_sequential_bandwidth_hdd"].as_f64().unwrap();
    assert!((100.0..400.0).contains(&iops) && (1.5e7..3.0e7).contains(&bandwidth), "{ceph}");
    let iocost = export("iocost");
    assert!(iocost["rseqiops"].as_f64().unwrap() > 5.0 * iocost["rrandiops"].as_f64().unwrap(), "{iocost}");
    let seastar = headtime(&["profiles", "export", "atlas10k", "--for", "seastar"]).ok();
    assert!(seastar.contains("read_iops: ") && seastar.contains("write_bandwidth: "), "{seastar}");
}

/// What the drive's own cache takes in at first is no rate that lasts: bandwidth of writes is that
/// of the media, as with reads.
#[test]
fn exported_writes_are_those_behind_a_full_cache() {
    let r = headtime(&["profiles", "export", "nearline-20tb", "--for", "seastar", "--json"]).json();
    let [read, write] = ["read_bandwidth", "write_bandwidth"].map(|key| r[key].as_f64().unwrap());
    assert!((0.7..1.1).contains(&(write / read)), "{r}");
}

#[test]
fn fleets_are_studied_and_wrong_studies_refused() {
    let there = Scratch::new("fleet");
    let text =
        "title = 'Small'\ndisk = 'atlas10k'\ndrives = 100\n[load]\nper_second = 20.0\n[policies]\nfree = 'headtime'\n";
    let out = there.path("out");
    let r = headtime(&["fleet", &there.file("s.toml", text), "-o", &out, "--json"]).json();
    assert!(r["policies"]["free"]["scan_days"][1].as_f64().unwrap() > 0.0, "{r}");
    let page = std::fs::read_to_string(there.0.join("out/index.html")).unwrap();
    assert!(page.contains("<svg"));
    // Targets are in the order of their days.
    let stored = std::fs::read_to_string(there.0.join("out/results.json")).unwrap();
    for (text, before, after) in [(&page, "longer than ", " days"), (&stored, "\"", "\": {")] {
        let places = ["7", "14", "30"].map(|days| text.find(&format!("{before}{days}{after}")).unwrap());
        assert!(places.is_sorted(), "{text}");
    }
    let e = headtime(&["fleet", &there.file("w.toml", &text.replace("headtime'", "fre'"))]).refused();
    assert!(e.contains("policies.free"), "{e}");
    assert!(headtime(&["fleet", "--show", "scrub"]).ok().contains("10,000 drives"));
    assert!(headtime(&["fleet", "--show", "scrubs"]).refused().contains("write-cache"));
}
