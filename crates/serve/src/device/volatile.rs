//! What a power failure would take from a drive: the contents of sectors before writes that are
//! only in its volatile cache.
//!
//! The backing file always has the newest data, so that it survives the end of the program. When
//! the power fails, sectors that were not on the media are set back to what they were before. For
//! this their contents are kept from the first write after they were last on the media.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::faults::plan::Lost;
use crate::faults::worn::Random;

/// Bytes of the contents that are kept. If there are more, the oldest count as written to the
/// media.
const MAX_BYTES: usize = 64 << 20;

/// A sector's contents before a write.
#[derive(Clone, Debug)]
struct Before {
    data: Bytes,
    /// The number of the write.
    write: u64,
}

/// The writes that a flush covers: those that had completed when it was submitted.
#[derive(Clone, Debug)]
pub(super) struct Covered {
    below: u64,
    /// Writes below that had not completed.
    except: Vec<u64>,
}

/// The contents of sectors before writes that may not be on the media.
#[derive(Debug)]
pub(super) struct Volatile {
    sector_bytes: usize,
    before: BTreeMap<u64, Before>,
    /// The number of the next write.
    next: u64,
    /// Writes that have not completed.
    running: Vec<u64>,
    most: usize,
}

impl Volatile {
    pub(super) fn new(sector_bytes: u32) -> Volatile {
        let sector_bytes = sector_bytes as usize;
        let most = MAX_BYTES / sector_bytes;
        Volatile { sector_bytes, before: BTreeMap::new(), next: 0, running: Vec::new(), most }
    }

    /// Returns whether the contents of all these sectors are kept already.
    pub(super) fn has_all(&self, lbn: u64, count: u32) -> bool {
        self.before.range(lbn..lbn + u64::from(count)).count() == count as usize
    }

    /// Begins a write; returns its number.
    pub(super) fn begin(&mut self) -> u64 {
        self.next += 1;
        self.running.push(self.next);
        self.next
    }

    /// Keeps the contents of the sectors from `lbn` on before a write that was begun, where older
    /// ones are not kept.
    pub(super) fn keep(&mut self, write: u64, lbn: u64, data: &Bytes) {
        for (n, at) in (0..data.len()).step_by(self.sector_bytes).enumerate() {
            let sector = data.slice(at..(at + self.sector_bytes).min(data.len()));
            self.before.entry(lbn + n as u64).or_insert(Before { data: sector, write });
        }
        if self.before.len() > self.most {
            // The newer half stays, and what has not completed.
            let mut writes: Vec<u64> = self.before.values().map(|b| b.write).collect();
            let middle = writes.len() / 2;
            let limit = *writes.select_nth_unstable(middle).1;
            let running = &self.running;
            self.before.retain(|_, b| b.write > limit || running.contains(&b.write));
        }
    }

    /// Ends a write of these sectors; `is_durable`: they are on the media.
    pub(super) fn end(&mut self, write: u64, lbn: u64, count: u32, is_durable: bool) {
        self.running.retain(|w| *w != write);
        if is_durable {
            let sectors: Vec<u64> = self.before.range(lbn..lbn + u64::from(count)).map(|(s, _)| *s).collect();
            for sector in sectors {
                self.before.remove(&sector);
            }
        }
    }

    /// Returns what a flush covers that is submitted now.
    pub(super) fn covered(&self) -> Covered {
        Covered { below: self.next + 1, except: self.running.clone() }
    }

    /// Ends a flush.
    pub(super) fn flushed(&mut self, covered: &Covered) {
        self.before.retain(|_, b| b.write >= covered.below || covered.except.contains(&b.write));
    }

