//! Autonomous behaviour of drives, found by timing alone, with noise.

use crate::common::{DRIVES, Lab};
use headtime_disk::profile::{FirmwareOrder, Prefetch, builtin};
use headtime_probe::habits::{self, Habits, Seen};
use headtime_probe::seeks;

fn habits_of(lab: &mut Lab) -> Habits {
    let geometry = lab.truth.geometry.clone();
    lab.probe(|sampler, spindle| {
        let table = seeks::measure(sampler, spindle, &geometry, &[50, 200]).expect("it is measured");
        let begun = sampler.now();
        let found = habits::measure(sampler, spindle, &geometry, &table).expect("it is measured");
        println!("{:.0} s: {found:?}", sampler.now().since(begun).as_secs_f64());
        found
    })
}

fn agrees(seen: Seen, is: bool, what: &str) {
    assert!(seen.holds() == is && seen.is_sure(), "{what}: {is}, but {seen:?}");
}

fn compare(lab: &mut Lab, what: &str) {
    let found = habits_of(lab);
    let (e, m) = (&lab.profile.electronics, &lab.profile.mechanics);
    agrees(found.read_on_arrival, m.read_on_arrival, &format!("{what}: on arrival"));
    if e.queue.depth > 2 {
        agrees(found.reorders_waiting, e.queue.order == FirmwareOrder::Sptf, &format!("{what}: reorders"));
        agrees(found.reorders_two, false, &format!("{what}: two"));
        agrees(found.same_track_delays, e.cache.same_track_prefetch_delays, &format!("{what}: same track"));
    } else {
        assert_eq!([found.reorders_waiting, found.reorders_two, found.same_track_delays], [Seen::default(); 3]);
    }
    if e.cache.segments == 0 {
        assert_eq!(found.cache, None, "{what}");
        return;
    }
    agrees(found.keep_passing, m.keep_passing, &format!("{what}: passing"));
    let cache = found.cache.expect("it has one");
    agrees(cache.keep_delivered, e.cache.keep_delivered, &format!("{what}: delivered"));
    assert_eq!(cache.segments, e.cache.segments, "{what}");
    assert_eq!(cache.segment_sectors, Some(e.cache.segment_sectors), "{what}");
    assert_eq!(cache.prefetch, e.cache.prefetch, "{what}");
    assert_eq!(cache.only_sequential, e.cache.prefetch_only_sequential, "{what}");
}

#[test]
fn habits_of_drives_as_they_are() {
    // Additional cases: segments of less than a track, read-ahead after a sequence only, queue
    // depth 1, large sectors.
    for name in DRIVES.into_iter().chain(["atlas3", "barracuda36es2", "maxtor-6l080l0", "toshiba-x300-5tb"]) {
        compare(&mut Lab::of(name), name);
    }
}

#[test]
fn what_cannot_be_seen_is_not_said() {
    // It drops delivered sectors, and its read-ahead is less than a segment.
    let found = habits_of(&mut Lab::of("cheetah9lp")).cache.expect("it has one");
    assert!(
        !found.keep_delivered.holds() && found.segments == 3 && found.prefetch == Prefetch::TrackAhead,
        "{found:?}"
    );
    assert_eq!(found.segment_sectors, None);
}

#[test]
fn habits_that_none_of_them_has() {
    let with = |what: &str, change: &dyn Fn(&mut headtime_disk::profile::Profile)| {
        let mut profile = builtin("ultrastar36z15").expect("a built-in drive");
        change(&mut profile);
        compare(&mut Lab::new(profile), what);
    };
    with("no cache", &|p| p.electronics.cache.segments = 0);
    with("first come first served", &|p| p.electronics.queue.order = FirmwareOrder::Fcfs);
    with("some sectors", &|p| p.electronics.cache.prefetch = Prefetch::Sectors(93));
    with("many sectors", &|p| p.electronics.cache.prefetch = Prefetch::Sectors(777));
    with("no prefetch", &|p| p.electronics.cache.prefetch = Prefetch::None);
    with("only sequential", &|p| p.electronics.cache.prefetch_only_sequential = true);
    with("to the track's end", &|p| p.electronics.cache.prefetch = Prefetch::ToTrackEnd(u32::MAX));
    with("some sectors of the track", &|p| p.electronics.cache.prefetch = Prefetch::ToTrackEnd(61));
    with("segments", &|p| (p.electronics.cache.segments, p.electronics.cache.segment_sectors) = (13, 601));
}

#[test]
fn a_write_cache_is_seen() {
    for name in DRIVES {
        let mut lab = Lab::of(name);
        let end = lab.truth.geometry.capacity();
        let seen = lab.probe(|sampler, _| habits::write_cache(sampler, (end / 2, end)).expect("it answers"));
        agrees(seen, lab.profile.electronics.cache.write_back, name);
    }
}
