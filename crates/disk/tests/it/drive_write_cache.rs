//! The virtual drive's cache for several writes: its cost on the media, and the delay of other
//! writes.

use headtime_disk::profile::{self, FirmwareOrder, HeadOrder, Layout, Profile, QueueSpec};
use headtime_disk::{Command, Drive, DriveConfig, Dur, Kind, Time};
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
    p.electronics.queue = QueueSpec { depth: 32, order: FirmwareOrder::Sptf };
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
