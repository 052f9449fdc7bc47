//! Common parts of the tests that kill servers and clients: writers that track their guaranteed
//! data, the disks that they write to, and counts of the data found afterwards.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::nbd_client::{FLUSH, FUA, Nbd, WRITE};
use super::{SMALL, SMALL_BYTES, Server, headtime, next};
use crate::support::{self, Loop};

pub const SECTOR: usize = 512;
pub const BLOCK: u64 = 4096;
/// Blocks of each writer, adjacent to the others'.
pub const BLOCKS: u64 = 64;
pub const WRITERS: u64 = 4;
/// A writer's requests in flight.
const DEPTH: usize = 8;
/// The export of these servers.
pub const EXPORT: &str = "data";

/// Number of kills: `HEADTIME_KILLS` in the environment, or `usual`.
pub fn rounds(usual: u64) -> u64 {
    let asked = std::env::var("HEADTIME_KILLS").ok();
    asked.map_or(usual, |n| n.parse().expect("HEADTIME_KILLS: expected a number"))
}

/// Duration of the writes of this round: 50 to 500 ms.
pub fn a_while(round: u64) -> Duration {
    Duration::from_millis(50 + next(round) % 451)
}

/// The range of one block's contents after a crash: the latest guaranteed generation, and the last
/// one sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    /// Flushed, written with FUA, or found after a crash.
    pub promised: u64,
    pub answered: u64,
    pub sent: u64,
    /// The guaranteed generation at the last check.
    looked_for: u64,
}

/// A client that rewrites its own blocks and tracks their guaranteed generations.
pub struct Writer {
    first: u64,
    pub blocks: Vec<Block>,
    seed: u64,
    /// A log of requests and replies for a process that outlives the writer.
    diary: Option<File>,
    /// Called for each new guarantee, a block's number and a generation, when its reply has
    /// arrived.
    promised: Option<Promised>,
}

/// See [`Writer::telling`].
type Promised = Box<dyn FnMut(Vec<(u64, u64)>) + Send>;

/// A request in flight.
enum Asked {
    Write {
        block: usize,
        generation: u64,
        fua: bool,
    },
    /// The acknowledged generations at dispatch, by block, which its completion guarantees.
    Flush(Vec<u64>),
}

/// A sector of a block of this generation, which it contains, so that a torn block can be
/// recognised. Generation 0, before any write, is zeros.
fn sector(block: u64, generation: u64, number: usize) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    if generation > 0 {
        let mut seed = block << 40 ^ generation << 8 ^ number as u64;
        for (n, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *word = if n == 0 { generation } else { seed }.to_le_bytes();
            seed = next(seed);
        }
    }
    bytes
}

/// A block of this generation.
pub fn contents(block: u64, generation: u64) -> Vec<u8> {
    (0..BLOCK as usize / SECTOR).flat_map(|n| sector(block, generation, n)).collect()
}

/// Returns the generation of a sector, which must be in the range, and whole: a block may be torn
/// between sectors if its write was not acknowledged, never within one.
///
/// # Errors
/// The contents found instead.
pub fn generation(block: u64, number: usize, found: &[u8], of: RangeInclusive<u64>) -> Result<u64, String> {
    let generation = u64::from_le_bytes(*found.first_chunk().expect("a sector"));
    if of.contains(&generation) && *found == sector(block, generation, number) {
        return Ok(generation);
    }
    Err(format!("block {block}, sector {number}: expected a generation of {of:?}, whole, found {generation}"))
}

impl Writer {
    pub fn new(number: u64) -> Writer {
        Writer {
            first: number * BLOCKS,
            blocks: vec![Block::default(); BLOCKS as usize],
            seed: number,
            diary: None,
            promised: None,
        }
    }

    /// A writer whose generations begin after `sent`, with a diary.
    pub fn with_diary(number: u64, sent: u64, diary: File) -> Writer {
        let block = Block { sent, ..Block::default() };
        let blocks = vec![block; BLOCKS as usize];
        Writer { first: number * BLOCKS, blocks, seed: next(sent) ^ number, diary: Some(diary), promised: None }
    }

    /// The same, with a callback for its guarantees.
    pub fn telling(self, promised: impl FnMut(Vec<(u64, u64)>) + Send + 'static) -> Writer {
        Writer { promised: Some(Box::new(promised)), ..self }
    }

    /// Each block's number, and the last generation sent.
    pub fn sent(&self) -> impl Iterator<Item = (u64, u64)> {
        (self.first..).zip(self.blocks.iter().map(|b| b.sent))
    }

    /// Offset and length of its blocks, in bytes.
    pub fn place(&self) -> (u64, u32) {
        (self.first * BLOCK, (BLOCKS * BLOCK) as u32)
    }

