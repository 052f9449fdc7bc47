//! A scrub of a drive of 20 TB that continues from a fragmented journal.

use headtime_disk::profile::builtin;
use headtime_disk::{Kind, Model, Time};
use headtime_sched::{Algorithm, Config, Core, FillConfig, Order, TaskRange, TaskSpec};
use headtime_serve::apps::progress::Progress;
use headtime_serve::apps::units::{Units, usual_unit};

/// Ranges of one registration.
const MAX_RANGES: usize = 8192;

#[test]
fn a_scrub_of_20_tb_goes_on_from_its_journal_in_little_memory() {
    let profile = builtin("nearline-20tb").unwrap();
    let model = Model::new(&profile).unwrap();
    let (sectors, sector_bytes) = (model.geometry.capacity(), profile.sector_bytes);
    let unit = usual_unit(sectors, sector_bytes);
    let new = || {
        let units = Units::new(vec![TaskRange { lbn: 0, count: sectors }], unit, sectors, sector_bytes).unwrap();
        Progress::new("scrub", "disk", sectors, sector_bytes, "whole", units)
    };
    let mut done = new();
    let count = done.units().len();
    // Most is done in long ranges, and a part of the rest unit by unit, as gaps allow.
    let is_done = |i: u64| {
        let mixed = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        mixed(i / 4096) < 8 || mixed(i / 4096) < 12 && mixed(i) < 8
    };
    (0..count).filter(|&i| is_done(i)).for_each(|i| assert!(done.mark(i)));

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    done.save(&path).unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!((count / 8..count / 8 + 4096).contains(&bytes), "{bytes} bytes of {count} units");
    let mut resumed = new();
    assert!(resumed.resume(&path).unwrap());
    assert_eq!((resumed.done(), resumed.bytes()), (done.done(), done.bytes()));

    let left = resumed.left(MAX_RANGES);
    assert!(left.len() <= MAX_RANGES && left.is_sorted(), "{} ranges", left.len());
    let mut at = left.iter().copied().peekable();
    for i in (0..count).filter(|&i| !is_done(i)) {
        let unit = resumed.units().range(i);
        while at.next_if(|r| r.end() <= unit.lbn).is_some() {}
        assert!(at.peek().is_some_and(|r| r.lbn <= unit.lbn && unit.end() <= r.end()), "unit {i} is left out");
    }

    let fill = Some(FillConfig::new(Algorithm::Headtime));
    let mut core = Core::new(Config::new(Order::SptfAhead).with_capacity(64).with_fill(fill), model);
    let session = core.open(1, Time::ZERO).unwrap();
    let ranges = left.len();
    let spec = TaskSpec { kind: Kind::Read, ranges: left, blksize: unit, min_pickup: unit };
    core.register(session, &spec, Time::ZERO).expect("there is room");
    let report = core.freeblock().unwrap();
    let most = report.tasks.held() + report.tasks.queues + report.regions.total();
    println!("journal {bytes} bytes, {ranges} ranges, at most {:.2} MB", most as f64 / 1e6);
    assert!(most < 12 << 20, "{most} bytes: {report:?}");
}
