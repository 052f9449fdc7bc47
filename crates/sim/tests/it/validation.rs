//! Demerits of the four drives with measured traces, against DiskSim's own (WD build, six digits).
//!
//! The traces are not part of this project. They are expected in `$HEADTIME_DATA/disksim`, else in
//! `../shared/data/disksim` beside the workspace; without them the tests report that and pass.

use std::path::{Path, PathBuf};

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Command, Drive, DriveConfig, Dur, Kind, Model, Time};
use headtime_sim::traces::{self, Gap, GapSide, ReadOptions, TraceFormat};
use headtime_sim::validate::{Measured, Validation, measured, predict, run};

/// Returns the folder of measured traces, if it exists.
fn folder() -> Option<PathBuf> {
    let root = match std::env::var_os("HEADTIME_DATA") {
        Some(data) => PathBuf::from(data),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let folder = root.join("disksim");
    if !folder.is_dir() {
        println!("skipped: no measured traces (set HEADTIME_DATA to the folder that holds disksim/)");
        return None;
    }
    Some(folder)
}

/// Replays a trace on DiskSim's own file of the drive.
fn validate(name: &str, exact: bool, gap: GapSide) -> Option<Validation> {
    let folder = folder()?;
    let read = |p: &str| std::fs::read_to_string(p).map_err(|e| e.to_string());
    let path = folder.join(format!("{name}.parv"));
    let loaded = profile::load(&path.to_string_lossy(), &read).unwrap_or_else(|e| panic!("{e}"));
    let config = DriveConfig::default().with_disksim_exact(exact).with_rig(true);
    let v = replay(&folder, name, &loaded.profile, config, gap);
    println!(
        "{name} exact={exact} {gap:?}: rms {:.6} ms, means {:.3} measured {:.3} modelled, random reads {}: {:.3} {:.3}",
        v.rms_ms, v.mean_ms_measured, v.mean_ms_model, v.random_reads, v.within_200us, v.within_500us
    );
    Some(v)
}

/// Replays the trace `name`.
fn replay(folder: &Path, name: &str, profile: &Profile, config: DriveConfig, gap: GapSide) -> Validation {
    let mut drive = Drive::new(profile, config).unwrap();
    let options = ReadOptions { gap, ..ReadOptions::default() };
    let trace = traces::open(&folder.join(format!("{name}.trace")), TraceFormat::DisksimValidate, options).unwrap();
    let trace = measured(&trace.read_all().unwrap(), profile.sector_bytes).unwrap();
    run(&mut drive, &trace).unwrap()
}

/// DiskSim's demerit is reproduced to three digits when its behaviour is followed exactly, and is
/// not exceeded when its parameters have their documented meaning.
fn check(name: &str, disksim: f64) {
    for gap in [GapSide::After, GapSide::Before] {
        let Some(exact) = validate(name, true, gap) else { return };
        let Some(meant) = validate(name, false, gap) else { return };
        if gap == GapSide::After {
            assert!((exact.rms_ms - disksim).abs() < 0.0005, "{name}: {} instead of {disksim}", exact.rms_ms);
            assert!(meant.rms_ms < disksim + 0.0001, "{name}: {} instead of {disksim}", meant.rms_ms);
        }
    }
}

#[test]
fn atlas_10k_fits_no_worse_than_disksim() {
    check("atlas10k", 0.267525);
}

#[test]
fn atlas_iii_fits_no_worse_than_disksim() {
    check("atlas_III", 0.378078);
}

#[test]
fn cheetah_9lp_fits_no_worse_than_disksim() {
    check("cheetah9LP", 0.107098);
}

#[test]
fn hp_c2247a_fits_no_worse_than_disksim() {
    check("hp_c2247a", 0.089288);
}

/// With correct skews a model predicts which single reads are slow; with wrong ones 6% match, as by
/// chance.
#[test]
fn single_random_reads_of_the_measured_drives_are_met_in_phase() {
    let Some(folder) = folder() else { return };
    for (builtin, trace, share) in [("atlas10k", "atlas10k", 0.52), ("atlas3", "atlas_III", 0.69)] {
        let profile = profile::builtin(builtin).unwrap();
        let config = DriveConfig::default().with_rig(true).with_noise(false);
        let v = replay(&folder, trace, &profile, config, GapSide::Before);
        assert!(v.within_200us > share, "{builtin}: only {} within 0.2 ms", v.within_200us);
    }
}

/// Random reads of a virtual drive as a trace, each 20 ms after the completion before.
fn recorded(profile: &Profile, config: DriveConfig) -> Vec<Measured> {
    let mut drive = Drive::new(profile, config).unwrap();
    let gap = Dur::from_ms(20);
    let (mut at, mut trace) = (Time::ZERO, Vec::new());
    for id in 0..2_000 {
        let lbn = (id * 7_919_777) % (drive.capacity() - 8);
        drive.submit(Command { id, kind: Kind::Read, lbn, count: 8, fua: false }, at).unwrap();
        let done = loop {
            let next = drive.next_event().unwrap();
            if let Some(completion) = drive.advance(next) {
                break completion.at;
            }
        };
        let response = done.since(at);
        trace.push(Measured { kind: Kind::Read, lbn, count: 8, response, gap: Gap::After(gap), line: id + 1 });
        at = done + gap;
    }
    trace
}

#[test]
fn head_times_of_a_recorded_drive_are_predicted_as_well_as_the_profile_is_right() {
    let profile = profile::builtin("cheetah18lp").unwrap();
    let model = Model::new(&profile).unwrap();
    let right = predict(&model, &recorded(&profile, DriveConfig::default().with_noise(false))).unwrap();
    assert!(right.stats.samples >= 1_990 && right.stats.within_50us == right.stats.samples, "{:?}", right.stats);
    let mut other = profile.clone();
    other.mechanics.seek.iter_mut().for_each(|s| s.1 = Dur(s.1.0 * 11 / 10));
    let wrong = predict(&model, &recorded(&other, DriveConfig::default().with_noise(false))).unwrap();
    assert!(wrong.stats.extra_turn * 20 > wrong.stats.samples, "{:?}", wrong.stats);
    assert_eq!(wrong.each.len() as u64, wrong.stats.samples);
}

/// docs/validation.md, "Predicted head times".
#[test]
fn nine_in_ten_head_times_of_the_real_atlas_10k_are_predicted_within_50_us() {
    let Some(folder) = folder() else { return };
    let mut profile = profile::builtin("atlas10k").unwrap();
    profile.mechanics.rpm = (99_997, 10);
    let options = ReadOptions { gap: GapSide::Before, ..ReadOptions::default() };
    let trace = traces::open(&folder.join("atlas10k.trace"), TraceFormat::DisksimValidate, options).unwrap();
    let trace = measured(&trace.read_all().unwrap(), profile.sector_bytes).unwrap();
    let found = predict(&Model::new(&profile.in_rig()).unwrap(), &trace).unwrap();
    let moved = |p: &headtime_sim::validate::Predicted| p.from.0 != p.to.0 && p.prediction.seek > Dur::ZERO;
    // Reads directly behind one that moved the arm, too, so that the head's position was known.
    let pairs = found.each.windows(2).filter(|w| w[1].measured.line == w[0].measured.line + 1);
    let pairs: Vec<_> = pairs
        .filter(|w| moved(&w[0]) && moved(&w[1]))
        .filter(|w| w.iter().all(|p| p.measured.kind.is_read()))
        .collect();
    let close = pairs.iter().filter(|w| w[1].prediction.error_ns().abs() <= 50_000).count();
    println!("{close} of {} within 50 us", pairs.len());
    assert!(pairs.len() > 800 && 100 * close >= 88 * pairs.len());
}
