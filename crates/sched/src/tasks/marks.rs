//! Pieces that are in progress, and must not be offered to a search although they are wanted.
//!
//! A unit to be written passes through three states: its data is requested from the application
//! (*ask*); if that is granted the command is sent (*flight*); if not, the unit is not offered for
//! a while (*refusal*). A piece of a promoted task that was handed out as a foreground request is
//! *carried*. There are few of each at any time, so these are plain lists.

use std::collections::VecDeque;

use headtime_disk::{Kind, Time};

use super::wanted::Wanted;
use super::{TaskId, TaskRange};

/// Maximum asks and writes in flight: far more than the commands that can be at a drive.
pub(crate) const MAX_WRITES: usize = 64;
/// Maximum refusals remembered; beyond it the oldest is dropped, and its unit offered early. Each
/// costs every search a comparison or two.
pub(crate) const MAX_REFUSALS: usize = 256;
/// Maximum promoted pieces handed out: more than the scheduling layer ever takes at once.
pub(crate) const MAX_CARRIED: usize = 64;

/// A part of a write, within one range of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The task.
    pub task: TaskId,
    /// The slot of its range.
    pub extent: u32,
    /// The sectors: whole units.
    pub range: TaskRange,
    /// Its state.
    pub state: State,
}

/// State of a piece of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The application has not answered.
    Asked,
    /// The application granted it; or the write is in flight.
    Granted,
    /// The application answered "not now".
    Refused,
    /// In flight, and superseded by newer data: if the write fails it is not retried.
    Stale,
}

/// A write whose data is being requested, or that is in flight.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    /// All its sectors.
    pub range: TaskRange,
    /// Its parts by task.
    pub pieces: Vec<Piece>,
}

/// Units that are not offered for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// The task.
    pub task: TaskId,
    /// The sectors.
    pub range: TaskRange,
    /// When it expires.
    pub until: Time,
}

/// A piece of a promoted task that was handed out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    /// The task.
    pub task: TaskId,
    /// Read or write.
    pub kind: Kind,
    /// The sectors.
    pub range: TaskRange,
}

/// All pieces in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    /// Writes whose data is being requested.
    pub asks: Vec<Write>,
    /// Writes at the drive, or about to be sent.
    pub flights: Vec<Write>,
    /// Refused units, oldest first.
    pub refusals: VecDeque<Refusal>,
    /// Pieces handed out.
    pub carried: Vec<Carried>,
}

/// Returns whether `inner` lies entirely in `outer`.
#[inline]
pub(crate) fn inside(inner: &TaskRange, outer: &TaskRange) -> bool {
    inner.lbn >= outer.lbn && inner.end() <= outer.end()
}

/// Returns `range` without `hole`: up to two pieces.
pub(crate) fn without(range: TaskRange, hole: &TaskRange) -> impl Iterator<Item = TaskRange> {
    let before = (range.lbn, range.end().min(hole.lbn));
    let behind = (range.lbn.max(hole.end()), range.end());
    // If they do not overlap, one of these would be the whole range, and the other empty or the
    // same.
    let parts = if range.overlaps(hole) { [before, behind] } else { [(range.lbn, range.end()), (0, 0)] };
    parts.into_iter().filter(|(lo, hi)| lo < hi).map(|(lo, hi)| TaskRange { lbn: lo, count: hi - lo })
}

impl Marks {
    /// Unmarks in `out` what must not be offered for writing.
    #[inline]
    pub(crate) fn hide_writes(&self, out: &mut Wanted) {
        self.hidden_writes(|r| out.unset(r.lbn, r.end()));
    }

    #[inline]
    fn hidden_writes(&self, mut f: impl FnMut(&TaskRange)) {
        self.asks.iter().chain(&self.flights).for_each(|w| f(&w.range));
        self.refusals.iter().for_each(|r| f(&r.range));
        self.carried.iter().filter(|c| c.kind == Kind::Write).for_each(|c| f(&c.range));
    }

    /// Returns whether some of `range` is asked for, in flight or refused.
    pub(crate) fn write_busy(&self, range: &TaskRange) -> bool {
        let mut writes = self.asks.iter().chain(&self.flights);
        writes.any(|w| w.range.overlaps(range)) || self.refusals.iter().any(|r| r.range.overlaps(range))
    }

    /// Returns the first range in `lo..hi` that must not be handed out for `task` now.
    pub(crate) fn first_busy(&self, task: TaskId, kind: Kind, lo: u64, hi: u64) -> Option<TaskRange> {
        let here = TaskRange { lbn: lo, count: hi - lo };
        let mut first: Option<TaskRange> = None;
        let mut see = |r: &TaskRange| {
            if r.overlaps(&here) && first.is_none_or(|f| r.lbn < f.lbn) {
                first = Some(*r);
            }
        };
        match kind {
            Kind::Write => self.hidden_writes(see),
            _ => self.carried.iter().filter(|c| c.task == task).for_each(|c| see(&c.range)),
        }
        first
    }

    /// Drops expired refusals.
    pub(crate) fn expire(&mut self, now: Time) {
        while self.refusals.front().is_some_and(|r| r.until <= now) {
            self.refusals.pop_front();
        }
    }

    /// Adds a refusal.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        if self.refusals.len() == MAX_REFUSALS {
            self.refusals.pop_front();
        }
        self.refusals.push_back(refusal);
    }

    /// Removes sectors of a task that are no longer to be written: asks that contain any of them
    /// become void, and refusals shrink.
    pub(crate) fn trim(&mut self, task: TaskId, gone: &TaskRange) {
        self.asks.retain(|w| !w.pieces.iter().any(|p| p.task == task && p.range.overlaps(gone)));
        if self.refusals.iter().any(|r| r.task == task && r.range.overlaps(gone)) {
            let all = std::mem::take(&mut self.refusals);
            for r in all {
                let hole = if r.task == task { *gone } else { TaskRange { lbn: 0, count: 0 } };
                without(r.range, &hole).for_each(|range| self.refuse(Refusal { range, ..r }));
            }
        }
    }

    /// Forgets a task. Its writes in flight still hide their sectors until they complete, but cause
    /// no events.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.asks.retain(|w| !w.pieces.iter().any(|p| p.task == task));
        self.flights.iter_mut().for_each(|w| w.pieces.retain(|p| p.task != task));
        self.refusals.retain(|r| r.task != task);
        self.carried.retain(|c| c.task != task);
    }

    /// Frees unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.asks.shrink_to_fit();
        self.flights.shrink_to_fit();
        self.refusals.shrink_to_fit();
        self.carried.shrink_to_fit();
    }

    /// Returns the bytes allocated.
    pub(crate) fn bytes(&self) -> usize {
        let writes = self.asks.capacity() + self.flights.capacity();
        let pieces: usize = self.asks.iter().chain(&self.flights).map(|w| w.pieces.capacity()).sum();
        writes * size_of::<Write>()
            + pieces * size_of::<Piece>()
            + self.refusals.capacity() * size_of::<Refusal>()
            + self.carried.capacity() * size_of::<Carried>()
    }
}
