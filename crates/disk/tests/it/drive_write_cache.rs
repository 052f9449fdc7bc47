//! The virtual drive's cache for several writes: its cost on the media, and the delay of other
//! writes.

use headtime_disk::profile::{self, FirmwareOrder, HeadOrder, Layout, Profile, QueueSpec};
use headtime_disk::{Command, Drive, DriveConfig, Dur, Fault, Kind, Outcome, Time};
use headtime_testkit::profiles::{between, plain_cache, plain_profile, rng, small_geometry};

/// Returns a 10,000 rpm drive that uses SPTF among 32 commands and caches `writes` writes.
fn profile(writes: u32) -> Profile {
    let mut rng = rng(7);
    let geometry = small_geometry(Layout::HeadFirst(HeadOrder::Forward), 2, &mut rng);
    let mut p = plain_profile(geometry, &mut rng);
    p.mechanics.read_on_arrival = false;
    p.mechanics.rpm = (10_000, 1);
    p.electronics.bus.write_block_ps = 3_200_000;
    p.electronics.cache = plain_cache();
    (p.electronics.cache.write_back, p.electronics.cache.dirty_segments) = (true, writes);
    p.electronics.cache.segments = writes + 4;
    p.electronics.queue = QueueSpec { depth: 32, order: FirmwareOrder::Sptf, ..QueueSpec::default() };
    p
}

fn drive(p: &Profile) -> Drive {
    Drive::new(p, DriveConfig::default().with_noise(false)).expect("a drive that works")
}

fn write(id: u64, lbn: u64, count: u32) -> Command {
    Command { id, kind: Kind::Write, lbn, count, fua: false }
}

/// Keeps `outstanding` writes of `next` at the drive until `until` accepts the number of
/// completions; returns the time.
fn closed(
    d: &mut Drive,
    outstanding: usize,
    mut next: impl FnMut(u64) -> Command,
    until: impl Fn(u64, Time) -> bool,
) -> Time {
    let (mut now, mut id, mut done) = (d.next_event().unwrap_or(Time::ZERO), 1_000, 0);
    loop {
        while d.outstanding() < outstanding {
            id += 1;
            d.submit(next(id), now).expect("there is room");
        }
        now = d.next_event().expect("writes are at the drive");
        while d.advance(now).is_some() {
            done += 1;
        }
        if until(done, now) {
            return now;
        }
    }
}

#[test]
fn cached_writes_that_continue_each_other_reach_the_media_without_a_turn_between_them() {
    let p = profile::builtin("hitachi-7k1000c").expect("a built-in drive");
    let mut d = drive(&p);
    let turn = d.truth().mechanics.rotation.period();
    let spt = u64::from(d.truth().geometry.track_of(0).expect("the first track").lbns);
    let (writes, sectors) = (2_000, 256);
    let next = |id: u64| write(id, (id - 1_001) * sectors, sectors as u32);
    let ended = closed(&mut d, 4, next, |done, _| done == writes);
    let turns = ended.0 / turn.0;
    println!("{turns} turns for {} tracks", writes * sectors / spt);
    // One revolution per track plus the switch to the next one; one per write would be ten times as
    // many.
    assert!(turns * 10 < 15 * (writes * sectors / spt), "{turns} turns for {} tracks", writes * sectors / spt);
}

#[test]
fn a_write_with_force_unit_access_does_not_starve_beside_a_cache_that_is_always_full() {
    let p = profile(8);
    let mut d = drive(&p);
    let last = d.capacity() - 8;
    // All other writes are near the first track, and nearer to the head at any time.
    let mut rng = rng(3);
    for id in 0..16 {
        d.submit(write(id, id * 8, 8), Time::ZERO).expect("there is room");
    }
    let fua = Command { fua: true, ..write(99, last, 8) };
    d.submit(fua, Time::ZERO).expect("there is room");
    let mut answered = None;
    let (mut now, mut id) = (Time::ZERO, 100);
    while answered.is_none() && now < Time::ZERO + Dur::from_secs(20) {
        while d.outstanding() < 24 {
            id += 1;
            d.submit(write(id, between(&mut rng, 0, 60) * 8, 8), now).expect("there is room");
        }
        now = d.next_event().expect("writes are at the drive");
        while let Some(c) = d.advance(now) {
            answered = answered.or((c.id == 99).then_some(c.at));
        }
    }
    let at = answered.expect("it is answered within 20 s");
    assert!(at < Time::ZERO + Dur::from_ms(2_500), "{at}");
    assert!(at > Time::ZERO + Dur::from_ms(100), "it went before the others: {at}");
}

