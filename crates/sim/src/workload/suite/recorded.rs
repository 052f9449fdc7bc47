//! Replay of a recorded program start-up (the start-up traces of the S benchmark suite, from which
//! seed 003's suite was developed).
//!
//! A line is a request: process, seconds since the last one, number of 512-byte sectors, first
//! sector, and further columns that are not used. The replay is closed: a read is submitted when
//! the previous one is finished and the think time in between has passed. A trace does not state
//! which part of a gap was think time; what exceeds [`DISK`] is taken for it, because a shorter gap
//! may have been due to the disk.

use headtime_disk::{Dur, Kind, Time};

use super::super::WorkloadError;
use super::{Account, Actor, Disk, Piece};

/// Part of a gap between two requests that may have been due to the disk.
pub const DISK: Dur = Dur::from_ms(20);
/// Read-ahead window of the page cache in bytes.
const WINDOW: u64 = 128 << 10;
/// Bytes per sector of a trace.
const SECTOR: u64 = 512;

/// A read of a start-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Think time before it.
    pub think: Dur,
    /// First byte.
    pub at: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Parses a trace; `file` is its name in messages. Contiguous pages are merged to one read, up to
/// the page cache's window.
pub fn read(text: &str, file: &str) -> Result<Vec<Step>, WorkloadError> {
    let mut steps: Vec<Step> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let wrong = |expected: &str| WorkloadError::Scenario {
            place: format!("{file}:{}", i + 1),
            message: format!(
                "expected {expected}, found \"{}\"",
                line.chars().take(60).collect::<String>().escape_debug()
            ),
        };
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.is_empty() {
            continue;
        }
        let [_, gap, sectors, first, ..] = fields[..] else {
            return Err(wrong("process, seconds, sectors and first sector"));
        };
        let gap = gap.parse::<f64>().ok().filter(|s| (0.0..=3_600.0).contains(s));
        let gap = gap.ok_or_else(|| wrong("0 to 3600 seconds since the last request"))?;
        let sectors = sectors.parse::<u64>().ok().filter(|n| (1..=1 << 16).contains(n));
        let sectors = sectors.ok_or_else(|| wrong("1 to 65536 sectors"))?;
        let first = first.parse::<u64>().ok().filter(|&n| n <= 1 << 50).ok_or_else(|| wrong("a first sector"))?;
        let think = Dur::from_ms_f64(gap * 1e3).0.saturating_sub(DISK.0);
        let step = Step { think: Dur(think), at: first * SECTOR, bytes: sectors * SECTOR };
        match steps.last_mut() {
            Some(last) if last.at + last.bytes == step.at && last.bytes + step.bytes <= WINDOW && think == 0 => {
                last.bytes += step.bytes;
            }
            _ => steps.push(step),
        }
    }
    match steps.is_empty() {
        true => {
            Err(WorkloadError::Scenario { place: file.to_owned(), message: "expected requests, found none".into() })
        }
        false => Ok(steps),
    }
}

/// A user who starts the recorded program repeatedly. Each start-up reads a separate place, so that
/// the drive's cache holds nothing of the last one.
#[derive(Clone, Debug)]
pub struct Recorded {
    steps: Vec<Step>,
    disk: Disk,
    pause: Dur,
    most: usize,
    next: usize,
    begun: Time,
    due: Option<Time>,
    starts: Vec<Dur>,
}

impl Recorded {
    /// Starts it from `first` on, `most` times, with a `pause` in between. Panics without steps.
    pub fn new(disk: &Disk, steps: Vec<Step>, first: Time, pause: Dur, most: usize) -> Recorded {
        assert!(!steps.is_empty(), "a start without a read");
        let due = (most > 0).then_some(first);
        Recorded { steps, disk: *disk, pause, most, next: 0, begun: first, due, starts: Vec::new() }
    }
}

impl Actor for Recorded {
    fn next_due(&self) -> Option<Time> {
        self.due
    }

    fn take(&mut self) -> Piece {
        self.due = None;
        let step = self.steps[self.next];
        let (first, sectors) = self.disk.programs();
        let count = self.disk.sectors(step.bytes).min(sectors);
        // Places are mapped into the programs' part of the disk, preserving distances; each
        // start-up is shifted by a hundredth of that part.
        let at = step.at / self.disk.sector_bytes + self.starts.len() as u64 * (sectors / 100);
        let lbn = first + at % sectors.saturating_sub(count.max(self.disk.sectors(WINDOW))).max(1);
        Piece { kind: Kind::Read, lbn, count: count as u32, sync: true, process: self.starts.len() as u32 }
    }

    fn finished(&mut self, _: u32, now: Time) {
        self.next += 1;
        if let Some(step) = self.steps.get(self.next) {
            self.due = Some(now + step.think);
            return;
        }
        self.starts.push(now.since(self.begun));
        if self.starts.len() < self.most {
            (self.begun, self.next) = (now + self.pause, 0);
            self.due = Some(self.begun);
        }
    }

    fn account(&self) -> Account {
        Account { starts: self.starts.clone(), ..Account::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_read_with_thoughts_and_pages_in_a_row_together() {
        let text = "p-1   0  8  800 Rand 0 0 RM 4.6 START\np-1 .000010 8 808 Seq 0 8 RA 4.6 C\n\np-1 .050 16 816 Seq 0 \
                8 RM 4.7 C\np-1 .019 8 9 Rand 0 8 RM 4.8 C\n";
        let step = |ms, at: u64, sectors: u64| Step { think: Dur::from_ms(ms), at: at * 512, bytes: sectors * 512 };
        assert_eq!(read(text, "x").unwrap(), [step(0, 800, 16), step(30, 816, 16), step(0, 9, 8)]);
        let long: String = (0..40).map(|i| format!("p 0 8 {}\n", i * 8)).collect();
        assert_eq!(read(&long, "x").unwrap(), [step(0, 0, 256), step(0, 256, 64)]);
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        let said = |text| read(text, "a.trace").unwrap_err().to_string();
        assert_eq!(said(""), "a.trace: expected requests, found none");
        assert!(
            said("p 0 8 8\np 0 8\n")
                .starts_with("a.trace:2: expected process, seconds, sectors and first sector, found \"p 0 8\"")
        );
        for line in ["p -1 8 8", "p nan 8 8", "p 0 0 8", "p 0 99999 8", "p 0 8 -8", "p 0 8 18446744073709551615"] {
            assert!(said(line).starts_with("a.trace:1: expected "), "{line}");
        }
    }

    #[test]
    fn each_read_follows_the_last_and_starts_are_timed() {
        let disk = Disk { capacity: 10_000_000, sector_bytes: 512 };
        let steps = read("p 0 8 800\np .120 8 80\n", "x").unwrap();
        let ms = |n| Time::ZERO + Dur::from_ms(n);
        let mut r = Recorded::new(&disk, steps, ms(5), Dur::from_ms(1_000), 2);
        let mut places = Vec::new();
        for (due, done) in [(5, 10), (110, 112), (1_112, 1_120), (1_220, 1_230)] {
            assert_eq!(r.next_due(), Some(ms(due)));
            let piece = r.take();
            places.push((piece.lbn, piece.process));
            assert_eq!(r.next_due(), None);
            r.finished(piece.process, ms(done));
        }
        assert_eq!(places, [(800, 0), (80, 0), (20_800, 1), (20_080, 1)]);
        assert_eq!((r.next_due(), r.account().starts), (None, vec![Dur::from_ms(107), Dur::from_ms(118)]));
    }
}
