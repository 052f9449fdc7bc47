//! A virtual drive that is simulated in real time and stores data.
//!
//! [`Drive`] determines when each command completes; a backing file, or a directory of them, holds
//! the data (sparse: sectors that were never written read as zeros). Data is transferred to or from
//! the file as soon as the command is submitted, and the command completes when both the drive and
//! the file are done. So a completed write survives the end of this program, a completed flush or
//! FUA write survives a power failure of this machine, and the file's own speed shows only as
//! lateness, which is reported.
//!
//! Unwritten sectors are not read from the file: the kernel would first fill its cache with zeros,
//! up to some tens of milliseconds for a MiB, and the command would be late by that time.
//!
//! Transferring data early is allowed, since a drive may carry out outstanding commands in any
//! order.
//!
//! Faults can be changed while it is used, and its power can fail (`power`): then it loses what was
//! only in its volatile cache.

mod power;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use bytes::Bytes;
use headtime_disk::profile::Profile;
use headtime_disk::{Command, Completion, Drive, DriveConfig, Kind, ModelError, Outcome, SubmitError, Time};

use power::{Power, Tracked};

use super::volatile::Covered;
use super::{Device, Done, Fault, bytes_of};
use crate::backing::Backing;
use crate::ring::Ring;

/// The largest number of outstanding commands, whatever the profile says: the depth of the ring.
const MAX_QUEUE_DEPTH: u32 = 256;

#[derive(Debug)]
struct Flight {
    command: Command,
    /// When the drive completes the command, and its outcome.
    drive: Option<Completion>,
    /// The result of the file transfer; `None` while it is in progress.
    file: Option<Result<Bytes, Fault>>,
    /// A write whose sectors' former contents are kept.
    tracked: Option<Tracked>,
    /// What a flush covers.
    covered: Option<Covered>,
}

/// A virtual drive over its backing file.
#[derive(Debug)]
pub struct VirtualDrive {
    drive: Drive,
    ring: Ring,
    sectors: u64,
    sector_bytes: u32,
    depth: u32,
    flights: Vec<Flight>,
    /// The backing, to check which bytes were written.
    backing: Arc<Backing>,
    /// Zeros, as long as the longest read of them so far.
    zeros: Bytes,
    power: Power,
}

/// Why a virtual drive could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VirtualDriveError {
    /// The profile does not describe a drive.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The backing file could not be used.
    #[error("io_uring: {0}")]
    Ring(io::Error),
}

impl VirtualDrive {
    /// Creates a drive from `profile` over `backing`, which is at least as long as the drive.
    pub fn new(profile: &Profile, config: DriveConfig, backing: Backing) -> Result<VirtualDrive, VirtualDriveError> {
        let drive = Drive::new(profile, config.clone())?;
        let depth = (drive.depth() as u32).min(MAX_QUEUE_DEPTH);
        let backing = Arc::new(backing);
        let ring = Ring::over(backing.clone(), depth).map_err(VirtualDriveError::Ring)?;
        let (sectors, sector_bytes) = (drive.capacity(), profile.sector_bytes);
        let flights = Vec::with_capacity(depth as usize);
        let (zeros, power) = (Bytes::new(), Power::new(profile.clone(), config));
        Ok(VirtualDrive { drive, ring, sectors, sector_bytes, depth, flights, backing, zeros, power })
    }

    /// Returns the zeros of a range that was never written; `None` if any of it was, or if the file
    /// system does not report it.
    fn never_written(&mut self, offset: u64, len: usize) -> Option<Bytes> {
        let empty = self.backing.is_empty(offset, len as u64);
        if empty && self.zeros.len() < len {
            self.zeros = vec![0; len].into();
        }
        empty.then(|| self.zeros.slice(..len))
    }

