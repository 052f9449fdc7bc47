//! The model of the drive's cache against the cache itself.

use crate::common::{Rig, noiseless, profile};
use headtime_disk::profile::{self, CacheSpec, Prefetch, Profile};
use headtime_disk::{DriveConfig, Dur, Kind};
use headtime_sched::{Order, Prediction, Surprise};
use headtime_testkit::profiles::{between, plain_cache};

/// Returns a drive with the given cache behaviour.
fn cached(seed: u64, set: impl Fn(&mut Profile, &mut CacheSpec)) -> Profile {
    let mut p = profile(seed);
    let mut cache = plain_cache();
    p.electronics.overheads.read_hit = p.electronics.overheads.read_miss;
    set(&mut p, &mut cache);
    p.electronics.cache = cache;
    p
}

/// The drives tested, each with the name of its special property.
fn drives(seed: u64) -> Vec<(&'static str, Profile)> {
    vec![
        ("no prefetch", cached(seed, |_, c| c.prefetch = Prefetch::None)),
        ("track ahead", cached(seed, |_, _| {})),
        ("to the track's end", cached(seed, |_, c| c.prefetch = Prefetch::ToTrackEnd(40))),
        ("to the cylinder's end", cached(seed, |_, c| c.prefetch = Prefetch::ToCylinderEnd(200))),
        ("a hundred sectors", cached(seed, |_, c| c.prefetch = Prefetch::Sectors(100))),
        ("only sequential", cached(seed, |_, c| c.prefetch_only_sequential = true)),
        ("on a hit, too", cached(seed, |_, c| c.prefetch_on_idle_hit = true)),
        ("stops in a sector", cached(seed, |_, c| c.stop_in_sector = true)),
        ("forgets what it delivered", cached(seed, |_, c| c.keep_delivered = false)),
        ("does not keep what is written", cached(seed, |_, c| c.read_hits_on_written = false)),
        ("writes into what it holds", cached(seed, |_, c| c.writes_update_segments = true)),
        ("reads on behind two reads on a track", cached(seed, |_, c| c.same_track_prefetch_delays = true)),
        ("keeps what passes", cached(seed, |p, _| p.mechanics.keep_passing = true)),
        (
            "an Atlas",
            cached(seed, |p, c| {
                (p.mechanics.keep_passing, p.mechanics.read_on_arrival) = (true, true);
                (c.segments, c.same_track_prefetch_delays) = (10, true);
            }),
        ),
    ]
}

/// Returns whether a read was predicted not to move the head.
fn foreseen(p: &Prediction) -> bool {
    p.cached && p.seek + p.latency == Dur::ZERO
}

/// Random reads (and writes) among the first sectors of a drive, at most `think` us between a
/// completion and the next request.
fn near(p: &Profile, depth: u32, think: u64, writes_percent: u64, longest: u64) -> Rig {
    let mut rig = Rig::new(p, noiseless(), Order::Fcfs, depth);
    rig.within = rig.within.min(1_500);
    (0..depth).for_each(|_| rig.submit_random(writes_percent, longest));
    for _ in 0..2_000 {
        rig.step().expect("requests are unfinished");
        rig.now += Dur::from_us(between(&mut rig.rng, 0, think));
        rig.submit_random(writes_percent, longest);
    }
    rig
}

fn every_hit_is_foreseen(depth: u32, think: u64, writes_percent: u64, longest: u64) {
    let mut foresaw = 0;
    for seed in 0..4 {
        for (name, p) in drives(seed) {
            let rig = near(&p, depth, think, writes_percent, longest);
            let compared: Vec<(bool, bool)> = (rig.finished.iter().zip(&rig.answered_from_cache))
                .filter_map(|(f, &hit)| f.prediction.map(|p| (foreseen(&p), hit)))
                .collect();
            let hits = compared.iter().filter(|(_, hit)| *hit).count();
            let wrong = compared.iter().filter(|(foreseen, hit)| foreseen != hit).count();
            let s = &rig.core.stats().prediction;
            println!("seed {seed}, {name}: {} compared, {hits} hits, {wrong} misjudged, {s:?}", compared.len());
            assert!(compared.len() >= 1_990);
            assert_eq!((wrong, s.cache_hit), (0, 0));
            // A sector may come so soon that a nanosecond decides on a revolution, which also
            // invalidates the next prediction.
            assert!(s.extra_turn <= 2 && s.samples - s.within_50us <= 2 * s.extra_turn);
            foresaw += hits;
        }
    }
    assert!(foresaw > 1_000, "little to foresee");
}

#[test]
fn every_hit_is_foreseen_one_read_at_a_time() {
    every_hit_is_foreseen(1, 0, 0, 8);
}

#[test]
fn every_hit_is_foreseen_with_a_read_waiting() {
    every_hit_is_foreseen(2, 0, 0, 8);
}