    /// Drops the contents of sectors that are on the media: neither in these ranges (first LBN and
    /// end), nor of a write that has not completed.
    pub(super) fn only_in(&mut self, ranges: impl Iterator<Item = (u64, u64)>) {
        if self.before.is_empty() {
            return;
        }
        let mut ranges: Vec<(u64, u64)> = ranges.collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, before| {
            let joins = next.0 <= before.1;
            before.1 = if joins { before.1.max(next.1) } else { before.1 };
            joins
        });
        let running = &self.running;
        let is_in = |sector: u64| {
            let first = ranges.partition_point(|r| r.1 <= sector);
            ranges.get(first).is_some_and(|r| r.0 <= sector)
        };
        self.before.retain(|sector, b| running.contains(&b.write) || is_in(*sector));
    }

    /// Returns the number of sectors whose contents are kept.
    pub(super) fn sectors(&self) -> usize {
        self.before.len()
    }

    /// Returns the contents to set back at a power failure, by sector, and forgets all others.
    pub(super) fn power_fails(&mut self, lost: Lost, random: &mut Random) -> Vec<(u64, Bytes)> {
        // All, nearly all, half or few.
        let percent = match lost {
            Lost::All => 100,
            Lost::Some => [100, 97, 50, 3][random.below(4) as usize],
        };
        self.running.clear();
        let all = std::mem::take(&mut self.before).into_iter();
        all.filter(|_| random.below(100) < percent).map(|(sector, b)| (sector, b.data)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sectors(first: u8, count: usize) -> Bytes {
        (0..count).flat_map(|n| [first + n as u8; 512]).collect()
    }

    fn lost(v: &mut Volatile) -> Vec<(u64, u8)> {
        v.power_fails(Lost::All, &mut Random(1)).into_iter().map(|(at, data)| (at, data[0])).collect()
    }

    #[test]
    fn sectors_are_set_back_to_what_they_were_at_the_last_flush() {
        let mut v = Volatile::new(512);
        let first = v.begin();
        v.keep(first, 10, &sectors(1, 4));
        v.end(first, 10, 4, false);
        let flush = v.covered();
        v.flushed(&flush);
        let second = v.begin();
        v.keep(second, 12, &sectors(50, 2));
        v.end(second, 12, 2, false);
        // Written again: the contents of the first time count.
        assert!(v.has_all(12, 2) && !v.has_all(12, 3));
        let third = v.begin();
        v.keep(third, 12, &sectors(70, 3));
        assert_eq!(lost(&mut v), [(12, 50), (13, 51), (14, 72)]);
        assert_eq!(lost(&mut v), []);
    }

    #[test]
    fn a_flush_covers_only_what_had_completed_when_it_was_submitted() {
        let mut v = Volatile::new(512);
        let writes = [v.begin(), v.begin()];
        v.keep(writes[0], 0, &sectors(1, 1));
        v.keep(writes[1], 1, &sectors(2, 1));
        v.end(writes[0], 0, 1, false);
        let flush = v.covered();
        v.end(writes[1], 1, 1, false);
        let later = v.begin();
        v.keep(later, 2, &sectors(3, 1));
        v.end(later, 2, 1, false);
        v.flushed(&flush);
        assert_eq!(lost(&mut v), [(1, 2), (2, 3)]);
    }

    #[test]
    fn what_is_on_the_media_is_not_lost() {
        let mut v = Volatile::new(512);
        let [cached, through, running] = [v.begin(), v.begin(), v.begin()];
        for (write, lbn) in [(cached, 0), (through, 8), (running, 16)] {
            v.keep(write, lbn, &sectors(1, 8));
        }
        v.end(cached, 0, 8, false);
        v.end(through, 8, 8, true);
        // The drive has written the second half of the first range back.
        v.only_in([(0, 4)].into_iter());
        assert_eq!(v.sectors(), 12);
        let lost: Vec<u64> = lost(&mut v).into_iter().map(|l| l.0).collect();
        assert_eq!(lost, (0..4).chain(16..24).collect::<Vec<_>>());
    }

    #[test]
    fn some_seeds_lose_all_and_some_lose_a_part() {
        let count = |seed| {
            let mut v = Volatile::new(512);
            let write = v.begin();
            v.keep(write, 0, &sectors(0, 200));
            v.power_fails(Lost::Some, &mut Random(seed)).len()
        };
        let counts: Vec<usize> = (0..30).map(count).collect();
        assert!(counts.contains(&200) && counts.iter().any(|n| *n < 20) && counts.iter().any(|n| *n > 60 && *n < 140));
        assert_eq!(counts, (0..30).map(count).collect::<Vec<_>>());
    }

    #[test]
    fn memory_is_limited_and_the_newest_contents_stay() {
        let mut v = Volatile { most: 100, ..Volatile::new(512) };
        for n in 0..50 {
            let write = v.begin();
            v.keep(write, n * 8, &sectors(1, 8));
            v.end(write, n * 8, 8, false);
        }
        assert!(v.sectors() <= 100 && v.has_all(49 * 8, 8) && !v.has_all(0, 1));
    }
}
