//! Random drives under random commands: cache, prefetch, write-back, queue, noise, drifting speed
//! and faults at once.
//!
//! No command may be lost or completed twice, events never lie in the past, and the mechanism
//! performs one activity at a time.

use std::collections::BTreeSet;

use headtime_disk::profile::*;
use headtime_disk::{Command, Completion, Drive, DriveConfig, Dur, Fault, Kind, MediaTimes, Outcome, Time};
use headtime_testkit::profiles::{between, layouts, plain_cache, plain_profile, rng, small_geometry};
use rand_xoshiro::Xoshiro256PlusPlus;

fn flag(r: &mut Xoshiro256PlusPlus) -> bool {
    between(r, 0, 1) == 1
}

fn random_profile(seed: u64, r: &mut Xoshiro256PlusPlus) -> Profile {
    let layout = layouts()[seed as usize % layouts().len()];
    let surfaces = between(r, 1, 4) as u16;
    let geometry = small_geometry(layout, surfaces, r);
    let mut p = plain_profile(geometry, r);
    p.electronics.cache = CacheSpec {
        segments: between(r, 0, 6) as u32,
        segment_sectors: between(r, 8, 200) as u32,
        prefetch: match between(r, 0, 4) {
            0 => Prefetch::None,
            1 => Prefetch::Sectors(between(r, 1, 60) as u32),
            2 => Prefetch::ToTrackEnd(40),
            3 => Prefetch::ToCylinderEnd(60),
            _ => Prefetch::TrackAhead,
        },
        prefetch_on_idle_hit: flag(r),
        stop_in_sector: flag(r),
        same_track_prefetch_delays: flag(r),
        keep_delivered: flag(r),
        write_back: flag(r),
        dirty_segments: between(r, 1, 4) as u32,
        combine_sequential_writes: flag(r),
        read_watermark_permille: between(r, 0, 1000) as u32,
        ..plain_cache()
    };
    p.mechanics.keep_passing = flag(r);
    p.mechanics.write_on_arrival = flag(r);
    p.electronics.bus.hold_for_reads = flag(r);
    p.electronics.queue.order = if flag(r) { FirmwareOrder::Sptf } else { FirmwareOrder::Fcfs };
    p.electronics.overheads.per_request = Dur::from_us(between(r, 0, 50));
    p.electronics.overheads.reselect = Dur::from_us(between(r, 0, 50));
    if flag(r) {
        p.noise.seek_sd = Dur::from_us(100);
        p.noise.seek_max = Dur::from_us(300);
        p.noise.settle_retry_ppm = 10_000;
        p.noise.settle_retry_turns = 1;
    }
    if flag(r) {
        p.noise.speed_drift_ppb = 1_000;
    }
    p
}

fn random_faults(r: &mut Xoshiro256PlusPlus, capacity: u64) -> Vec<Fault> {
    let lbn = |r: &mut Xoshiro256PlusPlus| between(r, 0, capacity - 5);
    vec![
        Fault::Unreadable { lbn: lbn(r), count: between(r, 1, 5) },
        Fault::Slow { lbn: lbn(r), count: 5, turns: 2 },
        Fault::Grown { lbn: lbn(r), at: Time(between(r, 0, 3_000_000_000)) },
        Fault::Hang { at: Time(between(r, 0, 3_000_000_000)), takes: Dur::from_ms(700) },
    ]
}

/// Outstanding commands, and the mechanism's activities.
#[derive(Default)]
struct Seen {
    out: BTreeSet<u64>,
    media: Vec<MediaTimes>,
    errors: usize,
}

impl Seen {
    fn take(&mut self, c: &Completion) {
        assert!(self.out.remove(&c.id), "{} finished twice, or was never sent", c.id);
        self.errors += usize::from(c.outcome != Outcome::Ok);
        if let Some(m) = c.media {
            assert!(m.start <= m.seek_end && m.seek_end <= m.transfer_start && m.transfer_start <= m.end, "{m:?}");
            assert!(m.turned <= m.end.since(m.transfer_start), "{m:?}");
            assert!(m.end <= c.at);
            self.media.push(m);
        }
    }
}

