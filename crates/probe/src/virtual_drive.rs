//! A virtual drive as the drive under test, in virtual time.

use headtime_disk::profile::Profile;
use headtime_disk::{Command, Drive, DriveConfig, Dur, ModelError, Time};

use crate::device::{Answer, Ask, Device, DeviceError};

/// A virtual drive with its host.
#[derive(Clone, Debug)]
pub struct VirtualDrive {
    drive: Drive,
    sector_bytes: u32,
    now: Time,
    /// Host time from a completion to the next command.
    host: Dur,
    id: u64,
}

impl VirtualDrive {
    /// Creates the drive of a profile, with a host that needs `host` from a completion to the next
    /// command.
    ///
    /// # Errors
    /// The profile makes no valid drive.
    pub fn new(profile: &Profile, config: DriveConfig, host: Dur) -> Result<VirtualDrive, ModelError> {
        let drive = Drive::new(profile, config)?;
        Ok(VirtualDrive { drive, sector_bytes: profile.sector_bytes, now: Time::ZERO, host, id: 0 })
    }

    /// The drive, for tests that may know the truth.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }
}

impl Device for VirtualDrive {
    fn sectors(&self) -> u64 {
        self.drive.capacity()
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn depth(&self) -> u32 {
        self.drive.depth() as u32
    }

    fn now(&self) -> Time {
        self.now
    }

    fn run(&mut self, asks: &[Ask], outstanding: u32) -> Result<Vec<Answer>, DeviceError> {
        let from = self.id;
        let mut sent: Vec<Time> = Vec::with_capacity(asks.len());
        let mut answers: Vec<Option<Answer>> = vec![None; asks.len()];
        let mut open = 0;
        loop {
            while let Some(ask) = asks.get(sent.len())
                && open < outstanding.max(1)
                && ask.not_before <= self.now
            {
                let command = Command { id: self.id, kind: ask.kind, lbn: ask.lbn, count: ask.count, fua: false };
                self.drive.submit(command, self.now).map_err(|e| DeviceError(e.to_string()))?;
                sent.push(self.now);
                (self.id, open) = (self.id + 1, open + 1);
            }
            let waits = asks.get(sent.len()).filter(|_| open < outstanding.max(1)).map(|a| a.not_before);
            let Some(next) = [self.drive.next_event(), waits].into_iter().flatten().min() else { break };
            let next = next.max(self.now);
            let mut heard = false;
            while let Some(c) = self.drive.advance(next) {
                let i = (c.id - from) as usize;
                answers[i] = Some(Answer { sent: sent[i], done: c.at, outcome: c.outcome });
                (open, heard) = (open - 1, true);
            }
            self.now = next;
            if heard {
                // Completions within the host time are noticed at its end.
                self.now += self.host;
                while let Some(c) = self.drive.advance(self.now) {
                    let i = (c.id - from) as usize;
                    answers[i] = Some(Answer { sent: sent[i], done: c.at, outcome: c.outcome });
                    open -= 1;
                }
            }
            if sent.len() == asks.len() && open == 0 {
                break;
            }
        }
        Ok(answers.into_iter().map(|a| a.expect("a drive answers every command")).collect())
    }
}
