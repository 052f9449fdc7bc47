//! Devices with arbitrary answers: the results are then errors or nonsense, but nothing panics and
//! every run ends.

use crate::common::{Lab, Through};
use headtime_disk::{Dur, Outcome, Time};
use headtime_probe::device::{Answer, Ask, Device};
use headtime_probe::layout::lay_out;
use headtime_probe::map::Mapper;
use headtime_probe::sampler::Sampler;
use headtime_probe::seeks::SeekPoint;
use headtime_probe::spindle::Spindle;
use headtime_probe::tracks::Tracer;
use headtime_probe::watch::Unwatched;
use headtime_probe::{habits, overheads, seeks, settling, verify};

/// Misbehaviour of a device.
#[derive(Clone, Copy, Debug)]
enum Turned {
    /// Answers at any time, occasionally before the request, and fails some.
    AnyTime,
    /// Answers at once.
    AtOnce,
    /// Reads nothing.
    Unreadable,
    /// Is dead.
    Dead,
    /// Answers at random times, in whole milliseconds.
    Coarse,
}

/// The answers from `now` on; `commands` is the number of earlier commands.
fn answers(into: Turned, commands: u64, now: &mut Time, asks: &[Ask]) -> Vec<Answer> {
    let answer = |(i, ask): (usize, &Ask)| {
        let sent = (*now).max(ask.not_before);
        let chance = (commands + i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let done = sent + Dur(chance);
        let (done, outcome) = match into {
            Turned::AnyTime if chance % 50 == 1 => (Time(sent.0.saturating_sub(chance)), Outcome::Ok),
            Turned::AnyTime if chance % 70 == 2 => (done, Outcome::MediaError { lbn: ask.lbn }),
            Turned::AnyTime => (done, Outcome::Ok),
            Turned::AtOnce => (sent, Outcome::Ok),
            Turned::Unreadable => (done, Outcome::MediaError { lbn: ask.lbn }),
            Turned::Dead => (done, Outcome::Dead),
            Turned::Coarse => (Time(done.0.next_multiple_of(1_000_000)), Outcome::Ok),
        };
        *now = (*now).max(done);
        Answer { sent, done, outcome }
    };
    asks.iter().enumerate().map(answer).collect()
}

#[test]
fn nothing_panics_on_what_a_device_answers() {
    for into in [Turned::AnyTime, Turned::AtOnce, Turned::Unreadable, Turned::Dead, Turned::Coarse] {
        // From the discovery of the spindle on; in the middle of later stages.
        for later in [0, 40, 300, 2_500] {
            let mut lab = Lab::of("cheetah36es");
            let (geometry, profile) = (lab.truth.geometry.clone(), lab.profile.clone());
            let mut commands = 0;
            let turns = |drive: &mut dyn Device, now: &mut Time, asks: &[Ask], outstanding| {
                commands += asks.len() as u64;
                if commands <= 300 + later {
                    return drive.run(asks, outstanding);
                }
                *now = (*now).max(drive.now());
                Ok(answers(into, commands, now, asks))
            };
            let mut device = Through { drive: lab.device(), now: Time::ZERO, run: turns };
            let mut watch = Unwatched;
            let mut sampler = Sampler::new(&mut device, &mut watch, 3);
            sampler.find_cache().expect("it is still a drive");
            let Ok(mut spindle) = Spindle::find(&mut sampler) else { continue };
            // The map of a misbehaving drive, and a layout of the result.
            let mapped = Mapper::new(&mut Tracer { sampler: &mut sampler, spindle: &mut spindle }).map();
            let laid = mapped.and_then(|spans| lay_out(&mut sampler, &mut spindle, &spans));
            let table = seeks::measure(&mut sampler, &mut spindle, &geometry, &[1, 50, 200]);
            let point = SeekPoint { distance: 50, time: Dur::from_us(797), error: Dur::ZERO, spread: Dur::ZERO };
            let table = table.unwrap_or_else(|_| seeks::Seeks {
                points: vec![point],
                lost: vec![],
                head_switch: None,
                both: None,
                command: Dur::from_us(88),
                command_error: Dur::ZERO,
                stop: Dur::ZERO,
            });
            let lost = settling::provoke(&mut sampler, &spindle, &table, Dur::from_us(100), 500);
            let over = overheads::measure(&mut sampler, &mut spindle, &geometry, &table);
            let habits = habits::measure(&mut sampler, &mut spindle, &geometry, &table);
            let cache = habits::write_cache(&mut sampler, (0, u64::MAX));
            let verdict = verify::verify(&mut sampler, &mut spindle, &profile, 300);
            println!(
                "{into:?} {later}: {} {} {} {} {cache:?}",
                laid.is_ok(),
                lost.is_ok(),
                over.is_ok(),
                habits.is_ok()
            );
            assert!(!verdict.is_ok_and(|v| v.good), "{into:?}, {later} commands later");
        }
    }
}
