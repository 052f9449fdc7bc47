//! Video playback (Valente 2014 section 7.4).
//!
//! The player reads its file sequentially through the page cache and shows 27 frames per second. A
//! read-ahead window is submitted when the player touches the first page of the previous one
//! ([`super::files`]), so that two are in flight at most, and the player is up to two windows
//! behind the disk. A frame whose data is not there by the end of its time is dropped; the next is
//! shown at its own time. The player reads what it has dropped, too, for the next frame may refer
//! to it.

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
    /// Last completion.
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
            now: begun,
            frames: 0,
            dropped: 0,
            most: FRAMES * seconds,
        }
    }

    /// Returns when frame `i` is due.
    fn due(&self, i: u64) -> Time {
        // Playback begins a second after the player.
        self.begun + Dur(1_000_000_000 * (i + FRAMES) / FRAMES)
    }

    /// Counts the frames due before `now`, with the data received until then.
    fn count(&mut self, now: Time) {
        while self.frames < self.most && self.due(self.frames) < now {
            let to = ((self.frames + 1) * self.bytes_per_second / FRAMES / self.sector_bytes).min(self.sectors);
            self.dropped += u64::from(self.got < to);
            self.frames += 1;
        }
    }
}

impl Actor for Player {
    fn next_due(&self) -> Option<Time> {
        // The first page of the window requested last is touched when the data before it has
        // arrived and was played.
        let touched = self.asked.saturating_sub(self.window);
        if self.got < touched || self.asked >= self.sectors {
            return None;
        }
        let ns =
            u128::from(touched) * u128::from(self.sector_bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let at = if touched == 0 { self.begun } else { self.due(0) + Dur(ns as u64) };
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
        self.got = (self.got + self.window).min(self.sectors);
        self.now = now;
    }

    fn ended(&mut self, now: Time) {
        // One that starves until the end has dropped these frames, too.
        self.count(now);
    }

    fn account(&self) -> Account {
        Account { shown: self.frames - self.dropped, dropped: self.dropped, ..Account::default() }
    }
}