/// Submits reads that hold the mechanism, and returns the time at which the last is done.
fn read(d: &mut Drive, id: u64, lbn: u64, now: Time) -> Time {
    d.submit(Command { id, kind: Kind::Read, lbn, count: 8, fua: false }, now).expect("there is room");
    loop {
        let at = d.next_event().expect("a read is at the drive");
        if let Some(c) = d.advance(at)
            && c.id == id
        {
            return c.at;
        }
    }
}

#[test]
fn the_sectors_of_cached_writes_are_limited_and_a_longer_write_is_cached_alone() {
    let answered = |dirty_sectors, counts: &[u32]| {
        let mut p = profile(16);
        p.electronics.cache.dirty_sectors = dirty_sectors;
        // Nothing is written back by itself.
        (p.electronics.cache.destage_delay, p.electronics.cache.destage_above_permille) = (Dur::from_secs(10), 1000);
        let mut d = drive(&p);
        for (id, count) in (0..).zip(counts) {
            d.submit(write(id, id * 200, *count), Time::ZERO).expect("there is room");
        }
        // What is answered within two milliseconds is cached: the media needs longer.
        let mut now = Time::ZERO;
        let mut cached = vec![];
        while let Some(at) = d.next_event().filter(|at| *at < Time::ZERO + Dur::from_ms(2)) {
            now = now.max(at);
            while let Some(c) = d.advance(now) {
                cached.push(c.id);
            }
        }
        cached
    };
    assert_eq!(answered(0, &[32, 32, 32, 32]), [0, 1, 2, 3]);
    assert_eq!(answered(64, &[32, 32, 32]), [0, 1]);
    // The first is being written when the second arrives, and no longer waits.
    assert_eq!(answered(16, &[32, 32, 32]), [0, 1]);
}

#[test]
fn cached_writes_are_written_back_after_a_pause_or_above_a_share() {
    let mut p = profile(16);
    let delay = Dur::from_ms(20);
    let cache = &mut p.electronics.cache;
    (cache.dirty_sectors, cache.destage_delay, cache.destage_above_permille) = (64, delay, 500);
    let work = |d: &Drive| d.hidden_work().transfer;
    let mut d = drive(&p);
    d.submit(write(0, 1_000, 32), Time::ZERO).expect("there is room");
    let idle = Time::ZERO + delay;
    // Half of the limit waits, and not a nanosecond longer than the delay.
    let before = Time(idle.0 - 1);
    while d.advance(before).is_some() {}
    assert_eq!((work(&d), d.next_event()), (Dur::ZERO, Some(idle)));
    // A command begins the pause anew.
    let mut late = d.clone();
    let read_at = read(&mut late, 7, 8, before);
    // It is measured from the end of the transfer, somewhat before the answer.
    let next = late.next_event().expect("the write waits");
    assert!(next <= read_at + delay && next > read_at + delay.saturating_sub(Dur::from_us(200)), "{next} {read_at}");
    assert_eq!(work(&late), Dur::ZERO);
    while d.advance(idle).is_some() {}
    assert!(work(&d) > Dur::ZERO);
    // One sector more than half does not wait.
    let mut d = drive(&p);
    d.submit(write(0, 1_000, 33), Time::ZERO).expect("there is room");
    while d.advance(Time::ZERO + Dur::from_ms(1)).is_some() {}
    assert!(work(&d) > Dur::ZERO);
    // A flush does not wait either.
    let mut d = drive(&p);
    d.submit(write(0, 1_000, 32), Time::ZERO).expect("there is room");
    d.submit(Command { id: 1, kind: Kind::Flush, lbn: 0, count: 0, fua: false }, Time(1_000)).expect("there is room");
    assert!(work(&d) > Dur::ZERO);
}

