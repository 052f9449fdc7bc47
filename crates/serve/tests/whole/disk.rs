//! A disk whose cache is lost in a power failure, and which fails commands at given rates.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use headtime_disk::profile::Profile;
use headtime_disk::{Command, Completion, Drive, DriveConfig, Dur, Kind, Time};
use headtime_serve::device::{Device, Done, Fault, bytes_of};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::client::HOT_SECTORS;
use super::shadow::SECTOR;
use super::{CACHED, FIRST};

type Block = [u8; SECTOR];

/// The data on the platters, and the data only in the cache: of each sector all writes since its
/// last flush.
#[derive(Debug, Default)]
pub struct Media {
    durable: BTreeMap<u64, Block>,
    cached: BTreeMap<u64, Vec<(u64, Block)>>,
    moment: u64,
}

impl Media {
    /// Returns the data of a read.
    pub fn sector(&self, lbn: u64) -> Block {
        let cached = self.cached.get(&lbn).and_then(|all| all.last()).map(|last| last.1);
        cached.or_else(|| self.durable.get(&lbn).copied()).unwrap_or([0; SECTOR])
    }

    fn put(&mut self, lbn: u64, block: Block, fua: bool) {
        self.moment += 1;
        if fua {
            self.cached.remove(&lbn);
            self.durable.insert(lbn, block);
        } else {
            self.cached.entry(lbn).or_default().push((self.moment, block));
        }
    }

    /// Moves all data written before this moment to the platters.
    fn flush(&mut self, before: u64) {
        let durable = &mut self.durable;
        self.cached.retain(|lbn, all| {
            let covered = all.iter().take_while(|(at, _)| *at <= before).count();
            if let Some((_, block)) = all.drain(..covered).next_back() {
                durable.insert(*lbn, block);
            }
            !all.is_empty()
        });
    }

    /// Changes a sector without a write.
    pub fn damage(&mut self, lbn: u64) {
        let mut block = self.sector(lbn);
        block[77] ^= 0x10;
        self.put(lbn, block, true);
    }

    /// Sets the initial data of a sector.
    pub fn fill(&mut self, lbn: u64, block: Block) {
        self.put(lbn, block, true);
    }

    /// Simulates a power failure: each sector has the data on the platters, or any of the data in
    /// the cache.
    pub fn lose_power(&mut self, rng: &mut Xoshiro256PlusPlus) {
        for (lbn, all) in std::mem::take(&mut self.cached) {
            let chosen = rng.next_u64() as usize % (all.len() + 1);
            if let Some((_, block)) = chosen.checked_sub(1).map(|n| all[n]) {
                self.durable.insert(lbn, block);
            }
        }
    }
}

/// The longest delays of completions, microseconds.
const MAX_HANG_US: u64 = 100_000;
const MAX_WAIT_US: u64 = 20_000;

/// Error rates: one in this number of commands; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errs {
    /// Fails.
    pub fails: u64,
    /// Completes late, by [`MAX_HANG_US`] at most.
    pub hangs: u64,
    /// Makes the device go away.
    pub dies: u64,
    /// Fails, for writes at the places that clients of write caches overwrite repeatedly; the same
    /// fraction of the others completes late, by [`MAX_WAIT_US`] at most, so that they are
    /// overwritten in flight.
    pub spots: u64,
}

struct Flight {
    command: Command,
    data: Bytes,
    /// The moment of the media at which it was submitted.
    sent: u64,
    done: Option<Completion>,
    late: Dur,
    fails: bool,
}

/// The disk of the engine.
pub struct Disk {
    drive: Drive,
    media: Arc<Mutex<Media>>,
    flights: Arc<Mutex<Vec<Flight>>>,
    commands: Arc<AtomicU64>,
    errs: Errs,
    gone: Arc<AtomicBool>,
    rng: Xoshiro256PlusPlus,
}

/// The state of the disk at a crash.
#[derive(Clone)]
pub struct Wreck(Arc<Mutex<Vec<Flight>>>, Arc<Mutex<Media>>, Arc<AtomicU64>);

impl Wreck {
    /// Returns the number of commands submitted to the disk.
    pub fn commands(&self) -> u64 {
        self.2.load(Ordering::Relaxed)
    }

    /// Writes a random part of the sectors of writes in flight.
    pub fn settle(&self, rng: &mut Xoshiro256PlusPlus) {
        let mut media = self.1.lock().unwrap();
        for flight in self.0.lock().unwrap().drain(..) {
            write_some(&flight, &mut media, rng);
        }
    }
}

fn blocks(flight: &Flight) -> impl Iterator<Item = (u64, Block)> + '_ {
    let all = flight.data.chunks(SECTOR).map(|block| block.try_into().expect("whole sectors"));
    (flight.command.lbn..).zip(all)
}

