//! Regions: a coarse index of wanted sectors (Thereska 2003 section 4.2).
//!
//! The disk is divided into [`cells`](super::cells), each into R angular regions (8 by default).
//! One bit per session, cell and region says whether some wanted sector lies there. A search goes
//! from one cell to the next that has a bit where the head can be, and queries the task layer only
//! there.
//!
//! # Differences from the paper
//!
//! | Thereska 2003, table 2 | here |
//! |---|---|
//! | a map of tasks for each region (2.53 MB of 3.2) | none: the task layer finds the tasks of a range by its own index |
//! | one region bitmap | one *per session*, in chunks of [`CHUNK`] words allocated where something is wanted; and their union |
//! | per cylinder and session, how many fragments | none: a session's bits say whether it wants something there |
//! | per track, how many fragments | none: [`remaining`] counts the wanted sectors of a track on demand, and [`left`](super::left) remembers them for the algorithm that needs them |
//!
//! A bitmap per session answers the lottery's query ("which is the next cell up or down where *the
//! winner* wants something *at this angle*") at eight cells a word; a count per cylinder could only
//! say "somewhere on this cylinder". It costs one byte a cell at R = 8, half of the paper's
//! two-byte count, and nothing where a session wants nothing. Counts of fragments become wrong when
//! tasks overlap or a foreground request satisfies part of one; a population count over the wanted
//! bits of a track cannot, and costs a microsecond only when an algorithm needs it.
//!
//! # Exactness
//!
//! * No wanted sector is hidden: its bit is set from [`Regions::add`] until [`Regions::recheck`]
//!   finds that nothing of that session is pending ([`Wants::pending`]) in that region of the cell.
//! * A bit may be stale from the moment that its last wanted sector is satisfied until `recheck` of
//!   that range; and for a cell that was added as a whole, in regions where none of its tracks
//!   holds data, until a `recheck` there.
//! * Remapped sectors count at their original place, or not at all: a detour to a spare fits into
//!   no gap.
//! * The union (for [`Who::Anyone`]) is updated with every change, so that a query costs the same
//!   with one session and with a thousand. Clearing a bit checks the other sessions, and stops at
//!   the first that has it.

use headtime_disk::internals::{JUST_PASSED, gcd};
use headtime_disk::{Angle, Geometry, Kind, Rotation};

use super::bitmap::Bitmap;
pub(crate) use super::bitmap::CHUNK;
use super::cells::Cells;
use super::gap::Window;
use super::touched::{arc, in_word, touched};
use super::track::TrackMap;
use crate::tasks::wanted::Wanted;
use crate::tasks::{SessionId, TaskRange, Wants, Who};

/// Default regions per cell (Thereska 2003 section 4.2).
pub(crate) const REGIONS: u32 = 8;

/// Regions with wanted sectors, by session.
#[derive(Clone, Debug)]
pub struct Regions {
    cells: Cells,
    /// log2 of the regions per cell.
    shift: u32,
    /// Mask of all bits of a cell.
    all: u64,
    /// By ascending ID.
    sessions: Vec<Session>,
    union: Bitmap,
    widest: u32,
    /// Wanted ranges begin and end at multiples of this number of sectors from `origin`; 0: nothing
    /// is wanted.
    grain: u64,
    origin: u64,
    scratch: Wanted,
}

#[derive(Clone, Debug)]
struct Session {
    id: SessionId,
    suspended: bool,
    bits: Bitmap,
    /// Upper bound of the chunks of its bits.
    chunks_at_most: usize,
}

/// Bytes by structure (Thereska 2003 table 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionMemory {
    /// The sessions' bitmaps.
    pub session_bitmaps: usize,
    /// The union of those that are not suspended.
    pub union_bitmap: usize,
    /// Everything else.
    pub rest: usize,
}

impl RegionMemory {
    /// Returns the total.
    pub fn total(&self) -> usize {
        self.session_bitmaps + self.union_bitmap + self.rest
    }
}

