//! The predicted contents of the drive's cache segments, and their eviction.
//!
//! The rules are those of the drive's own segments ([`headtime_disk::Drive`]). A host sees one
//! command after the other, each when those before it have left the media, so the state "being
//! written" does not occur here.

mod foreground;

use std::collections::VecDeque;

use headtime_disk::Geometry;
use headtime_disk::profile::CacheSpec;

/// State of a segment; lower states are evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// Holds nothing.
    Empty,
    /// Holds its range.
    Held,
    /// A prefetch is extending it.
    Filling,
}

/// One segment: LBNs `first` to `end`, excluded.
#[derive(Clone, Copy, Debug)]
struct Segment {
    first: u64,
    /// Of the blocks between `first` and this one, the segment holds only those on the same track
    /// as this one. [`Segment::settle_first`] determines which when the segment is looked up; a
    /// busy drive fills many segments, and few are looked up.
    asked: u64,
    end: u64,
    used: u64,
    state: State,
    /// When the foreground used it last; 0: never.
    by_foreground: u64,
}

impl Segment {
    /// Determines the exact `first`.
    #[inline]
    fn settle_first(&mut self, geometry: &Geometry) {
        if self.first < self.asked {
            let track = geometry.track_of(self.asked).map_or(self.asked, |t| t.first_lbn);
            self.first = self.first.max(track);
            self.asked = self.first;
        }
    }
}

/// Result of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A miss: the first block is not there.
    Nothing,
    /// This segment holds all of it.
    All(usize),
    /// This segment holds its first blocks.
    Front(usize),
}

/// A segment before its eviction.
#[derive(Clone, Copy, Debug)]
struct Evicted {
    segment: Segment,
    /// Its index.
    at: usize,
}

/// The segments.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    segments: Vec<Segment>,
    size: u64,
    stamp: u64,
    /// The last evicted segments, the latest at the end, at most as many as there are segments. An
    /// unexpected hit shows that the drive has kept one of them.
    evicted: VecDeque<Evicted>,
    /// The foreground's evicted segments, the latest at the end, at most as many as there are
    /// segments. Without background work the drive would still hold some of them.
    lost: VecDeque<Segment>,
    /// The segment used last, and when the foreground had used it before.
    touched: (usize, u64),
}

impl Segments {
    /// Creates empty segments.
    pub(super) fn new(spec: &CacheSpec) -> Segments {
        let empty = Segment { first: 0, asked: 0, end: 0, used: 0, state: State::Empty, by_foreground: 0 };
        Segments {
            segments: vec![empty; spec.segments as usize],
            size: spec.segment_sectors as u64,
            stamp: 0,
            evicted: VecDeque::new(),
            lost: VecDeque::new(),
            touched: (0, 0),
        }
    }