fn write_some(flight: &Flight, media: &mut Media, rng: &mut Xoshiro256PlusPlus) {
    if flight.command.kind == Kind::Write {
        blocks(flight)
            .filter(|_| rng.next_u64().is_multiple_of(2))
            .for_each(|(lbn, block)| media.put(lbn, block, false));
    }
}

/// Returns whether a command writes at one of the places that are overwritten repeatedly.
fn is_hot(command: &Command) -> bool {
    let (from, to) = (command.lbn, command.lbn + u64::from(command.count));
    let meets = |first: u64| from < first + HOT_SECTORS.end as u64 && first + (HOT_SECTORS.start as u64) < to;
    command.kind == Kind::Write && [FIRST[CACHED as usize], FIRST[2]].into_iter().any(meets)
}

impl Disk {
    /// Creates a disk over this media.
    pub fn new(profile: &Profile, media: &Arc<Mutex<Media>>, errs: Errs, seed: u64, rng: Xoshiro256PlusPlus) -> Disk {
        let drive = Drive::new(profile, DriveConfig::default().with_seed(seed)).expect("a drive that works");
        let (media, flights) = (Arc::clone(media), Arc::default());
        Disk { drive, media, flights, commands: Arc::default(), errs, gone: Arc::default(), rng }
    }

    /// Returns the state of the disk at a crash.
    pub fn wreck(&self) -> Wreck {
        Wreck(Arc::clone(&self.flights), Arc::clone(&self.media), Arc::clone(&self.commands))
    }

    /// Returns a flag that is set when the device goes away.
    pub fn gone(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.gone)
    }

    fn one_of(&mut self, many: u64) -> bool {
        many > 0 && self.rng.next_u64().is_multiple_of(many)
    }
}

impl Device for Disk {
    fn sectors(&self) -> u64 {
        self.drive.capacity()
    }
    fn sector_bytes(&self) -> u32 {
        SECTOR as u32
    }
    fn depth(&self) -> u32 {
        2
    }

    fn submit(&mut self, command: &Command, data: Bytes, now: Time) {
        assert_eq!(data.len(), if command.kind == Kind::Write { bytes_of(command, 512) } else { 0 });
        self.drive.submit(*command, now).expect("the engine keeps to the depth");
        let spots = if is_hot(command) { self.errs.spots } else { 0 };
        let fails = self.one_of(self.errs.fails) || self.one_of(spots);
        let (hangs, waits) = (self.one_of(self.errs.hangs), self.one_of(spots));
        let dies = self.one_of(self.errs.dies);
        self.gone.fetch_or(dies, Ordering::Relaxed);
        let most = if hangs { MAX_HANG_US } else { u64::from(waits) * MAX_WAIT_US };
        let late = Dur::from_us(self.rng.next_u64() % most.max(1));
        self.commands.fetch_add(1, Ordering::Relaxed);
        let sent = self.media.lock().unwrap().moment;
        self.flights.lock().unwrap().push(Flight { command: *command, data, sent, done: None, late, fails });
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        let mut flights = self.flights.lock().unwrap();
        while let Some(done) = self.drive.advance(now) {
            let flight = flights.iter_mut().find(|f| f.command.id == done.id);
            flight.expect("the drive completes what it has").done = Some(done);
        }
        let at = |f: &Flight| f.done.map(|done| done.at + f.late);
        let due = flights.iter().enumerate().filter_map(|(n, f)| Some((at(f)?, n))).min();
        let (_, first) = due.filter(|(at, _)| *at <= now)?;
        let flight = flights.remove(first);
        let (command, mut media) = (flight.command, self.media.lock().unwrap());
        let gone = self.gone.load(Ordering::Relaxed);
        if gone || flight.fails {
            write_some(&flight, &mut media, &mut self.rng);
            return Some(Done::failed(&command, if gone { Fault::Gone } else { Fault::Io }));
        }
        Some(match command.kind {
            Kind::Read => {
                let all = command.lbn..command.lbn + u64::from(command.count);
                Done::ok(command.id, all.flat_map(|lbn| media.sector(lbn)).collect::<Vec<u8>>().into())
            }
            Kind::Write => {
                blocks(&flight).for_each(|(lbn, block)| media.put(lbn, block, command.fua));
                Done::ok(command.id, Bytes::new())
            }
            Kind::Flush => {
                media.flush(flight.sent);
                Done::ok(command.id, Bytes::new())
            }
        })
    }

    fn next_event(&self) -> Option<Time> {
        let flights = self.flights.lock().unwrap();
        let late = flights.iter().filter_map(|f| Some(f.done?.at + f.late)).min();
        [late, self.drive.next_event()].into_iter().flatten().min()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
