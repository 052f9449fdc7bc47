//! Promoted tasks: background work that becomes foreground requests (Thereska 2003 section 2.1,
//! `fb_promote`).

use headtime_disk::Kind;

use super::manager::TaskManager;
use super::marks::{Carried, MAX_CARRIED, State};
use super::table::{Extent, READ, side};
use super::{TaskError, TaskId, TaskRange};
use crate::list::NONE;

impl TaskManager {
    /// Promotes a task: from now on [`next_promoted`](TaskManager::next_promoted) hands out what it
    /// still wants, to be carried out as foreground requests. It also stays wanted for free,
    /// whichever comes first. Promoting again has no effect.
    ///
    /// # Errors
    /// It does not exist, or has ended.
    pub fn promote(&mut self, task: TaskId) -> Result<(), TaskError> {
        let at = self.need(task)?;
        if self.tasks[at].promoted {
            return Ok(());
        }
        let last = std::mem::replace(&mut self.promoted.1, at);
        match last {
            NONE => self.promoted.0 = at,
            _ => self.tasks[last].promoted_after = at,
        }
        let t = &mut self.tasks[at];
        t.promoted = true;
        t.promoted_before = last;
        Ok(())
    }

    pub(super) fn unlink_promoted(&mut self, at: u32) {
        let t = &self.tasks[at];
        let (before, after) = (t.promoted_before, t.promoted_after);
        match before {
            NONE => self.promoted.0 = after,
            _ => self.tasks[before].promoted_after = after,
        }
        match after {
            NONE => self.promoted.1 = before,
            _ => self.tasks[after].promoted_before = before,
        }
    }

    /// Returns the next piece of a promoted task: consecutive whole units, at most the given number
    /// of sectors unless one unit is more. Tasks are served in the order of promotion, ascending by
    /// LBN, and again from the beginning for what failed. A piece is not handed out again until a
    /// command that covers it has [completed](TaskManager::completed), or it is
    /// [released](TaskManager::release) and still wanted.
    ///
    /// A piece does not wait for the rate of its session, but counts against it.
    ///
    /// A write must still be [asked](TaskManager::ask) for. Such a request must not be reported as
    /// a [`foreground_write`](TaskManager::foreground_write): it is the task's own.
    pub fn next_promoted(&mut self, most_sectors: u64) -> Option<(TaskId, Kind, TaskRange)> {
        if !self.has_room() || self.marks.carried.len() >= MAX_CARRIED {
            return None;
        }
        let mut at = self.promoted.0;
        while at != NONE {
            let t = &self.tasks[at];
            let (task, kind) = (t.id, t.kind);
            let is_open = self.sessions.is_open(t.session, side(kind).expect("a task reads or writes"));
            if is_open
                && !self.all_carried(at)
                && let Some(range) = self.piece_of(at, most_sectors)
            {
                self.marks.carried.push(Carried { task, kind, range });
                return Some((task, kind, range));
            }
            at = self.tasks[at].promoted_after;
        }
        None
    }

    /// Returns whether a piece that was handed out as a foreground request, and has not been sent,
    /// is still needed: some of a read is still wanted; the data of a write is complete and not
    /// superseded.
    pub fn is_needed(&self, kind: Kind, range: TaskRange) -> bool {
        match kind {
            Kind::Read => self.index_wants(READ, &range),
            _ => self.marks.flights.iter().find(|w| w.range == range).is_some_and(|w| {
                let good = w.pieces.iter().filter(|p| p.state != State::Stale);
                good.map(|p| p.range.count).sum::<u64>() == range.count
            }),
        }
    }

    /// Returns whether the wanted units of a range may be read or written now.
    pub(super) fn may(&self, e: &Extent) -> bool {
        let side = usize::from(e.side);
        self.sessions.may(e.session, side) || self.tasks[e.task].promoted && self.sessions.is_open(e.session, side)
    }

    /// Returns whether a session that may receive it wants a unit that lies in `range`.
    fn index_wants(&self, wanted: usize, range: &TaskRange) -> bool {
        let mut wants = false;
        self.index.visit(&self.extents, range.lbn, range.end(), |_, e| {
            if usize::from(e.side) == wanted && self.may(e) {
                let (a, b) = e.within(range.lbn, range.end());
                wants |= e.bits.next_run(a, b).is_some();
            }
        });
        wants
    }

    /// Returns whether all that a task still wants has been handed out: there is no need to search
    /// for more then.
    fn all_carried(&self, at: u32) -> bool {
        let t = &self.tasks[at];
        let mine = self.marks.carried.iter().filter(|c| c.task == t.id);
        // If a carried piece extends over units delivered since, the sum may be too large; the
        // search then finds nothing.
        let carried: u64 = mine.map(|c| self.still_wanted(at, &c.range)).sum();
        carried == t.left
    }

    /// Returns how many sectors a task still wants of a range that was whole units of one of its
    /// ranges.
    fn still_wanted(&self, task: u32, range: &TaskRange) -> u64 {
        let mut sectors = 0;
        self.index.visit(&self.extents, range.lbn, range.end(), |_, e| {
            if e.task == task {
                let (mut a, b) = e.within(range.lbn, range.end());
                while let Some((from, to)) = e.bits.next_run(a, b) {
                    sectors += e.span(from, to).count;
                    a = to;
                }
            }
        });
        sectors
    }

    /// Returns the next piece of this task after the last one, or from its beginning.
    fn piece_of(&mut self, at: u32, most_sectors: u64) -> Option<TaskRange> {
        let t = &self.tasks[at];
        let (task, first) = (t.id, t.first);
        let start = self.cursor.filter(|c| c.0 == task).map_or((first, 0), |c| (c.1, c.2));
        let found = self.search(task, t.kind, start, NONE, most_sectors).or_else(|| {
            // Again from the beginning, up to and including the range in which the first search
            // began.
            let until = self.extents[start.0].sibling;
            self.search(task, t.kind, (first, 0), until, most_sectors)
        })?;
        let (extent, unit, range) = found;
        self.cursor = Some((task, extent, unit));
        Some(range)
    }

    /// Returns the first piece from a range's unit on, in that range or a later one before `until`:
    /// its range, one past its last unit, its sectors.
    fn search(
        &self,
        task: TaskId,
        kind: Kind,
        start: (u32, u64),
        until: u32,
        most_sectors: u64,
    ) -> Option<(u32, u64, TaskRange)> {
        let (mut at, mut unit) = start;
        while at != until && at != NONE {
            let e = &self.extents[at];
            let most = (most_sectors / u64::from(e.unit)).max(1);
            while let Some((a, b)) = e.bits.next_run(unit, e.units()) {
                let b = b.min(a + most);
                let run = e.span(a, b);
                let Some(busy) = self.marks.first_busy(task, kind, run.lbn, run.end()) else {
                    return Some((at, b, run));
                };
                let (from, to) = e.touching(busy.lbn, busy.end());
                if from > a {
                    return Some((at, from, e.span(a, from)));
                }
                unit = to;
            }
            (at, unit) = (e.sibling, 0);
        }
        None
    }
}