    /// Returns whether there are any.
    #[inline]
    pub(super) fn exist(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Returns the sectors per segment.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the first LBN held and one past the last.
    pub(super) fn range(&mut self, geometry: &Geometry, i: usize) -> (u64, u64) {
        let s = &mut self.segments[i];
        s.settle_first(geometry);
        (s.first, s.end)
    }

    /// Returns whether a read of `lbn` begins in a segment or directly after it.
    pub(super) fn continues_at(&mut self, geometry: &Geometry, i: usize, lbn: u64) -> bool {
        let (first, end) = self.range(geometry, i);
        self.segments[i].state != State::Empty && first <= lbn && lbn <= end
    }

    /// Looks up a read of `lbn..end`. A segment with all of it is preferred to one with its front,
    /// then one that is being filled; among equals the least recently used.
    #[inline]
    pub(super) fn look_up(&mut self, geometry: &Geometry, lbn: u64, end: u64) -> Found {
        let mut best: Option<(bool, bool, u64, usize)> = None;
        for (i, s) in self.segments.iter_mut().enumerate() {
            if lbn >= s.first && lbn < s.end && s.state != State::Empty {
                s.settle_first(geometry);
                if lbn >= s.first {
                    let key = (end > s.end, s.state != State::Filling, s.used, i);
                    best = Some(best.map_or(key, |b| b.min(key)));
                }
            }
        }
        match best {
            None => Found::Nothing,
            Some((false, .., i)) => Found::All(i),
            Some((true, .., i)) => Found::Front(i),
        }
    }

    /// Marks a segment as used last, by the foreground.
    pub(super) fn touch(&mut self, i: usize) {
        self.stamp += 1;
        self.touched = (i, self.segments[i].by_foreground);
        (self.segments[i].used, self.segments[i].by_foreground) = (self.stamp, self.stamp);
    }

    /// Returns the segment to be evicted: an empty one, else the least recently used, else the one
    /// being filled.
    #[inline]
    fn give_way(&self) -> usize {
        let mut best = ((State::Filling, u64::MAX), 0);
        for (i, s) in self.segments.iter().enumerate() {
            if (s.state, s.used) < best.0 {
                best = ((s.state, s.used), i);
            }
        }
        best.1
    }

    /// Records a read miss that filled a segment with `asked..end`, and with what lies after
    /// `first` on the track of `asked`. Returns the segment.
    #[inline]
    pub(super) fn read(&mut self, first: u64, asked: u64, end: u64) -> usize {
        let i = self.give_way();
        self.lose(i);
        self.segments[i] = Segment { first, asked, end, used: 0, state: State::Held, by_foreground: 0 };
        self.trim(i);
        self.touch(i);
        i
    }

    /// Records a write of `first..end` through a segment, one that it overlaps if there is one.
    /// Other segments lose its blocks, except the one being filled. `keep`: whether reads can hit
    /// it; `update`: whether a segment that holds all of its blocks keeps the rest as well.
    pub(super) fn write(&mut self, geometry: &Geometry, first: u64, end: u64, keep: bool, update: bool) {
        let apart = |s: &Segment| end <= s.first || s.end <= first;
        self.evicted.retain(|g| apart(&g.segment));
        self.lost.retain(apart);
        if update && self.write_into(geometry, first, end) {
            return;
        }
        let mut into = None;
        for (i, s) in self.segments.iter_mut().enumerate() {
            if s.state == State::Held && s.first < end && first < s.end {
                s.settle_first(geometry);
                if s.first < end {
                    s.state = State::Empty;
                    into = into.or((s.end > s.first).then_some(i));
                }
            }
        }
        let i = into.unwrap_or_else(|| self.give_way());
        self.lose(i);
        let state = if keep { State::Held } else { State::Empty };
        self.segments[i] = Segment { first, asked: first, end, used: 0, state, by_foreground: 0 };
        self.trim(i);
        self.touch(i);
    }

    /// Writes `first..end` into the segment that holds all of it, if there is one; others that hold
    /// any of it are emptied.
    fn write_into(&mut self, geometry: &Geometry, first: u64, end: u64) -> bool {
        let mut into = None;
        for (i, s) in self.segments.iter_mut().enumerate() {
            if into.is_none() && s.state == State::Held && s.first <= first && end <= s.end {
                s.settle_first(geometry);
                into = (s.first <= first).then_some(i);
            }
        }
        let Some(i) = into else { return false };
        for (n, s) in self.segments.iter_mut().enumerate() {
            if n != i && s.state == State::Held && s.first < end && first < s.end {
                s.settle_first(geometry);
                if s.first < end {
                    s.state = State::Empty;
                }
            }
        }
        self.touch(i);
        true
    }

    /// Records that a prefetch begins to extend a segment.
    pub(super) fn filling(&mut self, i: usize) {
        if self.segments[i].state == State::Held {
            self.segments[i].state = State::Filling;
        }
    }

    /// Extends a segment up to `end`; drops at the front what no longer fits.
    pub(super) fn fill_to(&mut self, i: usize, end: u64) {
        let s = &mut self.segments[i];
        if s.state != State::Empty {
            s.end = s.end.max(end);
            self.trim(i);
        }
    }

    /// Records that a segment is no longer extended.
    #[inline]
    pub(super) fn filled(&mut self, i: usize) {
        let s = &mut self.segments[i];
        if s.state != State::Empty {
            s.state = if s.end > s.first { State::Held } else { State::Empty };
        }
    }

    /// Drops what lies before `lbn`, which has been delivered and is not kept.
    pub(super) fn drop_delivered(&mut self, i: usize, lbn: u64) {
        let s = &mut self.segments[i];
        s.first = s.first.max(lbn);
        s.asked = s.asked.max(lbn);
        s.end = s.end.max(s.first);
    }

    /// Invalidates a segment.
    pub(super) fn forget(&mut self, i: usize) {
        self.give_up(i);
        self.segments[i].state = State::Empty;
    }

    /// Records a segment's contents before it is overwritten.
    #[inline]
    fn give_up(&mut self, i: usize) {
        if self.segments[i].state == State::Empty {
            return;
        }
        if self.evicted.len() >= self.segments.len() {
            self.evicted.pop_front();
        }
        self.evicted.push_back(Evicted { segment: self.segments[i], at: i });
    }

    /// Records the eviction of a segment.
    #[inline]
    fn lose(&mut self, i: usize) {
        self.give_up(i);
        let lost = self.segments[i];
        if lost.state == State::Empty || lost.by_foreground == 0 {
            return;
        }
        if self.lost.len() >= self.segments.len() {
            self.lost.pop_front();
        }
        self.lost.push_back(lost);
    }

    /// Corrects a predicted eviction: the segment is still held.
    fn not_lost(&mut self, segment: &Segment) {
        let is_it = |s: &Segment| s.by_foreground == segment.by_foreground && s.end == segment.end;
        if let Some(at) = self.lost.iter().rposition(is_it) {
            self.lost.remove(at);
        }
    }

    /// Handles a read of `lbn..end` that was predicted to miss and to fill segment `i`, but hit. So
    /// another segment holds more than predicted, or was not evicted. Of the segments that may
    /// extend to this read, the one used last is taken; `reach` returns the range that a segment
    /// may hold around its known blocks. A segment holds one contiguous range, so it also holds
    /// everything in between. Returns the segment that holds the read now.
    #[cold]
    pub(super) fn regain(
        &mut self,
        geometry: &Geometry,
        i: usize,
        lbn: u64,
        end: u64,
        reach: impl Fn(u64, u64) -> (u64, u64),
    ) -> Option<usize> {
        let (size, own) = (self.size, self.segments[i].by_foreground > 0);
        // The segment extended by these blocks, if it may hold them.
        let with = |s: &Segment| {
            let (from, to) = reach(s.first, s.end);
            let (first, upto) = (s.first.min(lbn), s.end.max(end));
            let may = from <= lbn && end <= to && upto - first <= size;
            may.then_some(Segment { first, asked: first, end: upto, ..*s })
        };
        let mut held: Option<(usize, Segment)> = None;
        for (n, s) in self.segments.iter_mut().enumerate() {
            if n != i && s.state != State::Empty && held.is_none_or(|(_, h)| s.used > h.used) {
                s.settle_first(geometry);
                held = with(s).map(|w| (n, w)).or(held);
            }
        }
        if let Some((n, segment)) = held {
            self.segments[n] = segment;
            self.touch_for(n, own);
            // The read evicted nothing.
            let replaced = self.evicted.iter().rposition(|g| g.at == i);
            match replaced.and_then(|at| self.evicted.remove(at)) {
                Some(g) => {
                    self.segments[i] = g.segment;
                    self.not_lost(&g.segment);
                }
                None => self.segments[i].state = State::Empty,
            }
            return Some(n);
        }
        for at in (0..self.evicted.len()).rev() {
            let mut old = self.evicted[at].segment;
            old.settle_first(geometry);
            if let Some(segment) = with(&old) {
                if let Some(g) = self.evicted.remove(at) {
                    self.not_lost(&g.segment);
                }
                self.segments[i] = Segment { state: State::Held, ..segment };
                self.touch_for(i, own);
                return Some(i);
            }
        }
        None
    }

    /// Reduces a segment that holds `first..end` to that. A segment that has been reused is
    /// unchanged, and the result is `false`.
    pub(super) fn only(&mut self, i: usize, first: u64, end: u64) -> bool {
        let s = &mut self.segments[i];
        let holds = s.state != State::Empty && s.first <= first && end <= s.end;
        if holds {
            (s.first, s.asked, s.end) = (first, first, end);
        }
        holds
    }

    /// Sets a segment to what a read miss would bring ([`Segments::read`]).
    pub(super) fn set(&mut self, i: usize, first: u64, asked: u64, end: u64) {
        let s = &mut self.segments[i];
        (s.first, s.asked, s.end) = (first, asked, end);
        self.trim(i);
    }

    fn trim(&mut self, i: usize) {
        let s = &mut self.segments[i];
        s.first = s.first.max(s.end.saturating_sub(self.size));
    }
}

#[cfg(test)]
mod tests;
