//! Data of write tasks that is not on the disk yet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use headtime_sched::{TaskId, TaskRange};

/// Bytes of staged data of all sessions.
pub const MAX_OF_ALL: u64 = 256 << 20;

/// The number of staged bytes of all sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfAll(Arc<AtomicU64>);

/// Staged data by task and first sector; the ranges of a task do not overlap.
#[derive(Debug)]
pub(crate) struct Staged {
    sector_bytes: u32,
    stretches: BTreeMap<(TaskId, u64), Bytes>,
    bytes: u64,
    most: u64,
    of_all: OfAll,
}

impl Staged {
    /// Creates an empty store for at most `most` bytes, and no more than other sessions leave free.
    pub(crate) fn new(sector_bytes: u32, most: u64, of_all: &OfAll) -> Staged {
        Staged { sector_bytes, stretches: BTreeMap::new(), bytes: 0, most, of_all: of_all.clone() }
    }

    fn has_room(&self, more: u64) -> bool {
        let (mine, all) = (self.bytes + more, self.of_all.0.load(Ordering::Relaxed) + more);
        mine <= self.most.min(MAX_OF_ALL.saturating_sub(all))
    }

    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.of_all.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn take_away(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.of_all.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the number of staged bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn sectors(&self, data: &Bytes) -> u64 {
        data.len() as u64 / u64::from(self.sector_bytes)
    }

    fn part(&self, data: &Bytes, from: u64, to: u64) -> Bytes {
        let unit = u64::from(self.sector_bytes);
        data.slice((from * unit) as usize..(to * unit) as usize)
    }

    /// Stores data and replaces earlier data of the same sectors and task. Returns false and stores
    /// nothing if there is no room or the length does not match the range.
    pub(crate) fn put(&mut self, task: TaskId, range: TaskRange, data: Bytes) -> bool {
        let len = range.count.checked_mul(u64::from(self.sector_bytes));
        if range.count == 0
            || range.lbn.checked_add(range.count).is_none()
            || len != Some(data.len() as u64)
            || !self.has_room(data.len() as u64)
        {
            return false;
        }
        self.forget(task, range);
        self.add(data.len() as u64);
        self.stretches.insert((task, range.lbn), data);
        true
    }

    /// Returns the stored range that contains a sector.
    fn at(&self, task: TaskId, lbn: u64) -> Option<(u64, &Bytes)> {
        let (&(_, from), data) = self.stretches.range((task, 0)..=(task, lbn)).next_back()?;
        (lbn < from + self.sectors(data)).then_some((from, data))
    }

    /// Returns the data of a task's range in pieces, or `None` if some is missing.
    pub(crate) fn get(&self, task: TaskId, range: TaskRange) -> Option<Vec<Bytes>> {
        let (mut at, mut pieces) = (range.lbn, Vec::new());
        while at < range.end() {
            let (from, data) = self.at(task, at)?;
            let to = (from + self.sectors(data)).min(range.end());
            pieces.push(self.part(data, at - from, to - from));
            at = to;
        }
        Some(pieces)
    }

    /// Drops the data of a range.
    pub(crate) fn forget(&mut self, task: TaskId, range: TaskRange) {
        let first = self.at(task, range.lbn).map_or(range.lbn, |(from, _)| from);
        let hit: Vec<u64> = self.stretches.range((task, first)..(task, range.end())).map(|(k, _)| k.1).collect();
        for from in hit {
            let data = self.stretches.remove(&(task, from)).expect("found just now");
            self.take_away(data.len() as u64);
            let to = from + self.sectors(&data);
            for (a, b) in [(from, to.min(range.lbn)), (from.max(range.end()), to)] {
                if a < b {
                    // A copy, since a slice would keep the memory of the dropped part.
                    let rest = Bytes::copy_from_slice(&self.part(&data, a - from, b - from));
                    self.add(rest.len() as u64);
                    self.stretches.insert((task, a), rest);
                }
            }
        }
    }

    /// Drops all data of a task.
    pub(crate) fn forget_task(&mut self, task: TaskId) {
        self.forget(task, TaskRange { lbn: 0, count: u64::MAX });
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        self.take_away(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(lbn: u64, count: u64) -> TaskRange {
        TaskRange { lbn, count }
    }

    /// Sectors of two bytes, the second of which is the sector's number.
    fn data(lbn: u64, count: u64) -> Bytes {
        (lbn..lbn + count).flat_map(|l| [0xaa, l as u8]).collect::<Vec<u8>>().into()
    }

    fn has(s: &Staged, task: u64, lbn: u64, count: u64) -> bool {
        s.get(TaskId(task), range(lbn, count)).is_some()
    }

    #[test]
    fn data_that_came_in_pieces_is_there_as_a_whole_and_goes_in_pieces() {
        let mut s = Staged::new(2, 100, &OfAll::default());
        let t = TaskId(3);
        assert!(s.put(t, range(10, 4), data(10, 4)));
        assert!(s.put(t, range(14, 4), data(14, 4)));
        assert!(has(&s, 3, 10, 8) && !has(&s, 3, 9, 2) && !has(&s, 3, 17, 2));
        assert!(!has(&s, 4, 10, 1), "a task's data is not another's");
        assert_eq!(s.get(t, range(11, 6)).unwrap().concat(), data(11, 6));
        s.forget(t, range(12, 4));
        assert!(has(&s, 3, 10, 2) && has(&s, 3, 16, 2));
        assert!(!has(&s, 3, 12, 1) && !has(&s, 3, 15, 1));
        assert_eq!(s.bytes(), 8);
        s.forget_task(t);
        assert_eq!(s.bytes(), 0);
    }

    #[test]
    fn newer_data_takes_the_place_of_older() {
        let mut s = Staged::new(1, 100, &OfAll::default());
        assert!(s.put(TaskId(1), range(0, 8), vec![1; 8].into()));
        assert!(s.put(TaskId(1), range(4, 2), vec![2; 2].into()));
        let now = s.get(TaskId(1), range(0, 8)).unwrap().concat();
        assert_eq!((&now[..], s.bytes()), (&[1, 1, 1, 1, 2, 2, 1, 1][..], 8));
    }

    #[test]
    fn one_session_leaves_others_something_of_what_all_may_have() {
        let (all, piece) = (OfAll::default(), 1 << 20);
        let fill = |s: &mut Staged| {
            (0..).take_while(|&n| s.put(TaskId(1), range(n * piece, piece), vec![0; 1 << 20].into())).count()
        };
        let mut some: Vec<Staged> = (0..3).map(|_| Staged::new(1, 100 << 20, &all)).collect();
        let had: Vec<usize> = some.iter_mut().map(fill).collect();
        assert_eq!(had, [100, 78, 39]);
        some.remove(0);
        assert_eq!(fill(&mut some[1]), 89, "what one had is there again when it ends");
        drop(some);
        assert_eq!(all.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn too_much_and_too_little_are_refused() {
        let mut s = Staged::new(512, 1024, &OfAll::default());
        assert!(!s.put(TaskId(1), range(0, 1), vec![0; 511].into()));
        assert!(!s.put(TaskId(1), range(0, u64::MAX), vec![0; 512].into()));
        assert!(s.put(TaskId(1), range(0, 2), vec![0; 1024].into()));
        assert!(!s.put(TaskId(1), range(5, 1), vec![0; 512].into()));
    }
}
