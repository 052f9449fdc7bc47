//! Near a read that the drive's cache answered unexpectedly there may be no gap.

mod filling_rig;

use filling_rig::Rig;
use headtime_disk::command::Kind;
use headtime_disk::drive::{Drive, DriveConfig};
use headtime_disk::profile::{self, Prefetch, Profile};
use headtime_disk::time::Dur;
use headtime_sched::fill::Algorithm;
use headtime_sched::fill::subsystem::FillConfig;
use headtime_testkit::profiles::plain_cache;

/// A drive that reads 200 sectors ahead into one of `segments` segments.
fn drive(segments: u32) -> Profile {
    let mut p = profile::builtin("cheetah36es").expect("a built-in drive");
    p.electronics.cache = plain_cache();
    let cache = &mut p.electronics.cache;
    (cache.segments, cache.segment_sectors) = (segments, 1_024);
    cache.prefetch = Prefetch::Sectors(200);
    p
}

/// Rounds of a miss, reads elsewhere, a read that hits by surprise, and at once one a little before it, which hits, too. How long
/// the last ones took on average, and how many sectors the scan has read.
fn rounds(scans: bool) -> (Dur, u64) {
    let fill = FillConfig { idle: None, ..FillConfig::new(Algorithm::Headtime) };
    // The scheduler thinks of a third of the segments that there are.
    let mut rig = Rig::new(&drive(2), Some(fill), vec![]);
    rig.drive =
        Drive::new(&drive(12), DriveConfig { noiseless: true, ..DriveConfig::default() }).expect("a drive that works");
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
            (at + 50, 30),
        ] {
            let asked = rig.now;
            rig.submit(Kind::Read, lbn, 8);
            rig.finish();
            if lbn == at + 50 {
                took += rig.now.since(asked);
            }
            rig.run(Dur::from_ms(pause) + Dur::from_us(200));
        }
    }
    (Dur(took.0 / rounds), rig.delivered())
}

#[test]
fn a_gap_near_a_surprising_hit_is_left_alone() {
    let ((alone, _), (beside, sectors)) = (rounds(false), rounds(true));
    println!("{alone} alone, {beside} beside a scan of {sectors} sectors");
    assert!(alone < Dur::from_ms(1), "{alone} alone: no hits");
    assert!(beside < Dur::from_ms(2), "{beside} beside a scan");
    assert!(sectors > 5_000, "{sectors} sectors");
}
