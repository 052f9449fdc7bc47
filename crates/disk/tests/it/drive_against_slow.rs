//! Without noise, the fast drive serves every command in the same time as the slow reference drive,
//! to the nanosecond.

use headtime_disk::profile::Prefetch;
use headtime_disk::{Command, Completion, Drive, DriveConfig, Dur, Kind, Time};
use headtime_testkit::profiles::{
    between, layouts, plain_cache, plain_profile, rng, small_geometry, with_all_overheads,
};
use headtime_testkit::slow_drive::SlowDrive;

fn alone(drive: &mut Drive, command: Command, now: Time) -> Completion {
    drive.submit(command, now).expect("a valid command");
    loop {
        let at = drive.next_event().expect("one is outstanding");
        if let Some(c) = drive.advance(at) {
            return c;
        }
    }
}

#[test]
fn every_layout_and_both_kinds_agree_with_the_slow_drive() {
    let mut landed = 0;
    for seed in 0..140u64 {
        let mut rng = rng(seed);
        let layout = layouts()[seed as usize % layouts().len()];
        let surfaces = between(&mut rng, 1, 4) as u16;
        let geometry = small_geometry(layout, surfaces, &mut rng);
        let profile = plain_profile(geometry, &mut rng);
        let profile = if seed % 2 == 0 { profile } else { with_all_overheads(profile, &mut rng) };
        let mut fast = Drive::new(&profile, DriveConfig::default()).unwrap();
        let mut slow = SlowDrive::new(&profile);
        let capacity = fast.capacity();
        let mut now = Time::ZERO;
        let mut lbn = 0u64;
        for id in 0..150u64 {
            let count = between(&mut rng, 1, 90).min(capacity) as u32;
            // A third is sequential, a third is near, a third is random.
            lbn = match between(&mut rng, 0, 2) {
                0 => lbn,
                1 => lbn.saturating_sub(between(&mut rng, 0, 60)),
                _ => between(&mut rng, 0, capacity - 1),
            };
            lbn = lbn.min(capacity - count as u64);
            let kind = if between(&mut rng, 0, 2) == 0 { Kind::Write } else { Kind::Read };
            let command = Command { id, kind, lbn, count, fua: false };
            let done = alone(&mut fast, command, now);
            let a = done.at;
            landed += u32::from(done.media.is_some_and(|m| m.turned > Dur::ZERO));
            let b = slow.serve(&command, now);
            assert_eq!(a, b, "seed {seed}, command {id} {command:?} at {now}, {layout:?}");
            lbn += count as u64;
            now = a + Dur(between(&mut rng, 0, 9_000_000));
        }
    }
    assert!(landed > 300, "only {landed} commands landed inside their range");
}

/// Reads that are all in the drive's queue: runs of contiguous reads, far from each other.
#[test]
fn a_queued_read_that_continues_the_one_before_is_read_on_as_by_the_slow_drive() {
    let prefetches = [Prefetch::TrackAhead, Prefetch::ToTrackEnd(50), Prefetch::Sectors(30)];
    let mut fewer_turns = 0;
    for seed in 0..200u64 {
        let mut rng = rng(seed);
        let layout = layouts()[seed as usize % layouts().len()];
        let geometry = small_geometry(layout, between(&mut rng, 1, 4) as u16, &mut rng);
        let profile = plain_profile(geometry, &mut rng);
        let mut profile = if seed % 2 == 0 { profile } else { with_all_overheads(profile, &mut rng) };
        profile.electronics.cache = plain_cache();
        // Larger than the reads, so that no undelivered data is dropped.
        profile.electronics.cache.segment_sectors = 4_096;
        profile.electronics.overheads.queued.read_read = Dur::from_us(between(&mut rng, 20, 300));
        profile.electronics.cache.prefetch = prefetches[seed as usize % 3];
        profile.electronics.cache.prefetch_only_sequential = between(&mut rng, 0, 1) == 1;
        let mut fast = Drive::new(&profile, DriveConfig::default()).unwrap();
        let mut slow = SlowDrive::new(&profile);
        let capacity = fast.capacity();
        let mut commands = vec![];
        for run in 0..4 {
            // A quarter of the drive each, so that no run requests data read ahead for another.
            let mut lbn = capacity / 4 * run + between(&mut rng, 0, capacity / 16);
            for _ in 0..between(&mut rng, 1, 6) {
                let count = between(&mut rng, 1, 40).min(capacity / 4) as u32;
                commands.push(Command { id: commands.len() as u64, kind: Kind::Read, lbn, count, fua: false });
                lbn += count as u64;
            }
        }
        let now = Time(between(&mut rng, 0, 20_000_000));
        commands.iter().for_each(|c| fast.submit(*c, now).expect("a valid command"));
        let mut done = vec![Time::ZERO; commands.len()];
        while let Some(at) = fast.next_event() {
            while let Some(c) = fast.advance(at) {
                done[c.id as usize] = c.at;
            }
        }
        let expected = slow.serve_queued(&commands, now);
        // Times are rounded up to whole nanoseconds at the start of each run, and the runs differ.
        let near = done.iter().zip(&expected).all(|(a, b)| a.0.abs_diff(b.0) <= commands.len() as u64);
        assert!(near, "seed {seed}, {commands:?}, {layout:?}: {done:?} instead of {expected:?}");
        profile.electronics.cache.prefetch = Prefetch::None;
        let mut without = Drive::new(&profile, DriveConfig::default()).unwrap();
        commands.iter().for_each(|c| without.submit(*c, now).expect("a valid command"));
        let mut last = Time::ZERO;
        while let Some(at) = without.next_event() {
            while let Some(c) = without.advance(at) {
                last = last.max(c.at);
            }
        }
        let turn = fast.truth().mechanics.rotation.period();
        fewer_turns += last.saturating_since(*done.last().expect("one was sent")).0 / turn.0;
    }
    assert!(fewer_turns > 500, "a drive that does not read ahead loses only {fewer_turns} turns more");
}