    fn chance(&mut self, of: u64) -> u64 {
        self.seed = next(self.seed);
        self.seed % of
    }

    /// Writes until the connection is lost, or until `stop`; then waits for all replies.
    pub fn write(&mut self, socket: &Path, stop: &AtomicBool) {
        let Ok(mut nbd) = Nbd::open(socket, EXPORT) else { return };
        let mut under_way: BTreeMap<u64, Asked> = BTreeMap::new();
        for cookie in 1.. {
            let stops = stop.load(Ordering::SeqCst);
            let sent = if stops { Ok(()) } else { self.ask(&mut nbd, cookie, &mut under_way) };
            // Replies before the end count, even if a request could no longer be sent.
            while under_way.len() >= DEPTH || sent.is_err() || stops {
                if stops && under_way.is_empty() {
                    return;
                }
                let Ok((cookie, error)) = nbd.answer() else { return };
                assert_eq!(error, 0, "a request failed");
                self.answered(under_way.remove(&cookie).expect("an answer to what was asked"));
            }
        }
    }

    fn ask(&mut self, nbd: &mut Nbd, cookie: u64, under_way: &mut BTreeMap<u64, Asked>) -> io::Result<()> {
        if self.chance(16) == 0 {
            under_way.insert(cookie, Asked::Flush(self.blocks.iter().map(|b| b.answered).collect()));
            return nbd.send(FLUSH, 0, cookie, 0, 0, &[]);
        }
        // One write of a block at a time: two could be executed in either order.
        let busy = |n: usize| under_way.values().any(|a| matches!(a, Asked::Write { block, .. } if *block == n));
        let start = self.chance(BLOCKS) as usize;
        let block =
            (start..start + BLOCKS as usize).map(|n| n % BLOCKS as usize).find(|n| !busy(*n)).expect("a free one");
        self.blocks[block].sent += 1;
        let (generation, fua) = (self.blocks[block].sent, self.chance(4) == 0);
        self.note("sent", block, generation);
        under_way.insert(cookie, Asked::Write { block, generation, fua });
        let number = self.first + block as u64;
        let flags = if fua { FUA } else { 0 };
        nbd.send(WRITE, flags, cookie, number * BLOCK, BLOCK as u32, &contents(number, generation))
    }

    fn answered(&mut self, asked: Asked) {
        match asked {
            Asked::Write { block, generation, fua } => {
                let b = &mut self.blocks[block];
                b.answered = generation;
                if fua {
                    b.promised = generation;
                    self.tell(vec![(self.first + block as u64, generation)]);
                }
                self.note("answered", block, generation);
            }
            Asked::Flush(by_then) => {
                for (b, generation) in self.blocks.iter_mut().zip(&by_then) {
                    b.promised = b.promised.max(*generation);
                }
                self.tell((self.first..).zip(by_then).collect());
            }
        }
    }

    fn tell(&mut self, promise: Vec<(u64, u64)>) {
        if let Some(promised) = &mut self.promised {
            promised(promise);
        }
    }

    fn note(&mut self, what: &str, block: usize, generation: u64) {
        if let Some(diary) = &mut self.diary {
            diary.write_all(format!("{what} {block} {generation}\n").as_bytes()).unwrap();
        }
    }

    /// Reads the diary of another writer.
    pub fn read_diary(&mut self, diary: &str) {
        for line in diary.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let (block, generation) = (words[1].parse::<usize>().unwrap(), words[2].parse().unwrap());
            match words[0] {
                "sent" => self.blocks[block].sent = generation,
                "answered" => self.blocks[block].answered = generation,
                other => panic!("{other} in a diary"),
            }
        }
    }

    /// Checks every block, which must hold the generation `least` or a newer one; returns the
    /// oldest generation found in each.
    fn look(&mut self, nbd: &mut Nbd, least: fn(&Block) -> u64, tally: &mut Tally) -> Vec<u64> {
        let (at, length) = self.place();
        let found = nbd.read(at, length).unwrap();
        let oldest =
            self.blocks.iter().zip(found.chunks(BLOCK as usize)).zip(self.first..).map(|((b, found), number)| {
                let sectors = found.chunks(SECTOR).enumerate();
                let found = sectors.map(|(s, sector)| generation(number, s, sector, least(b)..=b.sent));
                found.fold(u64::MAX, |oldest, found| match found {
                    Ok(generation) => oldest.min(generation),
                    Err(why) => {
                        tally.lost.push(why);
                        oldest
                    }
                })
            });
        let oldest: Vec<u64> = oldest.collect();
        tally.checked += oldest.len();
        for b in &mut self.blocks {
            tally.promised += usize::from(least(b) > b.looked_for);
            b.looked_for = least(b);
        }
        oldest
    }
}

