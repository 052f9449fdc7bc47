//! Faults that change while a virtual drive is used, and its power failures.
//!
//! When the power fails, commands that have not completed fail, and so do all later ones until it
//! returns. Sectors that were not on the media are set back in the file (`volatile`), once the
//! kernel has finished what it was given. The drive then starts as a new one would, with the same
//! defects.

use std::collections::VecDeque;

use bytes::Bytes;
use headtime_disk::profile::Profile;
use headtime_disk::{Command, Drive, DriveConfig, Fault as Planted, Outcome, Time};

use super::{Flight, VirtualDrive};
use crate::backing::Backing;
use crate::device::volatile::{Covered, Volatile};
use crate::device::{Done, Fault};
use crate::faults::plan::Lost;
use crate::faults::worn::Random;
use crate::ring::Ring;

/// After this number of further sectors it is examined again which ones are on the media.
const EXAMINED_EVERY: usize = 4096;

/// A write whose sectors' former contents are kept.
#[derive(Debug)]
pub(super) struct Tracked {
    number: u64,
    /// Its data, while the former contents are being read.
    pub(super) data: Option<Bytes>,
}

#[derive(Debug)]
enum State {
    On,
    /// The kernel is finishing; then these sectors are set back.
    Failing(Vec<(u64, Bytes)>),
    Off,
}

/// What a drive needs for power failures.
#[derive(Debug)]
pub(super) struct Power {
    profile: Profile,
    config: DriveConfig,
    state: State,
    /// The power returns as soon as the failure is complete.
    returns: bool,
    refused: VecDeque<Command>,
    /// `None`: nothing is kept, and a power failure loses nothing.
    volatile: Option<Volatile>,
    /// Only a flush or FUA brings data to the media.
    holds: bool,
    examine_above: usize,
    problem: Option<String>,
}

impl Flight {
    pub(super) fn reads_former_contents(&self) -> bool {
        self.tracked.as_ref().is_some_and(|t| t.data.is_some())
    }
}

impl Power {
    pub(super) fn new(profile: Profile, config: DriveConfig) -> Power {
        Power {
            profile,
            config,
            state: State::On,
            returns: false,
            refused: VecDeque::new(),
            volatile: None,
            holds: false,
            examine_above: EXAMINED_EVERY,
            problem: None,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        matches!(self.state, State::On)
    }

    pub(super) fn refuse(&mut self, command: Command) {
        self.refused.push_back(command);
    }

    pub(super) fn refused(&mut self) -> Option<Done> {
        self.refused.pop_front().map(|command| Done::failed(&command, Fault::Gone))
    }

    pub(super) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    pub(super) fn covered(&self) -> Option<Covered> {
        self.volatile.as_ref().map(Volatile::covered)
    }

    /// Starts a write whose sectors' former contents were read; returns its result if it could not
    /// be started.
    pub(super) fn write_after_reading(
        &mut self,
        ring: &mut Ring,
        flight: &mut Flight,
        former: Bytes,
        sector_bytes: u32,
    ) -> Option<Result<Bytes, Fault>> {
        let (Some(volatile), Some(tracked)) = (&mut self.volatile, &mut flight.tracked) else { return None };
        let Command { id, lbn, fua, .. } = flight.command;
        volatile.keep(tracked.number, lbn, &former);
        let data = tracked.data.take().unwrap_or_default();
        ring.write(id, lbn * u64::from(sector_bytes), data, fua).err().map(|e| Err(Fault::of(&e)))
    }

    /// Notes what a completed command has brought to the media.
    pub(super) fn completed(&mut self, flight: &Flight, drive: &Drive) {
        let Some(volatile) = &mut self.volatile else { return };
        let is_ok = flight.drive.is_some_and(|d| d.outcome == Outcome::Ok) && matches!(flight.file, Some(Ok(_)));
        if let Some(covered) = flight.covered.as_ref().filter(|_| is_ok) {
            volatile.flushed(covered);
        }
        if let Some(tracked) = &flight.tracked {
            // A cached write completes without the mechanism.
            let is_on_media = is_ok && flight.drive.is_some_and(|d| d.media.is_some());
            volatile.end(tracked.number, flight.command.lbn, flight.command.count, is_on_media);
            if volatile.sectors() > self.examine_above && !self.holds {
                volatile.only_in(drive.unwritten());
                self.examine_above = volatile.sectors() + EXAMINED_EVERY;
            }
        }
    }
}

impl VirtualDrive {
    /// Keeps what a power failure takes. `holds`: the drive writes nothing back by itself, so that
    /// all writes since the last flush can be lost; otherwise, what it has written back is not.
    #[must_use]
    pub fn losing_unwritten(mut self, holds: bool) -> VirtualDrive {
        self.power.volatile = Some(Volatile::new(self.sector_bytes));
        self.power.holds = holds;
        self
    }