#[test]
fn every_hit_is_foreseen_among_writes() {
    every_hit_is_foreseen(1, 0, 20, 8);
    every_hit_is_foreseen(2, 0, 20, 8);
}

#[test]
fn every_hit_on_what_a_drive_read_ahead_in_a_pause_is_foreseen() {
    every_hit_is_foreseen(1, 20_000, 20, 16);
}

#[test]
fn a_stream_with_pauses_is_foreseen_to_come_from_what_was_read_ahead() {
    for (name, p) in drives(5) {
        let mut rig = Rig::new(&p, noiseless(), Order::Fcfs, 1);
        let mut lbn = 0;
        for _ in 0..400 {
            rig.submit(Kind::Read, lbn, 8);
            rig.step().expect("it was sent");
            rig.now += Dur::from_us(between(&mut rig.rng, 0, 3_000));
            lbn += 8;
        }
        let s = &rig.core.stats().prediction;
        let hits = rig.answered_from_cache.iter().filter(|h| **h).count();
        println!("{name}: {hits} hits, {s:?}");
        if p.electronics.cache.prefetch != Prefetch::None {
            assert!(hits > 50);
        }
        assert_eq!(s.within_50us, s.samples);
    }
}

/// Runs of reads that continue each other, three of them unfinished at any time, so that one is
/// queued in the drive.
fn runs(p: &Profile, config: DriveConfig, requests: usize, longest: u64, jumps_percent: u64) -> Rig {
    let mut rig = Rig::new(p, config, Order::Fcfs, 2);
    let mut lbn = 0;
    for i in 0..requests {
        let count = between(&mut rig.rng, 1, longest);
        if between(&mut rig.rng, 1, 100) <= jumps_percent || lbn + count > rig.within {
            lbn = between(&mut rig.rng, 0, rig.within - count);
        }
        rig.submit(Kind::Read, lbn, count as u32);
        lbn += count;
        if i >= 2 {
            rig.step().expect("requests are unfinished");
        }
    }
    rig
}

#[test]
fn a_waiting_read_that_continues_the_one_before_is_predicted() {
    let mut turns = 0;
    for seed in 0..4 {
        for (name, p) in drives(seed) {
            for (longest, jumps) in [(8, 10), (40, 20), (90, 5)] {
                if p.mechanics.read_on_arrival && longest > 8 {
                    // Where such a drive lands in a long read depends on microseconds.
                    continue;
                }
                let rig = runs(&p, noiseless(), 600, longest, jumps);
                let s = &rig.core.stats().prediction;
                println!("seed {seed}, {name}, {longest} at most, {jumps}% elsewhere: {s:?}");
                assert!(s.samples > 590);
                // A sector may come so soon that a nanosecond decides on a revolution, which also
                // invalidates the next prediction.
                assert!(s.extra_turn <= 2 && s.samples - s.within_50us <= 2 * s.extra_turn);
                let blind = runs(&cached(seed, |_, c| c.prefetch = Prefetch::None), noiseless(), 600, longest, jumps);
                turns += blind.now.saturating_since(rig.now).0 / rig.drive.truth().mechanics.rotation.period().0;
            }
        }
    }
    assert!(turns > 1_000, "going on saves {turns} turns");
}

#[test]
fn waiting_reads_that_go_on_are_foreseen_with_noise() {
    for name in ["ultrastar36z15", "barracuda36es2", "hitachi-7k1000c", "atlas10k"] {
        let p = profile::builtin(name).expect("a built-in drive");
        for seed in 0..3 {
            let rig = runs(&p, DriveConfig::default().with_seed(seed), 2_000, 256, 2);
            let s = &rig.core.stats().prediction;
            println!("{name}: {s:?}");
            let surprises = s.cache_hit + s.early_turn + s.extra_turn + s.other;
            assert!(s.samples > 1_900 && surprises * 40 < s.samples);
        }
    }
}

#[test]
fn a_sequential_read_is_predicted_where_noise_decides_whether_its_next_block_has_just_passed() {
    // Its completions are up to some tens of microseconds late, and a block passes every eight.
    let p = profile::builtin("ultrastar36z15").expect("a built-in drive");
    for seed in 0..5 {
        let mut rig = Rig::new(&p, DriveConfig::default().with_seed(seed), Order::Fcfs, 1);
        for _ in 0..20 {
            let mut lbn = between(&mut rig.rng, 0, rig.within - 50 * 256);
            for _ in 0..50 {
                rig.submit(Kind::Read, lbn, 256);
                rig.step().expect("it was sent");
                lbn += 256;
            }
        }
        let s = &rig.core.stats().prediction;
        println!("{s:?}");
        let surprises = s.cache_hit + s.early_turn + s.extra_turn + s.other;
        assert!(s.samples > 990 && surprises * 40 < s.samples);
    }
}