/// Starts writers, each on a thread of its own.
pub fn write(writers: Vec<Writer>, socket: &Path, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<Writer>> {
    let writing = writers.into_iter().map(|mut w| {
        let (socket, stop) = (socket.to_owned(), Arc::clone(stop));
        thread::spawn(move || {
            w.write(&socket, &stop);
            w
        })
    });
    writing.collect()
}

/// Returns the writers when all have ended.
pub fn joined(writing: Vec<JoinHandle<Writer>>) -> Vec<Writer> {
    writing.into_iter().map(|w| w.join().unwrap()).collect()
}

/// Counts of kills, checked blocks and losses.
#[derive(Debug, Default)]
pub struct Tally {
    pub kills: u64,
    /// Blocks with a newer guarantee than at the previous check.
    pub promised: usize,
    pub checked: usize,
    pub lost: Vec<String>,
}

impl Tally {
    /// After a crash: flushed data and data written with FUA must be there. From now on, the
    /// generations found are guaranteed.
    pub fn after_crash(&mut self, writers: &mut [Writer], socket: &Path) {
        let mut nbd = Nbd::open(socket, EXPORT).unwrap();
        for w in writers {
            let oldest = w.look(&mut nbd, |b| b.promised, self);
            for (b, oldest) in w.blocks.iter_mut().zip(oldest) {
                (b.promised, b.answered, b.looked_for) = (oldest, oldest, oldest);
            }
        }
    }

    /// Flushed data and data written with FUA must be there; the rest is undetermined.
    pub fn flushed(&mut self, writers: &mut [Writer], socket: &Path) {
        let mut nbd = Nbd::open(socket, EXPORT).unwrap();
        for w in writers {
            w.look(&mut nbd, |b| b.promised, self);
        }
    }

    /// The process that acknowledged the writes lives: all acknowledged data must be there.
    pub fn answered(&mut self, writers: &mut [Writer], socket: &Path) {
        let mut nbd = Nbd::open(socket, EXPORT).unwrap();
        for w in writers {
            w.look(&mut nbd, |b| b.promised.max(b.answered), self);
        }
    }

    /// Prints the counts; fails if anything is lost, or if nothing was tested.
    pub fn report(&self, what: &str) {
        let Tally { kills, promised, checked, lost } = self;
        println!("{what}: {kills} kills, {checked} blocks checked, {promised} of them promised, {} lost", lost.len());
        assert!(lost.is_empty(), "lost: {:#?}", &lost[..lost.len().min(8)]);
        assert!(*promised as u64 >= *kills, "only {promised} blocks were promised anything: nothing was tested");
    }
}

/// The disk of a server that is killed.
pub enum Disk {
    /// A virtual drive, by its backing file.
    Virtual,
    /// The same, and the export has the smallest possible write cache.
    Cached,
    /// A plain file as the device.
    File,
    /// A loop device, opened with O_DIRECT.
    Loop(Loop),
}

impl Disk {
    /// A file as the server's device.
    pub fn file(dir: &Path) -> Disk {
        File::create(dir.join("disk.img")).unwrap().set_len(SMALL_BYTES).unwrap();
        Disk::File
    }

    /// A loop device as large as the drive of these tests.
    pub fn looped(name: &str) -> Disk {
        let disk = Loop::new(name, 0);
        File::options().write(true).open(disk.backing()).unwrap().set_len(SMALL_BYTES).unwrap();
        support::run("losetup", &["-c", disk.path()]);
        Disk::Loop(disk)
    }

    /// `headtime serve` on it.
    pub fn serve(&self, dir: &Path) -> Server {
        let config = dir.join("serve.toml");
        let (disk, cache) = match self {
            Disk::Virtual => ("backing = \"disk.img\"".into(), ""),
            Disk::Cached => ("backing = \"disk.img\"".into(), "write-cache = \"1 MiB\"\n"),
            Disk::File => ("device = \"disk.img\"".into(), ""),
            Disk::Loop(disk) => (format!("device = \"{}\"", disk.path()), ""),
        };
        let text = format!(
            "[disk]\ndrive = \"{SMALL}\"\n{disk}\n[listen]\nnbd = [\"unix:nbd.sock\"]\ncontrol = \"control.sock\"\n\
             [[export]]\nname = \"{EXPORT}\"\n{cache}"
        );
        fs::write(&config, text).unwrap();
        let mut command = headtime();
        command.arg("serve").arg(config);
        Server::start(dir, command)
    }
}
