//! A device may answer anything: what is measured is then an error or nonsense, but nothing panics and everything ends.

mod common;

use common::Lab;
use headtime_disk::command::Outcome;
use headtime_disk::time::{Dur, Time};
use headtime_probe::device::{Answer, Ask, Device, DeviceError};
use headtime_probe::sampler::{Sampler, Unwatched};
use headtime_probe::seeks::SeekPoint;
use headtime_probe::spindle::Spindle;
use headtime_probe::{habits, overheads, seeks, verify};

/// What it does once it has turned.
#[derive(Clone, Copy, Debug)]
enum Turned {
    /// Answers at any time, now and then before it was asked, and fails some.
    AnyTime,
    /// Answers at once.
    AtOnce,
    /// Reads nothing.
    Unreadable,
    /// Is dead.
    Dead,
    /// Answers when it likes, by the millisecond.
    Coarse,
}

/// A drive that turns into something else after so many commands.
struct Turncoat<'d> {
    drive: &'d mut dyn Device,
    commands: u64,
    turns_at: u64,
    into: Turned,
    now: Time,
}

impl Device for Turncoat<'_> {
    fn sectors(&self) -> u64 {
        self.drive.sectors()
    }

    fn sector_bytes(&self) -> u32 {
        self.drive.sector_bytes()
    }

    fn depth(&self) -> u32 {
        self.drive.depth()
    }

    fn now(&self) -> Time {
        self.now.max(self.drive.now())
    }

    fn run(&mut self, asks: &[Ask], outstanding: u32) -> Result<Vec<Answer>, DeviceError> {
        self.commands += asks.len() as u64;
        if self.commands <= self.turns_at {
            return self.drive.run(asks, outstanding);
        }
        self.now = self.now();
        let answers = asks.iter().enumerate().map(|(i, ask)| {
            let sent = self.now.max(ask.not_before);
            let chance = (self.commands + i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let done = sent + Dur(chance);
            let (done, outcome) = match self.into {
                Turned::AnyTime if chance % 50 == 1 => (Time(sent.0.saturating_sub(chance)), Outcome::Ok),
                Turned::AnyTime if chance % 70 == 2 => (done, Outcome::MediaError { lbn: ask.lbn }),
                Turned::AnyTime => (done, Outcome::Ok),
                Turned::AtOnce => (sent, Outcome::Ok),
                Turned::Unreadable => (done, Outcome::MediaError { lbn: ask.lbn }),
                Turned::Dead => (done, Outcome::Dead),
                Turned::Coarse => (Time(done.0.next_multiple_of(1_000_000)), Outcome::Ok),
            };
            self.now = self.now.max(done);
            Answer { sent, done, outcome }
        });
        Ok(answers.collect())
    }
}

#[test]
fn nothing_panics_on_what_a_device_answers() {
    for into in [Turned::AnyTime, Turned::AtOnce, Turned::Unreadable, Turned::Dead, Turned::Coarse] {
        // When the spindle has been found; in the middle of something.
        for later in [0, 40, 300, 2_500] {
            let mut lab = Lab::of("cheetah36es");
            let (geometry, profile) = (lab.truth.geometry.clone(), lab.profile.clone());
            let device = lab.device();
            let mut device = Turncoat { drive: device, commands: 0, turns_at: 300 + later, into, now: Time::ZERO };
            let mut watch = Unwatched;
            let mut sampler = Sampler::new(&mut device, &mut watch, 3);
            sampler.find_cache().expect("it is still a drive");
            let Ok(mut spindle) = Spindle::find(&mut sampler) else { continue };
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
            let over = overheads::measure(&mut sampler, &mut spindle, &geometry, &table);
            let habits = habits::measure(&mut sampler, &mut spindle, &geometry, &table);
            let cache = habits::write_cache(&mut sampler, (0, u64::MAX));
            let verdict = verify::verify(&mut sampler, &profile, 300);
            println!("{into:?} {later}: {} {} {cache:?}", over.is_ok(), habits.is_ok());
            assert!(!verdict.is_ok_and(|v| v.good), "{into:?}, {later} commands later");
        }
    }
}
