//! Promoted tasks: what could not wait any more becomes foreground requests (Thereska 2003 section
//! 2.1, `fb_promote`).

use headtime_disk::command::Kind;

use super::manager::TaskManager;
use super::marks::{Carried, MOST_CARRIED, State};
use super::table::{READ, side};
use super::{Range, TaskError, TaskId};
use crate::list::NONE;

impl TaskManager {
    /// From now on what a task still wants is handed out by
    /// [`next_promoted`](TaskManager::next_promoted), to be carried out as foreground requests. It
    /// stays wanted for free as well, whichever comes first. Promoting twice is promoting once.
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

    /// The next piece of a promoted task: whole units, consecutive, at most so many sectors unless
    /// one unit is more. Tasks are served in the order of their promotion, ascending by LBN, and
    /// round again for what failed. A piece is not handed out again until a command that covers it
    /// has [completed](TaskManager::completed), or it is [released](TaskManager::release); if it is
    /// still wanted then, it is.
    ///
    /// A write has yet to be [asked](TaskManager::ask) for. Such a request is not to be told of as
    /// a [`foreground_write`](TaskManager::foreground_write): it is the task's own.
    pub fn next_promoted(&mut self, most_sectors: u64) -> Option<(TaskId, Kind, Range)> {
        if !self.has_room() || self.marks.carried.len() >= MOST_CARRIED {
            return None;
        }
        let mut at = self.promoted.0;
        while at != NONE {
            let t = &self.tasks[at];
            let (task, kind) = (t.id, t.kind);
            let may = self.sessions.may(t.session, side(kind).expect("a task reads or writes"));
            if may
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

    /// Whether a piece that was handed out as a foreground request, and has not been sent, is still
    /// good for something: of a read something is still wanted; the data of a write is all there
    /// still, and the newest.
    pub fn is_needed(&self, kind: Kind, range: Range) -> bool {
        match kind {
            Kind::Read => self.index_wants(READ, &range),
            _ => self.marks.flights.iter().find(|w| w.range == range).is_some_and(|w| {
                let good = w.pieces.iter().filter(|p| p.state != State::Stale);
                good.map(|p| p.range.count).sum::<u64>() == range.count
            }),
        }
    }

    /// Whether a session that may be given it wants a unit that lies in `range`.
    fn index_wants(&self, wanted: usize, range: &Range) -> bool {
        let mut wants = false;
        self.index.visit(&self.extents, range.lbn, range.end(), |_, e| {
            if usize::from(e.side) == wanted && self.sessions.may(e.session, wanted) {
                let (a, b) = e.within(range.lbn, range.end());
                wants |= e.bits.next_run(a, b).is_some();
            }
        });
        wants
    }

    /// Whether all that a task still wants has been handed out: then there is no need to look for
    /// more.
    fn all_carried(&self, at: u32) -> bool {
        let t = &self.tasks[at];
        let mine = self.marks.carried.iter().filter(|c| c.task == t.id);
        // Cut short by what was delivered meanwhile, this may be too much; then the search says so.
        let carried: u64 = mine.map(|c| self.still_wanted(at, &c.range)).sum();
        carried == t.left
    }

    /// How many sectors a task still wants of a stretch that was whole units of one of its ranges.
    fn still_wanted(&self, task: u32, range: &Range) -> u64 {
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

    /// The next piece of this task behind the last one, or from its beginning.
    fn piece_of(&mut self, at: u32, most_sectors: u64) -> Option<Range> {
        let t = &self.tasks[at];
        let (task, first) = (t.id, t.first);
        let start = self.cursor.filter(|c| c.0 == task).map_or((first, 0), |c| (c.1, c.2));
        let found = self.search(task, t.kind, start, NONE, most_sectors).or_else(|| {
            // Once more from the beginning, up to and with the range that the first search began
            // in.
            let until = self.extents[start.0].sibling;
            self.search(task, t.kind, (first, 0), until, most_sectors)
        })?;
        let (extent, unit, range) = found;
        self.cursor = Some((task, extent, unit));
        Some(range)
    }

    /// The first piece from a range's unit on, in that range or one of those behind it, before
    /// `until`: its range, one past its last unit, what it covers.
    fn search(
        &self,
        task: TaskId,
        kind: Kind,
        start: (u32, u64),
        until: u32,
        most_sectors: u64,
    ) -> Option<(u32, u64, Range)> {
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
