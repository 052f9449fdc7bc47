//! The virtual drive's behaviour beyond arm movements: queue, cache, write-back, habits, faults,
//! noise.

use headtime_disk::internals::RETRY_TURNS;
use headtime_disk::profile::*;
use headtime_disk::{Command, Completion, Drive, DriveConfig, Dur, Fault, Kind, Model, Outcome, SubmitError, Time};
use headtime_testkit::profiles::{between, plain_cache, plain_profile, rng, small_geometry};

fn profile() -> Profile {
    let mut rng = rng(7);
    let geometry = small_geometry(Layout::HeadFirst(HeadOrder::Forward), 2, &mut rng);
    let mut p = plain_profile(geometry, &mut rng);
    p.mechanics.read_on_arrival = false;
    p.mechanics.rpm = (10_000, 1);
    p.electronics.bus.read_block_ps = 6_400_000;
    p.electronics.bus.write_block_ps = 6_400_000;
    p.electronics.overheads = Overheads::default();
    p.electronics.overheads.read_miss = ByLast { after_read: Dur::from_us(300), after_write: Dur::from_us(300) };
    p.electronics.overheads.read_hit = ByLast { after_read: Dur::from_us(100), after_write: Dur::from_us(100) };
    p.electronics.overheads.write_hit = ByLast { after_read: Dur::from_us(100), after_write: Dur::from_us(100) };
    p
}

fn cached() -> Profile {
    let mut p = profile();
    p.electronics.cache = plain_cache();
    p
}

fn drive(p: &Profile) -> Drive {
    Drive::new(p, DriveConfig::default()).unwrap()
}

fn read(id: u64, lbn: u64, count: u32) -> Command {
    Command { id, kind: Kind::Read, lbn, count, fua: false }
}

fn write(id: u64, lbn: u64, count: u32) -> Command {
    Command { id, kind: Kind::Write, lbn, count, fua: false }
}

fn drain(d: &mut Drive) -> Vec<Completion> {
    let mut all = vec![];
    while let Some(at) = d.next_event() {
        while let Some(c) = d.advance(at) {
            all.push(c);
        }
    }
    all
}

fn one(d: &mut Drive, c: Command, now: Time) -> Completion {
    while d.advance(now).is_some() {}
    d.submit(c, now).unwrap();
    let done = drain(d);
    assert_eq!(done.len(), 1);
    done[0]
}

#[test]
fn the_overhead_of_a_command_that_waited_is_hidden_behind_the_one_before() {
    let mut d = drive(&profile());
    d.submit(read(1, 0, 8), Time::ZERO).unwrap();
    d.submit(read(2, 900, 8), Time::ZERO).unwrap();
    let done = drain(&mut d);
    let (a, b) = (done[0].media.unwrap(), done[1].media.unwrap());
    assert_eq!(a.start, Time(300_000));
    assert_eq!(b.start, a.end, "the arm sets out as soon as it is free");
    assert!(done[0].at > a.end, "the first command's bus phase overlaps the second one's seek");
}

/// Each write ends at a whole nanosecond, slightly after its last sector. The sum of these errors
/// over a track must not cause a missed sector.
#[test]
fn many_short_writes_in_order_lose_no_turn() {
    for on_arrival in [false, true] {
        let mut p = builtin("cheetah73lp").expect("a built-in drive");
        p.mechanics.write_on_arrival = on_arrival;
        // All data are buffered before the head arrives.
        p.electronics.bus.write_block_ps = 1_000;
        p.electronics.queue.depth = 256;
        let mut d = Drive::new(&p, DriveConfig::default().with_noise(false)).unwrap();
        let model = Model::new(&p).unwrap();
        let track = u64::from(model.geometry.track_of(0).expect("it has one").lbns);
        for id in 0..track / 4 {
            d.submit(write(id, id * 4, 4), Time::ZERO).unwrap();
        }
        let done = drain(&mut d);
        let (first, last) = (done[0].media.unwrap(), done[done.len() - 1].media.unwrap());
        let turn = model.mechanics.rotation.period();
        assert!(done.len() > 100 && last.end.since(first.transfer_start) <= turn + Dur(2), "{first:?} {last:?}");
    }
}

