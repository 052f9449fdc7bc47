//! The cost of writes on write-through drives; nothing outside the region is written.

use std::collections::BTreeMap;

use crate::common::{Lab, Through};
use headtime_disk::{Dur, Kind, Time};
use headtime_probe::device::{Ask, Device};
use headtime_probe::sampler::Sampler;
use headtime_probe::spindle::Spindle;
use headtime_probe::watch::Unwatched;
use headtime_probe::{seeks, shingled, writes};

#[test]
fn writes_are_within_30_us_and_stay_in_their_region() {
    for name in ["atlas10k", "cheetah36es", "ultrastar36z15", "barracuda36es2", "maxtor-7l250s0"] {
        let mut lab = Lab::of(name);
        let (geometry, truth, profile) = (lab.truth.geometry.clone(), lab.truth.clone(), lab.profile.clone());
        let end = geometry.capacity();
        let (from, to) = (end / 2 + 17, end / 2 + end / 10 + 5);
        let mut written = 0;
        // Checks every write.
        let guard = |drive: &mut dyn Device, _: &mut Time, asks: &[Ask], outstanding| {
            for ask in asks.iter().filter(|a| a.kind == Kind::Write) {
                assert!(ask.lbn >= from && ask.lbn + u64::from(ask.count) <= to, "{ask:?}");
                written += 1;
            }
            drive.run(asks, outstanding)
        };
        let mut device = Through { drive: lab.device(), now: Time::ZERO, run: guard };
        let mut watch = Unwatched;
        let mut sampler = Sampler::new(&mut device, &mut watch, 11);
        sampler.find_cache().expect("it answers");
        let mut spindle = Spindle::find(&mut sampler).expect("it turns");
        let table = seeks::measure(&mut sampler, &mut spindle, &geometry, &[50]).expect("it is measured");
        let found = writes::measure(&mut sampler, &mut spindle, &geometry, &table, (from, to)).expect("it is measured");
        println!("{name}: {found:?}");
        assert!(written >= 12, "{name}: {written}");
        if profile.electronics.cache.write_back {
            assert_eq!(found.through, None, "{name}");
            continue;
        }
        let w = found.through.expect("it writes through");
        let (o, m) = (&truth.overheads, &truth.mechanics);
        let us = |t: Dur| t.0 as f64 / 1e3;
        let off = |f: Option<headtime_probe::overheads::Found>, is: Dur| us(f.expect("a border").time) - us(is);
        let settle = w.settle_ns.expect("a border") as f64 / 1e3 - m.write_settle_ns as f64 / 1e3;
        // It includes the transfer of a sector's data.
        let command = off(w.command, o.per_request + o.write_miss.after_read + o.reselect + o.write_completion);
        let pairs = [
            off(w.read_write, o.queued.read_write),
            off(w.write_read, o.queued.write_read),
            off(w.write_write, o.queued.write_write),
        ];
        println!("  settle {settle:.1} command {command:.1} pairs {pairs:.1?} us off");
        assert!(settle.abs() < 30.0 && command.abs() < 30.0, "{name}");
        assert!(pairs.iter().all(|p| p.abs() < 30.0), "{name}: {pairs:?}");
        assert_eq!(w.loses_turn, Some(o.queued.write_write > Dur::ZERO), "{name}");
    }
}

/// Of sixteen rewritten sectors, the number that moved, on a drive with or without a log of writes
/// on the media.
fn moved(name: &str, logs: bool) -> u32 {
    let mut lab = Lab::of(name);
    let end = lab.truth.geometry.capacity();
    let (from, to) = (end / 2, end / 2 + end / 10);
    let (mut log, mut free) = (BTreeMap::new(), end - 1_000_000);
    let through = |drive: &mut dyn Device, _: &mut Time, asks: &[Ask], outstanding| {
        let mut there = |ask: &Ask| {
            if logs && ask.kind == Kind::Write {
                free += u64::from(ask.count);
                log.insert(ask.lbn, free - u64::from(ask.count));
            }
            Ask { lbn: log.get(&ask.lbn).copied().unwrap_or(ask.lbn), ..*ask }
        };
        let asks: Vec<Ask> = asks.iter().map(&mut there).collect();
        drive.run(&asks, outstanding)
    };
    let mut device = Through { drive: lab.device(), now: Time::ZERO, run: through };
    let mut watch = Unwatched;
    let mut sampler = Sampler::new(&mut device, &mut watch, 11);
    sampler.find_cache().expect("it answers");
    let mut spindle = Spindle::find(&mut sampler).expect("it turns");
    let seen = shingled::moved(&mut sampler, &mut spindle, (from, to)).expect("it is measured");
    assert_eq!(seen.of, 16, "{name}");
    seen.yes
}

#[test]
fn a_drive_that_puts_what_is_written_elsewhere_is_known() {
    // Write-through, and write-back.
    for name in ["cheetah36es", "atlas10k"] {
        assert_eq!(moved(name, false), 0, "{name}");
        assert!(moved(name, true) >= 14, "{name}");
    }
}