#[test]
fn a_drive_that_reads_a_track_to_its_end_is_predicted_if_the_profile_says_so_and_else_learned() {
    let p = cached(6, |_, c| (c.same_track_prefetch_delays, c.prefetch) = (true, Prefetch::None));
    let mut ignorant = p.clone();
    ignorant.electronics.cache.same_track_prefetch_delays = false;
    let late = |belief: &Profile| {
        let mut rig = Rig::believing(belief, &p, noiseless(), Order::Fcfs, 2);
        for _ in 0..200 {
            let far = rig.drive.capacity() - 100;
            let lbn = between(&mut rig.rng, 0, far);
            let track = rig.drive.truth().geometry.track_of(lbn).expect("it is on the drive");
            for (lbn, count) in [(track.first_lbn, 2), (track.first_lbn + 6, 2), (far - lbn, 4)] {
                rig.submit(Kind::Read, lbn, count);
            }
            while rig.step().is_some() {}
        }
        let s = &rig.core.stats().prediction;
        println!("{s:?}");
        s.samples - s.within_50us
    };
    assert_eq!(late(&p), 0);
    let learning = late(&ignorant);
    assert!((10..40).contains(&learning), "{learning} late");
}

#[test]
fn a_hit_that_was_none_spoils_no_other_prediction() {
    // A drive that lost its cache.
    let belief = cached(7, |_, c| (c.segments, c.prefetch) = (16, Prefetch::None));
    let mut p = belief.clone();
    p.electronics.cache.segments = 0;
    for depth in [1, 2] {
        let mut rig = Rig::believing(&belief, &p, noiseless(), Order::Fcfs, depth);
        rig.within = 1_000;
        rig.closed(depth as u64, 2_000, 10, 8);
        let mut was_wrong = false;
        let (mut wrong, mut after) = (0, 0);
        for p in rig.finished.iter().filter_map(|f| f.prediction) {
            if foreseen(&p) {
                assert_eq!(p.surprise, Surprise::Other, "{p:?}");
                assert!(p.observed > p.predicted);
                wrong += 1;
            } else if !p.cached && (depth == 1 || !was_wrong) {
                assert!(p.error_ns().abs() < 5_000, "{p:?}");
            } else {
                // It was sent before the error was detected.
                after += 1;
            }
            was_wrong = p.cached;
        }
        println!("{wrong} wrong, {after} after them");
        assert!(wrong > 50 && (depth == 1 || after > 20));
    }
}

#[test]
fn what_was_thought_to_be_a_miss_and_came_from_the_cache_is_held_from_then_on() {
    // The scheduler assumes half of the actual segments.
    let p = cached(8, |_, c| (c.segments, c.prefetch) = (8, Prefetch::None));
    let mut belief = p.clone();
    belief.electronics.cache.segments = 4;
    let mut rig = Rig::believing(&belief, &p, noiseless(), Order::Fcfs, 1);
    let mut read = |lbn| {
        rig.submit(Kind::Read, lbn, 8);
        rig.step().expect("it was sent").prediction
    };
    let lbns = [0, 300, 600, 900, 1_200, 1_500];
    for lbn in lbns {
        read(lbn);
    }
    for lbn in lbns {
        let first = read(lbn).expect("the head is known");
        let again = read(lbn).expect("the head is known");
        assert_eq!((foreseen(&first), first.surprise), (false, Surprise::CacheHit), "{lbn}");
        assert_eq!((foreseen(&again), again.surprise), (true, Surprise::None), "{lbn}");
    }
}

/// Counts unexpected hits and requests, of a core that assumes a third of the cache's segments:
/// visits to six tracks in turn, twenty short reads each.
fn surprises_of_a_larger_cache(rest_of_the_visit: u64) -> (u64, u64) {
    let drive = |segments| {
        cached(5, |p, c| {
            p.mechanics.keep_passing = true;
            (c.segments, c.segment_sectors) = (segments, 1_024);
        })
    };
    let mut rig = Rig::believing(&drive(2), &drive(6), noiseless(), Order::Fcfs, 1);
    let spt = rig.drive.truth().geometry.track_of(0).expect("there is one").lbns as u64;
    for visit in 0..60 {
        let track = visit % 6 * 20 * spt;
        for _ in 0..=rest_of_the_visit {
            let lbn = track + between(&mut rig.rng, 0, spt - 9);
            rig.submit(Kind::Read, lbn, 8);
            rig.step().expect("it was sent");
            rig.now += Dur::from_us(20_000);
        }
    }
    let s = &rig.core.stats().prediction;
    (s.cache_hit, s.samples)
}

#[test]
fn a_hit_that_surprises_shows_the_rest_of_its_segment() {
    // A visit to a track whose segment was predicted to be evicted causes one or two unexpected
    // hits, for any number of reads.
    let (surprises, of) = surprises_of_a_larger_cache(19);
    assert!(of > 1_190 && surprises < 200, "{surprises} of {of}");
    assert!(surprises > 20, "the belief was right all the time");
}