#[test]
fn overheads_of_pairs_apply_to_commands_that_waited() {
    let mut p = profile();
    p.electronics.overheads.queued.read_write = Dur::from_us(70);
    let mut d = drive(&p);
    d.submit(read(1, 0, 8), Time::ZERO).unwrap();
    d.submit(write(2, 900, 8), Time::ZERO).unwrap();
    let done = drain(&mut d);
    assert_eq!(done[1].media.unwrap().start, done[0].media.unwrap().end + Dur::from_us(70));
}

#[test]
fn a_full_queue_and_a_range_beyond_the_end_are_refused() {
    let mut p = profile();
    p.electronics.queue.depth = 2;
    let mut d = drive(&p);
    let capacity = d.capacity();
    assert!(matches!(d.submit(read(1, capacity - 1, 2), Time::ZERO), Err(SubmitError::OutOfRange { .. })));
    assert!(matches!(d.submit(read(1, u64::MAX, 2), Time::ZERO), Err(SubmitError::OutOfRange { .. })));
    assert!(matches!(d.submit(read(1, 0, 0), Time::ZERO), Err(SubmitError::OutOfRange { .. })));
    d.submit(read(1, 0, 1), Time::ZERO).unwrap();
    d.submit(read(2, 9, 1), Time::ZERO).unwrap();
    assert_eq!(d.submit(read(3, 5, 1), Time::ZERO), Err(SubmitError::Full { depth: 2 }));
    drain(&mut d);
    d.submit(read(3, 5, 1), Time(1_000_000_000)).unwrap();
}

#[test]
fn firmware_sptf_serves_more_than_fcfs_and_loses_nothing() {
    let mut spans = vec![];
    for order in [FirmwareOrder::Fcfs, FirmwareOrder::Sptf] {
        let mut p = profile();
        p.electronics.queue = QueueSpec { depth: 16, order, ..QueueSpec::default() };
        let mut d = drive(&p);
        let mut rng = rng(3);
        let capacity = d.capacity();
        let mut seen = std::collections::BTreeSet::new();
        let mut id = 0;
        let mut now = Time::ZERO;
        while seen.len() < 500 {
            while id < 500 && d.outstanding() < 16 {
                d.submit(read(id, between(&mut rng, 0, capacity - 8), 8), now).unwrap();
                id += 1;
            }
            now = d.next_event().unwrap();
            while let Some(c) = d.advance(now) {
                assert!(seen.insert(c.id));
            }
        }
        spans.push(now);
    }
    assert!(spans[1].0 * 10 < spans[0].0 * 8, "SPTF {} against FCFS {}", spans[1], spans[0]);
}

#[test]
fn a_command_that_the_order_passes_over_is_served_when_it_has_waited_long_enough() {
    let waits = |oldest_after| {
        let mut p = profile();
        p.electronics.queue = QueueSpec { depth: 16, order: FirmwareOrder::Sptf, oldest_after };
        let mut d = drive(&p);
        let mut rng = rng(4);
        // The head is among the first blocks, where there is always another read.
        let far = d.capacity() - 8;
        let (mut id, mut now) = (1, Time::ZERO);
        while now < Time::ZERO + Dur::from_secs(3) {
            while d.outstanding() < 14 {
                d.submit(read(id, between(&mut rng, 0, 40), 1), now).unwrap();
                id += 1;
            }
            if id == 15 {
                d.submit(read(0, far, 8), now).unwrap();
                id += 1;
            }
            now = d.next_event().unwrap();
            while let Some(c) = d.advance(now) {
                if c.id == 0 {
                    return now.since(Time::ZERO);
                }
            }
        }
        Dur::from_secs(3)
    };
    let [short, long] = [100, 1_000].map(|ms| waits(Dur::from_ms(ms)));
    assert!(short > Dur::from_ms(100) && short < Dur::from_ms(150), "{short}");
    assert!(long > Dur::from_ms(1_000) && long < Dur::from_ms(1_050), "{long}");
    assert_eq!(waits(Dur::from_secs(60)), Dur::from_secs(3), "without the limit it starves");
}