impl Regions {
    /// Creates regions in which nothing is wanted. `regions` is rounded to a power of two from 1
    /// to 64.
    pub fn new(geometry: &Geometry, regions: u32) -> Regions {
        let regions = regions.clamp(1, 64).next_power_of_two();
        Regions {
            cells: Cells::new(geometry),
            shift: regions.trailing_zeros(),
            all: u64::MAX >> (64 - regions),
            sessions: Vec::new(),
            union: Bitmap::default(),
            widest: 1,
            grain: 0,
            origin: 0,
            scratch: Wanted::new(),
        }
    }

    /// Returns the mapping of tracks to cells.
    #[inline]
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Returns the regions per cell.
    #[inline]
    pub fn per_cell(&self) -> u32 {
        1 << self.shift
    }

    /// Returns the mask of all regions.
    #[inline]
    pub fn all(&self) -> u64 {
        self.all
    }

    /// Returns the largest pick-up unit so far, in sectors. A unit crosses a track's end by less
    /// than this.
    #[inline]
    pub fn widest_unit(&self) -> u32 {
        self.widest
    }

    /// Returns the grain: the lengths of all wanted ranges, past ones included, are multiples of
    /// this number of sectors, as all units are.
    #[inline]
    pub fn grain(&self) -> u32 {
        self.grain.clamp(1, u64::from(u32::MAX)) as u32
    }

    /// Notes a task's pick-up unit in sectors, and its ranges. To be called for every task before
    /// its ranges are added.
    pub fn has_units(&mut self, min_pickup: u32, ranges: &[TaskRange]) {
        self.widest = self.widest.max(min_pickup);
        for range in ranges {
            if self.grain == 0 {
                self.origin = range.lbn;
            }
            let rest = range.count % u64::from(min_pickup.max(1));
            for part in [u64::from(min_pickup), rest, range.lbn.abs_diff(self.origin)] {
                self.grain = gcd(self.grain, part);
            }
        }
    }

    /// Returns the regions that an arc touches: from `from`, `span` of 2^64 of a revolution.
    #[inline]
    pub fn arc(&self, from: Angle, span: u64) -> u64 {
        arc(self.shift, self.all, from, span)
    }

    /// Returns the regions that pass under the head in a window.
    #[inline]
    pub fn in_window(&self, rotation: &Rotation, window: &Window) -> u64 {
        let length = window.length();
        if length >= rotation.period() {
            return self.all;
        }
        // What passes by rounding counts as passing.
        let span = rotation.angle_after(length).0.saturating_add(2 * JUST_PASSED.0);
        self.arc(window.angle - JUST_PASSED, span)
    }

    /// Adds a range in which a session wants something.
    pub fn add(&mut self, session: SessionId, geometry: &Geometry, range: TaskRange) {
        let i = self.sessions.partition_point(|s| s.id < session);
        if self.sessions.get(i).is_none_or(|s| s.id != session) {
            self.sessions
                .insert(i, Session { id: session, suspended: false, bits: Bitmap::default(), chunks_at_most: 0 });
        }
        let chunks = self.chunks_of(geometry, &range);
        let most = self.chunks_of_all();
        let (cells, shift, all) = (self.cells, self.shift, self.all);
        let (s, union) = (&mut self.sessions[i], &mut self.union);
        s.chunks_at_most = (s.chunks_at_most + chunks).min(most);
        touched(&cells, shift, all, geometry, range, |touched, mask| {
            if mask == all {
                s.bits.fill(shift, touched.clone());
                if !s.suspended {
                    union.fill(shift, touched);
                }
                return;
            }
            for cell in touched {
                let (word, bits) = in_word(shift, cell, mask);
                s.bits.or(word, bits);
                if !s.suspended {
                    union.or(word, bits);
                }
            }
        });
    }

    /// Returns the maximum number of chunks for a range's bits.
    fn chunks_of(&self, geometry: &Geometry, range: &TaskRange) -> usize {
        let end = range.lbn.saturating_add(range.count).min(geometry.capacity());
        if range.lbn >= end {
            return 0;
        }
        let group = |lbn| geometry.track_of(lbn).map_or(0, |t| self.cells.group_of(t.cylinder));
        let first = |group| self.cells.first_of_group(group).min(self.cells.count());
        let (from, to) = (first(group(range.lbn)), first(group(end - 1) + 1));
        let chunk = |cell: u32| (cell >> (6 - self.shift)) as usize / CHUNK;
        chunk(to) - chunk(from) + 1
    }

