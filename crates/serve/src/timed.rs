//! Commands with exact timing: each is sent at a given time, and timestamped immediately before
//! dispatch and after completion.
//!
//! The engine sleeps while a drive works, and a sleeping thread notices a completion some 40 us
//! late, occasionally 100 us; an angle measured that way has the same error. Here the thread
//! busy-waits for the completion, at the cost of one processor. For a command that takes much
//! longer than any access it sleeps, since its time carries no information. If a program on this
//! machine serves the device, it needs that processor more ([`Timed::asleep`]).

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use headtime_disk::{Command, Dur, Kind, Outcome, Time};

use crate::buffer::Aligned;
use crate::clock::{Clock, Timer};
use crate::device::{Device, bytes_of};

/// The time limit for busy-waiting: three revolutions of the slowest disk and its longest seek.
const BUSY_WAIT_LIMIT: Dur = Dur::from_ms(80);
/// The polling interval for a device that cannot signal completions.
const POLL_INTERVAL: Duration = Duration::from_micros(500);
/// The longest sleep while waiting for a device's signal: a command may become due.
const NAP_AT_MOST: Dur = Dur::from_ms(5);
/// A command that takes longer is hung: the kernel times out a disk's command after half a minute
/// and retries a few times.
const HANG_TIMEOUT: Dur = Dur::from_secs(240);

/// The times and the outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// Immediately before dispatch.
    pub sent: Time,
    /// Immediately after completion was seen.
    pub done: Time,
    /// The outcome.
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

/// A command did not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sector {lbn}: expected an answer within {seconds} s, found none")]
pub struct Hangs {
    /// Its first sector.
    pub lbn: u64,
    /// The time waited, seconds.
    pub seconds: u64,
}

impl<D: Device> Timed<D> {
    /// Creates the clock, which starts now. The caller's thread must be the one that times
    /// commands; it gets a high priority if permitted.
    pub fn new(device: D) -> Timed<D> {
        let clock = Clock::start();
        clock.prepare();
        Timed { device, clock, awake: BUSY_WAIT_LIMIT, next_id: 0 }
    }

    /// Sleeps while the device works: times are some tens of microseconds less exact.
    pub fn asleep(self) -> Timed<D> {
        Timed { awake: Dur::ZERO, ..self }
    }

    /// Returns the device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the current time.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Carries out the commands in order, each not before its time, with at most `outstanding` in
    /// flight. Returns one result each, in the same order. Writes write zeros.
    ///
    /// # Errors
    /// A command hangs. It may still complete later, so the device can no longer be used.
    pub fn run(&mut self, commands: &[(Command, Time)], outstanding: u32) -> Result<Vec<Stamped>, Hangs> {
        let room = outstanding.clamp(1, self.device.depth().max(1)) as usize;
        let first = self.next_id;
        self.next_id += commands.len() as u64;
        let mut answers: Vec<Option<Stamped>> = vec![None; commands.len()];
        let mut under_way: BTreeMap<u64, Time> = BTreeMap::new();
        let mut next = 0;
        // Memory is allocated before the clock is read.
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
                    // Nothing can complete in the meantime. If the sleep fails it ends at once, and
                    // the rest is busy-waited.
                    let _ = self.clock.sleep(Some(*not_before), &[]);
                }
            }
            let now = self.clock.now();
            let Some(done) = self.device.poll(now) else {
                self.wait(&under_way, now).map_err(|id| Hangs {
                    lbn: commands[(id - first) as usize].0.lbn,
                    seconds: HANG_TIMEOUT.0 / 1_000_000_000,
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

    /// Waits a little for a completion. `Err`: the oldest command hangs.
    fn wait(&self, under_way: &BTreeMap<u64, Time>, now: Time) -> Result<(), u64> {
        let Some((&id, &oldest)) = under_way.iter().min_by_key(|(_, sent)| **sent) else { return Ok(()) };
        match now.saturating_since(oldest) {
            since if since > HANG_TIMEOUT => return Err(id),
            since if since < self.awake => std::hint::spin_loop(),
            // Commands not yet submitted are retried at the next poll.
            _ if self.device.next_event().is_some() => std::thread::sleep(POLL_INTERVAL),
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