#[test]
fn what_was_just_read_and_read_ahead_comes_from_the_cache() {
    let mut d = drive(&cached());
    let first = one(&mut d, read(1, 4, 4), Time::ZERO);
    assert!(first.media.is_some());
    let later = first.at + Dur::from_ms(20);
    let again = one(&mut d, read(2, 4, 4), later);
    assert_eq!(again.media, None);
    assert_eq!(again.at, later + Dur::from_us(100) + Dur(4 * 6_400));
    let ahead = one(&mut d, read(3, 8, 4), again.at);
    assert_eq!(ahead.media, None, "the rest of the track was prefetched");
}

#[test]
fn a_drive_that_drops_delivered_data_must_read_it_again() {
    let mut p = cached();
    p.electronics.cache.keep_delivered = false;
    let mut d = drive(&p);
    let first = one(&mut d, read(1, 4, 4), Time::ZERO);
    let again = one(&mut d, read(2, 4, 4), first.at + Dur::from_ms(20));
    assert!(again.media.is_some());
}

#[test]
fn prefetch_only_behind_sequential_reads_leaves_random_ones_alone() {
    let mut p = cached();
    p.electronics.cache.prefetch_only_sequential = true;
    let mut d = drive(&p);
    let first = one(&mut d, read(1, 4, 4), Time::ZERO);
    let ahead = one(&mut d, read(2, 12, 2), first.at + Dur::from_ms(20));
    assert!(ahead.media.is_some(), "nothing was read ahead");
}

#[test]
fn a_cached_write_answers_at_once_and_a_read_behind_it_waits_for_the_media() {
    let mut p = cached();
    p.electronics.cache.write_back = true;
    let mut d = drive(&p);
    let w = one(&mut d, write(1, 1_000, 8), Time::ZERO);
    assert_eq!(w.at, Time(100_000 + 8 * 6_400));
    assert_eq!(w.media, None);
    let r = one(&mut d, read(2, 0, 8), w.at);
    let hidden = d.hidden_work();
    assert!(hidden.transfer > Dur::ZERO);
    assert!(r.media.unwrap().start.0 >= (hidden.seek + hidden.rotate + hidden.transfer).0);
}

#[test]
fn force_unit_access_and_flush_wait_for_the_media() {
    let mut p = cached();
    p.electronics.cache.write_back = true;
    p.electronics.cache.dirty_segments = 3;
    let mut d = drive(&p);
    let fua = one(&mut d, Command { fua: true, ..write(1, 1_000, 8) }, Time::ZERO);
    assert!(fua.media.is_some());
    let t = fua.at;
    for (id, lbn) in [(2, 10), (3, 1_200), (4, 500)] {
        d.submit(write(id, lbn, 4), t).unwrap();
    }
    d.submit(Command { id: 5, kind: Kind::Flush, lbn: 0, count: 0, fua: false }, t).unwrap();
    let done = drain(&mut d);
    assert_eq!(done.len(), 4);
    assert!(done[..3].iter().all(|c| c.at < t + Dur::from_ms(1)));
    assert_eq!(done[3].id, 5);
    assert!(done[3].at > t + Dur::from_ms(1), "three scattered writes take a while");
}

#[test]
fn two_reads_on_one_track_hold_up_the_next_command_where_the_drive_has_that_habit() {
    let mut starts = vec![];
    for habit in [false, true] {
        let mut p = cached();
        p.electronics.cache.segments = 8;
        p.electronics.cache.prefetch = Prefetch::None;
        p.electronics.cache.same_track_prefetch_delays = habit;
        let mut d = drive(&p);
        for (id, lbn) in [(1, 0), (2, 8), (3, 1_000)] {
            d.submit(read(id, lbn, 2), Time::ZERO).unwrap();
        }
        let done = drain(&mut d);
        starts.push(done.iter().find(|c| c.id == 3).unwrap().media.unwrap().start);
    }
    assert!(starts[1] > starts[0], "{starts:?}");
}