fn run(seed: u64) -> usize {
    println!("seed {seed}");
    let mut r = rng(seed);
    let p = random_profile(seed, &mut r);
    let capacity = Drive::new(&p, DriveConfig::default()).unwrap().capacity();
    let faults = if flag(&mut r) { random_faults(&mut r, capacity) } else { vec![] };
    let mut d = Drive::new(&p, DriveConfig::default().with_seed(seed).with_faults(faults)).unwrap();
    let depth = between(&mut r, 1, 8) as usize;
    let mut seen = Seen::default();
    let (mut now, mut lbn, mut id) = (Time::ZERO, 0u64, 0u64);
    for _ in 0..700 {
        while let Some(c) = d.advance(now) {
            seen.take(&c);
        }
        if d.outstanding() < depth {
            let count = between(&mut r, 1, 60).min(capacity) as u32;
            lbn = match between(&mut r, 0, 4) {
                0 => lbn,
                1 => lbn.saturating_sub(between(&mut r, 0, 60)),
                2 => lbn + between(&mut r, 0, 20),
                3 => between(&mut r, 0, 300),
                _ => between(&mut r, 0, capacity - 1),
            };
            lbn = lbn.min(capacity - count as u64);
            let kind = match between(&mut r, 0, 9) {
                0..=2 => Kind::Write,
                3 => Kind::Flush,
                _ => Kind::Read,
            };
            d.submit(Command { id, kind, lbn, count, fua: between(&mut r, 0, 9) == 0 }, now).unwrap();
            seen.out.insert(id);
            id += 1;
            lbn += count as u64;
        }
        if let Some(t) = d.next_event() {
            assert!(t >= now, "an event at {t}, before {now}");
        }
        now += match between(&mut r, 0, 3) {
            0 => Dur::ZERO,
            1 => Dur(between(&mut r, 0, 3_000_000)),
            2 => Dur(between(&mut r, 0, 30_000_000)),
            _ => d.next_event().map_or(Dur(1000), |t| t.since(now)),
        };
    }
    let mut steps = 0;
    while let Some(at) = d.next_event() {
        while let Some(c) = d.advance(at.max(now)) {
            seen.take(&c);
        }
        steps += 1;
        assert!(steps < 10_000, "it never ends");
    }
    assert!(seen.out.is_empty(), "lost: {:?}", seen.out);
    seen.media.sort_by_key(|m| m.start);
    for w in seen.media.windows(2) {
        assert!(w[1].start >= w[0].end, "two things at once: {w:?}");
    }
    seen.errors
}

#[test]
fn nothing_is_lost_or_done_twice_whatever_the_drive_and_its_faults() {
    let errors: usize = (0..600).map(run).sum();
    assert!(errors > 0, "no fault was ever met");
}

#[test]
fn a_dead_drive_answers_everything_with_its_death() {
    let mut r = rng(1);
    let p = random_profile(1, &mut r);
    let faults = vec![Fault::Death { at: Time(1_000_000) }];
    let mut d = Drive::new(&p, DriveConfig::default().with_faults(faults)).unwrap();
    for id in 0..6 {
        d.submit(Command { id, kind: Kind::Read, lbn: 100 * id, count: 4, fua: false }, Time::ZERO).unwrap();
    }
    let mut all = vec![];
    while let Some(at) = d.next_event() {
        while let Some(c) = d.advance(at) {
            all.push(c);
        }
    }
    assert_eq!(all.len(), 6);
    assert!(all.iter().filter(|c| c.at > Time(1_000_000)).all(|c| c.outcome == Outcome::Dead));
    assert!(all.iter().any(|c| c.outcome == Outcome::Dead));
}

