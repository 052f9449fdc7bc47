//! Commands whose times matter: sent when they are to be, and stamped right before they go and
//! right after they end.
//!
//! The engine sleeps while a drive works; a sleeper hears of an end some 40 us late, now and then
//! 100, and an angle that is measured so is off by as much. Here the one thread looks for the end
//! all the time, which costs a processor for as long as it lasts. A command that takes much longer
//! than any access is waited for asleep: nothing is learned from its time. Where a program on this
//! machine answers for the device, it needs that processor more ([`Timed::asleep`]).

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use headtime_disk::command::{Command, Kind, Outcome};
use headtime_disk::time::{Dur, Time};

use crate::buffer::Aligned;
use crate::clock::{Clock, Timer};
use crate::device::{Device, bytes_of};

/// Waited for awake; three turns of the slowest disk and its longest seek end within.
const AWAKE: Dur = Dur::from_ms(80);
/// From one look to the next at a device that cannot say when to look.
const NAP: Duration = Duration::from_micros(500);
/// A sleeper that is woken by the device's answer looks again after so long all the same: a command
/// may be due.
const NAP_AT_MOST: Dur = Dur::from_ms(5);
/// A command that takes longer hangs: the kernel itself gives up a disk's command after half a
/// minute, and tries a few times.
const HANGS: Dur = Dur::from_secs(240);

/// When a command went and ended, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// Right before it was handed over.
    pub sent: Time,
    /// Right after its end was seen.
    pub done: Time,
    /// How it ended.
    pub outcome: Outcome,
}

/// A device with a clock.
#[derive(Debug)]
pub struct Timed<D> {
    device: D,
    clock: Clock,
    awake: Dur,
    next_id: u64,
}

/// A command did not end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sector {lbn}: expected an answer within {seconds} s, found none")]
pub struct Hangs {
    /// Its first sector.
    pub lbn: u64,
    /// So long was waited.
    pub seconds: u64,
}

impl<D: Device> Timed<D> {
    /// With a clock that begins now. The thread that calls this is the one that is to time
    /// commands: where it may, it goes before others.
    pub fn new(device: D) -> Timed<D> {
        let clock = Clock::start();
        clock.prepare();
        Timed { device, clock, awake: AWAKE, next_id: 0 }
    }

