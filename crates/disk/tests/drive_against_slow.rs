//! The fast drive, noise off, serves every command in the time that the slow drive takes, to the nanosecond.

use headtime_disk::command::{Command, Completion, Kind};
use headtime_disk::drive::{Drive, DriveConfig};
use headtime_disk::time::{Dur, Time};
use headtime_testkit::profiles::{between, layouts, plain_profile, rng, small_geometry, with_all_overheads};
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
            // A third follows on, a third is near, a third is anywhere.
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
