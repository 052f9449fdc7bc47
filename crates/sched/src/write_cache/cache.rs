//! Acknowledged data that is not on the disk yet, by sector.
//!
//! The cache is a set of *extents*: ranges of sectors that were written together, at most
//! [`LONGEST`] bytes each, no two overlapping. Each has two sequence numbers. `seq` is the write
//! that its data came with. `since` is the oldest write to these sectors of which the disk may have
//! neither its data nor newer data: an extent that replaces another inherits its `since`, so that a
//! flush that waits for the older write continues to wait when the client overwrites it.

use std::collections::{BTreeMap, BTreeSet};

use super::Traffic;
use crate::tasks::TaskRange;

/// Maximum bytes of one extent. A part cut from an extent is copied, so that a few sectors never
/// keep the memory of a large write; this bounds the cost of a cut.
pub(crate) const LONGEST: u64 = 64 << 10;
/// Approximate memory of an extent besides its data, counted so that many small extents stay within
/// the memory limit.
const OVERHEAD: u64 = 256;

/// How an extent is written to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// For free, in a gap.
    Waiting,
    /// In the foreground, as soon as there is room.
    Urgent,
    /// The foreground write of this token is in flight.
    Through(u64),
    /// Its write failed.
    Failed,
}

/// A range of dirty sectors.
#[derive(Clone, Debug)]
pub(crate) struct Extent<D> {
    /// Its data: whole sectors.
    pub data: D,
    /// The write that it came with.
    pub seq: u64,
    /// The oldest write whose sectors it is responsible for.
    pub since: u64,
    /// How it is written to the disk.
    pub state: State,
    /// The scheduler's task that has this data, if any.
    pub task: Option<u64>,
    /// It failed together with others, and is now retried alone.
    pub alone: bool,
    /// Its failure was reported.
    pub noted: bool,
}

/// A part of a look-up: with its data when it is dirty.
pub(crate) type Part<D> = (TaskRange, Option<D>);

/// All extents, and their indexes.
#[derive(Debug)]
pub(crate) struct Cache<T: Traffic> {
    sector: u64,
    extents: BTreeMap<u64, Extent<T::Data>>,
    /// `since` and first sector of all extents.
    ages: BTreeSet<(u64, u64)>,
    /// `since` and first sector of waiting extents.
    waiting: BTreeSet<(u64, u64)>,
    /// First sectors of waiting extents.
    places: BTreeSet<u64>,
    /// First sectors of waiting extents without a task.
    unassigned: BTreeSet<u64>,
    /// First sectors of urgent extents.
    urgent: BTreeSet<u64>,
    /// First sectors of extents whose write failed.
    failed: BTreeSet<u64>,
    bytes: u64,
    /// Of these, urgent or in flight.
    leaving: u64,
    seq: u64,
}

impl<T: Traffic> Cache<T> {
    /// Creates an empty cache of a disk with sectors of `sector_bytes`.
    pub(crate) fn new(sector_bytes: u32) -> Cache<T> {
        Cache {
            sector: u64::from(sector_bytes),
            extents: BTreeMap::new(),
            ages: BTreeSet::new(),
            waiting: BTreeSet::new(),
            places: BTreeSet::new(),
            unassigned: BTreeSet::new(),
            urgent: BTreeSet::new(),
            failed: BTreeSet::new(),
            bytes: 0,
            leaving: 0,
            seq: 0,
        }
    }

    /// Returns the memory it occupies.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the part of it that is urgent or in flight in the foreground.
    pub(crate) fn leaving(&self) -> u64 {
        self.leaving
    }

