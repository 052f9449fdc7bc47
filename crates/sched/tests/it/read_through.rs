//! Read-through: sectors that a read's own command brings because they pass on the way to the read.

use crate::filling_rig::{Rig, gaps_only};
use headtime_disk::{Dur, Fault, Kind, Outcome, Time};
use headtime_sched::FillConfig;

/// A program that reads files one after the other and skips what lies between them. Returns its
/// time, and the rig.
fn skipping(fill: Option<FillConfig>, between: u64) -> (Time, Rig) {
    let profile = headtime_disk::profile::builtin("hitachi-7k1000c").expect("a built-in drive");
    let wants = fill.is_some();
    let mut rig = Rig::new(&profile, fill, vec![]);
    rig.submit(Kind::Read, 0, 8);
    rig.finish();
    if wants {
        rig.scan();
    }
    for n in 0..200 {
        rig.submit(Kind::Read, 64 + n * between, 8);
        rig.finish();
        rig.run(Dur::from_us(150));
    }
    (rig.now, rig)
}

#[test]
fn what_passes_on_the_way_to_a_read_is_had_without_a_command_of_its_own_and_costs_no_time() {
    for (between, had) in [(128, false), (320, true), (512, true), (700, true)] {
        let (alone, _) = skipping(None, between);
        let (ended, rig) = skipping(Some(gaps_only()), between);
        let merged = rig.sent.iter().filter(|s| s.2 > 0 && s.2 < s.1.count).count();
        // In steps of 128 the bus has no time for more.
        assert_eq!(merged > 150, had, "{between}: {merged} of 200 reads bring what passes before them");
        assert!(!had || rig.delivered() > 150 * (between - 128), "{between}: {} sectors", rig.delivered());
        let (alone, took) = (alone.since(Time::ZERO), ended.since(Time::ZERO));
        assert!(took.0 <= alone.0 + alone.0 / 1_000, "{between}: {took} and {alone} alone");
    }
}

#[test]
fn what_passes_on_the_way_is_left_where_the_bus_would_bring_the_read_later() {
    // Everything before the read is already in the buffer: the pause is longer than the way.
    let profile = headtime_disk::profile::builtin("hitachi-7k1000c").expect("a built-in drive");
    let mut rig = Rig::new(&profile, Some(gaps_only()), vec![]);
    rig.scan();
    rig.submit(Kind::Read, 0, 8);
    rig.finish();
    rig.run(Dur::from_ms(9));
    let asked = rig.now;
    rig.submit(Kind::Read, 1_000, 8);
    rig.finish();
    assert!(rig.sent.iter().all(|s| s.2 == 0 || s.1.lbn >= 1_008), "{:?}", rig.sent);
    assert!(rig.now.since(asked) < Dur::from_us(300));
}

#[test]
fn a_sector_known_to_be_unreadable_is_not_brought_on_the_way_to_a_read() {
    let profile = headtime_disk::profile::builtin("hitachi-7k1000c").expect("a built-in drive");
    let lbn = 5_000;
    let mut rig = Rig::new(&profile, Some(gaps_only()), vec![Fault::Unreadable { lbn, count: 1 }]);
    rig.submit(Kind::Read, lbn, 8);
    rig.finish();
    assert_eq!(rig.finished[0].outcome, Outcome::MediaError { lbn });
    rig.scan();
    rig.submit(Kind::Read, 0, 8);
    rig.finish();
    for n in 0..40 {
        rig.submit(Kind::Read, 64 + n * 320, 8);
        rig.finish();
        rig.run(Dur::from_us(150));
    }
    let fronts: Vec<_> = rig.sent.iter().filter(|s| s.2 > 0 && s.2 < s.1.count).map(|s| s.1).collect();
    assert!(fronts.len() > 20, "{} reads bring what passes before them", fronts.len());
    assert!(!fronts.iter().any(|c| (c.lbn..c.lbn + u64::from(c.count)).contains(&lbn)), "{fronts:?}");
}
