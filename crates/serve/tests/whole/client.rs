//! An NBD client that sends random requests and checks every answer against the shadow.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::timeout;

use crate::parts::{negotiate, request};

use super::Standing;
use super::shadow::{Reading, SECTOR, Shadow, Writing, filled};

const REPLY: u32 = 0x6744_6698;
const EIO: u64 = 5;
const ESHUTDOWN: u64 = 108;
/// The longest request, sectors.
const MAX_REQUEST_SECTORS: u64 = 24;
/// An answer that takes longer never arrives. (In time of the platter, in which a millisecond of
/// tokio's is a microsecond.)
pub const LOST_AFTER: Duration = Duration::from_secs(100_000);

/// Sectors of the place in each export that some clients overwrite repeatedly.
pub const HOT_SECTORS: Range<usize> = 312..328;
/// The longest request there, sectors.
const MOST_HOT: u64 = 8;

/// The mix of a client's requests.
#[derive(Clone, Copy)]
pub struct Habit {
    within: (usize, usize),
    most: u64,
    /// Of a hundred requests, the reads, and the flushes; the others are writes.
    reads: u64,
    flushes: u64,
    /// One in this number of writes has FUA.
    fua: u64,
}

impl Habit {
    /// Random requests anywhere in this number of sectors.
    pub fn anything(sectors: usize) -> Habit {
        Habit { within: (0, sectors), most: MAX_REQUEST_SECTORS, reads: 45, flushes: 5, fua: 10 }
    }

    /// Overwrites data that is being written, which may fail in the meantime. `hurries`: it forces
    /// data to the media, so that it is written in the foreground; otherwise there is time for
    /// gaps.
    pub fn one_place(hurries: bool) -> Habit {
        let (flushes, fua) = if hurries { (15, 4) } else { (2, 50) };
        Habit { within: (HOT_SECTORS.start, HOT_SECTORS.end), most: MOST_HOT, reads: 20, flushes, fua }
    }
}

/// A request in flight.
enum Asked {
    Read(Reading),
    Write(Writing),
    Flush(u64),
}

/// One client on one connection.
pub struct Client {
    stream: DuplexStream,
    shadow: Rc<RefCell<Shadow>>,
    rng: Xoshiro256PlusPlus,
    standing: Standing,
    habit: Habit,
    asked: BTreeMap<u64, Asked>,
    cookie: u64,
    /// Answered requests, and those answered with an error.
    pub done: u64,
    pub failed: u64,
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

impl Client {
    /// Negotiates for an export.
    pub async fn open(
        mut stream: DuplexStream,
        export: &str,
        shadow: Rc<RefCell<Shadow>>,
        rng: Xoshiro256PlusPlus,
        standing: Standing,
        habit: Habit,
    ) -> io::Result<Client> {
        let size = negotiate(&mut stream, export).await?;
        if size != (shadow.borrow().len() * SECTOR) as u64 {
            return Err(odd("the export's size"));
        }
        Ok(Client { stream, shadow, rng, standing, habit, asked: BTreeMap::new(), cookie: 0, done: 0, failed: 0 })
    }

    fn chance(&mut self, of: u64) -> u64 {
        self.rng.next_u64() % of
    }

    /// Sends this number of requests, several at a time. Fails if the connection does, or if an
    /// answer is invalid.
    pub async fn work(&mut self, requests: u64, patience: Duration) -> io::Result<()> {
        let depth = 1 + self.chance(8) as usize;
        let mut left = requests;
        while left > 0 || !self.asked.is_empty() {
            while left > 0 && self.asked.len() < depth && (self.asked.is_empty() || self.chance(4) > 0) {
                left -= 1;
                self.ask().await?;
            }
            self.hear(patience).await?;
            if self.chance(20) == 0 {
                tokio::time::sleep(Duration::from_millis(self.chance(30_000))).await;
            }
        }
        Ok(())
    }

    async fn ask(&mut self) -> io::Result<()> {
        let Habit { within: (from, to), most, reads, flushes, fua } = self.habit;
        let count = 1 + self.chance(most);
        let first = from as u64 + self.chance((to - from) as u64 - count);
        let range = first as usize..(first + count) as usize;
        let (mut data, mut flags) = (Vec::new(), 0u16);
        let (kind, asked) = match self.chance(100) {
            n if n < reads => (0u16, Asked::Read(self.shadow.borrow_mut().read(range))),
            n if n < 100 - flushes => {
                let fua = self.chance(fua) == 0;
                let writing = self.shadow.borrow_mut().write(range.clone(), fua);
                data = range.flat_map(|sector| filled(writing.stamp, sector)).collect();
                flags = u16::from(fua);
                (1, Asked::Write(writing))
            }
            _ => (3, Asked::Flush(self.shadow.borrow_mut().moment())),
        };
        self.cookie += 1;
        let (offset, length) = if kind == 3 { (0, 0) } else { (first * SECTOR as u64, count as u32 * SECTOR as u32) };
        let mut request = request(flags, kind, self.cookie, offset, length);
        request.extend_from_slice(&data);
        self.asked.insert(self.cookie, asked);
        self.stream.write_all(&request).await
    }

    async fn hear(&mut self, patience: Duration) -> io::Result<()> {
        let mut reply = [0; 16];
        match timeout(patience, self.stream.read_exact(&mut reply)).await {
            Ok(read) => _ = read?,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
        let number = |from: &[u8]| from.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        if number(&reply[..4]) != u64::from(REPLY) {
            return Err(odd("the start of an answer"));
        }
        let (error, cookie) = (number(&reply[4..8]), number(&reply[8..]));
        let asked = self.asked.remove(&cookie).ok_or_else(|| odd("an answer to nothing"))?;
        let right = match error {
            0 => true,
            EIO => self.standing.may_fail(),
            ESHUTDOWN => self.standing.may_end(),
            // No other error may be the answer to a valid request.
            _ => false,
        };
        if !right {
            return Err(odd(&format!("error {error} without a reason for it")));
        }
        self.done += 1;
        self.failed += u64::from(error != 0);
        match asked {
            Asked::Write(writing) => self.shadow.borrow_mut().written(writing, error == 0),
            Asked::Flush(issued) if error == 0 => {
                self.shadow.borrow_mut().flushed(issued);
                self.standing.doom.flushed();
            }
            Asked::Flush(_) => {}
            Asked::Read(reading) if error != 0 => self.shadow.borrow_mut().have_read(reading, None),
            Asked::Read(reading) => {
                let sectors = reading.sectors();
                let mut data = vec![0; sectors * SECTOR];
                self.stream.read_exact(&mut data).await?;
                self.shadow.borrow_mut().have_read(reading, Some(&data));
            }
        }
        Ok(())
    }

    /// The connection is lost: no answers will arrive for requests in flight.
    pub fn lost(self) {
        for asked in self.asked.into_values() {
            if let Asked::Read(reading) = asked {
                self.shadow.borrow_mut().have_read(reading, None);
            }
        }
    }
}
