//! The gap before a read that lies shortly after the one before it, on a drive that reads ahead.

use crate::filling_rig::Rig;
use headtime_disk::{Dur, Kind, Time, profile};
use headtime_sched::{Algorithm, FillConfig};

const ROUNDS: u64 = 100;

/// Pairs of reads of 4 KiB, the second `behind` sectors after the first after a `pause`. Returns
/// the total time, and the rig.
fn pairs(behind: u64, pause: Dur, scans: bool) -> (Dur, Rig) {
    let p = profile::builtin("hitachi-7k1000c").expect("a built-in drive");
    let fill = FillConfig { idle: None, ..FillConfig::new(Algorithm::Headtime) };
    let mut rig = Rig::new(&p, Some(fill), vec![]);
    if scans {
        rig.scan();
    }
    let apart = rig.capacity() / (ROUNDS + 1);
    for round in 0..ROUNDS {
        let first = (round * 37 % ROUNDS) * apart;
        for lbn in [first, first + behind] {
            rig.submit(Kind::Read, lbn, 8);
            rig.finish();
            rig.run(pause);
        }
    }
    (rig.now.since(Time::ZERO), rig)
}

/// Returns how many of the second reads had a command of the scan before them, or merged with them.
fn filled(rig: &Rig, behind: u64) -> usize {
    let apart = rig.capacity() / (ROUNDS + 1);
    let is_second = |lbn: u64| (lbn % apart).abs_diff(behind) < 8;
    let mut before = 0;
    let mut count = 0;
    for (_, command, free) in &rig.sent {
        let (lbn, end) = (command.lbn + u64::from(*free), command.lbn + u64::from(command.count));
        match end > lbn {
            false => before += 1,
            true => {
                count += usize::from(is_second(lbn) && (before > 0 || *free > 0));
                before = 0;
            }
        }
    }
    count
}

/// The drive has stopped at the end of the track by then: there is a rotational latency before the
/// second read.
#[test]
fn where_the_drive_has_stopped_reading_ahead_the_gap_is_filled() {
    let (behind, pause) = (1_960, Dur::from_ms(12));
    let (alone, _) = pairs(behind, pause, false);
    let (with, rig) = pairs(behind, pause, true);
    println!("{alone} alone, {with} beside a scan, {} gaps", filled(&rig, behind));
    assert!(filled(&rig, behind) > 50, "{} of {ROUNDS} gaps", filled(&rig, behind));
    assert!(with.0 * 100 < alone.0 * 101, "{alone} alone, {with} beside a scan");
}

/// The drive is reading there when the second read arrives.
#[test]
fn where_the_drive_reads_ahead_nothing_gets_in_its_way() {
    let (behind, pause) = (64, Dur::from_us(200));
    let (alone, _) = pairs(behind, pause, false);
    let (with, rig) = pairs(behind, pause, true);
    println!("{alone} alone, {with} beside a scan, {} gaps", filled(&rig, behind));
    assert!(filled(&rig, behind) == 0, "{} gaps", filled(&rig, behind));
    assert!(with.0 * 100 < alone.0 * 101, "{alone} alone, {with} beside a scan");
}