    /// The same, asleep while the device works: times are some tens of microseconds less exact.
    pub fn asleep(self) -> Timed<D> {
        Timed { awake: Dur::ZERO, ..self }
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// What the clock shows.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Carries these out in this order, each not before its time, with at most `outstanding` at the
    /// device; one answer each, in the same order. What writes write is zeros.
    ///
    /// # Errors
    /// One hangs. It may still end one day, so the device is of no more use.
    pub fn run(&mut self, commands: &[(Command, Time)], outstanding: u32) -> Result<Vec<Stamped>, Hangs> {
        let room = outstanding.clamp(1, self.device.depth().max(1)) as usize;
        let first = self.next_id;
        self.next_id += commands.len() as u64;
        let mut answers: Vec<Option<Stamped>> = vec![None; commands.len()];
        let mut under_way: BTreeMap<u64, Time> = BTreeMap::new();
        let mut next = 0;
        // Memory is had before the clock is looked at.
        let mut data = commands.first().map_or(Bytes::new(), |c| self.data(&c.0));
        while next < commands.len() || !under_way.is_empty() {
            if next < commands.len() && under_way.len() < room {
                let (command, not_before) = &commands[next];
                if *not_before <= self.clock.now() {
                    let id = first + next as u64;
                    let command = Command { id, ..*command };
                    let payload = std::mem::take(&mut data);
                    let sent = self.clock.now();
                    self.device.submit(&command, payload, sent);
                    under_way.insert(id, sent);
                    next += 1;
                    data = commands.get(next).map_or(Bytes::new(), |c| self.data(&c.0));
                    continue;
                }
                if under_way.is_empty() {
                    // Nothing can end meanwhile. A sleep that fails ends at once, and the rest is
                    // waited for awake.
                    let _ = self.clock.sleep(Some(*not_before), &[]);
                }
            }
            let now = self.clock.now();
            let Some(done) = self.device.poll(now) else {
                self.wait(&under_way, now).map_err(|id| Hangs {
                    lbn: commands[(id - first) as usize].0.lbn,
                    seconds: HANGS.0 / 1_000_000_000,
                })?;
                continue;
            };
            let at = self.clock.now();
            if let Some(sent) = under_way.remove(&done.id) {
                answers[(done.id - first) as usize] = Some(Stamped { sent, done: at, outcome: done.outcome });
            }
        }
        Ok(answers.into_iter().map(|a| a.expect("every command ended")).collect())
    }

    fn data(&self, command: &Command) -> Bytes {
        match command.kind {
            Kind::Write => Aligned::new(bytes_of(command, self.device.sector_bytes())).into(),
            Kind::Read | Kind::Flush => Bytes::new(),
        }
    }

    /// Nothing has ended yet. `Err`: the oldest hangs.
    fn wait(&self, under_way: &BTreeMap<u64, Time>, now: Time) -> Result<(), u64> {
        let Some((&id, &oldest)) = under_way.iter().min_by_key(|(_, sent)| **sent) else { return Ok(()) };
        match now.saturating_since(oldest) {
            since if since > HANGS => return Err(id),
            since if since < self.awake => std::hint::spin_loop(),
            // What was not handed over yet is asked for again at the next look.
            _ if self.device.next_event().is_some() => std::thread::sleep(NAP),
            _ => {
                let until = now + NAP_AT_MOST;
                let fds: Vec<_> = self.device.fd().into_iter().collect();
                let _ = self.clock.sleep(Some(until), &fds);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::file::FileDevice;
    use crate::device::null::Null;

    fn read(lbn: u64, not_before: Time) -> (Command, Time) {
        (Command { id: 0, kind: Kind::Read, lbn, count: 1, fua: false }, not_before)
    }

    #[test]
    fn answers_come_in_the_order_of_the_commands_and_are_stamped_in_it() {
        let mut timed = Timed::new(Null::new(1000, 512, 4)).asleep();
        for outstanding in [1, 3, 100] {
            let began = timed.now();
            let commands: Vec<_> = (0..20).map(|lbn| read(lbn, Time::ZERO)).collect();
            let answers = timed.run(&commands, outstanding).unwrap();
            assert_eq!(answers.len(), 20);
            assert!(answers.iter().all(|a| a.outcome == Outcome::Ok && a.done >= a.sent && a.sent >= began));
            assert!(answers.windows(2).all(|w| w[0].sent <= w[1].sent));
        }
        assert_eq!(timed.run(&[], 1).unwrap(), []);
    }

    #[test]
    fn a_command_is_not_sent_before_its_time() {
        let mut timed = Timed::new(Null::new(1000, 512, 1));
        let at = timed.now() + Dur::from_ms(3);
        let answers = timed.run(&[read(0, Time::ZERO), read(1, at)], 1).unwrap();
        assert!(answers[0].sent < at && answers[1].sent >= at);
    }

    #[test]
    fn a_file_is_read_and_what_lies_beyond_its_end_is_a_fault_of_one_command() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 * 512).unwrap();
        let device = || FileDevice::new(file.try_clone().unwrap().into(), 100, 512, 2, false).unwrap();
        for mut timed in [Timed::new(device()), Timed::new(device()).asleep()] {
            let answers = timed.run(&[read(0, Time::ZERO), read(50, Time::ZERO), read(7, Time::ZERO)], 2).unwrap();
            let outcomes: Vec<Outcome> = answers.iter().map(|a| a.outcome).collect();
            assert_eq!(outcomes, [Outcome::Ok, Outcome::MediaError { lbn: 50 }, Outcome::Ok]);
        }
    }
}
