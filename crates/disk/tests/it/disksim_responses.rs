//! The drive, configured to follow DiskSim, gives DiskSim's own response time for every request of
//! four validation traces.
//!
//! DiskSim's clock truncates, so its platter rotates slightly slower than its file states (0.5 to
//! 1.3 parts per million, found by comparing phases) and drifts by some microseconds besides. The
//! test allows for that speed difference and follows the remaining drift from one request to the
//! next. Where a sector passes just as the head arrives, those few microseconds decide about a
//! whole revolution: a handful of such requests is allowed.
//!
//! The vectors are not part of this project. They are expected in `$HEADTIME_DATA/disksim/ref`,
//! else in `../shared/data/disksim/ref` beside the workspace; without them the tests report that
//! and pass.

// The crate opens no files; its tests may.
#![allow(clippy::disallowed_methods)]

use std::path::PathBuf;

use headtime_disk::{Command, Drive, DriveConfig, Kind, Time, profile};

fn folder() -> Option<PathBuf> {
    let root = match std::env::var_os("HEADTIME_DATA") {
        Some(data) => PathBuf::from(data),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let folder = root.join("disksim");
    folder.join("ref").is_dir().then_some(folder)
}

/// Replays the reference's requests at the reference's instants; returns the differences as (us,
/// line), largest first.
fn differences(name: &str, slower_ppb: i64) -> Option<Vec<(f64, String)>> {
    let Some(folder) = folder() else {
        println!("skipped: no DiskSim vectors (set HEADTIME_DATA to the folder that holds disksim/)");
        return None;
    };
    let read = |p: &str| std::fs::read_to_string(p).map_err(|e| e.to_string());
    let path = folder.join(format!("{name}.parv"));
    let mut loaded = profile::load(&path.to_string_lossy(), &read).unwrap_or_else(|e| panic!("{e}"));
    loaded.profile.noise.speed_error_ppb = slower_ppb;
    let config = DriveConfig::default().with_disksim_exact(true);
    let mut drive = Drive::new(&loaded.profile, config).unwrap();
    let text = read(&folder.join(format!("ref/{name}.resp.csv")).to_string_lossy()).unwrap();
    let mut all = vec![];
    for (i, line) in text.lines().enumerate().skip(1) {
        let f: Vec<&str> = line.split(',').collect();
        let ns = |s: &str| (s.parse::<f64>().unwrap() * 1e6).round() as u64;
        let (issued, expected) = (Time(ns(f[3])), ns(f[4]));
        let kind = if f[0] == "R" { Kind::Read } else { Kind::Write };
        let (lbn, count) = (f[1].parse().unwrap(), f[2].parse().unwrap());
        while drive.advance(issued).is_some() {}
        drive.submit(Command { id: i as u64, kind, lbn, count, fua: false }, issued).unwrap();
        let done = loop {
            let at = drive.next_event().unwrap();
            if let Some(c) = drive.advance(at) {
                break c.at;
            }
        };
        let got = done.since(issued).0;
        let note = format!("line {}: {line}: {:.6} ms", i + 1, got as f64 / 1e6);
        all.push(((got as f64 - expected as f64) / 1000.0, note));
    }
    Some(all)
}

fn check(name: &str, slower_ppb: i64) {
    let Some(all) = differences(name, slower_ppb) else { return };
    let (mut drift, mut turns, mut off) = (0.0f64, 0, 0);
    for (us, note) in &all {
        let away = us - drift;
        if us.abs() < 0.002 || away.abs() <= 2.0 {
            // Served without the media, or in phase.
            if us.abs() >= 0.002 {
                drift = *us;
            }
        } else if away.abs() > 4_000.0 {
            turns += 1;
        } else {
            off += 1;
            println!("{us:+.3} us (drift {drift:+.3})  {note}");
        }
    }
    assert_eq!(off, 0, "{name}: of {} requests, {off} differ by more than 2 us", all.len());
    assert!(turns <= 5, "{name}: {turns} requests differ by a turn");
    assert!(drift.abs() < 40.0, "{name}: the phase drifts by {drift} us");
}

#[test]
fn hp_c2247a_answers_as_disksim_does() {
    check("hp_c2247a", 1251);
}

#[test]
fn atlas_10k_answers_as_disksim_does() {
    check("atlas10k", 642);
}

#[test]
fn atlas_iii_answers_as_disksim_does() {
    check("atlas_III", 870);
}

#[test]
fn cheetah_9lp_answers_as_disksim_does() {
    check("cheetah9LP", 480);
}
