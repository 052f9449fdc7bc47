//! The effects of completed commands and of submitted foreground writes on tasks.

use headtime_disk::{Kind, Outcome, Time};

use super::manager::{Change, TaskManager};
use super::marks::{Piece, State, inside};
use super::table::{Extent, READ, WRITE, side};
use super::{TaskEvent, TaskRange};
use crate::list::NONE;

/// How a unit ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Delivered,
    Written,
    Superseded,
    Failed,
}

/// Sectors of a session, by its slot.
type Part = (u16, TaskRange);

/// Returns the units of a range that end so when a command ends with `range`: those that lie in it
/// when they were read, those that touch it when it is bad.
fn units(e: &Extent, range: &TaskRange, end: End) -> (u64, u64) {
    match end {
        End::Failed => e.touching(range.lbn, range.end()),
        _ => e.within(range.lbn, range.end()),
    }
}

/// Returns the union of parts, by session and LBN.
fn union(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_unstable_by_key(|p| (p.0, p.1.lbn));
    parts.dedup_by(|next, last| {
        let joins = next.0 == last.0 && next.1.lbn <= last.1.end();
        if joins {
            last.1.count = last.1.end().max(next.1.end()) - last.1.lbn;
        }
        joins
    });
    parts
}

impl TaskManager {
    /// Handles a completed command, foreground or background. To be called for every command that
    /// was at the drive, with everything that it covered (for a merged one, both parts). Tasks are
    /// served in the order of registration.
    pub fn completed(&mut self, kind: Kind, lbn: u64, count: u32, outcome: Outcome, now: Time) {
        self.advance(now);
        let range = TaskRange { lbn, count: u64::from(count) };
        if kind == Kind::Flush || count == 0 {
            return;
        }
        self.uncarry(kind, &range);
        match (kind, outcome) {
            (Kind::Read, Outcome::Ok) => self.deliver(&range, End::Delivered),
            (Kind::Read, Outcome::MediaError { lbn: bad }) if bad >= lbn && bad < range.end() => {
                self.deliver(&TaskRange { lbn: bad, count: 1 }, End::Failed);
            }
            (Kind::Read, _) => {}
            _ => self.landed(&range, outcome),
        }
    }

    /// Handles a write submitted by the foreground. Write tasks lose the units that it touches,
    /// except those whose own write is in flight: the new write must be held back until that
    /// completes.
    pub fn foreground_write(&mut self, lbn: u64, count: u64) {
        if count > 0 {
            self.supersede(&TaskRange { lbn, count });
        }
    }

    /// Returns the ranges on one side that have a sector in `range`, in the order of registration.
    pub(super) fn touched(&mut self, wanted: usize, range: &TaskRange) -> Vec<u32> {
        let mut hits = std::mem::take(&mut self.hits);
        hits.clear();
        self.index.visit(&self.extents, range.lbn, range.end(), |at, e| {
            if usize::from(e.side) == wanted {
                hits.push(at);
            }
        });
        if hits.len() > 1 {
            hits.sort_unstable_by_key(|&at| (self.tasks[self.extents[at].task].id, self.extents[at].lbn));
        }
        hits
    }

    /// Returns the list of [`touched`](Self::touched) for reuse.
    pub(super) fn put_back(&mut self, hits: Vec<u32>) {
        // Frees the memory of a list that one command made very long.
        self.hits = if hits.capacity() > 1_024 { vec![] } else { hits };
    }

    /// Ends the units of `range` that may be delivered ([`units`]).
    fn deliver(&mut self, range: &TaskRange, end: End) {
        if self.sessions.left(READ) == 0 && self.promoted.0 == NONE {
            return;
        }
        let hits = self.touched(READ, range);
        let promoted = self.promoted_parts(&hits, range, end);
        let mut delivered = vec![];
        for &at in &hits {
            let e = &self.extents[at];
            let (unit, owner) = (u64::from(e.unit), e.session);
            let (mut a, b) = units(e, range, end);
            while self.has_room() {
                let Some((from, mut to)) = self.next_deliverable(at, (a, b), &promoted, end) else { break };
                if end == End::Delivered {
                    // The window may end within a unit; that unit is still delivered.
                    let s = self.sessions.get(owner);
                    to = to.min(from.saturating_add((s.window - s.untaken).div_ceil(unit)));
                }
                a = to;
                if end == End::Delivered && self.sessions.get(owner).rate().is_some() {
                    delivered.push((owner, self.extents[at].span(from, to)));
                }
                if self.end(at, from, to, end) {
                    break;
                }
            }
        }
        self.put_back(hits);
        // What several tasks of a session receive was read once. An application that promotes some
        // of what it waits for would otherwise have half its rate.
        for (owner, part) in union(delivered) {
            self.sessions.charge(owner, part.count, self.now);
        }
    }