/// Runs a command to its end; returns its outcome.
fn alone(d: &mut Drive, command: Command, now: &mut Time) -> Outcome {
    d.submit(command, *now).expect("there is room");
    loop {
        *now = d.next_event().expect("a command is at the drive");
        if let Some(done) = d.advance(*now) {
            return done.outcome;
        }
    }
}

#[test]
fn what_is_in_the_cache_is_unwritten_until_a_flush_or_its_write_back() {
    let mut p = profile(8);
    p.electronics.cache.destage_delay = Dur(1_000_000_000);
    let (mut d, mut now) = (drive(&p), Time::ZERO);
    assert!(d.has_write_cache() && d.unwritten().next().is_none());
    alone(&mut d, write(1, 80, 8), &mut now);
    alone(&mut d, Command { fua: true, ..write(2, 400, 8) }, &mut now);
    assert_eq!(d.unwritten().filter(|r| r.0 == 80).collect::<Vec<_>>(), [(80, 88)]);
    alone(&mut d, Command { kind: Kind::Flush, ..write(3, 0, 1) }, &mut now);
    assert_eq!(d.unwritten().next(), None);
    // Without a flush, when the idle drive writes it back.
    alone(&mut d, write(4, 160, 8), &mut now);
    while let Some(next) = d.next_event() {
        assert_eq!(d.unwritten().collect::<Vec<_>>(), [(160, 168)]);
        now = next;
        assert!(d.advance(now).is_none());
    }
    assert_eq!(d.unwritten().collect::<Vec<_>>(), [(160, 168)], "the head is on its way");
    now += Dur(1_000_000_000);
    assert!(d.advance(now).is_none());
    assert_eq!(d.unwritten().next(), None);
}

#[test]
fn a_sector_that_becomes_unreadable_is_not_read_from_the_cache_and_is_mended_by_a_write() {
    let (mut d, mut now) = (drive(&profile(8)), Time::ZERO);
    let read = |id| Command { kind: Kind::Read, ..write(id, 400, 8) };
    assert_eq!(alone(&mut d, read(1), &mut now), Outcome::Ok);
    d.set_faults(vec![Fault::Unreadable { lbn: 402, count: 2 }, Fault::Unreadable { lbn: 406, count: 1 }], now);
    assert_eq!(alone(&mut d, read(2), &mut now), Outcome::MediaError { lbn: 402 });
    alone(&mut d, write(3, 400, 4), &mut now);
    assert_eq!(d.faults(), [Fault::Unreadable { lbn: 406, count: 1 }]);
    d.set_faults(Vec::new(), now);
    assert_eq!(alone(&mut d, read(4), &mut now), Outcome::Ok);
}

#[test]
fn a_hang_delays_cached_writes_too_even_if_the_drive_is_writing_back() {
    let second = Dur(1_000_000_000);
    for is_busy in [false, true] {
        let (mut d, mut now) = (drive(&profile(8)), Time::ZERO);
        if is_busy {
            alone(&mut d, write(1, 1_500, 64), &mut now);
            assert_ne!(d.unwritten().next(), None, "it is being written");
        }
        d.set_faults(vec![Fault::Hang { at: now, takes: second }], now);
        let began = now;
        for id in 2..5 {
            d.submit(write(id, id * 100, 8), now).expect("there is room");
        }
        let mut done = 0;
        while done < 3 {
            now = d.next_event().expect("writes are at the drive");
            done += std::iter::from_fn(|| d.advance(now)).count();
            assert!(done == 0 || now >= began + second, "{now} after {began}");
        }
        assert!(now < began + second + second && d.faults().is_empty());
        let before = now;
        alone(&mut d, write(9, 900, 8), &mut now);
        assert!(now < before + Dur(100_000_000), "it is over");
    }
}
