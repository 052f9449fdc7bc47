//! Video playback (Valente 2014 section 7.4).
//!
//! The player reads its file sequentially through the page cache, which is one read-ahead window
//! ahead, and shows 27 frames per second. A frame whose data is not there by the end of its time is
//! dropped; the next is shown at its own time.

use headtime_disk::{Dur, Kind, Time};

use super::{Account, Actor, Disk, Piece};

/// Frames per second.
pub const FRAMES: u64 = 27;
const WINDOW: u64 = 128 << 10;

/// A player.
#[derive(Clone, Debug)]
pub struct Player {
    first: u64,
    sectors: u64,
    window: u64,
    sector_bytes: u64,
    bytes_per_second: u64,
    begun: Time,
    /// Sectors requested, and end of the sectors received.
    asked: u64,
    got: u64,
    /// Ranges skipped because they were too late.
    skipped: Vec<(u64, u64)>,
    now: Time,
    /// Frames whose time has passed.
    frames: u64,
    dropped: u64,
    most: u64,
}

impl Player {
    /// Plays `seconds` of a video of `bytes_per_second`, file `i` of `n`, from `begun` on.
    pub fn new(disk: &Disk, bytes_per_second: u64, seconds: u64, begun: Time, (i, n): (u64, u64)) -> Player {
        let (first, sectors) = disk.file(i, n, bytes_per_second * seconds);
        Player {
            first,
            sectors,
            window: disk.sectors(WINDOW),
            sector_bytes: disk.sector_bytes,
            bytes_per_second,
            begun,
            asked: 0,
            got: 0,
            skipped: Vec::new(),
            now: begun,
            frames: 0,
            dropped: 0,
            most: FRAMES * seconds,
        }
    }

    /// Returns when frame `i` is due.
    fn due(&self, i: u64) -> Time {
        // Playback begins when the first window has arrived.
        self.begun + Dur(1_000_000_000 * (i + FRAMES) / FRAMES)
    }

    /// Counts the frames due before `now`, with the data received until then.
    fn count(&mut self, now: Time) {
        while self.frames < self.most && self.due(self.frames) < now {
            let at = |frame: u64| (frame * self.bytes_per_second / FRAMES / self.sector_bytes).min(self.sectors);
            let (from, to) = (at(self.frames), at(self.frames + 1));
            let missing = self.got < to || self.skipped.iter().any(|s| s.0 < to && from < s.1);
            self.dropped += u64::from(missing);
            self.frames += 1;
        }
    }

    /// Returns the sectors played by an instant.
    fn played(&self, at: Time) -> u64 {
        let since = at.saturating_since(self.due(0));
        (u128::from(since.0) * u128::from(self.bytes_per_second) / 1_000_000_000 / u128::from(self.sector_bytes)) as u64
    }
}

impl Actor for Player {
    fn next_due(&self) -> Option<Time> {
        if self.asked > self.got || self.asked >= self.sectors {
            return None;
        }
        // At most two windows ahead: the next is requested when the one before the last has been
        // played.
        let until = self.asked.saturating_sub(self.window);
        let ns = u128::from(until) * u128::from(self.sector_bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let at = if until == 0 { self.begun } else { self.due(0) + Dur(ns as u64) };
        Some(at.max(self.now))
    }

    fn take(&mut self) -> Piece {
        let count = self.window.min(self.sectors - self.asked);
        let lbn = self.first + self.asked;
        self.asked += count;
        Piece { kind: Kind::Read, lbn, count: count as u32, sync: true, process: 0 }
    }

    fn finished(&mut self, _: u32, now: Time) {
        self.count(now);
        self.got = self.asked;
        // Late data is skipped: the player does not read what it will not show.
        let played = self.played(now);
        if played > self.asked {
            let skip = (played - self.asked).next_multiple_of(self.window).min(self.sectors - self.asked);
            self.skipped.push((self.asked, self.asked + skip));
            (self.asked, self.got) = (self.asked + skip, self.got + skip);
        }
        self.now = now;
    }

    fn account(&self) -> Account {
        Account { shown: self.frames - self.dropped, dropped: self.dropped, ..Account::default() }
    }
}
