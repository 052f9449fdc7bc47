//! Unexpected cache hits: where the head is afterwards.

use crate::common::{Rig, noiseless};
use headtime_disk::profile::{self, Prefetch, Profile};
use headtime_disk::{Dur, Kind};
use headtime_sched::{Order, Surprise};
use headtime_testkit::profiles::plain_cache;

/// Returns a drive that reads `ahead` sectors ahead, also after a hit, into one of `segments`
/// segments.
fn drive(segments: u32, ahead: u32) -> Profile {
    let mut p = profile::builtin("cheetah36es").expect("a built-in drive");
    p.electronics.cache = plain_cache();
    let cache = &mut p.electronics.cache;
    (cache.segments, cache.segment_sectors, cache.prefetch_on_idle_hit) = (segments, 1_024, true);
    cache.prefetch = Prefetch::Sectors(ahead);
    p
}

/// Rounds of a miss, reads elsewhere, an unexpected hit, and at once a read far away. Returns the
/// number of unexpected hits, and of far reads not predicted to 50 us.
fn rounds(belief: &Profile, truth: &Profile, elsewhere: u64, hits: &[(u64, u32)]) -> (u64, u64) {
    let mut rig = Rig::believing(belief, truth, noiseless(), Order::Fcfs, 1);
    let far = rig.drive.capacity() / 60;
    let (mut surprises, mut wrong) = (0, 0);
    for round in 0..50 {
        let at = round * far;
        let mut read = |lbn: u64, count: u32, pause_us: u64| {
            rig.now += Dur::from_us(pause_us);
            rig.submit(Kind::Read, lbn, count);
            rig.step().expect("it was sent").prediction
        };
        read(at, 8, 0);
        // The read-ahead ends in this time.
        for n in 1..=elsewhere {
            read((at + (10 + n * 7) * far) % (58 * far), 8, 30_000);
        }
        let mut pause = 30_000;
        for &(behind, count) in hits {
            let surprise = read(at + behind, count, pause).map(|p| p.surprise);
            surprises += u64::from(surprise == Some(Surprise::CacheHit));
            pause = 100;
        }
        let next = read((at + 30 * far) % (58 * far) + far / 2, 8, 100);
        wrong += u64::from(next.is_none_or(|p| p.error_ns().unsigned_abs() > 50_000));
        rig.now += Dur::from_us(30_000);
    }
    (surprises, wrong)
}

#[test]
fn the_head_is_followed_to_where_the_drive_reads_on_behind_a_hit_that_surprises() {
    // The scheduler assumes a third of the actual segments.
    let (surprises, wrong) = rounds(&drive(2, 100), &drive(6, 100), 2, &[(4, 8)]);
    assert!(surprises >= 45, "{surprises} surprises");
    assert!(wrong <= 2, "{wrong} of 50 reads behind a surprise not predicted");
}

#[test]
fn a_read_that_comes_before_a_moving_prefetch_is_there_was_in_the_buffer() {
    // The drive has read slightly further ahead than predicted; the hit before the unexpected one
    // sends the arm back there.
    let (surprises, wrong) = rounds(&drive(4, 100), &drive(4, 116), 1, &[(100, 8), (108, 8)]);
    assert!(surprises >= 45, "{surprises} surprises");
    assert!(wrong <= 2, "{wrong} of 50 reads behind a surprise not predicted");
}

#[test]
fn a_read_of_which_more_was_in_the_buffer_than_its_front_leaves_the_head_on_its_way_to_what_follows() {
    // The drive has read further ahead than predicted: a read across the end of the known data
    // hits, and the drive reads ahead after it, whether a prefetch was predicted to run there or
    // not.
    for hits in [&[(90, 8), (100, 16)][..], &[(100, 16)]] {
        let (surprises, wrong) = rounds(&drive(4, 100), &drive(4, 116), 1, hits);
        assert!(surprises >= 45, "{hits:?}: {surprises} surprises");
        assert!(wrong <= 2, "{hits:?}: {wrong} of 50 reads behind a surprise not predicted");
    }
}