#[test]
fn a_flush_does_not_wait_for_writes_that_came_after_it() {
    let mut r = rng(2);
    let mut p = random_profile(0, &mut r);
    p.electronics.cache = CacheSpec { segments: 16, write_back: true, dirty_segments: 8, ..plain_cache() };
    let mut d = Drive::new(&p, DriveConfig::default().with_noise(false)).unwrap();
    let capacity = d.capacity();
    let mut now = Time::ZERO;
    let mut write = |d: &mut Drive, id, now| {
        let lbn = between(&mut r, 0, capacity - 8);
        d.submit(Command { id, kind: Kind::Write, lbn, count: 8, fua: false }, now).is_ok()
    };
    for id in 1..=4 {
        assert!(write(&mut d, id, now));
    }
    d.submit(Command { id: 0, kind: Kind::Flush, lbn: 0, count: 0, fua: false }, now).unwrap();
    let mut flushed = None;
    for id in 5..200 {
        now += Dur::from_ms(4);
        while let Some(c) = d.advance(now) {
            if c.id == 0 {
                flushed = Some(c.at);
            }
        }
        write(&mut d, id, now);
    }
    // Four scattered writes take at most a dozen revolutions each.
    assert!(flushed.is_some_and(|t| t < Time::ZERO + Dur::from_ms(200)), "{flushed:?}");
}

#[test]
fn a_cache_claims_only_what_can_have_passed_under_the_head() {
    let mut p = builtin("atlas10k").unwrap();
    p.electronics.cache.same_track_prefetch_delays = false;
    let read = |id, lbn, count| Command { id, kind: Kind::Read, lbn, count, fua: false };
    let one = |d: &mut Drive, c: Command, now: Time| {
        while d.advance(now).is_some() {}
        d.submit(c, now).unwrap();
        loop {
            let at = d.next_event().unwrap();
            if let Some(done) = d.advance(at) {
                return done;
            }
        }
    };
    let mut short = 0;
    // The steps cover a revolution, so that the head arrives at every angle.
    for i in 0..150u64 {
        let mut d = Drive::new(&p, DriveConfig::default().with_noise(false)).unwrap();
        let track = d.truth().geometry.track_of(1_000_000).unwrap();
        let (from, end) = (track.first_lbn + 20, track.first_lbn + track.lbns as u64);
        let a = one(&mut d, read(1, from, 8), Time(1_000_000 + i * 7_919));
        // A distant read stops the prefetch; then a partial hit, followed at once by another
        // distant read.
        let b = one(&mut d, read(2, from + 5_000_000, 8), a.at);
        let t = b.at + Dur(3_000_000 + i * 40_009);
        let held = |d: &Drive, now: Time| {
            let hit = |x: &u64| one(&mut d.clone(), read(9, *x, 1), now).media.is_none();
            (track.first_lbn..end).filter(hit).count() as u64
        };
        let before = held(&d, t);
        while d.advance(t).is_some() {}
        d.submit(read(3, from + 4, 60), t).unwrap();
        d.submit(read(4, from + 7_000_000, 8), t).unwrap();
        let mut done = vec![];
        while let Some(at) = d.next_event() {
            while let Some(c) = d.advance(at) {
                done.push(c);
            }
        }
        let media = |id| done.iter().find(|c| c.id == id).unwrap().media;
        let (Some(m), Some(next)) = (media(3), media(4)) else { continue };
        let on_track = next.start.since(m.seek_end);
        let passed = on_track.0 * track.spt as u64 / d.truth().mechanics.rotation.period().0 + 2;
        short += u32::from(passed < track.spt as u64);
        let after = held(&d, done.iter().map(|c| c.at).max().unwrap() + Dur::from_ms(30));
        assert!(
            after <= before + passed,
            "round {i}: {after} of a track held, {before} before, {passed} can have passed"
        );
    }
    assert!(short > 30, "only {short} rounds spent less than a turn on the track");
}
