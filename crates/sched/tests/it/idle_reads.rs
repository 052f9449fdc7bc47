//! Commands for a drive that reads ahead and has nothing else to do.

use crate::filling_rig::{Rig, cheetah};
use headtime_disk::{Drive, DriveConfig, Dur, Kind, Time};
use headtime_sched::{Algorithm, FillConfig, TaskEvent};

fn rig() -> Rig {
    Rig::new(&cheetah(), Some(FillConfig::new(Algorithm::AngleEpFrag)), vec![])
}

/// Returns the durations of the commands sent from index `from` on.
fn took(rig: &Rig, from: usize) -> Vec<Dur> {
    let ended = |id| rig.ended.iter().find(|e| e.1.id == id).map(|e| e.0);
    rig.sent[from..].iter().filter_map(|(at, c, _)| Some(ended(c.id)?.since(*at))).collect()
}

#[test]
fn a_drive_that_reads_ahead_is_asked_for_what_lies_in_its_buffer() {
    for lbn in [1_000_000, 17_000_123, 35_000_000] {
        let mut rig = rig();
        rig.scan();
        rig.submit(Kind::Read, lbn, 8);
        rig.finish();
        let from = rig.sent.len();
        let before = rig.delivered();
        rig.run(Dur::from_ms(300));
        let took = took(&rig, from);
        // A quarter of a track takes 1.5 ms from the media, 0.6 ms over the bus.
        let waited = took.iter().filter(|d| **d > Dur::from_us(900)).count();
        assert!(
            took.len() > 100 && waited <= 2,
            "{waited} of {} commands behind {lbn} waited for the media",
            took.len()
        );
        // Nothing is lost by it: 280 ms are 46 revolutions, of which the skews between tracks take
        // a sixth.
        let tracks = (rig.delivered() - before) / 738;
        assert!(tracks >= 28, "{tracks} tracks behind {lbn}");
    }
}

#[test]
fn what_is_wanted_again_at_once_is_not_taken_from_the_buffer_again() {
    let mut rig = rig();
    let session = rig.session(1);
    // All of a track but its beginning; 64 sectors a unit.
    rig.task(session, Kind::Read, &[(64, 640)], 64);
    rig.submit(Kind::Read, 0, 8);
    rig.finish();
    let (from, mut seen) = (rig.sent.len(), rig.events.len());
    let until = rig.now + Dur::from_ms(19);
    while rig.step(until) {
        for (_, event) in rig.events.split_off(seen) {
            if let TaskEvent::Delivered { range, .. } = event {
                rig.task(session, Kind::Read, &[(range.lbn, range.count)], 64);
            }
        }
        seen = rig.events.len();
    }
    let sectors: u32 = rig.sent[from..].iter().map(|s| s.1.count).sum();
    assert_eq!(sectors, 640);
}

#[test]
fn requests_that_end_idle_time_are_predicted() {
    let mut rig = rig();
    // With the noise that its profile states.
    rig.drive = Drive::new(&cheetah(), DriveConfig::default().with_seed(3)).expect("a drive that works");
    rig.scan();
    for _ in 0..700 {
        rig.submit_random();
        rig.finish();
        // Occasionally in the middle of a command.
        rig.run(Dur::from_ms(120) + Dur::from_us(rig.ids * 337 % 20_000));
    }
    let predicted = &rig.core.stats().prediction;
    assert!(predicted.samples >= 690, "{predicted:?}");
    assert!(predicted.within_150us * 100 >= predicted.samples * 97, "{predicted:?}");
    assert_eq!(rig.core.freeblock().expect("FILL is on").times_shut, 0);
    assert!(rig.now > Time::ZERO + Dur::from_secs(80));
}