    /// Returns the bytes of dirty data.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.bytes - self.extents.len() as u64 * OVERHEAD
    }

    /// Returns the memory that `bytes` of data would occupy.
    pub(crate) fn cost(bytes: u64) -> u64 {
        bytes + bytes.div_ceil(LONGEST) * OVERHEAD
    }

    /// Returns whether nothing is dirty.
    pub(crate) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Returns the sequence number of the last write.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the oldest write that is not on the disk.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.ages.first().map(|a| a.0)
    }

    /// Returns the oldest write to these sectors that is not on the disk.
    pub(crate) fn oldest_in(&self, range: &TaskRange) -> Option<u64> {
        self.inside(range).iter().map(|lbn| self.extents[lbn].since).min()
    }

    /// Returns the extent that begins at this sector. Panics when there is none.
    pub(crate) fn at(&self, lbn: u64) -> &Extent<T::Data> {
        &self.extents[&lbn]
    }

    /// Returns its range.
    pub(crate) fn range_of(&self, lbn: u64) -> TaskRange {
        TaskRange { lbn, count: T::len(&self.extents[&lbn].data) / self.sector }
    }

    /// Returns whether an extent begins there in this state.
    pub(crate) fn is(&self, lbn: u64, state: State) -> bool {
        self.extents.get(&lbn).is_some_and(|e| e.state == state)
    }

    /// Returns the age and first sector of the oldest waiting extent.
    pub(crate) fn first_waiting(&self) -> Option<(u64, u64)> {
        self.waiting.first().copied()
    }

    /// Returns the first waiting extent at or after a sector, or the first of all.
    pub(crate) fn next_waiting(&self, from: u64) -> Option<u64> {
        around(&self.places, from).next()
    }

    /// Returns the urgent extents in LBN order, starting at a sector and wrapping around.
    pub(crate) fn urgent(&self, from: u64) -> impl Iterator<Item = u64> {
        around(&self.urgent, from)
    }

    /// Returns the waiting extents without a task, by sector.
    pub(crate) fn unassigned(&self) -> impl Iterator<Item = u64> {
        self.unassigned.iter().copied()
    }

    /// Returns the first of these at or after a sector, or the first of all.
    pub(crate) fn next_unassigned(&self, from: u64) -> Option<u64> {
        around(&self.unassigned, from).next()
    }

    /// Returns whether there are extents and the writes of all of them failed.
    pub(crate) fn is_all_failed(&self) -> bool {
        !self.extents.is_empty() && self.failed.len() == self.extents.len()
    }

    /// Returns the extents whose write failed.
    pub(crate) fn failed(&self) -> Vec<u64> {
        self.failed.iter().copied().collect()
    }

    /// Returns the first sectors of the extents that touch a range.
    pub(crate) fn inside(&self, range: &TaskRange) -> Vec<u64> {
        let first = self.holding(range.lbn).unwrap_or(range.lbn);
        self.extents.range(first..range.end()).map(|e| *e.0).collect()
    }

    /// Returns the first sector of the extent that contains this sector.
    fn holding(&self, lbn: u64) -> Option<u64> {
        let (&from, e) = self.extents.range(..=lbn).next_back()?;
        (lbn < from + T::len(&e.data) / self.sector).then_some(from)
    }

    /// Adds the data of a write; returns its sequence number. What it replaces is removed; where
    /// that was urgent, the new data is.
    pub(crate) fn write(&mut self, range: &TaskRange, data: &T::Data, state: State) -> u64 {
        self.seq += 1;
        let most = (LONGEST / self.sector).max(1);
        let mut at = range.lbn;
        while at < range.end() {
            let piece = TaskRange { lbn: at, count: most.min(range.end() - at) };
            self.cut(&piece);
            let (mut since, mut state) = (self.seq, state);
            for lbn in self.inside(&piece) {
                let old = self.remove(lbn);
                since = since.min(old.since);
                if old.state == State::Urgent {
                    state = State::Urgent;
                }
            }
            let from = ((at - range.lbn) * self.sector) as usize;
            let data = T::copy(data, from..from + (piece.count * self.sector) as usize);
            let new = Extent { data, seq: self.seq, since, state, task: None, alone: false, noted: false };
            self.insert(at, new);
            at = piece.end();
        }
        self.seq
    }

    /// Returns a range in its parts, in order: dirty ones with their data, and the gaps between
    /// them.
    pub(crate) fn look_up(&self, range: &TaskRange) -> Vec<Part<T::Data>> {
        let (mut at, mut parts) = (range.lbn, Vec::new());
        for lbn in self.inside(range) {
            let e = self.range_of(lbn);
            if at < e.lbn {
                parts.push((TaskRange { lbn: at, count: e.lbn - at }, None));
            }
            let (from, to) = (e.lbn.max(range.lbn), e.end().min(range.end()));
            let bytes = ((from - lbn) * self.sector) as usize..((to - lbn) * self.sector) as usize;
            parts.push((TaskRange { lbn: from, count: to - from }, Some(T::part(&self.extents[&lbn].data, bytes))));
            at = to;
        }
        if at < range.end() {
            parts.push((TaskRange { lbn: at, count: range.end() - at }, None));
        }
        parts
    }

    /// Changes an extent. Panics when none begins there.
    pub(crate) fn change(&mut self, lbn: u64, how: impl FnOnce(&mut Extent<T::Data>)) {
        let mut e = self.remove(lbn);
        how(&mut e);
        self.insert(lbn, e);
    }

    /// Returns the extents of a task in a range, cut to it.
    pub(crate) fn of_task(&mut self, range: &TaskRange, task: u64) -> Vec<u64> {
        self.cut(range);
        let mut all = self.inside(range);
        all.retain(|lbn| self.extents[lbn].task == Some(task));
        all
    }

    /// Returns all extents that have a task.
    pub(crate) fn all_of_tasks(&self) -> Vec<u64> {
        self.extents.iter().filter(|e| e.1.task.is_some()).map(|e| *e.0).collect()
    }

    /// Returns the extents in flight with a token in a range, cut to it.
    pub(crate) fn of_token(&mut self, range: &TaskRange, token: u64) -> Vec<u64> {
        self.cut(range);
        let mut all = self.inside(range);
        all.retain(|lbn| self.extents[lbn].state == State::Through(token));
        all
    }

    /// Records that these sectors are on the disk as the write `seq` left them: newer extents are
    /// then responsible for newer writes only.
    pub(crate) fn settle(&mut self, range: &TaskRange, seq: u64) {
        self.cut(range);
        for lbn in self.inside(range) {
            let e = &self.extents[&lbn];
            if e.since <= seq && seq < e.seq {
                self.change(lbn, |e| e.since = seq + 1);
            }
        }
    }

    /// Splits the extents of a range into pieces of at most `sectors`.
    pub(crate) fn split_into(&mut self, range: &TaskRange, sectors: u64) {
        let mut at = range.lbn;
        while at < range.end() {
            let piece = TaskRange { lbn: at, count: sectors.min(range.end() - at) };
            self.cut(&piece);
            at = piece.end();
        }
    }

    /// Removes an extent. Panics when none begins there.
    pub(crate) fn remove(&mut self, lbn: u64) -> Extent<T::Data> {
        let e = self.extents.remove(&lbn).expect("an extent begins there");
        let cost = T::len(&e.data) + OVERHEAD;
        self.bytes -= cost;
        self.ages.remove(&(e.since, lbn));
        match e.state {
            State::Waiting => {
                self.waiting.remove(&(e.since, lbn));
                self.places.remove(&lbn);
                self.unassigned.remove(&lbn);
            }
            State::Urgent => {
                self.urgent.remove(&lbn);
                self.leaving -= cost;
            }
            State::Through(_) => self.leaving -= cost,
            State::Failed => _ = self.failed.remove(&lbn),
        }
        e
    }

    fn insert(&mut self, lbn: u64, e: Extent<T::Data>) {
        let cost = T::len(&e.data) + OVERHEAD;
        self.bytes += cost;
        self.ages.insert((e.since, lbn));
        match e.state {
            State::Waiting => {
                self.waiting.insert((e.since, lbn));
                self.places.insert(lbn);
                if e.task.is_none() {
                    self.unassigned.insert(lbn);
                }
            }
            State::Urgent => {
                self.urgent.insert(lbn);
                self.leaving += cost;
            }
            State::Through(_) => self.leaving += cost,
            State::Failed => _ = self.failed.insert(lbn),
        }
        self.extents.insert(lbn, e);
    }

    /// Cuts extents so that each lies within the range, or outside it.
    fn cut(&mut self, range: &TaskRange) {
        for edge in [range.lbn, range.end()] {
            let Some(from) = self.holding(edge).filter(|&from| from < edge) else { continue };
            let whole = self.remove(from);
            let middle = ((edge - from) * self.sector) as usize;
            let part = |bytes| Extent { data: T::copy(&whole.data, bytes), ..whole.clone() };
            self.insert(from, part(0..middle));
            self.insert(edge, part(middle..T::len(&whole.data) as usize));
        }
    }
}

