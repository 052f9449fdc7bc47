//! Near a read that the drive served differently from the prediction there may be no gap.

use crate::filling_rig::Rig;
use headtime_disk::profile::{self, Prefetch, Profile};
use headtime_disk::{Drive, DriveConfig, Dur, Kind};
use headtime_sched::{Algorithm, FillConfig};
use headtime_testkit::profiles::plain_cache;

/// Returns a drive that reads 200 sectors ahead into one of `segments` segments.
fn drive(segments: u32) -> Profile {
    let mut p = profile::builtin("cheetah36es").expect("a built-in drive");
    p.electronics.cache = plain_cache();
    let cache = &mut p.electronics.cache;
    (cache.segments, cache.segment_sectors) = (segments, 1_024);
    cache.prefetch = Prefetch::Sectors(200);
    p
}

/// Rounds of a miss, reads elsewhere, a read that is served differently from the prediction, and at
/// once one `behind` the miss. Returns the mean time of the last ones, and the sectors that the
/// scan has read.
///
/// The scheduler assumes `believed` segments of the drive's cache, which has `there`.
fn rounds(believed: u32, there: u32, behind: u64, scans: bool) -> (Dur, u64) {
    let fill = FillConfig { idle: None, ..FillConfig::new(Algorithm::Headtime) };
    let mut rig = Rig::new(&drive(believed), Some(fill), vec![]);
    let config = DriveConfig::default().with_noise(false);
    rig.drive = Drive::new(&drive(there), config).expect("a drive that works");
    if scans {
        rig.scan();
    }
    let far = rig.capacity() / 60;
    let mut took = Dur::ZERO;
    let rounds = 50;
    for round in 0..rounds {
        let at = round * far;
        for (lbn, pause) in [
            (at, 30),
            ((at + 17 * far) % (58 * far), 30),
            ((at + 24 * far) % (58 * far), 30),
            ((at + 31 * far) % (58 * far), 30),
            (at + 150, 0),
            (at + behind, 30),
        ] {
            let asked = rig.now;
            rig.submit(Kind::Read, lbn, 8);
            rig.finish();
            if lbn == at + behind {
                took += rig.now.since(asked);
            }
            rig.run(Dur::from_ms(pause) + Dur::from_us(200));
        }
    }
    (Dur(took.0 / rounds), rig.delivered())
}

#[test]
fn a_gap_near_a_surprising_hit_is_left_alone() {
    // It lies a little before the read that hit.
    let of = |scans| rounds(2, 12, 50, scans);
    let ((alone, _), (beside, sectors)) = (of(false), of(true));
    println!("{alone} alone, {beside} beside a scan of {sectors} sectors");
    assert!(alone < Dur::from_ms(1), "{alone} alone: no hits");
    assert!(beside < Dur::from_ms(2), "{beside} beside a scan");
    assert!(sectors > 5_000, "{sectors} sectors");
}

#[test]
fn a_gap_behind_a_read_that_was_expected_to_hit_is_left_alone() {
    // The drive reads ahead after the read that missed, and brings the next one.
    let of = |scans| rounds(12, 2, 180, scans);
    let ((alone, _), (beside, sectors)) = (of(false), of(true));
    println!("{alone} alone, {beside} beside a scan of {sectors} sectors");
    assert!(alone < Dur::from_ms(1), "{alone} alone: the drive reads nothing ahead");
    assert!(beside < Dur::from_ms(2), "{beside} beside a scan");
    assert!(sectors > 5_000, "{sectors} sectors");
}