    /// Returns the number of chunks of all cells.
    fn chunks_of_all(&self) -> usize {
        (self.cells.count() >> (6 - self.shift)) as usize / CHUNK + 1
    }

    /// Returns an upper bound of the bytes of all bits if a session also wants these ranges.
    pub fn bytes_at_most(&self, session: SessionId, geometry: &Geometry, ranges: &[TaskRange]) -> usize {
        let most = self.chunks_of_all();
        let more: usize = ranges.iter().map(|r| self.chunks_of(geometry, r)).sum();
        let mut found = false;
        let of = |s: &Session| match s.id == session {
            true => {
                found = true;
                (s.chunks_at_most + more).min(most)
            }
            false => s.chunks_at_most,
        };
        let mut chunks: usize = self.sessions.iter().map(of).sum();
        if !found {
            chunks += more.min(most);
        }
        // The union has at most as many chunks as all sessions together.
        (chunks + chunks.min(most)) * Bitmap::CHUNK_BYTES
    }

    /// Clears the bits of a session that wants nothing any more.
    pub fn clear_session(&mut self, session: SessionId) {
        let Ok(i) = self.sessions.binary_search_by_key(&session, |s| s.id) else {
            return;
        };
        let suspended = std::mem::replace(&mut self.sessions[i].suspended, true);
        if !suspended {
            self.leave_union(i);
        }
        let s = &mut self.sessions[i];
        (s.bits, s.chunks_at_most, s.suspended) = (Bitmap::default(), 0, suspended);
    }

    /// Clears the bits of a session's regions in `range` where nothing is pending any more.
    pub fn recheck(&mut self, session: SessionId, geometry: &Geometry, wants: &impl Wants, range: TaskRange) {
        let Ok(i) = self.sessions.binary_search_by_key(&session, |s| s.id) else {
            return;
        };
        let (cells, shift, all, widest) = (self.cells, self.shift, self.all, self.widest);
        let mut scratch = std::mem::take(&mut self.scratch);
        touched(&cells, shift, all, geometry, range, |touched, mask| {
            for cell in touched {
                let stale = mask & self.sessions[i].bits.field(shift, all, cell);
                if stale == 0 {
                    continue;
                }
                let tracks = cells.tracks(cell).filter_map(|at| TrackMap::at(geometry, at));
                let mut left = stale;
                for (map, kind) in tracks.flat_map(|map| [(map, Kind::Read), (map, Kind::Write)]) {
                    pending_on(&map, geometry, wants, Who::Session(session), kind, widest, &mut scratch);
                    for (low, high) in scratch.runs(map.track.first_lbn, map.end()) {
                        map.arcs(geometry, low, high, |from, span| left &= !arc(shift, all, from, span));
                    }
                    if left == 0 {
                        break;
                    }
                }
                let (word, bits) = in_word(shift, cell, left);
                self.take_back(i, word, bits);
            }
        });
        self.scratch = scratch;
    }

    /// Clears bits of session `i`, and of the union where no other session has them.
    fn take_back(&mut self, i: usize, word: u32, bits: u64) {
        if bits == 0 {
            return;
        }
        self.sessions[i].bits.and_not(word, bits);
        if self.sessions[i].suspended {
            return;
        }
        let mut left = bits;
        for s in self.sessions.iter().filter(|s| !s.suspended) {
            left &= !s.bits.word(word);
            if left == 0 {
                return;
            }
        }
        self.union.and_not(word, left);
    }