/// Iterates over sectors in order, starting at one and wrapping around.
fn around(all: &BTreeSet<u64>, from: u64) -> impl Iterator<Item = u64> {
    all.range(from..).chain(all.range(..from)).copied()
}

#[cfg(test)]
mod tests {
    use super::super::tests::Plain;
    use super::*;

    fn range(lbn: u64, count: u64) -> TaskRange {
        TaskRange { lbn, count }
    }

    /// Returns a cache of sectors of two bytes.
    fn cache() -> Cache<Plain> {
        Cache::new(2)
    }

    fn write(c: &mut Cache<Plain>, lbn: u64, count: u64, fill: u8) -> u64 {
        c.write(&range(lbn, count), &vec![fill; 2 * count as usize], State::Waiting)
    }

    fn found(c: &Cache<Plain>, lbn: u64, count: u64) -> Vec<(u64, u64, Option<u8>)> {
        c.look_up(&range(lbn, count)).iter().map(|(r, d)| (r.lbn, r.count, d.as_ref().map(|d| d[0]))).collect()
    }

    #[test]
    fn newer_data_replaces_older_and_what_lies_between_is_missing() {
        let mut c = cache();
        write(&mut c, 10, 8, 1);
        write(&mut c, 12, 2, 2);
        write(&mut c, 20, 2, 3);
        let expected =
            [(8, 2, None), (10, 2, Some(1)), (12, 2, Some(2)), (14, 4, Some(1)), (18, 2, None), (20, 1, Some(3))];
        assert_eq!(found(&c, 8, 13), expected);
        assert_eq!(c.data_bytes(), 20);
        assert_eq!(found(&c, 100, 1), [(100, 1, None)]);
    }

