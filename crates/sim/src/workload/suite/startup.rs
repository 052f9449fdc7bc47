//! Starting a program whose files are in nobody's cache (Valente 2014 section 7.3).
//!
//! A start is a chain of reads, each waited for, with a moment of thought between: half of them
//! single pages wherever a library or a configuration lies, half of them read-ahead of up to 128
//! KiB. How many, and how large, follows recorded starts: `xterm` read 5.9 MiB in 179 pieces, half
//! of them within 100 MB of the one before, and `lowriter` 46 MiB in 539 (S benchmark suite, traces
//! of starts). `bash` is a tenth of `xterm`, and `konsole`, of which there is no trace, lies
//! between the two that there are. Thoughts are short, as section 6 describes them ("almost
//! back-to-back"): 1 ms in the mean. The recorded starts have longer ones, too, of which one cannot
//! say whether the disk was busy with something else; they are replayed as they are in X7. Every
//! start reads other places, so that the drive's cache does not have them either.

use super::super::variates::Variates;
use super::{Account, Actor, Disk, Piece};
use headtime_disk::command::Kind;
use headtime_disk::time::{Dur, Time};

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Reads of a start.
    pub reads: u32,
}

impl Program {
    /// The Bourne again shell.
    pub const BASH: Program = Program { reads: 18 };
    /// The standard terminal of X.
    pub const XTERM: Program = Program { reads: 179 };
    /// The terminal of KDE.
    pub const KONSOLE: Program = Program { reads: 300 };
}

/// The mean time between an answer and the next read.
const THINK: Dur = Dur::from_ms(1);

/// Half of the reads are this near to the one before, bytes.
const NEAR: u64 = 100_000_000;
const PAGE: u64 = 4 << 10;
/// Read-ahead windows, bytes.
const WINDOWS: [u64; 4] = [16 << 10, 32 << 10, 64 << 10, 128 << 10];

/// Somebody who starts a program again and again.
#[derive(Clone, Debug)]
pub struct Starts {
    program: Program,
    disk: Disk,
    /// A pause between a start's end and the next, or the time between two beginnings.
    pause: Dur,
    period: Option<Dur>,
    rng: Variates,
    process: u32,
    left: u32,
    begun: Time,
    due: Option<Time>,
    at: u64,
    starts: Vec<Dur>,
    most: usize,
}

impl Starts {
    /// Starts `program` from `first` on, `most` times at most, with a `pause` between.
    pub fn new(disk: &Disk, program: Program, first: Time, pause: Dur, most: usize, seed: u64) -> Starts {
        let rng = Variates::new(seed, 0);
        Starts {
            program,
            disk: *disk,
            pause,
            period: None,
            rng,
            process: 0,
            left: program.reads,
            begun: first,
            due: (most > 0).then_some(first),
            at: 0,
            starts: Vec::new(),
            most,
        }
    }

    /// The same, every `period`, however long a start takes; one that takes longer delays the next.
    #[must_use]
    pub fn every(self, period: Dur) -> Starts {
        Starts { period: Some(period), ..self }
    }

    fn think(&mut self) -> Dur {
        Dur(self.rng.exponential(THINK.0))
    }
}

impl Actor for Starts {
    fn next_due(&self) -> Option<Time> {
        self.due
    }

    fn take(&mut self) -> Piece {
        self.due = None;
        let (first, sectors) = self.disk.programs();
        let bytes = match self.rng.below(8) {
            0..4 => PAGE,
            w => WINDOWS[w as usize - 4],
        };
        let count = self.disk.sectors(bytes);
        let near = self.disk.sectors(NEAR).min(sectors - count);
        let beginning = self.left == self.program.reads;
        self.at = match self.rng.below(2) {
            0 if !beginning => {
                let from = self.at.saturating_sub(near / 2).min(sectors - count - near);
                from + self.rng.below(near)
            }
            _ => self.rng.below(sectors - count),
        };
        Piece { kind: Kind::Read, lbn: first + self.at, count: count as u32, sync: true, process: self.process }
    }

    fn finished(&mut self, _: u32, now: Time) {
        self.left -= 1;
        if self.left > 0 {
            self.due = Some(now + self.think());
            return;
        }
        self.starts.push(now.since(self.begun));
        if self.starts.len() == self.most {
            return;
        }
        self.begun = match self.period {
            Some(period) => (self.begun + period).max(now),
            None => now + self.pause,
        };
        (self.due, self.left, self.process) = (Some(self.begun), self.program.reads, self.process + 1);
    }

    fn account(&self) -> Account {
        Account { starts: self.starts.clone(), ..Account::default() }
    }
}
