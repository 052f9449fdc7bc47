//! Start-up of a program whose files are in no cache (Valente 2014 section 7.3).
//!
//! A start-up is a chain of synchronous reads with think time in between: half of them are single
//! pages wherever a library or a configuration is, half of them read-ahead of up to 128 KiB.
//! Numbers and sizes follow recorded start-ups: `xterm` read 5.9 MiB in 179 requests, half of them
//! within 100 MB of the previous one, and `lowriter` 46 MiB in 539 (S benchmark suite, start-up
//! traces). `bash` is a tenth of `xterm`, and `konsole`, of which there is no trace, is between the
//! two recorded ones. (A start of `bash -i` that `headtime serve --record` recorded, on a new ext4
//! on a virtual 7K1000.C, had 72 reads of 3.8 MB in all, half of them within 1 MB of the one
//! before, and took 0.31 s; the paper's idle disk took 0.2 s. So these 18 are fewer, and lie
//! further apart.) Most think times are short, as described in section 6 ("almost back-to-back"): 1
//! ms on average. Programs with windows also compute: of the gaps between the recorded reads 18%
//! (`xterm`) and 10% (`lowriter`) are longer than a read takes (20 ms), by 25 and 29 ms on average,
//! which is 4.4 and 3.1 ms for each read. Here it is one in eight, of 25 ms on average, which is
//! the lower of the two. The recorded start-ups are replayed unchanged in X7.
//! Every start-up reads other places, so that the drive's cache does not hold them either.

use super::super::variates::Variates;
use super::{Account, Actor, Disk, Piece};
use headtime_disk::{Dur, Kind, Time};

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Reads per start-up.
    pub reads: u32,
    /// Whether it computes between some of them, as a program with windows does.
    pub computes: bool,
}

impl Program {
    /// The Bourne again shell.
    pub const BASH: Program = Program { reads: 18, computes: false };
    /// The standard terminal of X.
    pub const XTERM: Program = Program { reads: 179, computes: true };
    /// The terminal of KDE.
    pub const KONSOLE: Program = Program { reads: 300, computes: true };
}

/// Mean think time.
const MEAN_THINK_TIME: Dur = Dur::from_ms(1);
/// Mean duration of a computation, and one in how many reads it follows.
const MEAN_COMPUTATION: Dur = Dur::from_ms(25);
const READS_TO_A_COMPUTATION: u64 = 8;

/// Distance within which half of the reads follow the previous one, in bytes.
const NEAR_BYTES: u64 = 100_000_000;
const PAGE: u64 = 4 << 10;
/// Read-ahead windows, bytes.
const WINDOWS: [u64; 4] = [16 << 10, 32 << 10, 64 << 10, 128 << 10];

/// A user who starts a program repeatedly.
#[derive(Clone, Debug)]
pub struct Starts {
    program: Program,
    disk: Disk,
    /// Pause from the end of a start-up to the next, or interval between two starts.
    pause: Dur,
    period: Option<Dur>,
    rng: Variates,
    process: u32,
    left: u32,
    begun: Time,
    due: Option<Time>,
    at: u64,
    starts: Vec<Dur>,
    unfinished: Option<Dur>,
    most: usize,
}

impl Starts {
    /// Starts `program` from `first` on, at most `most` times, with a `pause` in between.
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
            unfinished: None,
            most,
        }
    }

    /// Starts every `period` instead; a start-up that takes longer delays the next.
    #[must_use]
    pub fn every(self, period: Dur) -> Starts {
        Starts { period: Some(period), ..self }
    }

    fn think(&mut self) -> Dur {
        let think = Dur(self.rng.exponential(MEAN_THINK_TIME.0));
        match self.rng.below(READS_TO_A_COMPUTATION) {
            0 if self.program.computes => think + Dur(self.rng.exponential(MEAN_COMPUTATION.0)),
            _ => think,
        }
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
        let near = self.disk.sectors(NEAR_BYTES).min(sectors - count);
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

    fn ended(&mut self, now: Time) {
        let is_started = self.starts.len() < self.most && now > self.begun;
        self.unfinished = is_started.then(|| now.since(self.begun));
    }

    fn account(&self) -> Account {
        Account { starts: self.starts.clone(), unfinished: self.unfinished, ..Account::default() }
    }
}