    /// Returns whether more than one session, suspended ones excluded, may want something.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.sessions.iter().filter(|s| !s.suspended).count() > 1
    }

    /// Suspends or resumes a session: suspended ones are not in the union.
    pub fn suspend(&mut self, session: SessionId, suspended: bool) {
        let Ok(i) = self.sessions.binary_search_by_key(&session, |s| s.id) else {
            return;
        };
        if self.sessions[i].suspended == suspended {
            return;
        }
        self.sessions[i].suspended = suspended;
        if suspended {
            self.leave_union(i);
        } else {
            self.union.or_all(&self.sessions[i].bits);
        }
    }

    /// Removes a session.
    pub fn drop_session(&mut self, session: SessionId) {
        let Ok(i) = self.sessions.binary_search_by_key(&session, |s| s.id) else {
            return;
        };
        if !self.sessions[i].suspended {
            self.sessions[i].suspended = true;
            self.leave_union(i);
        }
        self.sessions.remove(i);
        if self.sessions.is_empty() {
            // Frees their table and resets the widest unit.
            self.sessions = Vec::new();
            (self.widest, self.grain) = (1, 0);
        }
    }

    /// Removes the bits of session `i`, which has just been suspended or cleared, from the union.
    fn leave_union(&mut self, i: usize) {
        let (sessions, union) = (&self.sessions, &mut self.union);
        for chunk in sessions[i].bits.chunks() {
            let mut words = [0; CHUNK];
            for s in sessions.iter().filter(|s| !s.suspended) {
                s.bits.or_chunk_into(chunk, &mut words);
            }
            union.set_chunk(chunk, words);
        }
    }

    #[inline]
    fn bits_of(&self, who: Who) -> Option<&Bitmap> {
        match who {
            Who::Anyone => Some(&self.union),
            Who::Session(id) => {
                let i = self.sessions.binary_search_by_key(&id, |s| s.id).ok()?;
                Some(&self.sessions[i].bits)
            }
        }
    }

    /// Returns the regions of a cell where `who` wants something. For a named session, even if
    /// suspended.
    #[inline]
    pub fn mask(&self, who: Who, cell: u32) -> u64 {
        self.bits_of(who).map_or(0, |bits| bits.field(self.shift, self.all, cell))
    }

    /// Returns the lowest cell from `from` upwards, inclusive, where `who` wants something in the
    /// regions of `mask`.
    #[inline]
    pub fn next_up(&self, who: Who, from: u32, mask: u64) -> Option<u32> {
        self.bits_of(who)?.next_up(self.shift, self.repeated(mask), from)
    }

    /// Returns the highest cell from `from` downwards, inclusive.
    #[inline]
    pub fn next_down(&self, who: Who, from: u32, mask: u64) -> Option<u32> {
        self.bits_of(who)?.next_down(self.shift, self.repeated(mask), from)
    }

    /// Repeats a mask for every cell of a word.
    #[inline]
    fn repeated(&self, mask: u64) -> u64 {
        // u64::MAX / all has a one at the lowest bit of each field.
        (u64::MAX / self.all).wrapping_mul(mask & self.all)
    }

    /// Returns the bytes occupied, by structure.
    pub fn memory(&self) -> RegionMemory {
        RegionMemory {
            session_bitmaps: self.sessions.iter().map(|s| s.bits.memory_bytes()).sum(),
            union_bitmap: self.union.memory_bytes(),
            rest: size_of::<Regions>() + self.sessions.capacity() * size_of::<Session>(),
        }
    }
}

/// Queries what is pending on a track, including units that cross its ends.
fn pending_on(
    map: &TrackMap,
    geometry: &Geometry,
    wants: &impl Wants,
    who: Who,
    kind: Kind,
    widest: u32,
    out: &mut Wanted,
) {
    around(map, geometry, widest, out);
    wants.pending(who, kind, out);
}

/// Resets `out` to a track and the surrounding sectors that a unit on it can reach.
fn around(map: &TrackMap, geometry: &Geometry, widest: u32, out: &mut Wanted) {
    let more = u64::from(widest - 1);
    let low = map.track.first_lbn.saturating_sub(more);
    let high = (map.end() + more).min(geometry.capacity());
    out.reset(low, (high - low) as u32);
}

/// Returns how many sectors of a track `who` wants, which Angle-EP-Frag compares (Thereska 2003
/// section 4.4). Of units that cross the track's ends the part on the track counts.
pub(crate) fn remaining(
    map: &TrackMap,
    geometry: &Geometry,
    wants: &impl Wants,
    (who, kind): (Who, Kind),
    widest: u32,
    out: &mut Wanted,
) -> u32 {
    around(map, geometry, widest, out);
    wants.wanted(who, kind, out);
    out.count(map.track.first_lbn, map.end())
}

#[cfg(test)]
mod tests;