    /// Records all completions up to `now`.
    fn catch_up(&mut self, now: Time) {
        while let Some(done) = self.drive.advance(now) {
            let flight = self.flights.iter_mut().find(|f| f.command.id == done.id);
            flight.expect("the drive completed a command that it was sent").drive = Some(done);
        }
        while let Some(moved) = self.ring.poll() {
            let flight = self.flights.iter_mut().find(|f| f.command.id == moved.token);
            let Some(flight) = flight else {
                assert!(!self.power.is_on(), "data was moved for a command");
                continue;
            };
            flight.file = match moved.result {
                Ok(data) if flight.reads_former_contents() => {
                    self.power.write_after_reading(&mut self.ring, flight, data, self.sector_bytes)
                }
                result => Some(result.map_err(|e| Fault::of(&e))),
            };
        }
        self.settle();
    }
}

impl Device for VirtualDrive {
    fn sectors(&self) -> u64 {
        self.sectors
    }
    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }
    fn depth(&self) -> u32 {
        self.depth
    }

    fn submit(&mut self, command: &Command, data: Bytes, now: Time) {
        self.catch_up(now);
        if !self.power.is_on() {
            self.power.refuse(*command);
            return;
        }
        match self.drive.submit(*command, now) {
            Ok(()) => {}
            // The caller counts commands and checks their ranges.
            Err(e @ (SubmitError::Full { .. } | SubmitError::OutOfRange { .. })) => panic!("{e}"),
        }
        let len = bytes_of(command, self.sector_bytes);
        let offset = command.lbn * u64::from(self.sector_bytes);
        let zeros = if command.kind == Kind::Read { self.never_written(offset, len) } else { None };
        let (mut tracked, mut covered) = (None, None);
        let begun = match command.kind {
            Kind::Read if zeros.is_some() => Ok(()),
            Kind::Read => self.ring.read(command.id, offset, len),
            Kind::Write => {
                assert_eq!(data.len(), len, "a write brings exactly its data");
                // The file represents both the drive's cache and its media.
                match self.track(command, &data) {
                    Some(one) if one.data.is_some() => {
                        tracked = Some(one);
                        self.ring.read(command.id, offset, len)
                    }
                    one => {
                        tracked = one;
                        self.ring.write(command.id, offset, data, command.fua)
                    }
                }
            }
            Kind::Flush => {
                covered = self.power.covered();
                self.ring.flush(command.id)
            }
        };
        let file = match begun {
            Err(e) => Some(Err(Fault::of(&e))),
            Ok(()) => zeros.map(Ok),
        };
        self.flights.push(Flight { command: *command, drive: None, file, tracked, covered });
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        self.catch_up(now);
        if let Some(refused) = self.power.refused() {
            return Some(refused);
        }
        let done = |f: &Flight| f.file.is_some().then_some(f.drive.map(|d| d.at)).flatten();
        let (at, first) = self.flights.iter().enumerate().filter_map(|(i, f)| Some((done(f)?, i))).min()?;
        let flight = self.flights.remove(first);
        self.power.completed(&flight, &self.drive);
        let Flight { command, drive, file, .. } = flight;
        let outcome = drive.expect("chosen for being done").outcome;
        let late = Some(now.saturating_since(at));
        let done = match (outcome, file.expect("chosen for being done")) {
            (Outcome::Dead, _) => Done::failed(&command, Fault::Gone),
            (Outcome::MediaError { .. }, _) => Done { outcome, ..Done::failed(&command, Fault::Io) },
            (Outcome::Ok, Err(fault)) => Done::failed(&command, fault),
            (Outcome::Ok, Ok(data)) => Done::ok(command.id, data),
        };
        Some(Done { late, ..done })
    }

    fn next_event(&self) -> Option<Time> {
        let waiting = self.flights.iter().filter(|f| f.file.is_some()).filter_map(|f| Some(f.drive?.at)).min();
        let next =
            if self.ring.is_held_up() || self.power.has_refused() { Some(Time::ZERO) } else { self.drive.next_event() };
        match (waiting, next) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs::File;

    use headtime_disk::{Fault as Planted, profile};

    fn drive(config: DriveConfig) -> VirtualDrive {
        let profile = profile::builtin("atlas10k").unwrap();
        let backing = tempfile::tempfile().unwrap();
        backing.set_len(10 << 30).unwrap();
        VirtualDrive::new(&profile, config, backing.into()).unwrap()
    }

    fn command(id: u64, kind: Kind, lbn: u64) -> Command {
        Command { id, kind, lbn, count: 8, fua: false }
    }

    /// Advances virtual time as fast as the file allows.
    fn next(d: &mut VirtualDrive, now: &mut Time) -> Done {
        loop {
            if let Some(done) = d.poll(*now) {
                return done;
            }
            if let Some(t) = d.next_event() {
                *now = t.max(*now);
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_command_ends_when_the_platter_says_and_not_before() {
        let mut d = drive(DriveConfig::default());
        let mut reference = Drive::new(&profile::builtin("atlas10k").unwrap(), DriveConfig::default()).unwrap();
        let mut now = Time::ZERO;
        for (id, lbn) in [(0, 1_000_000), (1, 5_000), (2, 17_000_000)] {
            reference.submit(command(id, Kind::Read, lbn), now).unwrap();
            let due = loop {
                let t = reference.next_event().unwrap();
                if let Some(c) = reference.advance(t) {
                    break c.at;
                }
            };
            d.submit(&command(id, Kind::Read, lbn), Bytes::new(), now);
            assert!(d.poll(Time(due.0 - 1)).is_none());
            now = due;
            let done = next(&mut d, &mut now);
            assert_eq!((done.id, done.fault, now), (id, None, due));
        }
    }

    #[test]
    fn a_command_whose_data_the_kernel_did_not_take_is_no_reason_to_sleep() {
        let (mut d, mut now) = (drive(DriveConfig::default()), Time::ZERO);
        let c = command(0, Kind::Read, 800);
        d.drive.submit(c, now).unwrap();
        d.ring.read_held_up(0, 800 * 512, 4096);
        d.flights.push(Flight { command: c, drive: None, file: None, tracked: None, covered: None });
        assert_eq!(d.next_event(), Some(Time::ZERO));
        let done = next(&mut d, &mut now);
        assert_eq!((done.fault, done.data.len(), d.next_event()), (None, 4096, None));
    }

    #[test]
    fn what_is_written_is_read_back_and_all_else_is_zero() {
        let mut d = drive(DriveConfig::default());
        let mut now = Time::ZERO;
        d.submit(&command(0, Kind::Write, 800), Bytes::from(vec![6; 4096]), now);
        assert_eq!(next(&mut d, &mut now).fault, None);
        d.submit(&command(1, Kind::Read, 804), Bytes::new(), now);
        let read = next(&mut d, &mut now).data;
        assert!(read[..2048].iter().all(|&b| b == 6) && read[2048..].iter().all(|&b| b == 0));
    }

    #[test]
    fn data_across_the_ends_of_segments_is_what_it_would_be_in_memory() {
        let profile = profile::builtin("atlas10k").unwrap();
        let sectors = Drive::new(&profile, DriveConfig::default()).unwrap().capacity();
        // Boundaries of segments lie within sectors, too.
        let (segment, bytes) = ((1 << 30) + 200, sectors * 512);
        let files: Vec<File> = (0..bytes.div_ceil(segment))
            .map(|n| {
                let file = tempfile::tempfile().unwrap();
                file.set_len(segment.min(bytes - n * segment)).unwrap();
                file
            })
            .collect();
        let ends = files.len() as u64;
        let mut d = VirtualDrive::new(&profile, DriveConfig::default(), Backing::of_segments(files, segment)).unwrap();
        let (mut now, mut memory, mut seed) = (Time::ZERO, BTreeMap::new(), 1u64);
        let mut chance = |of: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % of
        };
        let (mut written, mut unwritten) = (0, 0);
        for id in 0..3000 {
            // Near a boundary of segments or the end of the drive: within 40 sectors of it.
            let end = (segment * (1 + chance(ends))).div_ceil(512).min(sectors);
            let lbn = end - 40 + chance(72);
            let count = 1 + chance(16);
            if lbn + count > sectors {
                continue;
            }
            let whole = Command { count: count as u32, ..command(id, Kind::Read, lbn) };
            if chance(3) == 0 {
                let filled = 1 + chance(255) as u8;
                memory.extend((lbn..lbn + count).map(|s| (s, filled)));
                let data = vec![filled; 512 * count as usize];
                d.submit(&Command { kind: Kind::Write, ..whole }, data.into(), now);
                assert_eq!(next(&mut d, &mut now).fault, None);
            } else {
                let expected: Vec<u8> = (lbn..lbn + count).flat_map(|s| [*memory.get(&s).unwrap_or(&0); 512]).collect();
                d.submit(&whole, Bytes::new(), now);
                *(if d.ring.outstanding() == 0 { &mut unwritten } else { &mut written }) += 1;
                assert!(next(&mut d, &mut now).data == expected, "{count} sectors from {lbn}, beside {end}");
            }
        }
        assert!(written > 500 && unwritten > 20, "of {written} and {unwritten} reads, some found nothing written");
    }

    #[test]
    fn of_what_was_never_written_the_file_is_not_asked() {
        let mut d = drive(DriveConfig::default());
        let mut now = Time::ZERO;
        d.submit(&command(0, Kind::Read, 8), Bytes::new(), now);
        assert_eq!(d.ring.outstanding(), 0);
        assert_eq!(next(&mut d, &mut now).data, vec![0; 4096]);
        // One sector in the middle of the next read.
        d.submit(&Command { count: 1, ..command(1, Kind::Write, 80_004) }, Bytes::from(vec![7; 512]), now);
        next(&mut d, &mut now);
        d.submit(&command(2, Kind::Read, 80_000), Bytes::new(), now);
        assert_eq!(d.ring.outstanding(), 1);
        let read = next(&mut d, &mut now).data;
        assert!(read.iter().enumerate().all(|(i, &b)| b == if i / 512 == 4 { 7 } else { 0 }));
    }

    #[test]
    fn a_file_that_ends_too_soon_is_not_read_as_zeros() {
        let profile = profile::builtin("atlas10k").unwrap();
        let mut d = VirtualDrive::new(&profile, DriveConfig::default(), tempfile::tempfile().unwrap().into()).unwrap();
        let mut now = Time::ZERO;
        d.submit(&command(0, Kind::Read, 8), Bytes::new(), now);
        assert_eq!(next(&mut d, &mut now).fault, Some(Fault::Io));
    }

    #[test]
    fn a_planted_fault_reaches_the_host_and_gives_no_data() {
        let faults = vec![Planted::Unreadable { lbn: 100, count: 1 }, Planted::Death { at: Time(500_000_000) }];
        let mut d = drive(DriveConfig::default().with_faults(faults));
        let mut now = Time::ZERO;
        d.submit(&command(0, Kind::Read, 96), Bytes::new(), now);
        let done = next(&mut d, &mut now);
        assert_eq!((done.outcome, done.fault), (Outcome::MediaError { lbn: 100 }, Some(Fault::Io)));
        assert!(done.data.is_empty());
        now = Time(600_000_000);
        d.submit(&command(1, Kind::Read, 0), Bytes::new(), now);
        assert_eq!(next(&mut d, &mut now).fault, Some(Fault::Gone));
    }

    #[test]
    fn a_file_that_cannot_grow_fails_the_write() {
        let profile = profile::builtin("atlas10k").unwrap();
        // The kernel's file that is always full.
        let full = std::fs::OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
        let mut d = VirtualDrive::new(&profile, DriveConfig::default(), full.into()).unwrap();
        let mut now = Time::ZERO;
        d.submit(&command(0, Kind::Write, 0), Bytes::from(vec![1; 4096]), now);
        assert_eq!(next(&mut d, &mut now).fault, Some(Fault::NoSpace));
    }
}