    /// Returns what promoted tasks of sessions with a limit receive of these ranges.
    fn promoted_parts(&self, hits: &[u32], range: &TaskRange, end: End) -> Vec<Part> {
        let mut parts = vec![];
        if self.promoted.0 == NONE || !self.sessions.any_limited() {
            return parts;
        }
        for e in hits.iter().map(|&at| &self.extents[at]) {
            if self.tasks[e.task].promoted && self.sessions.get(e.session).rate().is_some() {
                let (mut a, b) = units(e, range, end);
                while let Some((from, to)) = e.bits.next_run(a, b) {
                    parts.push((e.session, e.span(from, to)));
                    a = to;
                }
            }
        }
        union(parts)
    }

    /// Returns the first run among the units `a..b` of a range that may be delivered now. A session
    /// that waits for its rate receives what its promoted tasks receive, for its other tasks, too:
    /// they would have it read again.
    fn next_deliverable(&self, at: u32, (a, b): (u64, u64), promoted: &[Part], end: End) -> Option<(u64, u64)> {
        let e = &self.extents[at];
        if self.sessions.may(e.session, READ) {
            return e.bits.next_run(a, b);
        }
        if !self.sessions.is_open(e.session, READ) {
            return None;
        }
        let first = promoted.partition_point(|p| (p.0, p.1.end()) <= (e.session, e.at(a)));
        promoted[first..].iter().take_while(|p| p.0 == e.session).find_map(|p| {
            let (from, to) = units(e, &p.1, end);
            let (from, to) = (from.max(a), to.min(b));
            if from < to { e.bits.next_run(from, to) } else { None }
        })
    }

    /// Ends the units `a..b` of a range, all of them wanted. Returns whether the task has ended
    /// with them: the range no longer exists then.
    pub(super) fn end(&mut self, at: u32, a: u64, b: u64, end: End) -> bool {
        let e = &mut self.extents[at];
        e.bits.clear(a, b, &mut self.bits);
        e.left -= b - a;
        let (range, owner, wanted, slot) = (e.span(a, b), e.session, usize::from(e.side), e.task);
        if e.left == 0 {
            self.index.remove(at, &mut self.extents);
        }
        let t = &mut self.tasks[slot];
        t.left -= range.count;
        let (task, kind, done) = (t.id, t.kind, t.left == 0);
        let session = self.sessions.change(owner, |s| {
            s.left[wanted] -= range.count;
            if matches!(end, End::Delivered | End::Written) {
                s.delivered += range.count;
            }
            if end == End::Delivered {
                s.untaken += range.count;
            }
            s.id
        });
        if end == End::Written {
            self.sessions.charge(owner, range.count, self.now);
        }
        self.events.push_back(match end {
            End::Delivered => TaskEvent::Delivered { session, task, range },
            End::Written => TaskEvent::Written { session, task, range },
            End::Superseded => TaskEvent::Superseded { session, task, range },
            End::Failed => TaskEvent::Failed { session, task, range },
        });
        self.changes.push(Change { session, kind, range });
        if done {
            self.events.push_back(TaskEvent::Done { session, task });
            self.drop_task(slot, false);
        }
        done
    }

    /// Returns how many runs of units of write tasks a write to `range` would supersede.
    pub(super) fn supersedes(&mut self, range: &TaskRange) -> usize {
        let hits = self.touched(WRITE, range);
        let mut runs = 0;
        for &at in &hits {
            let e = &self.extents[at];
            let (mut a, b) = e.touching(range.lbn, range.end());
            while let Some((_, to)) = e.bits.next_run(a, b) {
                runs += 1;
                a = to;
            }
        }
        self.put_back(hits);
        runs
    }

