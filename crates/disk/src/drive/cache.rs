//! The segmented cache: its contents and its eviction order.
//!
//! A segment holds one contiguous range of LBNs. The selection rules are those of DiskSim 4.0, from
//! its manual and from comparison with its output.

use crate::profile::CacheSpec;

/// State of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Holds nothing.
    Empty,
    /// Holds data that is also on the media.
    Clean,
    /// Being filled from the media.
    Reading,
    /// Being written to the media.
    Writing,
}

/// A segment: LBNs `first` to `end` (exclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// First LBN held.
    pub first: u64,
    /// One past the last LBN held.
    pub end: u64,
    /// Its state.
    pub state: State,
    used: u64,
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The first block is missing.
    Miss,
    /// All blocks are present.
    Full(usize),
    /// The first blocks are present.
    Partial(usize),
}

/// The cache.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    segments: Vec<Segment>,
    size: u64,
    stamp: u64,
    read_hits_on_written: bool,
    writes_update: bool,
}

impl Cache {
    /// Creates an empty cache.
    pub(super) fn new(spec: &CacheSpec) -> Cache {
        let empty = Segment { first: 0, end: 0, state: State::Empty, used: 0 };
        Cache {
            segments: vec![empty; spec.segments as usize],
            size: spec.segment_sectors as u64,
            stamp: 0,
            read_hits_on_written: spec.read_hits_on_written,
            writes_update: spec.updates_segments(),
        }
    }

