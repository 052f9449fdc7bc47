//! The pauses of a program that alternates between reading and computing: their benefit to a scan,
//! and their cost.

use crate::filling_rig::Rig;
use headtime_disk::{Dur, Kind, profile};
use headtime_sched::{Algorithm, FillConfig};
use headtime_testkit::profiles::between;

const ROUNDS: u64 = 100;

/// Reads the same sectors, which the drive's cache has, after pauses of this number of
/// milliseconds. Returns what the scan of `wanted` (the whole disk where that is empty) has read,
/// and the mean time of a read.
fn pauses(ms: (u64, u64), wanted: &[(u64, u64)]) -> (u64, Dur) {
    let p = profile::builtin("hitachi-7k1000c").expect("a built-in drive");
    let mut rig = Rig::new(&p, Some(FillConfig::new(Algorithm::Headtime)), vec![]);
    let place = rig.capacity() / 3;
    match wanted {
        [] => drop(rig.scan()),
        ranges => {
            let ranges: Vec<(u64, u64)> = ranges.iter().map(|&(from, count)| (place + from, count)).collect();
            let session = rig.session(1);
            rig.task(session, Kind::Read, &ranges, 32);
        }
    }
    let mut took = Dur::ZERO;
    for _ in 0..ROUNDS {
        let asked = rig.now;
        rig.submit(Kind::Read, place, 8);
        rig.finish();
        took += rig.now.since(asked);
        let pause = between(&mut rig.rng, ms.0, ms.1);
        rig.run(Dur::from_ms(pause));
    }
    (rig.delivered(), Dur(took.0 / ROUNDS))
}

/// The drive reads about 2,000 sectors in a revolution. The units of a scan do not end where tracks
/// do: if the drive is predicted to need a revolution for the unit that crosses a track end,
/// although it has read it ahead, a pause brings less than half of this.
#[test]
fn a_pause_is_spent_on_sectors_that_follow_each_other_across_track_ends() {
    let (sectors, took) = pauses((10, 110), &[]);
    println!("{sectors} sectors, {took}");
    assert!(sectors > ROUNDS * 5_000, "{sectors} sectors in {ROUNDS} pauses");
    assert!(took < Dur::from_ms(1), "{took} for each read, which waits for nothing");
}

/// The paper's 20 ms are not waited for where pauses are known to last 18.
#[test]
fn a_pause_that_is_shorter_than_the_long_threshold_is_used() {
    let (sectors, took) = pauses((18, 18), &[]);
    println!("{sectors} sectors, {took}");
    assert!(sectors > ROUNDS * 200, "{sectors} sectors in {ROUNDS} pauses of 18 ms");
    assert!(took < Dur::from_ms(1), "{took} for each read, which waits for nothing");
}

/// One unit on every track: each takes up to one revolution. A command that waits for its sectors
/// at the drive delays a request by that time; one that is sent shortly before they pass does not.
#[test]
fn what_has_to_be_waited_for_is_sent_shortly_before_it_passes() {
    let wanted: Vec<(u64, u64)> = (1..400).map(|track| (track * 2_016, 32)).collect();
    let (sectors, took) = pauses((10, 90), &wanted);
    println!("{sectors} sectors, {took}");
    assert!(sectors > ROUNDS * 32, "{sectors} sectors in {ROUNDS} pauses");
    assert!(took < Dur::from_ms(1), "{took} for each read");
}

/// Reads of the last sectors of a track and the first of the next, in places that were not read
/// before, and pauses of 12 ms. Returns the mean time of a read.
fn across_track_ends(scans: bool) -> (Dur, u64) {
    let p = profile::builtin("hitachi-7k1000c").expect("a built-in drive");
    let mut rig = Rig::new(&p, Some(FillConfig::new(Algorithm::Headtime)), vec![]);
    if scans {
        rig.scan();
    }
    let track = u64::from(rig.core.model().geometry.track_of(0).expect("a track").lbns);
    let mut took = Dur::ZERO;
    for round in 0..ROUNDS {
        let asked = rig.now;
        rig.submit(Kind::Read, (1 + round * 37 % ROUNDS * 3) * track - 4, 8);
        rig.finish();
        took += rig.now.since(asked);
        rig.run(Dur::from_ms(12));
    }
    (Dur(took.0 / ROUNDS), rig.delivered())
}

/// After such a read the drive reads ahead up to two tracks, more than a segment holds: the last
/// sectors replace the first. A command for those needs the media.
#[test]
fn what_the_read_ahead_has_dropped_is_not_in_the_buffer() {
    let ((alone, _), (beside, sectors)) = (across_track_ends(false), across_track_ends(true));
    println!("{alone} alone, {beside} beside a scan of {sectors} sectors");
    assert!(beside.0 * 100 < alone.0 * 101, "{alone} alone, {beside} beside a scan");
    assert!(sectors > 10_000, "{sectors} sectors");
}