    #[test]
    fn who_replaces_a_write_answers_for_it_until_one_of_them_is_on_the_disk() {
        let mut c = cache();
        let first = write(&mut c, 0, 4, 1);
        let second = write(&mut c, 0, 4, 2);
        assert_eq!((c.at(0).seq, c.at(0).since, c.oldest()), (second, first, Some(first)));
        c.settle(&range(0, 4), first);
        assert_eq!(c.oldest(), Some(second));
        // A write newer than an extent does not change its age.
        c.settle(&range(0, 4), second + 5);
        assert_eq!(c.oldest(), Some(second));
    }

    #[test]
    fn a_task_has_what_it_was_given_and_not_what_came_later() {
        let mut c = cache();
        write(&mut c, 0, 8, 1);
        c.change(0, |e| e.task = Some(7));
        write(&mut c, 2, 2, 2);
        assert_eq!(c.of_task(&range(1, 4), 7), [1, 4]);
        assert_eq!(c.unassigned().collect::<Vec<_>>(), [2]);
        for lbn in c.of_task(&range(0, 8), 7) {
            c.remove(lbn);
        }
        assert_eq!(found(&c, 0, 8), [(0, 2, None), (2, 2, Some(2)), (4, 4, None)]);
    }

    #[test]
    fn what_replaces_something_urgent_is_urgent() {
        let mut c = cache();
        c.write(&range(0, 4), &vec![1; 8], State::Urgent);
        write(&mut c, 2, 4, 2);
        assert_eq!(c.urgent(0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(c.leaving(), c.bytes());
    }

    #[test]
    fn books_are_balanced_whatever_happens() {
        let mut c = cache();
        for i in 0..200u64 {
            write(&mut c, i * 37 % 101, 1 + i * 13 % 29, i as u8);
            if let Some((_, lbn)) = c.first_waiting().filter(|_| i % 3 == 0) {
                c.change(lbn, |e| e.state = State::Through(i));
            }
            c.split_into(&range(i % 90, 11), 3);
        }
        let all = c.inside(&range(0, 1000));
        assert!(!all.is_empty());
        all.into_iter().for_each(|lbn| _ = c.remove(lbn));
        assert_eq!((c.bytes(), c.leaving(), c.oldest(), c.unassigned().count()), (0, 0, None, 0));
    }
}