    /// Removes the units that touch `range` from write tasks. Those in flight are marked instead.
    pub(super) fn supersede(&mut self, range: &TaskRange) {
        if self.tasks.is_empty() {
            return;
        }
        let hits = self.touched(WRITE, range);
        for &at in &hits {
            let e = &self.extents[at];
            let (mut a, b) = e.touching(range.lbn, range.end());
            let lost = e.span(a, b);
            let flying = self.make_stale(at, &lost);
            while let Some((from, mut to)) = self.extents[at].bits.next_run(a, b) {
                let e = &self.extents[at];
                let mut run = e.span(from, to);
                if let Some(f) = flying.iter().find(|f| f.overlaps(&run)) {
                    if f.lbn <= run.lbn {
                        a = e.touching(f.lbn, f.end()).1;
                        continue;
                    }
                    to = e.touching(f.lbn, f.end()).0;
                    run = e.span(from, to);
                }
                a = to;
                let task = self.tasks[e.task].id;
                self.marks.trim(task, &run);
                if self.end(at, from, to, End::Superseded) {
                    break;
                }
            }
        }
        self.put_back(hits);
    }

    /// Marks the parts of a range that are in flight and lie in `lost` as stale. Returns all parts
    /// in flight there, by LBN.
    fn make_stale(&mut self, at: u32, lost: &TaskRange) -> Vec<TaskRange> {
        let mut flying = vec![];
        for w in &mut self.marks.flights {
            if !w.range.overlaps(lost) {
                continue;
            }
            let mut split = Vec::with_capacity(w.pieces.len() + 2);
            for &p in &w.pieces {
                if p.extent != at || !p.range.overlaps(lost) {
                    split.push(p);
                    continue;
                }
                let (lo, hi) = (p.range.lbn.max(lost.lbn), p.range.end().min(lost.end()));
                flying.push(TaskRange { lbn: lo, count: hi - lo });
                let parts = [(p.range.lbn, lo, p.state), (lo, hi, State::Stale), (hi, p.range.end(), p.state)];
                let kept = parts.into_iter().filter(|(lo, hi, _)| lo < hi);
                split.extend(kept.map(|(lo, hi, state)| Piece {
                    range: TaskRange { lbn: lo, count: hi - lo },
                    state,
                    ..p
                }));
            }
            w.pieces = split;
        }
        flying.sort_unstable_by_key(|r| r.lbn);
        flying
    }

    /// Handles a completed write command: ends the writes in flight that it contains.
    fn landed(&mut self, range: &TaskRange, outcome: Outcome) {
        while let Some(n) = self.marks.flights.iter().position(|w| inside(&w.range, range)) {
            let write = self.marks.flights.remove(n);
            let bad = match outcome {
                Outcome::MediaError { lbn } => Some(lbn),
                _ => None,
            };
            self.end_flight(write.pieces, outcome == Outcome::Ok, bad);
        }
    }

    /// Ends the pieces of a write that was in flight. Pieces not written are wanted again, unless
    /// newer data supersedes them.
    pub(super) fn end_flight(&mut self, pieces: Vec<Piece>, written: bool, bad: Option<u64>) {
        let mut pieces = pieces.into_iter().peekable();
        while let Some(mut p) = pieces.next() {
            // Pieces that were split only because one became stale are joined again where that
            // makes no difference.
            while let Some(next) = pieces
                .next_if(|n| n.extent == p.extent && n.range.lbn == p.range.end() && (written || n.state == p.state))
            {
                p.range.count += next.range.count;
            }
            let Ok(_) = self.need(p.task) else { continue };
            let e = &self.extents[p.extent];
            let (mut a, b) = e.within(p.range.lbn, p.range.end());
            assert!(e.bits.next_run(a, b) == Some((a, b)), "what is in flight is wanted");
            if written {
                self.end(p.extent, a, b, End::Written);
                continue;
            }
            let stale = p.state == State::Stale;
            let failed =
                bad.filter(|bad| (p.range.lbn..p.range.end()).contains(bad)).map(|bad| e.touching(bad, bad + 1));
            let Some((from, to)) = failed else {
                if stale {
                    self.end(p.extent, a, b, End::Superseded);
                }
                continue;
            };
            let mut ends = vec![];
            if stale && a < from {
                ends.push((a, from, End::Superseded));
            }
            ends.push((from, to, End::Failed));
            a = to;
            if stale && a < b {
                ends.push((a, b, End::Superseded));
            }
            ends.into_iter().any(|(a, b, how)| self.end(p.extent, a, b, how));
        }
    }

    /// Forgets the pieces of promoted tasks that a command of this kind covered.
    pub(super) fn uncarry(&mut self, kind: Kind, range: &TaskRange) {
        let carried = &mut self.marks.carried;
        if !carried.is_empty() {
            carried.retain(|c| c.kind != kind || !inside(&c.range, range));
        }
        debug_assert!(side(kind).is_some());
    }
}