    /// Whether the drive has a cache.
    pub(super) fn exists(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Returns a segment.
    pub(super) fn get(&self, i: usize) -> &Segment {
        &self.segments[i]
    }

    fn touch(&mut self, i: usize) {
        self.stamp += 1;
        self.segments[i].used = self.stamp;
    }

    /// Looks up a read of `lbn..end`. A hit needs its first block. Preference: full before partial,
    /// then being written, being read, clean; then least recently used.
    pub(super) fn look_up(&self, lbn: u64, end: u64) -> Found {
        let mut best: Option<(u32, u64, usize)> = None;
        for (i, s) in self.segments.iter().enumerate() {
            if s.state == State::Empty || lbn < s.first || lbn >= s.end {
                continue;
            }
            let rank = match s.state {
                State::Writing => 0,
                State::Reading => 1,
                _ => 2,
            } + if end <= s.end { 0 } else { 10 };
            let key = (rank, s.used, i);
            if best.is_none_or(|b| key < b) {
                best = Some(key);
            }
        }
        match best {
            None => Found::Miss,
            Some((rank, _, i)) if rank < 10 => Found::Full(i),
            Some((_, _, i)) => Found::Partial(i),
        }
    }

    /// Marks a segment as most recently used, on a hit.
    pub(super) fn hit(&mut self, i: usize) {
        self.touch(i);
    }

    /// Allocates the segment for a read miss of `lbn`: an empty one, else the least recently used
    /// clean one, else the one being filled. It restarts at `lbn`, empty. `None` when every segment
    /// is being written.
    pub(super) fn take_for_read(&mut self, lbn: u64) -> Option<usize> {
        let i = self.choose(&[State::Empty, State::Clean, State::Reading])?;
        self.segments[i] = Segment { first: lbn, end: lbn, state: State::Reading, used: 0 };
        self.touch(i);
        Some(i)
    }

    fn choose(&self, states: &[State]) -> Option<usize> {
        for &state in states {
            let oldest =
                self.segments.iter().enumerate().filter(|(_, s)| s.state == state).min_by_key(|(i, s)| (s.used, *i));
            if let Some((i, _)) = oldest {
                return Some(i);
            }
        }
        None
    }

    /// Allocates the segment for a write of `lbn..end`: a clean one that it overlaps, else an empty
    /// one, else the least recently used clean one, else (only when nothing else is left) the one
    /// being filled. Every other clean segment that the write overlaps is invalidated; one being
    /// filled is not. `None` when every segment is being written.
    ///
    /// The segment then holds nothing else, unless the drive updates a segment that holds all of
    /// the write's blocks: that one keeps the rest.
    pub(super) fn take_for_write(&mut self, lbn: u64, end: u64) -> Option<usize> {
        if self.writes_update {
            let holds = |s: &Segment| s.state == State::Clean && s.first <= lbn && end <= s.end;
            if let Some(i) = self.segments.iter().position(holds) {
                self.empty_overlapping(lbn, end, Some(i));
                self.segments[i].state = State::Writing;
                self.touch(i);
                return Some(i);
            }
        }
        let overlapping = self
            .segments
            .iter()
            .position(|s| s.state == State::Clean && s.first < end && lbn < s.end && s.end > s.first);
        let i = match overlapping {
            Some(i) => Some(i),
            None => self.choose(&[State::Empty, State::Clean, State::Reading]),
        };
        self.empty_overlapping(lbn, end, i);
        let i = i?;
        self.segments[i] = Segment { first: lbn, end, state: State::Writing, used: 0 };
        self.trim(i);
        self.touch(i);
        Some(i)
    }

    /// Invalidates every clean segment other than `keep` that overlaps a write.
    pub(super) fn empty_overlapping(&mut self, lbn: u64, end: u64, keep: Option<usize>) {
        for (i, s) in self.segments.iter_mut().enumerate() {
            if Some(i) != keep && s.state == State::Clean && s.first < end && lbn < s.end {
                s.state = State::Empty;
            }
        }
    }

    /// Appends a contiguous write to a segment being written.
    pub(super) fn append(&mut self, i: usize, end: u64) {
        self.segments[i].end = end;
        self.trim(i);
        self.touch(i);
    }

    /// Extends a segment to `end`, dropping data at its front that no longer fits.
    pub(super) fn fill_to(&mut self, i: usize, end: u64) {
        let s = &mut self.segments[i];
        if s.state == State::Reading || s.state == State::Clean {
            s.end = s.end.max(end);
            self.trim(i);
        }
    }

    /// Sets a segment's range.
    pub(super) fn set_range(&mut self, i: usize, first: u64, end: u64) {
        self.segments[i].first = first;
        self.segments[i].end = end;
        self.trim(i);
    }

    fn trim(&mut self, i: usize) {
        let s = &mut self.segments[i];
        s.first = s.first.max(s.end.saturating_sub(self.size));
    }

    /// Drops the data before `lbn`, which has been delivered.
    pub(super) fn drop_delivered(&mut self, i: usize, lbn: u64) {
        let s = &mut self.segments[i];
        s.first = s.first.max(lbn).min(s.end.max(lbn));
        s.end = s.end.max(s.first);
    }

    /// Marks a segment as filled.
    pub(super) fn filled(&mut self, i: usize) {
        let s = &mut self.segments[i];
        if s.state == State::Reading {
            s.state = if s.end > s.first { State::Clean } else { State::Empty };
        }
    }

    /// Marks a clean segment as being filled again.
    pub(super) fn refill(&mut self, i: usize) {
        if self.segments[i].state == State::Clean {
            self.segments[i].state = State::Reading;
        }
    }

    /// Marks a segment as written to the media.
    pub(super) fn written(&mut self, i: usize) {
        let s = &mut self.segments[i];
        if s.state == State::Writing {
            s.state = if self.read_hits_on_written { State::Clean } else { State::Empty };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::builtin;

    /// Returns a cache of two segments, the first of which holds 0 to 100.
    fn cache(change: impl Fn(&mut CacheSpec)) -> Cache {
        let mut spec = builtin("cheetah36es").expect("it is built in").electronics.cache;
        (spec.segments, spec.segment_sectors, spec.writes_update_segments) = (2, 100, true);
        change(&mut spec);
        let mut cache = Cache::new(&spec);
        let i = cache.take_for_read(0).expect("all are empty");
        cache.fill_to(i, 100);
        cache.filled(i);
        cache
    }

    fn write(cache: &mut Cache, lbn: u64, end: u64) {
        let i = cache.take_for_write(lbn, end).expect("none is being written");
        cache.written(i);
    }

    #[test]
    fn a_write_into_a_segment_that_holds_it_leaves_the_rest() {
        let mut c = cache(|_| {});
        write(&mut c, 40, 50);
        assert!((0..100).all(|lbn| matches!(c.look_up(lbn, lbn + 1), Found::Full(_))));
        // A write that one of two overlapping segments holds completely invalidates the other.
        write(&mut c, 95, 105);
        assert_eq!(c.look_up(10, 11), Found::Miss);
        assert!(matches!(c.look_up(95, 105), Found::Full(_)));
    }

    #[test]
    fn other_drives_empty_what_a_write_overlaps() {
        for change in [
            |c: &mut CacheSpec| c.writes_update_segments = false,
            |c: &mut CacheSpec| c.write_back = true,
            |c: &mut CacheSpec| c.read_hits_on_written = false,
        ] {
            let mut c = cache(change);
            write(&mut c, 40, 50);
            assert_eq!((c.look_up(10, 11), c.look_up(60, 61)), (Found::Miss, Found::Miss));
        }
    }
}