    /// Returns the drive's faults, as they are now.
    pub fn faults(&self) -> &[Planted] {
        self.drive.faults()
    }

    /// Replaces its faults.
    pub fn set_faults(&mut self, faults: Vec<Planted>, now: Time) {
        self.catch_up(now);
        self.drive.set_faults(faults, now);
    }

    /// Returns whether its write cache is on.
    pub fn has_write_cache(&self) -> bool {
        self.drive.has_write_cache()
    }

    /// Switches its write cache.
    pub fn switch_write_cache(&mut self, on: bool, now: Time) {
        let mut faults = self.faults().to_vec();
        faults.push(Planted::WriteCache { at: Time::ZERO, on });
        self.set_faults(faults, now);
    }

    /// Returns whether it has power.
    pub fn has_power(&self) -> bool {
        self.power.is_on()
    }

    /// Returns whether a power failure is complete: the sectors that were lost are set back.
    pub fn is_settled(&self) -> bool {
        !matches!(self.power.state, State::Failing(_))
    }

    /// Returns the number of sectors that a power failure could lose.
    pub fn volatile_sectors(&self) -> usize {
        self.power.volatile.as_ref().map_or(0, Volatile::sectors)
    }

    /// Returns why the file could not be set back after a power failure, if it could not.
    pub fn problem(&self) -> Option<&str> {
        self.power.problem.as_deref()
    }

    /// Returns whether the sectors' former contents are kept for this write, and whether they must
    /// be read first: then its data is kept with it.
    pub(super) fn track(&mut self, command: &Command, data: &Bytes) -> Option<Tracked> {
        let volatile = self.power.volatile.as_mut()?;
        let (number, is_known) = (volatile.begin(), volatile.has_all(command.lbn, command.count));
        if is_known {
            return Some(Tracked { number, data: None });
        }
        match self.never_written(command.lbn * u64::from(self.sector_bytes), data.len()) {
            Some(zeros) => {
                self.power.volatile.as_mut()?.keep(number, command.lbn, &zeros);
                Some(Tracked { number, data: None })
            }
            None => Some(Tracked { number, data: Some(data.clone()) }),
        }
    }

    /// Lets the power fail, until [`VirtualDrive::power_on`].
    pub(crate) fn power_off(&mut self, lost: Lost, random: &mut Random, now: Time) {
        self.catch_up(now);
        self.power.returns = false;
        if !self.power.is_on() {
            return;
        }
        let (volatile, drive) = (&mut self.power.volatile, &self.drive);
        let set_back = volatile.as_mut().map_or_else(Vec::new, |v| {
            if !self.power.holds {
                v.only_in(drive.unwritten());
            }
            v.power_fails(lost, random)
        });
        self.power.examine_above = EXAMINED_EVERY;
        self.power.refused.extend(self.flights.drain(..).map(|f| f.command));
        let mut faults = self.drive.faults().to_vec();
        faults.retain(|f| !matches!(f, Planted::Hang { .. }));
        let on = self.drive.has_write_cache();
        let drive = Drive::new(&self.power.profile, self.power.config.clone());
        self.drive = drive.expect("a drive was made from the same profile");
        self.drive.set_faults(faults, now);
        if on != self.drive.has_write_cache() {
            self.switch_write_cache(on, now);
        }
        self.power.state = State::Failing(set_back);
        self.settle();
    }

    /// Lets the power return.
    pub fn power_on(&mut self, now: Time) {
        self.catch_up(now);
        match self.power.state {
            State::On => {}
            State::Failing(_) => self.power.returns = true,
            State::Off => self.power.state = State::On,
        }
    }

    /// Completes a power failure once the kernel has finished. The file is written to at once: the
    /// drive is off, and nothing waits for it.
    pub(super) fn settle(&mut self) {
        let State::Failing(set_back) = &self.power.state else { return };
        if self.ring.outstanding() > 0 {
            return;
        }
        let failed = set_back.iter().find_map(|(lbn, data)| {
            let at = lbn * u64::from(self.sector_bytes);
            write_at(&self.backing, at, data).err().map(|e| format!("sector {lbn}: {e}"))
        });
        if let Some(why) = failed {
            self.power.problem = Some(format!("the file could not be set back after a power failure: {why}"));
        }
        self.power.state = if self.power.returns { State::On } else { State::Off };
    }
}

/// Writes to a drive's files.
fn write_at(backing: &Backing, mut at: u64, mut data: &[u8]) -> std::io::Result<()> {
    while !data.is_empty() {
        let place = backing.place(at);
        let here = data.len().min(usize::try_from(place.room).unwrap_or(usize::MAX));
        match rustix::io::pwrite(backing.file(place.file), &data[..here], place.offset) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(written) => (at, data) = (at + written as u64, &data[written..]),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}