#[test]
fn unreadable_sectors_fail_after_retries_and_a_write_mends_them() {
    let faults = vec![Fault::Unreadable { lbn: 100, count: 3 }];
    let mut d = Drive::new(&profile(), DriveConfig::default().with_faults(faults)).unwrap();
    let bad = one(&mut d, read(1, 96, 8), Time::ZERO);
    assert_eq!(bad.outcome, Outcome::MediaError { lbn: 100 });
    assert!(bad.at.0 > RETRY_TURNS as u64 * 6_000_000);
    let w = one(&mut d, write(2, 100, 3), bad.at);
    assert_eq!(w.outcome, Outcome::Ok);
    assert_eq!(one(&mut d, read(3, 96, 8), w.at).outcome, Outcome::Ok);
}

#[test]
fn what_cannot_be_read_is_in_no_cache_whatever_the_drive_reads_ahead() {
    for (habit, prefetch) in [(false, Prefetch::Sectors(64)), (true, Prefetch::Sectors(64)), (true, Prefetch::None)] {
        let mut p = cached();
        p.electronics.cache.segments = 8;
        p.electronics.cache.prefetch = prefetch;
        p.electronics.cache.same_track_prefetch_delays = habit;
        let faults = vec![Fault::Unreadable { lbn: 20, count: 5 }];
        let mut d = Drive::new(&p, DriveConfig::default().with_faults(faults)).unwrap();
        // Two reads on one track before the bad sectors, both at the drive at once: it may read
        // ahead over them.
        d.submit(read(0, 0, 4), Time::ZERO).unwrap();
        d.submit(read(1, 8, 4), Time::ZERO).unwrap();
        let mut now = drain(&mut d).last().unwrap().at + Dur::from_ms(100);
        for lbn in 14..30 {
            let done = one(&mut d, read(lbn, lbn, 1), now);
            let bad = (20..25).contains(&lbn);
            assert_eq!(done.outcome == Outcome::MediaError { lbn }, bad, "sector {lbn}, {habit}, {prefetch:?}");
            now = done.at + Dur::from_ms(50);
        }
    }
}

#[test]
fn slow_sectors_hangs_and_death_do_what_they_say() {
    let plain = one(&mut drive(&profile()), read(1, 500, 4), Time::ZERO).at;
    let slow = |fault| Drive::new(&profile(), DriveConfig::default().with_faults(vec![fault])).unwrap();
    let mut d = slow(Fault::Slow { lbn: 500, count: 1, turns: 3 });
    assert_eq!(one(&mut d, read(1, 500, 4), Time::ZERO).at, plain + Dur::from_ms(18));
    let mut d = slow(Fault::Hang { at: Time::ZERO, takes: Dur::from_secs(30) });
    assert!(one(&mut d, read(1, 500, 4), Time::ZERO).at >= Time::ZERO + Dur::from_secs(30));
    let mut d = slow(Fault::Death { at: Time(5) });
    assert_eq!(one(&mut d, read(1, 500, 4), Time(5)).outcome, Outcome::Dead);
}

#[test]
fn chance_is_the_same_for_the_same_seed_and_stays_within_its_limits() {
    let mut p = profile();
    p.noise = NoiseSpec {
        seek_sd: Dur::from_us(30),
        seek_max: Dur::from_us(90),
        completion_jitter: Dur::from_us(10),
        settle_retry_ppm: 2_000,
        settle_retry_turns: 2,
        recalibrate_every: Dur::from_ms(500),
        recalibrate_takes: Dur::from_ms(30),
        speed_error_ppb: 40_000,
        speed_drift_ppb: 20_000,
        ..NoiseSpec::default()
    };
    let run = |seed: u64| {
        let mut d = Drive::new(&p, DriveConfig::default().with_seed(seed)).unwrap();
        let mut rng = rng(1);
        let mut now = Time::ZERO;
        let mut all = vec![];
        for id in 0..400 {
            let c = one(&mut d, read(id, between(&mut rng, 0, 1_500), 4), now);
            let m = c.media.unwrap();
            assert!(
                m.start <= m.seek_end && m.seek_end <= m.transfer_start && m.transfer_start <= m.end && m.end < c.at
            );
            now = c.at;
            all.push(c);
        }
        all
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
