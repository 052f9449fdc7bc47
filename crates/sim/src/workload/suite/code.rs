//! Developer tools beside a load: compiling, checking out, merging (Valente 2014 section 6).
//!
//! Each works in steps: a few small synchronous reads from a tree, some computation, and small
//! writes into the page cache. The result is the number of steps done.

use super::super::variates::Variates;
use super::{Account, Actor, Disk, Piece};
use headtime_disk::{Dur, Kind, Time};

/// A tool, by the content of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Reads per 1000 steps, and bytes of each.
    pub reads_permille: u32,
    /// See `reads`.
    pub read_bytes: u64,
    /// Computation between reads and writes.
    pub work: Dur,
    /// Writes per step, and bytes of each.
    pub writes: u32,
    /// See `writes`.
    pub write_bytes: u64,
}

impl Tool {
    /// A source file: computation, an object file, and for every second one a read. The headers,
    /// and the files of a directory that was read ahead, are in the page cache: "really few read
    /// requests" (section 7.5). A kernel of that time had about two thousand source files, and took
    /// the processors of table 1 nearly half an hour.
    pub const COMPILE: Tool =
        Tool { reads_permille: 500, read_bytes: 16 << 10, work: Dur::from_ms(750), writes: 1, write_bytes: 32 << 10 };
    /// A file: its object from a pack, then the file.
    pub const CHECKOUT: Tool =
        Tool { reads_permille: 1000, read_bytes: 8 << 10, work: Dur::from_us(300), writes: 1, write_bytes: 16 << 10 };
    /// A file: three versions, then the result.
    pub const MERGE: Tool =
        Tool { reads_permille: 3000, read_bytes: 8 << 10, work: Dur::from_ms(1), writes: 1, write_bytes: 16 << 10 };
}

/// Bytes of the source tree.
const TREE: u64 = 600_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Read(u32),
    Write(u32),
}

/// A running tool.
#[derive(Clone, Debug)]
pub struct Work {
    tool: Tool,
    disk: Disk,
    first: u64,
    sectors: u64,
    rng: Variates,
    next: Next,
    due: Option<Time>,
    /// End of the computation before the writes.
    ready: Time,
    /// Writes in flight.
    writing: u32,
    steps: u64,
}

/// The process that reads; the cache's writes are the other.
const READER: u32 = 0;

/// Writes in flight at which the tool has to wait.
const MOST_WRITES: u32 = 256;

impl Work {
    /// Starts the tool at `from`, in a tree at the end of the programs' part of the disk.
    pub fn new(disk: &Disk, tool: Tool, from: Time, seed: u64) -> Work {
        let (first, programs) = disk.programs();
        let sectors = disk.sectors(TREE).min(programs);
        let mut work = Work {
            tool,
            disk: *disk,
            first: first + programs - sectors,
            sectors,
            rng: Variates::new(seed, 0),
            next: Next::Read(0),
            due: None,
            ready: from,
            writing: 0,
            steps: 0,
        };
        work.go_on(from);
        work
    }

    /// Returns the number of reads of this step.
    fn reads(&self) -> u32 {
        let until = |steps: u64| steps * u64::from(self.tool.reads_permille) / 1000;
        (until(self.steps + 1) - until(self.steps)) as u32
    }

    /// Determines the next action at `now`.
    fn go_on(&mut self, now: Time) {
        self.due = match self.next {
            Next::Read(n) if n < self.reads() => Some(now),
            Next::Read(_) => {
                (self.next, self.ready) = (Next::Write(0), now + self.tool.work);
                return self.go_on(now);
            }
            Next::Write(n) if n < self.tool.writes => (self.writing < MOST_WRITES).then_some(now.max(self.ready)),
            Next::Write(_) => {
                self.steps += 1;
                self.next = Next::Read(0);
                return self.go_on(now);
            }
        };
    }
}

impl Actor for Work {
    fn next_due(&self) -> Option<Time> {
        self.due
    }

    fn take(&mut self) -> Piece {
        let at = self.due.take().expect("asked only when something is due");
        let (kind, bytes) = match self.next {
            Next::Read(_) => (Kind::Read, self.tool.read_bytes),
            Next::Write(_) => (Kind::Write, self.tool.write_bytes),
        };
        let count = self.disk.sectors(bytes).min(self.sectors);
        let lbn = self.first + self.rng.below(self.sectors - count + 1);
        match &mut self.next {
            Next::Read(n) => *n += 1,
            Next::Write(n) => {
                *n += 1;
                self.writing += 1;
                self.go_on(at);
            }
        }
        let process = if kind == Kind::Read { READER } else { READER + 1 };
        Piece { kind, lbn, count: count as u32, sync: kind == Kind::Read, process }
    }

    fn finished(&mut self, process: u32, now: Time) {
        match process {
            READER => self.go_on(now),
            _ => {
                let full = self.writing == MOST_WRITES;
                self.writing -= 1;
                if full && self.due.is_none() && matches!(self.next, Next::Write(_)) {
                    self.go_on(now);
                }
            }
        }
    }

    fn account(&self) -> Account {
        Account { steps: self.steps, ..Account::default() }
    }
}
